"""Repairs: how a node gets a parent, and how others help it to one.

The initiator asks (RREQ); those who can give a place reply (RREP), along the way the request came; one reply is
activated (MACT), which prepares a new parent for every node on its path. Everything of section II of the paper but
group hellos and merging, which are `maodv.py`'s. The same procedure serves a node that joins.

The rules this file owns:

* Who replies: a node with a leader, without a repair of its own, that knows as new a sequence number and is as near
  to the leader as the node that asks; and, for the sake of `rank.py`, one that can put its rank above that node's.
* Each reply prepares a path from its top: whoever passes it on down the tree makes room below itself first.
* A reply passes a node once per request, and a node offers its own place once per request. The ways back of late copies
  may form a ring when a path has been turned round meanwhile; no reply goes round it.
* A path is turned round from its far end (`activation = "confirmed"`): the place is given there, and everybody on the
  way takes its new parent when that has told its own new place.
"""

import abc
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, Final, Literal, NamedTuple, TypeVar

from msgspec import Meta, structs

from roamcast.bounded import put
from roamcast.protocols.api import Node, Port, Time
from roamcast.protocols.tree.messages import MAX_DEPTH, MERGE, NOWHERE, Mact, Place, Rrep, Rreq, cause_of
from roamcast.protocols.tree.position import Links, Position, Trees
from roamcast.protocols.tree.rank import MAX_RANK, MAX_SEQUENCE, between, leader_rank, sequence_above
from roamcast.units import seconds

REMEMBERED: Final = 512
"""Requests, replies and leaders that a node remembers: the oldest goes first."""
K = TypeVar("K")
V = TypeVar("V")


