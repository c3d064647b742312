"""Finds a figure of a campaign by its id, by the measure that it shows, or as `causes`."""

from typing import Final

from roamcast.campaign.define.described import FigurePlan, ReportedExperiment
from roamcast.config.errors import suggestion
from roamcast.errors import RoamcastError
from roamcast.report.causes import Causes, causes_of
from roamcast.report.chart import Chart, all_charts, make_chart
from roamcast.report.plans import drawn_measures, swept_axes
from roamcast.report.source import ReportData

CAUSES: Final = "causes"


def find_figure(
    results: ReportData, name: str, experiment: str | None = None, over: str | None = None
) -> Chart | Causes:
    """The figure of that name; a `RoamcastError` lists what there is, or how to choose between several."""
    wanted = results.experiments(experiment)
    if name == CAUSES:
        return _causes(wanted, results)
    drawn = [(one, charts) for one, charts in all_charts(results) if one in wanted]
    looks = {curve.name: curve.look for _, charts in drawn for chart in charts for curve in chart.curves}
    of_ids = [chart for _, charts in drawn for chart in charts if chart.plan.id == name]
    found = of_ids or [
        chart for one, charts in drawn for chart in _of_measure(one, charts, name, results, looks) if chart.curves
    ]
    found = [chart for chart in found if over in (None, chart.plan.x)]
    if not found:
        where = "" if over is None else f" over {over!r}"
        raise RoamcastError(f"there is no figure or measure {name!r}{where}; {suggestion(name, _known(results))}")
    if len(found) > 1:
        each = "; ".join(f"--experiment {chart.experiment} --over {chart.plan.x!r}" for chart in found)
        raise RoamcastError(f"{name!r} means {len(found)} figures; name one of them: {each}")
    return found[0]


def _of_measure(
    experiment: ReportedExperiment, charts: list[Chart], measure: str, results: ReportData, looks: dict[str, int]
) -> list[Chart]:
    """The figures that show a measure; if the experiment asks for none, one over each of its axes."""
    asked = [chart for chart in charts if chart.plan.y == measure]
    rows = [row for row in results.rows if row.experiment == experiment.name]
    if asked or measure not in drawn_measures(experiment, rows, results.measured):
        return asked
    plans = [FigurePlan(id=measure, x=axis.label, y=measure) for axis in swept_axes(experiment, rows)]
    return [make_chart(experiment, plan, results.rows, results.measured, looks) for plan in plans]


def _causes(experiments: list[ReportedExperiment], results: ReportData) -> Causes:
    found = {one.name: causes for one in experiments if (causes := causes_of(one, results.rows)) is not None}
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        raise RoamcastError(f"{len(found)} experiments have causes; name one with --experiment: {', '.join(found)}")
    raise RoamcastError(
        "no causes were measured: record frames and decisions, and ask for the measures `causes` (docs/measures.md); "
        "or roamcast report OUT --causes, whose figures are OUT/report/figures/*causes.*"
    )


def _known(results: ReportData) -> list[str]:
    ids = [chart.plan.id for _, charts in all_charts(results) for chart in charts]
    having = sorted({row.measure for row in results.rows if row.mean is not None})
    return list(dict.fromkeys([*ids, *having]))
