"""Maps values to positions on a drawing, and selects which values get a label."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from roamcast.report.chart import Chart
from roamcast.report.numbers import number, tick_texts, value_text

Place = Callable[[Any], float]

_ROOM: Final = 1.5
"""How far beyond the outermost mean an axis from 0 may reach to show intervals."""
_NEAR_ZERO: Final = 0.3
"""An axis that would begin below this part of its end begins at 0."""
_ASIDE: Final = 4.0
"""How far a point may be beside its x, so that bars do not hide each other: 1 % of the axis, which is 400 long."""
MOST_BARS: Final = 4
"""With more curves, intervals are bands: so many bars would hide each other."""
MANY: Final = 8
"""From this many curves on, each has its name at its end."""
_CLOSEST: Final = 15.0
"""Values of x that are closer than this are spaced evenly."""
_FAR_APART: Final = 30.0
"""Curves that differ by more than this many times somewhere have a logarithmic y axis first."""
_CAP: Final = 4.0
_INSET: Final = 20.0
"""The distance between the frame and the first and last value of x."""
_MOST_TICKS: Final = 7


@dataclass(frozen=True)
class YScale:
    """A y axis: what it is called on its switch, its ticks, and their texts."""

    name: str
    ticks: tuple[float, ...]
    logarithmic: bool = False

    @property
    def texts(self) -> list[str]:
        return [number(tick) for tick in self.ticks] if self.logarithmic else tick_texts(list(self.ticks))

    def place(self, start: float, end: float) -> Place:
        measure: Place = _log if self.logarithmic else float
        return _linear(measure, measure(self.ticks[0]), measure(self.ticks[-1]), start, end)


def _log(value: float) -> float:
    """The logarithm. An end of an interval may be 0 or below: that is drawn far below any frame."""
    return math.log10(value) if value > 0 else -1e6


def nice_step(span: float, parts: int = 5) -> float:
    """The smallest of 1, 2, 2.5 and 5 times a power of ten that covers the span in `parts` steps."""
    magnitude = 10.0 ** math.floor(math.log10(span / parts))
    return next(step * magnitude for step in (1, 2, 2.5, 5, 10) if step * magnitude * parts >= span * (1 - 1e-9))


def y_scales(chart: Chart) -> list[YScale]:
    """The axes that a reader can choose from, the one that fits the data first."""
    fitted = YScale("Fit", tuple(fitted_ticks(chart)))
    whole = YScale("0–1", (0, 0.2, 0.4, 0.6, 0.8, 1)) if chart.whole else YScale("From 0", tuple(zero_ticks(chart)))
    scales = [fitted] if fitted.ticks == whole.ticks else [fitted, whole]
    ticks = log_ticks(chart)
    if not ticks:
        return scales
    log = YScale("Log", tuple(ticks), logarithmic=True)
    return [log, *scales] if chart.by_ratio and _far_apart(chart) else [*scales, log]


def _far_apart(chart: Chart) -> bool:
    """Whether two curves differ by more than 30 times at some x."""
    levels = [curve.rows[0].mean for curve in chart.curves if curve.level]
    for value in chart.x_values:
        here = [row.mean for curve in chart.curves if not curve.level for row in curve.rows if chart.x_of(row) == value]
        means = [mean for mean in (*here, *levels) if mean is not None]
        if means and max(means) > _FAR_APART * min(means):
            return True
    return False


def _means_and_ends(chart: Chart) -> tuple[list[float], list[float]]:
    rows = chart.rows
    means = [row.mean for row in rows if row.mean is not None]
    return means, [end for row in rows for end in (row.low, row.high) if end is not None]


def fitted_ticks(chart: Chart) -> list[float]:
    """Ticks around the means and their intervals; from 0 if that is near, and including 0 for differences.

    An interval far wider than the means are apart, as of two seeds that disagree, does not widen the axis: it is cut at
    the frame.
    """
    means, ends = _means_and_ends(chart)
    if not means:
        return [0, 1]
    if chart.plan.against is not None:
        means = [*means, 0.0]
    least, most = min(means), max(means)
    room = max(most - least, max(abs(least), abs(most)) / 4)
    low, high = max(min([least, *ends]), least - room), min(max([most, *ends]), most + room)
    if 0 < low <= _NEAR_ZERO * high or low == high > 0:
        low = 0.0
    if low == high:
        low, high = (0.0, 1.0) if high == 0 else (low, 0.0)
    return _round_ticks(low, high)


def zero_ticks(chart: Chart) -> list[float]:
    """Ticks from zero, or below it if a mean is negative, to above the means and their intervals."""
    found, ends = _means_and_ends(chart)
    means = [0.0, *found]
    least, most = min(means), max(means)
    low = max(min([least, *ends]), _ROOM * least)
    high = min(max([most, *ends]), _ROOM * most)
    return _round_ticks(low, 1.0 if low == high else high)


def _round_ticks(low: float, high: float) -> list[float]:
    step = nice_step(high - low)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(step * index, 12) for index in range(first, last + 1)]


def log_ticks(chart: Chart) -> list[float]:
    """1, 2 and 5 times powers of ten around the values, or the powers alone; none if a mean has no logarithm."""
    means, ends = _means_and_ends(chart)
    if not means or min(means) <= 0:
        return []
    low = max(min([*means, *(end for end in ends if end > 0)]), min(means) / 10)
    high = min(max([*means, *ends]), 10 * max(means))
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8), (1, 2, 5), (1,)):
        ticks = [float(f"{factor}e{power}") for power in powers for factor in factors]
        below = max((tick for tick in ticks if tick <= low), default=ticks[0])
        above = min((tick for tick in ticks if tick >= high), default=ticks[-1])
        kept = [tick for tick in ticks if below <= tick <= above]
        if len(kept) <= _MOST_TICKS:
            break
    return kept if len(kept) > 1 else [kept[0], 10 * kept[0]]


# --- x --------------------------------------------------------------------------------------------------------------


def x_place(chart: Chart, left: float, right: float) -> Place:
    """Numbers by size (or its logarithm), names evenly; a single value is in the middle. Numbers that are so close that
    their bars would overlap are placed evenly too: `is_even` tells."""
    return _x_place(chart, left + _INSET, right - _INSET, evenly=chart.categorical or is_even(chart, right - left))


def is_even(chart: Chart, width: float) -> bool:
    """Whether numbers are placed evenly, because by size they would be too close."""
    if chart.categorical or _swept(chart) < 2:
        return False
    by_size, evenly = (_gap(chart, _x_place(chart, _INSET, width - _INSET, evenly=how)) for how in (False, True))
    return by_size < min(_CLOSEST, evenly)


def _x_place(chart: Chart, start: float, end: float, evenly: bool) -> Place:
    if evenly:
        order = {value_text(value): index for index, value in enumerate(chart.x_values)}
        return _linear(lambda value: order[value_text(value)], 0, len(order) - 1, start, end)
    measure: Place = math.log10 if chart.logarithmic else float
    ends = [measure(value) for value in chart.x_values] or [0.0]
    return _linear(measure, min(ends), max(ends), start, end)


def linear(first: float, last: float, start: float, end: float) -> Place:
    return _linear(float, first, last, start, end)


def _linear(measure: Place, first: float, last: float, start: float, end: float) -> Place:
    if first == last:
        return lambda value: (start + end) / 2
    return lambda value: start + (measure(value) - first) / (last - first) * (end - start)


def _swept(chart: Chart) -> int:
    return sum(not curve.level for curve in chart.curves)


def _gap(chart: Chart, place: Place) -> float:
    """The least distance between two values of x."""
    places = [place(value) for value in chart.x_values]
    return min((after - before for before, after in itertools.pairwise(places)), default=math.inf)


def has_bands(chart: Chart) -> bool:
    return _swept(chart) > MOST_BARS


def _step(chart: Chart) -> float:
    """How far apart curves at the same x are."""
    return 0.0 if has_bands(chart) or _swept(chart) < 2 else 2 * _ASIDE / (_swept(chart) - 1)


def asides_of(chart: Chart) -> list[float]:
    """How far each curve (levels left out) is beside its place, so that bars at the same x do not hide each other."""
    count, step = _swept(chart), _step(chart)
    return [step * (index - (count - 1) / 2) for index in range(count)]


def cap_of(chart: Chart) -> float:
    """Half the width of an interval's cap: those of neighbours do not touch."""
    return _CAP if _swept(chart) < 2 else min(_CAP, 0.4 * _step(chart))


def apart(places: Sequence[float], least: float, low: float, high: float) -> list[float]:
    """Moves places apart by at least `least`, as little as possible and between low and high if there is room."""
    order = sorted(range(len(places)), key=places.__getitem__)
    moved = list(places)
    for before, at in itertools.pairwise(order):
        moved[at] = max(moved[at], moved[before] + least)
    limit = high
    for at in reversed(order):
        moved[at] = min(moved[at], limit)
        limit = moved[at] - least
    return [max(low, place) for place in moved]


def labelled(values: Sequence[Any], place: Place, width: float) -> list[Any]:
    """The values whose labels fit side by side, from the left; `width` is that of a letter."""
    kept: list[Any] = []
    free = -math.inf
    for value in values:
        half = len(value_text(value)) * width / 2
        if place(value) - half >= free:
            kept.append(value)
            free = place(value) + half + width
    return kept
