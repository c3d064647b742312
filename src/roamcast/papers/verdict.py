"""The verdicts on a claim and its checks, as in `claims.json`.

The rules this file owns:

* The verdict is strict, one check that does not hold decides. To show how much of a claim survives, it also has how
  many checks hold, the outcome of the paper's main point, and by how much the checks that do not hold miss.
* A main point *holds under another reading* if it does not hold, but does where a supposed cause is removed.
* An explanation has no results by hand: `{3}` in it is what the claim's third check measured.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from roamcast.campaign.folder.layout import CLAIMS_FILE
from roamcast.files import read_json, write_json
from roamcast.papers.claims import Claim
from roamcast.papers.conditions import CheckOutcome, worst


class CheckResult(msgspec.Struct, frozen=True):
    """One condition of a claim; one that is not judged is only reported."""

    says: str
    outcome: CheckOutcome = msgspec.field(name="verdict")
    measured: str
    judged: bool = True
    main: bool = False
    """The paper's main point."""
    misses: str = ""
    """By how much the mean, at the worst place, misses the condition, if it does."""
    explains: str = ""
    """What it shows about a supposed cause, for a check that was measured without that cause."""


class Verdict(msgspec.Struct, frozen=True):
    """A sentence of a paper, and its verdict: an entry of `claims.json`."""

    id: str
    text: str
    outcome: CheckOutcome = msgspec.field(name="verdict")
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
    main: CheckOutcome | None = None
    """The verdict on the paper's main point."""
    checks: list[CheckResult] = []

    @classmethod
    def on(cls, claim: Claim, results: Sequence[CheckResult]) -> "Verdict":
        """The verdict on a claim, from the results of all its checks."""
        judged = [check.outcome for check in results if check.judged]
        # A preview leaves out checks for comparison only; they are not listed.
        checks = [check for check in results if check.judged or check.outcome is not CheckOutcome.MISSING]
        measured = {number: check.measured for number, check in enumerate(results, 1)}
        return cls(
            id=claim.id,
            text=claim.text,
            outcome=worst(judged) if judged else CheckOutcome.MISSING,
            paper=claim.paper,
            figure=claim.figure,
            measured="; ".join(map(_in_words, checks)),
            reading=claim.reading,
            explanation=filled(claim.explanation, measured),
            tested=claim.tested or any(check.explains for check in checks) if claim.explanation else None,
            held=judged.count(CheckOutcome.HOLDS),
            of=len(judged),
            main=next((check.outcome for check in results if check.main), None),
            checks=checks,
        )


def _in_words(check: CheckResult) -> str:
    words = [f"{check.says}: {check.measured}"]
    words.append(str(check.outcome) if check.judged else check.explains or "for comparison only")
    if check.judged and check.misses:
        words.append(f"misses by {check.misses}")
    return ", ".join(words)


OTHER_READING: Final = "under another reading"


def main_point(claim: Verdict) -> str | None:
    """The verdict on the main point, or that it holds under another reading; None if there is nothing to measure."""
    if claim.main is None or claim.main == "holds":
        return claim.main
    main = next((check for check in claim.checks if check.main), None)
    others = [check for check in claim.checks if main is not None and check.says == main.says]
    return OTHER_READING if any(check.explains.startswith("explained by") for check in others) else claim.main


def main_points(claims: Iterable[Verdict]) -> str:
    """Which main points hold: `5 of 8 main points hold (H1, …); 1 holds under another reading (H2); …`."""
    found: dict[str, list[str]] = {}
    for claim in claims:
        if (point := main_point(claim)) is not None:
            found.setdefault(point, []).append(claim.id)
    count = sum(map(len, found.values()))
    held = found.get("holds", [])
    parts = [
        f"{len(held)} of {count} main points {'holds' if len(held) == 1 else 'hold'}"
        + (f" ({', '.join(held)})" if held else "")
    ]
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


def read_claims(out: Path) -> list[Verdict]:
    """The claims in a campaign's folder; none if it is not of a paper."""
    file = out / CLAIMS_FILE
    return read_json(file, list[Verdict]) if file.exists() else []


def write_claims(out: Path, claims: list[Verdict]) -> None:
    write_json(out / CLAIMS_FILE, claims)
