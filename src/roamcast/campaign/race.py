"""A race between protocols on one network: who is the cheapest of those that deliver enough?

The rules this file owns, from Maron and Moore's racing and the corrections that repeated looks need:

* **Common seeds.** All arms run the same seeds at full length, and are compared seed by seed. A short run would be
  unfair to protocols that build a tree first or carry documents.
* **The goal first.** An arm is dropped when its goal, a share such as the delivery within ten seconds, is surely below
  `at_least`. If that would drop every arm, nothing meets the goal: then the arms race for the highest goal instead.
* **Then the cost.** An arm is dropped when it surely costs more than a rival that surely meets the goal. Costs are
  compared as logarithms of ratios; an arm that delivered nothing in some run has an infinite cost there, and stays in
  the race until its goal is judged.
* **Surely** means: by a one-sided t-bound whose level is divided by the looks (`sequential.Looks`), half each for goal
  and cost, and by the arms or the pairs of arms. So the best arm is lost in at most 1 − `level` of all races.
* **No variance is no certainty.** Five equal values have no spread, but the sixth may differ: a standard deviation
  counts as at least half of the difference that matters.
* The race is over when one arm is left, when all that are left meet the goal and cost the same within `SAME_COST`, or
  when the seeds are used up. Those left are then *not separated*.

The winner's figures in the race are too good, since it won by them: they are measured again on fresh seeds.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from roamcast.campaign.sequential import Looks
from roamcast.campaign.statistics import LEVEL, interval, t_quantile

LOOKS: Final = (5, 8, 12, 18, 27, 40)
"""Seeds at which the race is looked at."""
SAME_GOAL: Final = 0.01
SAME_COST: Final = 0.05
"""Differences that do not matter: one point of a share, 5 % of a cost."""


class Seen(NamedTuple):
    """What one run of an arm came to."""

    goal: float
    """A share, 0 to 1."""
    cost: float
    """Above 0; infinite if nothing was delivered."""


class Dropped(NamedTuple):
    """An arm that is out of the race, and why."""

    arm: str
    seeds: int
    reason: str


@dataclass(frozen=True)
class Rules:
    at_least: float
    looks: tuple[int, ...] = LOOKS
    level: float = LEVEL


class Race:
    """The arms that are left, look by look."""

    def __init__(self, arms: Sequence[str], rules: Rules) -> None:
        self.rules = rules
        self.left = list(arms)
        self.dropped: list[Dropped] = []
        self.reachable = True
        """Whether some arm may still meet the goal."""
        self.over = len(self.left) < 2
        self._arms = len(arms)
        self._looks = Looks(max(rules.looks), rules.level)
        self._before = 0

    def look(self, seen: Mapping[str, Sequence[Seen]]) -> list[Dropped]:
        """Judges the arms that are left by all seeds so far, in the same order for each; gives those it drops."""
        seeds = len(seen[self.left[0]])
        risk = (1 - self._looks.level_at(seeds, self._before)) / 2
        self._before = seeds
        goals = {arm: [run.goal for run in seen[arm]] for arm in self.left}
        risk_arm, risk_pair = risk / self._arms, risk / max(1, self._arms * (self._arms - 1))
        out = self._below_goal(goals, risk_arm) if self.reachable else []
        if len(out) == len(self.left):
            self.reachable, out = False, []
        if self.reachable:
            left = [arm for arm in self.left if arm not in {one.arm for one in out}]
            out += self._dearer(left, goals, seen, risk_arm, risk_pair)
        else:
            out = self._further_from_goal(goals, risk_pair)
        self.left = [arm for arm in self.left if arm not in {one.arm for one in out}]
        self.dropped += out
        self.over = len(self.left) == 1 or seeds >= max(self.rules.looks) or self._same(goals, seen, risk_pair)
        return out

    def _below_goal(self, goals: Mapping[str, list[float]], risk: float) -> list[Dropped]:
        least = self.rules.at_least
        return [
            Dropped(arm, len(values), f"goal {interval(values)}, below {least:g}")
            for arm, values in goals.items()
            if _bound(values, risk, SAME_GOAL, +1) < least
        ]

    def _dearer(
        self,
        left: Sequence[str],
        goals: Mapping[str, list[float]],
        seen: Mapping[str, Sequence[Seen]],
        risk_arm: float,
        risk_pair: float,
    ) -> list[Dropped]:
        """Arms that cost more than one that surely meets the goal. The cheaper of two drops the dearer, never both."""
        sure = [arm for arm in left if _bound(goals[arm], risk_arm, SAME_GOAL, -1) >= self.rules.at_least]
        out = []
        for arm in left:
            for rival in sure:
                ratios = _log_ratios(seen[arm], seen[rival])
                if rival != arm and _bound(ratios, risk_pair, math.log1p(SAME_COST), -1) > 0:
                    times = math.exp(math.fsum(ratios) / len(ratios)) if math.inf not in ratios else math.inf
                    out.append(Dropped(arm, len(ratios), f"costs {times:.3g} times as much as {rival}"))
                    break
        return out

    def _further_from_goal(self, goals: Mapping[str, list[float]], risk: float) -> list[Dropped]:
        out = []
        for arm, values in goals.items():
            for rival, better in goals.items():
                ahead = [one - other for one, other in zip(better, values, strict=True)]
                if rival != arm and _bound(ahead, risk, SAME_GOAL, -1) > 0:
                    out.append(Dropped(arm, len(values), f"goal {interval(values)}, less than {rival}"))
                    break
        return out

    def _same(self, goals: Mapping[str, list[float]], seen: Mapping[str, Sequence[Seen]], risk: float) -> bool:
        """Whether it does not matter which of those left one takes."""
        for arm in self.left:
            if not self.reachable or _bound(goals[arm], risk, SAME_GOAL, -1) < self.rules.at_least:
                return False
            for rival in self.left:
                ratios = _log_ratios(seen[arm], seen[rival])
                if rival != arm and _bound(ratios, risk, math.log1p(SAME_COST), +1) > math.log1p(SAME_COST):
                    return False
        return True


def _log_ratios(one: Sequence[Seen], other: Sequence[Seen]) -> list[float]:
    """Logarithms of one's costs over the other's, seed by seed; infinite where only the one delivered nothing."""
    return [_log_ratio(a.cost, b.cost) for a, b in zip(one, other, strict=True)]


def _log_ratio(one: float, other: float) -> float:
    if math.isinf(one) or math.isinf(other):
        return math.inf if math.isfinite(other) else (-math.inf if math.isfinite(one) else 0.0)
    return math.log(one / other)


def _bound(values: Sequence[float], risk: float, matters: float, side: int) -> float:
    """The mean's one-sided bound, above (side 1) or below (−1), which is wrong with a chance of `risk`."""
    if not all(map(math.isfinite, values)):
        # No spread to speak of. All infinite on one side is beyond any bound; a mixture tells nothing.
        return values[0] if len(set(values)) == 1 else side * math.inf
    n = len(values)
    mean = math.fsum(values) / n
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    # t_quantile is two-sided: a share 2 · risk lies outside.
    return mean + side * t_quantile(1 - 2 * risk, n - 1) * max(spread, matters / 2) / math.sqrt(n)
