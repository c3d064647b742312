"""A figure of shares over seconds, for a trace or a single run, which have no campaign."""

import io
from collections.abc import Mapping, Sequence

import matplotlib as mpl
from matplotlib.figure import Figure

from roamcast.report.looks import PAPER_MARKERS


def distribution(
    title: str, curves: Mapping[str, Sequence[Sequence[float]]], *, x: str, y: str, logarithmic: bool = False
) -> str:
    """An SVG file; each curve is pairs of seconds and a share, which `y` names."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for number, (name, points) in enumerate((name, points) for name, points in curves.items() if points):
        seconds, shares = zip(*points, strict=True)
        axes.plot(seconds, shares, label=name, marker=PAPER_MARKERS[number % len(PAPER_MARKERS)])
    axes.set(title=title, xlabel=x, ylabel=y, xscale="log" if logarithmic else "linear", ylim=(-0.02, 1.02))
    if axes.lines:
        axes.legend()
    return as_svg(figure)


def as_svg(figure: Figure) -> str:
    """The same bytes for the same figure: text stays text, ids are not random, and no time is written."""
    content = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "roamcast"}):
        figure.savefig(content, format="svg", metadata={"Date": None})
    return content.getvalue()
