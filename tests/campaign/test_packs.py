"""Files of runs become packs: what is in them, and what is left of a packing that is killed at any step."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from roamcast.campaign.folder import packs
from roamcast.campaign.folder.layout import done_file
from roamcast.campaign.folder.packs import in_packs, pack, pack_name, read_packs, write_index
from roamcast.campaign.folder.run_file import Damaged, RunFile, read_record
from roamcast.campaign.folder.stored import Stored
from roamcast.facts.schema import TABLES
from roamcast.storage import Store

NOTE = TABLES["note"]
MINE = pa.schema([("time", pa.int64()), ("mood", pa.string())])
OTHER = pa.schema([("time", pa.int64()), ("height", pa.float64())])


def notes(run: str, *counts: int) -> pa.RecordBatch:
    rows = [{"node": node, "fact": run, "count": count} for node, count in enumerate(counts)]
    return pa.RecordBatch.from_pylist(rows, NOTE)


def write_run(out: Path, run: str, *batches: tuple[str, pa.RecordBatch]) -> None:
    file = RunFile(done_file(out, run))
    for table, batch in batches:
        file(table, batch)
    file.finish({"row": {"run": run, "status": "ok", "rows": file.rows, "digest": file.digest}})


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Five runs: of three rows, none, five in two batches, one, and two."""
    for folder in ("done", "facts", "tmp"):
        (tmp_path / folder).mkdir()
    write_run(tmp_path, "a", ("note", notes("a", 1, 2, 3)), ("mood", pa.RecordBatch.from_pylist([{"time": 1}], MINE)))
    write_run(tmp_path, "b")
    write_run(tmp_path, "c", ("note", notes("c", 4, 5, 6)), ("note", notes("c", 7, 8)))
    write_run(tmp_path, "d", ("note", notes("d", 9)), ("mood", pa.RecordBatch.from_pylist([{"time": 2}], OTHER)))
    write_run(tmp_path, "e", ("note", notes("e", 10, 11)))
    return tmp_path


RUNS = ["a", "b", "c", "d", "e"]
COUNTS = {"a": [1, 2, 3], "c": [4, 5, 6, 7, 8], "d": [9], "e": [10, 11]}


def packed(out: Path, runs: list[str], attempt: str = "attempt") -> None:
    pack(out, runs, out / "tmp" / attempt)
    write_index(out, read_packs(out).values())


def test_each_run_is_found_again_with_its_own_name(out: Path) -> None:
    packed(out, RUNS)
    stored = Stored(Store.at(out))
    for run, counts in COUNTS.items():
        rows = stored.read("note", run)
        assert rows["count"].to_pylist() == counts
        assert set(rows["run"].to_pylist()) == {run}
        assert stored.read("note", run, ["fact"], ["fact"])["fact"].to_pylist() == [run] * len(counts)
    (one,) = read_packs(out).values()
    assert list(one.runs) == RUNS
    assert one.runs["b"] == {"row": {"run": "b", "status": "ok", "rows": {}, "digest": one.runs["b"]["row"]["digest"]}}
    assert not list(out.glob("done/*.run"))
    assert pq.ParquetFile(out / stored.place("note", "a").file).num_row_groups == 1


def test_tables_of_one_name_and_different_columns_are_different_files(out: Path) -> None:
    packed(out, RUNS)
    stored = Stored(Store.at(out))
    assert stored.read("mood", "a").column_names == ["run", "time", "mood"]
    assert stored.read("mood", "d").column_names == ["run", "time", "height"]
    assert len(stored.files("mood", ["a", "d"])) == 2


def test_small_runs_share_a_row_group_and_large_ones_have_several(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "_SHARED", 4)
    monkeypatch.setattr(packs, "_LARGEST", 3)
    packed(out, RUNS)
    stored = Stored(Store.at(out))
    file = pq.ParquetFile(out / stored.place("note", "a").file)
    # a fills one, and so does the first batch of c, which is too large to share; d comes behind the end of c; then e.
    assert [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)] == [3, 3, 3, 2]
    assert {run: stored.read("note", run)["count"].to_pylist() for run in COUNTS} == COUNTS


