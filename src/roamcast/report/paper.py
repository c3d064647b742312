"""Figures for papers and slides, drawn by matplotlib: PDF, SVG, PNG, and PGF where a TeX is installed.

The rules this file owns: a figure has exactly the requested width and font size; a curve has the same colour, marker
and dashes as in the page, so that it can be recognised in grey; the same numbers give the same bytes.
"""

import re
import shutil
import textwrap
import warnings
from dataclasses import dataclass
from io import BytesIO, StringIO
from typing import Any, Final

import matplotlib as mpl
from matplotlib import style as mpl_style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from roamcast.errors import RoamcastError
from roamcast.report.causes import X_TITLE, Causes
from roamcast.report.chart import Chart, Curve
from roamcast.report.looks import COLOURS, PAPER_MARKERS, dash_of
from roamcast.report.numbers import tick_texts, value_text
from roamcast.report.scale import MANY, Place, YScale, apart, asides_of, cap_of, has_bands, labelled, x_place, y_scales
from roamcast.report.tex import tex_text
from roamcast.report.titles import first_upper

FORMATS: Final = ("pdf", "svg", "png", "pgf")
TEX: Final = ("pdflatex", "lualatex", "xelatex")
SCALES: Final = {"auto": "", "fit": "Fit", "zero": "From 0", "log": "Log"}
_POINTS_PER: Final = {"in": 72.0, "cm": 72 / 2.54, "mm": 72 / 25.4, "pt": 72 / 72.27}
"""PDF points per unit; a point of TeX is a little smaller, and `pt` is what \\the\\columnwidth prints."""
_UNITS: Final = 400.0
"""The width of the plot in the page's units: bars are spaced as in the page."""
_HATCHES: Final = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "++++", "oooo")
_SETTINGS: Final = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.1,
    "lines.markersize": 4.0,
    "hatch.linewidth": 0.4,
    "legend.frameon": False,
    "savefig.dpi": 300,
}
_FIXED: Final = {
    "pdf.fonttype": 42,  # TrueType: publishers refuse Type 3
    "svg.fonttype": "path",
    "svg.hashsalt": "roamcast",
}
_METADATA: Final[dict[str, dict[str, Any]]] = {
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
    "png": {"Software": None},
}
"""No times: the same numbers give the same file."""


@dataclass(frozen=True)
class FigureLook:
    """How a figure should look; lengths in points of 1/72 inch."""

    width: float = 252.0
    """A column of most papers: 3.5 inches."""
    height: float | None = None
    font_size: float | None = None
    """None: that of the style, or 8 without a style."""
    style: str | None = None
    """A style sheet of matplotlib, by name or file."""
    scale: str = "auto"


DEFAULT: Final = FigureLook()


