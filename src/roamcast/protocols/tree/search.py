"""The search for a parent: how a node finds one, and how others help it.

The initiator sends a request (RREQ); nodes that can become its parent reply (RREP), along the reverse path of the
request; one reply is activated (MACT), which gives every node on its path a new parent. This is all of section II of
the paper except group hellos (`tree.py`) and what MAODV and COMAN do differently: that is a `Rules`, `maodv.py` or
`coman.py`. A node that joins uses the same procedure.

The rules this file owns:

* Who replies: a node with a leader, without a repair of its own, whose sequence number is at least as new and which is
  at least as near to the leader as the node that asks; and, for `rank.py`, one that can raise its rank above that
  node's.
* Each reply prepares a path from its top: a node that passes it down the tree makes room below itself first.
* A reply passes a node once per request, and a node offers itself once per request. The reverse paths of late copies
  may form a loop when a path has been reversed meanwhile; no reply runs through it.
* No two requests of a node have the same serial, not even across its restarts: others would take the second for a copy
  of the first, and facts would count both as one repair.
* A path is reversed from its far end (`activation = "confirmed"`): the new parent adopts the child there, and each node
  on the path takes its new parent when that one has told its own new position.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple, Protocol, TypeVar

from msgspec import structs

from roamcast.bounded import put
from roamcast.protocols.api import Node, Time
from roamcast.protocols.messages import Message
from roamcast.protocols.tree.messages import ANY_WAY, MAX_DEPTH, MERGE, NOWHERE, Mact, Place, Rrep, Rreq, cause_of
from roamcast.protocols.tree.parameters import Maodv
from roamcast.protocols.tree.position import Position
from roamcast.protocols.tree.rank import MAX_RANK, MAX_SEQUENCE, sequence_above
from roamcast.protocols.tree.rules import Reply, Reverse, Rules
from roamcast.units import seconds

REMEMBERED: Final = 512
"""Requests, replies and leaders that a node remembers; the oldest is forgotten first."""
KEPT: Final = "tree/serial"
RESERVED: Final = 256
"""Serials that are reserved on disk at a time, so that writing is rare."""
TTL_INCREMENT: Final = 2
TTL_THRESHOLD: Final = 7
"""Of an expanding search, in hops; AODV draft 05, section 17."""
K = TypeVar("K")
V = TypeVar("V")


@dataclass
class Repair:
    """A node's own attempt to get a parent."""

    serial: int
    change: str
    """The change to record if it succeeds: repaired, joined or merged."""
    distance: int
    left: tuple[int, ...] = ()
    """How far each further request goes, in hops."""
    attempt: int = -1
    replies: list[Reply] = field(default_factory=list)
    activating: bool = False
    gathering: bool = True
    """Whether it still waits for better replies."""
    steps: int = 0
    """Counts the waits, to recognise an outdated timer."""


class Forward(NamedTuple):
    """The node that passed a reply to us: an activation goes there."""

    towards: Node
    attempt: int
    """The attempt of the request that it answers."""


class Pending(NamedTuple):
    """A parent that was asked for, and for which node."""

    towards: Node
    after: Node | None
    """The node that asked us; None: we began."""
    rank: int


class Keeper(Protocol):
    """The part of a tree that a search needs."""

    def lose(self, now: Time, neighbour: Node) -> None:
        """The link to a node is lost, if there was one."""

    def leave_if_idle(self, now: Time) -> None:
        """Prunes a forwarder that has become a leaf."""

    def announce(self, now: Time, cause: int) -> None:
        """Announces the leader; with a cause, it is new."""


