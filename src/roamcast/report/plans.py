"""Which figures a report has, and the question of each.

The rule this file owns: an experiment that asks for no figures gets each of its measures over each of its axes. If it
names no measures either, those of `HEADLINES` come first, and the page folds the others away.
"""

from collections.abc import Iterable
from typing import Final

from roamcast.analysis.measures.measure import Measure, Measures
from roamcast.campaign.define.described import FigurePlan, ReportedExperiment, SweptAxis
from roamcast.report.compare import Question
from roamcast.report.source import ReportData, SummaryRow, key

HEADLINES: Final = ("delivery", "overhead", "delay_p95")
"""The measures that people look at first."""
CAUSE: Final = "cause_"
"""Prefix of the measures that `causes.py` draws together."""


def planned_figures(experiment: ReportedExperiment, results: ReportData) -> list[FigurePlan]:
    """The figures that the experiment asks for, or else its measures over its axes."""
    if experiment.figures:
        return experiment.figures
    rows = [row for row in results.rows if row.experiment == experiment.name]
    axes = swept_axes(experiment, rows)
    return [
        FigurePlan(
            id=measure if len(axes) == 1 else f"{measure}-{axis.label}",
            x=axis.label,
            y=measure,
            minor=experiment.measures is None and measure not in HEADLINES,
        )
        for measure in drawn_measures(experiment, rows, results.measured)
        for axis in axes
    ]


def swept_axes(experiment: ReportedExperiment, rows: list[SummaryRow]) -> list[SweptAxis]:
    """The axes with two values or more; of axes that vary together, the first."""
    kept: list[SweptAxis] = []
    for axis in experiment.axes:
        having = [row for row in rows if axis.label in row.axes]
        if len(axis.values) > 1 and not any(follows(axis.label, other.label, having) for other in kept):
            kept.append(axis)
    return kept


def drawn_measures(experiment: ReportedExperiment, rows: Iterable[SummaryRow], measured: Measures) -> list[str]:
    """The measures asked for that have a value somewhere: in the experiment's order, or the headlines first."""
    having = {row.measure for row in rows if row.mean is not None}
    names = experiment.measures
    if names is None:
        names = list(dict.fromkeys([*HEADLINES, *measured, *sorted(having)]))
    return [name for name in names if name in having and not name.startswith(CAUSE)]


def question(
    experiment: ReportedExperiment, plan: FigurePlan, results: ReportData, places: Iterable[object] = ()
) -> Question:
    """The question of a figure; `places` are the values of its x axis."""
    about = results.measured[plan.y]
    names = tuple(variant.name for variant in experiment.variants)
    named = names or tuple(dict.fromkeys(row.variant for row in results.rows if row.experiment == experiment.name))
    reference = plan.against or experiment.baseline or (named[0] if named else "")
    rows = [row for row in results.rows if row.experiment == experiment.name and plan.x in row.axes]
    others = [axis.label for axis in swept_axes(experiment, rows) if plan.x and not follows(axis.label, plan.x, rows)]
    beside = _beside(experiment, about, results)
    return Question(experiment.name, about, named, reference, plan.x, tuple(places), beside, tuple(others))


def single_questions(experiment: ReportedExperiment, results: ReportData) -> list[Question]:
    """For an experiment without axes: one question per measure that it names, or per headline."""
    rows = [row for row in results.rows if row.experiment == experiment.name]
    measures = drawn_measures(experiment, rows, results.measured)
    if experiment.measures is None:
        measures = [name for name in measures if name in HEADLINES]
    return [question(experiment, FigurePlan(id=name, x="", y=name), results) for name in measures]


def _beside(experiment: ReportedExperiment, about: Measure, results: ReportData) -> Measure | None:
    """The companion measure of a cost or a delay: delivery, or what an experiment has instead."""
    if about.good != "low" or about.share:
        return None
    having = {
        row.measure for row in results.rows if row.experiment == experiment.name and experiment.wants(row.measure)
    }
    candidates = [results.measured[name] for name in ("delivery", *(experiment.measures or ())) if name in having]
    return next((one for one in candidates if one.good == "high" and one.share), None)


def follows(label: str, x: str, rows: Iterable[SummaryRow]) -> bool:
    """Whether x alone determines the value of another axis."""
    pairs = {(key(row.axes[x]), key(row.axes.get(label))) for row in rows if x in row.axes}
    return len(pairs) == len({first for first, _ in pairs})
