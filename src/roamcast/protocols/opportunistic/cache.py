"""The cache: the documents that a node has, within its bounds.

Bounded in documents and in bytes. When there is no room, its policy says which documents go first: a policy is a
function that gives a document's rank, and the lowest goes. Of equals the one that came first goes, but a newcomer
never drives out its equal: two nodes could go on exchanging the two for ever.

**What the policy would drop on arrival is never taken.** `admits` says so before a document is asked for: with "oldest"
in a full cache, one that is older than all others.
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, NamedTuple

from roamcast.content.event import EventId
from roamcast.protocols.opportunistic.documents import Document
from roamcast.protocols.opportunistic.params import Policy

COST: Final = 256
"""Bytes that a document takes beyond its own."""


class Traits(NamedTuple):
    """What a policy looks at."""

    published: int
    """When, by this node's clock, ns."""
    arrived: int
    requested: int
    """When it was last asked for; at first, when it arrived."""
    wanted: bool
    """Whether the node itself wants it."""


@dataclass(slots=True, eq=False)
class Held:
    """A document in a cache."""

    document: Document
    published: int
    arrived: int
    requested: int
    wanted: bool
    expires: int | None
    """When, by this node's clock, ns; None: never."""
    hops: int
    """Transmissions since its publication."""
    number: int = 0
    """In the order of arrival in its cache."""

    @property
    def traits(self) -> Traits:
        return Traits(self.published, self.arrived, self.requested, self.wanted)

    @property
    def octets(self) -> int:
        return self.document.length + COST


Rank = Any
"""A number, or several: those of one policy compare with each other."""
POLICIES: Final[dict[Policy, Callable[[Traits | Held], Rank]]] = {
    "oldest": attrgetter("published"),
    "oldest arrival": attrgetter("arrived"),
    "least requested": attrgetter("requested"),
    "others first": attrgetter("wanted", "published"),
}


class Cache:
    def __init__(self, documents: int, octets: int, policy: Policy) -> None:
        """Up to so many documents and bytes; 0: no limit."""
        self._documents = documents
        self._limit = octets
        self._rank = POLICIES[policy]
        self._by_request = policy == "least requested"
        self._held: dict[EventId, Held] = {}
        self._expiring: list[tuple[int, EventId]] = []  # a heap; those of documents that have left are skipped
        self._ranked: list[tuple[Rank, int, EventId]] = []  # a heap; ranks that are no longer true are skipped
        self._arrivals = 0
        self.octets = 0

    def get(self, id: EventId) -> Held | None:
        return self._held.get(id)

    def admits(self, length: int, traits: Traits) -> bool:
        """Whether a document of that length would stay on arrival."""
        if self._has_room(length + COST):
            return True
        if self._limit and length + COST > self._limit:
            return False
        rank = self._rank(traits)
        return bool(rank > self._rank(self._first)) and self._victims(length + COST, rank) is not None

    def put(self, held: Held) -> list[Held] | None:
        """Takes a document in; gives those that had to go for it, or None if it cannot stay itself."""
        assert held.document.id not in self._held
        victims: list[Held] | None = []
        if not self._has_room(held.octets):
            victims = self._victims(held.octets, self._rank(held))
            if victims is None:
                return None
            for victim in victims:
                self.remove(victim.document.id)
        self._held[held.document.id] = held
        self.octets += held.octets
        self._arrivals += 1
        held.number = self._arrivals
        self._enter_rank(held)
        if held.expires is not None:
            if len(self._expiring) > 2 * len(self._held) + 16:  # mostly of documents that have left
                self._expiring = [
                    (other.expires, id)
                    for id, other in self._held.items()
                    if other.expires is not None and other != held
                ]
                heapq.heapify(self._expiring)
            heapq.heappush(self._expiring, (held.expires, held.document.id))
        return victims

    def remove(self, id: EventId) -> None:
        held = self._held.pop(id)
        self.octets -= held.octets

    def requested(self, held: Held, now: int) -> None:
        """Somebody has asked for it."""
        held.requested = now
        if self._by_request:
            self._enter_rank(held)

    def set_wanted(self, held: Held, wanted: bool) -> None:
        """The node's own interests have changed."""
        if held.wanted != wanted:
            held.wanted = wanted
            self._enter_rank(held)

    def expired(self, now: int) -> list[Held]:
        """Takes out what may no longer be delivered, and gives it."""
        gone = []
        while self._expiring and self._expiring[0][0] <= now:
            expires, id = heapq.heappop(self._expiring)
            held = self._held.get(id)
            if held is not None and held.expires == expires:
                self.remove(id)
                gone.append(held)
        return gone

    @property
    def next_expiry(self) -> int | None:
        """When something may expire next."""
        return self._expiring[0][0] if self._expiring else None

    def _has_room(self, octets: int) -> bool:
        return not (
            (self._documents and len(self._held) >= self._documents)
            or (self._limit and self.octets + octets > self._limit)
        )

    @property
    def _first(self) -> Held:
        """What goes first, of a cache that is not empty."""
        ranked = self._ranked
        while True:
            rank, number, id = ranked[0]
            held = self._held.get(id)
            if held is not None and held.number == number and self._rank(held) == rank:
                return held
            heapq.heappop(ranked)

    def _enter_rank(self, held: Held) -> None:
        """A document came, or its rank has changed."""
        if len(self._ranked) > 2 * len(self._held) + 16:  # mostly of documents that have left
            self._ranked = [(self._rank(other), other.number, id) for id, other in self._held.items()]
            heapq.heapify(self._ranked)
        else:
            heapq.heappush(self._ranked, (self._rank(held), held.number, held.document.id))

    def _victims(self, octets: int, rank: Rank) -> list[Held] | None:
        """Those that go, the lowest first, until there is room; None if the newcomer itself comes first."""
        if self._limit and octets > self._limit:
            return None
        too_many = len(self._held) + 1 - self._documents if self._documents else 0
        too_heavy = self.octets + octets - self._limit if self._limit else 0
        victims = []
        ordered = [self._first] if too_many == 1 and too_heavy <= 0 else None
        for held in ordered or sorted(self._held.values(), key=self._rank):
            if too_many <= 0 and too_heavy <= 0:
                break
            if self._rank(held) >= rank:
                return None
            victims.append(held)
            too_many -= 1
            too_heavy -= held.octets
        return victims

    def __contains__(self, id: EventId) -> bool:
        return id in self._held

    def __iter__(self) -> Iterator[Held]:
        """In the order of arrival."""
        return iter(self._held.values())

    def __len__(self) -> int:
        return len(self._held)
