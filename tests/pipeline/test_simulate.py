"""Campaigns on a local Spark: what is written, what is refused, and what becomes of runs and folders that fail."""

import concurrent.futures
import contextlib
import dataclasses
import errno
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession
from rich.console import Console

from pipeline.tiny import done, made, odd, planned, raw, results
from roamcast.analysis.measures.catalogue import CATALOGUE
from roamcast.analysis.measures.measure import Family, read_about
from roamcast.campaign.define.described import Campaign
from roamcast.campaign.define.limits import RunLimits
from roamcast.campaign.define.plan import Plan, PlannedRun, plan
from roamcast.campaign.folder.layout import done_file
from roamcast.campaign.folder.packs import read_packs
from roamcast.campaign.folder.run_file import RunFile, read_blocks, read_record
from roamcast.campaign.folder.stored import Stored
from roamcast.campaign.folder.survey import look
from roamcast.campaign.folder.verify import orphans
from roamcast.campaign.progress import State
from roamcast.cli.main import main
from roamcast.cli.progress import ProgressLines, duration, in_words, shown
from roamcast.errors import RoamcastError
from roamcast.facts.schema import TABLES
from roamcast.facts.sinks import MemorySink
from roamcast.files import write_json
from roamcast.pipeline.measure import _Measuring, is_current, measure
from roamcast.pipeline.run import run_campaign
from roamcast.pipeline.simulate import in_tasks, simulate
from roamcast.pipeline.tables import load
from roamcast.pipeline.task import TaskReport, perform_all
from roamcast.sim.run import run as run_here
from roamcast.sim.scenario.scenario import Scenario
from roamcast.storage import Store, local_path

TOKEN = "token"


def statuses(spark: SparkSession, plan: Plan, out: Path, **options: Any) -> list[str]:  # noqa: ANN401
    found: list[str] = simulate(spark, plan, out, **options)["status"].to_pylist()
    return found


# --- A campaign that goes well --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def six(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, Path, list[State]]:
    folder = tmp_path_factory.mktemp("six")
    plan, states = planned(folder), list[State]()
    simulate(spark, plan, folder / "out", states.append, command="roamcast campaign tiny.toml")
    return plan, folder / "out", states


def test_facts_are_those_of_the_runs_each_row_with_its_run(six: tuple[Plan, Path, list[State]]) -> None:
    plan, out, _ = six
    for run in plan.distinct:
        facts = MemorySink()
        run_here(msgspec.json.decode(run.scenario, type=Scenario), facts)
        for table, expected in facts.tables().items():
            if expected.num_rows == 0:
                assert not (out / "facts" / table).exists()
                continue
            written = Stored(Store.at(out)).read(table, run.run)
            assert written.column_names == ["run", *TABLES[table].names]
            assert set(written["run"].to_pylist()) == {run.run}
            assert written.drop_columns("run").equals(expected)


def test_the_manifest_has_a_row_a_run(six: tuple[Plan, Path, list[State]]) -> None:
    plan, out, _ = six
    rows = pq.read_table(out / "manifest.parquet").to_pylist()
    assert [row["run"] for row in rows] == sorted(run.run for run in plan.distinct)
    assert [row["protocol"] for row in rows].count("gossip") == 3
    for row in rows:
        assert (row["status"], row["error"], row["simulated"], row["warmup"], row["nodes"]) == ("ok", None, 5, 1, 20)
        # 2 publishers at 1 a second for 5 s; 5 subscriptions that ask for everything; 20 nodes, each on the move.
        counts = dict(row["rows"])
        assert (counts["publish"], counts["subscribe"]) == (10, 5)
        assert counts["leg"] >= 20
        assert len(row["digest"]) == 64


def test_the_folder_tells_what_it_is(six: tuple[Plan, Path, list[State]]) -> None:
    plan, out, states = six
    assert pq.read_table(out / "runs.parquet").to_pylist() == plan.rows
    about = json.loads((out / "campaign.json").read_bytes())
    assert (about["version"], about["command"]) == (2, "roamcast campaign tiny.toml")
    assert [(one["name"], one["seeds"]) for one in about["experiments"]] == [("tiny", [1, 2, 3])]
    last = states[-1]
    assert (last.total, last.done, last.failed, last.running) == (6, 6, 0, 0)
    assert last.share == pytest.approx(1)
    assert not (out / "tmp").exists()


