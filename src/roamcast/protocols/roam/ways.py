"""The ways: how far away the known subscribers are, and what they want.

A distance is a number of hops. A node learns it from a neighbour, as the neighbour's and one more, if that is less than
what it knows. Distances grow with time, the faster the shorter links live. So an outdated distance loses against a
recent one, nodes that repeat each other's distances do not keep them alive, and nothing needs to be numbered.
"""

import zlib
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from roamcast.bounded import put
from roamcast.content.event import Event
from roamcast.content.filter import EVERYTHING, NOTHING, Filter
from roamcast.protocols.interests import Interests
from roamcast.protocols.roam.messages import FARTHEST, MAX_ASKED, MAX_LISTED, Key, Name, names, pack
from roamcast.units import SECOND

NOBODY: Final = 0
"""The key of the filter that matches nothing: that of a subscriber that has unsubscribed."""
MAX_SUMMARY: Final = 1024
"""Most bytes of a filter."""
NEAREST: Final = 40
"""Subscribers that every hello lists; if more are known, the others are listed in turn."""
_ANSWERS: Final = 7
"""Most filters of others in a hello."""
_FILTERS: Final = 256
"""Most filters that are known by their key."""
_UNCLAIMED: Final = 2 * FARTHEST


def filter_key(filter: Filter) -> int:
    """A filter's name on the air."""
    return NOBODY if filter == NOTHING else zlib.crc32(msgspec.msgpack.encode(filter)) or 1


