"""What a paper claims, as data: the format of a ledger such as `papers/claims.toml`.

A claim is one statement in plain words. Its checks make it measurable; each has a *kind*, a phrase whose meaning
`checks.py` fixes for all claims alike. A check is about a *term*: a measure of one variant in one experiment, at one
point of its curve or at all of them.
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, TypeVar

import msgspec

from roamcast.analysis.measures.measure import Measures
from roamcast.campaign.define.experiment import TomlTable
from roamcast.config.errors import decode, suggestion
from roamcast.errors import RoamcastError
from roamcast.sim.scenario.scenario import read

T = TypeVar("T")
Axis = bool | int | float | str
"""A value on an axis."""


class ClaimError(RoamcastError):
    """A ledger is not valid."""


class Reaching(TomlTable, frozen=True, kw_only=True):
    """The place on a curve where another measure first reaches a value, with linear interpolation between points."""

    measure: str
    value: float | None = None
    """None: the value of the term on the left of the comparison."""


class Term(TomlTable, frozen=True, kw_only=True):
    """A measure of a variant, at one place of its curve or at every point."""

    experiment: str
    variant: str
    measure: str
    at: dict[str, Axis] | Literal["first", "last", "best"] | None = None
    """Values on axes; or the first point, the last, or the one with the greatest mean. None: every point."""
    reaching: Reaching | None = None


class Where(TomlTable, frozen=True, kw_only=True):
    """Only points at which the interval of a measure lies above a value."""

    measure: str
    above: float


class Check(TomlTable, frozen=True, kw_only=True):
    """One condition of a claim."""

    says: str
    """The part of the claim that it checks."""
    kind: str
    of: Term
    than: Term | None = None
    value: float | None = None
    where: Where | None = None
    number: float | None = None
    """Replaces the number that the kind has for all claims."""
    exact: bool = False
    """The same in every seed by construction, so that no variance is certainty; otherwise it is a lack of data."""
    reason: str = ""
    """Why it has its own number, or why it is exact."""
    main: bool = False
    """Whether this is the paper's main point in this claim. One check at most; by default the first that is judged."""
    judged: bool = True
    """False: measured and shown for comparison, without effect on the verdict."""
    cause: str = ""
    """A supposed cause of a failure, which is removed in what this check measures: if the check holds there, the cause
    explains the failure. Such a check has no effect on the verdict."""
    share: bool = False
    """Whether the measure lies between 0 and 1. The judge fills in this and `floor` from the campaign's folder."""
    floor: float = -math.inf
    """A relative difference is not taken from values below this."""

    def of_measure(self, measured: Measures) -> "Check":
        """The check with what is known about its measure."""
        about = measured[self.of.measure]
        floor = -math.inf if about.floor is None else about.floor
        return msgspec.structs.replace(self, share=about.share, floor=floor)

    @property
    def terms(self) -> tuple[Term, ...]:
        return (self.of, self.than) if self.than else (self.of,)

    @property
    def measures(self) -> Iterator[tuple[Term, str]]:
        """Every measure that the check reads, with the term whose curve it is on."""
        for term in self.terms:
            yield term, term.measure
            if term.reaching:
                yield term, term.reaching.measure
                yield self.of, term.reaching.measure
        if self.where:
            yield self.of, self.where.measure


class Claim(TomlTable, frozen=True, kw_only=True):
    """One statement of a paper, in our words."""

    id: str
    paper: str
    figure: str
    text: str
    reading: str = ""
    """How vague words, or choices that the paper leaves open, were interpreted; written before measuring."""
    explanation: str = ""
    """Why it does not hold, as far as is known; written after measuring."""
    tested: bool = False
    """Whether the supposed cause was removed and the claim measured again. If not, the explanation is a guess, except
    for what checks with a `cause` show."""
    possible: str = ""
    """Of a main point that comes out under no reading: whether it could at all, and why. Filled as the explanation."""
    checks: tuple[Check, ...] = ()
    """All must hold. None: the claim is not measured yet."""

    def of_measures(self, measured: Measures) -> "Claim":
        """The claim with what is known about the measures of its checks."""
        checks = tuple(check.of_measure(measured) for check in self.checks)
        return msgspec.structs.replace(self, checks=checks)

    @property
    def main(self) -> Check | None:
        """The check of the paper's main point."""
        judged = [check for check in self.checks if check.judged]
        return next((check for check in judged if check.main), judged[0] if judged else None)


