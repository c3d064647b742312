"""How strong the seeds' evidence is that a number lies above or below a value.

The rules this file owns:

* Evidence is a one-sided p-value: how often seeds would show it so clearly if it were not true. `interval` says the
  same in numbers: a value outside a 95 % interval has a p-value below 2.5 %.
* No variance does not mean certainty. A sample of one seed, or of seeds that all have the same value, is no evidence,
  unless the number is *exact*: the same whatever the seed, by construction. If it has *bounds*, as a share has, n equal
  values are evidence after all: with a mean of m, a share can be 1 with a chance of m at most, and n times m^n.
* The greatest (or least) of several numbers is chosen by the data that judges it. The greatest lies above a value if
  one of n does at 1/n of the p-value (Bonferroni), and below it if all of them do. So the interval includes the choice.
  A bootstrap of the greatest would be wrong too often: with five seeds and twenty numbers, all equal, 6 % of the time
  instead of 2.5 % (`bench/judge.py`).
* A number read off where a curve reaches a value is bootstrapped (`bootstrap.py`); a draw in which the value is never
  reached counts against everything.
"""

import bisect
import math
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import numpy as np

from roamcast.statistics.bootstrap import Array
from roamcast.statistics.intervals import Estimate, interval, t_tail

ROUNDING: Final = 1e-9
"""Values closer than this are equal: less than a nanosecond, a billionth of a share."""
_FARTHEST: Final = 100.0
"""Shares of a rise are searched for between minus and plus this."""

Bounds = tuple[float, float]
"""The least and the greatest value that a number can have."""
UNBOUNDED: Final[Bounds] = (-math.inf, math.inf)


class Evidence(Protocol):
    """Evidence about one number. `strict` excludes the value itself, which only matters for exact numbers."""

    @property
    def mean(self) -> float: ...

    def above(self, value: float, strict: bool = True) -> float: ...

    def below(self, value: float, strict: bool = True) -> float: ...

    def interval(self, level: float) -> Estimate: ...


class Sample:
    """The mean of a number measured with each seed."""

    def __init__(self, values: Sequence[float], exact: bool = False, bounds: Bounds = UNBOUNDED) -> None:
        self.values = tuple(values)
        self._least, self._greatest = bounds
        self.mean = math.fsum(values) / len(values)
        spread = max(values) - min(values)
        self.same = spread <= ROUNDING * max(1.0, abs(self.mean))
        self.exact = exact and self.same
        self.deviation = 0.0
        if not self.same:
            squares = math.fsum((value - self.mean) ** 2 for value in values)
            self.deviation = math.sqrt(squares / (len(values) - 1))
        self._error = self.deviation / math.sqrt(len(values))

    def above(self, value: float, strict: bool = True) -> float:
        if self.exact:
            return 0.0 if self.mean > value or (self.mean == value and not strict) else 1.0
        if value < self._least:
            return 0.0
        if self.same:
            return self._chance(value, self._least)
        return t_tail((self.mean - value) / self._error, len(self.values) - 1)

    def below(self, value: float, strict: bool = True) -> float:
        if self.exact:
            return 0.0 if self.mean < value or (self.mean == value and not strict) else 1.0
        if value > self._greatest:
            return 0.0
        if self.same:
            return self._chance(value, self._greatest)
        return t_tail((value - self.mean) / self._error, len(self.values) - 1)

    def interval(self, level: float) -> Estimate:
        if self.exact:
            return Estimate(self.mean, self.mean, self.mean)
        if self.same:
            part = ((1 - level) / 2) ** (1 / len(self.values))
            low, high = (part * self.mean + (1 - part) * bound for bound in (self._least, self._greatest))
            return Estimate(self.mean, low, high)
        found = interval(self.values, level)
        return Estimate(found.mean, max(found.low, self._least), min(found.high, self._greatest))

    def _chance(self, value: float, bound: float) -> float:
        """How often, at most, all seeds are as far from the bound as they are, if the mean is only as far as `value`.

        The farther they are, the fewer can be: the share of such seeds times their distance is at most the mean's.
        """
        if math.isinf(bound) or self.mean == bound:
            return 1.0
        return min((value - bound) / (self.mean - bound), 1.0) ** len(self.values)


