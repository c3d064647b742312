"""The result of a race: the candidates' figures, which candidates are left, and in which order."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from roamcast.campaign.decide.race import ArmResult, Dropped, Race
from roamcast.statistics.intervals import Estimate, interval

COST_UNITS: Final = {"airtime": "ms on the air", "packets": "packets", "bits": "bits"}
"""The units in which the cost of a delivery can be measured."""

ONE_LEFT: Final = "one candidate is left"
THE_SAME: Final = "those left meet the goal at the same cost, within 5 %"
TIME_IS_UP: Final = "the time was up"
NO_MORE_SEEDS: Final = "the seeds were used up"
NOTHING_TO_DELIVER: Final = "no run had anything to deliver"
NONE_RAN: Final = "no candidate could be run"


@dataclass(frozen=True)
class Figures:
    """A candidate's figures over some seeds."""

    seeds: int
    goal: Estimate
    cost: Estimate
    """The geometric mean and its interval; infinite if some run delivered nothing."""
    possible: float | None
    """The mean of what any protocol could have reached."""

    @classmethod
    def of(cls, runs: Sequence[ArmResult], possible: Sequence[float]) -> "Figures":
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
    """The winner, or the candidates that could not be separated, by rank."""
    reachable: bool
    """Whether some candidate may meet the goal."""
    ended: str
    """Why the race ended, as text."""
    settled: bool
    """Whether those left surely meet the goal or, if no candidate does, surely come closest."""
    looked: int
    """Seeds at the last look; 0 if there was none."""
    dropped: list[Dropped]
    race: dict[str, Figures]
    fresh: dict[str, Figures] = field(default_factory=dict)
    """The figures of those left, on seeds that were not used for the choice."""

    @property
    def decided(self) -> bool:
        return len(self.left) == 1 and self.looked > 0

    def sort(self, at_least: float) -> None:
        """Sorts those left by rank, on fresh seeds if there are any."""
        self.left = ranked(self.left, self.race | self.fresh, self.reachable, at_least)

    def ranking(self, at_least: float) -> list[str]:
        """All candidates that ran: those left, then those dropped, both by rank."""
        others = [arm for arm in self.race if arm not in self.left]
        return [arm for arm in self.left if arm in self.race] + ranked(others, self.race, self.reachable, at_least)


def ranked(arms: Iterable[str], figures: Mapping[str, Figures], reachable: bool, at_least: float) -> list[str]:
    """First those whose mean meets the goal, the cheapest first; then the others, the closest to the goal first."""

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
