"""A chart as SVG: in the page, where style sheet and script make it readable and alive, or as a file of its own.

Colour is never the only difference: every curve has its own marker, and its own dashes. Places are in units of the
view box; the plot is 400 units by 240, so that a figure can be checked with a ruler.
"""

from importlib import resources
from typing import Any, Final

from roamcast.report.chart import Chart, Curve
from roamcast.report.markup import Markup, join, tag
from roamcast.report.numbers import estimate, tick_texts, value_text
from roamcast.report.scale import Place, asides_of, labelled, linear, x_place, y_ticks
from roamcast.report.source import Row

WIDTH: Final = 480
HEIGHT: Final = 340
LEFT, RIGHT, TOP, BOTTOM = 60, 460, 40, 280
_INSET: Final = 20
"""Between the frame and the first and last value of x."""
_LETTER: Final = 9
"""Width of a letter of a label, at the size it has on a phone."""
_CAP: Final = 4
_LEGEND_ROW: Final = 20
_LONG_NAME: Final = 30

COLOURS: Final = 8
MARKERS: Final = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z",
    "M-3.7 -3.7H3.7V3.7H-3.7Z",
    "M0 -5L4.6 3.4H-4.6Z",
    "M0 -5.2L5.2 0L0 5.2L-5.2 0Z",
    "M0 5L4.6 -3.4H-4.6Z",
    "M-1.6 -4.8H1.6V-1.6H4.8V1.6H1.6V4.8H-1.6V1.6H-4.8V-1.6H-1.6Z",
    "M-4.6 0L-2.3 -4H2.3L4.6 0L2.3 4H-2.3Z",
    "M0 -5.4L1.6 -1.6L5.2 -1.6L2.3 0.9L3.3 4.6L0 2.4L-3.3 4.6L-2.3 0.9L-5.2 -1.6L-1.6 -1.6Z",
)
DASHES: Final = (None, "7 3", "2 3", "9 3 2 3", "4 2", "12 4", "5 2 1 2 1 2", "1 2")


def asset(name: str) -> Markup:
    """A file of the package, as it is."""
    return Markup((resources.files("roamcast.report") / "assets" / name).read_text(encoding="utf-8"))


def inline(chart: Chart) -> Markup:
    """For the page: points can be focused and hovered, curves can be hidden."""
    label = f"{chart.title}: {chart.y_title} over {chart.x_title}"
    return tag("svg", _plot(chart), class_="chart", viewBox=f"0 0 {WIDTH} {HEIGHT}", role="group", aria_label=label)


def standalone(chart: Chart) -> tuple[Markup, int, int]:
    """A file, with its width and height: light, with its legend below and its title for those who cannot see it."""
    columns = 1 if any(len(curve.name) > _LONG_NAME for curve in chart.curves) else 2
    rows = -(-len(chart.curves) // columns)
    height = HEIGHT + rows * _LEGEND_ROW + 8
    legend = [
        tag(
            "g",
            swatch_marks(index, curve),
            tag("text", curve.name, x=36, y=4, class_="tick"),
            transform=f"translate({LEFT + (index % columns) * 200} {HEIGHT + 6 + index // columns * _LEGEND_ROW})",
            class_=f"curve {colour(index)}",
        )
        for index, curve in enumerate(chart.curves)
    ]
    drawing = tag(
        "svg",
        tag("title", chart.title),
        tag("style", asset("figure.css")),
        tag("rect", width=WIDTH, height=height, fill="#fff"),
        _plot(chart),
        *legend,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height}",
        width=WIDTH,
        height=height,
        role="img",
        class_="chart",
    )
    return drawing, WIDTH, height


def colour(index: int) -> str:
    """The style class of a curve's colour."""
    return f"c{index % COLOURS}"


def swatch_marks(index: int, curve: Curve) -> Markup:
    """A short piece of the curve for a legend, 28 units long, around y = 0."""
    line = tag("path", d="M0 0H28", class_="line", stroke_dasharray=_dash(index))
    return join(line, None if curve.level else _marker(index, 14, 0))


# --- The plot -------------------------------------------------------------------------------------------------------


