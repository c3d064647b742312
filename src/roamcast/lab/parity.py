"""Whether two worlds agree: the same number measured in repeated runs of each.

The rule this file owns: two samples agree if the mean of each lies in the 95 % t-interval of the other's mean. A sample
without spread has an interval of no width; then the other's must have the same mean, up to rounding.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_T95: Final = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Two-sided 95 % quantiles of Student's t for 1 to 10 degrees of freedom."""
_ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class Interval:
    """A mean and half the width of its 95 % interval."""

    mean: float
    half: float

    @classmethod
    def of(cls, sample: Sequence[float]) -> "Interval":
        if not 2 <= len(sample) <= len(_T95) + 1:
            raise ValueError(f"an interval is of 2 to {len(_T95) + 1} runs, not of {len(sample)}")
        return cls(
            math.fsum(sample) / len(sample),
            _T95[len(sample) - 2] * statistics.stdev(sample) / math.sqrt(len(sample)),
        )

    def has(self, value: float) -> bool:
        return abs(value - self.mean) <= self.half + _ROUNDING * max(1.0, abs(self.mean))

    def __str__(self) -> str:
        return f"{self.mean:.4g} ± {self.half:.2g}"


def agree(one: Sequence[float], other: Sequence[float]) -> bool:
    first, second = Interval.of(one), Interval.of(other)
    return first.has(second.mean) and second.has(first.mean)
