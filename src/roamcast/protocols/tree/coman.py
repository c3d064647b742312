"""COMAN's rules: MAODV's tree, adapted for content-based routing.

Mottola, Cugola, Picco, section III. Each of its five parts is a parameter, so that its contribution can be measured; if
a part is off, MAODV's rule applies instead:

* A, `ancestors`: nodes know the list of their ancestors, replies collect their path, and the chosen reply is the one
  that moves the fewest nodes. Group hellos along the tree keep the lists up to date.
* B, `rreq`: requests travel among members too. They leave the subtree of their origin at most once, and go upstream
  from there. (The paper writes RREP there; it must mean the RREQ.)
* C, `rewrite`: a node where a request enters its part of the tree replies in its own name, and the activation ends
  there.
* D, `election`: a node that hears no group hello along the tree asks its parent whether it is still its child, and
  becomes the leader if it is not (`leader_watch.py`).
* E, `merging`: a group hello of another part is a request, and merging an ordinary repair.
"""

from collections.abc import Hashable
from typing import Final

from msgspec import structs

from roamcast.protocols.api import Node, Time
from roamcast.protocols.messages import Message
from roamcast.protocols.tree.leader_watch import LeaderWatch
from roamcast.protocols.tree.maodv import MaodvRules
from roamcast.protocols.tree.messages import ANY_WAY, MERGE, Ack, ChkUp, Grph, Mact, Rrep, Rreq
from roamcast.protocols.tree.parameters import Coman
from roamcast.protocols.tree.rank import leader_rank
from roamcast.protocols.tree.rules import Handlers, Reply, Reverse
from roamcast.protocols.tree.tree import Tree

TREE_HELLO: Final = ("tree", "on-tree")


