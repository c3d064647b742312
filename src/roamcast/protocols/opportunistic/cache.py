"""The cache: the documents that a node stores, within its limits.

It is bounded in documents and in bytes. When it is full, the policy decides which documents to drop: a policy is a
function that ranks a document, and the lowest rank is dropped first; of equal ranks, the one that arrived first. A new
document never replaces one of equal rank, or two nodes could exchange the two for ever.

A part of it can be reserved for the documents that this node has published itself: within that part, documents of
others never displace them, whatever the policy says.

**A document that the policy would drop on arrival is never taken.** `admits` tells before the document is requested:
with "oldest", a full cache does not admit a document that is older than all others.
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
"""Bytes of overhead per stored document."""


class Traits(NamedTuple):
    """The properties of a document that a policy looks at."""

    published: int
    """When it was published, by this node's clock, ns."""
    arrived: int
    requested: int
    """When it was last requested; until then, when it arrived."""
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
    """When it expires, by this node's clock, ns; None: never."""
    hops: int
    """How often it was transmitted on its way here."""
    number: int = 0
    """Its place in the order of arrival in the cache."""

    @property
    def traits(self) -> Traits:
        return Traits(self.published, self.arrived, self.requested, self.wanted)

    @property
    def octets(self) -> int:
        return self.document.length + COST


Rank = Any
"""A number or a tuple of numbers; ranks of the same policy can be compared."""
POLICIES: Final[dict[Policy, Callable[[Traits | Held], Rank]]] = {
    "oldest": attrgetter("published"),
    "oldest arrival": attrgetter("arrived"),
    "least requested": attrgetter("requested"),
    "others first": attrgetter("wanted", "published"),
}


class Cache:
    def __init__(self, documents: int, octets: int, policy: Policy, *, node: int = -1, reserved: float = 0.0) -> None:
        """`documents` and `octets` (bytes) are the limits; 0: no limit. `reserved` is the share of both for what `node`
        has published."""
        self._documents = documents
        self._limit = octets
        self._rank = POLICIES[policy]
        self._by_request = policy == "least requested"
        self._held: dict[EventId, Held] = {}
        self._node = node if reserved else -1
        self._most_reserved = int(documents * reserved), int(octets * reserved)
        self._reserved: dict[EventId, Held] = {}  # the node's own documents that are safe, oldest first; not ranked
        self._reserved_octets = 0
        self._expiring: list[tuple[int, EventId]] = []  # a heap; entries of documents that have left are skipped
        self._ranked: list[tuple[Rank, int, EventId]] = []  # a heap; outdated ranks are skipped
        self._arrivals = 0
        self.octets = 0

    def get(self, id: EventId) -> Held | None:
        return self._held.get(id)

    def admits(self, length: int, traits: Traits) -> bool:
        """Whether a document of this length would stay on arrival."""
        if self._has_room(length + COST):
            return True
        if self._limit and length + COST > self._limit:
            return False
        rank, first = self._rank(traits), self._first
        return first is not None and bool(rank > self._rank(first)) and self._victims(length + COST, rank) is not None

    def put(self, held: Held) -> list[Held] | None:
        """Adds a document; returns those it displaced, or None if it cannot stay itself."""
        assert held.document.id not in self._held
        victims: list[Held] | None = []
        if not self._has_room(held.octets):
            victims = self._victims(held.octets, None if self._is_safe(held) else self._rank(held))
            if victims is None:
                return None
            for victim in victims:
                self.remove(victim.document.id)
        self._held[held.document.id] = held
        self.octets += held.octets
        self._arrivals += 1
        held.number = self._arrivals
        if self._is_safe(held):
            self._reserve(held)
        else:
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
        if self._reserved.pop(id, None) is not None:
            self._reserved_octets -= held.octets

    def _is_safe(self, held: Held) -> bool:
        """Whether a document of its size can be reserved for the node that has published it."""
        documents, octets = self._most_reserved
        return held.document.event.author == self._node and (
            (documents > 0 or not self._documents) and (held.octets <= octets or not self._limit)
        )

    def _reserve(self, held: Held) -> None:
        """Makes a document safe; if there are too many, the oldest are ranked like those of others."""
        self._reserved[held.document.id] = held
        self._reserved_octets += held.octets
        documents, octets = self._most_reserved
        while (self._documents and len(self._reserved) > documents) or (self._limit and self._reserved_octets > octets):
            oldest = self._reserved.pop(next(iter(self._reserved)))
            self._reserved_octets -= oldest.octets
            self._enter_rank(oldest)

    def requested(self, held: Held, now: int) -> None:
        """Notes that a node has requested the document."""
        held.requested = now
        if self._by_request and held.document.id not in self._reserved:
            self._enter_rank(held)

    def set_wanted(self, held: Held, wanted: bool) -> None:
        """Notes whether the node itself wants the document, after its interests have changed."""
        if held.wanted != wanted:
            held.wanted = wanted
            if held.document.id not in self._reserved:
                self._enter_rank(held)

    def expired(self, now: int) -> list[Held]:
        """Removes the documents that may no longer be delivered, and returns them."""
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
        """The earliest time at which a document may expire."""
        return self._expiring[0][0] if self._expiring else None

    def _has_room(self, octets: int) -> bool:
        return not (
            (self._documents and len(self._held) >= self._documents)
            or (self._limit and self.octets + octets > self._limit)
        )

    @property
    def _first(self) -> Held | None:
        """The document to drop first, if one may be dropped."""
        ranked = self._ranked
        while ranked:
            rank, number, id = ranked[0]
            held = self._held.get(id)
            if held is not None and held.number == number and self._rank(held) == rank:
                return held
            heapq.heappop(ranked)
        return None

    def _enter_rank(self, held: Held) -> None:
        """Records the rank of a document that is new or whose rank has changed."""
        if len(self._ranked) > 2 * len(self._held) + 16:  # mostly of documents that have left
            self._ranked = [
                (self._rank(other), other.number, id) for id, other in self._held.items() if id not in self._reserved
            ]
            heapq.heapify(self._ranked)
        else:
            heapq.heappush(self._ranked, (self._rank(held), held.number, held.document.id))

    def _victims(self, octets: int, rank: Rank | None) -> list[Held] | None:
        """The documents to drop, lowest rank first, to make room; None if the new document would be dropped first. A
        `rank` of None is above all others."""
        if self._limit and octets > self._limit:
            return None
        too_many = len(self._held) + 1 - self._documents if self._documents else 0
        too_heavy = self.octets + octets - self._limit if self._limit else 0
        victims = []
        first = self._first if too_many == 1 and too_heavy <= 0 else None
        others = (held for id, held in self._held.items() if id not in self._reserved)
        for held in sorted(others, key=self._rank) if first is None else [first]:
            if too_many <= 0 and too_heavy <= 0:
                break
            if rank is not None and self._rank(held) >= rank:
                return None
            victims.append(held)
            too_many -= 1
            too_heavy -= held.octets
        return victims if too_many <= 0 and too_heavy <= 0 else None

    def __contains__(self, id: EventId) -> bool:
        return id in self._held

    def __iter__(self) -> Iterator[Held]:
        """The documents in order of arrival."""
        return iter(self._held.values())

    def __len__(self) -> int:
        return len(self._held)