class _Ledger(TomlTable, frozen=True, kw_only=True):
    claims: tuple[Claim, ...]


WANTS: Final = {
    **dict.fromkeys(("about", "above", "below", "at least", "at most", "falls by about"), "value"),
    **dict.fromkeys(("rises", "falls", "steadily rises", "steadily falls", "hardly moves", "is steep"), None),
    **dict.fromkeys(("lower than", "higher than", "slightly below", "slightly above", "not below"), "than"),
    **dict.fromkeys(("comparable with", "clearly below", "clearly above", "far below", "gap shrinks to"), "than"),
    **dict.fromkeys(("rises against", "falls against", "hardly moves against"), "than"),
}
"""The kinds of checks, and what each needs beside `of`. `checks.py` says what they mean."""


def load_claims(path: Path) -> tuple[Claim, ...]:
    """Reads and checks a ledger."""
    claims = read_toml(path, _Ledger, ClaimError, "the ledger").claims
    broken = [f"{path}: {claim.id}: {rule}" for claim in claims for rule in _problems(claim)]
    ids = [claim.id for claim in claims]
    broken += [f"{path}: {id}: is there more than once" for id in sorted({id for id in ids if ids.count(id) > 1})]
    if broken:
        raise ClaimError("\n".join(broken))
    return claims


def read_toml(path: Path, kind: type[T], error: type[RoamcastError], whole: str) -> T:
    """A file as this kind of table; `whole` is what errors call it."""
    return decode(read(path), kind, str(path), error, whole=whole)


def _problems(claim: Claim) -> Iterator[str]:
    for check in claim.checks:
        if check.kind not in WANTS:
            yield f"there is no kind of check {check.kind!r}; {suggestion(check.kind, WANTS)}"
            continue
        wanted = WANTS[check.kind]
        for name in ("value", "than"):
            if (getattr(check, name) is not None) != (name == wanted):
                rule = "needs" if name == wanted else "takes no"
                yield f"the check {check.says!r}: {check.kind!r} {rule} {name!r}"
        if (check.number is not None or check.exact) != bool(check.reason):
            yield f"the check {check.says!r}: a number of its own, or `exact`, goes with a reason, and only with one"
        if check.main and not check.judged:
            yield f"the check {check.says!r}: the main point is judged"
        if check.cause and check.judged:
            yield f"the check {check.says!r}: what tests a cause is not judged"
        for term in check.terms:
            if term.at is not None and term.reaching is not None:
                yield f"the check {check.says!r}: a term is either at a point or where it reaches a value"
        if check.of.reaching is not None and check.of.reaching.value is None:
            yield f"the check {check.says!r}: of.reaching.value is missing: there is nothing to the left of it"
        if any(term.at == "best" for term in check.terms) and any(term.reaching for term in check.terms):
            yield f"the check {check.says!r}: the best is not compared with where a curve reaches a value"
    if sum(check.main for check in claim.checks) > 1:
        yield "it has more than one main point"
    if claim.tested and not claim.explanation:
        yield "there is no explanation that could have been tested"
    for number in map(int, re.findall(r"\{(\d+)\}", claim.explanation + claim.possible)):
        if not 1 <= number <= len(claim.checks):
            yield f"the explanation has {{{number}}}, and the claim {len(claim.checks)} checks"
    if claim.checks and not any(check.judged for check in claim.checks):
        yield "none of its checks is judged"
