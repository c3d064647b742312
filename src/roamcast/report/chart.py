"""From rows of the summary to curves: which points belong together, in which order, under which name.

A curve is a variant; and where other axes than x are swept, a variant at one value of each of them. An axis that goes
along with x (paired axes, or an axis with one value) makes no curves of its own. A fixed variant is a level. In a
figure of differences from a variant there are neither that one nor fixed ones, which meet it at one point only.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from roamcast.campaign.measured import Measured
from roamcast.report.numbers import value_text
from roamcast.report.source import Axis, Experiment, FigurePlan, Row
from roamcast.report.titles import axis_title, difference_title


@dataclass(frozen=True)
class Curve:
    """Rows in the order of x; of a level, one row, whose x means nothing."""

    name: str
    level: bool
    rows: tuple[Row, ...]


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
    """Whether y goes from 0 to 1 whatever was measured."""

    @property
    def title(self) -> str:
        return self.plan.title or f"{self.y_title} over {self.x_title}"

    def x_of(self, row: Row) -> Any:  # noqa: ANN401  # any value of JSON
        return row.axes[self.plan.x]

    @property
    def categorical(self) -> bool:
        return not all(is_number(value) for value in self.x_values)

    @property
    def logarithmic(self) -> bool:
        """As asked for, unless a value has no logarithm."""
        return self.plan.log and not self.categorical and all(value > 0 for value in self.x_values)


def is_number(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, int | float) and not isinstance(value, bool)


def make_chart(experiment: Experiment, plan: FigurePlan, rows: Iterable[Row], measured: Measured) -> Chart:
    """The chart of a figure; `rows` may be those of all experiments and measures."""
    about = measured[plan.y]
    fixed = {variant.name for variant in experiment.variants if variant.fixed}
    wanted = (experiment.name, plan.y, plan.against)
    mine = [row for row in rows if (row.experiment, row.measure, row.baseline) == wanted]
    if plan.against is not None:
        mine = [row for row in mine if row.percent and row.variant not in fixed]
    swept = [row for row in mine if row.variant not in fixed and plan.x in row.axes]
    axis = next((axis for axis in experiment.axes if axis.label == plan.x), Axis(plan.x, []))
    values = _ordered({_key(row.axes[plan.x]): row.axes[plan.x] for row in swept}.values(), axis)
    other = [axis for axis in experiment.axes if axis.label != plan.x and not _follows(axis.label, plan.x, swept)]
    curves = []
    for variant in _variants(experiment, mine):
        for name, group in _split(variant, other, [row for row in mine if row.variant == variant]):
            if variant in fixed:
                curves.append(Curve(name, True, tuple(group[:1])))
            elif points := [row for row in group if plan.x in row.axes]:
                curves.append(Curve(name, False, tuple(_along(points, plan.x, values))))
    return Chart(
        plan=plan,
        experiment=experiment.name,
        x_title=axis_title(plan.x, axis.field or ""),
        y_title=about.title if plan.against is None else difference_title(about, plan.against),
        x_values=tuple(values),
        curves=tuple(curves),
        whole=about.whole and plan.against is None,
    )


def _key(value: Any) -> str:  # noqa: ANN401
    """Lists have no hash; 1 and 1.0 are one place on an axis."""
    return json.dumps(float(value) if is_number(value) else value)


def _ordered(values: Iterable[Any], axis: Axis) -> list[Any]:
    """Numbers by size, names as the experiment lists them."""
    found = list(values)
    if all(map(is_number, found)):
        return sorted(found)
    place = {_key(value): index for index, value in enumerate(axis.values)}
    return sorted(found, key=lambda value: place.get(_key(value), len(place)))


def _follows(label: str, x: str, rows: list[Row]) -> bool:
    """Whether x alone tells the value of another axis."""
    pairs = {(_key(row.axes[x]), _key(row.axes.get(label))) for row in rows}
    return len(pairs) == len({first for first, _ in pairs})


def _variants(experiment: Experiment, rows: list[Row]) -> list[str]:
    """Those of the experiment first, as it orders them."""
    return list(dict.fromkeys([*(variant.name for variant in experiment.variants), *(row.variant for row in rows)]))


def _split(variant: str, axes: list[Axis], rows: list[Row]) -> list[tuple[str, list[Row]]]:
    """The rows of a variant by the values of other axes, with names such as `hint, interval 5`."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(_key(row.axes.get(axis.label)) for axis in axes), []).append(row)
    named = []
    for group in groups.values():
        at = [f"{axis.label} {value_text(group[0].axes[axis.label])}" for axis in axes if axis.label in group[0].axes]
        named.append((", ".join([variant, *at]), group))
    return named


def _along(rows: list[Row], x: str, values: list[Any]) -> list[Row]:
    place = {_key(value): index for index, value in enumerate(values)}
    return sorted(rows, key=lambda row: place[_key(row.axes[x])])
