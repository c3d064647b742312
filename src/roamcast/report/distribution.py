"""How long things last, as a figure: over seconds, the share that lasted longer. For traces, which have no campaign."""

from collections.abc import Mapping, Sequence

from roamcast.report.chart import Chart, Curve
from roamcast.report.source import FigurePlan, Row
from roamcast.report.svg import standalone

_X = "seconds"


def distribution(title: str, curves: Mapping[str, Sequence[Sequence[float]]]) -> str:
    """An SVG file; each curve is pairs of seconds and the share that lasted longer."""
    chart = Chart(
        plan=FigurePlan(id="distribution", x=_X, y="longer", title=title, log=True),
        experiment="",
        x_title="time (s)",
        y_title="share that lasts longer",
        x_values=tuple(sorted({point[0] for points in curves.values() for point in points})),
        curves=tuple(Curve(name, False, tuple(map(_row, points))) for name, points in curves.items() if points),
        whole=True,
    )
    drawing, _, _ = standalone(chart)
    return f"{drawing}\n"


def _row(point: Sequence[float]) -> Row:
    seconds, share = point
    return Row("", "", {_X: seconds}, "longer", n=1, mean=share, sd=None, low=None, high=None)
