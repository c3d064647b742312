"""The result of a race: what its candidates came to, who is left, and in which order."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from roamcast.campaign.race import Dropped, Race, Seen
from roamcast.campaign.statistics import Estimate, interval

COST_UNITS: Final = {"airtime": "ms on the air", "packets": "packets", "bits": "bits"}
"""What a delivery may cost."""

ONE_LEFT: Final = "one candidate is left"
THE_SAME: Final = "those left meet the goal at the same cost, within 5 %"
TIME_IS_UP: Final = "the time was up"
NO_MORE_SEEDS: Final = "the seeds were used up"
NOTHING_TO_DELIVER: Final = "in no run was there anything to deliver"
NONE_RAN: Final = "no candidate could be run"


@dataclass(frozen=True)
class Figures:
    """What a candidate came to over some seeds."""

    seeds: int
    goal: Estimate
    cost: Estimate
    """The geometric mean and its interval; infinite where some run delivered nothing."""
    possible: float | None
    """What any protocol could have reached, on the mean."""

    @classmethod
    def of(cls, runs: Sequence[Seen], possible: Sequence[float]) -> "Figures":
        if any(math.isinf(run.cost) for run in runs):
            cost = Estimate(math.inf, math.inf, math.inf)
        else:
            cost = Estimate(*map(_exp, interval([math.log(run.cost) for run in runs])))
        could = math.fsum(possible) / len(possible) if possible else None
        return cls(len(runs), interval([run.goal for run in runs]), cost, could)


@dataclass
class Choice:
    """The result of a race."""

    left: list[str]
    """The winner, or those that are not separated, by rank."""
    reachable: bool
    """Whether some candidate may meet the goal."""
    ended: str
    """Why it ended, in words."""
    settled: bool
    """Whether those left surely meet the goal, or, if nothing does, surely come closest."""
    looked: int
    """Seeds at the last look; 0 if there was none."""
    dropped: list[Dropped]
    race: dict[str, Figures]
    fresh: dict[str, Figures] = field(default_factory=dict)
    """Of those left, on seeds that had no part in the choice."""

    @property
    def decided(self) -> bool:
        return len(self.left) == 1 and self.looked > 0

    def sort(self, at_least: float) -> None:
        """Those left by rank, on fresh seeds if there are any."""
        self.left = ranked(self.left, self.race | self.fresh, self.reachable, at_least)

    def ranking(self, at_least: float) -> list[str]:
        """All that ran: those left, then those dropped, both by rank."""
        others = [arm for arm in self.race if arm not in self.left]
        return [arm for arm in self.left if arm in self.race] + ranked(others, self.race, self.reachable, at_least)


def ranked(arms: Iterable[str], figures: Mapping[str, Figures], reachable: bool, at_least: float) -> list[str]:
    """The cheapest of those whose mean meets the goal first; then, or if nothing meets it, the closest to it."""

    def rank(arm: str) -> tuple[bool, float]:
        one = figures.get(arm)
        if one is None:
            return True, math.inf
        meets = reachable and one.goal.mean >= at_least
        return not meets, one.cost.mean if meets else -one.goal.mean

    return sorted(arms, key=rank)


def why_over(race: Race) -> str:
    if len(race.left) == 1:
        return ONE_LEFT
    return NO_MORE_SEEDS if race.seeds >= max(race.rules.looks) else THE_SAME


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))
