"""Small multiples: one panel per cell or per value of the first axis, all with the same scales."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from roamcast.report.markup import Markup, join, tag
from studies.map.paint import COLOURS, colour, legend, mark, picture, text
from studies.map.tables import Atlas, Row
from studies.map.winners import COST, THRESHOLD

DEADLINE: Final = 10
_GAP: Final = 14
_LEFT: Final = 66
_TOP: Final = 100
_UNITS: Final = {"speed": " m/s"}


@dataclass(frozen=True)
class Scale:
    """Maps numbers to positions within a panel."""

    low: float
    high: float
    length: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        low, high, value = (math.log(one) if self.logarithmic else one for one in (self.low, self.high, value))
        return (value - low) / (high - low) * self.length

    def ticks(self) -> list[float]:
        if not self.logarithmic:
            return [self.low + (self.high - self.low) * part / 4 for part in range(5)]
        decades = range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)
        return [10.0**power for power in decades]


@dataclass(frozen=True)
class Sheet:
    """Panels in rows and columns, each with the axes x and y."""

    title: str
    x_title: str
    y_title: str
    x: Scale
    y: Scale
    x_labels: tuple[str, ...] = ()
    """Labels instead of ticks: x is the index of one."""

    def draw(self, panels: Sequence[Sequence[tuple[str, Markup]]], protocols: Sequence[str]) -> str:
        wide, high = self.x.length + _GAP, self.y.length + 34
        names, least = legend(protocols, 16, 48)
        width = max(_LEFT + max(map(len, panels)) * wide + 12, least)
        parts = [
            tag("g", self._frame(name, row, column, len(panels)), content, transform=self._at(row, column, wide, high))
            for row, line in enumerate(panels)
            for column, (name, content) in enumerate(line)
        ]
        bottom = _TOP + len(panels) * high
        return picture(
            self.title,
            width,
            bottom + 34,
            names,
            *parts,
            text(self.x_title, _LEFT, bottom + 16, "head"),
            text(self.y_title, 16, _TOP - 24, "head"),
        )

    @staticmethod
    def _at(row: int, column: int, wide: float, high: float) -> str:
        return f"translate({_LEFT + column * wide:g} {_TOP + row * high:g})"

    def _frame(self, name: str, row: int, column: int, rows: int) -> Markup:
        """A panel's frame. Ticks are at the left of the first column and below the last row."""
        parts = [text(name, 0, -6, "small")]
        for tick in self.y.ticks():
            up = self.up(tick)
            parts.append(tag("path", d=f"M0 {up:.1f}H{self.x.length:g}", class_="rule"))
            if column == 0:
                parts.append(text(f"{tick:g}", -6, up + 4, "end small"))
        places = enumerate(self.x_labels) if self.x_labels else ((tick, f"{tick:g}") for tick in self.x.ticks())
        for tick, label in places:
            across = self.x(tick)
            parts.append(tag("path", d=f"M{across:.1f} 0V{self.y.length:g}", class_="rule"))
            if row == rows - 1:
                parts.append(text(label, across, self.y.length + 14, "middle small"))
        parts.append(tag("rect", width=f"{self.x.length:g}", height=f"{self.y.length:g}", class_="frame"))
        return join(*parts)

    def up(self, value: float) -> float:
        return self.y.length - self.y(min(max(value, self.y.low), self.y.high))


def fronts(found: Atlas) -> str:
    """Delivery over cost, setting by setting, in each cell; dominated settings are hollow."""
    measure = f"delivered_of_possible_{DEADLINE}"
    costs_ = [float(row[COST]) for row in found.settings if row[COST]]
    sheet = Sheet(
        f"Delivery and cost in every cell: share of what was possible within {DEADLINE} s",
        "time on the air for each delivery (ms); filled: the Pareto set of delivery, cost and delay",
        "delivered of possible",
        Scale(_decade(min(costs_), down=True), _decade(max(costs_)), 150, logarithmic=True),
        Scale(0.0, 1.0, 130),
    )

    def content(rows: Sequence[Row]) -> Markup:
        marks = [
            mark(row["protocol"], sheet.x(float(row[COST])), sheet.up(float(row[measure])), hollow=not row["pareto"])
            for row in sorted(rows, key=lambda row: row["pareto"])
            if row[COST] and row[measure]
        ]
        line = tag("path", d=f"M0 {sheet.up(THRESHOLD):.1f}H{sheet.x.length:g}", stroke="#222", stroke_dasharray="3 3")
        return join(line, *marks)

    return sheet.draw(list(_by_cell(found, found.settings, content)), _protocols(found.settings))