def test_what_is_done_is_not_done_again_and_more_seeds_are_added(
    six: tuple[Plan, Path, list[State]], spark: SparkSession, tmp_path: Path
) -> None:
    _, out, _ = six
    before = {file: file.stat().st_mtime_ns for file in (out / "done").iterdir()}
    experiment = made(tmp_path)
    assert look(plan([experiment], 4), out).added == ["tiny: seeds 4"]
    manifest = simulate(spark, plan([experiment], 4), out)
    assert len(manifest) == 8
    assert {file: file.stat().st_mtime_ns for file in before} == before
    fewer = simulate(spark, plan([experiment], 3), out)
    assert len(fewer) == 6
    assert done(out) == 8


def test_a_campaign_grows_by_variants_axes_and_measures_and_only_they_are_done(
    spark: SparkSession, tmp_path: Path
) -> None:
    out, chosen = tmp_path / "out", list[str]()
    first = planned(tmp_path, seeds=2, variants=raw()["variants"][:1])
    simulate(spark, first, out)
    before = {file: file.stat().st_mtime_ns for file in (out / "done").iterdir()}
    measure(spark, out, ["delivery"])

    axes = [{"field": "radio.range", "label": "range", "values": [120, 150]}]
    grown = planned(tmp_path, seeds=2, axes=axes)
    assert look(grown, out).added == ["tiny: variants gossip", "tiny: range 120, 150"]
    simulate(spark, grown, out)
    assert {file: file.stat().st_mtime_ns for file in before} == before
    assert done(out) == 8  # two of them from before: a range of 120 m was the scenario's own

    original = _Measuring._of_families

    def noted(self: _Measuring, families: Sequence[Family], todo: Mapping[str, tuple[int, ...]]) -> pa.Table:
        chosen.extend(todo)
        return original(self, families, todo)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Measuring, "_of_families", noted)
        measure(spark, out, ["delivery"])
        assert len(chosen) == 6  # two are known
        chosen.clear()
        measure(spark, out, ["delivery", "degree_mean"])
        assert len(chosen) == 8
        chosen.clear()
        measure(spark, out, ["delivery", "degree_mean"])
        assert not chosen
    grown_values = pq.read_table(out / "measures" / "run.parquet", partitioning=None)
    (out / "measures" / "made_from.json").unlink()
    measure(spark, out, ["delivery", "degree_mean"])
    assert pq.read_table(out / "measures" / "run.parquet", partitioning=None).equals(grown_values)


