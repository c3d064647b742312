"""COMAN: MAODV's tree, adapted for content-based routing.

Mottola, Cugola, Picco, section III. Each of its five parts is a parameter, so that what it contributes can be measured:

* A, `ancestors`: nodes know the list of their ancestors, replies collect their path, and the reply is chosen that
  changes the place of the fewest nodes. Group hellos along the tree keep the lists true.
* B, `rreq`: requests travel among members too. They leave the subtree of their origin at most once, and go upstream
  from there. (The paper writes RREP there; it must mean the RREQ.)
* C, `rewrite`: who lets a request into its own part of the tree replies in its own name, and the activation ends there.
* D, `election`: a node that hears no group hello along the tree asks its parent whether it is still its child, and
  becomes the leader if it is not.
* E, `merging`: a group hello of another part is a request, and merging an ordinary repair.
"""

from collections.abc import Hashable, Mapping
from random import Random
from typing import Annotated, Final, Literal

from msgspec import Meta, structs

from roamcast.protocols.api import Node, Port, Time
from roamcast.protocols.messages import Message
from roamcast.protocols.tree.maodv import Maodv, MaodvTree
from roamcast.protocols.tree.messages import (
    MAX_DEPTH,
    MERGE,
    NOWHERE,
    Ack,
    ChkUp,
    Grph,
    Mact,
    Rrep,
    Rreq,
    cause_of,
)
from roamcast.protocols.tree.position import HELLO, Links
from roamcast.protocols.tree.rank import leader_rank
from roamcast.protocols.tree.repair import REMEMBERED, Repair, Reply, Reverse
from roamcast.units import seconds

TREE_HELLO: Final = ("tree", "on-tree")


