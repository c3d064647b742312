"""Maintains a tree: membership, beacons, links that break, and group hellos.

Mottola, Cugola, Picco, "A Self-Repairing Tree Topology Enabling Content-Based Routing in Mobile Ad Hoc Networks",
section II, after Royer and Perkins. A tree has a leader, whose group hellos carry a growing sequence number. A node
that loses its parent searches for another (`search.py`). Leaders that hear of each other merge their parts; this is
also how the tree begins, since every member is its own leader at first. What MAODV and COMAN do differently is a
`Rules`; docs/protocols/coman.md has what the paper leaves open.

The rules this file owns:

* The link to the parent is lost when nothing was heard over it for so many beacons, or when a unicast over it was given
  up (`unicast_breaks`); the link to a child only when nothing was heard (unless `children_break`): it has to act.
* Beacons name their sender's parent. A node that is named by one that is no longer among its children takes it back
  (`readopt`); a node whose child names another parent, twice, drops it: the first beacon may have crossed a change.
* Only a group hello from the parent counts for distances; every node passes on the first copy.
"""

from collections.abc import Callable, Hashable, Mapping
from random import Random
from typing import Any, Final

from msgspec import structs

from roamcast.protocols.api import Node, Port, Time
from roamcast.protocols.messages import Message
from roamcast.protocols.tree.messages import MAX_DEPTH, NOWHERE, Grph, Hello, Mact, Rrep, Rreq
from roamcast.protocols.tree.parameters import Maodv
from roamcast.protocols.tree.position import CONTRADICTIONS, SILENCE, Links, Position
from roamcast.protocols.tree.rules import Rules
from roamcast.protocols.tree.search import Search, remember
from roamcast.units import seconds

HELLO: Final = ("tree", "hello")
GROUP_HELLO: Final = ("tree", "grph")


