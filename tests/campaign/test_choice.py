"""The result of a race: figures and ranks."""

import math

import pytest

from roamcast.campaign.decide.choice import Choice, Figures, ranked
from roamcast.campaign.decide.race import ArmResult
from roamcast.statistics.intervals import Estimate


def figures(goal: float, cost: float) -> Figures:
    return Figures(3, Estimate(goal, goal, goal), Estimate(cost, cost, cost), 1.0)


def test_who_meets_the_goal_comes_before_who_is_only_cheap() -> None:
    arms = {
        "cheap": figures(0.5, 1.0),
        "good": figures(0.96, 4.0),
        "better": figures(0.99, 8.0),
        "poor": figures(0.1, 2.0),
    }
    assert ranked(arms, arms, True, 0.9) == ["good", "better", "cheap", "poor"]
    assert ranked(arms, arms, False, 0.9) == ["better", "good", "cheap", "poor"]
    assert ranked(["unknown", "poor"], arms, True, 0.9) == ["poor", "unknown"]


def test_fresh_seeds_decide_the_order() -> None:
    race = {"a": figures(0.95, 1.0), "b": figures(0.95, 2.0)}
    choice = Choice(["a", "b"], True, "", True, 5, [], race, {"a": figures(0.85, 1.0), "b": figures(0.95, 2.0)})
    choice.sort(0.9)
    assert (choice.left, choice.decided) == (["b", "a"], False)


def test_those_left_rank_before_those_dropped() -> None:
    race = {"dropped": figures(0.99, 9.0), "left": figures(0.95, 2.0), "poor": figures(0.2, 1.0)}
    assert Choice(["left"], True, "", True, 5, [], race).ranking(0.9) == ["left", "dropped", "poor"]


@pytest.mark.parametrize(("looked", "decided"), [(0, False), (5, True)])
def test_one_that_nobody_has_looked_at_is_no_winner(looked: int, decided: bool) -> None:
    assert Choice(["a"], True, "", True, looked, [], {}).decided == decided


def test_a_cost_is_a_geometric_mean() -> None:
    found = Figures.of([ArmResult(0.5, 1.0), ArmResult(0.7, 4.0)], [0.8, 1.0])
    assert (found.seeds, found.goal.mean, found.possible) == (2, 0.6, 0.9)
    assert found.cost.mean == pytest.approx(2.0)
    assert Figures.of([ArmResult(0.5, 1.0), ArmResult(0.0, math.inf)], []).cost.mean == math.inf