class Chosen:
    """The greatest, over the rows, of the least in each row.

    One column: the greatest of several numbers. One row: the least of several.
    """

    def __init__(self, rows: Sequence[Sequence[Sample]]) -> None:
        self._rows = rows
        self._columns = len(rows[0])
        leasts = [min(range(self._columns), key=lambda column: row[column].mean) for row in rows]
        row = max(range(len(rows)), key=lambda index: rows[index][leasts[index]].mean)
        self.place = row, leasts[row]
        """Where it is, by the means: row and column."""
        self.mean = rows[row][leasts[row]].mean

    def above(self, value: float, strict: bool = True) -> float:
        best = min(max(sample.above(value, strict) for sample in row) for row in self._rows)
        return min(1.0, len(self._rows) * best)

    def below(self, value: float, strict: bool = True) -> float:
        best = min(max(row[column].below(value, strict) for row in self._rows) for column in range(self._columns))
        return min(1.0, self._columns * best)

    def interval(self, level: float) -> Estimate:
        lows = 1 - (1 - level) / len(self._rows)
        highs = 1 - (1 - level) / self._columns
        low = max(min(sample.interval(lows).low for sample in row) for row in self._rows)
        high = min(max(row[column].interval(highs).high for row in self._rows) for column in range(self._columns))
        return Estimate(self.mean, low, high)


class ShareOfRise:
    """The greatest part of a rise, as a share of it; parts and rise by seed, in the same order.

    For a rise > 0, part / rise > x means part − x · rise > 0: a plain mean over seeds, so no quotient of two uncertain
    numbers is needed (Fieller). The rise itself must be significant.
    """

    def __init__(self, parts: Sequence[Sequence[float]], rise: Sequence[float], exact: bool = False) -> None:
        self._parts, self._rise, self._exact = parts, rise, exact
        whole = Sample(rise, exact)
        self._no_rise = whole.above(0.0)
        means = [math.fsum(part) / len(part) for part in parts]
        self.place = max(range(len(parts)), key=means.__getitem__)
        self.mean = means[self.place] / whole.mean

    def _at(self, share: float) -> Chosen:
        lines = ([one - share * whole for one, whole in zip(part, self._rise, strict=True)] for part in self._parts)
        return Chosen([[Sample(line, self._exact)] for line in lines])

    def above(self, value: float, strict: bool = True) -> float:
        return max(self._no_rise, self._at(value).above(0.0, strict))

    def below(self, value: float, strict: bool = True) -> float:
        return max(self._no_rise, self._at(value).below(0.0, strict))

    def interval(self, level: float) -> Estimate:
        alpha = (1 - level) / 2
        low = _last(lambda share: self.above(share) <= alpha, self.mean, -_FARTHEST)
        high = _last(lambda share: self.below(share) <= alpha, self.mean, _FARTHEST)
        return Estimate(self.mean, low, high)


def _last(shown: Callable[[float], bool], near: float, far: float) -> float:
    """The value closest to `near` for which `shown` is true; infinite if it is not true even for `far`."""
    if not shown(far):
        return math.copysign(math.inf, far)
    for _ in range(35):
        middle = (near + far) / 2
        near, far = (near, middle) if shown(middle) else (middle, far)
    return far


class BootstrapDraws:
    """A number computed in every draw; NaN where it does not exist."""

    def __init__(self, mean: float, draws: Array, exact: bool = False) -> None:
        self.mean = mean
        absent = np.isnan(draws)
        self._lows = np.sort(np.where(absent, -np.inf, draws))
        self._highs = np.sort(np.where(absent, np.inf, draws))
        same = bool(self._highs[-1] - self._lows[0] <= ROUNDING * max(1.0, abs(mean)))
        self._fixed = Sample([mean, mean], exact) if same else None

    def above(self, value: float, strict: bool = True) -> float:
        if self._fixed:
            return self._fixed.above(value, strict)
        return (1 + bisect.bisect_right(self._lows, value)) / (1 + len(self._lows))

    def below(self, value: float, strict: bool = True) -> float:
        if self._fixed:
            return self._fixed.below(value, strict)
        return (1 + len(self._highs) - bisect.bisect_left(self._highs, value)) / (1 + len(self._highs))

    def interval(self, level: float) -> Estimate:
        if self._fixed:
            return self._fixed.interval(level)
        beyond = int((1 - level) / 2 * (1 + len(self._lows)))
        if not beyond:
            return Estimate(self.mean, -math.inf, math.inf)
        return Estimate(self.mean, float(self._lows[beyond - 1]), float(self._highs[-beyond]))
