"""How long the rest of a campaign takes, by hand."""

import pytest

from roamcast.campaign.define.plan import PlannedRun
from roamcast.campaign.progress import Forecast, time_left


def runs(**protocols: int) -> list[PlannedRun]:
    """So many runs of each protocol, each estimated at 10 s."""
    return [PlannedRun(f"{name}{n}", "{}", 10.0, {}, name) for name, count in protocols.items() for n in range(count)]


def test_before_anything_is_done_it_is_the_estimates() -> None:
    assert time_left(runs(a=8), {}, 0.0, slots=2) == 40


def test_runs_under_way_count_as_far_as_they_are() -> None:
    assert time_left(runs(a=8), {}, 5.0, slots=2) == 35
    assert time_left(runs(a=2), {}, 500.0, slots=2) == 1  # a tenth of each, however long they take


def test_a_protocol_that_takes_longer_is_corrected_alone_and_others_with_it_until_they_are_known() -> None:
    todo = runs(slow=3, quick=3)
    known = Forecast(todo, {"slow0": 90.0, "quick0": 10.0})
    # Overall, two runs took 100 s for an estimate of 20, and the belief of 1 weighs as much as a run: (100 + 10) / 30.
    overall = 110 / 30
    assert known.of(todo[1]) == pytest.approx(10 * (90 + 10 * overall) / 20)
    assert known.of(todo[4]) == pytest.approx(10 * (10 + 10 * overall) / 20)
    assert Forecast(todo, {"slow0": 30.0}).of(todo[4]) == pytest.approx(10 * (30 + 10) / 20)


def test_many_runs_outweigh_the_estimate() -> None:
    todo = runs(a=100)
    took = {run.run: 100.0 for run in todo[:99]}
    assert time_left(todo, took, 9900.0 / 2, slots=2) == pytest.approx(99.1, abs=1)


def test_at_the_end_fewer_run_at_once() -> None:
    todo = runs(a=4)
    took = {run.run: 10.0 for run in todo[:3]}
    assert time_left(todo, took, 15.0, slots=2) == pytest.approx(10.0)
    assert time_left(todo, {run.run: 10.0 for run in todo}, 20.0, slots=2) == 0
