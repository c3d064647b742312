"""Campaigns measured on Spark: the tables, what is known and what is missing, and measures from outside.

The numbers themselves are checked without Spark, in tests/analysis.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from analysis.runs import BY_HAND, LINKS, by_hand, nothing, real, slow, values_of, with_contexts
from pipeline import tiny
from pipeline.measured import Run, S, tables, write_campaign
from roamcast.analysis.measures.catalogue import CATALOGUE
from roamcast.analysis.measures.contexts import DELIVERY
from roamcast.analysis.measures.measure import Family, Measure, OverAllRuns, family
from roamcast.analysis.run import Run as AnyRun
from roamcast.campaign.folder.schemas import PAIRED_ARROW, RUN_MEASURES_ARROW, SUMMARY_ARROW
from roamcast.campaign.folder.stored import Stored
from roamcast.errors import RoamcastError
from roamcast.pipeline import measure as measuring
from roamcast.pipeline.facts import CampaignFacts
from roamcast.pipeline.measure import in_tasks, is_current, measure
from roamcast.pipeline.run import run_campaign
from roamcast.storage import Store

PAGE = Path(__file__).parents[2] / "docs" / "measures.md"


def failed() -> Run:
    return Run("failed", tables(), experiment="hand", seed=3, status="failed")


@pytest.fixture(scope="module")
def real_runs() -> list[Run]:
    moving = [real(f"{name}{seed}", seed, name) for name in ("flooding", "gossip") for seed in (1, 2)]
    return [*moving, real("linked", 3, "flooding", **LINKS), real("loaded", 4, "coman", "loaded")]


@pytest.fixture(scope="module")
def out(spark: SparkSession, real_runs: list[Run], tmp_path_factory: pytest.TempPathFactory) -> Path:
    # A folder whose name Spark could take for a pattern, or trip over.
    folder = tmp_path_factory.mktemp("campaign") / "out [1] {ü}*"
    write_campaign(folder, [by_hand(), slow(), nothing(), failed(), *real_runs])
    # Left by an attempt that the manifest knows nothing of: nobody looks at it.
    (folder / "facts" / "deliver" / "stray.parquet").write_bytes(b"half a file")
    measure(spark, folder)
    return folder


def table(out: Path, name: str) -> pa.Table:
    return pq.read_table(out / "measures" / f"{name}.parquet", partitioning=None)


def of_run(out: Path, name: str) -> dict[str, float | None]:
    return {row["measure"]: row["value"] for row in table(out, "run").to_pylist() if row["run"] == name}


# --- The tables -----------------------------------------------------------------------------------------------------


def test_every_measure_of_a_run_by_hand_is_in_the_table(out: Path) -> None:
    assert of_run(out, "hand") == pytest.approx(BY_HAND | {DELIVERY.measure.name: None})


def test_other_runs_have_what_their_families_say(out: Path, real_runs: list[Run]) -> None:
    for run in (slow(), nothing(), *real_runs):
        assert of_run(out, run.name) == values_of(run) | {DELIVERY.measure.name: None}


def test_a_run_that_failed_is_not_measured(out: Path) -> None:
    assert of_run(out, "failed") == {}


def test_the_summary_goes_over_the_seeds(out: Path) -> None:
    rows = {(row["experiment"], row["variant"], row["measure"]): row for row in table(out, "summary").to_pylist()}
    assert len(rows) == 5 * len(list(CATALOGUE))
    first, second = (of_run(out, name)["delivery"] or math.nan for name in ("gossip1", "gossip2"))
    mean, sd = (first + second) / 2, abs(first - second) / math.sqrt(2)
    assert rows["real", "gossip", "delivery"] == {
        "experiment": "real",
        "variant": "gossip",
        "point": 0,
        "axes": '{"credits": 0}',
        "measure": "delivery",
        "n": 2,
        "mean": pytest.approx(mean),
        "sd": pytest.approx(sd),
        "low": pytest.approx(mean - 12.7062047 * sd / math.sqrt(2)),
        "high": pytest.approx(mean + 12.7062047 * sd / math.sqrt(2)),
    }
    # Of three seeds one failed and one delivered nothing.
    lone = rows["hand", "flooding", "delivery"]
    assert [lone[name] for name in ("n", "mean", "sd", "low", "high")] == [1, pytest.approx(2 / 3), None, None, None]
    absent = rows["hand", "flooding", "satisfaction_1800"]
    assert [absent[name] for name in ("n", "mean", "sd", "low", "high")] == [0, None, None, None, None]


def test_variants_are_compared_seed_by_seed(out: Path) -> None:
    rows = {(row["variant"], row["baseline"], row["measure"]): row for row in table(out, "paired").to_pylist()}
    assert {(variant, baseline) for variant, baseline, _ in rows} == {("gossip", "flooding"), ("flooding", "gossip")}
    differences = [
        (of_run(out, f"gossip{seed}")["overhead"] or 0) - (of_run(out, f"flooding{seed}")["overhead"] or 0)
        for seed in (1, 2)
    ]
    row = rows["gossip", "flooding", "overhead"]
    assert (row["experiment"], row["point"], row["axes"], row["n"]) == ("real", 0, '{"credits": 0}', 2)
    assert row["mean"] == pytest.approx(sum(differences) / 2)
    assert row["sd"] == pytest.approx(abs(differences[0] - differences[1]) / math.sqrt(2))
    assert rows["flooding", "gossip", "overhead"]["mean"] == pytest.approx(-row["mean"])
    parts = [100 * part / (of_run(out, f"flooding{n}")["overhead"] or 0) for n, part in enumerate(differences, 1)]
    assert (row["relative_n"], row["relative_mean"]) == (2, pytest.approx(sum(parts) / 2))


def test_the_tables_are_as_their_schemas_say_and_in_order(out: Path) -> None:
    for name, schema in {"run": RUN_MEASURES_ARROW, "summary": SUMMARY_ARROW, "paired": PAIRED_ARROW}.items():
        assert table(out, name).schema.equals(schema)
    keys = [(row["run"], row["measure"]) for row in table(out, "run").to_pylist()]
    assert keys == sorted(set(keys))
    assert list(out.glob("tmp/*")) == []


def test_measuring_again_gives_the_same_bytes(spark: SparkSession, out: Path) -> None:
    before = {path.name: path.read_bytes() for path in (out / "measures").iterdir()}
    assert sorted(before) == ["about.json", "made_from.json", "paired.parquet", "run.parquet", "summary.parquet"]
    measure(spark, out)
    assert {path.name: path.read_bytes() for path in (out / "measures").iterdir()} == before


# --- What is known, and what is missing -----------------------------------------------------------------------------


@pytest.fixture
def measured_now(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """(run, measure) of all that is measured from now on: the first measure of each family."""
    seen: list[tuple[str, str]] = []
    original = measuring._Measuring._of_families

    def noted(self: Any, families: Sequence[Family], todo: Mapping[str, tuple[int, ...]]) -> pa.Table:  # noqa: ANN401
        seen.extend((run, families[number].measures[0].name) for run, numbers in todo.items() for number in numbers)
        return original(self, families, todo)

    monkeypatch.setattr(measuring._Measuring, "_of_families", noted)
    return seen


def some_runs(*seeds: int) -> list[Run]:
    facts = tables(publish=[(S, 0, 7, "t", 50)], transmit=[(0, "data", 0, 1, 1, S, *[0] * 6)])
    return [Run(f"run{seed}", facts, seed=seed) for seed in seeds]


def test_what_was_measured_is_kept_and_only_what_is_missing_is_measured(
    spark: SparkSession, tmp_path: Path, measured_now: list[tuple[str, str]]
) -> None:
    write_campaign(tmp_path, some_runs(1, 2))
    measure(spark, tmp_path, ["events"])
    assert measured_now == [("run1", "delivery"), ("run2", "delivery")]  # the family that counts events
    measured_now.clear()
    measure(spark, tmp_path, ["airtime_most"])
    assert measured_now == [("run1", "airtime_jain"), ("run2", "airtime_jain")]
    assert of_run(tmp_path, "run2") == {"events": 1, "airtime_most": 1}
    assert {row["measure"] for row in table(tmp_path, "summary").to_pylist()} == {"events", "airtime_most"}
    measured_now.clear()
    write_campaign(tmp_path, some_runs(1, 2, 3))
    measure(spark, tmp_path, ["airtime_most"])
    assert measured_now == [("run3", "airtime_jain")]  # what is not asked for stays as it is
    assert (of_run(tmp_path, "run1"), of_run(tmp_path, "run3")) == (
        {"events": 1, "airtime_most": 1},
        {"airtime_most": 1},
    )
    measured_now.clear()
    measure(spark, tmp_path, ["events", "airtime_most"])
    assert measured_now == [("run3", "delivery")]
    assert of_run(tmp_path, "run3") == {"events": 1, "airtime_most": 1}
    measured_now.clear()
    measure(spark, tmp_path, ["pairs_expected"])
    assert {run for run, _ in measured_now} == {"run1", "run2", "run3"}
    assert of_run(tmp_path, "run1") == {"events": 1, "pairs_expected": 0, "airtime_most": 1}


def test_a_value_that_is_undefined_is_known_too(
    spark: SparkSession, tmp_path: Path, measured_now: list[tuple[str, str]]
) -> None:
    write_campaign(tmp_path, some_runs(1))
    for _ in range(2):
        measure(spark, tmp_path, ["delivery"])
    assert measured_now == [("run1", "delivery")]
    assert of_run(tmp_path, "run1") == {"delivery": None}


def test_a_folder_is_current_until_its_runs_or_its_measures_are_others(spark: SparkSession, tmp_path: Path) -> None:
    write_campaign(tmp_path, some_runs(1))
    assert not is_current(tmp_path, ["events"])
    measure(spark, tmp_path, ["events", "airtime_most"])
    assert is_current(tmp_path, ["events"])
    assert is_current(tmp_path, ["airtime_most", "events"])
    assert not is_current(tmp_path, ["events", "delivery"])
    assert not is_current(tmp_path)
    write_campaign(tmp_path, some_runs(1, 2))
    assert not is_current(tmp_path, ["events"])


# --- Pooled over seeds ----------------------------------------------------------------------------------------------


def five() -> list[Run]:
    delivered = {1: (3, 3), 2: (1, 0), 3: (2, 1), 4: (4, 4), 5: (1, 1)}
    return [with_contexts(f"seed{number}", number, *pairs) for number, pairs in delivered.items()]


def test_delivery_is_pooled_and_each_seed_has_its_part_in_it(spark: SparkSession, tmp_path: Path) -> None:
    runs = [with_contexts("one", 1, 3, 3), with_contexts("two", 2, 1, 0), with_contexts("plain", 3, 2, 2, None)]
    write_campaign(tmp_path, runs)
    measure(spark, tmp_path, ["delivery_context"])
    # 3 of 3 and 0 of 1: 3 of 4 in all, where the mean of the two ratios would be a half. Two ideal pairs are usual.
    assert of_run(tmp_path, "one") == {
        "context_pairs": 3,
        "context_delivered": 3,
        "delivery_context": pytest.approx(0.75 + (3 - 0.75 * 3) / 2),
    }
    assert of_run(tmp_path, "two")["delivery_context"] == pytest.approx(0.75 + (0 - 0.75 * 1) / 2)
    assert of_run(tmp_path, "plain") == dict.fromkeys(("context_pairs", "context_delivered", "delivery_context"))


def test_seeds_that_come_later_are_pooled_with_those_that_were_there(
    spark: SparkSession, tmp_path: Path, measured_now: list[tuple[str, str]]
) -> None:
    at_once, bit_by_bit = write_campaign(tmp_path / "at once", five()), tmp_path / "bit by bit"
    measure(spark, at_once, ["delivery_context", "mbit"])
    measured_now.clear()
    write_campaign(bit_by_bit, five()[:3])
    measure(spark, bit_by_bit, ["delivery_context", "mbit"])
    early = of_run(bit_by_bit, "seed1")["delivery_context"]
    write_campaign(bit_by_bit, five())
    measure(spark, bit_by_bit, ["delivery_context", "mbit"])
    assert sorted(run for run, name in measured_now if name == "context_pairs") == [f"seed{n}" for n in range(1, 6)]
    for name in ("run", "summary", "paired"):
        assert table(bit_by_bit, name).equals(table(at_once, name))
    assert of_run(bit_by_bit, "seed1")["delivery_context"] != early
    (pooled,) = (row for row in table(at_once, "summary").to_pylist() if row["measure"] == "delivery_context")
    assert (pooled["n"], pooled["mean"]) == (5, pytest.approx(9 / 11))


# --- What can be wrong ----------------------------------------------------------------------------------------------


def test_an_unknown_measure_is_refused_with_a_suggestion(spark: SparkSession, tmp_path: Path) -> None:
    write_campaign(tmp_path, [failed()])
    with pytest.raises(RoamcastError, match=r"there is no measure 'delivry'; did you mean 'delivery'\?"):
        measure(spark, tmp_path, ["delivery", "delivry"])


def test_a_folder_without_a_manifest_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(RoamcastError, match=r"is not a campaign's folder \(campaign\.json is missing\)"):
        measure(spark, tmp_path)
    with pytest.raises(RoamcastError, match="is not a campaign's folder"):
        is_current(tmp_path, ["events"])
    (tmp_path / "campaign.json").write_text("{}")  # of one that was interrupted
    with pytest.raises(RoamcastError, match=r"runs\.parquet: cannot be read: it is missing: repeat the campaign's"):
        is_current(tmp_path, ["events"])


def test_a_campaign_in_which_all_failed_has_tables_without_values(spark: SparkSession, tmp_path: Path) -> None:
    write_campaign(tmp_path, [failed()])
    measure(spark, tmp_path, ["delivery", "overhead", "degree_mean"])
    assert table(tmp_path, "run").equals(RUN_MEASURES_ARROW.empty_table())
    rows = table(tmp_path, "summary").select(["measure", "n", "mean"]).to_pylist()
    assert rows == [{"measure": name, "n": 0, "mean": None} for name in ("degree_mean", "delivery", "overhead")]
    assert table(tmp_path, "paired").equals(PAIRED_ARROW.empty_table())
    measure(spark, tmp_path)
    assert table(tmp_path, "run").equals(RUN_MEASURES_ARROW.empty_table())


def test_a_measure_that_raises_is_told_with_what_it_said(spark: SparkSession, tmp_path: Path) -> None:
    write_campaign(tmp_path, [Run("odd", tables(tree=[(0, 4, "start", 0, None, [], None)]), nodes=4)])
    with pytest.raises(PySparkException, match="run odd: the table `tree` names node 4, but the run has 4 nodes"):
        measure(spark, tmp_path, ["tree_connected"])


def test_a_family_gives_only_what_it_declares() -> None:
    @family(Measure("there"), Measure("missing"))
    def some(_run: AnyRun) -> dict[str, float | None]:
        return {"there": 1}

    run = nothing().in_memory()
    assert measuring._values_of(run, [some]).to_pylist() == [
        {"run": "nothing", "measure": "there", "value": 1.0},
        {"run": "nothing", "measure": "missing", "value": None},
    ]
    with pytest.raises(
        RoamcastError, match="run nothing: a family gave a value for 'there', which it does not declare"
    ):
        measuring._values_of(run, [Family((Measure("missing"),), some.function)])


# --- Over all runs, on Spark ----------------------------------------------------------------------------------------


def over_all(name: str, function: Callable[[CampaignFacts], DataFrame]) -> str:
    CATALOGUE._add(OverAllRuns(Measure(name), function), "a test")
    return name


def test_a_measure_over_all_runs_gives_rows_by_run(spark: SparkSession, tmp_path: Path) -> None:
    write_campaign(tmp_path, [*some_runs(1, 2), nothing()])
    rank = over_all("rank", lambda facts: facts.table("publish").selectExpr("run", "event AS value"))
    measure(spark, tmp_path, [rank, "events"])
    assert of_run(tmp_path, "run2") == {"rank": 7, "events": 1}
    assert of_run(tmp_path, "nothing") == {"rank": None, "events": 0}


def test_a_measure_over_all_runs_must_give_one_value_per_run(spark: SparkSession, tmp_path: Path) -> None:
    write_campaign(tmp_path, [nothing()])
    double = over_all("double", lambda facts: facts.runs.selectExpr("run", "explode(array(1, 2)) AS value"))
    with pytest.raises(RoamcastError, match="measure 'double' must give one value per run: 2 for 1 runs"):
        measure(spark, tmp_path, [double])
    wrong = over_all("wrong", lambda facts: facts.runs.select("run", "warmup"))
    with pytest.raises(RoamcastError, match="measure 'wrong' must give the columns run and value, not run, warmup"):
        measure(spark, tmp_path, [wrong])
    assert not (tmp_path / "measures" / "run.parquet").exists()


# --- From a file ----------------------------------------------------------------------------------------------------


def own_measures() -> str:
    """The examples of the page."""
    own = PAGE.read_text(encoding="utf-8").partition("## A measure of your own")[2].partition("\n## ")[0]
    return "".join(re.findall(r"^```python\n(.*?)^```$", own, re.DOTALL | re.MULTILINE))


def test_measures_of_a_file_go_through_a_campaign(spark: SparkSession, tmp_path: Path) -> None:
    """Tasks have no such module: its functions go to them by value."""
    (tmp_path / "my_measures.py").write_text(own_measures())
    named = [f"my_measures.py:{name}" for name in ("busiest", "busy", "ways", "OF_THE_MOST")]
    experiment = tiny.made(tmp_path, seeds=2, measures=["delivery", *named])
    out = tmp_path / "out"
    assert run_campaign([experiment], out, spark=spark) == []
    stored, runs = Stored(Store.at(out)), pq.read_table(out / "manifest.parquet")["run"].to_pylist()
    airtimes: dict[str, dict[int, int]] = {}
    for run in runs:
        for row in stored.read("transmit", run).to_pylist():
            by_node = airtimes.setdefault(run, {})
            by_node[row["node"]] = by_node.get(row["node"], 0) + row["airtime"]
    most = max(sum(by_node.values()) for by_node in airtimes.values())
    assert len(runs) == 4
    for run, by_node in airtimes.items():
        hops = stored.read("deliver", run)["hops"].to_pylist()
        found = of_run(out, run)
        assert 0 < (found.pop("delivery") or 0) <= 1
        assert found == {
            "busiest": pytest.approx(max(by_node.values()) / (5 * S)),
            "busy": len(by_node) / 20,
            "hops_least": min(hops),
            "hops_most": max(hops),
            "of_the_most": pytest.approx(sum(by_node.values()) / most),
        }
    about = {one["name"]: one for one in json.loads((out / "measures" / "about.json").read_bytes())}
    assert about["busiest"]["description"] == "Share of the time that the busiest node spends sending"
    assert (about["hops_most"]["unit"], about["busy"]["good"]) == ("hops", "high")


def test_a_measure_of_a_file_may_use_what_its_file_defines(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "SCALE = 10\n\ndef _counted(run):\n    return len(run.column('publish', 'time'))\n\n"
        "def scaled(run):\n    return SCALE * _counted(run)\n"
    )
    assert CATALOGUE.names(["mine.py:scaled"], tmp_path, "e.toml") == ("scaled",)
    write_campaign(tmp_path / "out", some_runs(1))
    measure(spark, tmp_path / "out", ["scaled"])
    assert of_run(tmp_path / "out", "run1") == {"scaled": 10}


# --- Tasks ----------------------------------------------------------------------------------------------------------


def scenario(seed: int, protocol: str) -> str:
    return json.dumps({"nodes": 5, "duration": 10.0, "seed": seed, "protocol": {"name": protocol}})


def test_runs_of_one_world_follow_each_other_and_the_longest_task_comes_first() -> None:
    scenarios = {f"{protocol}{seed}": scenario(seed, protocol) for seed in (1, 2, 3) for protocol in ("hint", "gossip")}
    sizes = {"hint1": 1, "gossip1": 2, "hint2": 30, "gossip2": 10, "hint3": 4, "gossip3": 5}
    assert in_tasks(scenarios, sizes, 8) == [["gossip2", "hint2"], ["gossip3", "hint3"], ["gossip1", "hint1"]]
    # The two smaller worlds together are still smaller than the largest.
    assert in_tasks(scenarios, sizes, 2) == [["gossip2", "hint2"], ["gossip3", "hint3", "gossip1", "hint1"]]
    assert in_tasks({}, {}, 8) == []


@given(
    st.dictionaries(
        st.tuples(st.integers(1, 6), st.sampled_from(["hint", "gossip", "coman"])), st.integers(0, 50), min_size=1
    ),
    st.integers(1, 5),
)
def test_tasks_are_balanced_and_have_every_run_once(runs: dict[tuple[int, str], int], most: int) -> None:
    scenarios = {f"{protocol}{seed}": scenario(seed, protocol) for seed, protocol in runs}
    sizes = {f"{protocol}{seed}": size for (seed, protocol), size in runs.items()}
    tasks = in_tasks(scenarios, sizes, most)
    assert sorted(run for task in tasks for run in task) == sorted(scenarios)
    seeds = [[run[-1] for run in task] for task in tasks]
    # A world is in one task, and there without another in between.
    assert len([seed for task in seeds for place, seed in enumerate(task) if task[:place][-1:] != [seed]]) == len(
        {seed for seed, _ in runs}
    )
    loads = [sum(sizes[run] for run in task) for task in tasks]
    assert loads == sorted(loads, reverse=True)
    worlds: dict[int, int] = {}
    for (seed, _), size in runs.items():
        worlds[seed] = worlds.get(seed, 0) + size
    assert len(tasks) == min(most, len(worlds))
    assert max(loads) <= sum(loads) / len(tasks) + max(worlds.values())
    assert in_tasks(dict(reversed(scenarios.items())), sizes, most) == tasks
