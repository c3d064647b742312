"""MAODV's tree: who is my parent, and what to do when it is gone.

Mottola, Cugola, Picco, "A Self-Repairing Tree Topology Enabling Content-Based Routing in Mobile Ad Hoc Networks",
section II, after Royer and Perkins. A tree has a leader, whose group hellos carry a growing sequence number. When a
link breaks, the node below it asks (RREQ) for another way up; nodes of the tree that are as near to the leader, know as
new a number and have no repair of their own answer (RREP); one answer is activated (MACT). If there is none, the node
becomes a leader, or finds one below it: all that is in `repair.py`. Here are membership, group hellos, and merging:
leaders that hear of each other join their parts, which is also how the tree begins, every member being the leader of
itself at first.

What the paper leaves open is in docs/protocols/coman.md. One thing differs from it: a node takes a new parent when
that parent has said yes (`activation = "confirmed"`), not when it has asked. A path is so turned round from its far
end, a lost MACT changes nothing, and with `rank.py` no cycle can form.
"""

from collections.abc import Callable, Hashable, Mapping
from random import Random
from typing import Annotated, Any, Final

from msgspec import Meta, structs

from roamcast.protocols.api import Node, Port, Time
from roamcast.protocols.messages import Message
from roamcast.protocols.tree.messages import (
    MAX_DEPTH,
    MERGE,
    NOWHERE,
    Grph,
    Hello,
    Mact,
    Place,
    Rrep,
    Rreq,
)
from roamcast.protocols.tree.position import CONTRADICTIONS, HELLO, Links
from roamcast.protocols.tree.rank import MAX_SEQUENCE, leader_rank
from roamcast.protocols.tree.repair import Repair, Repairing, Repairs, Reverse, remember
from roamcast.units import seconds

GROUP_HELLO: Final = ("tree", "grph")


