"""Intervals over seeds: mean and Student's t, in one place for all.

The rule this file owns: the seeds are the sample. The standard deviation divides by n − 1, and the interval is
mean ± t · sd / √n with the quantile of Student's t for n − 1 degrees of freedom.
"""

import functools
import math
import statistics
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

LEVEL: Final = 0.95


class Estimate(NamedTuple):
    """A mean and its t-interval, which is unbounded if there is only one value."""

    mean: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    def __str__(self) -> str:
        return f"{self.mean:.4g} ± {self.half:.2g}"


def interval(values: Sequence[float], level: float = LEVEL) -> Estimate:
    """The mean of one or more values, and its interval."""
    n, mean = len(values), math.fsum(values) / len(values)
    if n < 2:
        return Estimate(mean, -math.inf, math.inf)
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    half = t_quantile(level, n - 1) * math.sqrt(variance / n)
    return Estimate(mean, mean - half, mean + half)


@functools.cache
def t_quantile(level: float, freedom: int) -> float:
    """The t within which a share `level` of Student's distribution lies, on both sides of 0."""
    if not (0 < level < 1 and freedom >= 1):
        raise ValueError(f"a t-quantile needs 0 < level < 1 and freedom >= 1, not {level} and {freedom}")
    low, high = 0.0, math.pi / 2
    # Bisection in θ, which unlike t is bounded: it ends when no double lies between.
    while low < (middle := (low + high) / 2) < high:
        if _within(middle, freedom) < level:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom) * math.tan(middle)


def large_t_quantile(level: float, freedom: Any) -> Any:  # noqa: ANN401  # a number or a column
    """The same for 500 degrees of freedom or more, to ten digits: 26.7.5 of Abramowitz and Stegun. Of a number, or of
    what is calculated with like one (a column of a table)."""
    z = statistics.NormalDist().inv_cdf((1 + level) / 2)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + (first + (second + third / freedom) / freedom) / freedom


def t_tail(t: float, freedom: int) -> float:
    """The share of Student's distribution above t."""
    within = _within(math.atan(abs(t) / math.sqrt(freedom)), freedom)
    return max((1 - within) / 2 if t >= 0 else (1 + within) / 2, 0.0)


def _within(theta: float, freedom: int) -> float:
    """P(|T| <= t) for t = √ν tan θ: the finite sums 26.7.3 and 26.7.4 of Abramowitz and Stegun."""
    sine, square = math.sin(theta), math.cos(theta) ** 2
    odd = freedom % 2
    term = math.cos(theta) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(2 + odd, freedom - 1, 2):
        term *= (k - 1) / k * square
        total += term
    return (theta + sine * total) * 2 / math.pi if odd else sine * total
