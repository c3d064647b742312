"""A node's position in a tree: its parent, its children, its rank, and which of them are still there.

The rules this file owns:

* A node takes a parent only on the parent's own word, and only if the parent's rank is above ours (`rank.py`). Beacons
  carry ranks: if a parent's rank has fallen, or is not above ours, twice, it is no longer the parent.
* A link is lost as soon as nothing was heard over it for so many beacons. Other traffic (`overhears`) is considered
  only when a neighbour would be lost.
* Every change is recorded as a fact, and the routing is told about links that went up or down.

`tree.py`, which keeps the tree, and `search.py`, which looks for a parent, decide what to do about it.
"""

from collections.abc import Mapping
from typing import Final, Protocol

from roamcast.protocols.api import Node, Port, Time
from roamcast.protocols.tree.facts import TreeChanged
from roamcast.protocols.tree.messages import MAX_DEPTH, NOWHERE, Mact, Place
from roamcast.protocols.tree.rank import MAX_SEQUENCE, STEP, between, leader_rank, sequence_above

KEPT: Final = "tree/sequence"
SILENCE: Final = ("tree", "silence")
RESERVE: Final = 1024
"""Sequence numbers that are reserved on disk in advance, so that writing is rare."""
MAX_CHILDREN: Final = 128
"""Far more than are in range: one more replaces the child that was silent for longest."""
CONTRADICTIONS: Final = 2
"""Contradicting beacons before a child, which names another parent, or a parent, whose rank is too low, is dropped."""


class Links(Protocol):
    """Gets told about the links of the tree."""

    def link_up(self, now: Time, neighbour: Node) -> None: ...
    def link_down(self, now: Time, neighbour: Node) -> None: ...


