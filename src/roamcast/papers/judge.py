"""Claims against measures: what the words of a claim mean in numbers, and what the measured intervals say.

The rules this file owns, fixed for all claims before any was measured:

* An *estimate* is the mean over seeds with its 95 % t-interval. Two terms are compared seed by seed: the same seed is
  the same movement, subscriptions and publications, so the interval is that of the paired difference.
* *about x*: within 15 % of x (ratios, such as delivery: within 0.05). *rises, falls*: from the first to the last
  point. *slightly, hardly*: by less than 0.05 (costs: 15 %), over the whole range. *clearly*: by at least 10 %, the
  interval excluding 0. *comparable*: within 15 %. *far below*: less than half. *steadily*: at every step. *steep*: more
  than half of a rise within a third of the axis. *against*: of the difference from another term, in parts of it, along
  the axis; points at which no seed has such a difference (`statistics.FLOORS`) are not looked at.
* `conditions.py` says when a condition holds. For two words the mean decides too: *clearly* asks it to be beyond 10 %
  and the interval only to exclude 0, *steadily* asks it to go the right way and the interval only not to lie wholly the
  wrong way.
* A check at several points, and a claim of several checks, is as good as the worst of them: one that does not hold,
  then one that is inconclusive, then one whose data is missing.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import pyarrow as pa

from roamcast.campaign.statistics import FLOORS, Estimate
from roamcast.papers.claims import Check, Claim
from roamcast.papers.conditions import INF, RANK, Band, Condition, Outcome, worst
from roamcast.papers.curves import BySeed, Curves, Missing, Point, estimate

RATIOS: Final = (
    *("delivery", "mdr", "satisfaction_", "lost_", "queue_full", "unreachable", "largest_partition"),
    *("tree_connected", "tree_matched", "tree_reach", "repairs_succeeded", "repairs_same_parent"),
)
"""Measures, or how their names begin, that lie between 0 and 1: they are compared by difference, others in per cent."""


@dataclass(frozen=True)
class CheckResult:
    """What became of one check."""

    says: str
    outcome: Outcome
    measured: str
    judged: bool


@dataclass(frozen=True)
class Verdict:
    """A claim, and what became of it."""

    claim: Claim
    outcome: Outcome
    checks: tuple[CheckResult, ...]

    def as_dict(self) -> dict[str, object]:
        """An entry of `claims.json`."""
        claim = self.claim
        # A preview leaves out what only stands beside a claim, and there is nothing to say of it.
        checks = [check for check in self.checks if check.judged or check.outcome is not Outcome.MISSING]
        measured = (f"{check.says}: {check.measured}, {_short(check)}" for check in checks)
        return {
            "id": claim.id,
            "paper": claim.paper,
            "figure": claim.figure,
            "text": claim.text,
            "verdict": str(self.outcome),
            "measured": "; ".join(measured),
            "reading": claim.reading,
            "explanation": claim.explanation,
            "checks": [
                {"says": check.says, "verdict": str(check.outcome), "measured": check.measured, "judged": check.judged}
                for check in checks
            ],
        }


def _short(check: CheckResult) -> str:
    return str(check.outcome) if check.judged else "for comparison only"


def judge(claims: Sequence[Claim], values: pa.Table) -> list[Verdict]:
    """The verdicts, in the order of the claims. `values` is a table as `curves.read_values` gives it."""
    curves = Curves(values)
    return [_judge(claim, curves) for claim in claims]


def _judge(claim: Claim, curves: Curves) -> Verdict:
    results = tuple(evaluate(check, curves) for check in claim.checks)
    outcomes = [result.outcome for result in results if result.judged]
    return Verdict(claim, worst(outcomes) if outcomes else Outcome.MISSING, results)


# --- Checks ---------------------------------------------------------------------------------------------------------


class Finding(NamedTuple):
    """An estimate at one place, what is asked of it, and how it is shown."""

    place: str
    found: Estimate
    condition: Condition
    text: str

    @property
    def outcome(self) -> Outcome:
        return self.condition.outcome(self.found)


def evaluate(check: Check, curves: Curves) -> CheckResult:
    """One check."""
    try:
        findings = list(KINDS[check.kind](check, curves))
        if not findings:
            raise Missing("no point to look at")
    except Missing as problem:
        return CheckResult(check.says, Outcome.MISSING, str(problem), check.judged)
    tightest = min(findings, key=lambda finding: (RANK[finding.outcome], finding.condition.slack(finding.found)))
    held = sum(finding.outcome is Outcome.HOLDS for finding in findings)
    text = f"{tightest.place}: {tightest.text}" if tightest.place else tightest.text
    if len(findings) > 1:
        text = f"at {held} of {len(findings)} places, the tightest {text}"
    return CheckResult(check.says, tightest.outcome, text, check.judged)


# --- A term against a value -----------------------------------------------------------------------------------------


def _about(check: Check, value: float) -> Condition:
    margin = _number(check, ratio=0.05, cost=0.15) * (1 if is_ratio(check.of.measure) else abs(value))
    return Condition(Band(value - margin, value + margin, closed=True))


_LEVELS: Final[dict[str, Callable[[Check, float], Condition]]] = {
    "about": _about,
    "above": lambda _, value: Condition(Band(value, INF)),
    "below": lambda _, value: Condition(Band(-INF, value)),
    "at least": lambda _, value: Condition(Band(value, INF, closed=True)),
    "at most": lambda _, value: Condition(Band(-INF, value, closed=True)),
}


def _level(check: Check, curves: Curves) -> Iterator[Finding]:
    assert check.value is not None
    condition = _LEVELS[check.kind](check, check.value)
    points = curves.points(check.of)
    if check.where is not None:
        also, above = check.where.measure, check.where.above
        points = [point for point in points if estimate(curves.beside(check.of, point, also).values).low > above]
    for point in points:
        found = estimate(point.values)
        yield Finding(point.place, found, condition, _plain(found))


# --- A term along its axis ------------------------------------------------------------------------------------------


def _trend(check: Check, curves: Curves) -> Iterator[Finding]:
    points = _several(check, curves)
    yield _compare(check, points[-1], points[0], f"{points[0].place} to {points[-1].place}")


def _steps(check: Check, curves: Curves) -> Iterator[Finding]:
    points = _several(check, curves)
    for before, after in itertools.pairwise(points):
        yield _compare(check, after, before, f"{before.place} to {after.place}")


def _range(check: Check, curves: Curves) -> Iterator[Finding]:
    points = sorted(_several(check, curves), key=lambda point: estimate(point.values).mean)
    yield _compare(check, points[-1], points[0], f"{points[0].place} to {points[-1].place}")


def _steep(check: Check, curves: Curves) -> Iterator[Finding]:
    """The share of the rise from the first to the last point that the steepest third of the axis has."""
    points = _several(check, curves)
    first, last = points[0], points[-1]
    rise = estimate(last.minus(first)).mean
    third = (last.position - first.position) / 3 * (1 + 1e-9)  # 0.7 - 0.4 is not 0.3 in doubles
    near = [(low, high) for low in points for high in points if 0 < high.position - low.position <= third]
    pairs = near if rise > 0 else []
    if not pairs:
        raise Missing("no rise, or no two points within a third of the axis")
    low, high = max(pairs, key=lambda pair: estimate(pair[1].minus(pair[0])).mean)
    found = estimate({seed: part / rise for seed, part in high.minus(low).items()})
    condition = Condition(Band(_number(check, ratio=0.5, cost=0.5), INF))
    yield Finding(f"{low.place} to {high.place}", found, condition, f"{_percent(found, signed=False)} of the rise")


def _several(check: Check, curves: Curves) -> list[Point]:
    points = curves.points(check.of)
    if len(points) < 2:
        raise Missing("a curve of one point has no course")
    return points


# --- A term against another -----------------------------------------------------------------------------------------


class Comparison(NamedTuple):
    """How two terms are compared."""

    relative: bool | None
    """In parts of the second; or by difference; None: as suits the measure."""
    numbers: tuple[float, float]
    """For ratios and for costs."""
    condition: Callable[[float], Condition]


_SLIGHT: Final = (0.05, 0.15)
_TENTH: Final = (0.1, 0.1)
_NONE: Final = (0.0, 0.0)
_LESS: Final = Comparison(False, _NONE, lambda number: Condition(Band(-INF, -number)))
_MORE: Final = Comparison(False, _NONE, lambda number: Condition(Band(number, INF)))
_ANYWHERE: Final = Band(-INF, INF)

_COMPARISONS: Final = {
    "rises": _MORE,
    "higher than": _MORE,
    "falls": _LESS,
    "lower than": _LESS,
    "steadily rises": Comparison(False, _NONE, lambda number: Condition(Band(number, INF), _ANYWHERE)),
    "steadily falls": Comparison(False, _NONE, lambda number: Condition(Band(-INF, -number), _ANYWHERE)),
    "hardly moves": Comparison(None, _SLIGHT, lambda number: Condition(Band(-number, number))),
    "slightly below": Comparison(None, _SLIGHT, lambda number: Condition(Band(-number, 0))),
    "slightly above": Comparison(None, _SLIGHT, lambda number: Condition(Band(0, number))),
    "not below": Comparison(None, _SLIGHT, lambda number: Condition(Band(-number, INF))),
    "comparable with": Comparison(True, (0.15, 0.15), lambda number: Condition(Band(-number, number, closed=True))),
    "clearly below": Comparison(
        True, _TENTH, lambda number: Condition(Band(-INF, -number, closed=True), Band(-INF, 0))
    ),
    "clearly above": Comparison(True, _TENTH, lambda number: Condition(Band(number, INF, closed=True), Band(0, INF))),
    "far below": Comparison(True, (0.5, 0.5), lambda number: Condition(Band(-INF, -number))),
}


def _versus(check: Check, curves: Curves) -> Iterator[Finding]:
    assert check.than is not None
    for left in curves.points(check.of):
        right = curves.opposite(check.of, left, check.than)
        if right is not None:
            yield _compare(check, left, right, left.place)


def _compare(check: Check, left: Point, right: Point, place: str) -> Finding:
    comparison = _COMPARISONS[check.kind]
    relative = not is_ratio(check.of.measure) if comparison.relative is None else comparison.relative
    condition = comparison.condition(_number(check, *comparison.numbers))
    found = estimate(left.relative_to(right, _floor(check)) if relative else left.minus(right))
    means = f"{_show(estimate(left.values).mean)} against {_show(estimate(right.values).mean)}"
    return Finding(place, found, condition, f"{means}, {_percent(found) if relative else _plain(found, signed=True)}")


def _gap(check: Check, curves: Curves) -> Iterator[Finding]:
    """Whether `of` is farther above `than` at the first point than at the last."""
    gaps = _two_or_more(_gaps(check, curves, lambda left, right: left.minus(right)))
    first, last = gaps[0], gaps[-1]
    found = estimate(last.minus(first))
    means = f"{_show(estimate(first.values).mean)} to {_show(estimate(last.values).mean)}"
    text = f"from {means}, {_plain(found, signed=True)}"
    yield Finding(f"{first.place} to {last.place}", found, Condition(Band(-INF, 0)), text)


_COURSES: Final = {
    "rises against": _MORE,
    "falls against": _LESS,
    "hardly moves against": _COMPARISONS["hardly moves"],
}


def _course(check: Check, curves: Curves) -> Iterator[Finding]:
    """How the difference of `of` from `than`, in parts of `than`, goes along the axis."""
    gaps = _gaps(check, curves, lambda left, right: left.relative_to(right, _floor(check)))
    gaps = _two_or_more([gap for gap in gaps if gap.values])
    if check.kind == "hardly moves against":
        gaps.sort(key=lambda gap: estimate(gap.values).mean)
    first, last = gaps[0], gaps[-1]
    comparison = _COURSES[check.kind]
    found = estimate(last.minus(first))
    means = " to ".join(f"{_show(100 * estimate(gap.values).mean, signed=True)} %" for gap in (first, last))
    condition = comparison.condition(_number(check, *comparison.numbers))
    yield Finding(f"{first.place} to {last.place}", found, condition, f"from {means}, by {_percent(found)}")


def _gaps(check: Check, curves: Curves, difference: Callable[[Point, Point], BySeed]) -> list[Point]:
    """The difference from `than`, at every point of `of` that has something opposite."""
    assert check.than is not None
    gaps = []
    for left in curves.points(check.of):
        right = curves.opposite(check.of, left, check.than)
        if right is not None:
            gaps.append(Point(left.number, left.axes, difference(left, right), left.place))
    return gaps


def _two_or_more(gaps: list[Point]) -> list[Point]:
    if len(gaps) < 2:
        raise Missing("fewer than two points to compare at")
    return gaps


KINDS: Final[dict[str, Callable[[Check, Curves], Iterator[Finding]]]] = {
    **dict.fromkeys(_LEVELS, _level),
    **dict.fromkeys(_COMPARISONS, _versus),
    **dict.fromkeys(("rises", "falls"), _trend),
    **dict.fromkeys(("steadily rises", "steadily falls"), _steps),
    "hardly moves": _range,
    "is steep": _steep,
    "gap shrinks to": _gap,
    **dict.fromkeys(_COURSES, _course),
}


# --- Numbers --------------------------------------------------------------------------------------------------------


def is_ratio(measure: str) -> bool:
    return measure.startswith(RATIOS)


def _number(check: Check, ratio: float, cost: float) -> float:
    """The number of a word: the claim's own, or the one for all claims."""
    if check.number is not None:
        return check.number
    return ratio if is_ratio(check.of.measure) else cost


def _floor(check: Check) -> float:
    """The least value of another term that a difference is taken in parts of."""
    return FLOORS.get(check.of.measure, -INF)


def _show(value: float, signed: bool = False) -> str:
    return f"{value:{'+' if signed else ''}.3g}".replace("-", "−")


def _plain(found: Estimate, signed: bool = False) -> str:
    return f"{_show(found.mean, signed)} ({_show(found.low, signed)} to {_show(found.high, signed)})"


def _percent(found: Estimate, signed: bool = True) -> str:
    mean, low, high = (_show(100 * part, signed) for part in (found.mean, found.low, found.high))
    return f"{mean} % ({low} to {high} %)"
