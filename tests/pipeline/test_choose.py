"""A race on Spark: a network whose winner is plain, one for which there is no time, and a candidate that fails."""

import contextlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from roamcast.analysis.measures.measure import Family
from roamcast.campaign.decide.choice import ONE_LEFT, TIME_IS_UP
from roamcast.campaign.decide.race import RaceRules
from roamcast.campaign.define.candidates import candidate, race_experiment, with_candidates
from roamcast.campaign.define.experiment import Experiment
from roamcast.campaign.define.plan import CampaignError
from roamcast.campaign.progress import State
from roamcast.cli.main import main
from roamcast.config.toml_file import toml_file
from roamcast.pipeline.choose import FRESH_SEED, Chooser
from roamcast.pipeline.goal import goal
from roamcast.pipeline.measure import _Measuring
from roamcast.sim.scenario.scenario import load

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


def race_on(scenario: dict[str, Any]) -> Experiment:
    made = race_experiment(scenario, "line.toml", Path())
    return with_candidates(made, [candidate("flooding"), candidate("gossip p=0.01")])


@pytest.fixture
def line() -> Experiment:
    return race_on(LINE)


@pytest.fixture
def long_line() -> Experiment:
    """With runs long enough, half a second each, to be stopped before all are done."""
    return race_on(LINE | {"duration": 5000})


def test_the_one_that_meets_the_goal_wins(spark: SparkSession, line: Experiment, tmp_path: Path) -> None:
    said: list[str] = []
    wanted = goal("delivery", 0.9, 5, "packets")
    choice = Chooser(
        spark,
        line,
        wanted,
        tmp_path,
        until=time.monotonic() + 3600,
        rules=RaceRules(0.9, looks=(5, 8)),
        tell=said.append,
    ).choose()
    assert (choice.left, choice.decided, choice.ended) == (["flooding"], True, ONE_LEFT)
    assert [(one.arm, one.seeds) for one in choice.dropped] == [("gossip p=0.01", 5)]
    assert choice.race["flooding"].goal.mean == 1.0
    assert choice.race["flooding"].cost.mean == pytest.approx(4.0)  # each of the four sends an event once
    assert choice.race["flooding"].possible == 1.0
    assert choice.fresh["flooding"].seeds == 5
    assert any("gossip p=0.01 dropped after 5 seeds" in line for line in said)
    assert pq.read_table(tmp_path / "fresh" / "manifest.parquet").num_rows == 5
    assert f'"seed":{FRESH_SEED}' not in (tmp_path / "race" / "campaign.json").read_text().replace(" ", "")


def test_without_time_nothing_is_decided(spark: SparkSession, line: Experiment, tmp_path: Path) -> None:
    choice = Chooser(spark, line, goal("delivery", 0.9, None, "airtime"), tmp_path, until=time.monotonic() - 1).choose()
    assert (choice.decided, choice.ended, choice.race) == (False, TIME_IS_UP, {})
    assert choice.left == ["flooding", "gossip p=0.01"]


class Clock:
    """In place of `time`; `stop` lets all the time pass."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def stop(self) -> None:
        self.now = 1e9


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake = Clock()
    monkeypatch.setattr("roamcast.pipeline.choose.time", fake)
    return fake


def test_what_ran_is_told_if_the_first_look_is_cut_short(
    spark: SparkSession, long_line: Experiment, tmp_path: Path, clock: Clock
) -> None:
    def watch(state: State) -> None:
        if state.done:
            clock.stop()

    wanted = goal("delivery", 0.9, None, "packets")
    choice = Chooser(spark, long_line, wanted, tmp_path, until=100.0, on_progress=watch).choose()
    assert (choice.decided, choice.ended, choice.looked, choice.fresh) == (False, TIME_IS_UP, 0, {})
    assert 0 < sum(figures.seeds for figures in choice.race.values()) < 10


def test_a_look_that_is_cut_short_does_not_count_and_can_be_continued(
    spark: SparkSession, long_line: Experiment, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With rules that are sure of nothing after five seeds."""
    measured: list[str] = []
    original = _Measuring._of_families

    def noted(self: _Measuring, families: Sequence[Family], todo: Mapping[str, tuple[int, ...]]) -> pa.Table:
        measured.extend(todo)
        return original(self, families, todo)

    monkeypatch.setattr(_Measuring, "_of_families", noted)
    wanted, rules = goal("delivery", 0.9, None, "packets"), RaceRules(0.9, looks=(5, 8), level=1 - 1e-12)

    def watch(state: State) -> None:
        if state.done > 10:
            clock.stop()

    choice = Chooser(spark, long_line, wanted, tmp_path, until=100.0, rules=rules, on_progress=watch).choose()
    assert (choice.ended, choice.looked, len(choice.left)) == (TIME_IS_UP, 5, 2)
    assert [figures.seeds for figures in choice.race.values()] == [5, 5]
    choice = Chooser(spark, long_line, wanted, tmp_path, until=2e9, rules=rules).choose()
    assert (choice.ended, choice.looked, choice.left) == (ONE_LEFT, 8, ["flooding"])
    assert [figures.seeds for figures in choice.race.values()] == [8, 8]
    assert len(measured) == len(set(measured)) == 16 + 8  # each run once: of the race, and of the fresh seeds
    goals = choice.race["flooding"].goal, choice.fresh["flooding"].goal
    again = Chooser(spark, long_line, wanted, tmp_path, until=2e9, rules=rules).choose()
    assert (again.race["flooding"].goal, again.fresh["flooding"].goal) == goals
    assert len(measured) == 16 + 8