class Coman(Maodv, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of a tree as COMAN keeps it."""

    ancestors: Annotated[bool, Meta(description="part A: choose the reply with the shortest reconfiguration path")] = (
        True
    )
    rreq: Annotated[
        Literal["members-drop", "free", "on-tree"],
        Meta(
            description="part B: members drop a request they cannot answer, as in MAODV; pass it on freely, which makes"
            " loops; or pass it on as COMAN does"
        ),
    ] = "on-tree"
    rewrite: Annotated[bool, Meta(description="part C: the activation ends where the request left the subtree")] = True
    election: Annotated[bool, Meta(description="part D: replace a leader whose group hellos stay away")] = True
    merging: Annotated[
        Literal["leaders", "repair"], Meta(description="part E: how parts merge: through their leaders, or by a repair")
    ] = "repair"
    patience: Annotated[
        float, Meta(ge=1, le=1000, description="group hellos along the tree that may stay away, for part D")
    ] = 2.5

    def __post_init__(self) -> None:
        if self.election and not self.ancestors:
            raise ValueError("election (part D) needs ancestors (part A): it waits for group hellos along the tree")
        if self.merging == "repair" and self.rreq != "on-tree":
            raise ValueError('merging = "repair" (part E) needs rreq = "on-tree" (part B): a group hello goes upstream')


class ComanTree(MaodvTree):
    def __init__(self, node: Node, params: Coman, port: Port, rng: Random, links: Links) -> None:
        super().__init__(node, params, port, rng, links)
        self._handlers |= {ChkUp: self._hear_check, Ack: self._hear_answer}
        self._coman = params
        self._patience = seconds(params.patience * params.group_hello)
        self._led: Time = 0  # when the leader was last heard along the tree, or this node got its place
        self._checking: int | None = None  # the cause under which the parent was asked
        self._checks = 0

    # --- A: ancestors -----------------------------------------------------------------------------------------------

    @property
    def _path(self) -> tuple[Node, ...]:
        return (*self.ancestors, self.node)[-MAX_DEPTH:] if self._coman.ancestors else ()

    @property
    def _lists_paths(self) -> bool:  # type: ignore[override]  # a constant in MAODV
        return self._coman.ancestors

    def _length(self, reply: Reply) -> tuple[int, ...]:
        if not self._coman.ancestors:
            return super()._length(reply)
        return reconfigured(self.ancestors, reply.message.path), *super()._length(reply)

    def start(self, now: Time, kept: Mapping[str, bytes], *, member: bool) -> None:
        super().start(now, kept, member=member)
        if self._coman.ancestors:
            self.port.set_timer(now + round(self.rng.random() * self._group_hello), TREE_HELLO)

    def _announce(self, now: Time, cause: int) -> None:
        """A new leader makes itself known along the tree: only those below it are concerned."""
        if cause and self._coman.ancestors:
            self._announce_on_tree(cause)
        else:
            super()._announce(now, cause)

    def _announce_on_tree(self, cause: int) -> None:
        for child in sorted(self.children):
            self.port.unicast(child, Grph(self.place, False, True, cause))

    def _hear_group_hello(self, now: Time, sender: Node, hello: Grph) -> None:
        if not hello.on_tree:
            super()._hear_group_hello(now, sender, hello)
        elif sender == self.parent and hello.place.distance < MAX_DEPTH and hello.place.leader != self.node:
            was = self.leader
            self._led = now
            self._follow(hello.place)
            if self.leader != was:
                self._tell("leader", hello.cause)
            self._announce_on_tree(hello.cause)

    # --- B and C: requests and replies ------------------------------------------------------------------------------

    def _hear_request_on_tree(self, now: Time, sender: Node, request: Rreq) -> None:
        if self._coman.rreq == "members-drop":
            super()._hear_request_on_tree(now, sender, request)
        elif self._coman.rreq == "free":
            if self._may_reply(request):
                self._reply(sender, request)
            else:
                self._pass_request_on(sender, request)
        elif sender == self.parent and not request.on_tree:
            self._pass_request_on(sender, request)  # in the subtree of its origin
        elif request.origin not in self.ancestors:
            # Who is in that subtree has not seen the request yet: it will come from the parent.
            self._climb(now, sender, request)

    def _climb(self, now: Time, sender: Node, request: Rreq) -> None:
        """Answers a request that is outside of the subtree of its origin, or passes it upstream."""
        if self._may_reply(request):
            self._reply(sender, request)
        elif (
            self.parent is not None
            and sender != self.parent
            and request.hops < NOWHERE
            and self._remember_request(sender, request, phase=True, jumped=not request.on_tree)
        ):
            self.port.unicast(self.parent, structs.replace(request, hops=request.hops + 1, on_tree=True))

    def _request_of(self, reply: Rrep, *, phase: bool) -> Reverse | None:
        """Requests that travel freely are all alike, also where the parent answers one that its child passed on."""
        alike = self._coman.rreq == "free" and not reply.serial & MERGE
        return super()._request_of(reply, phase=phase and not alike)

    def _reply_onward(self, reply: Rrep, reverse: Reverse | None, *, phase: bool) -> Rrep | None:
        onward = super()._reply_onward(reply, reverse, phase=phase)
        if onward is None or not phase or reverse is None:
            return onward
        # On the way down: this node stays where it is, and makes room below itself.
        self._hear_rank(reply.rank)
        if not self.is_attached or not self._rise_above(reverse.rank):
            return None
        onward = structs.replace(onward, rank=self.rank)
        if not reverse.jumped or not self._coman.rewrite:
            return onward
        return structs.replace(onward, replier=self.node) if self._offers(reply) else None

    def _ends_here(self, sender: Node, join: Mact) -> bool:
        """Without part C the activation goes on to the replier, although the place is given here."""
        towards = self._way_forward(join)
        return self.is_attached and towards is not None and towards == self.parent and sender not in self.children

    def _leave_parent(self, now: Time, parent: Node) -> None:
        if self._coman.rreq == "free":
            self._add_child(now, parent)  # nothing tells it that this link is one too many: Figure 5
        else:
            super()._leave_parent(now, parent)

    # --- D: the leader is missing -----------------------------------------------------------------------------------

    def timer(self, now: Time, key: Hashable) -> None:
        super().timer(now, key)
        if key == HELLO:
            self._check_leader(now)
        elif key == TREE_HELLO:
            self.port.set_timer(now + self._group_hello_interval(), TREE_HELLO)
            if self.is_leader:
                self._announce_on_tree(0)
        elif self._checking is not None and self.parent is not None and key == ("tree", "check", self._checks):
            self._replace_leader(now, self._checking)

    def _check_leader(self, now: Time) -> None:
        if not self._coman.election or self.parent is None:
            self._led = now
        elif now - self._led > self._patience and self._checking is None:
            self._serial += 1
            self._checks += 1
            self._checking = cause_of(self.node, self._serial)
            self.port.unicast(self.parent, ChkUp(self._checking))
            self.port.set_timer(now + self._retry_wait, ("tree", "check", self._checks))

    def _hear_check(self, now: Time, sender: Node, check: ChkUp) -> None:
        self.port.unicast(sender, Ack(check.repair, sender in self.children))

    def _hear_answer(self, now: Time, sender: Node, message: Ack) -> None:
        if message.repair == self._checking and sender == self.parent:
            self._led = now
            if message.child:
                self._checking = None
            else:
                self._replace_leader(now, message.repair)

    def _replace_leader(self, now: Time, cause: int) -> None:
        """As after a repair that has failed: a member leads, a forwarder asks one below it to."""
        if self.member:
            self._lead(now, "elected", cause)
        else:
            self._checking = None
            self._drop_parent(now)
            self._hand_over(now)

    def unreachable(self, now: Time, to: Node, message: Message) -> None:
        if isinstance(message, ChkUp) and message.repair == self._checking and to == self.parent:
            self._replace_leader(now, message.repair)
        super().unreachable(now, to, message)

    def _lead(self, now: Time, change: str, cause: int) -> None:
        self._checking = None
        super()._lead(now, change, cause)

    def _moved(self, origin: Node, serial: int) -> None:
        self._checking = None
        super()._moved(origin, serial)

    # --- E: merging -------------------------------------------------------------------------------------------------

    @property
    def _merges_by_repair(self) -> bool:  # type: ignore[override]  # a constant in MAODV
        return self._coman.merging == "repair"

    def _hear_foreign_hello(self, now: Time, sender: Node, hello: Grph) -> None:
        """Goes up as a request to which only the leader can reply: nobody else is at distance 0."""
        if not self._merges_by_repair:
            super()._hear_foreign_hello(now, sender, hello)
            return
        place = hello.place
        if self.leader is not None and self.leader > place.leader:  # as in MAODV, the lower number joins the other
            rank = max(leader_rank(place.sequence), place.rank)
            serial = place.sequence | MERGE
            request = Rreq(place.leader, serial, 0, place.sequence, 0, rank, 0, False, None)
            self._climb(now, sender, request)

    def _way_back(self, reply: Rrep, reverse: Reverse | None) -> Node | None:
        """A group hello leaves a way back of its own: up its tree, and to it where others have passed it on."""
        if reverse is None and reply.serial & MERGE:
            return self.parent if reply.origin == self.leader else self._routes.get(reply.origin)
        return super()._way_back(reply, reverse)

    def _hear_own_merge(self, now: Time, sender: Node, reply: Rrep) -> None:
        if not self._merges_by_repair:
            super()._hear_own_merge(now, sender, reply)
            return
        if self.repair is None and self.is_leader:
            self.repair = Repair(reply.serial, "merged", 0, self._retries)
            self._gather(now, self.repair)
        repair = self.repair
        if repair is not None and repair.serial == reply.serial and len(repair.replies) < REMEMBERED:
            self._collect(now, repair, Reply(sender, reply))


def reconfigured(before: tuple[Node, ...], after: tuple[Node, ...]) -> int:
    """How many nodes are on the reconfiguration path of one whose ancestors change from `before` to `after`.

    The path leads from the node up its new ancestors, to the last that it had before, and down to its former parent.
    """
    common = 0
    for old, new in zip(before, after, strict=False):
        if old != new:
            break
        common += 1
    return 1 + len(after) - common + (common > 0) + len(before) - common