def test_packs_are_full_and_follow_from_the_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "RUNS_PER_PACK", 3)
    monkeypatch.setattr(packs, "BYTES_PER_PACK", 10)
    sizes = {"e": 1, "a": 1, "c": 1, "b": 1, "d": 9, "f": 1, "g": 99, "h": 1}
    assert in_packs(sizes) == [["a", "b", "c"], ["d", "e"], ["f"], ["g"], ["h"]]
    assert in_packs({}) == []


def test_a_file_that_is_not_what_was_written_is_refused_and_removed(out: Path) -> None:
    whole = done_file(out, "c").read_bytes()
    place = whole.index((7).to_bytes(8, "little"))
    done_file(out, "c").write_bytes(whole[:place] + b"\1" + whole[place + 1 :])
    assert read_record(done_file(out, "c")) is not None  # its end is there
    with pytest.raises(Damaged, match="is not the file that was written"):
        packed(out, RUNS)
    assert not read_packs(out)
    assert sorted(path.stem for path in out.glob("done/*.run")) == ["a", "b", "d", "e"]


def test_a_pack_with_a_file_that_is_cut_short_does_not_count(out: Path) -> None:
    packed(out, RUNS)
    (file,) = (out / "facts" / "note").iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    assert not read_packs(out)


def test_a_run_counts_in_one_pack(out: Path) -> None:
    again = [(run, done_file(out, run).read_bytes()) for run in "de"]
    packed(out, ["a", "b", "c", "d"])
    for run, content in again:
        done_file(out, run).write_bytes(content)
    packed(out, ["d", "e"], "another")
    first = min(pack_name(["a", "b", "c", "d"]), pack_name(["d", "e"]))
    assert list(read_packs(out)) == [first]
    stored = Stored(Store.at(out))
    (one,) = read_packs(out).values()
    everything = stored.read_all("note", [run for run in one.runs if run != "b"])
    assert everything["count"].to_pylist() == [count for run in one.runs for count in COUNTS.get(run, [])]


class Killed(BaseException):
    """As `kill -9`: nothing that follows is done."""


def kill_after(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever changes the folder more often than that is killed."""
    left = iter(range(steps))

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401
            if next(left, None) is None:
                raise Killed
            return real(*arguments, **options)

        return step

    for name in ("replace", "unlink", "mkdir"):
        monkeypatch.setattr(os, name, counted(getattr(os, name)))


def test_a_packing_that_is_killed_at_any_step_is_gone_on_with(
    out: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    expected, killed = None, 0
    for step in range(100):
        place = tmp_path_factory.mktemp("killed")
        for folder in ("done", "facts", "tmp"):
            (place / folder).mkdir()
        for path in out.glob("done/*.run"):
            (place / "done" / path.name).write_bytes(path.read_bytes())
        with pytest.MonkeyPatch.context() as patch:
            kill_after(step, patch)
            try:
                pack(place, RUNS, place / "tmp" / "first")
            except Killed:
                killed += 1
            else:
                break
        # Every run is there, in its file or in the pack.
        there = {path.stem for path in place.glob("done/*.run")}.union(
            *(one.runs for one in read_packs(place).values())
        )
        assert there == set(RUNS)
        packed(place, RUNS, "second")
        found = {
            path.relative_to(place): path.read_bytes() for part in ("done", "facts") for path in _files(place / part)
        }
        expected = expected or found
        assert found == expected
    # A folder of the attempt; folder and file of three tables; what says that they are there; five files of runs.
    assert killed == 1 + 3 * 2 + 1 + 5


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def test_two_attempts_at_one_pack_leave_what_one_leaves(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = read_record

    def slow(path: Path) -> Any:  # noqa: ANN401
        """The other attempt is done with everything when this one comes to its third run."""
        if path == done_file(out, "c"):
            monkeypatch.undo()
            packed(out, RUNS, "faster")
        return first(path)

    monkeypatch.setattr(packs, "read_record", slow)
    pack(out, RUNS, out / "tmp" / "slower")
    assert list(read_packs(out)) == [pack_name(RUNS)]
    pack(out, RUNS, out / "tmp" / "late")
    assert {run: Stored(Store.at(out)).read("note", run)["count"].to_pylist() for run in COUNTS} == COUNTS
