"""The verdicts on a claim and its checks, as in `claims.json`.

The rule this file owns: the verdict is strict, one check that does not hold decides. To show how much of a claim
survives, it also has how many checks hold, the outcome of the paper's main point, and by how much the checks that do
not hold miss.
"""

from dataclasses import dataclass
from typing import Any

from roamcast.papers.claims import Claim
from roamcast.papers.conditions import Outcome


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

    def as_dict(self) -> dict[str, Any]:
        return {
            "says": self.says,
            "verdict": str(self.outcome),
            "measured": self.measured,
            "judged": self.judged,
            "main": self.main,
            "misses": self.misses,
            "explains": self.explains,
        }


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

    def as_dict(self) -> dict[str, Any]:
        """An entry of `claims.json`."""
        claim = self.claim
        # A preview leaves out checks for comparison only; they are not listed.
        checks = [check for check in self.checks if check.judged or check.outcome is not Outcome.MISSING]
        return {
            "id": claim.id,
            "paper": claim.paper,
            "figure": claim.figure,
            "text": claim.text,
            "verdict": str(self.outcome),
            "held": sum(check.outcome is Outcome.HOLDS for check in self.judged),
            "of": len(self.judged),
            "main": str(self.main.outcome) if self.main else None,
            "measured": "; ".join(map(_in_words, checks)),
            "reading": claim.reading,
            "explanation": claim.explanation,
            "tested": claim.tested or any(check.cause for check in checks) if claim.explanation else None,
            "checks": [check.as_dict() for check in checks],
        }


def _in_words(check: CheckResult) -> str:
    words = [f"{check.says}: {check.measured}"]
    words.append(str(check.outcome) if check.judged else check.explains or "for comparison only")
    if check.judged and check.misses:
        words.append(f"misses by {check.misses}")
    return ", ".join(words)
