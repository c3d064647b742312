"""`roamcast watch`: a campaign while its runs come, and a network of live nodes while they write their parts."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from pipeline.tiny import odd, planned
from roamcast.cli.main import main
from roamcast.errors import RoamcastError
from roamcast.facts.schema import TABLES
from roamcast.live import parts
from roamcast.live.parts import EPOCH, Parts
from roamcast.pipeline import simulate as simulating
from roamcast.pipeline import watch as watching
from roamcast.pipeline.measure import measure
from roamcast.pipeline.simulate import simulate
from roamcast.pipeline.watch import Watched, watch
from roamcast.pipeline.watch_campaign import MEASURES, CampaignWatched
from roamcast.pipeline.watch_live import LiveWatched
from roamcast.report.watched import page, shown
from roamcast.units import SECOND

Snapshot = dict[str, Any]


def once(spark: SparkSession, watched: Watched, state: Path) -> Snapshot:
    (found,) = watch(spark, watched, state, 1.0, once=True)
    return found


# --- A campaign -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def before_packing(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign just before its runs are packed."""
    folder = tmp_path_factory.mktemp("campaign")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulating, "_pack", lambda *_: None)
        simulate(spark, planned(folder), folder / "work")
    (folder / "work" / "runs.parquet").rename(folder / "work" / "plan.parquet")
    (folder / "work" / "manifest.parquet").unlink()
    return folder / "work"


@pytest.fixture(scope="module")
def finished(spark: SparkSession, before_packing: Path) -> Path:
    """The same campaign, done and measured."""
    out = before_packing.with_name("out")
    shutil.copytree(before_packing, out)
    simulate(spark, planned(out.parent), out)
    measure(spark, out, MEASURES)
    return out


@pytest.fixture
def at_work(before_packing: Path, tmp_path: Path) -> Path:
    return shutil.copytree(before_packing, tmp_path / "a [b] 100%")


def by_batch(out: Path) -> dict[tuple[str, str], tuple[float, ...]]:
    """What `roamcast measure` says, by variant and measure."""
    rows = pq.read_table(out / "measures" / "summary.parquet").to_pylist()
    return {
        (row["variant"], row["measure"]): (row["n"], row["mean"], row["low"], row["high"])
        for row in rows
        if row["measure"] in MEASURES
    }


def by_stream(snapshot: Snapshot) -> dict[tuple[str, str], tuple[float, ...]]:
    return {
        (point["variant"], name): tuple(point[name][part] for part in ("n", "mean", "low", "high"))
        for point in snapshot["points"]
        for name in MEASURES
    }


