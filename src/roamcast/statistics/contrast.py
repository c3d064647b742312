"""Two variants in one measure, seed by seed: how far apart they are, if that is decided, and how many seeds it takes.

The rules this file owns:

* Shares and signed measures are compared by difference; everything else by ratio, as the mean of its logarithm, so that
  A against B says the same as B against A. By difference too if a value is 0 or below the measure's floor.
* A comparison is decided if its interval excludes *no difference*. Words and numbers use the same interval, so that
  they cannot disagree.
* Of several comparisons each gets its part of the risk (Bonferroni): `level_of` is the level of each interval.
* No variance is no evidence (`evidence.py`), unless the measure is a share, which has bounds.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from roamcast.analysis.measures.measure import Measure
from roamcast.statistics.evidence import UNBOUNDED, Sample
from roamcast.statistics.intervals import LEVEL, Estimate, t_quantile

FEWEST: Final = 2
"""Fewest seeds for a comparison."""
POWER: Final = 0.8
"""How often as many seeds as `seeds_to_decide` says should decide, if the difference is as it looks."""
_ZERO: Final = 1e-100
_MOST: Final = 10_000


def level_of(comparisons: int, level: float = LEVEL) -> float:
    """The level of each interval, so that all of them hold together with `level`."""
    return 1 - (1 - level) / max(1, comparisons)


@dataclass(frozen=True)
class Contrast:
    """One variant against another; positive: the first is higher."""

    sample: Sample
    """Differences or logarithms of ratios, by seed."""
    ratio: bool

    @classmethod
    def of(cls, pairs: Sequence[tuple[float, float]], about: Measure) -> "Contrast | None":
        """Of both sides' values by seed; None if there are too few."""
        if len(pairs) < FEWEST:
            return None
        least = max(about.floor or 0.0, _ZERO)
        if not (about.share or about.signed) and all(min(pair) >= least for pair in pairs):
            return cls(Sample([math.log(one / other) for one, other in pairs]), True)
        bounds = (-1.0, 1.0) if about.share else UNBOUNDED
        return cls(Sample([one - other for one, other in pairs], bounds=bounds), False)

    @property
    def same(self) -> bool:
        """Whether both have the same value in every seed."""
        return self.sample.same and self.sample.mean == 0

    def interval(self, level: float) -> Estimate:
        """The difference, or the logarithm of the ratio."""
        return Estimate(0.0, 0.0, 0.0) if self.same else self.sample.interval(level)

    def shown(self, level: float) -> Estimate:
        """The difference, or the ratio."""
        found = self.interval(level)
        return Estimate(*(math.inf if end > 700 else math.exp(end) for end in found)) if self.ratio else found

    def order(self, level: float) -> int:
        """1: surely higher, −1: surely lower, 0: not decided."""
        found = self.interval(level)
        return (found.low > 0) - (found.high < 0)

    def seeds_to_decide(self, level: float, border: float = 0.0) -> int | None:
        """How many seeds would decide on which side of a border it is, if mean and spread are as in this sample; None:
        more than ten thousand."""
        mean, spread = abs(self.sample.mean - border), self.sample.deviation
        if not mean or not spread:
            return None
        return seeds_to_show(mean / spread, level)


def seeds_to_show(effect: float, level: float) -> int | None:
    """How many seeds show a mean of `effect` standard deviations; None: more than ten thousand.

    The least n with t · sd / √n + z · sd / √n <= mean: an interval that excludes 0 in a share `POWER` of campaigns. It
    takes the estimate's own spread as normal, which is a seed or so too few for small n.
    """
    z = statistics.NormalDist().inv_cdf(POWER)
    low, high = 1, _MOST
    if (_quantile(level, high) + z) / math.sqrt(high) > effect:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        enough = (_quantile(level, middle) + z) / math.sqrt(middle) <= effect
        low, high = (low, middle) if enough else (middle, high)
    return high


def _quantile(level: float, seeds: int) -> float:
    if seeds > 200:  # the normal distribution is close, and the exact quantile slow
        return statistics.NormalDist().inv_cdf((1 + level) / 2)
    return t_quantile(level, seeds - 1) if seeds > 1 else math.inf
