"""What the seeds say about variants: how far each is from a reference over the whole axis, and who leads where.

The rules this file owns:

* Variants are compared seed by seed, over the seeds that both have: variants of a point see the same movement,
  subscriptions and publications. Over several points a seed counts with its mean, if it has a value at all of them.
* Shares are compared by difference, everything else by ratio; but by difference too if the reference is not above 0 or
  is below the measure's floor.
* An order is claimed only with evidence corrected for the number of comparisons (`statistics/correction.py`). A figure
  makes two statements, each wrong at most 5 % of the time: how the variants compare with the reference, and who leads
  where. A companion measure is judged as in a figure of its own, so that both figures say the same of it.
* A variant leads at a place if it is better than each of the others there: its weakest comparison counts. The
  correction is for all variants at all places, since the data choose which variant is tested.
* No variance is no evidence, as for claims (`statistics/evidence.py`); but two variants with the same value in every
  seed are called the same.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from roamcast.analysis.measures.measure import Measure
from roamcast.report.source import key
from roamcast.statistics.correction import holm
from roamcast.statistics.curves import Curves, Point
from roamcast.statistics.evidence import Sample
from roamcast.statistics.intervals import LEVEL, Estimate

_ALPHA: Final = 1 - LEVEL
_ZERO: Final = 1e-100
"""A reference below it counts as 0: the square of a ratio to it may be infinite."""
_FEWEST: Final = 2
"""Fewest seeds for a comparison."""


@dataclass(frozen=True)
class Question:
    """What one figure asks: how the variants compare, over an axis or at a single point."""

    experiment: str
    about: Measure
    variants: tuple[str, ...]
    reference: str
    axis: str = ""
    """The axis's label; empty if there is only one point."""
    places: tuple[Any, ...] = ()
    """The values of the axis, in order."""
    beside: Measure | None = None
    """A companion measure reported with every difference, such as delivery beside a cost."""
    others: tuple[str, ...] = ()
    """Further axes, over which everything is averaged."""

    @property
    def low_is_good(self) -> bool:
        return self.about.good == "low"


@dataclass(frozen=True)
class Difference:
    """A variant compared with the reference in one measure."""

    found: Estimate | None
    """The estimate; None: too few seeds have both."""
    ratio: bool
    """Whether the difference is a ratio to the reference; else it is absolute."""
    order: int
    """1: higher, −1: lower, 0: the seeds do not decide."""
    same: bool = False
    """Whether every seed has the same value on both sides."""


@dataclass(frozen=True)
class Compared:
    """A variant against the reference, over all places that both have."""

    variant: str
    difference: Difference
    places: tuple[Any, ...] = ()
    """The places it is the mean over."""
    beside: Difference | None = None


@dataclass(frozen=True)
class Lead:
    """The leader at a place: one variant, or none for certain."""

    place: Any
    leader: str | None
    between: tuple[str, ...] = ()
    """If no variant leads: the one with the best mean first, then those not separated from it. It is alone if it can be
    separated from each of the others, but not from all of them at once."""
    same: bool = False
    """Whether these have the same value in every seed."""


@dataclass(frozen=True)
class FigureComparison:
    """The answer to a question, in numbers."""

    question: Question
    compared: tuple[Compared, ...]
    leads: tuple[Lead, ...]
    seeds: int
    """The largest number of seeds in any comparison."""


def compare(question: Question, curves: Curves) -> FigureComparison:
    """Everything that the seeds say about the question."""
    sides = {name: _points(curves, question, name, question.about) for name in question.variants}
    beside = {name: _points(curves, question, name, question.beside) for name in question.variants}
    others = [name for name in question.variants if name != question.reference and sides[name]]
    reference = question.reference
    differences = _differences([(sides[name], sides[reference], question.about) for name in others])
    prices: list[Difference | None] = [None] * len(others)
    if question.beside is not None:
        prices[:] = _differences([(beside[name], beside[reference], question.beside) for name in others])
    compared = [
        Compared(name, difference, _common_places(question, sides[name], sides[reference]), price)
        for name, difference, price in zip(others, differences, prices, strict=True)
    ]
    seeds = max((len(point.values) for points in sides.values() for point in points), default=0)
    return FigureComparison(question, tuple(compared), tuple(_leads(question, sides)), seeds)


def ends(question: Question, curves: Curves) -> Difference | None:
    """For a single variant: its last place compared with its first, if there are two."""
    points = _points(curves, question, question.variants[0], question.about)
    if len(question.places) < 2:
        return None
    first, last = (_at(points, question.axis, place) for place in (question.places[0], question.places[-1]))
    moved = [Point(point.number, {**point.axes, question.axis: None}, point.values) for point in last]
    fixed = [Point(point.number, {**point.axes, question.axis: None}, point.values) for point in first]
    return _differences([(moved, fixed, question.about)])[0]


# --- Pairs of curves ------------------------------------------------------------------------------------------------


def _points(curves: Curves, question: Question, variant: str, about: Measure | None) -> list[Point]:
    return [] if about is None else curves.along(question.experiment, variant, about.name)


def _at(points: Sequence[Point], axis: str, place: Any) -> list[Point]:  # noqa: ANN401  # any value of JSON
    """The points at one value of an axis; for a level line, its only point."""
    return [point for point in points if not point.axes or not axis or key(point.axes.get(axis)) == key(place)]


