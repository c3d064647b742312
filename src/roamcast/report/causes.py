"""Why pairs were missed, in one figure: one bar per variant and place, stacked from the shares of its causes.

The shares come from the measures `cause_*` (docs/measures.md); a whole bar is the share of pairs that were missed.
"""

import math
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from roamcast.campaign.define.described import ReportedExperiment
from roamcast.report.chart import variants_of, x_values
from roamcast.report.looks import colour_of
from roamcast.report.markup import Markup, tag
from roamcast.report.numbers import number, tick_texts, value_text
from roamcast.report.plans import CAUSE, swept_axes
from roamcast.report.scale import Place, linear, nice_step
from roamcast.report.source import SummaryRow, key

OTHER: Final = "other causes"
TITLE: Final = "Why events were missed"
X_TITLE: Final = "Share of pairs missed"
_MOST_CAUSES: Final = 8
_MOST_BARS: Final = 24
"""With more, a variant has one bar, of its mean over all points."""
_WIDTH, _LEFT, _RIGHT = 480, 62, 468
_ROW, _BAR = 22, 14
_LETTER: Final = 7
"""Width of a letter of a label, at most, on average."""
_LETTERS: Final = 48
"""Most letters of a variant's name on one line, at the size it has on a phone."""


@dataclass(frozen=True)
class Bar:
    """The shares of one variant at one place, in the order of the causes."""

    variant: str
    axis: str
    """Empty: over all points."""
    value: str
    shares: tuple[float, ...]

    @property
    def name(self) -> str:
        return f"{self.variant}, {self.axis} {self.value}" if self.axis else self.variant


@dataclass(frozen=True)
class Causes:
    """The bars of an experiment, in its order, and what their parts stand for, the largest first."""

    causes: tuple[str, ...]
    bars: tuple[Bar, ...]
    seeds: int = 0
    """Over how many seeds, at most, a bar is the mean."""

    @property
    def ticks(self) -> list[float]:
        most = max(sum(bar.shares) for bar in self.bars)
        step = nice_step(most, 4)
        return [round(step * index, 12) for index in range(math.ceil(most / step - 1e-9) + 1)]


def causes_of(experiment: ReportedExperiment, rows: Iterable[SummaryRow]) -> Causes | None:
    """The bars from the rows of the summary; None if no causes are known, or nothing was missed."""
    mine = [row for row in rows if row.experiment == experiment.name and row.measure.startswith(CAUSE)]
    known = [row for row in mine if row.mean is not None]
    totals: dict[str, float] = {}
    for row in known:
        totals[row.measure] = totals.get(row.measure, 0.0) + (row.mean or 0.0)
    found = sorted((name for name, total in totals.items() if total > 0), key=lambda name: -totals[name])
    if not found:
        return None
    shown = found if len(found) <= _MOST_CAUSES else found[: _MOST_CAUSES - 1]
    bars = [
        Bar(variant, axis, value, tuple(_shares(group, shown, found)))
        for variant, axis, value, group in _groups(experiment, known)
    ]
    words = [name.removeprefix(CAUSE).replace("_", " ") for name in shown]
    return Causes((*words, *([OTHER] if len(shown) < len(found) else [])), tuple(bars), max(row.n for row in known))


def _shares(rows: list[SummaryRow], shown: list[str], found: list[str]) -> Iterator[float]:
    def mean(name: str) -> float:
        values = [row.mean for row in rows if row.measure == name and row.mean is not None]
        return sum(values) / len(values) if values else 0.0

    yield from map(mean, shown)
    if len(shown) < len(found):
        yield sum(map(mean, found[len(shown) :]))


def _groups(experiment: ReportedExperiment, rows: list[SummaryRow]) -> list[tuple[str, str, str, list[SummaryRow]]]:
    """(variant, first axis, its value, rows)."""
    variants = variants_of(experiment, rows)
    axes = swept_axes(experiment, rows)
    by_variant = [(name, "", "", [row for row in rows if row.variant == name]) for name in variants]
    whole = [group for group in by_variant if group[3]]
    if not axes:
        return whole
    x = axes[0].label
    placed = [
        (name, *((x, value_text(value)) if x in group[0].axes else ("", "")), group)
        for name, _, _, mine in whole
        for value in (x_values(experiment, x, mine) or [None])
        if (group := [row for row in mine if x not in row.axes or key(row.axes[x]) == key(value)])
    ]
    return placed if len(placed) <= _MOST_BARS else whole


# --- In the page ----------------------------------------------------------------------------------------------------


def drawing(causes: Causes) -> Markup:
    """Horizontal bars, those of a variant together under its name."""
    variants = list(dict.fromkeys(bar.variant for bar in causes.bars))
    heads, places, top = [], [], 8
    for variant in variants:
        for line in textwrap.wrap(variant, _LETTERS) or [variant]:
            heads.append(tag("text", line, x=0, y=top + 13, class_="tick strong"))
            top += _ROW
        for bar in (bar for bar in causes.bars if bar.variant == variant):
            places.append((bar, top))
            top += _ROW
    left = _left(causes)
    x = linear(0, causes.ticks[-1], left, _RIGHT)
    segments = [
        tag("g", *_segments(causes, index, places, x), class_=f"curve {colour_of(index)}", data_curve=index)
        for index in range(len(causes.causes))
    ]
    labels = [tag("text", bar.value, x=left - 7, y=at + 12, class_="tick end") for bar, at in places if bar.axis]
    return tag(
        "svg",
        _axis(causes, x, top),
        *heads,
        *labels,
        *segments,
        class_="chart",
        viewBox=f"0 0 {_WIDTH} {top + 46}",
        role="group",
        aria_label=TITLE,
    )


def _left(causes: Causes) -> int:
    """Where bars begin: after the longest value of the axis, which may be a text."""
    return max(_LEFT, min(_RIGHT // 2, 12 + _LETTER * max(len(bar.value) for bar in causes.bars)))


def _axis(causes: Causes, x: Place, bottom: int) -> Markup:
    ticks = causes.ticks
    lines = [tag("path", d=f"M{x(tick):g} 4V{bottom}", class_="grid") for tick in ticks]
    texts = [
        tag("text", text, x=f"{x(tick):g}", y=bottom + 18, class_="tick middle")
        for tick, text in zip(ticks, tick_texts(ticks), strict=True)
    ]
    title = tag("text", X_TITLE, x=(_left(causes) + _RIGHT) // 2, y=bottom + 38, class_="title middle")
    return tag("g", *lines, *texts, title, class_="axis", aria_hidden="true")


def _segments(causes: Causes, index: int, places: list[tuple[Bar, int]], x: Place) -> Iterator[Markup]:
    for bar, top in places:
        if not (share := bar.shares[index]):
            continue
        start, end = x(sum(bar.shares[:index])), x(sum(bar.shares[: index + 1]))
        label = f"{bar.name}; {causes.causes[index]}: {number(share)} of the pairs; missed: {number(sum(bar.shares))}"
        rect = tag("rect", x=f"{start:.2f}", y=top, width=f"{end - start:.2f}", height=_BAR, class_="mark")
        yield tag("g", rect, class_="point", tabindex=0, role="img", aria_label=label)


def legend_marks(index: int) -> Markup:
    """The legend's mark for a cause: a piece of a bar."""
    return tag("g", tag("rect", x=4, y=-6, width=20, height=12, class_="mark"), class_=f"curve {colour_of(index)}")
