"""From values to places on a drawing, and which values get a label."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from roamcast.report.chart import Chart
from roamcast.report.numbers import value_text

Place = Callable[[Any], float]

_ROOM: Final = 1.5
"""How far beyond the outermost mean an axis may go for the sake of intervals."""
_ASIDE: Final = 5.0
"""Between two curves at the same x, at most."""


def nice_step(span: float, parts: int = 5) -> float:
    """The smallest of 1, 2, 2.5 and 5 times a power of ten that covers the span in so many parts."""
    magnitude = 10.0 ** math.floor(math.log10(span / parts))
    return next(step * magnitude for step in (1, 2, 2.5, 5, 10) if step * magnitude * parts >= span * (1 - 1e-9))


def y_ticks(chart: Chart) -> list[float]:
    """From zero, or below it where a mean is, to above the means and their intervals; shares of a whole from 0 to 1.

    An interval far wider than its mean, as of two seeds that disagree, does not make the axis: it is cut at the frame.
    """
    if chart.whole:
        return [0, 0.2, 0.4, 0.6, 0.8, 1]
    rows = [row for curve in chart.curves for row in curve.rows]
    means = [0.0, *(row.mean for row in rows if row.mean is not None)]
    ends = [end for row in rows for end in (row.low, row.high) if end is not None]
    least, most = min(means), max(means)
    low = max(min([least, *ends]), _ROOM * least)
    high = min(max([most, *ends]), _ROOM * most)
    if low == high:
        high = 1.0
    step = nice_step(high - low)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [step * index for index in range(first, last + 1)]


def x_place(chart: Chart, left: float, right: float) -> Place:
    """Numbers by size (or its logarithm), names evenly; a single value stands in the middle."""
    if chart.categorical:
        order = {value_text(value): index for index, value in enumerate(chart.x_values)}
        return _linear(lambda value: order[value_text(value)], 0, len(order) - 1, left, right)
    measure: Place = math.log10 if chart.logarithmic else float
    ends = [measure(value) for value in chart.x_values] or [0.0]
    return _linear(measure, min(ends), max(ends), left, right)


def linear(first: float, last: float, start: float, end: float) -> Place:
    return _linear(float, first, last, start, end)


def _linear(measure: Place, first: float, last: float, start: float, end: float) -> Place:
    if first == last:
        return lambda value: (start + end) / 2
    return lambda value: start + (measure(value) - first) / (last - first) * (end - start)


def asides_of(chart: Chart, place: Place) -> list[float]:
    """How far each curve (levels left out) stands beside its place, so that bars at the same x do not hide each other.

    All together take up at most half of the way to the next value.
    """
    count = sum(not curve.level for curve in chart.curves)
    places = [place(value) for value in chart.x_values]
    gap = min((after - before for before, after in itertools.pairwise(places)), default=math.inf)
    step = min(_ASIDE, gap / 2 / max(1, count))
    return [step * (index - (count - 1) / 2) for index in range(count)]


def labelled(values: Sequence[Any], place: Place, width: float) -> list[Any]:
    """The values whose labels fit beside each other, from the left; a letter is so wide."""
    kept: list[Any] = []
    free = -math.inf
    for value in values:
        half = len(value_text(value)) * width / 2
        if place(value) - half >= free:
            kept.append(value)
            free = place(value) + half + width
    return kept