def test_a_campaign_with_nothing_to_do_starts_no_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, out = made(tmp_path, seeds=1, measures=["delivery"]), tmp_path / "out"
    simulate(spark, plan([one]), out)
    measure(spark, out, ["delivery"])

    def refused(*_: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("roamcast.pipeline.session.session", refused)
    assert run_campaign([one], out) == []
    told = CliRunner().invoke(main, ["measure", str(out), "delivery"])
    assert (told.exit_code, told.output) == (0, f"{out}/measures\n")
    with pytest.raises(AssertionError, match="Spark was started"):
        run_campaign([made(tmp_path, seeds=1, measures=["delivery", "delay_mean"])], out)


def test_measuring_by_one_name_keeps_the_other_measures(spark: SparkSession, tmp_path: Path) -> None:
    """One of them is of a file, which a later process does not know; none is known of a seed that was added."""
    out, before = tmp_path / "out", ["delivery", "delay_mean", "busiest"]
    (tmp_path / "mine.py").write_text(
        "from roamcast import measure\n"
        "@measure(title='frames of the busiest node', floor=1.0)\n"
        "def busiest(run): return 7.0\n"
    )
    run_campaign([made(tmp_path, seeds=1, measures=["delivery", "delay_mean", "mine.py:busiest"])], out, spark=spark)
    del CATALOGUE._declared["busiest"], CATALOGUE._ways["busiest"]
    known = {name: load(out).results[name].to_pylist() for name in before}
    simulate(spark, planned(tmp_path, seeds=2), out)
    measure(spark, out, ["events"])
    table = load(out).results.sort_by([("seed", "ascending"), ("variant", "ascending")])
    assert {name: table[name].to_pylist() for name in before} == {
        name: [*values, None, None] for name, values in known.items()
    }
    assert None not in table["events"].to_pylist()
    summary = pq.read_table(out / "measures" / "summary.parquet").to_pylist()
    assert {(row["measure"], row["n"]) for row in summary} == {*((name, 1) for name in before), ("events", 2)}
    assert read_about(out)["busiest"].title == "frames of the busiest node"
    # What a run lacks is measured when it is asked for, and not before.
    assert (is_current(out, ["events"]), is_current(out, ["delivery"])) == (True, False)
    measure(spark, out, ["delivery"])
    assert None not in load(out).results["delivery"].to_pylist()
    assert is_current(out, ["events", "delivery"])


# --- What is in the folder is what was written ----------------------------------------------------------------------


def test_verify_tells_what_is_not_what_was_written_and_what_belongs_to_nobody(
    spark: SparkSession, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    simulate(spark, planned(tmp_path, seeds=1), out)
    used = {path for path in out.rglob("*") if path.is_file()}
    simulate(spark, planned(tmp_path, seeds=2), out)  # its pack has the second seed of each variant
    simulate(spark, planned(tmp_path, seeds=1), out)
    told = CliRunner().invoke(main, ["verify", str(out)])
    assert (told.exit_code, told.output.splitlines()[0]) == (0, f"{out}: 2 runs, all right")
    assert set(orphans(out)) == {path for path in out.rglob("*") if path.is_file()} - used
    assert CliRunner().invoke(main, ["verify", str(out), "--remove-orphans"]).exit_code == 0
    assert not orphans(out)
    assert {path for path in out.rglob("*") if path.is_file()} == used
    assert len(look(planned(tmp_path, seeds=2), out).ok) == 2

    (flipped,), (other,) = ((out / "facts" / table).iterdir() for table in ("deliver", "publish"))
    whole = flipped.read_bytes()
    flipped.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
    table = pq.read_table(other, partitioning=None)
    pq.write_table(table.slice(0, 19).rename_columns(["run", "when", *table.column_names[2:]]), other)
    told = CliRunner().invoke(main, ["verify", str(out), "--json"])
    assert told.exit_code == 1
    last = max(pq.read_table(out / "manifest.parquet")["run"].to_pylist())
    assert json.loads(told.output)["problems"] == [
        f"{flipped}: is not the file that was written: its digest differs",
        f"{other}: is not the file that was written: its digest differs",
        f"{other}: its columns are not those of publish: ['time', 'when']",
        f"{other}: run {last} does not have the 10 rows of publish that were written",
    ]
    with pytest.raises(RoamcastError, match="its digest differs"):
        measure(spark, out, ["delivery"])
    flipped.unlink()
    other.unlink()
    assert not look(planned(tmp_path, seeds=1), out).ok
    simulate(spark, planned(tmp_path, seeds=1), out)
    assert CliRunner().invoke(main, ["verify", str(out)]).exit_code == 0
    assert flipped.read_bytes() == whole


def test_runs_and_manifest_of_two_commits_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    simulate(spark, planned(tmp_path, seeds=1), out)
    former = (out / "runs.parquet").read_bytes()
    simulate(spark, planned(tmp_path, seeds=2), out)
    (out / "runs.parquet").write_bytes(former)  # as if it had been killed between the two
    with pytest.raises(RoamcastError, match="do not belong together"):
        measure(spark, out, ["delivery"])
    simulate(spark, planned(tmp_path, seeds=2), out)
    measure(spark, out, ["delivery"])


def test_estimates_are_corrected_by_what_runs_have_taken(six: tuple[Plan, Path, list[State]]) -> None:
    plan, out, _ = six
    survey = look(plan, out)
    first = plan.distinct[0]
    ours = {run.run for run in plan.distinct}
    packed = (found for one in read_packs(out).values() for found in one.runs.items())
    took = {run: done["cpu"] for run, done in packed if run in ours}
    estimates = [run.estimate for run in plan.distinct]
    mean = sum(estimates) / len(estimates)  # what was believed before weighs as much as one run
    overall = (sum(took.values()) + mean) / (sum(estimates) + mean)
    same = [run for run in plan.distinct if run.protocol == first.protocol]  # of one estimate
    expected = (sum(took[run.run] for run in same) + first.estimate * overall) / (len(same) + 1)
    assert survey.forecast(plan).of(first) == pytest.approx(expected, rel=1e-6)
    assert look(plan, out.with_name("nothing")).forecast(plan).of(first) == first.estimate


# --- Folders that are refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "other"}, "holds another campaign, of 'tiny', not of 'other'"),
        ({"scenario": raw()["scenario"] | {"nodes": 19}}, "its experiment 'tiny' had another scenario than tiny.toml"),
        (
            {"variants": [{"name": "flooding", "set": {"radio.range": 90}}]},
            "its experiment 'tiny' had another variant 'flooding' than tiny.toml",
        ),
    ],
)
def test_the_folder_of_another_campaign_is_refused(
    changes: dict[str, Any], said: str, six: tuple[Plan, Path, list[State]], tmp_path: Path
) -> None:
    _, out, _ = six
    before = results(out)
    with pytest.raises(RoamcastError) as refusal:
        look(planned(tmp_path, **changes), out)
    assert said in str(refusal.value)
    assert results(out) == before


