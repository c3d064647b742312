"""AEC, the arithmetic element constraint: which numbers of one element pass, and which of the two booleans.

As in the paper there are two arrays: disjoint ranges, and the values of equalities that lie in none of them. The rules
this file owns:

* Numbers compare exactly. A bound is a *cut* between numbers, just before or just after one of them, so that `< 20`
  and `<= 20` differ without a neighbouring number, which would take nine bytes to write.
* An element with several values is tested by the hull of its numbers. `p >= 1 and p <= 5` is one range here, but 0 and
  9 satisfy it together, one bound each. If the numbers satisfy the bounds, their hull meets the range. An equality is
  one constraint, which one value has to satisfy: no hull is needed.
* Bounds that no single number satisfies (`p < 3 and p > 5`) are kept as an empty range at the lower bound: the hull of
  numbers on both sides of it, such as 2 and 7, crosses it, and no single number does.
* With more than `MAX_RANGES` ranges the narrowest gaps are closed; more than `MAX_EQUALITIES` values become ranges.
"""

import functools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from roamcast.content.event import check_scalar
from roamcast.content.filter import Constraint, Operator
from roamcast.content.intervals import canonical
from roamcast.errors import ContentError

MAX_RANGES: Final = 32
"""Twice as many bounds fill the 64 bits of `Arithmetic.after`."""

MAX_EQUALITIES: Final = 64

Number = int | float

Cut = tuple[Number, int]
"""A place between numbers: just before the number (0), or just after it (1)."""

Range = tuple[Cut, Cut]
"""The numbers from the low cut to the high cut."""

LOWEST: Final[Cut] = (-math.inf, 0)
HIGHEST: Final[Cut] = (math.inf, 1)

BOOL_BITS: Final = {False: 1, True: 2}


class Arithmetic(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """What passes: numbers in a range, numbers equal to a value, booleans."""

    ranges: tuple[Number | None, ...] = ()
    """The bounds: low, high, low, high. None is no bound."""
    after: int = 0
    """Bit i is set if bound i lies just after its number."""
    equalities: tuple[Number, ...] = ()
    bools: int = 0
    """1 if false passes, plus 2 if true does."""

    def __post_init__(self) -> None:
        if len(self.ranges) % 2 or len(self.ranges) > 2 * MAX_RANGES or len(self.equalities) > MAX_EQUALITIES:
            raise ContentError(f"an AEC has at most {MAX_RANGES} ranges and {MAX_EQUALITIES} values")
        if not 0 <= self.after < 1 << len(self.ranges) or not 0 <= self.bools <= 3:
            raise ContentError("an AEC has bits that belong to no bound or to no boolean")
        for number in (*self.ranges, *self.equalities):
            if number is not None:
                check_scalar(number, "a number of an AEC")
        cuts = [cut for pair in self.cuts() for cut in pair]
        if cuts != sorted(cuts) or list(self.equalities) != sorted(self.equalities):
            raise ContentError("an AEC's ranges and values must ascend")

    def cuts(self) -> list[Range]:
        bounds = [
            (LOWEST, HIGHEST)[position & 1] if number is None else (number, self.after >> position & 1)
            for position, number in enumerate(self.ranges)
        ]
        return list(zip(bounds[::2], bounds[1::2], strict=True))

    def accepts(self, numbers: Sequence[Number]) -> bool:
        """Whether numbers of one event's element pass."""
        if not numbers:
            return False
        if self.ranges:
            least, most = (numbers[0], numbers[0]) if len(numbers) == 1 else (min(numbers), max(numbers))
            lows, highs = self._bounds
            # Ranges that begin at or before the hull's end, without those that end at or before its beginning.
            if bisect_right(lows, (most, 0)) > bisect_right(highs, (least, 0)):
                return True
        for number in numbers if self.equalities else ():
            place = bisect_left(self.equalities, number)
            if place < len(self.equalities) and self.equalities[place] == number:
                return True
        return False

    @functools.cached_property
    def _bounds(self) -> tuple[list[Cut], list[Cut]]:
        """The low cuts and the high cuts, both ascending: ranges are disjoint."""
        cuts = self.cuts()
        return [low for low, _ in cuts], [high for _, high in cuts]


def range_of(constraints: Iterable[Constraint]) -> Range:
    """The range of a conjunction's orderings on one element."""
    low, high = LOWEST, HIGHEST
    for constraint in constraints:
        assert constraint.value is not None
        number = canonical(constraint.value)
        assert isinstance(number, int | float)
        match constraint.operator:
            case Operator.LT:
                high = min(high, (number, 0))
            case Operator.LE:
                high = min(high, (number, 1))
            case Operator.GT:
                low = max(low, (number, 1))
            case _:
                low = max(low, (number, 0))
    return low, max(low, high)


def arithmetic(ranges: Iterable[Range], equalities: Iterable[Number], bools: int) -> Arithmetic:
    """The union of ranges and values, within the bounds of this file."""
    disjoint = _merged(ranges)
    outside = _outside(disjoint, equalities)
    if len(outside) > MAX_EQUALITIES:
        disjoint = _merged([*disjoint, *(((number, 0), (number, 1)) for number in outside)])
        outside = []
    if len(disjoint) > MAX_RANGES:
        disjoint = _closed(disjoint, MAX_RANGES)
        outside = _outside(disjoint, outside)
    bounds: list[Number | None] = []
    after = 0
    for low, high in disjoint:
        after |= low[1] << len(bounds)
        bounds.append(None if low == LOWEST else low[0])
        after |= (high != HIGHEST and high[1]) << len(bounds)
        bounds.append(None if high == HIGHEST else high[0])
    return Arithmetic(tuple(bounds), after, tuple(outside), bools)


def _merged(ranges: Iterable[Range]) -> list[Range]:
    """The ranges, disjoint and ascending: those that overlap or touch become one."""
    result: list[Range] = []
    for low, high in sorted(ranges):
        if result and low <= result[-1][1]:
            start, end = result[-1]
            result[-1] = start, max(end, high)
        else:
            result.append((low, high))
    return result


def _outside(ranges: Sequence[Range], numbers: Iterable[Number]) -> list[Number]:
    """The numbers that lie in none of the disjoint ranges, ascending, each once."""
    lows = [low for low, _ in ranges]
    result = []
    for number in sorted(set(numbers)):
        place = bisect_left(lows, (number, 1))  # the ranges before begin at or below the number
        if not place or ranges[place - 1][1] <= (number, 0):
            result.append(number)
    return result


def _closed(ranges: Sequence[Range], most: int) -> list[Range]:
    """Disjoint ranges with the narrowest gaps closed, so that `most` are left."""
    gaps = [_gap(before[1], after[0]) for before, after in pairwise(ranges)]
    widest = sorted(range(len(gaps)), key=lambda position: -gaps[position])[: most - 1]
    ends = [*sorted(widest), len(ranges) - 1]
    starts = [0, *(end + 1 for end in ends[:-1])]
    return [(ranges[start][0], ranges[end][1]) for start, end in zip(starts, ends, strict=True)]


def _gap(high: Cut, low: Cut) -> Number:
    return 0 if low[0] == high[0] else low[0] - high[0]  # infinity less infinity would not be a number
