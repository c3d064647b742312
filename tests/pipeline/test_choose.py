"""A race on Spark: a network whose winner is plain, and one for which there is no time."""

import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from roamcast.campaign.candidates import candidate, race_experiment, with_candidates
from roamcast.campaign.experiment import Experiment
from roamcast.campaign.race import Rules
from roamcast.campaign.statistics import Estimate
from roamcast.pipeline.choose import FRESH, ONE_LEFT, TIME_IS_UP, Chooser, Figures, _rank, goal

# Four nodes in a row. Flooding reaches the far end; gossip that hardly ever forwards does not.
LINE: dict[str, Any] = {
    "nodes": 4,
    "duration": 12,
    "radio": {"propagation": "links"},
    "mac": {"model": "ideal"},
    "links": {"up": [[0, 1], [1, 2], [2, 3]]},
    "workload": {
        "subscribers": [{"nodes": [3], "filter": "true"}],
        "publishers": [{"nodes": [0], "rate": 1.0}],
    },
}


@pytest.fixture
def line() -> Experiment:
    made = race_experiment(LINE, "line.toml", Path())
    return with_candidates(made, [candidate("flooding"), candidate("gossip p=0.01")])


def test_the_one_that_meets_the_goal_wins(spark: SparkSession, line: Experiment, tmp_path: Path) -> None:
    said: list[str] = []
    wanted = goal("delivery", 0.9, 5, "packets")
    choice = Chooser(
        spark, line, wanted, tmp_path, until=time.monotonic() + 3600, rules=Rules(0.9, looks=(3, 6)), tell=said.append
    ).choose()
    assert (choice.left, choice.decided, choice.ended) == (["flooding"], True, ONE_LEFT)
    assert [(one.arm, one.seeds) for one in choice.dropped] == [("gossip p=0.01", 3)]
    assert choice.race["flooding"].goal.mean == 1.0
    assert choice.race["flooding"].cost.mean == pytest.approx(4.0)  # each of the four sends an event once
    assert choice.race["flooding"].possible == 1.0
    assert choice.fresh["flooding"].seeds == 3
    assert any("gossip p=0.01 dropped after 3 seeds" in line for line in said)
    assert pq.read_table(tmp_path / "fresh" / "manifest.parquet").num_rows == 3
    assert f'"seed":{FRESH}' not in (tmp_path / "race" / "campaign.json").read_text().replace(" ", "")


def test_without_time_nothing_is_decided(spark: SparkSession, line: Experiment, tmp_path: Path) -> None:
    choice = Chooser(spark, line, goal("delivery", 0.9, None, "airtime"), tmp_path, until=time.monotonic() - 1).choose()
    assert (choice.decided, choice.ended, choice.race) == (False, TIME_IS_UP, {})
    assert choice.left == ["flooding", "gossip p=0.01"]


def test_who_meets_the_goal_comes_before_who_is_only_cheap() -> None:
    def figures(goal: float, cost: float) -> Figures:
        return Figures(3, Estimate(goal, goal, goal), Estimate(cost, cost, cost), 1.0)

    arms = {
        "cheap": figures(0.5, 1.0),
        "good": figures(0.96, 4.0),
        "better": figures(0.99, 8.0),
        "poor": figures(0.1, 2.0),
    }
    assert sorted(arms, key=lambda arm: _rank(arms[arm], True, 0.9)) == ["good", "better", "cheap", "poor"]
    assert sorted(arms, key=lambda arm: _rank(arms[arm], False, 0.9)) == ["better", "good", "cheap", "poor"]
    assert _rank(None, True, 0.9) > _rank(arms["poor"], True, 0.9)