def test_an_axis_may_gain_values_and_those_it_had_must_not_change(tmp_path: Path) -> None:
    """An axis labelled by the degree that its areas give: the label may not come to stand for another area."""

    def over(degrees: list[int], widths: list[int]) -> Plan:
        return planned(
            tmp_path, seeds=1, axes=[{"field": "area.width", "label": "degree", "values": degrees, "puts": widths}]
        )

    out = tmp_path / "out"
    out.mkdir()
    write_json(out / "campaign.json", Campaign(2, "", list(over([4, 8], [947, 650]).experiments)))
    assert look(over([4, 8, 12], [947, 650, 530]), out).added == ["tiny: degree 12"]
    with pytest.raises(RoamcastError, match="'tiny' had another axis value 'degree = 8'"):
        look(over([4, 8], [947, 660]), out)
    plain = [{"field": "area.width", "label": "degree", "values": [4, 8]}]
    with pytest.raises(RoamcastError, match="had another axis value 'degree = 4'"):
        look(planned(tmp_path, seeds=1, axes=plain), out)


def test_other_folders_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    tiny = planned(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    (tmp_path / "file").touch()
    (tmp_path / "cut").mkdir()
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / ".lock").touch()
    (tmp_path / "begun" / ".campaign.json.new").write_text("{")
    (tmp_path / "cut" / "campaign.json").write_text('{"experi')
    for place, said in (
        ("mine", "is not empty and is not a campaign's folder"),
        ("file", "is a file, not a folder"),
        ("file/below", "cannot be written: Not a directory"),
        ("cut", "campaign.json: cannot be read: .* was cut short"),
    ):
        with pytest.raises(RoamcastError, match=said):
            simulate(spark, tiny, tmp_path / place)
    assert (tmp_path / "mine" / "thesis.tex").exists()
    assert not look(tiny, tmp_path / "begun").ok  # killed as it began, and not refused


def test_two_processes_are_not_at_one_campaign(spark: SparkSession, tmp_path: Path) -> None:
    tiny, refusals = planned(tmp_path, seeds=1), []

    def again(_: State) -> None:
        with pytest.raises(RoamcastError, match="another process is at work on this campaign") as refusal:
            simulate(spark, tiny, tmp_path / "out")
        refusals.append(refusal)

    simulate(spark, tiny, tmp_path / "out", again)
    assert refusals


# --- Runs that raise ------------------------------------------------------------------------------------------------