class Search:
    def __init__(self, position: Position, params: Maodv, rng: Random, keeper: Keeper) -> None:
        self.position = position
        self.node = position.node
        self.port = position.port
        self.rng = rng
        self.rules: Rules
        self._keeper = keeper
        self._jitter = seconds(params.jitter)
        self._retries = params.retries
        self._expanding = params.expanding
        self._updates_by_broadcast = params.updates == "broadcast"
        self._only_better_replies = params.replies == "better"
        self._reply_wait = seconds(params.reply_wait)
        self.retry_wait = seconds(params.retry_wait)
        self._at_once = params.activation == "at-once"
        self.repair: Repair | None = None
        self._serial = 0
        self._reserved = 0  # the last serial that this node may use before it reserves more
        self._reverse: dict[tuple[int, int, int, bool], Reverse] = {}  # origin, serial, attempt, climbing
        self._forward: dict[tuple[int, int, int], Forward] = {}  # origin, serial, replier
        self._pending: dict[tuple[int, int], Pending] = {}  # origin, serial
        self._answered: dict[tuple[int, int, int], None] = {}  # origin, serial, attempt
        self._best_passed: dict[tuple[int, int, int], tuple[int, int]] = {}  # the same: of the best reply passed on

    def tables(self) -> dict[str, int]:
        """The number of entries of its tables, by name."""
        return {
            "requests": len(self._reverse),
            "replies": len(self._forward),
            "pending": len(self._pending),
            "answered": len(self._answered),
            "best replies": len(self._best_passed),
        }

    def remember_serials(self, kept: Mapping[str, bytes]) -> None:
        """Begins after every serial from before a restart."""
        self._serial = self._reserved = int.from_bytes(kept.get(KEPT, b""), "big")

    def next_serial(self) -> int:
        if self._serial == self._reserved:
            self._reserved += RESERVED
            self.port.keep(KEPT, self._reserved.to_bytes(8, "big"))
        self._serial += 1
        return self._serial

    def flood_delay(self) -> Time:
        return round(self.rng.random() * self._jitter)

    # --- Called by the tree -----------------------------------------------------------------------------------------

    def timer(self, now: Time, key: Hashable) -> None:
        repair = self.repair
        if repair is None:
            return
        step = (repair.serial, repair.steps)
        if key == ("tree", "wait", *step):
            self._next_reply(now, repair)
        elif key == ("tree", "gathered", *step):
            repair.gathering = False
            if repair.replies:
                self._activate(now, repair)

    def unreachable(self, now: Time, message: Message) -> None:
        """A unicast was given up: it may have been the activation that this node waits for."""
        repair = self.repair
        if repair is None or not repair.activating or not isinstance(message, Mact):
            return
        if message.flag in ("join", "elect") and (message.origin, message.serial) == (self.node, repair.serial):
            repair.activating = False
            self._next_reply(now, repair)

    # --- asking ---------------------------------------------------------------------------------------------

    def begin(self, now: Time, change: str, success: str, distance: int) -> None:
        self.repair = Repair(self.next_serial(), success, distance, self._rings(distance))
        self.position.tell(change, cause_of(self.node, self.repair.serial))
        self._ask(now, self.repair)

    def _rings(self, distance: int) -> tuple[int, ...]:
        """How far each request goes: everywhere, or farther and farther (`expanding`)."""
        everywhere = (ANY_WAY,) * (1 + self._retries)
        if not self._expanding:
            return everywhere
        first = TTL_INCREMENT + (0 if distance == NOWHERE else distance)
        near = range(first, max(first, TTL_THRESHOLD) + 1, TTL_INCREMENT)
        return (*(ttl - 1 for ttl in near), *everywhere)

    def _ask(self, now: Time, repair: Repair) -> None:
        repair.attempt += 1
        ttl, *left = repair.left
        repair.left = tuple(left)
        sequence = 0 if repair.change == "joined" else self.position.sequence
        self.port.broadcast(
            Rreq(
                self.node,
                repair.serial,
                repair.attempt,
                sequence,
                repair.distance,
                self.position.rank,
                ttl,
                False,
                None,
            )
        )
        self._gather(now, repair)

    def _gather(self, now: Time, repair: Repair) -> None:
        """Waits for replies for a short time, and if there is none by then, for the first."""
        repair.activating = False
        repair.gathering = self._reply_wait > 0
        if repair.gathering:
            self.port.set_timer(now + self._reply_wait, ("tree", "gathered", repair.serial, repair.steps + 1))
        self._wait(now, repair)

    def begin_merge(self, now: Time, serial: int) -> Repair:
        """A leader has asked to join another: there is one request, and one reply."""
        self.repair = Repair(serial, "merged", 0)
        self._wait(now, self.repair)
        return self.repair

    def gather_merge(self, now: Time, serial: int) -> Repair:
        """A leader was offered a parent without asking: perhaps there are better ones."""
        self.repair = Repair(serial, "merged", 0)
        self._gather(now, self.repair)
        return self.repair

    def _wait(self, now: Time, repair: Repair) -> None:
        repair.steps += 1
        self.port.set_timer(now + self.retry_wait, ("tree", "wait", repair.serial, repair.steps))

    def _next_reply(self, now: Time, repair: Repair) -> None:
        """The wait for replies, or for the activated one, is over."""
        if repair.replies:
            self._activate(now, repair)
        elif repair.change == "merged":
            self.repair = None  # still a leader: the next group hello is the next chance
        elif repair.left:
            self._ask(now, repair)
        elif self.position.member:
            self.lead(now, "elected", cause_of(self.node, repair.serial))
        else:
            self.hand_over(now)

    def lead(self, now: Time, change: str, cause: int) -> None:
        """Becomes the leader of all below."""
        self.repair = None
        self.rules.settled()
        self.position.lead(now)
        self.position.tell(change, cause)
        if cause:
            self._keeper.announce(now, cause)

    def hand_over(self, now: Time) -> None:
        """A forwarder cannot lead: it asks its children, one after another, to become the leader, and leaves."""
        if self.repair is None:  # it was a leader, and its application has left
            self.position.leader = None
            self.repair = Repair(self.next_serial(), "repaired", self.position.distance)
        repair = self.repair
        if repair.activating and self.position.children:  # the last child asked has not answered
            self.position.drop_child(now, min(self.position.children))
            self.position.tell("child", cause_of(self.node, repair.serial))
        if not self.position.children:
            self._keeper.leave_if_idle(now)
            return
        child = min(self.position.children)
        repair.activating = True
        remember(self._pending, (self.node, repair.serial), Pending(child, None, self.position.rank))
        self.port.unicast(child, Mact(self.node, repair.serial, "elect", rank=self.position.rank))
        self._wait(now, repair)

    # --- answering ------------------------------------------------------------------------------------------

    def hear_request(self, now: Time, sender: Node, request: Rreq) -> None:
        if request.origin == self.node:
            return
        if request.leader is not None:
            self.rules.hear_request_to_merge(now, sender, request)
        elif not self.position.on_tree:
            self.pass_request_on(sender, request)
        else:
            self.rules.hear_request(now, sender, request)

    def pass_request_on(self, sender: Node, request: Rreq) -> None:
        """Floods a request, once, and remembers the reverse path."""
        if self.remember_request(sender, request, climbing=False) and request.ttl > 0:
            onward = structs.replace(request, ttl=request.ttl - 1, rank=max(request.rank, self.position.rank))
            self.port.broadcast(onward, self.flood_delay())

    def remember_request(self, sender: Node, request: Rreq, *, climbing: bool, jumped: bool = False) -> bool:
        """Remembers a request; returns whether it is new. `climbing`: it goes upstream, and its reply comes down."""
        key = (request.origin, request.serial, request.attempt, climbing)
        if key in self._reverse:
            return False
        remember(self._reverse, key, Reverse(sender, max(request.rank, self.position.rank), jumped))
        return True

    def may_reply(self, request: Rreq) -> bool:
        """The paper's conditions, all of which must hold, and room for a rank above that of the node that asks."""
        if self.repair is not None or not self.position.is_attached or self.position.distance > request.distance:
            return False
        if self.position.is_leader:
            return sequence_above(request.rank) < MAX_SEQUENCE
        return self.position.sequence >= request.sequence and self.position.has_room_above(request.rank)

    def reply(self, to: Node, request: Rreq) -> None:
        """Answers the first copy of a request."""
        if self.position.rise_above(request.rank) and self.offers(request):
            place = self.position.place
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

    def offers(self, of: Rreq | Rrep) -> bool:
        """Whether this node has not offered itself for a request yet; marks it as offered."""
        key = (of.origin, of.serial, of.attempt)
        if key in self._answered:
            return False
        remember(self._answered, key, None)
        return True

    # --- replies on their way -------------------------------------------------------------------------------

    def hear_reply(self, now: Time, sender: Node, reply: Rrep) -> None:
        if reply.origin == self.node:
            self._hear_own_reply(now, sender, reply)
            return
        if self._has_passed(reply):
            return
        down = reply.placed and sender == self.position.parent
        reverse = self.rules.request_of(reply, down=down)
        if reply.serial & MERGE and self.rules.pass_merge(now, sender, reply, reverse):
            return
        towards = self.rules.way_back(reply, reverse)
        if towards is None or reply.hops >= NOWHERE - 1 or reply.distance >= MAX_DEPTH:
            return
        onward = self._reply_onward(reply, reverse, down=down)
        if onward is not None and self._is_better(reply):
            self.remember_passing(sender, onward)
            self.port.unicast(towards, onward)

    def _has_passed(self, reply: Rrep) -> bool:
        """Whether this node has passed it on before, is already on its path, or made the offer itself."""
        if reply.replier == self.node or self.node in reply.path:
            return True
        passed = self._forward.get((reply.origin, reply.serial, reply.replier))
        return passed is not None and passed.attempt >= reply.attempt

    def _is_better(self, reply: Rrep) -> bool:
        """Whether a reply is newer or shorter than those passed on before for the same request (`replies`)."""
        key, length = (reply.origin, reply.serial, reply.attempt), (-reply.sequence, reply.hops)
        if self._only_better_replies:
            if key in self._best_passed and length >= self._best_passed[key]:
                return False
            remember(self._best_passed, key, length)
        return True

    def remember_passing(self, sender: Node, reply: Rrep) -> None:
        remember(self._forward, (reply.origin, reply.serial, reply.replier), Forward(sender, reply.attempt))

    def request_of(self, reply: Rrep, *, climbing: bool) -> Reverse | None:
        """What is remembered about a reply's request."""
        return self._reverse.get((reply.origin, reply.serial, reply.attempt, climbing))

    def _reply_onward(self, reply: Rrep, reverse: Reverse | None, *, down: bool) -> Rrep | None:
        """The reply to pass on, with this node added to the path; None: the path is useless."""
        if not down and self.position.rank >= reply.rank:  # we cannot be below it
            return None
        path = (*reply.path, self.node) if self.position.lists_paths else ()
        if len(path) > MAX_DEPTH:
            return None
        onward = structs.replace(reply, hops=reply.hops + 1, distance=reply.distance + 1, placed=down, path=path)
        return self.rules.pass_down(onward, reverse) if down and reverse is not None else onward

    def _hear_own_reply(self, now: Time, sender: Node, reply: Rrep) -> None:
        if reply.serial & MERGE:
            self.rules.hear_own_merge(now, sender, reply)
            return
        repair = self.repair
        if repair is not None and repair.serial == reply.serial:
            self.collect(now, repair, Reply(sender, reply))

    def collect(self, now: Time, repair: Repair, reply: Reply) -> None:
        if reply.message.rank > self.position.rank and len(repair.replies) < REMEMBERED:
            repair.replies.append(reply)
            if not repair.gathering and not repair.activating:
                self._activate(now, repair)

    # --- activation -----------------------------------------------------------------------------------------

    def _activate(self, now: Time, repair: Repair) -> None:
        best = min(repair.replies, key=self.rules.length)
        repair.replies.remove(best)
        repair.activating = True
        pending = Pending(best.via, None, self.position.rank)
        remember(self._pending, (self.node, repair.serial), pending)
        self._wait(now, repair)
        self._send_join(now, self.node, repair.serial, best.message.replier, pending)

    def _send_join(self, now: Time, origin: Node, serial: int, replier: Node, pending: Pending) -> None:
        self.port.unicast(pending.towards, Mact(origin, serial, "join", replier, pending.rank))
        if self._at_once:
            self.position.move_to(now, pending.towards, pending.after)
            self.moved(origin, serial)

    def hear_activation(self, now: Time, sender: Node, message: Mact) -> None:
        if message.flag == "join":
            self._hear_join(now, sender, message)
        elif message.flag == "update" and message.place is not None:
            self._hear_update(now, sender, message, message.place)
        elif message.flag == "prune":
            self._keeper.lose(now, sender)
        elif message.flag == "elect" and sender == self.position.parent:
            self._hear_election(now, sender, message)

    def _hear_join(self, now: Time, sender: Node, join: Mact) -> None:
        towards = self.way_forward(join)
        if self.node == join.replier or self.rules.ends_here(sender, join):
            self._accept(now, sender, join)
            if self.node != join.replier and towards is not None:
                self.port.unicast(towards, join)
        elif towards is not None and towards != sender:
            if self.position.on_tree and sender in self.position.children:  # above the new parent: only passed on
                self.port.unicast(towards, join)
                return
            pending = Pending(towards, sender, max(join.rank, self.position.rank))
            remember(self._pending, (join.origin, join.serial), pending)
            self._send_join(now, join.origin, join.serial, join.replier, pending)

    def way_forward(self, join: Mact) -> Node | None:
        forward = self._forward.get((join.origin, join.serial, join.replier))
        return None if forward is None else forward.towards

    def _accept(self, now: Time, child: Node, join: Mact) -> None:
        """Adopts the child, if that is still possible."""
        if (
            self.repair is not None
            or not self.position.is_attached
            or self.position.distance >= MAX_DEPTH
            or child == self.position.parent
        ):
            return
        if self.position.rank > join.rank:
            self.position.add_child(now, child)
            self.position.tell("child", join.cause)
            self.update(child, join.origin, join.serial, join.rank)

    def _hear_update(self, now: Time, sender: Node, message: Mact, place: Place) -> None:
        pending = self._pending.get((message.origin, message.serial))
        if sender == self.position.parent:
            was = self.position.leader
            if place.distance < MAX_DEPTH and self.position.follow(place):
                if self.position.leader != was:
                    self.position.tell("leader", message.cause)
                self.update_children(message)
        elif pending is not None and pending.towards == sender:
            was = self.position.parent
            if self.position.take_parent(now, sender, place, pending.after, message.rank):
                del self._pending[message.origin, message.serial]
                if was is not None and was not in (sender, pending.after):
                    self.rules.leave_parent(now, was)
                self.moved(message.origin, message.serial)
                self.update_children(message)
                self._keeper.leave_if_idle(now)

    def moved(self, origin: Node, serial: int) -> None:
        """This node has a new parent: a search that began here is done, and so is its own repair."""
        self.rules.settled()
        change, cause = "parent", cause_of(origin, serial)
        if self.repair is not None:
            change, cause = self.repair.change, cause_of(self.node, self.repair.serial)
            self.repair = None
        self.position.tell(change, cause)

    def update_children(self, message: Mact) -> None:
        if self._updates_by_broadcast:
            if self.position.children and self.position.is_attached:
                place = self.position.place
                update = Mact(message.origin, message.serial, "update", rank=message.rank, place=place)
                self.port.broadcast(update, self.flood_delay())
            return
        for child in sorted(self.position.children):
            self.update(child, message.origin, message.serial, message.rank)

    def update(self, child: Node, origin: Node, serial: int, floor: int = 0) -> None:
        if self.position.is_attached:
            self.port.unicast(child, Mact(origin, serial, "update", rank=floor, place=self.position.place))

    def _hear_election(self, now: Time, parent: Node, message: Mact) -> None:
        """The parent has no parent and is not a member: the link is reversed, and a node below becomes the leader."""
        key = (message.origin, message.serial)
        if self.position.member and max(message.rank, self.position.rank) < MAX_RANK:
            self.position.add_child(now, parent)
            self.position.drop_parent(now)
            self.position.rise_to(message.rank)
            self.lead(now, "elected", message.cause)
            self.update_children(Mact(*key, "update", rank=message.rank))
        elif not self.position.member and self.position.children:
            child = min(self.position.children)
            remember(self._pending, key, Pending(child, parent, max(message.rank, self.position.rank)))
            self.port.unicast(child, Mact(*key, "elect", rank=max(message.rank, self.position.rank)))


def remember(table: dict[K, V], key: K, value: V) -> None:
    """Stores in a bounded table, since others can fill it."""
    put(table, key, value, REMEMBERED)
