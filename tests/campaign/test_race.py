"""Races: who is dropped and why, and how often the best arm is lost."""

import math

import numpy as np
import pytest

from roamcast.campaign.decide.race import LOOKS, ArmResult, Race, RaceRules


def runs(goal: float, cost: float, n: int = 5, spread: float = 0.001) -> list[ArmResult]:
    """Runs around a goal and a cost, half of them above and half below."""
    return [ArmResult(goal + spread * (-1) ** k, cost * (1 + spread * (-1) ** k)) for k in range(n)]


def test_the_goal_comes_before_the_cost() -> None:
    race = Race(["cheap", "good", "dear"], RaceRules(0.9))
    out = race.look({"cheap": runs(0.5, 1), "good": runs(0.99, 5), "dear": runs(0.99, 50)})
    assert [(one.arm, one.seeds) for one in out] == [("cheap", 5), ("dear", 5)]
    assert "below 0.9" in out[0].reason
    assert "10 times as much as good" in out[1].reason
    assert race.left == ["good"]
    assert race.over


def test_what_is_close_stays_in_the_race() -> None:
    race = Race(["a", "b"], RaceRules(0.9))
    out = race.look({"a": runs(0.95, 10, spread=0.05), "b": runs(0.95, 11, spread=0.04)})
    assert (out, race.left, race.over) == ([], ["a", "b"], False)


def test_what_costs_the_same_need_not_be_told_apart() -> None:
    race = Race(["a", "b"], RaceRules(0.9))
    race.look({"a": runs(0.99, 100.0, 40), "b": runs(0.99, 100.5, 40)})
    assert race.left == ["a", "b"]
    assert race.over


def test_a_rival_that_may_miss_the_goal_drops_nobody() -> None:
    race = Race(["unsure", "dear"], RaceRules(0.9))
    race.look({"unsure": runs(0.9, 1), "dear": runs(0.99, 100)})
    assert race.left == ["unsure", "dear"]


def test_if_nothing_meets_the_goal_the_best_of_them_wins() -> None:
    race = Race(["a", "b"], RaceRules(0.95))
    out = race.look({"a": runs(0.3, 1), "b": runs(0.6, 9)})
    assert not race.reachable
    assert race.left == ["b"]
    assert "less than b" in out[0].reason


def test_delivering_nothing_costs_infinitely_much() -> None:
    race = Race(["none", "some"], RaceRules(0.0))
    none = [ArmResult(0.0, math.inf)] * 8
    out = race.look({"none": none, "some": runs(0.5, 3, 8)})
    assert [one.arm for one in out] == ["none"]
    assert "inf times" in out[0].reason


def test_equal_values_are_no_certainty() -> None:
    """Five runs of exactly 0.945: below 0.95, but a sixth may differ by a point."""
    race = Race(["a", "b"], RaceRules(0.95))
    assert race.look({"a": [ArmResult(0.945, 1.0)] * 5, "b": [ArmResult(0.99, 1.0)] * 5}) == []


def test_a_reason_names_the_goal_and_the_cheapest_rival() -> None:
    race = Race(["poor", "dear", "dearer", "good"], RaceRules(0.9, "delivery within 5 s"))
    arms = {"poor": runs(0.5, 1), "dear": runs(0.99, 20), "dearer": runs(0.99, 40), "good": runs(0.99, 10)}
    reasons = {one.arm: one.reason for one in race.look(arms)}
    assert reasons == {
        "poor": "delivery within 5 s 0.5002 ± 0.0014, below 0.9",
        "dear": "costs 2 times as much as good",
        "dearer": "costs 4 times as much as good",
    }


