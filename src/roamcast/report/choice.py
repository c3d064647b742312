"""The figure of a race: one row per candidate, by rank, with what it reached on the left and what it cost on the
right. Rows keep labels from overlapping, however alike the candidates are."""

from collections.abc import Sequence
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from roamcast.report.looks import COLOURS

_LEGEND: Final = "filled: not dropped; dashed: the goal; bars: 95 % intervals over seeds"


def race_figure(result: dict[str, Any]) -> Figure:
    """The figure, from the contents of `choice.json`."""
    known = result["race"] | result["fresh"]
    names = [name for name in result["ranking"] if name in known]
    figure = Figure(figsize=(9, 1.8 + 0.3 * len(names)), layout="constrained")
    figure.suptitle(f"{result['scenario']}: what the candidates reach, and at what cost")
    goals, costs = figure.subplots(1, 2, sharey=True)
    for row, name in enumerate(names):
        left = name in result["left"]
        _point(goals, row, known[name]["goal"], left)
        if known[name]["cost"][0] is None:
            place = costs.get_yaxis_transform()
            costs.text(0.02, row, "delivered nothing in some run", va="center", size="small", transform=place)
        else:
            _point(costs, row, known[name]["cost"], left)
    goals.axvline(result["goal"]["at_least"], color="#222222", linestyle="--", linewidth=1)
    goals.set(title=result["goal"]["words"], xlim=(-0.02, 1.02), ylim=(len(names) - 0.5, -0.5))
    goals.set_yticks(range(len(names)), names)
    costs.set(title=result["cost"]["words"], xscale="log")
    costs.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    costs.xaxis.set_major_formatter("{x:g}")
    costs.xaxis.set_minor_formatter(NullFormatter())
    for axes in (goals, costs):
        axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    figure.supxlabel(_LEGEND, size="small")
    return figure


def _point(axes: Axes, row: int, estimate: Sequence[float | None], left: bool) -> None:
    mean, low, high = estimate
    assert mean is not None
    if low is not None and high is not None:
        axes.hlines(row, low, high, color="#777777", linewidth=1)
    axes.plot(mean, row, "o", color=COLOURS[0], markerfacecolor=COLOURS[0] if left else "white", clip_on=False)
