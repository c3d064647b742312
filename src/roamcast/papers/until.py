"""Adds seeds until the claims of a paper are decided, only in experiments of claims that are still open.

The rules this file owns:

* A claim is decided when it holds or does not hold, at the level of its look (`statistics/sequential.py`); the verdict
  is then final, whatever later seeds of the same experiments would say. A claim without checks, or whose measures are
  missing, does not count as open.
* An open claim adds seeds to all its experiments: its checks compare curves, so all points count.
"""

from collections.abc import Collection, Sequence

from roamcast.campaign.decide.until import PointKey, ResultsSoFar
from roamcast.campaign.folder.results import values_of
from roamcast.papers.claims import Claim
from roamcast.papers.conditions import CheckOutcome
from roamcast.papers.judge import judge
from roamcast.papers.verdict import Verdict
from roamcast.statistics.intervals import LEVEL
from roamcast.statistics.sequential import Looks


class Decided:
    """Waits for verdicts, and keeps them."""

    def __init__(self, claims: Sequence[Claim]) -> None:
        self._claims = claims
        self.verdicts: dict[str, Verdict] = {}
        """The latest verdict of each claim; final if it is decided."""

    def check(self, measures: Collection[str], variants: Collection[str]) -> None:
        """Nothing to check: claims whose measures are missing say so in their verdicts."""

    def waiting(self, so_far: ResultsSoFar) -> list[PointKey]:
        values, still = values_of(so_far.results), set[str]()
        for claim in self._claims:
            known = self.verdicts.get(claim.id)
            experiments = {term.experiment for check in claim.checks for term in check.terms}
            seeds, before = (
                max((count for (name, _), count in counts.items() if name in experiments), default=0)
                for counts in (so_far.seeds, so_far.before)
            )
            if known is not None and (known.outcome is not CheckOutcome.OPEN or seeds <= before):
                continue
            level = Looks(so_far.most).level_at(seeds, before) if seeds > before else LEVEL
            (self.verdicts[claim.id],) = judge([claim], values, so_far.about, level)
            if self.verdicts[claim.id].outcome is CheckOutcome.OPEN:
                still |= experiments
        return [place for place in so_far.seeds if place[0] in still]