def test_who_fails_is_out_with_the_error(spark: SparkSession, line: Experiment, tmp_path: Path) -> None:
    """A protocol of somebody's own that breaks when something is published."""
    (tmp_path / "broken.py").write_text(
        "import dataclasses\n"
        "from roamcast.protocols.catalogue import CATALOGUE\n"
        "class Broker(CATALOGUE['flooding'].broker):\n"
        "    def publish(self, now, publication):\n"
        "        raise RuntimeError('broken on purpose')\n"
        "BROKEN = dataclasses.replace(CATALOGUE['flooding'], name='broken', broker=Broker)\n"
    )
    made = race_experiment(LINE, "line.toml", tmp_path)
    both = with_candidates(made, [candidate("flooding"), candidate("broken.py:BROKEN")])
    wanted, rules = goal("delivery", 0.9, None, "packets"), RaceRules(0.9, looks=(5, 8))
    choice = Chooser(spark, both, wanted, tmp_path / "out", until=time.monotonic() + 3600, rules=rules).choose()
    assert (choice.left, choice.decided) == (["flooding"], True)
    assert [(one.arm, one.seeds) for one in choice.dropped] == [("broken.py:BROKEN", 5)]
    assert "broken on purpose" in choice.dropped[0].reason


def test_goals() -> None:
    plain, timed = goal("of-possible", 0.8, None, "bits"), goal("delivery", 0.9, 7, "airtime")
    assert plain.read == ("delivered_of_possible", "bits_per_delivery", "possible")
    assert timed.read == ("satisfaction_7", "airtime_per_delivery", "possible_7")
    assert (plain.words, timed.words) == ("delivery of what was possible", "delivery within 7 s")


@pytest.mark.parametrize(
    ("measure", "deadline", "words"),
    [
        ("delivary", None, "--at-least delivary: is not a measure; did you mean 'delivery'?"),
        ("overhead", None, "--at-least overhead: is not a share to be high; known are delivery, of-possible, "),
        ("possible_60", 5.0, "--within goes with delivery and of-possible, not with possible_60"),
    ],
)
def test_what_is_no_goal(measure: str, deadline: float | None, words: str) -> None:
    with pytest.raises(CampaignError) as problem:
        goal(measure, 0.9, deadline, "airtime")
    assert str(problem.value).startswith(words)


# --- The verb -------------------------------------------------------------------------------------------------------


@pytest.fixture
def verb(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """`roamcast choose` in this process's session, on four nodes in a row."""
    monkeypatch.setattr("roamcast.pipeline.session.session", lambda *_, **__: contextlib.nullcontext(spark))
    monkeypatch.chdir(tmp_path)
    Path("line.toml").write_text(toml_file(LINE))
    two = ("--candidate", "flooding", "--candidate", "gossip p=0.01", "--at-least", "delivery=0.9", "--out", "out")
    return lambda *options: CliRunner().invoke(main, ("choose", "line.toml", *two, *options))


def test_too_little_time_is_no_error_and_the_same_command_goes_on(verb: Callable[..., Result]) -> None:
    result = verb("--minutes", "0.00001")
    assert result.exit_code == 0, result.output
    assert "No answer: the time was up before a single look at all candidates. Give it more --minutes." in result.stdout
    assert sorted(path.name for path in Path("out").iterdir()) == ["choice.json"]

    result = verb("--minutes", "60", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told == json.loads(Path("out/choice.json").read_text())
    assert (told["left"], told["decided"], told["looked"]) == (["flooding"], True, 5)
    assert told["ranking"] == ["flooding", "gossip p=0.01"]
    assert told["dropped"][0]["reason"].startswith("delivery 0")
    assert told["node"]["flooding"].startswith("roamcast node --id 1")
    assert "5 seeds: flooding 1.000 at " in result.stderr
    assert load(Path("out/winner.toml")).protocol.name == "flooding"
    assert Path("out/choice.svg").read_text().startswith("<?xml")