def _plot(chart: Chart) -> Markup:
    ticks = y_ticks(chart)
    x, y = x_place(chart, LEFT + _INSET, RIGHT - _INSET), linear(ticks[0], ticks[-1], BOTTOM, TOP)
    asides = iter(asides_of(chart, x))
    curves = [
        tag(
            "g",
            _level(chart, index, curve, y) if curve.level else _curve(chart, index, curve, x, y, next(asides)),
            class_=f"curve {colour(index)}",
            data_curve=index,
        )
        for index, curve in enumerate(chart.curves)
    ]
    return join(_y_axis(chart, ticks, y), _x_axis(chart, x), *curves)


def _y_axis(chart: Chart, ticks: list[float], y: Place) -> Markup:
    """With its title above, where it reads without turning one's head."""
    title = tag("text", chart.y_title, x=6, y=18, class_="title")
    lines = [tag("path", d=f"M{LEFT} {_n(y(tick))}H{RIGHT}", class_="grid") for tick in ticks]
    labels = [
        tag("text", text, x=LEFT - 7, y=_n(y(tick) + 4.5), class_="tick end")
        for tick, text in zip(ticks, tick_texts(ticks), strict=True)
    ]
    return tag("g", title, *lines, *labels, class_="axis", aria_hidden="true")


def _x_axis(chart: Chart, x: Place) -> Markup:
    shown = labelled(chart.x_values, x, _LETTER)
    marks = [tag("path", d=f"M{_n(x(value))} {BOTTOM}v5", class_="frame") for value in chart.x_values]
    labels = [tag("text", value_text(value), x=_n(x(value)), y=BOTTOM + 20, class_="tick middle") for value in shown]
    scale = ", logarithmic" if chart.logarithmic else ""
    title = tag("text", chart.x_title + scale, x=(LEFT + RIGHT) // 2, y=HEIGHT - 14, class_="title middle")
    base = tag("path", d=f"M{LEFT} {BOTTOM}H{RIGHT}", class_="frame")
    return tag("g", base, *marks, *labels, title, class_="axis", aria_hidden="true")


def _curve(chart: Chart, index: int, curve: Curve, x: Place, y: Place, aside: float) -> Markup:
    """The line breaks where a value is undefined."""
    line, points, pen = "", [], "M"
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
                _error_bar(row, across, y),
                tag("circle", cx=_n(across), cy=_n(up), r=11, class_="reach"),
                _marker(index, across, up),
                **_reading(chart, curve, row),
            )
        )
    return join(tag("path", d=line, class_="line", stroke_dasharray=_dash(index)) if line else None, *points)


def _level(chart: Chart, index: int, curve: Curve, y: Place) -> Markup | None:
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
        tag("path", d=across, class_="line", stroke_dasharray=_dash(index)),
        tag("path", d=across, class_="reach wide"),
        tag("path", d=f"M{RIGHT - 1} {_n(up - 4)}v8", class_="mark bar"),
        **_reading(chart, curve, row),
    )


def _error_bar(row: Row, across: float, y: Place) -> Markup | None:
    """Cut at the frame where it would leave it, and then without a cap: that is not its end."""
    if row.low is None or row.high is None:
        return None
    ends = [y(row.high), y(row.low)]
    top, bottom = map(_inside, ends)
    caps = "".join(f"M{_n(across - _CAP)} {_n(end)}h{2 * _CAP}" for end in ends if end == _inside(end))
    return tag("path", d=f"M{_n(across)} {_n(top)}V{_n(bottom)}{caps}", class_="bar")


def _reading(chart: Chart, curve: Curve, row: Row) -> dict[str, Any]:
    """What a point says when it is pointed at, focused or read aloud."""
    at = [] if curve.level else [f"{chart.x_title}: {value_text(chart.x_of(row))}"]
    value = f"{chart.y_title}: {estimate(row.mean, row.low, row.high)}"
    lines = [curve.name, *at, value, f"n = {row.n}" if row.low is not None else f"n = {row.n}, no interval"]
    return {"class_": "point", "tabindex": 0, "role": "img", "aria_label": "; ".join(lines)}


def _marker(index: int, across: float, up: float) -> Markup:
    place = f"translate({_n(across)} {_n(up)})"
    return tag("path", d=MARKERS[index % len(MARKERS)], transform=place, class_="mark")


def _dash(index: int) -> str | None:
    """Curves that share colour and marker differ in their dashes."""
    return DASHES[(index + index // COLOURS) % len(DASHES)]


def _inside(up: float) -> float:
    return min(max(up, TOP), BOTTOM)


def _n(value: float) -> str:
    """Two decimals are finer than any screen, and keep the file small."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value else "0"
