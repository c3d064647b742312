"""What the seeds say about variants: who leads where in a measure, and which is best if cost counts too.

The rules this file owns:

* Nothing is averaged over points: variants are compared at each point, seed by seed over the seeds that both have.
* A variant *leads* at a point if it is surely better than each of the others there. Whoever may lead is a *candidate*:
  it is surely worse than none.
* The *best* at a point is the cheapest of those within `CLOSE` of the highest delivery (or whatever the first goal is).
  It is decided if a variant is surely that close to each of the others, and surely cheaper than each of the others that
  may be. Without a cost, the best is the leader.
* *Surely* is by intervals that hold together with 95 % (`statistics/contrast.py`): a level is corrected for all other
  variants, all points, and for both measures if there is a cost. It is enough to count the comparisons of the variant
  that is truly best with the others: a variant that wrongly leads, or is wrongly excluded, does so in one of those.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from roamcast.analysis.measures.measure import Measure
from roamcast.report.source import SummaryRow, key
from roamcast.statistics.contrast import Contrast, level_of
from roamcast.statistics.curves import BySeed, CurvePoint, Curves
from roamcast.statistics.intervals import Estimate

CLOSE: Final = 0.05
"""A share that is less than this below the highest, or anything else within 5 %, is as good as it."""

Place = tuple[Any, ...]
"""A point: one value for each axis."""


@dataclass(frozen=True)
class Question:
    """How the variants of an experiment compare in a measure."""

    experiment: str
    about: Measure
    variants: tuple[str, ...]
    axes: tuple[str, ...] = ()
    """The labels of the axes that vary independently."""
    together: int = 1
    """How many measures share the risk of an error."""

    @property
    def low_is_good(self) -> bool:
        return self.about.good == "low"


@dataclass(frozen=True)
class Standing:
    """The variants at one point."""

    place: Place
    about: Measure
    values: Mapping[str, BySeed]
    """Of the variants that have a value here, by seed."""
    level: float

    def mean(self, variant: str) -> float:
        values = self.values[variant]
        return math.fsum(values.values()) / len(values)

    @cached_property
    def ranking(self) -> list[str]:
        """The best mean first."""
        return sorted(self.values, key=self.mean, reverse=self.about.good != "low")

    def contrast(self, one: str, other: str) -> Contrast | None:
        """One variant against another; None if too few seeds have both."""
        left, right = self.values.get(one, {}), self.values.get(other, {})
        return Contrast.of([(left[seed], right[seed]) for seed in sorted(left) if seed in right], self.about)

    def ahead(self, one: str, other: str) -> Estimate:
        """By how much one is better than another, as a difference or the logarithm of a ratio."""
        found = self.contrast(one, other)
        if found is None:
            return Estimate(0.0, -math.inf, math.inf)
        mean, low, high = found.interval(self.level)
        return Estimate(-mean, -high, -low) if self.about.good == "low" else Estimate(mean, low, high)

    def better(self, one: str, other: str) -> bool:
        """Whether one is surely better than another."""
        return self.ahead(one, other).low > 0

    def others(self, variant: str) -> list[str]:
        return [name for name in self.values if name != variant]

    @cached_property
    def leader(self) -> str | None:
        first = self.ranking[0]
        return first if all(self.better(first, other) for other in self.others(first)) else None

    @cached_property
    def candidates(self) -> list[str]:
        """Those that may lead, the best mean first; the leader alone if there is one."""
        if self.leader is not None:
            return [self.leader]
        return [one for one in self.ranking if not any(self.better(other, one) for other in self.others(one))]

    @property
    def tied(self) -> bool:
        """Whether several candidates have the same value in every seed."""
        first, *rest = self.candidates
        contrasts = [self.contrast(first, other) for other in rest]
        return bool(rest) and all(found is not None and found.same for found in contrasts)

    @property
    def runner_up(self) -> str:
        return self.ranking[1]

    def margin(self, one: str, other: str) -> float:
        """How much worse still counts as close."""
        found = self.contrast(one, other)
        return math.log1p(CLOSE) if found is not None and found.ratio else CLOSE * self.about.share

    def close(self, one: str) -> bool:
        """Whether a variant is surely close to the best."""
        return all(self.ahead(one, other).low >= -self.margin(one, other) for other in self.others(one))

    def far(self, one: str) -> bool:
        """Whether a variant is surely not close to the best."""
        return any(self.ahead(one, other).high < -self.margin(one, other) for other in self.others(one))


@dataclass(frozen=True)
class MeasureComparison:
    """The answer to a question, in numbers: the standing at each point where two variants or more have values."""

    question: Question
    standings: tuple[Standing, ...]
    places: tuple[Place, ...]
    """All points, also those where one variant alone has values."""

    @property
    def seeds(self) -> int:
        """The largest number of seeds of any variant at any point."""
        counts = (len(values) for standing in self.standings for values in standing.values.values())
        return max(counts, default=0)

    def at(self, place: Place) -> Standing | None:
        return next((one for one in self.standings if key(one.place) == key(place)), None)


@dataclass(frozen=True)
class Best:
    """Which variant is best at a point, or which may be."""

    place: Place
    variant: str | None
    candidates: list[str]


def compare(question: Question, curves: Curves) -> MeasureComparison:
    sides = {name: curves.along(question.experiment, name, question.about.name) for name in question.variants}
    places: dict[str, Place] = {}
    for points in sides.values():
        for point in points:
            if not question.axes or any(label in point.axes for label in question.axes):
                place = tuple(point.axes.get(label) for label in question.axes)
                places.setdefault(key(place), place)
    found = [(place, _values(sides, question.axes, place)) for place in places.values()]
    shared = [(place, values) for place, values in found if len(values) > 1]
    measured = sum(any(points) for points in sides.values())
    level = level_of(question.together * (measured - 1) * len(shared))
    standings = tuple(Standing(place, question.about, values, level) for place, values in shared)
    return MeasureComparison(question, standings, tuple(places.values()))


def contrast_rows(found: MeasureComparison) -> list[SummaryRow]:
    """Every variant against every other at each point, with the intervals by which they are compared."""
    question, rows = found.question, []
    for standing in found.standings:
        axes = dict(zip(question.axes, standing.place, strict=True))
        for baseline, variant in itertools.permutations(standing.values, 2):
            contrast = standing.contrast(variant, baseline)
            if contrast is None:
                continue
            mean, low, high = contrast.shown(standing.level)
            place = question.experiment, variant, axes, question.about.name, len(contrast.sample.values)
            sd = None if contrast.ratio else contrast.sample.deviation
            how = contrast.ratio, standing.level, "", question.about
            row = SummaryRow(*place, mean, sd, low, high, baseline, False, *how)
            rows.append(row if math.isfinite(high - low) else replace(row, low=None, high=None))
    return rows


def best(first: MeasureComparison, cost: MeasureComparison | None) -> list[Best]:
    """The best at each point of the first goal."""
    return [_best(standing, None if cost is None else cost.at(standing.place)) for standing in first.standings]


def _best(first: Standing, cost: Standing | None) -> Best:
    if cost is None:
        return Best(first.place, first.leader, first.candidates)
    possible = [one for one in first.ranking if not first.far(one)]
    close = [one for one in possible if first.close(one)]
    cheapest = [one for one in close if all(cost.better(one, other) for other in possible if other != one)]
    if cheapest:
        return Best(first.place, cheapest[0], cheapest)
    left = [one for one in possible if not any(cost.better(other, one) for other in close)]
    return Best(first.place, None, left)


def _values(sides: Mapping[str, Sequence[CurvePoint]], axes: tuple[str, ...], place: Place) -> dict[str, BySeed]:
    """The values at a place by variant. A level line, which has no axes, meets every place."""
    found = {}
    for name, points in sides.items():
        for point in points:
            there = key(tuple(point.axes.get(label) for label in axes)) == key(place)
            if point.values and (there or not point.axes):
                found[name] = point.values
    return found
