"""Judges claims by measures.

The rules this file owns; `checks.py` says what the words of a claim mean in numbers:

* A condition holds by its own interval. To refute it, the evidence is corrected for the number of conditions of the
  claim, at all points of all checks (`correction.py`).
* A check holds if its conditions do at all points that were measured, and does not hold if one does not.
* A claim of several checks is as good as the worst of them: one that does not hold, then one that is inconclusive, then
  one whose data is missing.

How often this is wrong, if seeds are normally distributed, whatever the number of points and checks (the tests show it
by simulation, `bench/judge.py` at length and for values that are not normal):

* A true claim with every condition on its border is refuted at most 2.5 % of the time; without the correction it would
  be 12 % for 5 points and 53 % for 30. (5 % if a band is narrower than the interval: both sides count.)
* A false claim with one condition just beyond its border is accepted at most 2.5 % of the time, and more rarely if
  others are at their borders too: all must hold. For *clearly* this applies if there is no difference at all; a
  difference just below 10 % is accepted up to half of the time.
* These rates are per claim: of forty claims on their borders, one is judged wrongly.
* Few seeds that are far from normal are judged less well. For values as skewed as an exponential distribution, 5 seeds
  and 30 points, a true claim is refuted 41 % of the time, or a false one accepted 10 %, depending on the long tail.
"""

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from roamcast.analysis.measures.measure import Measures
from roamcast.papers.checks import KINDS, CheckedNumber, show
from roamcast.papers.claims import Check, Claim
from roamcast.papers.conditions import RANK, CheckOutcome
from roamcast.papers.terms import ClaimedCurves
from roamcast.papers.verdict import CheckResult, Verdict
from roamcast.statistics.correction import holm
from roamcast.statistics.curves import Missing
from roamcast.statistics.intervals import LEVEL


def judge(claims: Sequence[Claim], values: pa.Table, measured: Measures, level: float = LEVEL) -> list[Verdict]:
    """The verdicts, in the order of the claims. `values` is from `campaign.results.read_values`, `measured` what
    is known about the measures.

    For repeated looks, adding seeds until all is decided, take the level of each look from `statistics/sequential.py`.
    """
    curves = ClaimedCurves(values)
    return [Verdict.on(claim, _results(claim.of_measures(measured), curves, level)) for claim in claims]


def _results(claim: Claim, curves: ClaimedCurves, level: float) -> list[CheckResult]:
    """Checks that are judged share one correction; one for comparison only has its own."""
    places = [(check, places_of(check, curves)) for check in claim.checks]
    together = iter(_corrected([one for check, found in places if check.judged for one in found.numbers]))
    return [
        _result(
            check,
            found,
            [next(together) for _ in found.numbers] if check.judged else _corrected(found.numbers),
            level,
            main=check is claim.main,
        )
        for check, found in places
    ]


def _corrected(numbers: Sequence[CheckedNumber]) -> list[float]:
    """The evidence against each condition, corrected for the number of all of them."""
    return holm([one.condition.against(one.found) for one in numbers])


# --- Checks ---------------------------------------------------------------------------------------------------------


class CheckedPlaces(NamedTuple):
    """Everything that a check looks at."""

    numbers: list[CheckedNumber]
    missing: list[str]
    """What is missing at some places, or everywhere."""


def places_of(check: Check, curves: ClaimedCurves) -> CheckedPlaces:
    numbers, missing = [], []
    try:
        for one in KINDS[check.kind](check, curves):
            if isinstance(one, CheckedNumber):
                numbers.append(one)
            else:
                missing.append(one)
    except Missing as problem:
        return CheckedPlaces([], [str(problem)])
    return CheckedPlaces(numbers, missing or ([] if numbers else ["no point to look at"]))


def _result(check: Check, places: CheckedPlaces, p_values: Sequence[float], level: float, main: bool) -> CheckResult:
    numbers, missing = places
    if not numbers:
        return _told(check, CheckOutcome.MISSING, missing[0], main, "")
    alpha = (1 - level) / 2
    outcomes = [_outcome(one, p_value, alpha) for one, p_value in zip(numbers, p_values, strict=True)]
    slacks = [one.condition.mean.slack(one.found.mean) for one in numbers]
    tightest = min(range(len(numbers)), key=lambda index: (RANK[outcomes[index]], slacks[index]))
    number, outcome, missed = numbers[tightest], outcomes[tightest], -slacks[tightest]
    text = told(number, level)
    if len(numbers) > 1:
        text = f"at {outcomes.count(CheckOutcome.HOLDS)} of {len(numbers)} places, the tightest {text}"
    if missing:
        text += f" ({len(missing)} more not measured: {missing[0]})"
    misses = _distance(missed, number.unit) if missed > 0 and outcome is not CheckOutcome.HOLDS else ""
    return _told(check, outcome, text, main, misses)


def told(number: CheckedNumber, level: float = LEVEL) -> str:
    """What was measured at one place."""
    text = number.shown(number.found.interval(level))
    return f"{number.place}: {text}" if number.place else text


def _told(check: Check, outcome: CheckOutcome, measured: str, main: bool, misses: str) -> CheckResult:
    shown = {CheckOutcome.HOLDS: "explained by", CheckOutcome.FAILS: "not explained by"}
    explains = f"{shown.get(outcome, 'perhaps explained by')} {check.cause}" if check.cause else ""
    return CheckResult(check.says, outcome, measured, check.judged, main, misses, explains)


def _outcome(number: CheckedNumber, p_value: float, alpha: float) -> CheckOutcome:
    if p_value <= alpha:
        return CheckOutcome.FAILS
    return CheckOutcome.HOLDS if number.condition.holds(number.found, alpha) else CheckOutcome.OPEN


def _distance(missed: float, unit: str) -> str:
    return f"{show(100 * missed)} points" if unit == "%" else show(missed)