class ComanRules:
    def __init__(self, tree: Tree, params: Coman) -> None:
        self._tree = tree
        self._position = tree.position
        self._search = tree.search
        self._port = tree.port
        self._params = params
        self._maodv = MaodvRules(tree, params)
        self._watch = LeaderWatch(tree, params)
        self._merges_by_repair = params.merging == "repair"
        self.handlers: Handlers = {ChkUp: self._watch.hear_check, Ack: self._watch.hear_answer}
        tree.position.lists_paths = params.ancestors

    # --- A: ancestors -----------------------------------------------------------------------------------------------

    def length(self, reply: Reply) -> tuple[int, ...]:
        rest = self._maodv.length(reply)
        if not self._params.ancestors:
            return rest
        return reconfigured(self._position.ancestors, reply.message.path), *rest

    def start(self, now: Time) -> None:
        if self._params.ancestors:
            self._port.set_timer(now + self._tree.first_group_hello(), TREE_HELLO)

    def announce(self, cause: int) -> bool:
        """A new leader announces itself along the tree: it only concerns the nodes below it."""
        if self._params.ancestors:
            self._announce_on_tree(cause)
        return self._params.ancestors

    def _announce_on_tree(self, cause: int) -> None:
        for child in sorted(self._position.children):
            self._port.unicast(child, Grph(self._position.place, False, True, cause))

    def hear_tree_hello(self, now: Time, sender: Node, hello: Grph) -> None:
        if sender == self._position.parent:
            self._watch.hear_leader(now)
            self._tree.follow(hello)
            self._announce_on_tree(hello.cause)

    def timer(self, now: Time, key: Hashable) -> None:
        if key == TREE_HELLO:
            self._port.set_timer(now + self._tree.group_hello_interval(), TREE_HELLO)
            if self._position.is_leader:
                self._announce_on_tree(0)
        else:
            self._watch.timer(now, key)

    # --- B and C: requests and replies ------------------------------------------------------------------------------

    def hear_request(self, now: Time, sender: Node, request: Rreq) -> None:
        if self._params.rreq == "members-drop":
            self._maodv.hear_request(now, sender, request)
        elif self._params.rreq == "free":
            if self._search.may_reply(request):
                self._search.reply(sender, request)
            else:
                self._search.pass_request_on(sender, request)
        elif sender == self._position.parent and not request.on_tree:
            self._search.pass_request_on(sender, request)  # in the subtree of its origin
        elif request.origin not in self._position.ancestors:
            # A node of that subtree that has not seen the request will get it from its parent.
            self._climb(sender, request)

    def _climb(self, sender: Node, request: Rreq) -> None:
        """Answers a request outside the subtree of its origin, or passes it upstream."""
        parent = self._position.parent
        if self._search.may_reply(request):
            self._search.reply(sender, request)
        elif (
            parent is not None
            and sender != parent
            and request.ttl > 0
            and self._search.remember_request(sender, request, climbing=True, jumped=not request.on_tree)
        ):
            self._port.unicast(parent, structs.replace(request, ttl=request.ttl - 1, on_tree=True))

    def request_of(self, reply: Rrep, *, down: bool) -> Reverse | None:
        """Requests that travel freely are treated alike, even if a parent answers one that its child passed on."""
        alike = self._params.rreq == "free" and not reply.serial & MERGE
        return self._search.request_of(reply, climbing=down and not alike)

    def pass_down(self, reply: Rrep, reverse: Reverse) -> Rrep | None:
        """This node keeps its position, and makes room below itself."""
        self._position.hear_rank(reply.rank)
        if not self._position.is_attached or not self._position.rise_above(reverse.rank):
            return None
        onward = structs.replace(reply, rank=self._position.rank)
        if not reverse.jumped or not self._params.rewrite:
            return onward
        return structs.replace(onward, replier=self._position.node) if self._search.offers(reply) else None

    def ends_here(self, sender: Node, join: Mact) -> bool:
        """Without part C the activation goes on to the replier, although this node adopts the child."""
        position, towards = self._position, self._search.way_forward(join)
        return (
            position.is_attached
            and towards is not None
            and towards == position.parent
            and sender not in position.children
        )

    def leave_parent(self, now: Time, parent: Node) -> None:
        if self._params.rreq == "free":
            self._position.add_child(now, parent)  # nothing says that this link is one too many: Figure 5
        else:
            self._maodv.leave_parent(now, parent)

    # --- D: the leader is missing -----------------------------------------------------------------------------------

    def settled(self) -> None:
        self._watch.settled()

    def unreachable(self, now: Time, to: Node, message: Message) -> None:
        self._watch.unreachable(now, to, message)

    # --- E: merging -------------------------------------------------------------------------------------------------

    def hear_foreign_hello(self, now: Time, sender: Node, hello: Grph) -> None:
        """Passed upstream as a request that only the leader can answer: nobody else is at distance 0."""
        if not self._merges_by_repair:
            self._maodv.hear_foreign_hello(now, sender, hello)
            return
        place, leader = hello.place, self._position.leader
        if leader is not None and leader > place.leader:  # as in MAODV, the lower number joins the higher
            rank = max(leader_rank(place.sequence), place.rank)
            serial = place.sequence | MERGE
            self._climb(sender, Rreq(place.leader, serial, 0, place.sequence, 0, rank, ANY_WAY, False, None))

    def hear_request_to_merge(self, now: Time, sender: Node, request: Rreq) -> None:
        self._maodv.hear_request_to_merge(now, sender, request)

    def way_back(self, reply: Rrep, reverse: Reverse | None) -> Node | None:
        """A group hello leaves its own reverse path: up its tree, and towards it through nodes that passed it on."""
        if reverse is None and reply.serial & MERGE:
            ours = reply.origin == self._position.leader
            return self._position.parent if ours else self._tree.routes.get(reply.origin)
        return self._maodv.way_back(reply, reverse)

    def pass_merge(self, now: Time, sender: Node, reply: Rrep, reverse: Reverse | None) -> bool:
        return not self._merges_by_repair and self._maodv.pass_merge(now, sender, reply, reverse)

    def hear_own_merge(self, now: Time, sender: Node, reply: Rrep) -> None:
        if not self._merges_by_repair:
            self._maodv.hear_own_merge(now, sender, reply)
            return
        repair = self._search.repair
        if repair is None and self._position.is_leader:
            repair = self._search.gather_merge(now, reply.serial)
        if repair is not None and repair.serial == reply.serial:
            self._search.collect(now, repair, Reply(sender, reply))


def reconfigured(before: tuple[Node, ...], after: tuple[Node, ...]) -> int:
    """How many nodes are on the reconfiguration path of one whose ancestors change from `before` to `after`.

    The path leads from the node up its new ancestors, to the last one it had before, and down to its former parent.
    """
    common = 0
    for old, new in zip(before, after, strict=False):
        if old != new:
            break
        common += 1
    return 1 + len(after) - common + (common > 0) + len(before) - common