class Tree:
    def __init__(
        self,
        node: Node,
        params: Maodv,
        port: Port,
        rng: Random,
        links: Links,
        make_rules: "Callable[[Tree], Rules]",
    ) -> None:
        self.node = node
        self.port = port
        self.rng = rng
        self._hello = seconds(params.hello)
        self._unicast_breaks = params.unicast_breaks
        self._children_break = params.children_break
        self._readopt = params.readopt
        self._hearing_any = params.hearing != "beacons"
        self._group_hello = seconds(params.group_hello)
        # A beacon may be late by its jitter, a tenth of the interval.
        silence = round(self._hello * (params.misses + 0.1))
        self.position = Position(node, port, links, silence, overhears=params.overhears)
        self.search = Search(self.position, params, rng, self)
        self.rules = self.search.rules = make_rules(self)
        self._handlers: dict[type[Message], Callable[[Time, Node, Any], None]] = {
            Rreq: self.search.hear_request,
            Rrep: self.search.hear_reply,
            Mact: self.search.hear_activation,
            Grph: self._hear_group_hello,
            **self.rules.handlers,
        }
        self._seen: dict[Node, int] = {}  # by leader, the number of its newest group hello
        self.routes: dict[Node, Node] = {}
        """By leader of another tree, the neighbour that passed its newest group hello on."""

    def tables(self) -> dict[str, int]:
        """The number of entries of its tables, by name."""
        own = {"children": len(self.position.children), **self.search.tables()}
        return {**own, "leaders": len(self._seen), "ways to leaders": len(self.routes)}

    # --- Membership -------------------------------------------------------------------------------------------------

    def start(self, now: Time, kept: Mapping[str, bytes], *, member: bool) -> None:
        self.position.remember_ranks(kept)
        self.search.remember_serials(kept)
        self.port.set_timer(now + round(self.rng.random() * self._hello), HELLO)
        self.port.set_timer(now + round(self.rng.random() * self._group_hello), GROUP_HELLO)
        if member:
            self.position.member = True
            self.search.lead(now, "start", 0)
        self.rules.start(now)

    def join(self, now: Time) -> None:
        """Becomes a member. A node that is not on the tree searches for a parent."""
        if not self.position.member:
            self.position.member = True
            if not self.position.on_tree:
                self.search.begin(now, "joining", "joined", NOWHERE)

    def leave(self, now: Time) -> None:
        """Ceases to be a member: it only forwards, as long as a child needs it."""
        if self.position.member:
            self.position.member = False
            if self.position.is_leader and self.position.children:
                self.search.hand_over(now)
            else:
                self.leave_if_idle(now)

    def leave_if_idle(self, now: Time) -> None:
        """Prunes a forwarder that has become a leaf."""
        position = self.position
        if not position.member and not position.children and position.on_tree:
            position.leave(now)
            self.search.repair = None
            position.tell("left", 0)

    # --- What the host calls ----------------------------------------------------------------------------------------

    def receive(self, now: Time, sender: Node, message: Message) -> bool:
        """Handles any message of a neighbour; returns False for one of the routing, which only shows that it is there.

        Most messages are beacons of nodes that share no link with this one. They change nothing.
        """
        if type(message) is Hello:
            if self.position.hear(now, sender) or message.upstream == self.node:
                self._hear_hello(now, sender, message)
            return True
        if self._hearing_any:
            self.position.hear(now, sender)
        handler = self._handlers.get(type(message))
        if handler is not None:
            handler(now, sender, message)
        return handler is not None

    def unreachable(self, now: Time, to: Node, message: Message) -> None:
        """A unicast of the tree or of the routing was given up.

        The link to the parent is lost at once (`unicast_breaks`), since it can be repaired. A child is dropped only
        when its beacons stay away, unless `children_break`: the child has to act, and if it is still there, a link that
        only one end has given up would be worse than none.
        """
        self.rules.unreachable(now, to, message)
        handing_over = isinstance(message, Mact) and message.flag == "elect"  # that child cannot lead
        if handing_over or (to == self.position.parent and self._unicast_breaks) or self._children_break:
            self.lose(now, to)
        self.search.unreachable(now, message)

    def timer(self, now: Time, key: Hashable) -> None:
        if key == HELLO:
            self._send_hello(now)
        elif key == SILENCE:
            for neighbour in self.position.lost(now):
                self.lose(now, neighbour)
            self.position.watch()
        elif key == GROUP_HELLO:
            self._send_group_hello(now)
        else:
            self.search.timer(now, key)
        self.rules.timer(now, key)

    # --- Beacons, and links that break ------------------------------------------------------------------------------

    def _send_hello(self, now: Time) -> None:
        self.port.broadcast(Hello(self.position.parent, self.position.rank))
        self.port.set_timer(now + round(self._hello * (0.9 + 0.1 * self.rng.random())), HELLO)

    def lose(self, now: Time, neighbour: Node) -> None:
        """The link to a node is lost, if there was one."""
        position = self.position
        if neighbour in position.children:
            position.drop_child(now, neighbour)
            if neighbour != position.parent:
                position.tell("child", 0)
                self.leave_if_idle(now)
        if neighbour == position.parent:
            position.drop_parent(now)
            if position.member or position.children:
                position.leader = None
                self.search.begin(now, "broken", "repaired", position.distance)
            else:
                self.leave_if_idle(now)

    def _hear_hello(self, now: Time, sender: Node, hello: Hello) -> None:
        children = self.position.children
        if sender == self.position.parent:
            if not self.position.hear_rank_of_parent(hello.rank):
                self.lose(now, sender)
        elif hello.upstream == self.node:
            if not self.position.on_tree:
                self.position.end_link(sender)
            elif sender in children:
                children[sender] = 0
            elif self._readopt:
                self.position.add_child(now, sender)
                self.position.tell("child", 0)
                self.search.update(sender, 0, 0)
        elif sender in children:
            children[sender] += 1
            if children[sender] >= CONTRADICTIONS:
                self.lose(now, sender)

    # --- Group hellos -----------------------------------------------------------------------------------------------

    def group_hello_interval(self) -> Time:
        """Random, since leaders in step would disturb each other for ever."""
        return round(self._group_hello * (0.9 + 0.2 * self.rng.random()))

    def first_group_hello(self) -> Time:
        return round(self.rng.random() * self._group_hello)

    def _send_group_hello(self, now: Time) -> None:
        # A new number would make a merge in progress fail, so it is sent after that: children may wait for it.
        merging = self.position.is_leader and self.search.repair is not None
        wait = self.search.retry_wait if merging else self.group_hello_interval()
        self.port.set_timer(now + wait, GROUP_HELLO)
        if self.position.is_leader and not merging:
            self._announce(0)

    def announce(self, now: Time, cause: int) -> None:
        """Announces a new leader."""
        if not self.rules.announce(cause):
            self._announce(cause)

    def _announce(self, cause: int) -> None:
        """Announces the leader, with a new number."""
        self.position.next_sequence()
        remember(self._seen, self.node, self.position.sequence)
        self.port.broadcast(Grph(self.position.place, False, False, cause))

    def follow(self, place_of: Grph) -> None:
        """Takes over what the parent says about the leader."""
        was = self.position.leader
        self.position.follow(place_of.place)
        if self.position.leader != was:
            self.position.tell("leader", place_of.cause)

    def _hear_group_hello(self, now: Time, sender: Node, hello: Grph) -> None:
        place = hello.place
        if place.leader == self.node or place.distance >= MAX_DEPTH:
            return
        if hello.on_tree:
            self.rules.hear_tree_hello(now, sender, hello)
            return
        new = self._seen.get(place.leader, -1) < place.sequence
        remember(self._seen, place.leader, max(place.sequence, self._seen.get(place.leader, -1)))
        if sender == self.position.parent and not hello.foreign:
            self.follow(hello)
        elif place.leader == self.position.leader:
            self.position.sequence = max(self.position.sequence, place.sequence)
        elif new:
            remember(self.routes, place.leader, sender)
        if new:
            if self.position.on_tree and place.leader != self.position.leader:
                self.rules.hear_foreign_hello(now, sender, hello)
            else:
                self.pass_hello_on(hello)

    def pass_hello_on(self, hello: Grph) -> None:
        """Rebroadcasts a group hello. A node of that tree puts in its own position, since only a copy from the parent
        counts for distances."""
        place, position = hello.place, self.position
        ours = place.leader == position.leader
        # Nodes of other trees on the path would get new parents too in a merge, so it must exceed all their ranks.
        advertised = position.place if ours else structs.replace(place, rank=max(place.rank, position.rank))
        # The announced number stays: with a higher one, the leader's next hellos would look old.
        advertised = structs.replace(advertised, sequence=place.sequence)
        onward = structs.replace(hello, place=advertised, foreign=not ours)
        self.port.broadcast(onward, self.search.flood_delay())
