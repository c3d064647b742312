"""What the words of claims mean in numbers: the kinds of checks.

The rules this file owns, fixed for all claims before any was measured:

* Two terms are compared seed by seed: the same seed gives the same movement, subscriptions and publications, so the
  sample consists of paired differences. `evidence.py` says how strong it is, and shows it as an interval.
* *about x*: within 15 % of x (ratios, such as delivery: within 0.05). *rises, falls*: from the first to the last
  point. *slightly, hardly*: by less than 0.05 (costs: 15 %), over the whole range. *clearly*: by at least 10 %, the
  interval excluding 0. *comparable*: within 15 %. *far below*: less than half. *steadily*: at every step. *steep*: more
  than half of a rise within a third of the axis. *against*: about the relative difference from another term, along the
  axis.
* `conditions.py` says when a condition holds. For *clearly* the mean decides too: it must be beyond 10 %, and the
  interval only has to exclude 0.
* A place at which no seed has the number, such as a difference relative to almost nothing (`floor`), is not measured;
  the others count.
* If the data makes a choice, the interval includes the choice: the least step, the points farthest apart, the best
  point, the steepest part of a rise, and the place where a curve reaches a value.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from roamcast.papers.claims import Check, Term
from roamcast.papers.conditions import INF, Band, Condition
from roamcast.papers.reached import common, reached, reaches, typical
from roamcast.papers.terms import ClaimedCurves, Crossing
from roamcast.statistics.curves import BySeed, CurvePoint, Missing
from roamcast.statistics.evidence import UNBOUNDED, Bounds, Chosen, Evidence, Sample, ShareOfRise
from roamcast.statistics.intervals import LEVEL, Estimate

_SHARE: Final[Bounds] = (0.0, 1.0)
_DIFFERENCE: Final[Bounds] = (-1.0, 1.0)
"""Of two shares."""


class CheckedNumber(NamedTuple):
    """The number found at one place, the condition on it, and how it is shown."""

    place: str
    found: Evidence
    condition: Condition
    shown: Callable[[Estimate], str]
    unit: str = ""
    """The unit of the number found: per cent or its own."""


def _sample(check: Check, values: BySeed, bounds: Bounds = UNBOUNDED) -> Sample:
    """`bounds` are those of a share."""
    if not values:
        raise Missing("no seed has a value")
    return Sample([values[seed] for seed in sorted(values)], check.exact, bounds if check.share else UNBOUNDED)


# --- A term against a value -----------------------------------------------------------------------------------------


def _about(check: Check, value: float) -> Condition:
    margin = _number(check, ratio=0.05, cost=0.15) * (1 if check.share else abs(value))
    return Condition(Band(value - margin, value + margin, closed=True))


_LEVELS: Final[dict[str, Callable[[Check, float], Condition]]] = {
    "about": _about,
    "above": lambda _, value: Condition(Band(value, INF)),
    "below": lambda _, value: Condition(Band(-INF, value)),
    "at least": lambda _, value: Condition(Band(value, INF, closed=True)),
    "at most": lambda _, value: Condition(Band(-INF, value, closed=True)),
}


def _level(check: Check, curves: ClaimedCurves) -> Iterator[CheckedNumber | str]:
    assert check.value is not None
    condition = _LEVELS[check.kind](check, check.value)
    if check.of.reaching is not None:
        place = curves.crossing(check.of)
        yield CheckedNumber(place.place, reached(check, place, None, None), condition, _plain)
        return
    points = curves.points(check.of)
    if check.where is not None:
        also, above = check.where.measure, check.where.above
        points = [point for point in points if _surely_above(check, curves.beside(check.of, point, also), above)]
    if check.of.at == "best":
        best = Chosen([[_sample(check, point.values, _SHARE)] for point in points])
        yield CheckedNumber(points[best.place[0]].place, best, condition, _plain)
        return
    for point in points:
        yield CheckedNumber(point.place, _sample(check, point.values, _SHARE), condition, _plain)


def _surely_above(check: Check, point: CurvePoint, value: float) -> bool:
    return _sample(check, point.values).interval(LEVEL).low > value


# --- A term along its axis ------------------------------------------------------------------------------------------


def _trend(check: Check, curves: ClaimedCurves) -> Iterator[CheckedNumber | str]:
    points = _several(check, curves)
    yield _compare(check, points[-1], points[0], f"{points[0].place} to {points[-1].place}")


def _by_about(check: Check, curves: ClaimedCurves) -> Iterator[CheckedNumber | str]:
    """The fall from the first to the last point, as a share of the first."""
    assert check.value is not None
    points = _several(check, curves)
    first, last = points[0], points[-1]
    margin = _number(check, ratio=0.05, cost=0.05)
    condition = Condition(Band(-check.value - margin, -check.value + margin, closed=True))
    found = _compared(check, last, first, relative=True)
    yield CheckedNumber(f"{first.place} to {last.place}", found, condition, _against(last, first, relative=True), "%")


def _steps(check: Check, curves: ClaimedCurves) -> Iterator[CheckedNumber | str]:
    """The step that goes least in the right direction, chosen by the data."""
    points = _several(check, curves)
    steps = list(itertools.pairwise(points))
    up = check.kind == "steadily rises"
    samples = [_sample(check, after.minus(before), _DIFFERENCE) for before, after in steps]
    least = Chosen([samples] if up else [[sample] for sample in samples])
    before, after = steps[max(least.place)]
    condition = (_MORE if up else _LESS).condition(check)
    yield CheckedNumber(f"{before.place} to {after.place}", least, condition, _against(after, before, relative=False))


def _range(check: Check, curves: ClaimedCurves) -> Iterator[CheckedNumber | str]:
    """The two points that are farthest apart, chosen by the data."""
    points = _several(check, curves)
    relative = not check.share
    yield _farthest(check, points, relative, lambda high, low: _against(high, low, relative))


def _farthest(
    check: Check,
    points: Sequence[CurvePoint],
    relative: bool,
    shown: Callable[[CurvePoint, CurvePoint], Callable[[Estimate], str]],
) -> CheckedNumber:
    pairs, samples = [], []
    plain = not relative and check.than is None
    for high, low in itertools.permutations(points, 2):
        values = high.relative_to(low, check.floor) if relative else high.minus(low)
        if values:
            pairs.append((high, low))
            samples.append(_sample(check, values, _DIFFERENCE if plain else UNBOUNDED))
    if not pairs:
        raise Missing("no seed has a value at two points")
    farthest = Chosen([[sample] for sample in samples])
    high, low = pairs[farthest.place[0]]
    condition = Condition(Band(-INF, _number(check, *_SLIGHT)))
    unit = "" if plain else "%"
    return CheckedNumber(f"{low.place} to {high.place}", farthest, condition, shown(high, low), unit)


def _steep(check: Check, curves: ClaimedCurves) -> Iterator[CheckedNumber | str]:
    """The share of the rise from the first to the last point that falls into the steepest third of the axis."""
    points = _several(check, curves)
    first, last = points[0], points[-1]
    third = (last.position - first.position) / 3 * (1 + 1e-9)  # 0.7 - 0.4 is not 0.3 in doubles
    pairs = [(low, high) for low in points for high in points if 0 < high.position - low.position <= third]
    seeds = common(points)
    rise = [last.values[seed] - first.values[seed] for seed in seeds]
    if not pairs or not seeds or sum(rise) <= 0:
        raise Missing("no rise, or no two points within a third of the axis")
    parts = [[high.values[seed] - low.values[seed] for seed in seeds] for low, high in pairs]
    found = ShareOfRise(parts, rise, check.exact)
    low, high = pairs[found.place]
    condition = Condition(Band(_number(check, ratio=0.5, cost=0.5), INF))
    place = f"{low.place} to {high.place}"
    yield CheckedNumber(place, found, condition, lambda found: f"{_percent(found, signed=False)} of the rise", "%")


def _several(check: Check, curves: ClaimedCurves) -> list[CurvePoint]:
    points = [] if check.of.reaching or check.of.at == "best" else curves.points(check.of)
    if len(points) < 2:
        raise Missing("a curve of one point has no course")
    return points


# --- A term against another -----------------------------------------------------------------------------------------


class TermComparison(NamedTuple):
    """How two terms are compared."""

    relative: bool | None
    """Relative to the second, or the plain difference; None: depends on the measure."""
    numbers: tuple[float, float]
    """For ratios and for costs."""
    bounds: Callable[[float], Condition]

    def condition(self, check: Check) -> Condition:
        return self.bounds(_number(check, *self.numbers))

    def is_relative(self, check: Check) -> bool:
        return not check.share if self.relative is None else self.relative


_SLIGHT: Final = (0.05, 0.15)
_TENTH: Final = (0.1, 0.1)
_NONE: Final = (0.0, 0.0)
_LESS: Final = TermComparison(False, _NONE, lambda number: Condition(Band(-INF, -number)))
_MORE: Final = TermComparison(False, _NONE, lambda number: Condition(Band(number, INF)))

_COMPARISONS: Final = {
    "rises": _MORE,
    "higher than": _MORE,
    "falls": _LESS,
    "lower than": _LESS,
    "slightly below": TermComparison(None, _SLIGHT, lambda number: Condition(Band(-number, 0))),
    "slightly above": TermComparison(None, _SLIGHT, lambda number: Condition(Band(0, number))),
    "not below": TermComparison(None, _SLIGHT, lambda number: Condition(Band(-number, INF))),
    "comparable with": TermComparison(True, (0.15, 0.15), lambda number: Condition(Band(-number, number, closed=True))),
    "clearly below": TermComparison(
        True, _TENTH, lambda number: Condition(Band(-INF, -number, closed=True), Band(-INF, 0))
    ),
    "clearly above": TermComparison(
        True, _TENTH, lambda number: Condition(Band(number, INF, closed=True), Band(0, INF))
    ),
    "far below": TermComparison(True, (0.5, 0.5), lambda number: Condition(Band(-INF, -number))),
}


def _versus(check: Check, curves: ClaimedCurves) -> Iterator[CheckedNumber | str]:
    assert check.than is not None
    if "best" in (check.of.at, check.than.at):
        yield _best(check, curves, check.than)
        return
    lefts = curves.points(check.of) if not check.of.reaching else [curves.crossing(check.of)]
    for left in lefts:
        try:
            right = _opposite(check, curves, left)
            if right is not None:
                yield _compare(check, left, right, left.place)
        except Missing as problem:
            yield f"{left.place}: {problem}" if left.place else str(problem)


def _opposite(check: Check, curves: ClaimedCurves, left: CurvePoint | Crossing) -> CurvePoint | Crossing | None:
    assert check.than is not None
    right = curves.opposite(check.of, left if isinstance(left, CurvePoint) else left.values[0], check.than)
    if isinstance(right, Crossing) and isinstance(right.target, CurvePoint) and not reaches(right):
        return None  # it never reaches the left's level: nothing to compare with
    return right


def _compare(check: Check, left: CurvePoint | Crossing, right: CurvePoint | Crossing, place: str) -> CheckedNumber:
    relative = _COMPARISONS[check.kind].is_relative(check)
    found: Evidence
    if isinstance(left, CurvePoint) and isinstance(right, CurvePoint):
        found = _compared(check, left, right, relative)
    else:
        found = reached(check, left, right, check.floor if relative else None)
    return _difference_found(check, place, found, left, right)


def _difference_found(
    check: Check, place: str, found: Evidence, left: CurvePoint | Crossing, right: CurvePoint | Crossing
) -> CheckedNumber:
    comparison = _COMPARISONS[check.kind]
    relative = comparison.is_relative(check)
    shown = _against(left, right, relative)
    return CheckedNumber(place, found, comparison.condition(check), shown, "%" if relative else "")


def _best(check: Check, curves: ClaimedCurves, than: Term) -> CheckedNumber:
    """Compares the best point, on one side or both, with all candidates for the best.

    If both sides are the same curve, a point is compared with the other points: if it is lower than the best of the
    others, it is lower than the best.
    """
    relative = _COMPARISONS[check.kind].is_relative(check)
    same = (check.of.experiment, check.of.variant, check.of.measure) == (than.experiment, than.variant, than.measure)
    lefts, rights = curves.points(check.of), curves.points(than)
    if check.of.at != "best" and len(lefts) > 1:
        raise Missing("the best is compared with one point")
    if than.at != "best":
        rights = rights[:1]
    if same and check.of.at == "best":
        lefts = [left for left in lefts if left.number != rights[0].number]
    elif same:
        rights = [right for right in rights if right.number != lefts[0].number]
    # Below the floor there is no relative difference, from any point.
    rights = [right for right in rights if all(_difference(check, left, right, relative) for left in lefts)]
    if not lefts or not rights:
        raise Missing("there is no other point to compare with")
    found = Chosen([[_compared(check, left, right, relative) for right in rights] for left in lefts])
    left, right = lefts[found.place[0]], rights[found.place[1]]
    return _difference_found(check, f"{left.place} against {right.place}", found, left, right)


def _difference(check: Check, left: CurvePoint, right: CurvePoint, relative: bool) -> BySeed:
    return left.relative_to(right, check.floor) if relative else left.minus(right)


def _compared(check: Check, left: CurvePoint, right: CurvePoint, relative: bool) -> Sample:
    same_measure = check.than is None or check.than.measure == check.of.measure
    bounds = _DIFFERENCE if same_measure and not relative else UNBOUNDED
    return _sample(check, _difference(check, left, right, relative), bounds)


def _gap(check: Check, curves: ClaimedCurves) -> Iterator[CheckedNumber | str]:
    """Whether `of` is farther above `than` at the first point than at the last."""
    gaps = _two_or_more(_gaps(check, curves, relative=False))
    first, last = gaps[0], gaps[-1]
    means = f"{show(first.mean)} to {show(last.mean)}"
    place, shrinks = f"{first.place} to {last.place}", Condition(Band(-INF, 0))
    found = _sample(check, last.minus(first))
    yield CheckedNumber(place, found, shrinks, lambda found: f"from {means}, {_plain(found, signed=True)}")


_COURSES: Final = {"rises against": _MORE, "falls against": _LESS}


def _course(check: Check, curves: ClaimedCurves) -> Iterator[CheckedNumber | str]:
    """How the difference of `of` from `than`, relative to `than`, changes along the axis."""
    every = _gaps(check, curves, relative=True)
    gaps = _two_or_more([gap for gap in every if gap.values])
    yield from (f"{gap.place}: no seed has a value" for gap in every if not gap.values)
    if check.kind == "hardly moves against":
        yield _farthest(check, gaps, relative=False, shown=lambda high, low: _by(low, high))
        return
    first, last = gaps[0], gaps[-1]
    found, condition = _sample(check, last.minus(first)), _COURSES[check.kind].condition(check)
    yield CheckedNumber(f"{first.place} to {last.place}", found, condition, _by(first, last), "%")


def _gaps(check: Check, curves: ClaimedCurves, relative: bool) -> list[CurvePoint]:
    """The difference from `than`, at every point of `of` that has a counterpart."""
    assert check.than is not None
    gaps = []
    for left in curves.points(check.of):
        right = curves.opposite(check.of, left, check.than)
        if isinstance(right, Crossing):
            raise Missing("a course is not compared with where a curve reaches a value")
        if right is not None:
            gaps.append(CurvePoint(left.number, left.axes, _difference(check, left, right, relative), left.place))
    return gaps


def _two_or_more(gaps: list[CurvePoint]) -> list[CurvePoint]:
    if len(gaps) < 2:
        raise Missing("fewer than two points to compare at")
    return gaps


KINDS: Final[dict[str, Callable[[Check, ClaimedCurves], Iterator[CheckedNumber | str]]]] = {
    **dict.fromkeys(_LEVELS, _level),
    **dict.fromkeys(_COMPARISONS, _versus),
    **dict.fromkeys(("rises", "falls"), _trend),
    "falls by about": _by_about,
    **dict.fromkeys(("steadily rises", "steadily falls"), _steps),
    "hardly moves": _range,
    "is steep": _steep,
    "gap shrinks to": _gap,
    **dict.fromkeys((*_COURSES, "hardly moves against"), _course),
}


# --- Numbers --------------------------------------------------------------------------------------------------------


def _number(check: Check, ratio: float, cost: float) -> float:
    """The number of a word: the claim's own, or the one for all claims."""
    if check.number is not None:
        return check.number
    return ratio if check.share else cost


