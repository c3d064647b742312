"""Lab runs and their simulated twins as one campaign."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from lab.test_verb import LINE, finished
from lab.twins import LINE as LINKS
from roamcast.campaign.folder.layout import done_file
from roamcast.campaign.folder.run_file import read_record
from roamcast.facts.recorder import Sink
from roamcast.pipeline import twins as live
from roamcast.pipeline.twins import LIVE, SIMULATED, twins
from roamcast.sim.core import reference
from roamcast.sim.run import run
from roamcast.sim.scenario.scenario import Scenario

pytestmark = pytest.mark.slow


def raw(**parts: Any) -> dict[str, Any]:  # noqa: ANN401
    workload = {"subscribers": [{"nodes": [4]}], "publishers": [{"nodes": [0], "rate": 2.0}]}
    air = {"radio": {"propagation": "links"}, "links": {"up": LINKS}}
    return {"name": "twin", "nodes": 5, "duration": 2.0, "seed": 7, "workload": workload, **air, **parts}


def models(wanted: live.Twins, variant: str) -> set[str]:
    rows = [row for row in wanted.plan.rows if row["variant"] == variant]
    return {json.loads(row["scenario"])["mac"]["model"] for row in rows}


@pytest.mark.parametrize(("ideal", "model"), [(True, "ideal"), (False, "dcf")])
def test_a_twin_is_the_same_scenario_with_the_same_seeds(ideal: bool, model: str) -> None:
    wanted = twins(raw(), "x.toml", Path(), 3, ideal=ideal)
    assert [(row["variant"], row["seed"]) for row in wanted.plan.rows] == [
        *((LIVE, seed) for seed in (7, 8, 9)),
        *((SIMULATED, seed) for seed in (7, 8, 9)),
    ]
    assert models(wanted, LIVE) == {"dcf"}
    assert models(wanted, SIMULATED) == {model}
    # Every row has a run of its own, and the simulator gets only those that are its.
    assert len({row["run"] for row in wanted.plan.rows}) == len(wanted.plan.distinct) == 6
    assert len(wanted.live) == 3
    assert {run.run for run in wanted.simulated.distinct} == {row["run"] for row in wanted.simulated.rows}
    assert {row["variant"] for row in wanted.simulated.rows} == {SIMULATED}


def as_if_live(scenario: Scenario, sink: Sink) -> list[str]:
    run(scenario, sink, make_core=reference.Core)
    return []


def test_a_live_run_is_put_where_a_finished_task_would_have_put_it(tmp_path: Path) -> None:
    [one] = twins(raw(), "x.toml", Path(), 1, ideal=True).live
    live._live(one, tmp_path, as_if_live)
    assert live._is_done(tmp_path, one.run)
    assert [path.name for path in tmp_path.iterdir()] == [".live"]  # to a campaign, the folder is still free
    (tmp_path / "done").mkdir()
    live._put_in_place(tmp_path, one.run)
    done = read_record(done_file(tmp_path, one.run))
    assert done is not None
    assert (done["row"]["status"], done["row"]["rows"]["publish"]) == ("ok", 4)
    live._put_in_place(tmp_path, one.run)  # again: it is there
    assert read_record(done_file(tmp_path, one.run)) == done


def test_an_interrupted_live_run_is_not_done(tmp_path: Path) -> None:
    def interrupted(scenario: Scenario, sink: Sink) -> list[str]:
        as_if_live(scenario, sink)
        raise KeyboardInterrupt

    [one] = twins(raw(), "x.toml", Path(), 1, ideal=True).live
    with pytest.raises(KeyboardInterrupt):
        live._live(one, tmp_path, interrupted)
    assert not live._is_done(tmp_path, one.run)
    live._live(one, tmp_path, as_if_live)
    assert live._is_done(tmp_path, one.run)


def test_a_live_run_in_which_a_node_died_has_failed(tmp_path: Path) -> None:
    def unlucky(scenario: Scenario, sink: Sink) -> list[str]:
        as_if_live(scenario, sink)
        return ["node 3 ended", "node 4 ended"]

    [one] = twins(raw(), "x.toml", Path(), 1, ideal=True).live
    live._live(one, tmp_path, unlucky)
    (tmp_path / "done").mkdir()
    live._put_in_place(tmp_path, one.run)
    failed = read_record(done_file(tmp_path, one.run))
    assert failed is not None
    row = failed["row"]
    assert (row["status"], row["error"], row["rows"]) == ("failed", "node 3 ended; node 4 ended", {})
    assert not live._is_done(tmp_path, one.run)  # it is tried again
    live._live(one, tmp_path, as_if_live)
    live._put_in_place(tmp_path, one.run)
    done = read_record(done_file(tmp_path, one.run))
    assert done is not None
    assert done["row"]["status"] == "ok"


def test_what_is_done_stays_done_and_more_runs_are_added(tmp_path: Path) -> None:
    seeds: list[int] = []

    def counting(scenario: Scenario, sink: Sink) -> list[str]:
        seeds.append(scenario.seed)
        return as_if_live(scenario, sink)

    told: list[str] = []
    for runs in (1, 1, 2):
        live.run_missing(twins(raw(), "x.toml", Path(), runs, ideal=True), tmp_path, counting, told.append)
    assert seeds == [7, 8]
    assert told == [
        "live run 1 of 1",
        "live run 1 of 1 is done already",
        "live run 1 of 2 is done already",
        "live run 2 of 2",
    ]


def test_both_worlds_are_measured_side_by_side(tmp_path: Path) -> None:
    file, out = tmp_path / "line.toml", tmp_path / "twin"
    file.write_text(LINE, encoding="utf-8")
    status, shown, err = finished(file, "--twin", "--runs", "2", "--out", out, temporary=tmp_path)
    assert status == 0, err
    table = {line.split()[0]: line for line in shown.splitlines() if line.strip()}
    # All four events arrive in both worlds, each sent by three nodes, over two hops; so in every run.
    assert table["delivery"].split()[1:] == ["1", "±", "0", "1", "±", "0"]
    assert table["overhead"].split()[1:] == ["3", "±", "0", "3", "±", "0"]
    assert table["hops_mean"].split()[1:] == ["2", "±", "0", "2", "±", "0"]
    assert (out / "report" / "index.html").is_file()
    assert pq.read_table(out / "manifest.parquet")["status"].to_pylist() == ["ok"] * 4
    assert not (out / ".live").exists()


def test_an_axis_gives_a_pair_of_runs_for_each_value_and_seed() -> None:
    wanted = twins(raw(), "x.toml", Path(), 2, ideal=True, axis=("radio.range", [200.0, 300.0]))
    scenarios = [json.loads(run.scenario) for run in wanted.live]
    assert [(one["radio"]["range"], one["seed"]) for one in scenarios] == [(200, 7), (200, 8), (300, 7), (300, 8)]
    assert len({run.run for run in wanted.plan.distinct}) == 8
    assert len(wanted.simulated.rows) == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--axis", "radio.range=1,2"], "--axis needs --twin"),
        (["--twin", "--axis", "radio.range"], "expected FIELD=V1,V2"),
        (["--twin", "--axis", "radio.range=1,,"], "is not a list of TOML values"),
        (["--twin", "--axis", "radio.reach=1,2"], "radio.reach"),
    ],
)
def test_axes_that_mean_nothing_are_refused(tmp_path: Path, arguments: list[str], words: str) -> None:
    file = tmp_path / "line.toml"
    file.write_text(LINE, encoding="utf-8")
    status, _, err = finished(file, *arguments, "--out", tmp_path / "out", temporary=tmp_path)
    assert status == 2
    assert words in err
