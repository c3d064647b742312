"""The links: who is near, how long neighbours stay, and so how often a hello is worth sending.

The mean life of a link is estimated as for anything that fails at random: the time for which links were observed,
divided by the number of those that ended, or that began if these are more: in the long run they are equally many, and
when a calm network begins to move, new neighbours are heard long before the old ones are missed. A neighbour whose
hellos are rarer than links live says nothing about it, and is not counted.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from roamcast.protocols.roam.messages import Digest, Key, key_of
from roamcast.units import SECOND, seconds

_ASSUMED: Final = 60.0
"""The life of a link before anything was observed, s; it counts as one link."""
_LONGEST: Final = 900.0
"""A longer life is not told from "they stay", s."""
_MEMORY: Final = 8
"""Links that ended or began, after which older ones count half."""
_PATIENCE: Final = 2.5
"""Intervals without a frame, after which a neighbour is gone."""
_LATE: Final = 1.2
"""Intervals without a frame, after which a neighbour does not count until it is heard again."""
_SLACK: Final = SECOND // 2


@dataclass(slots=True)
class Link:
    key: Key
    last: int
    """When it was last heard."""
    interval: int
    """Between its hellos, ns."""
    density: int | None = None
    """The density around it, as it told last."""
    digest: Digest | None = None
    """What it has received, as it told last."""


class Links:
    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._links: dict[int, Link] = {}
        self.density = 0.0  # the mean degree of this node and its neighbours
        self._observed = 0.0  # s
        self._begun = 0.0
        self._ended = 0.0
        self._settled: int | None = None  # from when on a new neighbour means that something has changed
        self._last = 0  # when anybody was heard
        self._changed = 0  # when a link ended, or a new one began
        self._tracked = _ASSUMED * SECOND / 2  # the longest interval of neighbours that count
        self.life = _ASSUMED
        """The mean life of a link, s."""
        self.degree = 0
        """Neighbours that were heard when their hellos were due. Some have left since, and others came unheard."""

    def hear(self, now: int, node: int) -> Link | None:
        """A node was heard; None if it is not known yet."""
        link = self._links.get(node)
        self._last = now
        if link is not None:
            silence, link.last = now - link.last, now
            if link.interval <= self._tracked:
                most = 3 * link.interval // 2
                self._observed += (silence if silence < most else most) / SECOND
        return link

    def add(self, now: int, node: int) -> Link:
        if len(self._links) >= self._capacity:
            del self._links[min(self._links, key=lambda other: self._links[other].last)]
        self._changed = now
        if self._settled is None:
            self._settled = now + seconds(_ASSUMED)
        self._begun += now >= self._settled
        self._estimate()
        link = self._links[node] = Link(key_of(node), now, 5 * SECOND)
        self.degree += 1
        return link

    def _estimate(self) -> None:
        changes = max(self._begun, self._ended)
        if changes > _MEMORY:
            self._begun, self._ended, self._observed = self._begun / 2, self._ended / 2, self._observed / 2
            changes /= 2
        self._observed = min(self._observed, _LONGEST * (changes + 1))
        self.life = min((self._observed + _ASSUMED) / (changes + 1), _LONGEST)
        self._tracked = self.life * SECOND / 2

    def update(self, now: int) -> None:
        """Removes neighbours that are gone, and estimates again."""
        gone = [node for node, link in self._links.items() if now - link.last > _PATIENCE * link.interval + _SLACK]
        if gone:
            self._changed = now
        for node in gone:
            self._ended += self._links.pop(node).interval <= self._tracked
        self._estimate()
        there = [link.density for link in self if now - link.last <= _LATE * link.interval + _SLACK]
        told = [density for density in there if density is not None]
        self.degree = len(there)
        self.density = (self.degree + sum(told)) / (1 + len(told))

    def sparse(self, density: int | None = 0) -> bool:
        """Whether there are few nodes around here, and around a neighbour that has told this density."""
        return density is not None and max(density, self.density) < FEW

    def moving(self, now: int) -> bool:
        """Whether links came or went lately."""
        return now - self._changed < CALM

    def interval(self, now: int, subscriber: bool, carrying: bool) -> int:
        """How long to wait until the next hello, ns.

        Twice as many hellos make knowledge twice as fresh. What that is worth falls with the life of a link, and what
        it costs does not: so the interval goes with the root. In a crowd each node says less, and less still if nobody
        has to find it. Where there is hardly anybody and links change, whoever carries an event must not miss those
        whom it meets. A node that carries nothing and has heard nobody for long waits for a part of that time.
        """
        crowd = max(1.0, self.degree / CROWD)
        wish = PER_ROOT * math.sqrt(self.life) * crowd ** (SUBSCRIBER if subscriber else RELAY)
        if carrying and self.sparse() and self.moving(now):
            wish = min(wish, MEETING * self.life * max(1.0, self.density / 2) ** 2)
        else:
            wish = max(wish, ALONE * (now - self._last) / SECOND)
        return seconds(min(max(wish, LEAST), max(MOST, self.life / 15)))

    def __iter__(self) -> Iterator[Link]:
        return iter(self._links.values())

    def __len__(self) -> int:
        return len(self._links)


CROWD: Final = 6.0
PER_ROOT: Final = 0.5
LEAST, MOST = 1.0, 30.0
SUBSCRIBER, RELAY = 0.75, 2.0
ALONE: Final = 0.125
MEETING: Final = 0.015
CALM: Final = 120 * SECOND
"""Without a change for so long, nobody moves."""
FEW: Final = 7
"""Neighbours: with fewer, anybody may be the one to meet a subscriber next."""
