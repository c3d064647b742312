"""A race between protocols on one network: which is the cheapest of those that deliver enough?

The rules this file owns, from Maron and Moore's racing and the corrections that repeated looks need:

* **Common seeds.** All arms run the same seeds at full length, and are compared seed by seed. A short run would be
  unfair to protocols that build a tree first or carry documents.
* **The goal first.** An arm is dropped when its goal, a share such as the delivery within ten seconds, is surely below
  `at_least`.
* **Then the cost.** An arm is dropped when it surely costs more than a rival that surely meets the goal. Costs are
  compared as logarithms of ratios; an arm that delivered nothing in some run has an infinite cost there, and stays in
  the race until its goal is judged.
* **If no arm meets the goal**, since every arm that is left is surely below it, the arms race for the highest goal
  instead. Arms dropped before come back: they missed the goal as the others did.
* **Surely** means: by a one-sided t-bound that is wrong with a small chance. What must not happen is that the best arm
  is lost, and it is lost only if its own goal is misjudged, or if one of its rivals is: that it meets the goal, or that
  it is cheaper. So half of the chance of an error goes to the arm itself, and half is divided by its rivals; both are
  spread over the looks (`sequential.Looks`). The best arm is then lost in at most 1 − `level` of all races.
* **No variance does not mean certainty.** Five equal values have no spread, but the sixth may differ: a standard
  deviation counts as at least half of the difference that matters.
* The race is over when one arm is left and surely meets the goal, when all that are left do and cost the same within
  `SAME_COST`, or when the seeds are used up. Several that are left are then *not separated*. One that is left and may
  miss the goal continues alone: if it turns out to miss it, nothing meets the goal, and another may come closer.

The winner's figures in the race are too good, since it won by them: they are measured again on fresh seeds.
"""

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from roamcast.statistics.intervals import LEVEL, interval, t_quantile
from roamcast.statistics.sequential import LEAST, Looks

LOOKS: Final = (5, 8, 12, 18, 27, 40)
"""The numbers of seeds at which the race is evaluated."""
_POWER: Final = 1.0
"""An early look that drops an arm saves all its later runs: each look gets its share of the error."""
SAME_GOAL: Final = 0.01
SAME_COST: Final = 0.05
"""Differences that do not matter: one percentage point of a share, 5 % of a cost."""
_SAME_LOG_COST: Final = math.log1p(SAME_COST)


class ArmResult(NamedTuple):
    """The result of one run of an arm."""

    goal: float
    """A share, 0 to 1."""
    cost: float
    """Above 0; infinite if nothing was delivered."""


Runs = Mapping[str, Sequence[ArmResult]]
"""The results by arm, in the order of their seeds."""


class Dropped(NamedTuple):
    """An arm that is out of the race, and why."""

    arm: str
    seeds: int
    reason: str


@dataclass(frozen=True)
class RaceRules:
    at_least: float
    words: str = "goal"
    """What the goal measures, as the reasons word it."""
    looks: tuple[int, ...] = LOOKS
    level: float = LEVEL


class Race:
    """The arms that are left, look by look."""

    def __init__(self, arms: Sequence[str], rules: RaceRules) -> None:
        self.rules = rules
        self.left = list(arms)
        self.dropped: list[Dropped] = []
        self.reachable = True
        """Whether some arm may still meet the goal."""
        self.over = False
        self.settled = False
        """Whether the race is over because everything is decided."""
        self._rivals = max(1, len(arms) - 1)
        self._looks = Looks(max(rules.looks), rules.level, _POWER)
        self.seeds = 0
        """The number of seeds at the last look."""

    def withdraw(self, arms: Container[str]) -> None:
        """Removes arms that cannot go on."""
        self.left = [arm for arm in self.left if arm not in arms]

    def look(self, seen: Runs) -> list[Dropped]:
        """Judges the arms left by all seeds so far; returns those it drops. `seen` includes arms dropped before."""
        seeds = len(seen[self.left[0]])
        if seeds < LEAST or seeds == self.seeds:
            return []
        risk = (1 - self._looks.level_at(seeds, self.seeds)) / 2
        self.seeds = seeds
        sure = _Sure(seen, self.rules.at_least, risk, risk / self._rivals)
        if self.reachable and all(map(sure.below, self.left)):
            self.reachable = False
            self.left += [one.arm for one in self.dropped]
            self.dropped = []
        out = self._losers(sure) if self.reachable else self._further_from_goal(sure)
        self.left = [arm for arm in self.left if arm not in {one.arm for one in out}]
        self.dropped += out
        self.settled = sure.same(self.left) if self.reachable else len(self.left) == 1
        self.over = self.settled or seeds >= max(self.rules.looks)
        return out

    def _losers(self, sure: "_Sure") -> list[Dropped]:
        """The arms that miss the goal, and those that cost more than an arm that meets it."""
        below = [arm for arm in self.left if sure.below(arm)]
        least = f"below {self.rules.at_least:g}"
        out = [Dropped(arm, sure.seeds(arm), f"{self.rules.words} {sure.goal(arm)}, {least}") for arm in below]
        left = [arm for arm in self.left if arm not in below]
        rivals = [arm for arm in left if sure.meets(arm)]
        for arm in left:
            cheaper = [rival for rival in rivals if sure.dearer(arm, rival)]
            if cheaper:
                better = max(cheaper, key=partial(sure.times, arm))
                words = f"costs {sure.times(arm, better):.3g} times as much as {better}"
                out.append(Dropped(arm, sure.seeds(arm), words))
        return out

    def _further_from_goal(self, sure: "_Sure") -> list[Dropped]:
        out = []
        for arm in self.left:
            closer = [rival for rival in self.left if sure.further(arm, rival)]
            if closer:
                words = f"{self.rules.words} {sure.goal(arm)}, less than {max(closer, key=sure.mean)}"
                out.append(Dropped(arm, sure.seeds(arm), words))
        return out