def test_a_run_that_raises_is_a_row_and_can_be_tried_again(spark: SparkSession, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    raising = f'if Path("{bad}").exists(): raise KeyError(self)'
    variants = [*raw()["variants"], *odd(tmp_path, raising)["variants"]]
    mixed, out = planned(tmp_path, variants=variants, seeds=2), tmp_path / "out"
    bad.touch()
    rows = simulate(spark, mixed, out).to_pylist()
    failed = [row for row in rows if row["status"] == "failed"]
    assert (len(rows), len(failed)) == (6, 2)
    for row in failed:
        assert row["error"].startswith("KeyError: <")
        assert row["error"].endswith(" object at 0x…> (odd.py:11 in start; node 0, start, at 0.000000 s)")
        assert (row["rows"], row["simulated"], row["protocol"]) == ([], None, "odd.py:ENTRY")
    bad.unlink()
    assert statuses(spark, mixed, out).count("failed") == 2
    assert statuses(spark, mixed, out, retry_failed=True) == ["ok"] * 6


def test_an_edited_protocol_never_gets_old_numbers(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    former = simulate(spark, planned(tmp_path, seeds=1, **odd(tmp_path, "pass")), out)
    # It never hears anything, now: an event reaches only those of its own node.
    edited = planned(tmp_path, seeds=1, **odd(tmp_path, "pass\n    def receive(self, now, sender, message): pass"))
    (tmp_path / "odd.py").unlink()  # what runs is what was planned
    (row,) = simulate(spark, edited, out).to_pylist()
    assert row["run"] not in former["run"].to_pylist()
    assert dict(former["rows"].to_pylist()[0])["deliver"] > 0
    assert "deliver" not in dict(row["rows"])


# --- Runs that kill their process -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "limits", "error"),
    [
        (
            "os.kill(os.getpid(), signal.SIGSEGV)",
            RunLimits(),
            "the run killed its process: SIGSEGV (3 times of 3)",
        ),
        ("os._exit(9)", RunLimits(), "the run ended its process with exit code 9 (3 times of 3)"),
        ("while True: pass", RunLimits(seconds=5), "the run took longer than the 5 s that a run may take"),
        (
            "taken = bytearray(10**9); time.sleep(60)",
            RunLimits(memory=700 * 10**6),
            "the run needed more than the 700 MB of memory that a run may take",
        ),
    ],
)
def test_a_run_that_kills_its_process_has_failed_and_the_others_go_on(
    first: str, limits: RunLimits, error: str, spark: SparkSession, tmp_path: Path
) -> None:
    variants = [*raw()["variants"], *odd(tmp_path, first)["variants"]]
    mixed, out = planned(tmp_path, variants=variants, seeds=1), tmp_path / "out"
    rows = simulate(spark, mixed, out, limits=limits).to_pylist()
    assert [row["error"] for row in rows if row["protocol"] == "odd.py:ENTRY"] == [error]
    assert [row["status"] for row in rows].count("ok") == 2
    assert not (out / "tmp").exists()


def test_a_child_ends_with_its_parent(tmp_path: Path) -> None:
    (tmp_path / "parent.py").write_text(
        "import os, sys, time\nfrom pathlib import Path\n"
        "from roamcast.campaign.define.limits import RunLimits\nfrom roamcast.pipeline.supervise import in_child\n"
        "def work():\n    Path(sys.argv[1]).write_text(str(os.getpid()))\n    time.sleep(60)\n"
        "in_child([work], RunLimits())\n"
    )
    told = tmp_path / "child"
    parent = subprocess.Popen([sys.executable, str(tmp_path / "parent.py"), str(told)])
    until(lambda: told.exists() and told.read_text() != "")
    parent.kill()
    parent.wait()
    status = Path(f"/proc/{told.read_text()}/status")
    until(lambda: not status.exists() or "State:\tZ" in status.read_text())


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# --- Tasks ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder as the driver prepares it."""
    out = tmp_path / "out"
    for folder in ("tmp", "done"):
        (out / folder).mkdir(parents=True)
    (out / "tmp" / TOKEN).touch()
    return out


@pytest.fixture
def run(tmp_path: Path) -> PlannedRun:
    return planned(tmp_path, seeds=1).distinct[0]


def perform(run: PlannedRun, out: Path, token: str) -> TaskReport:
    (outcome,) = perform_all([run], out, token, RunLimits())
    return outcome


def facts(out: Path, run: PlannedRun) -> list[tuple[str, pa.RecordBatch]]:
    record = read_record(done_file(out, run.run))
    assert record is not None
    return list(read_blocks(done_file(out, run.run), record))


def test_two_attempts_at_once_leave_what_one_leaves(place: Path, run: PlannedRun) -> None:
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as both:
        outcomes = list(both.map(perform, [run] * 2, [place] * 2, [TOKEN] * 2))
    assert [outcome[:3] for outcome in outcomes] == [(run.run, "ok", "")] * 2
    written = facts(place, run)
    assert {"publish", "deliver", "leg"} <= {table for table, _ in written}
    assert [path.name for path in (place / "tmp").iterdir()] == [TOKEN]
    assert [path.name for path in (place / "done").iterdir()] == [f"{run.run}.run"]
    first = read_record(done_file(place, run.run))
    done_file(place, run.run).unlink()
    perform(run, place, TOKEN)
    again = read_record(done_file(place, run.run))
    assert first is not None
    assert again is not None
    assert (facts(place, run), again["row"], again["blocks"]) == (written, first["row"], first["blocks"])


def test_a_run_whose_file_is_not_whole_is_done_again(place: Path, run: PlannedRun) -> None:
    perform(run, place, TOKEN)
    file, written = done_file(place, run.run), facts(place, run)
    whole = file.read_bytes()
    for part in (b"", whole[:100], whole[: len(whole) // 2], whole[:-1], bytes(len(whole)), whole + b"more"):
        file.write_bytes(part)
        assert read_record(done_file(place, run.run)) is None
    assert perform(run, place, TOKEN).status == "ok"
    assert facts(place, run) == written


def test_a_run_that_kills_a_process_of_several_is_put_aside_and_the_others_are_done(
    place: Path, tmp_path: Path
) -> None:
    # The second of three ends the process that it shares with the others, each time.
    ours = planned(tmp_path, seeds=1).distinct
    deadly = planned(tmp_path, seeds=1, **odd(tmp_path, "os._exit(7)"))
    deadly.sources.store(place)
    runs = [ours[0], *deadly.distinct, ours[1]]
    outcomes = perform_all(runs, place, TOKEN, RunLimits())
    assert [outcome[:2] for outcome in outcomes] == [
        (run.run, status) for run, status in zip(runs, ("ok", "failed", "ok"), strict=True)
    ]
    failed = read_record(done_file(place, runs[1].run))
    assert failed is not None
    assert failed["row"]["error"] == "the run ended its process with exit code 7 (3 times of 3)"
    assert [path.name for path in (place / "tmp").iterdir()] == [TOKEN]


def test_short_runs_of_our_own_protocols_share_a_task(run: PlannedRun) -> None:
    def some(count: int, **changes: Any) -> list[PlannedRun]:  # noqa: ANN401
        return [dataclasses.replace(run, estimate=0.4, **changes) for _ in range(count)]

    # A task may take two seconds; with two slots there are at least eight tasks.
    assert [len(task) for task in in_tasks(some(80), 2)] == [5] * 16
    assert [len(task) for task in in_tasks(some(32), 2)] == [4] * 8
    assert [len(task) for task in in_tasks(some(15), 2)] == [1] * 15
    outside = some(20, protocol="odd.py:ENTRY")
    assert [len(task) for task in in_tasks([*some(20), *outside, *some(20)], 2)] == [5] * 4 + [1] * 20 + [5] * 4
    long = [dataclasses.replace(run, estimate=2.5)] * 40
    assert [len(task) for task in in_tasks(long, 2)] == [1] * 40


def test_a_full_disk_is_told_and_leaves_nothing(place: Path, run: PlannedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    real = RunFile._write

    def full(file: RunFile, content: bytes) -> None:
        if len(content) > 100:
            file.problem = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            raise file.problem
        real(file, content)

    monkeypatch.setattr(RunFile, "_write", full)
    outcome = perform(run, place, TOKEN)
    assert outcome.status == "blocked"
    assert outcome.problem.startswith(f"{place}: cannot be written on ")
    assert outcome.problem.endswith(": No space left on device")
    assert [path.name for path in (place / "tmp").iterdir()] == [TOKEN]
    assert not list((place / "done").iterdir())
    monkeypatch.undo()
    assert perform(run, place, TOKEN).status == "ok"


def test_an_error_of_the_run_itself_is_not_taken_for_one_of_the_folder(place: Path, tmp_path: Path) -> None:
    failing = planned(tmp_path, seeds=1, **odd(tmp_path, 'open("/there/is/no/such/file")'))
    failing.sources.store(place)
    (run,) = failing.distinct
    assert perform(run, place, TOKEN).status == "failed"
    done = read_record(done_file(place, run.run))
    assert done is not None
    assert done["row"]["error"].startswith("FileNotFoundError: [Errno 2]")


def test_files_from_outside_are_stored_once_and_do_not_travel_with_the_runs(place: Path, tmp_path: Path) -> None:
    # Two nodes that stand 1 m apart, by a recording, and a protocol of our own.
    (tmp_path / "walk.csv").write_text("time,node,x,y\n0,0,1,1\n0,1,2,1\n")
    scenario = raw()["scenario"] | {
        "nodes": 2,
        "movement": {"model": "recorded", "file": "walk.csv"},
        "workload": {"subscribers": [{"nodes": [1]}], "publishers": [{"nodes": [0], "rate": 1}]},
    }
    both = planned(tmp_path, seeds=2, scenario=scenario, **odd(tmp_path, "pass"))
    (tmp_path / "walk.csv").unlink()
    (tmp_path / "odd.py").unlink()
    both.sources.store(place)
    runs = both.distinct
    assert all(b"0,1,2,1" not in pickle.dumps(run) for run in runs)
    assert [perform(run, place, TOKEN).status for run in runs] == ["ok", "ok"]
    for run in runs:
        assert sum(batch.num_rows for table, batch in facts(place, run) if table == "deliver") == 5
    assert sorted(path.name for path in (place / "files").glob("*/*")) == ["odd.py", "walk.csv"]


def test_a_folder_that_is_not_shared_is_told(place: Path, run: PlannedRun) -> None:
    (place / "tmp" / TOKEN).unlink()
    outcome = perform(run, place, TOKEN)
    assert outcome.status == "blocked"
    assert "the folder must be on storage that all of Spark's executors share" in outcome.problem


def test_an_executor_with_other_sources_is_told(place: Path, run: PlannedRun) -> None:
    outcome = perform(dataclasses.replace(run, run="0" * 16), place, TOKEN)
    assert outcome.status == "blocked"
    assert "has other sources of roamcast" in outcome.problem


def test_a_campaign_ends_when_its_folder_does_not_take_files(spark: SparkSession, tmp_path: Path) -> None:
    tiny, out = planned(tmp_path, seeds=1), tmp_path / "out"
    simulate(spark, tiny, out)
    more = plan([made(tmp_path)], 2)
    (out / "facts" / "publish").rename(out / "aside")
    (out / "facts" / "publish").symlink_to(out / "manifest.parquet")  # not a folder, though there is something
    with pytest.raises(RoamcastError, match="cannot be written"):
        simulate(spark, more, out)
    (out / "facts" / "publish").unlink()
    (out / "aside").rename(out / "facts" / "publish")
    assert statuses(spark, more, out) == ["ok"] * 4


# --- The verb -------------------------------------------------------------------------------------------------------


@pytest.fixture
def verb_spark(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SparkSession:
    """The verb gets the tests' session: a process can have only one."""

    @contextlib.contextmanager
    def session(*_: object) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr("roamcast.pipeline.session.session", session)
    monkeypatch.chdir(tmp_path)
    return spark


def verb(*options: str) -> Result:
    return CliRunner().invoke(main, ["campaign", "tiny.toml", *options])


TINY_TOML = """
name = "tiny"
title = "Two small ones"
seeds = 2
measures = ["delivery", "pairs_expected"]
variants = [{ name = "line" }, { name = "odd", set = { "protocol.name" = "odd.py:ENTRY" } }]
[scenario]
nodes = 3
duration = 10
radio.propagation = "links"
mac.model = "ideal"
links.up = [[0, 1], [1, 2]]
workload.subscribers = [{ nodes = [2] }]
workload.publishers = [{ nodes = [0], rate = 1 }]
"""


@pytest.mark.usefixtures("verb_spark")
def test_the_verb_measures_and_lists_failures(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY_TOML)
    odd(tmp_path, f'if Path("{tmp_path}/bad").exists(): raise RuntimeError("a defect")')
    (tmp_path / "bad").touch()
    result = verb()
    assert result.exit_code == 1, result.output
    assert "Two small ones" in result.stdout
    # All of the ten events arrive, in every run.
    assert [line.split() for line in result.stdout.splitlines() if line.startswith(" line")] == [
        ["line", "1", "±", "0", "10", "±", "0"]
    ]
    assert "2 runs in out/tiny" in result.stdout
    assert "2 runs failed:" in result.stderr
    where = "(odd.py:11 in start; node 0, start, at 0.000000 s)"
    assert f"(tiny, odd, –, seed 2): RuntimeError: a defect {where}" in result.stderr
    assert "run them again with: roamcast campaign tiny.toml --out out/tiny --retry-failed" in result.stderr

    (tmp_path / "bad").unlink()
    result = verb("--retry-failed", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["out"], told["runs"], told["failed"]) == ("out/tiny", 4, [])
    means = {(row["variant"], row["measure"]): row["mean"] for row in told["summary"]}
    assert means == {(v, m): n for v in ("line", "odd") for m, n in (("delivery", 1.0), ("pairs_expected", 10.0))}


@pytest.mark.usefixtures("verb_spark")
def test_an_interrupt_tells_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tiny.toml").write_text(TINY_TOML)
    odd(tmp_path, "time.sleep(0.6)")

    def interrupted(_: State) -> None:
        raise KeyboardInterrupt

    @contextlib.contextmanager
    def showing(_: Console) -> Iterator[Any]:
        yield interrupted

    monkeypatch.setattr("roamcast.cli.campaign_options.shown", showing)
    result = verb("--seeds", "3", "--conf", "spark.x=a b")
    assert result.exit_code == 130
    assert "continue with: roamcast campaign tiny.toml --out out/tiny --seeds 3 --conf 'spark.x=a b'" in result.stderr
    assert not (tmp_path / "out" / "tiny" / "manifest.parquet").exists()


def test_an_interrupt_cancels_the_job_and_what_is_missing_is_done_later(spark: SparkSession, tmp_path: Path) -> None:
    slow, out = planned(tmp_path, seeds=8, **odd(tmp_path, "time.sleep(0.5)")), tmp_path / "out"

    def interrupt(state: State) -> None:
        if state.done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(spark, slow, out, interrupt)
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()
    assert 0 < done(out) < 8
    assert statuses(spark, slow, out) == ["ok"] * 8


# --- Progress -------------------------------------------------------------------------------------------------------


def test_progress_in_words() -> None:
    state = State(total=60, done=20, failed=1, running=2, share=0.25, elapsed=100, left=300)
    words = in_words(state, 0.0)
    assert words.startswith("20 of 60 runs done, 1 failed, 2 running, 5 min left, until about ")
    assert in_words(State(60, 60, 0, 0, 1.0, 9, 0), 0.0) == "60 of 60 runs done"
    assert in_words(State(60, 0, 0, 2, 0.0, 9, 5), 0.0).startswith("0 of 60 runs done, 2 running, 5 s left")
    assert [duration(s) for s in (0.123, 42.4, 600, 8000)] == ["0.12 s", "42 s", "10 min", "2 h 13 min"]


def test_without_a_terminal_there_are_few_lines() -> None:
    lines: list[str] = []
    tell = ProgressLines(lines.append)
    for hundredth in range(101):
        tell(State(100, hundredth, 0, 0, hundredth / 100, hundredth / 10, 1))
    assert len(lines) == 11
    assert lines[-1] == "100 of 100 runs done"
    tell = ProgressLines(lines.append)
    lines.clear()
    for second in (0, 10, 29, 30, 59, 60):
        tell(State(2, 0, 0, 2, 0, second, 1))
    tell(State(2, 0, 1, 1, 0, 61, 1))
    assert len(lines) == 4


def test_a_campaign_that_adds_seeds_tells_of_its_further_starts() -> None:
    lines: list[str] = []
    tell = ProgressLines(lines.append)
    for state in (State(4, 0, 0, 2, 0, 0, 9), State(4, 4, 0, 0, 1, 50, 0), State(6, 4, 0, 2, 0, 1, 5)):
        tell(state)
    assert [line.split(",")[0] for line in lines] == [
        "0 of 4 runs done",
        "4 of 4 runs done",
        "4 of 6 runs done",
    ]


def test_a_terminal_gets_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with shown(Console(force_terminal=True, width=100)) as report:
        report(State(60, 20, 1, 2, 0.25, 100, 300))
    assert "20 of 60 runs done, 1 failed, 2 running" in capsys.readouterr().out


@pytest.mark.usefixtures("verb_spark")
def test_seeds_are_added_only_where_they_are_needed(tmp_path: Path) -> None:
    # Without losses everything arrives whatever the seed; with a loss of a half, it varies.
    text = TINY_TOML.replace("seeds = 2", "seeds = 9").replace(', { name = "odd", set = ', ', { name = "two", set = ')
    text = text.replace('"protocol.name" = "odd.py:ENTRY"', '"workload.publishers[0].rate" = 2')
    (tmp_path / "tiny.toml").write_text(text + '[[axes]]\nfield = "links.loss"\nvalues = [0, 0.5]\n')
    told = verb("--out", "grown", "--until", "delivery within 0.0001")
    assert told.exit_code == 0, told.output
    rows = pq.read_table(tmp_path / "grown" / "runs.parquet").to_pylist()
    seeds = {axes: len({row["seed"] for row in rows if row["axes"] == axes}) for axes in {row["axes"] for row in rows}}
    assert seeds == {'{"loss": 0}': 5, '{"loss": 0.5}': 9}
    assert "5 to 9 seeds per point" in told.output


@pytest.mark.parametrize("place", ["s3a://bucket/x", "hdfs://host/x", "gs://bucket/x"])
def test_a_scheme_is_refused_by_its_name_and_makes_no_folder(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.toml").write_text(TINY_TOML)
    told = verb("--out", place)
    assert told.exit_code == 2
    assert f"{place}: {place.partition(':')[0]}: cannot be written to" in told.output
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.toml"]
    assert local_path("file:///a/b%20c") == Path("/a/b c")
