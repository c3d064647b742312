"""MAODV's tree: who is my parent, and what to do when it is gone.

Mottola, Cugola, Picco, "A Self-Repairing Tree Topology Enabling Content-Based Routing in Mobile Ad Hoc Networks",
section II, after Royer and Perkins. A tree has a leader, whose group hellos carry a growing sequence number. When a
link breaks, the node below it asks (RREQ) for another way up; nodes of the tree that are as near to the leader, know as
new a number and have no repair of their own answer (RREP); one answer is activated (MACT). If there is none, the node
becomes a leader, or finds one below it. Leaders that hear of each other merge their parts, which is also how the tree
begins: every member starts as the leader of itself.

What the paper leaves open is in docs/protocols/coman.md. One thing differs from it: a node takes a new parent when
that parent has said yes (`activation = "confirmed"`), not when it has asked. A path is so turned round from its far
end, a lost MACT changes nothing, and with `rank.py` no cycle can form.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar

from msgspec import Meta, structs

from roamcast.protocols.api import Node, Port, Time, seconds
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
    cause_of,
)
from roamcast.protocols.tree.rank import MAX_RANK, MAX_SEQUENCE, between, leader_rank, sequence_above
from roamcast.protocols.tree.standing import CONTRADICTIONS, HELLO, Links, Standing, Trees

GROUP_HELLO: Final = ("tree", "grph")
REMEMBERED: Final = 512
"""Requests, replies and leaders that a node remembers: the oldest goes first."""
K = TypeVar("K")
V = TypeVar("V")


class Maodv(Trees, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of a tree as MAODV keeps it."""

    group_hello: Annotated[
        float, Meta(ge=0.05, le=3600, description="between two group hellos, s (GROUP_HELLO_INTERVAL 5 s)")
    ] = 5.0
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


class Pending(NamedTuple):
    """A place that was asked for, and for whom."""

    towards: Node
    after: Node | None
    """Who asked us; None: we began."""
    rank: int