def length(text: str) -> float:
    """The points in a length such as 3.5in, 88mm, 8.8cm or 252pt."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(in|cm|mm|pt)", text.strip())
    if not found or not 36 <= (points := float(found[1]) * _POINTS_PER[found[2]]) <= 3600:
        raise RoamcastError(f"{text!r}: expected a length from 0.5in to 50in, such as 3.5in, 8.8cm, 88mm or 252pt")
    return points


def render(drawn: Chart | Causes, kind: str, look: FigureLook = DEFAULT) -> bytes:
    """A figure in one of FORMATS."""
    settings: dict[str, Any] = dict(_FIXED)
    if kind == "pgf":
        settings |= {"pgf.texsystem": _tex(), "pgf.rcfonts": False}
    with mpl.rc_context():
        _apply_style(look)
        _set(settings)
        size = mpl.rcParams["font.size"]
        _set(dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 0.9 * size))
        _set({"axes.labelsize": size})
        figure = _bars(drawn, look) if isinstance(drawn, Causes) else _curves(drawn, look)
        with warnings.catch_warnings():  # a figure too small for its names is drawn as well as it can be
            warnings.filterwarnings("ignore", "constrained_layout not applied", UserWarning)
            return _written(figure, kind)


def _written(figure: Figure, kind: str) -> bytes:
    if kind == "pgf":  # text, and without metadata
        text = StringIO()
        _say_it_in_tex(figure)
        figure.savefig(text, format=kind)
        return text.getvalue().encode()
    content = BytesIO()
    figure.savefig(content, format=kind, metadata=_METADATA[kind])
    return content.getvalue()


def _tex() -> str:
    found = next((name for name in TEX if shutil.which(name)), None)
    if found is None:
        raise RoamcastError(f"PGF needs a TeX, and none of {', '.join(TEX)} is installed: take --format pdf instead")
    return found


def _set(settings: Any) -> None:  # noqa: ANN401  # matplotlib's names are a literal type of 300 strings
    mpl.rcParams.update(settings)


def _apply_style(look: FigureLook) -> None:
    mpl.rcdefaults()
    _set({**_SETTINGS, "font.size": 8.0})
    if look.style is not None:
        try:
            mpl_style.use(look.style)
        except OSError:
            near = ", ".join(name for name in mpl_style.available if not name.startswith("_"))
            raise RoamcastError(f"{look.style}: is neither a file nor a style of matplotlib: {near}") from None
    if look.font_size is not None:
        mpl.rcParams["font.size"] = look.font_size


# --- Curves ---------------------------------------------------------------------------------------------------------


def _curves(chart: Chart, look: FigureLook) -> Figure:
    height = look.height or 0.72 * look.width
    figure = Figure(figsize=(look.width / 72, height / 72), layout="constrained")
    axes = figure.add_subplot()
    scale = _scale(chart, look)
    x = x_place(chart, 0, _UNITS)
    asides, cap = iter(asides_of(chart)), cap_of(chart)
    unit = look.width / (_UNITS * 1.2)
    handles = [
        _level(axes, curve) if curve.level else _curve(axes, chart, curve, x, next(asides), cap * unit)
        for curve in chart.curves
    ]
    if scale.logarithmic:
        axes.set_yscale("log")
        axes.minorticks_off()
    axes.set_yticks(scale.ticks, map(_plain, scale.texts))
    axes.set_ylim(scale.ticks[0], scale.ticks[-1])
    letter = 0.6 * 0.9 * mpl.rcParams["font.size"] / unit
    shown = labelled(chart.x_values, x, letter)
    axes.set_xticks([x(value) for value in shown], [_plain(value_text(value)) for value in shown])
    axes.set_xlim(0, _UNITS)
    axes.set_xlabel(_plain(first_upper(chart.x_title) + (", logarithmic" if chart.logarithmic else "")))
    axes.set_ylabel(_plain(_folded(first_upper(chart.y_title), height)))
    if len(chart.curves) >= MANY:
        _names(axes, chart, scale, height)
    else:
        _legend(figure, handles, [curve.name for curve in chart.curves], look)
    return figure


def _names(axes: Axes, chart: Chart, scale: YScale, height: float) -> None:
    """The names of many curves at their ends, in place of a legend."""
    place = scale.place(0, 1)
    known = [(curve, [row.mean for row in curve.rows if row.mean is not None]) for curve in chart.curves]
    ends = [(curve, min(max(place(means[-1]), 0.0), 1.0)) for curve, means in known if means]
    line = 1.15 * mpl.rcParams["legend.fontsize"] / (0.75 * height)
    for (curve, _), up in zip(ends, apart([up for _, up in ends], line, 0, 1), strict=True):
        axes.annotate(
            _plain(curve.name),
            (1.01, up),
            xycoords="axes fraction",
            va="center",
            color=_line(curve)["color"],
            size=mpl.rcParams["legend.fontsize"],
        )


def _scale(chart: Chart, look: FigureLook) -> YScale:
    scales = {scale.name: scale for scale in y_scales(chart)}
    if look.scale == "auto":
        return next(iter(scales.values()))
    if look.scale == "log" and "Log" not in scales:
        raise RoamcastError(f"{chart.plan.id}: has no logarithmic y axis, because a mean is not above 0")
    names = ("0–1", "From 0") if look.scale == "zero" else (SCALES[look.scale],)
    return next((scales[name] for name in names if name in scales), scales["Fit"])


def _line(curve: Curve) -> dict[str, Any]:
    dashes = dash_of(curve.look)
    pattern = tuple(0.55 * float(part) for part in dashes.split()) if dashes else None
    return {"color": COLOURS[curve.look % len(COLOURS)], "linestyle": (0, pattern) if pattern else "-"}


def _curve(axes: Axes, chart: Chart, curve: Curve, x: Place, aside: float, cap: float) -> Any:  # noqa: ANN401
    """Draws a curve. Undefined values become NaN, at which matplotlib breaks the line."""
    rows = curve.rows
    means = [float("nan") if row.mean is None else row.mean for row in rows]
    ends = [
        [0.0 if row.mean is None or end is None else abs(end - row.mean) for row, end in zip(rows, side, strict=True)]
        for side in ([row.low for row in rows], [row.high for row in rows])
    ]
    across = [x(chart.x_of(row)) + aside for row in rows]
    if has_bands(chart):
        lows, highs = (
            [mean + sign * end for mean, end in zip(means, of, strict=True)]
            for sign, of in zip((-1, 1), ends, strict=True)
        )
        axes.fill_between(across, lows, highs, color=_line(curve)["color"], alpha=0.12, linewidth=0)
    drawn = axes.errorbar(
        across,
        means,
        yerr=None if has_bands(chart) else ends,
        marker=PAPER_MARKERS[curve.look % len(PAPER_MARKERS)],
        markeredgecolor="white",
        markeredgewidth=0.4,
        capsize=cap,
        elinewidth=0.8,
        capthick=0.8,
        **_line(curve),
    )
    drawn[0].set_clip_on(False)  # a marker on the frame is whole; bars end at it
    return drawn


def _level(axes: Axes, curve: Curve) -> Any:  # noqa: ANN401  # a line of matplotlib
    row = curve.rows[0]
    line = _line(curve)
    if row.low is not None and row.high is not None:
        axes.axhspan(row.low, row.high, color=line["color"], alpha=0.13, linewidth=0)
    return axes.axhline(float("nan") if row.mean is None else row.mean, **line)


# --- Bars of causes -------------------------------------------------------------------------------------------------


def _bars(causes: Causes, look: FigureLook) -> Figure:
    size = mpl.rcParams["font.size"]
    names = [textwrap.fill(_plain(bar.name), max(8, int(0.35 * look.width / (0.5 * size)))) for bar in causes.bars]
    lines = sum(name.count("\n") + 1 for name in names)
    height = look.height or (lines * 1.2 + len(names) * 0.4 + 5 + 1.5 * len(causes.causes) / 2) * size
    figure = Figure(figsize=(look.width / 72, height / 72), layout="constrained")
    axes = figure.add_subplot()
    rows = range(len(causes.bars))
    starts = [0.0] * len(causes.bars)
    handles = []
    for index in range(len(causes.causes)):
        shares = [bar.shares[index] for bar in causes.bars]
        colour = COLOURS[index % len(COLOURS)]
        handles.append(
            axes.barh(
                rows, shares, left=starts, color=colour, edgecolor="white", linewidth=0.4, hatch=_HATCHES[index % 8]
            )
        )
        starts = [start + share for start, share in zip(starts, shares, strict=True)]
    axes.set_yticks(rows, names)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    axes.set_xticks(causes.ticks, tick_texts(causes.ticks))
    axes.set_xlim(0, causes.ticks[-1])
    axes.set_xlabel(X_TITLE)
    _legend(figure, handles, list(causes.causes), look)
    return figure


# --- Both -----------------------------------------------------------------------------------------------------------


def _legend(figure: Figure, handles: list[Any], names: list[str], look: FigureLook) -> None:
    """Adds a legend above the plot, with as many columns as the width allows."""
    size = 0.9 * mpl.rcParams["font.size"]
    folded = [textwrap.fill(_plain(name), max(10, int((look.width - 5 * size) / (0.6 * size)))) for name in names]
    widest = max((len(line) for name in folded for line in name.splitlines()), default=0) * 0.6 * size + 4.5 * size
    columns = max(1, min(len(names), int(look.width // widest)))
    figure.legend(handles, folded, loc="outside upper left", ncols=columns, handlelength=2.6)


def _plain(text: str) -> str:
    """A name as plain text: neither a formula nor, because of a leading underscore, hidden by matplotlib."""
    shown = text.replace("$", r"\$")
    return f"\N{ZERO WIDTH SPACE}{shown}" if shown.startswith("_") else shown


def _unplain(text: str) -> str:
    return text.replace(r"\$", "$").removeprefix("\N{ZERO WIDTH SPACE}")


def _say_it_in_tex(figure: Figure) -> None:
    """Escapes characters in names that TeX would take for commands."""
    (axes,) = figure.axes
    for axis in (axes.xaxis, axes.yaxis):
        axis.label.set_text(tex_text(_unplain(axis.label.get_text())))
        axis.set_ticks(
            axis.get_majorticklocs(), [tex_text(_unplain(tick.get_text())) for tick in axis.get_ticklabels()]
        )
    names = figure.legends[0].get_texts() if figure.legends else axes.texts
    for text in names:
        text.set_text(tex_text(_unplain(text.get_text())))


def _folded(title: str, height: float) -> str:
    """The title of the y axis, wrapped to the height."""
    return textwrap.fill(title, max(12, int(0.6 * height / (0.52 * mpl.rcParams["font.size"]))))