class Repairs(Trees, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of repairs."""

    retries: Annotated[int, Meta(ge=0, le=100, description="requests after the first (RREQ_RETRIES 2)")] = 2
    reply_wait: Annotated[
        float, Meta(ge=0, le=60, description="how long replies are gathered before the best is activated, s")
    ] = 0.03
    retry_wait: Annotated[
        float, Meta(ge=0.001, le=60, description="how long to wait for a reply, or for its activation, s")
    ] = 0.5
    activation: Annotated[
        Literal["confirmed", "at-once"],
        Meta(description="a new parent counts when it has said yes, or as in the paper when it was asked"),
    ] = "confirmed"


class Reply(NamedTuple):
    """A way back to the tree."""

    via: Node
    message: Rrep


@dataclass
class Repair:
    """What a node is doing to get a parent."""

    serial: int
    change: str
    """What it will be called if it succeeds: repaired, joined or merged."""
    distance: int
    attempt: int = 0
    replies: list[Reply] = field(default_factory=list)
    activating: bool = False
    gathering: bool = True
    """Whether better replies are still waited for."""
    steps: int = 0
    """Counts what was waited for, so that an old timer is known."""


class Reverse(NamedTuple):
    """Where a request came from, and what it said."""

    sender: Node
    rank: int
    jumped: bool = False
    """COMAN: it left the subtree of its origin here."""


class Forward(NamedTuple):
    """Who passed a reply on to us: an activation goes there."""

    towards: Node
    attempt: int
    """Of the request that it answers."""


class Pending(NamedTuple):
    """A place that was asked for, and for whom."""

    towards: Node
    after: Node | None
    """Who asked us; None: we began."""
    rank: int


class Repairing(Position, abc.ABC):
    def __init__(self, node: Node, params: Repairs, port: Port, rng: Random, links: Links) -> None:
        super().__init__(node, params, port, rng, links)
        self._retries = params.retries
        self._reply_wait = seconds(params.reply_wait)
        self._retry_wait = seconds(params.retry_wait)
        self._at_once = params.activation == "at-once"
        self.repair: Repair | None = None
        self._serial = 0
        self._reverse: dict[tuple[int, int, int, bool], Reverse] = {}  # origin, serial, attempt, phase
        self._forward: dict[tuple[int, int, int], Forward] = {}  # origin, serial, replier
        self._pending: dict[tuple[int, int], Pending] = {}  # origin, serial
        self._answered: dict[tuple[int, int, int], None] = {}  # origin, serial, attempt

    def tables(self) -> dict[str, int]:
        """How full its tables are, by name."""
        return {
            "children": len(self.children),
            "requests": len(self._reverse),
            "replies": len(self._forward),
            "pending": len(self._pending),
            "answered": len(self._answered),
        }

    # --- What a tree adds -------------------------------------------------------------------------------------------

    @abc.abstractmethod
    def _lose(self, now: Time, neighbour: Node) -> None:
        """The link to a node is no more, if there was one."""

    @abc.abstractmethod
    def _leave_if_idle(self, now: Time) -> None:
        """Prunes a forwarder that has become a leaf."""

    @abc.abstractmethod
    def _announce(self, now: Time, cause: int) -> None:
        """The leader is there."""

    @abc.abstractmethod
    def _hear_request_to_merge(self, now: Time, sender: Node, request: Rreq) -> None: ...

    @abc.abstractmethod
    def _pass_merge_on(self, now: Time, sender: Node, reply: Rrep, reverse: "Reverse | None") -> None: ...

    @abc.abstractmethod
    def _hear_own_merge(self, now: Time, sender: Node, reply: Rrep) -> None: ...

    # --- asking ---------------------------------------------------------------------------------------------

    def _begin(self, now: Time, change: str, success: str, distance: int) -> None:
        self._serial += 1
        self.repair = Repair(self._serial, success, distance)
        self._tell(change, cause_of(self.node, self._serial))
        self._ask(now, self.repair)

    def _ask(self, now: Time, repair: Repair) -> None:
        sequence = 0 if repair.change == "joined" else self.sequence
        self.port.broadcast(
            Rreq(self.node, repair.serial, repair.attempt, sequence, repair.distance, self.rank, 0, False, None)
        )
        self._gather(now, repair)

    def _gather(self, now: Time, repair: Repair) -> None:
        """Waits for replies: for a short time, and if there is none by then, for the first."""
        repair.activating = False
        repair.gathering = self._reply_wait > 0
        if repair.gathering:
            self.port.set_timer(now + self._reply_wait, ("tree", "gathered", repair.serial, repair.steps + 1))
        self._wait(now, repair)

    def _wait(self, now: Time, repair: Repair) -> None:
        repair.steps += 1
        self.port.set_timer(now + self._retry_wait, ("tree", "wait", repair.serial, repair.steps))

    def _next_reply(self, now: Time, repair: Repair) -> None:
        """The wait is over: for replies, or for the one that was activated."""
        if repair.replies:
            self._activate(now, repair)
        elif repair.change == "merged":
            self.repair = None  # still a leader: the next group hello brings the next chance
        elif repair.attempt < self._retries:
            repair.attempt += 1
            self._ask(now, repair)
        elif self.member:
            self._lead(now, "elected", cause_of(self.node, repair.serial))
        else:
            self._hand_over(now)

    def _lead(self, now: Time, change: str, cause: int) -> None:
        """Becomes the leader of all below."""
        self._drop_parent(now)
        self.repair = None
        self.on_tree = True
        self.leader = self.node
        self.distance = 0
        self.ancestors = ()
        self._rise_above(max(self.rank, leader_rank(self.sequence)))
        self._tell(change, cause)
        if cause:
            self._announce(now, cause)

    def _hand_over(self, now: Time) -> None:
        """A forwarder leads nobody: it asks one of its children to, the next if that is of no use, and goes."""
        if self.repair is None:  # it was a leader, and its application has left
            self._serial += 1
            self.leader = None
            self.repair = Repair(self._serial, "repaired", self.distance, self._retries)
        repair = self.repair
        if repair.activating and self.children:  # the last one asked has not answered
            self._drop_child(now, min(self.children))
            self._tell("child", cause_of(self.node, repair.serial))
        if not self.children:
            self._leave_if_idle(now)
            return
        child = min(self.children)
        repair.activating = True
        remember(self._pending, (self.node, repair.serial), Pending(child, None, self.rank))
        self.port.unicast(child, Mact(self.node, repair.serial, "elect", rank=self.rank))
        self._wait(now, repair)

    # --- answering ------------------------------------------------------------------------------------------

    def _hear_request(self, now: Time, sender: Node, request: Rreq) -> None:
        if request.origin == self.node:
            return
        if request.leader is not None:
            self._hear_request_to_merge(now, sender, request)
        elif not self.on_tree:
            self._pass_request_on(sender, request)
        else:
            self._hear_request_on_tree(now, sender, request)

    def _hear_request_on_tree(self, now: Time, sender: Node, request: Rreq) -> None:
        """MAODV: answer or be silent."""
        if self._may_reply(request):
            self._reply(sender, request)

    def _pass_request_on(self, sender: Node, request: Rreq) -> None:
        """Floods it, once, and remembers the way back."""
        if self._remember_request(sender, request, phase=False) and request.hops < NOWHERE:
            onward = structs.replace(request, hops=request.hops + 1, rank=max(request.rank, self.rank))
            self.port.broadcast(onward, self._flood_delay())

    def _remember_request(self, sender: Node, request: Rreq, *, phase: bool, jumped: bool = False) -> bool:
        """Whether it is new."""
        key = (request.origin, request.serial, request.attempt, phase)
        if key in self._reverse:
            return False
        remember(self._reverse, key, Reverse(sender, max(request.rank, self.rank), jumped))
        return True

    def _may_reply(self, request: Rreq) -> bool:
        """The paper's conditions, of which all must hold, and room for a rank above the one that asks."""
        if self.repair is not None or not self.is_attached or self.distance > request.distance:
            return False
        if self.is_leader:
            return sequence_above(request.rank) < MAX_SEQUENCE
        return self.sequence >= request.sequence and self._has_room_above(request.rank)

    def _has_room_above(self, rank: int) -> bool:
        return self.rank > rank or between(rank, self._ceiling) is not None

    def _rise_above(self, rank: int) -> bool:
        """Puts the own rank above another; whether that is possible."""
        if self.is_leader:
            if self.rank <= rank:
                self.sequence = min(max(self.sequence, sequence_above(rank)), MAX_SEQUENCE)
                self._rise_to(leader_rank(self.sequence))
        elif self.rank <= rank:
            self._rise_to(between(rank, self._ceiling))
        return self.rank > rank

    def _reply(self, to: Node, request: Rreq) -> None:
        """Answers the first copy of a request that comes."""
        if self._rise_above(request.rank) and self._offers(request):
            place = self.place
            self.port.unicast(
                to,
                Rrep(
                    request.origin,
                    request.serial,
                    request.attempt,
                    self.node,
                    place.leader,
                    place.sequence,
                    place.distance,
                    0,
                    place.rank,
                    True,
                    place.path,
                ),
            )

    def _offers(self, of: Rreq | Rrep) -> bool:
        """Whether this node has yet to offer its place for a request, which it does herewith."""
        key = (of.origin, of.serial, of.attempt)
        if key in self._answered:
            return False
        remember(self._answered, key, None)
        return True

    # --- replies on their way -------------------------------------------------------------------------------

    def _hear_reply(self, now: Time, sender: Node, reply: Rrep) -> None:
        if reply.origin == self.node:
            self._hear_own_reply(now, sender, reply)
            return
        if self._has_passed(reply):
            return
        phase = reply.placed and sender == self.parent
        reverse = self._request_of(reply, phase=phase)
        if reply.serial & MERGE and not self._merges_by_repair:
            self._pass_merge_on(now, sender, reply, reverse)
            return
        towards = self._way_back(reply, reverse)
        if towards is None or reply.hops >= NOWHERE - 1 or reply.distance >= MAX_DEPTH:
            return
        onward = self._reply_onward(reply, reverse, phase=phase)
        if onward is not None:
            self._remember_passing(sender, onward)
            self.port.unicast(towards, onward)

    def _has_passed(self, reply: Rrep) -> bool:
        """Whether this node has passed it on before, is on its path otherwise, or gave the place itself."""
        if reply.replier == self.node or self.node in reply.path:
            return True
        passed = self._forward.get((reply.origin, reply.serial, reply.replier))
        return passed is not None and passed.attempt >= reply.attempt

    def _remember_passing(self, sender: Node, reply: Rrep) -> None:
        remember(self._forward, (reply.origin, reply.serial, reply.replier), Forward(sender, reply.attempt))

    _merges_by_repair = False

    def _request_of(self, reply: Rrep, *, phase: bool) -> Reverse | None:
        return self._reverse.get((reply.origin, reply.serial, reply.attempt, phase))

    def _way_back(self, reply: Rrep, reverse: Reverse | None) -> Node | None:
        return reverse.sender if reverse else None

    def _reply_onward(self, reply: Rrep, reverse: Reverse | None, *, phase: bool) -> Rrep | None:
        """What is passed on, with this node as one more on the way; None: the path is of no use."""
        if not phase and self.rank >= reply.rank:  # a place below it would be no place for us
            return None
        path = (*reply.path, self.node) if self._lists_paths else ()
        if len(path) > MAX_DEPTH:
            return None
        return structs.replace(reply, hops=reply.hops + 1, distance=reply.distance + 1, placed=phase, path=path)

    _lists_paths = False

    def _hear_own_reply(self, now: Time, sender: Node, reply: Rrep) -> None:
        if reply.serial & MERGE:
            self._hear_own_merge(now, sender, reply)
            return
        repair = self.repair
        if repair is None or repair.serial != reply.serial or len(repair.replies) >= REMEMBERED:
            return
        self._collect(now, repair, Reply(sender, reply))

    def _collect(self, now: Time, repair: Repair, reply: Reply) -> None:
        if reply.message.rank > self.rank:
            repair.replies.append(reply)
            if not repair.gathering and not repair.activating:
                self._activate(now, repair)

    # --- activation -----------------------------------------------------------------------------------------

    def _activate(self, now: Time, repair: Repair) -> None:
        best = min(repair.replies, key=self._length)
        repair.replies.remove(best)
        repair.activating = True
        pending = Pending(best.via, None, self.rank)
        remember(self._pending, (self.node, repair.serial), pending)
        self._wait(now, repair)
        self._send_join(now, self.node, repair.serial, best.message.replier, pending)

    def _length(self, reply: Reply) -> tuple[int, ...]:
        """MAODV: the newest number, then the fewest hops to the tree, then to the leader."""
        return -reply.message.sequence, reply.message.hops, reply.message.distance

    def _send_join(self, now: Time, origin: Node, serial: int, replier: Node, pending: Pending) -> None:
        self.port.unicast(pending.towards, Mact(origin, serial, "join", replier, pending.rank))
        if self._at_once:
            self._move_to(now, pending.towards, pending.after)
            self._moved(origin, serial)

    def _hear_activation(self, now: Time, sender: Node, message: Mact) -> None:
        if message.flag == "join":
            self._hear_join(now, sender, message)
        elif message.flag == "update" and message.place is not None:
            self._hear_update(now, sender, message, message.place)
        elif message.flag == "prune":
            self._lose(now, sender)
        elif message.flag == "elect" and sender == self.parent:
            self._hear_election(now, sender, message)

    def _hear_join(self, now: Time, sender: Node, join: Mact) -> None:
        towards = self._way_forward(join)
        if self.node == join.replier or self._ends_here(sender, join):
            self._accept(now, sender, join)
            if self.node != join.replier and towards is not None:
                self.port.unicast(towards, join)
        elif towards is not None and towards != sender:
            if self.on_tree and sender in self.children:  # above the place that was asked for: only passed on
                self.port.unicast(towards, join)
                return
            pending = Pending(towards, sender, max(join.rank, self.rank))
            remember(self._pending, (join.origin, join.serial), pending)
            self._send_join(now, join.origin, join.serial, join.replier, pending)

    def _way_forward(self, join: Mact) -> Node | None:
        forward = self._forward.get((join.origin, join.serial, join.replier))
        return None if forward is None else forward.towards

    def _ends_here(self, sender: Node, join: Mact) -> bool:
        """Whether this node gives the place although another replied; COMAN's part C saves the rest of the way."""
        return False

    def _accept(self, now: Time, child: Node, join: Mact) -> None:
        """Gives the place, if there still is one."""
        if self.repair is not None or not self.is_attached or self.distance >= MAX_DEPTH or child == self.parent:
            return
        if self.rank > join.rank:
            self._add_child(now, child)
            self._tell("child", join.cause)
            self._update(child, join.origin, join.serial, join.rank)

    def _hear_update(self, now: Time, sender: Node, message: Mact, place: Place) -> None:
        pending = self._pending.get((message.origin, message.serial))
        if sender == self.parent:
            was = self.leader
            if place.distance < MAX_DEPTH and self._follow(place):
                if self.leader != was:
                    self._tell("leader", message.cause)
                self._update_children(message)
        elif pending is not None and pending.towards == sender:
            was = self.parent
            if self._take_parent(now, sender, place, pending.after, message.rank):
                del self._pending[message.origin, message.serial]
                if was is not None and was not in (sender, pending.after):
                    self._leave_parent(now, was)
                self._moved(message.origin, message.serial)
                self._update_children(message)
                self._leave_if_idle(now)

    def _leave_parent(self, now: Time, parent: Node) -> None:
        """Somebody else's repair has brought a better place."""
        self._end_link(parent)

    def _moved(self, origin: Node, serial: int) -> None:
        """There is a new parent: what began here is done, and so is what this node was doing for itself."""
        change, cause = "parent", cause_of(origin, serial)
        if self.repair is not None:
            change, cause = self.repair.change, cause_of(self.node, self.repair.serial)
            self.repair = None
        self._tell(change, cause)

    def _update_children(self, message: Mact) -> None:
        for child in sorted(self.children):
            self._update(child, message.origin, message.serial, message.rank)

    def _update(self, child: Node, origin: Node, serial: int, floor: int = 0) -> None:
        if self.is_attached:
            self.port.unicast(child, Mact(origin, serial, "update", rank=floor, place=self.place))

    def _hear_election(self, now: Time, parent: Node, message: Mact) -> None:
        """The parent has nobody above it and is no member: the tree turns round, and somebody below leads."""
        key = (message.origin, message.serial)
        if self.member and max(message.rank, self.rank) < MAX_RANK:
            self._add_child(now, parent)
            self._drop_parent(now)
            self._rise_to(message.rank)
            self._lead(now, "elected", message.cause)
            self._update_children(Mact(*key, "update", rank=message.rank))
        elif not self.member and self.children:
            child = min(self.children)
            remember(self._pending, key, Pending(child, parent, max(message.rank, self.rank)))
            self.port.unicast(child, Mact(*key, "elect", rank=max(message.rank, self.rank)))


def remember(table: dict[K, V], key: K, value: V) -> None:
    """In a table that others can fill."""
    put(table, key, value, REMEMBERED)
