"""When a condition on a measured number holds.

The rule this file owns: a condition *holds* if the whole interval satisfies it, *does not hold* if no part of it does,
and is *inconclusive* if the interval covers both.
"""

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from roamcast.campaign.statistics import Estimate

INF: Final = math.inf


class Outcome(StrEnum):
    """From bad to good: of several, the worst counts."""

    FAILS = "does not hold"
    OPEN = "inconclusive"
    MISSING = "not measured"
    HOLDS = "holds"


RANK: Final = {outcome: rank for rank, outcome in enumerate(Outcome)}


def worst(outcomes: Sequence[Outcome]) -> Outcome:
    return min(outcomes, key=RANK.__getitem__)


class Band(NamedTuple):
    """Numbers between two bounds, the bounds themselves only if `closed`."""

    low: float
    high: float
    closed: bool = False

    def has(self, low: float, high: float) -> bool:
        """Whether all between these two is in the band."""
        return self.low <= low and high <= self.high if self.closed else self.low < low and high < self.high

    def misses(self, low: float, high: float) -> bool:
        """Whether nothing between these two is in the band."""
        return high < self.low or low > self.high if self.closed else high <= self.low or low >= self.high


class Condition(NamedTuple):
    """Where the mean must lie, and where all of its interval must; if None, there too."""

    mean: Band
    interval: Band | None = None

    def outcome(self, found: Estimate) -> Outcome:
        if self.mean.misses(found.low, found.high):
            return Outcome.FAILS
        held = (self.interval or self.mean).has(found.low, found.high) and self.mean.has(found.mean, found.mean)
        return Outcome.HOLDS if held else Outcome.OPEN

    def slack(self, found: Estimate) -> float:
        """How far inside the mean is; negative outside."""
        return min(found.mean - self.mean.low, self.mean.high - found.mean)
