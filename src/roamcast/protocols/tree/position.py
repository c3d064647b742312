"""A node's standing in a tree: its parent, its children, its rank, and who of them is still there.

The rules this file owns:

* A parent is taken only from what it said itself, and only if that puts its rank above ours (`rank.py`).
  Beacons carry ranks: a parent whose rank has fallen, or is not above ours, twice, is none.
* A link is lost when nothing was heard over it for so many beacons; the link to the parent also when a unicast over it
  was given up.
* Beacons name their sender's upstream. A parent that hears itself named by a node it has no longer among its children
  takes it back; one that hears a child name somebody else, twice, lets it go: the first may have crossed a change.
* Every change is told to the world as a fact, and links that came or went to whoever routes on the tree.
"""

from collections.abc import Mapping
from random import Random
from typing import Annotated, Final, Literal, Protocol

from msgspec import Meta

from roamcast.protocols.api import Node, Port, Time
from roamcast.protocols.tree.facts import TreeChanged
from roamcast.protocols.tree.forwarding import Forwarding
from roamcast.protocols.tree.messages import MAX_DEPTH, NOWHERE, Hello, Mact, Place
from roamcast.protocols.tree.rank import STEP, between, leader_rank, sequence_above
from roamcast.units import seconds

HELLO: Final = ("tree", "hello")
KEPT: Final = "tree/sequence"
RESERVE: Final = 1024
"""Sequence numbers that are kept ahead, so that keeping is rare."""
MAX_CHILDREN: Final = 128
"""Far more than are in range: whoever claims to be one more takes the place of the one not heard for longest."""
CONTRADICTIONS: Final = 2
"""Beacons that name another parent before a child is let go, or that cannot be a parent's before it is given up."""


class Links(Protocol):
    """Who is told of the links of the tree."""

    def link_up(self, now: Time, neighbour: Node) -> None: ...
    def link_down(self, now: Time, neighbour: Node) -> None: ...