@dataclass(frozen=True)
class _Sure:
    """What is sure at one look."""

    seen: Runs
    at_least: float
    risk: float
    """The probability of an error about an arm itself."""
    risk_rival: float
    """The probability of an error about one of its rivals."""

    def seeds(self, arm: str) -> int:
        return len(self.seen[arm])

    def goal(self, arm: str) -> str:
        return str(interval(self._goals(arm)))

    def mean(self, arm: str) -> float:
        return interval(self._goals(arm)).mean

    def below(self, arm: str) -> bool:
        return _bound(self._goals(arm), self.risk, SAME_GOAL, +1) < self.at_least

    def meets(self, arm: str) -> bool:
        return _bound(self._goals(arm), self.risk_rival, SAME_GOAL, -1) >= self.at_least

    def dearer(self, arm: str, rival: str) -> bool:
        return arm != rival and _bound(self._ratios(arm, rival), self.risk_rival, _SAME_LOG_COST, -1) > 0

    def further(self, arm: str, rival: str) -> bool:
        """Whether an arm is surely further from the goal, on the seeds that both have: one that came back has fewer."""
        ahead = [more - less for more, less in zip(self._goals(rival), self._goals(arm), strict=False)]
        return arm != rival and _bound(ahead, self.risk_rival, SAME_GOAL, -1) > 0

    def same(self, arms: Sequence[str]) -> bool:
        """Whether the arms are so alike that the choice between them does not matter."""
        return all(map(self.meets, arms)) and all(
            _bound(self._ratios(one, other), self.risk_rival, _SAME_LOG_COST, +1) <= _SAME_LOG_COST
            for one in arms
            for other in arms
            if one != other
        )

    def times(self, arm: str, rival: str) -> float:
        """How many times as much the arm costs as its rival, on average."""
        ratios = self._ratios(arm, rival)
        return math.inf if math.inf in ratios else math.exp(math.fsum(ratios) / len(ratios))

    def _goals(self, arm: str) -> list[float]:
        return [run.goal for run in self.seen[arm]]

    def _ratios(self, one: str, other: str) -> list[float]:
        """Logarithms of one's costs over the other's, seed by seed."""
        return [_log_ratio(a.cost, b.cost) for a, b in zip(self.seen[one], self.seen[other], strict=True)]


def _log_ratio(one: float, other: float) -> float:
    """The logarithm of the ratio; infinite if only one of them delivered nothing."""
    if math.isinf(one) or math.isinf(other):
        return math.inf if math.isfinite(other) else (-math.inf if math.isfinite(one) else 0.0)
    return math.log(one / other)


def _bound(values: Sequence[float], risk: float, matters: float, side: int) -> float:
    """The mean's one-sided bound, upper (side 1) or lower (−1), which is wrong with probability `risk`."""
    if not all(map(math.isfinite, values)):
        # There is no spread. If all are infinite on one side, they are beyond any bound; a mixture tells nothing.
        return values[0] if len(set(values)) == 1 else side * math.inf
    n = len(values)
    mean = math.fsum(values) / n
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    # t_quantile is two-sided: a share 2 · risk lies outside.
    return mean + side * t_quantile(1 - 2 * risk, n - 1) * max(spread, matters / 2) / math.sqrt(n)