def costs(found: Atlas) -> str:
    """What each protocol costs when it delivers 95 % of what was possible."""
    rows = [row for row in found.standings if row["deadline"] == str(DEADLINE) and row["cost"]]
    share = f"{THRESHOLD:.0%}".replace("%", " %")
    return _curves(
        found,
        rows,
        "cost",
        f"Cost at equal delivery: {share} of what was possible within {DEADLINE} s",
        "time on the air for each delivery (ms)",
    )


def delays(found: Atlas) -> str:
    """The restricted mean delay; of a protocol with a knob, its middle setting."""
    settings: dict[str, list[str]] = {}
    for row in found.settings:
        known = settings.setdefault(row["protocol"], [])
        known += [] if row["setting"] in known else [row["setting"]]
    middle = {known[len(known) // 2] for known in settings.values()}
    named = [known[len(known) // 2] for known in settings.values() if len(known) > 1]
    return _curves(
        found,
        [row for row in found.settings if row["setting"] in middle],
        f"delay_restricted_{DEADLINE}",
        f"Mean delay, with {DEADLINE} s for what came later or never" + (f" ({', '.join(named)})" if named else ""),
        "mean delay (s)",
    )


def _curves(found: Atlas, rows: Sequence[Row], column: str, title: str, y_title: str) -> str:
    """One panel per value of the first axis, one curve per protocol over the last axis."""
    over = found.axes[-1]
    labels = tuple(sorted({row[over] for row in found.cells}, key=float))
    values = [float(row[column]) for row in rows if row[column]] or [1.0]
    sheet = Sheet(
        title,
        f"mean {over}" if over == "degree" else over,
        y_title,
        Scale(-0.4, len(labels) - 0.6, 230),
        Scale(_decade(min(values), down=True), _decade(max(values)), 240, logarithmic=True),
        labels,
    )

    def content(some: Sequence[Row]) -> Markup:
        return join(*(_curve(sheet, labels, over, name, some, column) for name in _protocols(some)))

    line = [(words, content(some)) for words, some in _by_down(found, rows)]
    return sheet.draw([line], _protocols(rows))


def _curve(sheet: Sheet, labels: Sequence[str], over: str, protocol: str, rows: Sequence[Row], column: str) -> Markup:
    mine = sorted(
        (row for row in rows if row["protocol"] == protocol and row[column]), key=lambda row: float(row[over])
    )
    places = [(sheet.x(labels.index(row[over])), sheet.up(float(row[column]))) for row in mine]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    line = tag("path", d=path, stroke=colour(protocol), fill="none", stroke_width=1.5) if len(places) > 1 else None
    return join(line, *(mark(protocol, x, y) for x, y in places))


def _by_cell(
    found: Atlas, rows: Sequence[Row], content: Callable[[Sequence[Row]], Markup]
) -> Iterator[list[tuple[str, Markup]]]:
    """The last axis goes across, the others go down."""
    across = found.axes[-1]
    for words, some in reversed(list(_by_down(found, rows))):
        line: dict[str, list[Row]] = {}
        for row in some:
            line.setdefault(row[across], []).append(row)
        yield [(f"{words}, {_named(across, value)}", content(line[value])) for value in sorted(line, key=float)]


def _by_down(found: Atlas, rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """The rows at each value of all axes but the last, in order, and what to call it."""
    downs = found.axes[:-1]
    groups: dict[tuple[float, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(float(row[axis]) for axis in downs), []).append(row)
    for down in sorted(groups):
        yield ", ".join(_named(axis, f"{value:g}") for axis, value in zip(downs, down, strict=True)), groups[down]


def _named(axis: str, value: str) -> str:
    return f"{value}{_UNITS[axis]}" if axis in _UNITS else f"{axis} {value}"


def _protocols(rows: Sequence[Row]) -> list[str]:
    there = {row["protocol"] for row in rows}
    return [name for name in COLOURS if name in there] + sorted(there - set(COLOURS))


def _decade(value: float, *, down: bool = False) -> float:
    power = math.log10(value)
    return 10.0 ** (math.floor(power) if down else math.ceil(power))
