"""A chart as SVG for the page, where style sheet and script make it readable and alive; `paper.py` draws files.

Colour is never the only difference: every curve has its own marker and its own dashes. Positions are in units of the
view box; the plot is 400 units by 240, so that a figure can be checked with a ruler.
"""

import itertools
from collections.abc import Iterator
from typing import Any, Final

from roamcast.report.chart import Chart, Curve
from roamcast.report.looks import colour_of, dash_of, marker_of
from roamcast.report.markup import Markup, join, tag
from roamcast.report.numbers import estimate, value_text
from roamcast.report.scale import MANY, Place, YScale, apart, asides_of, cap_of, has_bands, labelled, x_place, y_scales
from roamcast.report.source import SummaryRow
from roamcast.report.titles import first_upper

WIDTH: Final = 480
HEIGHT: Final = 340
LEFT, RIGHT, TOP, BOTTOM = 60, 460, 40, 280
_ABOVE: Final = 26
"""Units left out at the top: the y axis's title is above the drawing, where it can wrap."""
_LINE: Final = 17.0
"""The distance between names beside the plot, at the size they have on a phone."""
_WIDEST: Final = 180
_LETTER: Final = 9
"""The width of a label's letter, at the size it has on a phone."""


def views(chart: Chart) -> list[tuple[str, Markup]]:
    """The chart with each y axis that it can have, by the name on its switch; the first fits the data."""
    return [(scale.name, drawing(chart, scale)) for scale in y_scales(chart)]


def drawing(chart: Chart, scale: YScale) -> Markup:
    """The chart as SVG. Points can be focused and hovered, curves can be hidden."""
    return tag(
        "svg",
        _plot(chart, scale),
        class_="chart",
        viewBox=f"0 {_ABOVE} {WIDTH + _names_width(chart)} {HEIGHT - _ABOVE}",
        role="group",
        aria_label=f"{chart.title}: {chart.y_title} over {chart.x_title}",
    )


def swatch_marks(curve: Curve) -> Markup:
    """A short piece of the curve for a legend, 28 units long, around y = 0."""
    line = tag("path", d="M0 0H28", class_="line", stroke_dasharray=dash_of(curve.look))
    return tag("g", line, None if curve.level else _marker(curve, 14, 0), class_=f"curve {colour_of(curve.look)}")


# --- The plot -------------------------------------------------------------------------------------------------------


def _plot(chart: Chart, scale: YScale) -> Markup:
    x, y = x_place(chart, LEFT, RIGHT), scale.place(BOTTOM, TOP)
    asides, cap, names = iter(asides_of(chart)), cap_of(chart), _names(chart, x, y)
    curves = [
        tag(
            "g",
            _level(chart, curve, y) if curve.level else _curve(chart, curve, x, y, next(asides), cap),
            names.get(index),
            class_=f"curve {colour_of(curve.look)}",
            data_curve=index,
        )
        for index, curve in enumerate(chart.curves)
    ]
    return join(_y_axis(scale, y), _x_axis(chart, x), *curves)


def _names_width(chart: Chart) -> int:
    """Room for the curves' names beside the plot."""
    return min(_WIDEST, _LETTER * max(len(curve.name) for curve in chart.curves)) if len(chart.curves) >= MANY else 0


def _names(chart: Chart, x: Place, y: Place) -> dict[int, Markup]:
    """The names of many curves at their ends, so that nobody has to compare colours with a legend."""
    ends = {
        index: (RIGHT if curve.level else x(chart.x_of(known[-1])), _inside(y(known[-1].mean)))
        for index, curve in enumerate(chart.curves)
        if (known := [row for row in curve.rows if row.mean is not None])
    }
    if len(chart.curves) < MANY:
        return {}
    places = apart([up for _, up in ends.values()], _LINE, TOP - 6, BOTTOM + 6)
    return {
        index: join(
            tag("path", d=f"M{_n(across + 7)} {_n(up)}L{RIGHT + 2} {_n(place)}", class_="lead"),
            tag("text", chart.curves[index].name, x=RIGHT + 5, y=_n(place + 4), class_="name"),
        )
        for (index, (across, up)), place in zip(ends.items(), places, strict=True)
    }


def _y_axis(scale: YScale, y: Place) -> Markup:
    lines = [tag("path", d=f"M{LEFT} {_n(y(tick))}H{RIGHT}", class_="grid") for tick in scale.ticks]
    labels = [
        tag("text", text, x=LEFT - 7, y=_n(y(tick) + 4.5), class_="tick end")
        for tick, text in zip(scale.ticks, scale.texts, strict=True)
    ]
    return tag("g", *lines, *labels, class_="axis", aria_hidden="true")


