"""The verdicts on a claim and its checks, as in `claims.json`.

The rules this file owns:

* The verdict is strict, one check that does not hold decides. To show how much of a claim survives, it also has how
  many checks hold, the outcome of the paper's main point, and by how much the checks that do not hold miss.
* A main point *holds under another reading* if it does not hold, but does where a supposed cause is removed.
* An explanation has no results by hand: `{3}` in it is what the claim's third check measured.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec

from roamcast.campaign.folder.layout import CLAIMS_FILE, read_json, write_json
from roamcast.papers.claims import Claim
from roamcast.papers.conditions import Outcome

Word = Literal["holds", "does not hold", "inconclusive", "not measured"]


class JudgedCheck(msgspec.Struct, frozen=True):
    """One condition of a claim; one that is not judged is only reported."""

    says: str
    verdict: Word
    measured: str
    judged: bool = True
    main: bool = False
    """The paper's main point."""
    misses: str = ""
    """By how much it misses, if it does."""
    explains: str = ""
    """What it shows about a supposed cause, for a check that was measured without that cause."""


class JudgedClaim(msgspec.Struct, frozen=True):
    """A sentence of a paper, and its verdict: an entry of `claims.json`."""

    id: str
    text: str
    verdict: Word
    paper: str | None = None
    figure: str | None = None
    measured: str | None = None
    """What `checks` say one by one, in one line."""
    reading: str | None = None
    explanation: str | None = None
    tested: bool | None = None
    """Whether the explanation was tested; None: there is no explanation, or it does not say."""
    held: int = 0
    of: int = 0
    """Checks that were judged; `held` of them hold."""
    main: Word | None = None
    """The verdict on the paper's main point."""
    checks: list[JudgedCheck] = []


OTHER_READING: Final = "under another reading"


def main_point(claim: JudgedClaim) -> str | None:
    """The verdict on the main point, or that it holds under another reading; None if there is nothing to measure."""
    if claim.main is None or claim.main == "holds":
        return claim.main
    main = next((check for check in claim.checks if check.main), None)
    others = [check for check in claim.checks if main is not None and check.says == main.says]
    return OTHER_READING if any(check.explains.startswith("explained by") for check in others) else claim.main


def main_points(claims: Iterable[JudgedClaim]) -> str:
    """Which main points hold: `5 of 8 main points hold (H1, …); 1 holds under another reading (H2); …`."""
    found: dict[str, list[str]] = {}
    for claim in claims:
        if (point := main_point(claim)) is not None:
            found.setdefault(point, []).append(claim.id)
    count = sum(map(len, found.values()))
    held = found.get("holds", [])
    parts = [f"{len(held)} of {count} main points hold" + (f" ({', '.join(held)})" if held else "")]
    for point, (one, several) in _POINTS.items():
        if ids := found.get(point):
            parts.append(f"{len(ids)} {one if len(ids) == 1 else several} ({', '.join(ids)})")
    return "; ".join(parts)


_POINTS: Final = {
    OTHER_READING: ("holds under another reading", "hold under another reading"),
    "does not hold": ("does not", "do not"),
    "inconclusive": ("is not decided", "are not decided"),
    "not measured": ("was not measured", "were not measured"),
}


def filled(text: str, measured: Mapping[int, str]) -> str:
    """An explanation with what the checks measured, by their numbers from 1."""
    return re.sub(r"\{(\d+)\}", lambda found: measured.get(int(found[1])) or "not measured", text)


def read_claims(out: Path) -> list[JudgedClaim]:
    """The claims in a campaign's folder; none if it is no paper's."""
    file = out / CLAIMS_FILE
    return read_json(file, list[JudgedClaim]) if file.exists() else []


def write_claims(out: Path, claims: list[JudgedClaim]) -> None:
    write_json(out / CLAIMS_FILE, claims)


@dataclass(frozen=True)
class CheckResult:
    """The outcome of one check."""

    says: str
    outcome: Outcome
    measured: str
    judged: bool
    main: bool = False
    misses: str = ""
    """By how much the mean, at the worst place, misses the condition; empty if it does not."""
    cause: str = ""
    """The supposed cause that is removed in what it measures."""

    @property
    def explains(self) -> str:
        """What it shows about its cause."""
        if not self.cause:
            return ""
        shown = {Outcome.HOLDS: "explained by", Outcome.FAILS: "not explained by"}
        return f"{shown.get(self.outcome, 'perhaps explained by')} {self.cause}"

    def record(self) -> JudgedCheck:
        return JudgedCheck(
            self.says, self.outcome.value, self.measured, self.judged, self.main, self.misses, self.explains
        )


@dataclass(frozen=True)
class Verdict:
    """A claim and its outcome."""

    claim: Claim
    outcome: Outcome
    checks: tuple[CheckResult, ...]

    @property
    def judged(self) -> list[CheckResult]:
        return [check for check in self.checks if check.judged]

    @property
    def main(self) -> CheckResult | None:
        return next((check for check in self.checks if check.main), None)

    def record(self) -> JudgedClaim:
        claim = self.claim
        # A preview leaves out checks for comparison only; they are not listed.
        checks = [check for check in self.checks if check.judged or check.outcome is not Outcome.MISSING]
        return JudgedClaim(
            id=claim.id,
            paper=claim.paper,
            figure=claim.figure,
            text=claim.text,
            verdict=self.outcome.value,
            held=sum(check.outcome is Outcome.HOLDS for check in self.judged),
            of=len(self.judged),
            main=self.main.outcome.value if self.main else None,
            measured="; ".join(map(_in_words, checks)),
            reading=claim.reading,
            explanation=filled(
                claim.explanation, {number: check.measured for number, check in enumerate(self.checks, 1)}
            ),
            tested=claim.tested or any(check.cause for check in checks) if claim.explanation else None,
            checks=[check.record() for check in checks],
        )


def _in_words(check: CheckResult) -> str:
    words = [f"{check.says}: {check.measured}"]
    words.append(str(check.outcome) if check.judged else check.explains or "for comparison only")
    if check.judged and check.misses:
        words.append(f"misses by {check.misses}")
    return ", ".join(words)
