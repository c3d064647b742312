"""MAODV's rules: who answers a request, which reply is activated, and how parts merge.

Mottola, Cugola, Picco, section II, after Royer and Perkins. A node of the tree answers a request or is silent. The
reply with the newest sequence number and the fewest hops is activated, the first of several. Of two leaders that hear
of each other, the one with the lower number asks to join the other, and the reply turns the links on its path into tree
links.

One thing differs from the paper: a node takes a new parent when that parent has confirmed (`activation = "confirmed"`),
not when it has asked. So a path is reversed from its far end, a lost MACT changes nothing, and with `rank.py` no cycle
can form.
"""

from collections.abc import Hashable

from msgspec import structs

from roamcast.protocols.api import Node, Time
from roamcast.protocols.messages import Message
from roamcast.protocols.tree.messages import ANY_WAY, MERGE, NOWHERE, Grph, Mact, Place, Rrep, Rreq
from roamcast.protocols.tree.parameters import Maodv
from roamcast.protocols.tree.rules import Handlers, Reply, Reverse
from roamcast.protocols.tree.tree import Tree


class MaodvRules:
    def __init__(self, tree: Tree, params: Maodv) -> None:
        self.handlers: Handlers = {}
        self._tree = tree
        self._position = tree.position
        self._search = tree.search
        self._port = tree.port
        self._tie_by_leader = params.tie == "leader"
        self._passes_if_outdated = params.outdated == "pass on"

    # --- In a search ------------------------------------------------------------------------------------------------

    def length(self, reply: Reply) -> tuple[int, ...]:
        """The newest number, then the fewest hops to the tree; then, if the parameters say so, to the leader."""
        nearest = (reply.message.distance,) if self._tie_by_leader else ()
        return -reply.message.sequence, reply.message.hops, *nearest

    def hear_request(self, now: Time, sender: Node, request: Rreq) -> None:
        """Answers, or is silent; one whose number is too old may pass the request on (`outdated`)."""
        if self._search.may_reply(request):
            self._search.reply(sender, request)
        elif self._passes_if_outdated and self._position.sequence < request.sequence:
            self._search.pass_request_on(sender, request)

    def request_of(self, reply: Rrep, *, down: bool) -> Reverse | None:
        return self._search.request_of(reply, climbing=down)

    def way_back(self, reply: Rrep, reverse: Reverse | None) -> Node | None:
        return reverse.sender if reverse else None

    def pass_down(self, reply: Rrep, reverse: Reverse) -> Rrep | None:
        return reply

    def ends_here(self, sender: Node, join: Mact) -> bool:
        return False

    def leave_parent(self, now: Time, parent: Node) -> None:
        self._position.end_link(parent)

    def settled(self) -> None:
        """Nothing to do."""

    # --- Merging ----------------------------------------------------------------------------------------------------

    def hear_foreign_hello(self, now: Time, sender: Node, hello: Grph) -> None:
        """Of two leaders that hear of each other, the one with the lower number asks to join the other."""
        self._tree.pass_hello_on(hello)
        leader, position = hello.place.leader, self._position
        if position.is_leader and position.node < leader and self._search.repair is None:
            serial = self._search.next_serial() | MERGE
            self._search.begin_merge(now, serial)
            request = Rreq(position.node, serial, 0, position.sequence, 0, position.rank, ANY_WAY, False, leader)
            self._port.unicast(sender, request)

    def hear_request_to_merge(self, now: Time, sender: Node, request: Rreq) -> None:
        """Passes it to the leader that it names, along the path that its group hello came."""
        position = self._position
        climbing = position.leader == request.leader and not position.is_leader
        if not self._search.remember_request(sender, request, climbing=climbing):
            return
        if position.node == request.leader:
            if position.is_leader and self._search.may_reply(request):
                if sender not in position.children:
                    position.add_child(now, sender)
                    position.tell("child", request.cause)
                self._search.reply(sender, request)
        elif request.ttl > 0:
            ours = position.leader == request.leader
            towards = position.parent if ours else self._tree.routes.get(request.leader or 0)
            if towards is not None and towards != sender:
                rank = request.rank if ours else max(request.rank, position.rank)
                self._port.unicast(towards, structs.replace(request, ttl=request.ttl - 1, rank=rank))

    def pass_merge(self, now: Time, sender: Node, reply: Rrep, reverse: Reverse | None) -> bool:
        """The reply itself activates the links on its path."""
        reverse = reverse or self._search.request_of(reply, climbing=False)
        if reverse is not None and self._take_merged_place(now, sender, reply, reverse):
            self._pass_merge_on(now, sender, reply, reverse)
        return True

    def _take_merged_place(self, now: Time, sender: Node, reply: Rrep, reverse: Reverse) -> bool:
        """A node of the joined tree keeps its position; one of the other tree moves below the sender. Returns whether
        there is room for both."""
        position, place = self._position, _place(reply)
        if sender == position.parent and position.leader == reply.leader:
            position.follow(place)
            return position.rise_above(reverse.rank)
        was = position.parent
        if not position.take_parent(now, sender, place, reverse.sender, reverse.rank):
            position.end_link(sender)
            return False
        if was is not None and was not in (sender, reverse.sender):
            self._tree.rules.leave_parent(now, was)
        self._search.moved(reply.origin, reply.serial)
        return True

    def _pass_merge_on(self, now: Time, sender: Node, reply: Rrep, reverse: Reverse) -> None:
        position = self._position
        if reverse.sender not in position.children:
            position.add_child(now, reverse.sender)
            position.tell("child", reply.cause)
        onward = structs.replace(
            reply,
            hops=min(reply.hops + 1, NOWHERE),
            distance=position.distance,
            rank=position.rank,
            path=position.path,
        )
        self._search.remember_passing(sender, onward)
        self._port.unicast(reverse.sender, onward)
        for child in sorted(position.children):
            if child != reverse.sender:
                self._search.update(child, reply.origin, reply.serial, reverse.rank)

    def hear_own_merge(self, now: Time, sender: Node, reply: Rrep) -> None:
        repair = self._search.repair
        expected = repair is not None and repair.serial == reply.serial
        if expected and self._position.take_parent(now, sender, _place(reply), None, self._position.rank):
            self._search.moved(reply.origin, reply.serial)
            self._search.update_children(Mact(reply.origin, reply.serial, "update"))
        else:
            self._position.end_link(sender)

    # --- What happens to the tree -----------------------------------------------------------------------------------

    def start(self, now: Time) -> None:
        """Nothing to do."""

    def announce(self, cause: int) -> bool:
        return False

    def hear_tree_hello(self, now: Time, sender: Node, hello: Grph) -> None:
        """Only COMAN sends them."""

    def timer(self, now: Time, key: Hashable) -> None:
        """No timers of its own."""

    def unreachable(self, now: Time, to: Node, message: Message) -> None:
        """Nothing to do: the tree and the search handle it."""


def _place(reply: Rrep) -> Place:
    """The position of the sender of a reply that activates the links on its path."""
    return Place(reply.leader, reply.sequence, reply.distance, reply.rank, reply.path)