class Position:
    """See the top of the file."""

    def __init__(self, node: Node, port: Port, links: Links, silence: Time, *, overhears: bool) -> None:
        """`silence`: how long a neighbour may be silent; `overhears`: whether other traffic counts."""
        self.node = node
        self.port = port
        self.lists_paths = False
        """Whether the position it tells includes the path from the leader: COMAN's part A."""
        self._links = links
        self._silence = silence
        self._overhears = overhears
        self._heard: dict[Node, Time] = {}  # when each tree neighbour was heard last
        self._watching = False  # whether a timer is set for the first of them that would be silent for too long

        self.on_tree = False
        self.member = False
        self.parent: Node | None = None
        self.children: dict[Node, int] = {}  # how often each has named another parent since it named us
        self.leader: Node | None = None
        self.sequence = 0
        self.distance = NOWHERE
        self.ancestors: tuple[Node, ...] = ()
        """The nodes from the leader to the parent, as last told; those it had, if the parent was lost."""
        self.rank = 0
        self._reserved = 0  # the sequence number to begin with after a restart, above all ranks before it
        self._ceiling = 0  # the highest rank that the parent has told
        self._doubts = 0  # how many beacons in a row contradict that it is the parent

    # --- Position ---------------------------------------------------------------------------------------------------

    @property
    def is_leader(self) -> bool:
        return self.leader == self.node

    @property
    def is_attached(self) -> bool:
        """Whether this node has a leader, or is one."""
        return self.leader is not None

    @property
    def place(self) -> Place:
        """The position that children are told. Only for a node that has a leader."""
        assert self.leader is not None
        return Place(self.leader, self.sequence, self.distance, self.rank, self.path)

    @property
    def path(self) -> tuple[Node, ...]:
        """The nodes from the leader to this node, as messages carry them."""
        return (*self.ancestors, self.node)[-MAX_DEPTH:] if self.lists_paths else ()

    @property
    def neighbours(self) -> tuple[Node, ...]:
        """The nodes at the other ends of tree links."""
        children = sorted(self.children)
        return tuple(children if self.parent is None else [self.parent, *children])

    def tell(self, change: str, cause: int) -> None:
        self.port.record(TreeChanged(change, cause, self.parent, tuple(sorted(self.children)), self.leader))

    # --- Parent and children ----------------------------------------------------------------------------------------

    def take_parent(self, now: Time, parent: Node, place: Place, after: Node | None, floor: int) -> bool:
        """Becomes a child of `parent`, and the parent of the node that comes `after` on the path. Returns False, and
        changes nothing, if that is not safe.

        `floor` is the rank to rise above, so that there is room for the nodes after this one.
        """
        if place.rank <= self.rank or place.distance >= MAX_DEPTH or after == parent:
            return False
        self.move_to(now, parent, after)
        self._ceiling = place.rank
        self.rise_to(between(max(self.rank, floor), place.rank))
        self.follow(place)
        return True

    def move_to(self, now: Time, parent: Node, after: Node | None) -> None:
        """Changes only the links."""
        if after is not None:
            self.add_child(now, after)  # first: if the former parent becomes a child, its link is not lost
        was = self.parent
        self.parent = parent
        self.on_tree = True
        self._ceiling = self._doubts = 0
        known = self.children.pop(parent, None) is not None
        self._listen(now, parent)
        if was is not None and was != parent and was not in self.children:
            self._lose_link(now, was)
        if was != parent and not known:
            self._links.link_up(now, parent)

    def follow(self, place: Place) -> bool:
        """Takes over what the parent says about the leader; returns whether that is news for the children."""
        before = (self.leader, self.distance, self.ancestors)
        # Each leader has its own numbers: another's may be far ahead, and nobody here could answer a request with it.
        self.sequence = max(self.sequence, place.sequence) if self.leader == place.leader else place.sequence
        self.leader = place.leader
        self.distance = place.distance + 1
        self.ancestors = place.path
        self.hear_rank(place.rank)
        return before != (self.leader, self.distance, self.ancestors)

    def hear_rank(self, rank: int) -> None:
        """The parent's rank. Ours follows a level below it, so that there is room for later paths."""
        self._ceiling = max(self._ceiling, rank)
        self.rise_to(self._ceiling - STEP)

    def rise_to(self, rank: int | None) -> None:
        """Takes a higher rank; None or a lower one changes nothing."""
        if rank is not None and rank > self.rank:
            self.rank = rank
            if sequence_above(rank) >= self._reserved:
                self._reserved = sequence_above(rank) + RESERVE
                self.port.keep(KEPT, self._reserved.to_bytes(8, "big"))

    def remember_ranks(self, kept: Mapping[str, bytes]) -> None:
        """Begins above every rank from before a restart: some nodes may still have this one as their parent."""
        self.rise_to(leader_rank(int.from_bytes(kept.get(KEPT, b""), "big")))

    def drop_parent(self, now: Time) -> None:
        if self.parent is not None:
            was, self.parent = self.parent, None
            if was not in self.children:
                self._lose_link(now, was)

    def add_child(self, now: Time, child: Node) -> None:
        known = child in self.children or child == self.parent
        self.children[child] = 0
        self._listen(now, child)
        if not known:
            self._links.link_up(now, child)
        if len(self.children) > MAX_CHILDREN:
            self.drop_child(now, min(self.children, key=lambda child: self._heard[child]))

    def drop_child(self, now: Time, child: Node) -> None:
        del self.children[child]
        if child != self.parent:
            self._lose_link(now, child)

    def _lose_link(self, now: Time, neighbour: Node) -> None:
        del self._heard[neighbour]
        self._links.link_down(now, neighbour)

    # --- Silent neighbours ------------------------------------------------------------------------------------------

    def hear(self, now: Time, sender: Node) -> bool:
        """A node was heard; returns whether it is a tree neighbour."""
        if sender not in self._heard:
            return False
        self._heard[sender] = now
        return True

    def _listen(self, now: Time, neighbour: Node) -> None:
        self._heard[neighbour] = now
        if not self._watching:
            self.watch()

    def lost(self, now: Time) -> list[Node]:
        """The tree neighbours that were silent for too long."""
        if self._overhears:
            for neighbour, heard in self._heard.items():
                self._heard[neighbour] = max(heard, self.port.overheard(neighbour) or heard)
        return [neighbour for neighbour in self.neighbours if now - self._heard[neighbour] > self._silence]

    def watch(self) -> None:
        """Sets the timer for the next neighbour that would be lost; to be called again then."""
        self._watching = bool(self._heard)
        if self._watching:
            self.port.set_timer(min(self._heard.values()) + self._silence + 1, SILENCE)

    def hear_rank_of_parent(self, rank: int) -> bool:
        """Handles the rank in a beacon of the parent; returns whether it can still be the parent."""
        if rank >= self._ceiling and rank > self.rank:
            self._ceiling, self._doubts = rank, 0
            return True
        # Ranks never fall, so it has lost its state; or it was taken before it confirmed, and is below us.
        self._doubts += 1
        return self._doubts < CONTRADICTIONS

    # --- Ranks ------------------------------------------------------------------------------------------------------

    def has_room_above(self, rank: int) -> bool:
        """Whether there is a rank above this one and below the parent's."""
        return self.rank > rank or between(rank, self._ceiling) is not None

    def rise_above(self, rank: int) -> bool:
        """Raises this node's rank above another; returns whether that was possible."""
        if self.is_leader:
            if self.rank <= rank:
                self.sequence = min(max(self.sequence, sequence_above(rank)), MAX_SEQUENCE)
                self.rise_to(leader_rank(self.sequence))
        elif self.rank <= rank:
            self.rise_to(between(rank, self._ceiling))
        return self.rank > rank

    # --- Leading and leaving ----------------------------------------------------------------------------------------

    def lead(self, now: Time) -> None:
        """Becomes the leader of all nodes below."""
        self.drop_parent(now)
        self.on_tree = True
        self.leader = self.node
        self.distance = 0
        self.ancestors = ()
        self.rise_above(max(self.rank, leader_rank(self.sequence)))

    def next_sequence(self) -> None:
        """The next sequence number, for a leader's next group hello."""
        self.sequence = min(self.sequence + 1, MAX_SEQUENCE)
        self.rise_to(leader_rank(self.sequence))

    def leave(self, now: Time) -> None:
        """Leaves the tree."""
        if self.parent is not None:
            self.end_link(self.parent)
        self.drop_parent(now)
        self.on_tree, self.leader, self.distance, self.ancestors = False, None, NOWHERE, ()

    def end_link(self, to: Node) -> None:
        """Tells a node that it is not a tree neighbour."""
        self.port.unicast(to, Mact(0, 0, "prune"))
