"""When a condition on a measured number holds.

The rule this file owns: a condition *holds* if there is evidence for it on every side that it bounds: the whole
interval satisfies it. `against` is the evidence that it is violated, as a p-value; the judge, which knows how many
conditions there are, decides whether that is enough. If neither: *inconclusive*.
"""

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from roamcast.statistics.evidence import Evidence

INF: Final = math.inf


class CheckOutcome(StrEnum):
    """From worst to best: of several, the worst counts."""

    FAILS = "does not hold"
    OPEN = "inconclusive"
    MISSING = "not measured"
    HOLDS = "holds"


RANK: Final = {outcome: rank for rank, outcome in enumerate(CheckOutcome)}


def worst(outcomes: Sequence[CheckOutcome]) -> CheckOutcome:
    return min(outcomes, key=RANK.__getitem__)


class Band(NamedTuple):
    """Numbers between two bounds, the bounds themselves only if `closed`."""

    low: float
    high: float
    closed: bool = False

    def has(self, value: float) -> bool:
        return self.low <= value <= self.high if self.closed else self.low < value < self.high

    def inside(self, found: Evidence) -> float:
        """The p-value for being in the band: that of the weaker side."""
        above = found.above(self.low, strict=not self.closed) if self.low > -INF else 0.0
        below = found.below(self.high, strict=not self.closed) if self.high < INF else 0.0
        return max(above, below)

    def outside(self, found: Evidence) -> float:
        """The p-value for being outside: that of the stronger side."""
        below = found.below(self.low, strict=self.closed) if self.low > -INF else 1.0
        above = found.above(self.high, strict=self.closed) if self.high < INF else 1.0
        return min(below, above)

    def slack(self, value: float) -> float:
        """How far inside a value is; negative outside."""
        return min(value - self.low, self.high - value)


class Condition(NamedTuple):
    """Where the mean must lie, and where its whole interval must; None: in the same band."""

    mean: Band
    interval: Band | None = None

    def holds(self, found: Evidence, alpha: float) -> bool:
        return (self.interval or self.mean).inside(found) <= alpha and self.mean.has(found.mean)

    def against(self, found: Evidence) -> float:
        return self.mean.outside(found)