def _common_places(question: Question, one: Sequence[Point], other: Sequence[Point]) -> tuple[Any, ...]:
    axis = question.axis
    return tuple(
        place for place in question.places if _shared(_at(one, axis, place), _at(other, axis, place)) or not axis
    )


def _shared(one: Sequence[Point], other: Sequence[Point]) -> list[tuple[Point, Point]]:
    """The points that both sides have, with enough common seeds. A level line meets every point."""
    met = [(left, right) for left in one for right in other if _meet(left.axes, right.axes)]
    return [(left, right) for left, right in met if len(set(left.values) & set(right.values)) >= _FEWEST]


def _pairs(one: Sequence[Point], other: Sequence[Point]) -> list[tuple[float, float]]:
    """Both sides' means over the points that they share, by seed."""
    shared = _shared(one, other)
    if not shared:
        return []
    seeds = set.intersection(*(set(point.values) for pair in shared for point in pair))
    return [
        (
            math.fsum(left.values[seed] for left, _ in shared) / len(shared),
            math.fsum(right.values[seed] for _, right in shared) / len(shared),
        )
        for seed in sorted(seeds)
    ]


def _meet(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return not one or not other or key(one) == key(other)


def _differences(pairs: Sequence[tuple[Sequence[Point], Sequence[Point], Measure]]) -> list[Difference]:
    """All differences, with one correction for all of them."""
    samples = [_sample(_pairs(one, other), about) for one, other, about in pairs]
    p_values = [
        1.0 if sample is None else min(1.0, 2 * min(sample.above(null), sample.below(null))) for sample, null in samples
    ]
    return [
        _difference(sample, null, about, corrected <= _ALPHA)
        for (sample, null), (_, _, about), corrected in zip(samples, pairs, holm(p_values), strict=True)
    ]


def _sample(pairs: Sequence[tuple[float, float]], about: Measure) -> tuple[Sample | None, float]:
    """What is compared, and the value that means no difference."""
    least = max(about.floor or 0.0, 0.0)
    by_ratio = not (about.share or about.signed) and all(right > _ZERO and right >= least for _, right in pairs)
    null = 1.0 if by_ratio else 0.0
    if len(pairs) < _FEWEST:
        return None, null
    return Sample([left / right if by_ratio else left - right for left, right in pairs]), null


def _difference(sample: Sample | None, null: float, about: Measure, decided: bool) -> Difference:
    ratio = null == 1.0
    if sample is None:
        return Difference(None, ratio, 0)
    found = sample.interval(LEVEL)
    if sample.same:
        return Difference(found, ratio, 0, same=sample.mean == null)
    low, high = (0.0, math.inf) if ratio else (-1.0, 1.0) if about.share else (-math.inf, math.inf)
    clipped = Estimate(found.mean, max(found.low, low), min(found.high, high))
    return Difference(clipped, ratio, (1 if sample.mean > null else -1) if decided else 0)


# --- Who leads where ------------------------------------------------------------------------------------------------


def _leads(question: Question, sides: Mapping[str, Sequence[Point]]) -> list[Lead]:
    """The leader at each place where two or more variants have a value."""
    places = []
    for place in question.places or (None,):
        there = {name: _at(points, question.axis, place) for name, points in sides.items()}
        if len(measured := {name: points for name, points in there.items() if points}) >= 2:
            places.append((place, measured))
    tests = [(place, name, _worst(name, there, question.low_is_good)) for place, there in places for name in there]
    corrected = holm([p_value for _, _, p_value in tests])
    leaders = {
        key(place): name for (place, name, _), p_value in zip(tests, corrected, strict=True) if p_value <= _ALPHA / 2
    }
    return [
        Lead(place, leaders[key(place)]) if key(place) in leaders else _undecided(question, place, there)
        for place, there in places
    ]


def _better(pairs: Sequence[tuple[float, float]], low_is_good: bool) -> Sample | None:
    """By how much the left side is better."""
    if len(pairs) < _FEWEST:
        return None
    return Sample([right - left if low_is_good else left - right for left, right in pairs])


def _worst(name: str, there: Mapping[str, Sequence[Point]], low_is_good: bool) -> float:
    """The p-value of being better than all the others: that of the weakest comparison."""
    samples = (_better(_pairs(there[name], points), low_is_good) for other, points in there.items() if other != name)
    return max(1.0 if sample is None else sample.above(0.0) for sample in samples)


def _undecided(question: Question, place: Any, there: Mapping[str, Sequence[Point]]) -> Lead:  # noqa: ANN401
    means = {name: math.fsum(point.mean for point in points) / len(points) for name, points in there.items()}
    best = (min if question.low_is_good else max)(means, key=means.__getitem__)
    samples = {
        name: _better(_pairs(there[best], points), question.low_is_good)
        for name, points in there.items()
        if name != best
    }
    near = [name for name, sample in samples.items() if sample is None or sample.interval(LEVEL).has(0.0)]
    same = all((sample := samples[name]) is not None and sample.same and sample.mean == 0 for name in near)
    return Lead(place, None, (best, *near), same and bool(near))
