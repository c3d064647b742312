"""Adds seeds until the claims of a paper are decided, only in experiments of claims that are still open.

The rules this file owns:

* A claim is decided when it holds or does not hold, at the level of its look (`statistics/sequential.py`); the verdict
  is then final, whatever later seeds of the same experiments would say. A claim without checks, or whose measures are
  missing, does not count as open.
* An open claim adds seeds to all its experiments: its checks compare curves, so all points count.
"""

from collections.abc import Collection, Sequence

from roamcast.campaign.decide.until import Look, PointKey
from roamcast.campaign.folder.results import values_of
from roamcast.papers.claims import Claim
from roamcast.papers.conditions import Outcome
from roamcast.papers.judge import judge
from roamcast.papers.verdict import Verdict
from roamcast.statistics.sequential import Looks


class Decided:
    """Waits for verdicts, and keeps them."""

    def __init__(self, claims: Sequence[Claim]) -> None:
        self._claims = claims
        self.verdicts: dict[str, Verdict] = {}
        """The latest verdict of each claim; final if it is decided."""
        self._seeds: dict[str, int] = {}

    def check(self, measures: Collection[str], variants: Collection[str]) -> None:
        """Nothing to check: claims whose measures are missing say so in their verdicts."""

    def waiting(self, look: Look) -> list[PointKey]:
        values, looks = values_of(look.results), Looks(look.most)
        still: set[str] = set()
        for claim in self._claims:
            experiments = {term.experiment for check in claim.checks for term in check.terms}
            if not experiments:
                (self.verdicts[claim.id],) = judge([claim], values, look.about)
                continue
            have = max((count for (name, _), count in look.seeds.items() if name in experiments), default=0)
            former = self._seeds.get(claim.id, 0)
            if claim.id in self.verdicts and self.verdicts[claim.id].outcome is not Outcome.OPEN:
                continue
            if have <= former and claim.id in self.verdicts:
                continue
            level = looks.level_at(have, former) if have > former else looks.level
            (self.verdicts[claim.id],) = judge([claim], values, look.about, level)
            self._seeds[claim.id] = have
            if self.verdicts[claim.id].outcome is Outcome.OPEN:
                still |= experiments
        return [place for place in look.seeds if place[0] in still]