_NO_INTERVAL: Final = "no interval"
"""For one seed, or seeds that all have the same value."""


def show(value: float, signed: bool = False) -> str:
    return f"{value:{'+' if signed else ''}.3g}".replace("-", "−")


def _plain(found: Estimate, signed: bool = False) -> str:
    between = f"{show(found.low, signed)} to {show(found.high, signed)}"
    return f"{show(found.mean, signed)} ({_NO_INTERVAL if found.half == INF else between})"


def _percent(found: Estimate, signed: bool = True) -> str:
    mean, low, high = (show(100 * part, signed) for part in (found.mean, found.low, found.high))
    return f"{mean} % ({_NO_INTERVAL if found.half == INF else f'{low} to {high} %'})"


def _against(left: CurvePoint | Crossing, right: CurvePoint | Crossing, relative: bool) -> Callable[[Estimate], str]:
    means = f"{show(typical(left))} against {show(typical(right))}"
    return lambda found: f"{means}, {_percent(found) if relative else _plain(found, signed=True)}"


def _by(first: CurvePoint, last: CurvePoint) -> Callable[[Estimate], str]:
    means = " to ".join(f"{show(100 * gap.mean, signed=True)} %" for gap in (first, last))
    return lambda found: f"from {means}, by {_percent(found)}"
