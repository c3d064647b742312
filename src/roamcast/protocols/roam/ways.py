"""The ways: how far away the known subscribers are, and what they want.

A distance is a number of hops. A node learns it from a neighbour, as the neighbour's and one more, if that is less than
what it knows. Distances grow with time, the faster the shorter links live. So an outdated distance loses against a
recent one, nodes that repeat each other's distances do not keep them alive, and nothing needs to be numbered.
"""

import zlib
from collections.abc import Container, Iterable, Mapping
from typing import Final

import msgspec

from roamcast.bounded import put
from roamcast.content.event import Event
from roamcast.content.filter import EVERYTHING, NOTHING, Filter
from roamcast.protocols.interests import Interests
from roamcast.protocols.roam.messages import FARTHEST, MAX_LISTED, Claim, Key, pack
from roamcast.units import SECOND

NOBODY: Final = 0
"""The key of the filter that matches nothing: that of a subscriber that has unsubscribed."""
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
        self._turn = 0

    def learn(self, now: int, claims: Iterable[Claim], filter: int) -> None:
        """A neighbour has told how far it is from subscribers that want this filter."""
        base = 1 - now * self._growth
        distances = self._distances
        for key, distance, _ in claims:
            known = distances.get(key)
            if known is None:
                self._add(key, distance + base, filter)
            elif distance + base <= known:
                distances[key] = distance + base
                if self._wanted[key] != filter:
                    self._want(key, filter)

    def renew(self, now: int, claims: Iterable[Claim]) -> None:
        """A neighbour has told how far it is from subscribers, but not what they want: only known ones count."""
        base = 1 - now * self._growth
        distances = self._distances
        for key, distance, _ in claims:
            known = distances.get(key)
            if known is not None and distance + base < known:
                distances[key] = distance + base

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
            if key in self._filters or key != filter_key(filter):
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

    def gains(self, now: int, wanting: list[Key], claims: Mapping[Key, float]) -> dict[Key, float]:
        """Those of the subscribers that are nearer than claimed, by a margin; with the limit below which they are not.

        For few subscribers there are few paths, which may break: even nodes that are a little farther go on then.
        """
        offset = now * self._growth + (GAIN if len(wanting) > RARE else -GAIN)
        distances = self._distances
        return {key: limit for key in wanting if (limit := distances[key] + offset) <= claims.get(key, _UNCLAIMED)}

    def wanting(self, event: Event) -> list[Key]:
        """The subscribers that want an event."""
        return self._interests.match(event)

    def wants(self, key: Key, event: Event) -> bool:
        """Whether this subscriber wants an event."""
        filter = self._wanted.get(key, NOBODY)
        return filter != NOBODY and self._filters.get(filter, EVERYTHING).matches(event)

    def claims(self, now: int, event: Event, made: Mapping[Key, float]) -> list[Claim]:
        """The claims to send with an event: the node's own where it is nearer than claimed, and the others."""
        offset = now * self._growth
        near = {key: self._distances[key] + offset for key in self._interests.match(event)}
        own = [Claim(key, distance) for key, distance in near.items() if distance <= made.get(key, _UNCLAIMED)]
        known = {claim.key for claim in own}
        return own + [Claim(key, distance, False) for key, distance in made.items() if key not in known]

    def listed(self, now: int, without: Container[Key]) -> dict[int, bytes]:
        """The nearest subscribers by filter, as a hello has them."""
        offset = now * self._growth
        nearest = sorted([(value + offset, key) for key, value in self._distances.items() if key not in without])
        found: dict[int, list[Claim]] = {}
        for distance, key in nearest[: MAX_LISTED - 1]:
            found.setdefault(self._wanted[key], []).append(Claim(key, distance))
        return {filter: pack(claims) for filter, claims in found.items()}

    def some_filters(self, keys: Iterable[int], count: int) -> dict[int, Filter]:
        """Some of the filters with these keys, others each time."""
        known = [key for key in keys if key in self._filters]
        if len(known) > count:
            start = self._turn = (self._turn + count) % len(known)
            known = (known + known)[start : start + count]
        return {key: self._filters[key] for key in known}

    def __len__(self) -> int:
        return len(self._distances)


GAIN: Final = 0.5
"""Hops by which a node must be nearer to a subscriber than whoever has sent an event, to send it too."""
RARE: Final = 3
"""Subscribers: an event that so few want, or fewer, is forwarded more generously."""
HOPS_PER_LIFE: Final = 4.0
"""Hops by which a distance grows in the mean life of a link."""
