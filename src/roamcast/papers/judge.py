"""Judges claims by measures.

The rules this file owns; `kinds.py` says what the words of a claim mean in numbers:

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
from roamcast.papers.checks import KINDS, Finding, show
from roamcast.papers.claims import Check, Claim
from roamcast.papers.conditions import RANK, Outcome, worst
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
    return [_judge(claim.of_measures(measured), curves, level) for claim in claims]


def _judge(claim: Claim, curves: ClaimedCurves, level: float) -> Verdict:
    """Checks that are judged share one correction; one for comparison only has its own."""
    looked = [look(check, curves) for check in claim.checks]
    judged = [one for one in looked if one.check.judged]
    corrected = dict(zip(map(id, judged), _corrected(judged), strict=True))
    results = []
    for one in looked:
        p_values = corrected[id(one)] if one.check.judged else _corrected([one])[0]
        results.append(_result(one, p_values, level, main=one.check is claim.main))
    outcomes = [result.outcome for result in results if result.judged]
    return Verdict(claim, worst(outcomes) if outcomes else Outcome.MISSING, tuple(results))


# --- Checks ---------------------------------------------------------------------------------------------------------


class Look(NamedTuple):
    """Everything that a check looks at."""

    check: Check
    findings: list[Finding]
    missing: list[str]
    """What is missing at some places, or everywhere."""


def evaluate(check: Check, curves: ClaimedCurves, level: float = LEVEL) -> CheckResult:
    """The result of one check alone."""
    one = look(check, curves)
    return _result(one, _corrected([one])[0], level)


def look(check: Check, curves: ClaimedCurves) -> Look:
    findings, missing = [], []
    try:
        for one in KINDS[check.kind](check, curves):
            if isinstance(one, Finding):
                findings.append(one)
            else:
                missing.append(one)
    except Missing as problem:
        return Look(check, [], [str(problem)])
    return Look(check, findings, missing or ([] if findings else ["no point to look at"]))


def _corrected(looks: Sequence[Look]) -> list[list[float]]:
    """The evidence against each finding, corrected for the number of all of them."""
    p_values = iter(holm([one.condition.against(one.found) for look in looks for one in look.findings]))
    return [[next(p_values) for _ in look.findings] for look in looks]


def _result(look: Look, p_values: Sequence[float], level: float, main: bool = False) -> CheckResult:
    check, findings, missing = look
    if not findings:
        return CheckResult(check.says, Outcome.MISSING, missing[0], check.judged, main, cause=check.cause)
    alpha = (1 - level) / 2
    outcomes = [_outcome(one, p_value, alpha) for one, p_value in zip(findings, p_values, strict=True)]
    slacks = [one.condition.mean.slack(one.found.mean) for one in findings]
    tightest = min(range(len(findings)), key=lambda index: (RANK[outcomes[index]], slacks[index]))
    finding = findings[tightest]
    text = finding.shown(finding.found.interval(level))
    text = f"{finding.place}: {text}" if finding.place else text
    if len(findings) > 1:
        text = f"at {outcomes.count(Outcome.HOLDS)} of {len(findings)} places, the tightest {text}"
    if missing:
        text += f" ({len(missing)} more not measured: {missing[0]})"
    missed = -slacks[tightest]
    misses = _distance(missed, finding.unit) if missed > 0 and outcomes[tightest] is not Outcome.HOLDS else ""
    return CheckResult(check.says, outcomes[tightest], text, check.judged, main, misses, check.cause)


def _outcome(finding: Finding, p_value: float, alpha: float) -> Outcome:
    if p_value <= alpha:
        return Outcome.FAILS
    return Outcome.HOLDS if finding.condition.holds(finding.found, alpha) else Outcome.OPEN


def _distance(missed: float, unit: str) -> str:
    return f"{show(100 * missed)} points" if unit == "%" else show(missed)