def test_a_campaign_is_watched_while_its_runs_come(
    spark: SparkSession, finished: Path, at_work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aside, state = tmp_path / "aside", at_work / ".watch"
    aside.mkdir()
    runs = sorted((at_work / "done").glob("*.run"))
    for run in runs[2:]:
        run.rename(aside / run.name)
    first = once(spark, CampaignWatched(at_work), state)
    assert first["runs"] | {"seconds_since_latest": 0} == {
        "planned": 6,
        "done": 2,
        "failed": 0,
        "to_do": 4,
        "seconds_since_latest": 0,
    }
    assert sum(point["seeds_done"] for point in first["points"]) == 2

    # A batch whose results are kept, but that Spark does not know to be done, and one that was not even kept.
    keep = watching.keep
    for run, kept in ((runs[2], True), (runs[3], False)):
        (aside / run.name).rename(run)

        def killed(state: Path, tables: watching.Tables, kept: bool = kept) -> None:
            if kept:
                keep(state, tables)
            raise RoamcastError("killed")

        monkeypatch.setattr(watching, "keep", killed)
        with pytest.raises(RoamcastError, match="killed"):
            once(spark, CampaignWatched(at_work), state)
    monkeypatch.setattr(watching, "keep", keep)
    assert once(spark, CampaignWatched(at_work), state)["runs"]["done"] == 4

    for run in runs[4:]:
        (aside / run.name).rename(run)
    last = once(spark, CampaignWatched(at_work), state)
    assert last["runs"]["to_do"] == 0
    assert by_stream(last) == by_batch(finished)

    # Packed, nothing changes; and one who comes only then sees the same.
    simulate(spark, planned(tmp_path), at_work)
    assert not list((at_work / "done").glob("*.run"))
    assert not (at_work / "plan.parquet").exists()
    for place in (state, tmp_path / "new"):
        packed = once(spark, CampaignWatched(at_work), place)
        assert packed["runs"]["done"] == 6
        assert by_stream(packed) == by_batch(finished)


def test_failed_runs_and_their_errors_are_shown(spark: SparkSession, tmp_path: Path) -> None:
    simulate(spark, planned(tmp_path, seeds=1, **odd(tmp_path, "raise ValueError('<b>')")), tmp_path / "out")
    found = once(spark, CampaignWatched(tmp_path / "out"), tmp_path / "state")
    assert (found["runs"]["done"], found["runs"]["failed"], found["runs"]["to_do"]) == (0, 1, 0)
    (error,) = found["errors"]
    assert "ValueError" in error
    written = page(found, 5.0)
    assert "&lt;b&gt;" in written
    assert "<b>" not in written
    assert '<meta http-equiv="refresh" content="5">' in written


def test_as_a_user_types_it(
    spark: SparkSession, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.contextmanager
    def ours(*_: Any, **__: Any) -> Iterator[SparkSession]:  # noqa: ANN401
        yield spark

    monkeypatch.setattr("roamcast.pipeline.session.session", ours)
    words = ["watch", str(finished), "--once", "--state", str(tmp_path / "state")]
    table = CliRunner().invoke(main, [*words, "--page", str(tmp_path / "page.html")], env={"COLUMNS": "120"})
    assert table.exit_code == 0, table.output
    assert "runs done 6 of 6" in table.output
    assert "3 of 3" in table.output
    assert "Campaign out" in (tmp_path / "page.html").read_text()
    found = json.loads(CliRunner().invoke(main, [*words, "--json"]).output)
    assert by_stream(found) == by_batch(finished)


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["nowhere"], "is not a folder: name a campaign's, or those of `roamcast node --facts`"),
        (["run"], "is a finished run: `roamcast replay` and `roamcast why` show it"),
        (["campaign", "run"], "is a campaign's folder: watch it alone"),
        (["campaign"], "is a copy of a finished campaign"),
    ],
)
def test_what_cannot_be_watched_is_refused(
    words: list[str], answer: str, tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run").mkdir()
    Path("run/run.json").touch()
    Path("campaign").mkdir()
    shutil.copy(finished / "campaign.json", "campaign")
    result = CliRunner().invoke(main, ["watch", *words])
    assert result.exit_code == 2
    assert answer in result.output


def test_one_at_a_time_uses_a_state(spark: SparkSession, finished: Path, tmp_path: Path) -> None:
    first = watch(spark, CampaignWatched(finished), tmp_path, 60.0, once=False)
    next(first)
    with pytest.raises(RoamcastError, match="another `roamcast watch` uses it"):
        once(spark, CampaignWatched(finished), tmp_path)
    first.close()  # type: ignore[attr-defined]  # it is a generator


@pytest.mark.slow
def test_killed_between_two_batches_it_goes_on_and_counts_nothing_twice(finished: Path, at_work: Path) -> None:
    aside = at_work.parent / "aside"
    aside.mkdir()
    runs = sorted((at_work / "done").glob("*.run"))
    for run in runs[3:]:
        run.rename(aside / run.name)
    command = [sys.executable, "-m", "roamcast", "watch", str(at_work), "--json", "--every", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if json.loads(line)["runs"]["done"] == 3:
                break
        process.send_signal(signal.SIGKILL)
    for run in runs[3:]:
        (aside / run.name).rename(run)
    done = subprocess.run([*command, "--once"], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["runs"]["done"] == 6
    assert by_stream(found) == by_batch(finished)


# --- Live nodes -----------------------------------------------------------------------------------------------------

START = 1_700_000_000 * SECOND


class WritingNode:
    """A node that writes parts, with an epoch of its own; times are in seconds after START."""

    def __init__(self, folder: Path, node: int, behind: float) -> None:
        self.node, self.epoch = node, START - round(behind * SECOND)
        self.parts = Parts(folder)
        self._rows: dict[str, list[dict[str, Any]]] = {}

    def at(self, seconds: float) -> int:
        return START + round(seconds * SECOND) - self.epoch

    def subscribes(self, seconds: float, text: str) -> None:
        self._add("subscribe", time=self.at(seconds), subscription=1, active=True, filter=text)

    def publishes(self, seconds: float, serial: int, price: int, lifetime: float | None = None) -> int:
        event = self.node * 2**32 + serial
        span = None if lifetime is None else round(lifetime * SECOND)
        self._add("publish", time=self.at(seconds), event=event, type="offer", size=10, lifetime=span)
        self._rows.setdefault("event_attribute", []).append(
            {"event": event, "attribute": "price", "kind": "int", "integer": price}
        )
        return event

    def delivers(self, seconds: float, event: int) -> None:
        self._add("deliver", time=self.at(seconds), event=event, subscription=1, hops=1, via="data")

    def _add(self, table: str, **row: Any) -> None:  # noqa: ANN401
        self._rows.setdefault(table, []).append({"node": self.node, **row})

    def cut(self, seconds: float) -> None:
        """Writes a part with everything up to this second."""
        self._rows["series"] = [{"second": self.at(seconds) // SECOND - 1, "kind": "data", "role": "data"}]
        self.parts.write(
            {
                table: pa.Table.from_pylist(rows, TABLES[table]).replace_schema_metadata({EPOCH: str(self.epoch)})
                for table, rows in self._rows.items()
            }
        )
        self._rows = {}


def test_an_event_counts_when_its_time_is_over(spark: SparkSession, tmp_path: Path) -> None:
    net, state = tmp_path / "net", tmp_path / "state"
    one, two = WritingNode(net / "1" / "facts", 1, 0), WritingNode(net / "2" / "facts", 2, 1000)

    def look() -> Snapshot:
        return once(spark, LiveWatched([net], wait=60, window=3600), state)

    two.subscribes(0, "price < 20")
    first, second = one.publishes(10, 1, 5), one.publishes(12, 2, 5)
    one.publishes(13, 3, 50)  # nobody wants it
    short = one.publishes(14, 4, 5, lifetime=3)
    two.delivers(10.5, first)
    one.cut(20)
    two.cut(20)
    found = look()
    assert found["events"] == {"published": 4, "settled": 1, "under_way": 3}  # the one with a lifetime of 3 s
    assert (found["measures"]["pairs_expected"], found["measures"]["pairs_delivered"]) == (1, 0)
    two.delivers(40, second)
    two.delivers(41, short)
    one.cut(100)
    found = look()
    assert found["events"]["settled"] == 1  # the other node's facts end before
    two.cut(100)
    found = look()
    assert found["events"] == {"published": 4, "settled": 4, "under_way": 0}
    assert found["measures"]["delivery"] == 1.0
    assert found["measures"]["pairs_expected"] == 3
    assert found["measures"]["delay_mean"] == pytest.approx((0.5 + 28 + 27) / 3)
    assert [node["node"] for node in found["nodes"]] == [1, 2]


def test_merged_parts_add_nothing_and_lose_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "FAN", 3)
    one = WritingNode(tmp_path / "net", 1, 0)
    watched, state = LiveWatched([tmp_path / "net"], wait=1, window=3600), tmp_path / "state"
    one.subscribes(0, "price < 20")
    for second in range(1, 15):
        one.delivers(second + 0.5, one.publishes(second, second, 5))
        one.cut(second + 1)
        if second == 4:  # some of the next merged part is known then, and some is not
            once(spark, watched, state)
    assert list((tmp_path / "net").glob("merged-publish-*"))
    one.cut(200)
    found = once(spark, watched, state)
    assert found["measures"]["pairs_delivered"] == found["measures"]["events"] == 14
    assert found["measures"]["delay_mean"] == pytest.approx(0.5)


def test_silent_nodes_and_the_window(spark: SparkSession, tmp_path: Path) -> None:
    now = time.time()
    names = ["a", "b", "c"]
    nodes = [WritingNode(tmp_path / name, number, 0) for number, name in enumerate(names)]
    for number, node in enumerate(nodes):
        node.subscribes(0, "price < 20")
        node.publishes(1, 1, 5)
        node.cut(5)
        _touch(tmp_path / names[number], now - 200)
    for name, node in zip(names[:2], nodes, strict=False):  # the third is never heard again
        node.publishes(5000, 2, 5)
        node.cut(5100)
        _touch(tmp_path / name, now - (100 if name == "a" else 1), since=now - 150)
    watched = LiveWatched([tmp_path / name for name in names], wait=60, window=3600)
    (found,) = watch(spark, watched, tmp_path / "state", 1.0, once=True)
    silent = {node["node"]: node["silent"] for node in found["nodes"]}
    assert silent == {0: False, 1: False, 2: True}  # a part every 100 s may be 100 s old
    assert found["events"]["published"] == 2  # without those of more than an hour before
    words = shown(found)
    assert words.key["Silent"] == "1"
    assert [row[0] for row in words.tables[1][2]] == ["2"]


def _touch(folder: Path, when: float, since: float = 0.0) -> None:
    for file in folder.glob("*.parquet"):
        if file.stat().st_mtime >= since:
            os.utime(file, (when, when))


def test_parts_of_a_tree(spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema(
        [("time", pa.int64()), ("node", pa.int32()), ("parent", pa.int32()), ("children", pa.list_(pa.int32()))]
    )

    def position(node: int, parent: int | None, children: Sequence[int]) -> None:
        row = {"time": 1, "node": node, "parent": parent, "children": list(children)}
        Parts(tmp_path / str(node)).write({"tree": pa.Table.from_pylist([row], schema)})

    for node, parent, children in ((1, None, [2, 3]), (2, 1, []), (3, None, []), (4, 2, [])):
        position(node, parent, children)  # 3 does not know its parent, 2 does not know its child
    found = once(spark, LiveWatched([tmp_path], 60, 3600), tmp_path / "state")
    assert found["islands"] == 3
