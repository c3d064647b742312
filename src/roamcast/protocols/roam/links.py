"""The links: who is near, how long neighbours stay, and how often a hello is worth sending."""

import math
from dataclasses import dataclass
from typing import Final

from roamcast.bounded import put
from roamcast.units import SECOND

_LONGEST: Final = 900.0
"""The longest mean life of a link that is told from "they stay", s."""
_ENOUGH: Final = 16
_TRACKED: Final = 0.5 * SECOND


@dataclass(slots=True)
class Link:
    first: int
    last: int
    interval: int
    degree: float = 0.0


class Links:
    def __init__(self, capacity: int, prior: float, patience: float) -> None:
        self._capacity = capacity
        self._patience = patience
        self._links: dict[int, Link] = {}  # longest silent first
        self._prior = prior
        self._observed = 0.0  # seconds for which neighbours were there
        self._ended = 0.0  # links that ended in that time
        self.life = prior
        """The mean life of a link, s."""
        self.degree = 0.0

    def hear(self, now: int, node: int, interval: int | None = None) -> bool:
        """A node was heard; whether it is new here."""
        link = self._links.pop(node, None)
        new = link is None
        if link is None:
            link = Link(now, now, 5 * SECOND)
        if link.interval <= self.life * _TRACKED:
            self._observed += min(now - link.last, 3 * link.interval // 2) / SECOND
        link.last = now
        if interval is not None:
            link.interval = interval
        put(self._links, node, link, self._capacity)
        return new

    def __contains__(self, node: int) -> bool:
        return node in self._links

    def update(self, now: int) -> None:
        """Removes those that are gone, and estimates again."""
        gone = [
            node for node, link in self._links.items() if now - link.last > self._patience * link.interval + SECOND // 2
        ]
        self._ended += sum(self._links[node].interval <= self.life * _TRACKED for node in gone)
        for node in gone:
            del self._links[node]
        if self._ended > _ENOUGH:
            self._ended /= 2
            self._observed /= 2
        self._observed = min(self._observed, _LONGEST * (self._ended + 1))
        self.life = min((self._observed + self._prior) / (self._ended + 1), _LONGEST)
        self.degree = sum(math.exp((link.last - now) / SECOND / self.life) for link in self._links.values())

    def __len__(self) -> int:
        return len(self._links)
