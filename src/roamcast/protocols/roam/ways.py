"""The ways: how far the subscribers are that this node has heard of, and what they want.

A distance is a number of hops. It is learned from neighbours (theirs and one hop more) if that is less than what is
known, and grows with time, as the network moves: one hop in the life of a link. So what is outdated loses against what
was heard lately, without numbering anything.
"""

import zlib
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from roamcast.bounded import put
from roamcast.content.event import Event
from roamcast.content.filter import EVERYTHING, NOTHING, Filter
from roamcast.protocols.interests import Interests
from roamcast.protocols.roam.messages import MAX_LISTED, Claim, Key, packed
from roamcast.units import SECOND

FARTHEST: Final = 15.0
_FILTERS: Final = 256
NOBODY: Final = 0
"""The key of the filter that matches nothing: its subscriber has unsubscribed."""


def filter_key(filter: Filter) -> int:
    return NOBODY if filter == NOTHING else zlib.crc32(msgspec.msgpack.encode(filter)) or 1


@dataclass(slots=True)
class Way:
    distance: float
    at: int
    wants: int


class Ways:
    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._ways: dict[Key, Way] = {}
        self._interests = Interests()
        self._filters: dict[int, Filter] = {NOBODY: NOTHING}
        self.growth = 1 / 30 / SECOND
        """Hops by which a distance grows per nanosecond."""
        self._turn = 0

    def learn(self, now: int, key: Key, distance: float, wants: int) -> bool:
        """A neighbour is so far from a subscriber, or this node itself with the neighbour in between."""
        way = self._ways.get(key)
        if way is None:
            if distance >= FARTHEST or wants == NOBODY:
                return False
            way = Way(distance, now, wants)
            evicted = put(self._ways, key, way, self._capacity)
            if evicted is not None:
                self._interests.remove(evicted)
            self._interests.put(key, self._filters.get(wants, EVERYTHING))
            return True
        if distance <= way.distance + (now - way.at) * self.growth:
            way.distance, way.at = distance, now
            if wants != way.wants:
                way.wants = wants
                self._interests.put(key, self._filters.get(wants, EVERYTHING))
        return False

    def renew(self, now: int, key: Key, distance: float) -> None:
        """The same, from a frame that does not tell what the subscriber wants."""
        way = self._ways.get(key)
        if way is not None and distance < way.distance + (now - way.at) * self.growth:
            way.distance, way.at = distance, now

    def learn_filters(self, filters: dict[int, Filter]) -> None:
        for key, filter in filters.items():
            if key == NOBODY or self._filters.get(key) == filter or key != filter_key(filter):
                continue
            put(self._filters, key, filter, _FILTERS)
            for subscriber, way in self._ways.items():
                if way.wants == key:
                    self._interests.put(subscriber, filter)

    def distance(self, now: int, key: Key) -> float:
        way = self._ways[key]
        return way.distance + (now - way.at) * self.growth

    def wanting(self, event: Event) -> list[Key]:
        """The subscribers that want an event."""
        return self._interests.match(event)

    def expire(self, now: int) -> None:
        for key in [key for key in self._ways if self.distance(now, key) >= FARTHEST]:
            del self._ways[key]
            self._interests.remove(key)

    def listed(self, now: int, without: Container[Key]) -> dict[int, bytes]:
        """The nearest subscribers by filter, as a hello carries them."""
        nearest = sorted([(self.distance(now, key), key) for key in self._ways if key not in without])[:MAX_LISTED]
        found: dict[int, list[Claim]] = {}
        for distance, key in nearest:
            found.setdefault(self._ways[key].wants, []).append(Claim(key, distance, True))
        return {wants: packed(claims) for wants, claims in found.items()}

    def some_filters(self, wanted: Iterable[int], count: int) -> dict[int, Filter]:
        """Some of these filters, others each time."""
        known = [key for key in wanted if key in self._filters and key != NOBODY]
        start = self._turn % len(known) if len(known) > count else 0
        self._turn = start + count
        return {key: self._filters[key] for key in (known + known)[start : start + min(count, len(known))]}

    def __len__(self) -> int:
        return len(self._ways)