def _x_axis(chart: Chart, x: Place) -> Markup:
    shown = labelled(chart.x_values, x, _LETTER)
    marks = [tag("path", d=f"M{_n(x(value))} {BOTTOM}v5", class_="frame") for value in chart.x_values]
    labels = [tag("text", value_text(value), x=_n(x(value)), y=BOTTOM + 20, class_="tick middle") for value in shown]
    scale = ", logarithmic" if chart.logarithmic else ""
    title = tag("text", first_upper(chart.x_title) + scale, x=(LEFT + RIGHT) // 2, y=HEIGHT - 14, class_="title middle")
    base = tag("path", d=f"M{LEFT} {BOTTOM}H{RIGHT}", class_="frame")
    return tag("g", base, *marks, *labels, title, class_="axis", aria_hidden="true")


def _curve(chart: Chart, curve: Curve, x: Place, y: Place, aside: float, cap: float) -> Markup:
    """One curve. The line breaks where a value is undefined."""
    line, points, pen, bands = "", [], "M", has_bands(chart)
    for row in curve.rows:
        if row.mean is None:
            pen = "M"
            continue
        across, up = x(chart.x_of(row)) + aside, y(row.mean)
        line += f"{pen}{_n(across)} {_n(up)}"
        pen = "L"
        points.append(
            tag(
                "g",
                None if bands else _error_bar(row, across, y, cap),
                tag("circle", cx=_n(across), cy=_n(up), r=11, class_="reach"),
                _marker(curve, across, up),
                **_reading(chart, curve, row),
            )
        )
    band = [tag("path", d=text, class_="band") for text in _bands(chart, curve, x, y)] if bands else []
    line_ = tag("path", d=line, class_="line", stroke_dasharray=dash_of(curve.look)) if line else None
    return join(*band, line_, *points)


def _bands(chart: Chart, curve: Curve, x: Place, y: Place) -> Iterator[str]:
    """The intervals of neighbouring points as areas."""
    for known, rows in itertools.groupby(curve.rows, key=lambda row: row.low is not None and row.high is not None):
        ends = [(x(chart.x_of(row)), row.low, row.high) for row in rows]
        if known and len(ends) > 1:
            upper = [f"{_n(across)} {_n(_inside(y(high)))}" for across, _, high in ends]
            lower = [f"{_n(across)} {_n(_inside(y(low)))}" for across, low, _ in reversed(ends)]
            yield f"M{'L'.join([*upper, *lower])}Z"


def _level(chart: Chart, curve: Curve, y: Place) -> Markup | None:
    row = curve.rows[0]
    if row.mean is None:
        return None
    up = y(row.mean)
    across = f"M{LEFT} {_n(up)}H{RIGHT}"
    band = None
    if row.low is not None and row.high is not None:
        top, bottom = _inside(y(row.high)), _inside(y(row.low))
        band = tag("rect", x=LEFT, y=_n(top), width=RIGHT - LEFT, height=_n(bottom - top), class_="band")
    return tag(
        "g",
        band,
        tag("path", d=across, class_="line", stroke_dasharray=dash_of(curve.look)),
        tag("path", d=across, class_="reach wide"),
        tag("path", d=f"M{RIGHT - 1} {_n(up - 4)}v8", class_="mark bar"),
        **_reading(chart, curve, row),
    )


def _error_bar(row: SummaryRow, across: float, y: Place, cap: float) -> Markup | None:
    """An error bar, cut at the frame; a cut end has no cap, since it is not the end of the interval."""
    if row.low is None or row.high is None:
        return None
    ends = [y(row.high), y(row.low)]
    top, bottom = map(_inside, ends)
    caps = "".join(f"M{_n(across - cap)} {_n(end)}h{_n(2 * cap)}" for end in ends if end == _inside(end))
    return tag("path", d=f"M{_n(across)} {_n(top)}V{_n(bottom)}{caps}", class_="bar")


def _reading(chart: Chart, curve: Curve, row: SummaryRow) -> dict[str, Any]:
    """The text of a point when it is hovered, focused or read aloud."""
    at = [] if curve.level else [f"{chart.x_title}: {value_text(chart.x_of(row))}"]
    value = f"{chart.y_title}: {estimate(row.mean, row.low, row.high)}"
    lines = [curve.name, *at, value, f"n = {row.n}" if row.low is not None else f"n = {row.n}, no interval"]
    run = {"data_run": row.run} if row.run else {}
    return {"class_": "point", "tabindex": 0, "role": "img", "aria_label": "; ".join(lines), **run}


def _marker(curve: Curve, across: float, up: float) -> Markup:
    place = f"translate({_n(across)} {_n(up)})"
    return tag("path", d=marker_of(curve.look), transform=place, class_="mark")


def _inside(up: float) -> float:
    return min(max(up, TOP), BOTTOM)


def _n(value: float) -> str:
    """A number for SVG: two decimals are finer than any screen, and keep the file small."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value else "0"
