"""Which figures a report has, and what its answer is about.

The rule this file owns: an experiment that asks for no figures gets each of its measures over each of its axes. If it
names no measures either, those of `HEADLINES` come first, and the page folds the others away.
"""

from collections.abc import Iterable
from typing import Final

from roamcast.analysis.measures.measure import Measures
from roamcast.campaign.define.described import FigurePlan, ReportedExperiment, SweptAxis
from roamcast.report.answer import ComparedGoals
from roamcast.report.compare import MeasureComparison, Question, compare
from roamcast.report.source import ReportData, SummaryRow, key

HEADLINES: Final = ("delivery", "overhead", "delay_p95")
"""The measures that people look at first."""
_GOALS: Final = 3
"""The most goals of an answer."""
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


def asked(experiment: ReportedExperiment, results: ReportData) -> ComparedGoals:
    """What the answer of an experiment is about: its first goals, and which of them is the cost.

    Goals are the measures with a better and a worse, in the order of its figures or measures; first what should be
    high, as delivery, with the first cost beside it.
    """
    rows = [row for row in results.rows if row.experiment == experiment.name]
    named = drawn_measures(experiment, rows, results.measured)
    if experiment.measures is None:
        named = [name for name in named if name in HEADLINES] or named
    order = list(dict.fromkeys([*(plan.y for plan in experiment.figures if plan.y in named), *named]))
    goals = [name for name in order if results.measured[name].good] or order
    first = next((name for name in goals if results.measured[name].good == "high"), goals[0] if goals else "")
    lows = (name for name in goals if results.measured[name].good == "low" and not results.measured[name].share)
    cost = next(lows, None) if results.measured[first].good == "high" else None
    ordered = [name for name in dict.fromkeys([first, cost, *goals]) if name][:_GOALS]
    return ComparedGoals(
        tuple(question(experiment, name, results, 2 if cost and name in (first, cost) else 1) for name in ordered),
        1 if cost else None,
        experiment.baseline,
        results.campaign.command,
    )


def question(experiment: ReportedExperiment, measure: str, results: ReportData, together: int = 1) -> Question:
    """How the variants compare in a measure, at all points."""
    rows = [row for row in results.rows if row.experiment == experiment.name]
    variants = [*(variant.name for variant in experiment.variants), *(row.variant for row in rows)]
    axes = tuple(axis.label for axis in swept_axes(experiment, rows))
    return Question(experiment.name, results.measured[measure], tuple(dict.fromkeys(variants)), axes, together)


def compared(experiment: ReportedExperiment, measure: str, results: ReportData) -> MeasureComparison:
    """The comparison in a measure, at the level of the answer if it is one of its goals."""
    goals = {one.about.name: one for one in asked(experiment, results).goals}
    return compare(goals.get(measure) or question(experiment, measure, results), results.curves)


def follows(label: str, x: str, rows: Iterable[SummaryRow]) -> bool:
    """Whether x alone determines the value of another axis."""
    pairs = {(key(row.axes[x]), key(row.axes.get(label))) for row in rows if x in row.axes}
    return len(pairs) == len({first for first, _ in pairs})