class MaodvTree(Standing):
    def __init__(self, node: Node, params: Maodv, port: Port, rng: Random, links: Links) -> None:
        super().__init__(node, params, port, rng, links)
        self._params = params
        self._group_hello = seconds(params.group_hello)
        self._reply_wait = seconds(params.reply_wait)
        self._retry_wait = seconds(params.retry_wait)
        self._at_once = params.activation == "at-once"
        self._handlers: dict[type[Message], Callable[[Time, Node, Any], None]] = {
            Hello: self._hear_hello,
            Rreq: self._hear_request,
            Rrep: self._hear_reply,
            Mact: self._hear_activation,
            Grph: self._hear_group_hello,
        }
        self.repair: Repair | None = None
        self._serial = 0
        self._reverse: dict[tuple[int, int, int, bool], Reverse] = {}  # origin, serial, attempt, phase
        self._forward: dict[tuple[int, int, int], Node] = {}  # origin, serial, replier
        self._pending: dict[tuple[int, int], Pending] = {}  # origin, serial
        self._answered: dict[tuple[int, int, int], None] = {}  # origin, serial, attempt
        self._seen: dict[Node, int] = {}  # by leader, the newest group hello
        self._routes: dict[Node, Node] = {}  # by leader, who passed its newest group hello on

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
        """A unicast was given up: of the tree or of whoever routes on it."""
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

    # --- Repair: asking ---------------------------------------------------------------------------------------------

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
        elif repair.attempt < self._params.retries:
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
            self.repair = Repair(self._serial, "repaired", self.distance, self._params.retries)
        repair = self.repair
        if repair.activating and self.children:  # the last one asked has not answered
            self._drop_child(now, min(self.children))
            self._tell("child", cause_of(self.node, repair.serial))
        if not self.children:
            self._leave_if_idle(now)
            return
        child = min(self.children)
        repair.activating = True
        _remember(self._pending, (self.node, repair.serial), Pending(child, None, self.rank))
        self.port.unicast(child, Mact(self.node, repair.serial, "elect", rank=self.rank))
        self._wait(now, repair)

    # --- Repair: answering ------------------------------------------------------------------------------------------

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
        _remember(self._reverse, key, Reverse(sender, max(request.rank, self.rank), jumped))
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
        key = (request.origin, request.serial, request.attempt)
        if key not in self._answered and self._rise_above(request.rank):
            _remember(self._answered, key, None)
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
                    place.path,
                ),
            )

    # --- Repair: replies on their way -------------------------------------------------------------------------------

    def _hear_reply(self, now: Time, sender: Node, reply: Rrep) -> None:
        if reply.origin == self.node:
            self._hear_own_reply(now, sender, reply)
            return
        phase = sender == self.parent
        reverse = self._request_of(reply, phase=phase)
        if reply.serial & MERGE and not self._merges_by_repair:
            self._pass_merge_on(now, sender, reply, reverse)
            return
        towards = self._way_back(reply, reverse)
        if towards is None or reply.hops >= NOWHERE - 1 or reply.distance >= MAX_DEPTH:
            return
        onward = self._reply_onward(reply, reverse, phase=phase)
        if onward is not None:
            _remember(self._forward, (reply.origin, reply.serial, onward.replier), sender)
            self.port.unicast(towards, onward)

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
        return structs.replace(reply, hops=reply.hops + 1, distance=reply.distance + 1, path=path)

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

    # --- Repair: activation -----------------------------------------------------------------------------------------

    def _activate(self, now: Time, repair: Repair) -> None:
        best = min(repair.replies, key=self._length)
        repair.replies.remove(best)
        repair.activating = True
        pending = Pending(best.via, None, self.rank)
        _remember(self._pending, (self.node, repair.serial), pending)
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
        towards = self._forward.get((join.origin, join.serial, join.replier))
        if self.node == join.replier or self._ends_here(sender, join):
            self._accept(now, sender, join)
            if self.node != join.replier and towards is not None:
                self.port.unicast(towards, join)
        elif towards is not None and towards != sender:
            if self.on_tree and sender in self.children:  # above the place that was asked for: only passed on
                self.port.unicast(towards, join)
                return
            pending = Pending(towards, sender, max(join.rank, self.rank))
            _remember(self._pending, (join.origin, join.serial), pending)
            self._send_join(now, join.origin, join.serial, join.replier, pending)

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
            _remember(self._pending, key, Pending(child, parent, max(message.rank, self.rank)))
            self.port.unicast(child, Mact(*key, "elect", rank=max(message.rank, self.rank)))

    # --- Group hellos -----------------------------------------------------------------------------------------------

    def _group_hello_interval(self) -> Time:
        """Leaders that keep the same time would disturb each other for ever."""
        return round(self._group_hello * (0.9 + 0.2 * self.rng.random()))

    def _announce(self, now: Time, cause: int) -> None:
        """The leader is there, with a new number."""
        self.sequence = min(self.sequence + 1, MAX_SEQUENCE)
        self._rise_to(leader_rank(self.sequence))
        _remember(self._seen, self.node, self.sequence)
        self.port.broadcast(Grph(self.place, False, False, cause))

    def _hear_group_hello(self, now: Time, sender: Node, hello: Grph) -> None:
        place = hello.place
        if place.leader == self.node or place.distance >= MAX_DEPTH:
            return
        new = self._seen.get(place.leader, -1) < place.sequence
        _remember(self._seen, place.leader, max(place.sequence, self._seen.get(place.leader, -1)))
        if sender == self.parent and not hello.foreign:
            was = self.leader
            self._follow(place)
            if self.leader != was:
                self._tell("leader", hello.cause)
        elif place.leader == self.leader:
            self.sequence = max(self.sequence, place.sequence)
        elif new:
            _remember(self._routes, place.leader, sender)
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


def _remember(table: dict[K, V], key: K, value: V) -> None:
    """Bounded: what was not said anew for longest makes room."""
    table.pop(key, None)
    table[key] = value
    if len(table) > REMEMBERED:
        del table[next(iter(table))]