class Trees(Forwarding, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of every tree. Timers that the paper does not give are those of the MAODV draft and its base, AODV."""

    members: Annotated[
        Literal["all", "clients"],
        Meta(
            description="who belongs to the tree: every node; or those that subscribe or publish, others only forward"
        ),
    ] = "all"
    hello: Annotated[float, Meta(ge=0.01, le=3600, description="between two beacons, s (HELLO_INTERVAL 1 s)")] = 1.0
    misses: Annotated[
        int, Meta(ge=1, le=100, description="beacons missed before a link is lost (ALLOWED_HELLO_LOSS 2)")
    ] = 2
    hearing: Annotated[
        Literal["any", "beacons"], Meta(description="what counts as hearing a neighbour: any message of it, or beacons")
    ] = "any"
    jitter: Annotated[float, Meta(ge=0, le=60, description="longest random wait before passing a flood on, s")] = 0.01


class Position:
    """See the top of the file. `maodv.py` and `coman.py` decide what to do about it."""

    def __init__(self, node: Node, params: Trees, port: Port, rng: Random, links: Links) -> None:
        self.node = node
        self.port = port
        self.rng = rng
        self._links = links
        self._hello = seconds(params.hello)
        self._hearing_any = params.hearing == "any"
        self._jitter = seconds(params.jitter)
        # A beacon may be as late as its own jitter, a tenth of the interval.
        self._silence = round(self._hello * (params.misses + 0.1))
        self._heard: dict[Node, Time] = {}  # when each tree neighbour was heard last

        self.on_tree = False
        self.member = False
        self.parent: Node | None = None
        self.children: dict[Node, int] = {}  # how often each has named another parent since it named us
        self.leader: Node | None = None
        self.sequence = 0
        self.distance = NOWHERE
        self.ancestors: tuple[Node, ...] = ()
        """From the leader to the parent, as last told; of a node that lost its parent, those it had."""
        self.rank = 0
        self._reserved = 0  # a new life begins with this sequence number, above all ranks of this one
        self._ceiling = 0  # the highest rank that the parent told
        self._doubts = 0  # how many beacons in a row say that it cannot be the parent

    # --- Where this node stands -------------------------------------------------------------------------------------

    @property
    def is_leader(self) -> bool:
        return self.leader == self.node

    @property
    def is_attached(self) -> bool:
        """Whether a leader is known to be above, or here."""
        return self.leader is not None

    @property
    def place(self) -> Place:
        """What children are told. Only of a node that has a leader."""
        assert self.leader is not None
        return Place(self.leader, self.sequence, self.distance, self.rank, self._path)

    @property
    def _path(self) -> tuple[Node, ...]:
        """From the leader to this node, as messages carry it; COMAN's part A."""
        return ()

    @property
    def neighbours(self) -> tuple[Node, ...]:
        """Those at the other ends of tree links."""
        children = sorted(self.children)
        return tuple(children if self.parent is None else [self.parent, *children])

    def _tell(self, change: str, cause: int) -> None:
        self.port.record(TreeChanged(change, cause, self.parent, tuple(sorted(self.children)), self.leader))

    # --- Parent and children ----------------------------------------------------------------------------------------

    def _take_parent(self, now: Time, parent: Node, place: Place, after: Node | None, floor: int) -> bool:
        """Becomes a child of `parent`, and the parent of whoever comes `after` on the path; whether that is safe.

        `floor` is the rank to rise above, so that there is room for those after us.
        """
        if place.rank <= self.rank or place.distance >= MAX_DEPTH or after == parent:
            return False
        self._move_to(now, parent, after)
        self._ceiling = place.rank
        self._rise_to(between(max(self.rank, floor), place.rank))
        self._follow(place)
        return True

    def _move_to(self, now: Time, parent: Node, after: Node | None) -> None:
        """Changes the links alone."""
        if after is not None:
            self._add_child(now, after)  # first: who was the parent and is a child now has not gone
        was = self.parent
        self.parent = parent
        self.on_tree = True
        self._ceiling = self._doubts = 0
        known = self.children.pop(parent, None) is not None
        self._heard[parent] = now
        if was is not None and was != parent and was not in self.children:
            self._lose_link(now, was)
        if was != parent and not known:
            self._links.link_up(now, parent)

    def _follow(self, place: Place) -> bool:
        """Takes over what the parent says of the leader; whether that is news for the children."""
        before = (self.leader, self.distance, self.ancestors)
        # A number is its leader's: that of another may be far ahead, and nobody here could answer a request with it.
        self.sequence = max(self.sequence, place.sequence) if self.leader == place.leader else place.sequence
        self.leader = place.leader
        self.distance = place.distance + 1
        self.ancestors = place.path
        self._hear_rank(place.rank)
        return before != (self.leader, self.distance, self.ancestors)

    def _hear_rank(self, rank: int) -> None:
        """The parent's rank. Ours follows a level below, so that there is room again for paths to come."""
        self._ceiling = max(self._ceiling, rank)
        self._rise_to(self._ceiling - STEP)

    def _rise_to(self, rank: int | None) -> None:
        """Takes a higher rank; None or a lower one changes nothing."""
        if rank is not None and rank > self.rank:
            self.rank = rank
            if sequence_above(rank) >= self._reserved:
                self._reserved = sequence_above(rank) + RESERVE
                self.port.keep(KEPT, self._reserved.to_bytes(8, "big"))

    def _remember_ranks(self, kept: Mapping[str, bytes]) -> None:
        """Begins above every rank of a former life: there may still be nodes that take this one for their parent."""
        self._rise_to(leader_rank(int.from_bytes(kept.get(KEPT, b""), "big")))

    def _drop_parent(self, now: Time) -> None:
        if self.parent is not None:
            was, self.parent = self.parent, None
            if was not in self.children:
                self._lose_link(now, was)

    def _add_child(self, now: Time, child: Node) -> None:
        known = child in self.children or child == self.parent
        self.children[child] = 0
        self._heard[child] = now
        if not known:
            self._links.link_up(now, child)
        if len(self.children) > MAX_CHILDREN:
            self._drop_child(now, min(self.children, key=lambda child: self._heard[child]))

    def _drop_child(self, now: Time, child: Node) -> None:
        del self.children[child]
        if child != self.parent:
            self._lose_link(now, child)

    def _lose_link(self, now: Time, neighbour: Node) -> None:
        del self._heard[neighbour]
        self._links.link_down(now, neighbour)

    # --- Who is there -----------------------------------------------------------------------------------------------

    def hear(self, now: Time, sender: Node, *, beacon: bool) -> None:
        """Something has arrived from a node."""
        if sender in self._heard and (beacon or self._hearing_any):
            self._heard[sender] = now

    def _lost(self, now: Time) -> list[Node]:
        """The tree neighbours that were not heard for too long."""
        return [neighbour for neighbour in self.neighbours if now - self._heard[neighbour] > self._silence]

    def _send_hello(self, now: Time) -> None:
        self.port.broadcast(Hello(self.parent, self.rank))
        self.port.set_timer(now + round(self._hello * (0.9 + 0.1 * self.rng.random())), HELLO)

    def _flood_delay(self) -> Time:
        return round(self.rng.random() * self._jitter)

    def _end_link(self, to: Node) -> None:
        self.port.unicast(to, Mact(0, 0, "prune"))
