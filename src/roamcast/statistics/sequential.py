"""Repeated looks at the data: the level of each look when seeds are added until something is decided.

The rule this file owns: one who looks at a 95 % interval after every few seeds, and stops when it excludes 0, is wrong
far more often than 5 % of the time. So the chance of an error is a budget, spent over the looks: of 1 − `level`, the
share (n / most) ** power is spent when n of at most `most` seeds are in, and each look has what was not spent at the
one before. Errors of all looks together then stay within the budget, whatever the looks have to do with each other
(the sum bounds the union), with Student's t, and for as many quantities as the judge corrects for. Looks need not be
planned: only `most` must stand before the first, and what was seen may decide when the next one is.

What it costs: the last look of many has a wider interval than a single one would have. With a power of 2 little is
spent on early looks, which decide only what is plain, and most of it is left for the last.
K. K. G. Lan, D. L. DeMets, Discrete Sequential Boundaries for Clinical Trials, 1983, have the idea of spending; the sum
in place of their integral is a little stricter and needs no normal distribution.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from roamcast.statistics.intervals import LEVEL

POWER: Final = 2.0
LEAST: Final = 2
"""With fewer seeds there is no interval, and a look would be wasted."""


@dataclass(frozen=True)
class Looks:
    """A plan to look at up to `most` seeds, wrong with a total probability of at most 1 − `level`."""

    most: int
    level: float = LEVEL
    power: float = POWER
    """2 keeps most of the budget for the last look; 1 spends the same for every seed."""

    def __post_init__(self) -> None:
        if self.most < LEAST:
            raise ValueError(f"looking takes {LEAST} seeds or more, not {self.most}")
        if not 0 < self.level < 1:
            raise ValueError(f"a level lies between 0 and 1, not at {self.level}")

    def level_at(self, seeds: int, before: int = 0) -> float:
        """The level of the intervals at a look with `seeds` seeds, if the previous look had `before` (0: the first)."""
        if not LEAST <= seeds <= self.most:
            raise ValueError(f"a look has {LEAST} to {self.most} seeds, not {seeds}")
        if not 0 <= before < seeds:
            raise ValueError(f"a look with {seeds} seeds comes after one with fewer, not with {before}")
        return 1 - (self._spent(seeds) - self._spent(before))

    def levels(self, looks: Sequence[int]) -> list[float]:
        """The levels of a sequence of looks with ever more seeds."""
        return [self.level_at(seeds, before) for before, seeds in zip((0, *looks), looks, strict=False)]

    def _spent(self, seeds: int) -> float:
        share: float = (seeds / self.most) ** self.power
        return (1 - self.level) * share