class Ways:
    def __init__(self, key: Key, capacity: int) -> None:
        """`key` is the node's own, to which it needs no way."""
        self._capacity = capacity
        self._growth = 0.0  # hops per nanosecond
        # A distance minus the growth since time 0: so all grow without being touched.
        self._distances: dict[Key, float] = {}
        self._wanted: dict[Key, int] = {}  # the key of the filter of each subscriber
        self._interests = Interests()
        self._filters: dict[int, Filter] = {}
        self._own = key
        self._turn = 0  # where the list of far subscribers goes on
        self._asked: dict[int, None] = {}  # filters that neighbours do not know, until somebody tells them

    def learn(self, now: int, distances: Iterable[tuple[Key, float]], filter: int) -> None:
        """A neighbour has told how far it is from subscribers that want this filter."""
        base = 1 - now * self._growth
        mine = self._distances
        get = mine.get
        for key, distance in distances:
            value, known = distance + base, get(key)
            if known is None:
                self._add(key, value, filter)
            elif value <= known:
                mine[key] = value
                if self._wanted[key] != filter:
                    self._want(key, filter)

    def meet(self, now: int, key: Key) -> None:
        """A neighbour was heard, perhaps a subscriber."""
        if key in self._distances:
            self._distances[key] = 1 - now * self._growth

    def _add(self, key: Key, value: float, filter: int) -> None:
        if key == self._own or filter == NOBODY:
            return
        evicted = put(self._distances, key, value, self._capacity)
        if evicted is not None:
            self._remove(evicted)
        self._want(key, filter)

    def _want(self, key: Key, filter: int) -> None:
        self._wanted[key] = filter
        # A filter that is not known yet may want anything: rather a transmission too many than an event lost.
        self._interests.put(key, NOTHING if filter == NOBODY else self._filters.get(filter, EVERYTHING))

    def _remove(self, key: Key) -> None:
        self._distances.pop(key, None)
        del self._wanted[key]
        self._interests.remove(key)

    def learn_filters(self, filters: Mapping[int, Filter]) -> None:
        for key, filter in filters.items():
            self._asked.pop(key, None)
            if key in self._filters or key != filter_key(filter):
                continue
            if len(msgspec.msgpack.encode(filter)) > MAX_SUMMARY:  # hellos with it would be too long
                continue
            put(self._filters, key, filter, _FILTERS)
            for subscriber, wanted in self._wanted.items():
                if wanted == key:
                    self._interests.put(subscriber, filter)

    def age(self, now: int, life: float) -> None:
        """Sets the growth for this mean life of a link, in seconds, and forgets what is too far."""
        growth = HOPS_PER_LIFE / life / SECOND
        shift = now * (self._growth - growth)
        for key in self._distances:
            self._distances[key] += shift
        self._growth = growth
        limit = FARTHEST - now * growth
        for key in [key for key, value in self._distances.items() if value > limit]:
            self._remove(key)

    def gains(self, now: int, event: Event, wanting: list[Key], claims: Mapping[Name, float]) -> dict[Name, float]:
        """Those of the subscribers that are nearer than claimed, by a margin; with the limit below which they are not.

        For few subscribers there are few paths, which may break: even nodes that are a little farther go on then.
        """
        offset = now * self._growth + (GAIN if len(wanting) > RARE else -GAIN)
        distances, claimed = self._distances, claims.get
        return {
            name: limit
            for key, name in zip(wanting, names(wanting, event.id), strict=True)
            if (limit := distances[key] + offset) <= claimed(name, _UNCLAIMED)
        }

    def wanting(self, event: Event) -> list[Key]:
        """The subscribers that want an event."""
        return self._interests.match(event)

    def wants(self, key: Key, event: Event) -> bool:
        """Whether this subscriber wants an event."""
        filter = self._wanted.get(key, NOBODY)
        return filter != NOBODY and self._filters.get(filter, EVERYTHING).matches(event)

    def nearer(self, now: int, event: Event, claims: Mapping[Name, float]) -> dict[Name, float]:
        """The distances to those who want an event, where they are at least as near as claimed."""
        offset = now * self._growth
        keys = self.wanting(event)
        near = {name: self._distances[key] + offset for key, name in zip(keys, names(keys, event.id), strict=True)}
        return {name: distance for name, distance in near.items() if distance <= claims.get(name, _UNCLAIMED)}

    def outdated(self, since: int, claims: Mapping[Name, float]) -> dict[Name, float]:
        """Claims that were made so many nanoseconds ago."""
        grown = since * self._growth
        return {name: distance + grown for name, distance in claims.items() if distance + grown < FARTHEST}

    def listed(self, now: int) -> dict[int, bytes]:
        """Subscribers by filter, as a hello has them: the nearest, and some of the others in turn."""
        offset = now * self._growth
        ranked = sorted([(value + offset, key) for key, value in self._distances.items()])
        if len(ranked) >= MAX_LISTED:
            far, count = ranked[NEAREST:], MAX_LISTED - 1 - NEAREST
            start = self._turn = (self._turn + count) % len(far)
            ranked[NEAREST:] = (far + far)[start : start + count]
        found: dict[int, list[tuple[Key, float]]] = {}
        for distance, key in ranked:
            found.setdefault(self._wanted[key], []).append((key, distance))
        return {filter: pack(near) for filter, near in found.items()}

    def ask(self, filters: Iterable[int]) -> None:
        """A neighbour asks for these filters."""
        for key in filters:
            if key in self._filters:
                put(self._asked, key, None, MAX_ASKED)

    def answers(self) -> dict[int, Filter]:
        """Filters that neighbours have asked for, for the next hello."""
        told = list(self._asked)[:_ANSWERS]
        for key in told:
            del self._asked[key]
        return {key: self._filters[key] for key in told if key in self._filters}

    def unknown(self) -> tuple[int, ...]:
        """The filters of subscribers that are not known here, to be asked for."""
        wanted = dict.fromkeys(self._wanted.values())
        return tuple([key for key in wanted if key != NOBODY and key not in self._filters][:MAX_ASKED])

    def __len__(self) -> int:
        return len(self._distances)


GAIN: Final = 0.5
"""Hops by which a node must be nearer to a subscriber than whoever has sent an event, to send it too."""
RARE: Final = 3
"""Subscribers: an event that so few want, or fewer, is forwarded more generously."""
HOPS_PER_LIFE: Final = 4.0
"""Hops by which a distance grows in the mean life of a link."""