class Maodv(Repairs, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of a tree as MAODV keeps it."""

    group_hello: Annotated[
        float, Meta(ge=0.05, le=3600, description="between two group hellos, s (GROUP_HELLO_INTERVAL 5 s)")
    ] = 5.0


class MaodvTree(Repairing):
    def __init__(self, node: Node, params: Maodv, port: Port, rng: Random, links: Links) -> None:
        super().__init__(node, params, port, rng, links)
        self._group_hello = seconds(params.group_hello)
        self._handlers: dict[type[Message], Callable[[Time, Node, Any], None]] = {
            Hello: self._hear_hello,
            Rreq: self._hear_request,
            Rrep: self._hear_reply,
            Mact: self._hear_activation,
            Grph: self._hear_group_hello,
        }
        self._seen: dict[Node, int] = {}  # by leader, the newest group hello
        self._routes: dict[Node, Node] = {}  # by leader, who passed its newest group hello on

    def tables(self) -> dict[str, int]:
        return {**super().tables(), "leaders": len(self._seen), "ways to leaders": len(self._routes)}

    # --- Membership -------------------------------------------------------------------------------------------------

    def start(self, now: Time, kept: Mapping[str, bytes], *, member: bool) -> None:
        self._remember_ranks(kept)
        self.port.set_timer(now + round(self.rng.random() * self._hello), HELLO)
        self.port.set_timer(now + round(self.rng.random() * self._group_hello), GROUP_HELLO)
        if member:
            self.member = True
            self._lead(now, "start", 0)

    def join(self, now: Time) -> None:
        """Becomes a member. On the tree it is enough to say so; elsewhere a place is asked for."""
        if not self.member:
            self.member = True
            if not self.on_tree:
                self._begin(now, "joining", "joined", NOWHERE)

    def leave(self, now: Time) -> None:
        """Is no longer a member: it forwards, as long as somebody needs it."""
        if self.member:
            self.member = False
            if self.is_leader and self.children:
                self._hand_over(now)
            else:
                self._leave_if_idle(now)

    def _leave_if_idle(self, now: Time) -> None:
        """Prunes a forwarder that has become a leaf."""
        if self.member or self.children or not self.on_tree:
            return
        if self.parent is not None:
            self._end_link(self.parent)
        self._drop_parent(now)
        self.on_tree, self.leader, self.distance, self.ancestors, self.repair = False, None, NOWHERE, (), None
        self._tell("left", 0)

    # --- What the host calls ----------------------------------------------------------------------------------------

    def receive(self, now: Time, sender: Node, message: Message) -> None:
        """Any message of a neighbour: those of others only show that it is there."""
        self.hear(now, sender, beacon=type(message) is Hello)
        handler = self._handlers.get(type(message))
        if handler is not None:
            handler(now, sender, message)

    def unreachable(self, now: Time, to: Node, message: Message) -> None:
        """A unicast was given up: of the tree or of whoever routes on it.

        The way up is lost at once, for it can be repaired. A child is let go only when its beacons stay away: it is for
        the child to act, and if it is still there, a link that only one end has given up would be worse than none.
        """
        handing_over = isinstance(message, Mact) and message.flag == "elect"  # that child cannot lead
        if to == self.parent or handing_over:
            self._lose(now, to)
        repair = self.repair
        if repair is None or not repair.activating or not isinstance(message, Mact):
            return
        if message.flag in ("join", "elect") and (message.origin, message.serial) == (self.node, repair.serial):
            repair.activating = False
            self._next_reply(now, repair)

    def timer(self, now: Time, key: Hashable) -> None:
        if key == HELLO:
            self._send_hello(now)
            for neighbour in self._lost(now):
                self._lose(now, neighbour)
        elif key == GROUP_HELLO:
            # A new number would make a merge in progress fail: it comes after that, for children may wait for it.
            merging = self.is_leader and self.repair is not None
            self.port.set_timer(now + (self._retry_wait if merging else self._group_hello_interval()), GROUP_HELLO)
            if self.is_leader and not merging:
                self._announce(now, 0)
        elif self.repair is not None:
            step = (self.repair.serial, self.repair.steps)
            if key == ("tree", "wait", *step):
                self._next_reply(now, self.repair)
            elif key == ("tree", "gathered", *step):
                self.repair.gathering = False
                if self.repair.replies:
                    self._activate(now, self.repair)

    # --- Links that break -------------------------------------------------------------------------------------------

    def _lose(self, now: Time, neighbour: Node) -> None:
        if neighbour in self.children:
            self._drop_child(now, neighbour)
            if neighbour != self.parent:
                self._tell("child", 0)
                self._leave_if_idle(now)
        if neighbour == self.parent:
            self._drop_parent(now)
            if self.member or self.children:
                self.leader = None
                self._begin(now, "broken", "repaired", self.distance)
            else:
                self._leave_if_idle(now)

    def _hear_hello(self, now: Time, sender: Node, hello: Hello) -> None:
        if sender == self.parent:
            if hello.rank >= self._ceiling and hello.rank > self.rank:
                self._ceiling, self._doubts = hello.rank, 0
            else:
                # Ranks never fall, so it has begun a new life; or it was taken before it said yes, and is below us.
                self._doubts += 1
                if self._doubts >= CONTRADICTIONS:
                    self._lose(now, sender)
        elif hello.upstream == self.node:
            if not self.on_tree:
                self._end_link(sender)
            elif sender in self.children:
                self.children[sender] = 0
            else:
                self._add_child(now, sender)
                self._tell("child", 0)
                self._update(sender, 0, 0)
        elif sender in self.children:
            self.children[sender] += 1
            if self.children[sender] >= CONTRADICTIONS:
                self._lose(now, sender)

    # --- Group hellos -----------------------------------------------------------------------------------------------

    def _group_hello_interval(self) -> Time:
        """Leaders that keep the same time would disturb each other for ever."""
        return round(self._group_hello * (0.9 + 0.2 * self.rng.random()))

    def _announce(self, now: Time, cause: int) -> None:
        """The leader is there, with a new number."""
        self.sequence = min(self.sequence + 1, MAX_SEQUENCE)
        self._rise_to(leader_rank(self.sequence))
        remember(self._seen, self.node, self.sequence)
        self.port.broadcast(Grph(self.place, False, False, cause))

    def _hear_group_hello(self, now: Time, sender: Node, hello: Grph) -> None:
        place = hello.place
        if place.leader == self.node or place.distance >= MAX_DEPTH:
            return
        new = self._seen.get(place.leader, -1) < place.sequence
        remember(self._seen, place.leader, max(place.sequence, self._seen.get(place.leader, -1)))
        if sender == self.parent and not hello.foreign:
            was = self.leader
            self._follow(place)
            if self.leader != was:
                self._tell("leader", hello.cause)
        elif place.leader == self.leader:
            self.sequence = max(self.sequence, place.sequence)
        elif new:
            remember(self._routes, place.leader, sender)
        if new:
            if self.on_tree and place.leader != self.leader:
                self._hear_foreign_hello(now, sender, hello)
            else:
                self._pass_hello_on(hello)

    def _pass_hello_on(self, hello: Grph) -> None:
        """Only a copy from the parent counts for distances, so a node of that tree tells its own."""
        ours = hello.place.leader == self.leader
        # Those of other trees on the way would get new parents too if it came to a merge: it is for all their ranks.
        told = self.place if ours else structs.replace(hello.place, rank=max(hello.place.rank, self.rank))
        # The number stays the one that was announced: with a higher one, the leader's next hellos would pass for old.
        told = structs.replace(told, sequence=hello.place.sequence)
        onward = structs.replace(hello, place=told, foreign=not ours)
        self.port.broadcast(onward, self._flood_delay())

    # --- Merging, the MAODV way -------------------------------------------------------------------------------------

    def _hear_foreign_hello(self, now: Time, sender: Node, hello: Grph) -> None:
        """Of two leaders that hear of each other, the one with the lower number asks to join the other."""
        self._pass_hello_on(hello)
        leader = hello.place.leader
        if self.is_leader and self.node < leader and self.repair is None:
            self._serial += 1
            serial = self._serial | MERGE
            self.repair = Repair(serial, "merged", 0)
            self._wait(now, self.repair)
            self.port.unicast(sender, Rreq(self.node, serial, 0, self.sequence, 0, self.rank, 0, False, leader))

    def _hear_request_to_merge(self, now: Time, sender: Node, request: Rreq) -> None:
        """Goes to the leader that it names, by the way its group hello came."""
        if not self._remember_request(sender, request, phase=self.leader == request.leader and not self.is_leader):
            return
        if self.node == request.leader:
            if self.is_leader and self._may_reply(request):
                if sender not in self.children:
                    self._add_child(now, sender)
                    self._tell("child", request.cause)
                self._reply(sender, request)
        elif request.hops < NOWHERE:
            ours = self.leader == request.leader
            towards = self.parent if ours else self._routes.get(request.leader or 0)
            if towards is not None and towards != sender:
                rank = request.rank if ours else max(request.rank, self.rank)
                self.port.unicast(towards, structs.replace(request, hops=request.hops + 1, rank=rank))

    def _pass_merge_on(self, now: Time, sender: Node, reply: Rrep, reverse: Reverse | None) -> None:
        """The reply itself activates the links it passes."""
        if reverse is None:
            reverse = self._request_of(reply, phase=False)
        if reverse is None:
            return
        place = Place(reply.leader, reply.sequence, reply.distance, reply.rank, reply.path)
        if sender == self.parent and self.leader == reply.leader:
            self._follow(place)
            if not self._rise_above(reverse.rank):
                return
        else:
            was = self.parent
            if not self._take_parent(now, sender, place, reverse.sender, reverse.rank):
                self._end_link(sender)
                return
            if was is not None and was not in (sender, reverse.sender):
                self._leave_parent(now, was)
            self._moved(reply.origin, reply.serial)
        if reverse.sender not in self.children:
            self._add_child(now, reverse.sender)
            self._tell("child", reply.cause)
        onward = structs.replace(
            reply, hops=min(reply.hops + 1, NOWHERE), distance=self.distance, rank=self.rank, path=self._path
        )
        self._remember_passing(sender, onward)
        self.port.unicast(reverse.sender, onward)
        update = Mact(reply.origin, reply.serial, "update", rank=reverse.rank)
        for child in sorted(self.children):
            if child != reverse.sender:
                self._update(child, update.origin, update.serial, update.rank)

    def _hear_own_merge(self, now: Time, sender: Node, reply: Rrep) -> None:
        repair = self.repair
        place = Place(reply.leader, reply.sequence, reply.distance, reply.rank, reply.path)
        expected = repair is not None and repair.serial == reply.serial
        if expected and self._take_parent(now, sender, place, None, self.rank):
            self._moved(reply.origin, reply.serial)
            self._update_children(Mact(reply.origin, reply.serial, "update"))
        else:
            self._end_link(sender)
