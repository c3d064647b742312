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

Near = Mapping[Key, float]
"""By subscriber: its distance minus the growth since time 0."""


def filter_key(filter: Filter) -> int:
    """A filter's name on the air."""
    return NOBODY if filter == NOTHING else zlib.crc32(msgspec.msgpack.encode(filter)) or 1


class Ways:
    def __init__(self, key: Key, capacity: int) -> None:
        """`key` is the node's own, to which it needs no way."""
        self._capacity = capacity
        self._growth = 0.0  # hops per nanosecond
        self._slack = GAIN
        # By the key of a filter: those who want it, and for each its distance minus the growth since time 0. So all
        # grow without being touched.
        self._near: dict[int, dict[Key, float]] = {}
        self._wanted: dict[Key, int] = {}  # the key of the filter of each subscriber, the newest last
        self._interests = Interests()  # filters by their keys
        self._filters: dict[int, Filter] = {}
        self._own = key
        self._turn = 0  # where the list of far subscribers goes on
        self._asked: dict[int, None] = {}  # filters that neighbours do not know, until somebody tells them

    def learn(self, now: int, distances: Mapping[Key, float], filter: int) -> None:
        """A neighbour has told how far it is from subscribers that want this filter."""
        base = 1 - now * self._growth
        mine = self._near.get(filter, {})
        for key, distance in distances.items():
            value = distance + base
            try:
                known = mine[key]
            except KeyError:
                self._add(key, value, filter)
                continue
            if value <= known:
                mine[key] = value

    def meet(self, now: int, key: Key) -> None:
        """A neighbour was heard, perhaps a subscriber."""
        filter = self._wanted.get(key)
        if filter is not None:
            self._near[filter][key] = 1 - now * self._growth

    def _add(self, key: Key, value: float, filter: int) -> None:
        """A subscriber that is new, or was known to want something else."""
        wanted = self._wanted.get(key)
        if wanted is None:
            if key == self._own or filter == NOBODY:
                return
            if len(self._wanted) >= self._capacity:
                oldest = next(iter(self._wanted))
                self._forget(oldest, self._wanted.pop(oldest))
        elif value <= self._near[wanted][key]:
            self._forget(key, wanted)
        else:
            return
        self._wanted[key] = filter
        if filter not in self._near:
            self._near[filter] = {}
            # A filter that is not known yet may want anything: rather a transmission too many than an event lost.
            self._interests.put(filter, NOTHING if filter == NOBODY else self._filters.get(filter, EVERYTHING))
        self._near[filter][key] = value

    def _forget(self, key: Key, filter: int) -> None:
        """A subscriber does not want this filter any more, as far as is known."""
        near = self._near[filter]
        del near[key]
        if not near:
            del self._near[filter]
            self._interests.remove(filter)

    def learn_filters(self, filters: Mapping[int, Filter]) -> None:
        for key, filter in filters.items():
            self._asked.pop(key, None)
            if key in self._filters or key != filter_key(filter):
                continue
            if len(msgspec.msgpack.encode(filter)) > MAX_SUMMARY:  # hellos with it would be too long
                continue
            put(self._filters, key, filter, _FILTERS)
            if key in self._near:
                self._interests.put(key, filter)

    def age(self, now: int, life: float, dense: bool) -> None:
        """Sets the growth for this mean life of a link, in seconds, and forgets what is too far."""
        growth = HOPS_PER_LIFE / life / SECOND
        shift = now * (self._growth - growth)
        for near in self._near.values():
            for key in near:
                near[key] += shift
        self._growth = growth
        self._slack = 2 * GAIN if life < SHORT else 0.0 if dense else GAIN
        limit = FARTHEST - now * growth
        for key in [key for near in self._near.values() for key, value in near.items() if value > limit]:
            self._forget(key, self._wanted.pop(key))

    def gains(self, now: int, event: Event, wanting: Near, claims: Mapping[Name, float]) -> dict[Name, float]:
        """Those of the subscribers that are nearer than claimed, by a margin; with the limit below which they are not.

        For few subscribers there are few paths, which may break: even nodes that are as near go on then, or half a hop
        farther where neighbours are few, or a whole one where links are short.
        """
        offset = now * self._growth + (GAIN if len(wanting) > RARE else -self._slack)
        named, gained = names(event.id), {}
        for key, value in wanting.items():
            limit, name = value + offset, named[key]
            if limit <= claims.get(name, _UNCLAIMED):
                gained[name] = limit
        return gained

    def wanting(self, event: Event) -> Near:
        """The subscribers that want an event. It is not a copy: what is learned later may change it."""
        filters = self._interests.match(event)
        if len(filters) == 1:
            return self._near[filters[0]]
        return {key: value for filter in filters for key, value in self._near[filter].items()}

    def wants(self, key: Key, event: Event) -> bool:
        """Whether this subscriber wants an event."""
        filter = self._wanted.get(key, NOBODY)
        return filter != NOBODY and self._filters.get(filter, EVERYTHING).matches(event)

    def nearer(self, now: int, event: Event, claims: Mapping[Name, float]) -> dict[Name, float]:
        """The distances to those who want an event, where they are at least as near as claimed."""
        offset, named = now * self._growth, names(event.id)
        near = {named[key]: value + offset for key, value in self.wanting(event).items()}
        return {name: distance for name, distance in near.items() if distance <= claims.get(name, _UNCLAIMED)}

    def outdated(self, since: int, claims: Mapping[Name, float]) -> dict[Name, float]:
        """Claims that were made so many nanoseconds ago."""
        grown = since * self._growth
        return {name: distance + grown for name, distance in claims.items() if distance + grown < FARTHEST}

    def listed(self, now: int) -> dict[int, bytes]:
        """Subscribers by filter, as a hello has them: the nearest, and some of the others in turn."""
        offset = now * self._growth
        ranked = sorted([(value + offset, key) for near in self._near.values() for key, value in near.items()])
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
        return len(self._wanted)


GAIN: Final = 0.5
"""Hops by which a node must be nearer to a subscriber than whoever has sent an event, to send it too."""
SHORT: Final = 20.0
"""Seconds: where links live no longer, what is known of few subscribers is often wrong by the time it is used."""
RARE: Final = 6
"""Subscribers: an event that so few want, or fewer, is forwarded more generously."""
HOPS_PER_LIFE: Final = 4.0
"""Hops by which a distance grows in the mean life of a link."""
