"""From rows of the summary to curves: which points belong together, in which order, under which name.

A curve is a variant; if other axes than x are swept too, a variant at one value of each of them. An axis that varies
together with x (paired axes, or an axis with one value) makes no curves of its own. A fixed variant is a level line. A
figure of differences from a variant shows neither that variant nor fixed ones, which share only one point with it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from roamcast.analysis.measures.measure import Measures
from roamcast.campaign.define.described import FigurePlan, ReportedExperiment, SweptAxis
from roamcast.campaign.define.experiment import NUMBERS, number_in
from roamcast.report.numbers import value_text
from roamcast.report.plans import follows, planned_figures
from roamcast.report.source import ReportData, SummaryRow, is_number, key
from roamcast.report.titles import axis_title, difference_title, first_upper


@dataclass(frozen=True)
class Curve:
    """A curve's rows in the order of x. A level line has one row, whose x means nothing."""

    name: str
    level: bool
    rows: tuple[SummaryRow, ...]
    look: int = 0
    """Which colour, marker and dashes it has: the same in every figure of a campaign."""


@dataclass(frozen=True)
class Chart:
    """All that a drawing of a figure needs."""

    plan: FigurePlan
    experiment: str
    x_title: str
    y_title: str
    x_values: tuple[Any, ...]
    """Every value of x that has a row, in order."""
    curves: tuple[Curve, ...]
    whole: bool = False
    """Whether the y axis should reach up to 1, for a share."""
    by_ratio: bool = False
    """Whether values are compared by ratio, so that a logarithmic y axis suits them."""

    @property
    def title(self) -> str:
        return first_upper(self.plan.title or f"{self.y_title.partition(' (')[0]} over {self.plan.x}")

    @property
    def rows(self) -> list[SummaryRow]:
        return [row for curve in self.curves for row in curve.rows]

    def x_of(self, row: SummaryRow) -> Any:  # noqa: ANN401  # any value of JSON
        return row.axes[self.plan.x]

    @property
    def categorical(self) -> bool:
        return not all(is_number(value) for value in self.x_values)

    @property
    def logarithmic(self) -> bool:
        """Whether the x axis is logarithmic: if requested, and if every value has a logarithm."""
        return self.plan.log and not self.categorical and all(value > 0 for value in self.x_values)


def all_charts(results: ReportData) -> list[tuple[ReportedExperiment, list[Chart]]]:
    """Every figure of a campaign, by experiment; curves with the same name look the same in all of them."""
    looks: dict[str, int] = {}
    found = []
    for one in results.campaign.experiments:
        plans = planned_figures(one, results)
        found.append((one, [make_chart(one, plan, results.drawn(plan), results.measured, looks) for plan in plans]))
    return found


def make_chart(
    experiment: ReportedExperiment,
    plan: FigurePlan,
    rows: Iterable[SummaryRow],
    measured: Measures,
    looks: dict[str, int] | None = None,
) -> Chart:
    """The chart of a figure; `rows` may be those of all experiments and measures. New names are added to `looks`."""
    if NUMBERS in plan.y:
        rows = list(_by_number(plan, [row for row in rows if row.experiment == experiment.name]))
        about = rows[0].about if rows else measured[plan.y]
    else:
        rows = [row for row in rows if row.measure == plan.y]
        about = measured[plan.y]
    fixed = {variant.name for variant in experiment.variants if variant.fixed}
    mine = [row for row in rows if (row.experiment, row.baseline) == (experiment.name, plan.against)]
    if plan.against is not None:
        mine = [row for row in mine if row.percent and row.variant not in fixed]
    looks = {} if looks is None else looks
    values = x_values(experiment, plan.x, mine)
    return Chart(
        plan=plan,
        experiment=experiment.name,
        x_title=axis_title(plan.x, _axis(experiment, plan.x).field or ""),
        y_title=about.title if plan.against is None else difference_title(about, plan.against),
        x_values=tuple(values),
        curves=tuple(
            replace(curve, look=looks.setdefault(curve.name, len(looks)))
            for curve in curves_of(experiment, plan.x, values, mine)
        ),
        whole=about.whole and plan.against is None,
        by_ratio=not about.share and not about.signed and plan.against is None,
    )


def _by_number(plan: FigurePlan, rows: Iterable[SummaryRow]) -> Iterator[SummaryRow]:
    """The rows of several measures, with the number in a measure's name as its value of x."""
    for row in rows:
        number = number_in(plan.y, row.measure)
        if number is not None:
            yield replace(row, axes={**row.axes, plan.x: number})


def x_values(experiment: ReportedExperiment, x: str, rows: Iterable[SummaryRow]) -> list[Any]:
    """Every value of an axis that has a row, in order."""
    found = {key(row.axes[x]): row.axes[x] for row in rows if x in row.axes}
    return _ordered(found.values(), _axis(experiment, x))


def curves_of(experiment: ReportedExperiment, x: str, values: list[Any], rows: list[SummaryRow]) -> Iterator[Curve]:
    """Rows of one measure as curves over an axis, in the order of the experiment's variants."""
    fixed = {variant.name for variant in experiment.variants if variant.fixed}
    swept = [row for row in rows if row.variant not in fixed and x in row.axes]
    other = [axis for axis in experiment.axes if axis.label != x and not follows(axis.label, x, swept)]
    for variant in variants_of(experiment, rows):
        for name, group in _split(variant, other, [row for row in rows if row.variant == variant]):
            if variant in fixed:
                yield Curve(name, True, tuple(group[:1]))
            elif points := [row for row in group if x in row.axes]:
                yield Curve(name, False, tuple(_along(points, x, values)))


def _axis(experiment: ReportedExperiment, label: str) -> SweptAxis:
    return next((axis for axis in experiment.axes if axis.label == label), SweptAxis(label, []))


def _ordered(values: Iterable[Any], axis: SweptAxis) -> list[Any]:
    """Numbers by size, names as the experiment lists them."""
    found = list(values)
    if all(map(is_number, found)):
        return sorted(found)
    place = {key(value): index for index, value in enumerate(axis.values)}
    return sorted(found, key=lambda value: place.get(key(value), len(place)))


def variants_of(experiment: ReportedExperiment, rows: Iterable[SummaryRow]) -> list[str]:
    """The variants that have rows: first those that the experiment lists, in its order."""
    return list(dict.fromkeys([*(variant.name for variant in experiment.variants), *(row.variant for row in rows)]))


def _split(variant: str, axes: list[SweptAxis], rows: list[SummaryRow]) -> list[tuple[str, list[SummaryRow]]]:
    """The rows of a variant by the values of other axes, with names such as `hint, interval 5`."""
    groups: dict[tuple[str, ...], list[SummaryRow]] = {}
    for row in rows:
        groups.setdefault(tuple(key(row.axes.get(axis.label)) for axis in axes), []).append(row)
    named = []
    for group in groups.values():
        at = [f"{axis.label} {value_text(group[0].axes[axis.label])}" for axis in axes if axis.label in group[0].axes]
        named.append((", ".join([variant, *at]), group))
    return named


def _along(rows: list[SummaryRow], x: str, values: list[Any]) -> list[SummaryRow]:
    place = {key(value): index for index, value in enumerate(values)}
    return sorted(rows, key=lambda row: place[key(row.axes[x])])