def test_if_nothing_meets_the_goal_who_was_dropped_for_it_comes_back() -> None:
    """At first only `even` misses the goal for sure; then `unsteady` does, by more."""
    race = Race(["even", "unsteady"], RaceRules(0.9))
    even, unsteady = runs(0.8, 1), runs(0.7, 1, spread=0.2)
    assert [one.arm for one in race.look({"even": even, "unsteady": unsteady})] == ["even"]
    assert (race.left, race.over) == (["unsteady"], False)
    unsteady += runs(0.6, 1, 13)
    assert race.look({"even": even, "unsteady": unsteady}) == []
    assert (race.left, race.reachable, race.dropped, race.over) == (["unsteady", "even"], False, [], False)
    even += runs(0.8, 1, 22)
    unsteady += runs(0.6, 1, 9)
    assert [one.arm for one in race.look({"even": even, "unsteady": unsteady})] == ["unsteady"]
    assert (race.left, race.over) == (["even"], True)


def test_one_that_may_miss_the_goal_goes_on_alone() -> None:
    race = Race(["a"], RaceRules(0.9))
    race.look({"a": runs(0.91, 1, spread=0.02)})
    assert (race.left, race.over) == (["a"], False)
    race.look({"a": runs(0.91, 1, 18, spread=0.001)})
    assert (race.left, race.over, race.reachable) == (["a"], True, True)


def test_who_withdraws_does_not_come_back() -> None:
    race = Race(["a", "b", "c"], RaceRules(0.9))
    race.withdraw({"b": "seed 3 failed"})
    race.look({"a": runs(0.5, 1), "b": [], "c": runs(0.6, 1)})
    assert (race.left, race.reachable) == (["c"], False)


# --- By simulation --------------------------------------------------------------------------------------------------

ARMS = 9
RACES = 400


def raced(best: int, goals: np.ndarray, costs: np.ndarray) -> tuple[float, float]:
    """The shares of simulated races that drop the best arm, and that end with it alone. Seeds move all arms together,
    as a common world does."""
    rng = np.random.Generator(np.random.PCG64(19))
    losses = alone = 0
    for _ in range(RACES):
        common = rng.standard_normal((2, LOOKS[-1], 1))
        goal = goals + 0.03 * common[0] + 0.02 * rng.standard_normal((LOOKS[-1], ARMS))
        cost = np.exp(np.log(costs) + 0.2 * common[1] + 0.1 * rng.standard_normal((LOOKS[-1], ARMS)))
        race = Race([str(arm) for arm in range(ARMS)], RaceRules(0.9))
        seeds: dict[str, int] = {}
        for n in LOOKS:
            seeds |= dict.fromkeys(race.left, n)
            race.look(
                {
                    arm: [ArmResult(*pair) for pair in zip(goal[:ran, int(arm)], cost[:ran, int(arm)], strict=True)]
                    for arm, ran in seeds.items()
                }
            )
            if race.over:
                break
        losses += str(best) not in race.left
        alone += race.left == [str(best)]
    return losses / RACES, alone / RACES


@pytest.mark.parametrize("margin", [0.0, 0.03])
def test_the_best_arm_is_lost_in_less_than_one_race_in_twenty(margin: float) -> None:
    """The hardest case: all rivals as good, or hardly dearer, and the best just at the goal."""
    goals = np.full(ARMS, 0.9)
    costs = np.full(ARMS, 10.0) * (1 + margin)
    costs[3] = 10.0
    lost, _ = raced(3, goals, costs)
    assert lost <= 0.05


def test_plain_differences_are_found() -> None:
    """The best is kept, and most races end with it alone."""
    goals = np.full(ARMS, 0.97)
    goals[:3] = 0.7
    costs = 10.0 * 1.5 ** np.arange(ARMS)
    lost, alone = raced(3, goals, costs)
    assert lost <= 0.05
    assert alone >= 0.9


def test_the_closest_is_kept_where_nothing_meets_the_goal() -> None:
    """Also if it was the first to miss the goal for sure, because its rivals vary more."""
    goals = np.array([0.5, 0.55, 0.6, 0.62, 0.7, 0.7, 0.75, 0.78, 0.8])
    lost, alone = raced(8, goals, np.full(ARMS, 10.0))
    assert lost <= 0.05
    assert alone >= 0.75
