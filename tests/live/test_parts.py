"""The folder of a node's facts: few files, bounded, and whole whatever happens."""

import contextlib
import itertools
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from live.nodes import address, run, settings
from roamcast.live import parts as module
from roamcast.live.client import Client
from roamcast.live.node import Node
from roamcast.live.parts import FAN, Parts

TABLES = ("publish", "deliver", "transmit", "series", "note", "event_attribute")
"""What a node writes every time at 2 events a second."""


def rows(*numbers: int) -> pa.Table:
    return pa.table({"n": pa.array(numbers, pa.int64())})


def read(folder: Path, table: str = "t") -> list[int]:
    """As the lab and everybody else read them."""
    return [n for name, part in module.read(folder) if name == table for n in part["n"].to_pylist()]


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))


class Follower:
    """Whoever takes each part once, as it appears: a stream in Spark does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: set[Path] = set()
        self.rows: list[int] = []

    def look(self) -> None:
        for path in sorted(set(self._folder.glob("t-*.parquet")) - self._seen):
            self._seen.add(path)
            self.rows += pq.read_table(path)["n"].to_pylist()


def before_steps(patch: pytest.MonkeyPatch, call: Callable[[], None]) -> None:
    """Calls before every change to the folder that somebody else could see."""

    def watched(do: Callable[..., Any]) -> Callable[..., Any]:
        def change(*given: object, **options: object) -> object:
            call()
            return do(*given, **options)

        return change

    for name in ("replace", "unlink"):
        patch.setattr(Path, name, watched(getattr(Path, name)))


class Killed(BaseException):
    """The node was killed here."""


@pytest.fixture(autouse=True)
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What was written through to the disk, which would take seconds here."""
    places: list[Path] = []
    monkeypatch.setattr(module, "_to_disk", places.append)
    return places


def test_a_part_is_on_disk_before_it_has_its_name(
    tmp_path: Path, flushed: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    renamed, rename = [], Path.replace

    def replace(self: Path, target: Path) -> Path:
        assert flushed[-1] == self, "renamed before it was on disk"
        renamed.append(target)
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    Parts(tmp_path, 2**30).write({"t": rows(1)})
    assert renamed == [tmp_path / "t-000000.parquet", tmp_path / "parts.json"]
    assert flushed[-1] == tmp_path, "and the folder knows it"


def test_parts_are_merged_and_nothing_is_lost_repeated_or_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FAN", 4)
    written = Parts(tmp_path, 2**30)
    counts = []
    for number in range(3 * 16 + 5):
        written.write({"t": rows(2 * number, 2 * number + 1)})
        counts.append(len(files(tmp_path)))
    assert read(tmp_path) == list(range(2 * len(counts)))
    assert max(counts) == 2 + 3 + 7  # of the levels 2, 1 and 0, of which the latest four are not merged
    assert counts[-1] == 3 + 0 + 5
    assert Parts(tmp_path, 2**30).next_number == len(counts)


def test_a_day_at_two_events_a_second_is_some_hundred_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """106,000 files, they were. The parts are those of a day; what is in them is left out, to be quick."""
    monkeypatch.setattr(module, "_write", lambda path, table: 3000)
    monkeypatch.setattr(module, "_read", lambda part: rows(1))
    written, most = Parts(tmp_path, 2**30), 0
    for _ in range(1400):  # in 24 hours: test_mast.py has that
        written.write({table: rows(1) for table in TABLES})
        most = max(most, len(written._parts))
    assert most <= 6 * (3 * (FAN - 1) + 2)


def test_what_is_long_enough_is_not_merged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST", 2000)  # two or three parts of 400 to 800 bytes
    monkeypatch.setattr(module, "FAN", 4)
    written = Parts(tmp_path, 2**30)
    for number in range(40):
        written.write({"t": rows(*range(5 * number, 5 * number + 5))})
    assert read(tmp_path) == list(range(200))
    assert max(path.stat().st_size for path in files(tmp_path)) <= 4000


def test_whoever_reads_along_gets_every_row_once_at_any_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the manifest, or by taking each part once; they look between any two steps of the node."""
    monkeypatch.setattr(module, "FAN", 2)
    written, follower, looks = Parts(tmp_path), Follower(tmp_path), []

    def look() -> None:
        follower.look()
        looks.append(read(tmp_path))

    before_steps(monkeypatch, look)
    for number in range(20):
        seen = len(looks)
        written.write({"t": rows(2 * number, 2 * number + 1)})
        look()
        assert all(look in (list(range(2 * number)), list(range(2 * number + 2))) for look in looks[seen:])
    assert looks[-1] == follower.rows == list(range(40))
    # After each write, and before each part, manifest, merged part of the levels 1 to 4, and what these replace.
    assert len(looks) == 20 + 20 + 20 + (9 + 4 + 2 + 1) + 2 * (9 + 4 + 2 + 1)


def test_a_node_that_is_killed_between_any_two_steps_loses_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FAN", 2)
    for moment in itertools.count():
        folder, steps, acknowledged = tmp_path / str(moment), itertools.count(), 0
        follower = Follower(folder)

        def step(steps: Iterator[int] = steps, moment: int = moment, follower: Follower = follower) -> None:
            follower.look()
            if next(steps) == moment:
                raise Killed

        written = Parts(folder)
        with monkeypatch.context() as patch, contextlib.suppress(Killed):
            before_steps(patch, step)
            for number in range(7):
                written.write({"t": rows(number)})
                acknowledged = number + 1
        found = read(folder)
        assert found in (list(range(acknowledged)), list(range(acknowledged + 1)))
        again = Parts(folder)
        assert read(folder) == found
        for number in range(len(found), 11):
            again.write({"t": rows(number)})
            follower.look()
        assert read(folder) == follower.rows == list(range(11))
        assert {path.name for path in folder.iterdir()} == {"parts.json", *(part.path.name for part in again._parts)}
        if acknowledged == 7:
            break
    assert moment > 20


def test_a_reader_that_is_overtaken_by_a_merge_begins_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Parts(tmp_path)
    for number in range(2 * FAN - 1):
        written.write({"t": rows(number)})
    open_part, left = module._read, [5]

    def overtaken(part: module.Part) -> pa.Table | None:
        left[0] -= 1
        if left[0] == 0:
            monkeypatch.setattr(module, "_read", open_part)
            written.write({"t": rows(2 * FAN - 1)})
        return open_part(part)

    monkeypatch.setattr(module, "_read", overtaken)
    assert read(tmp_path) == list(range(2 * FAN))
    assert len(files(tmp_path)) == 1 + FAN


@pytest.mark.parametrize("manifest", [None, b"", b'{"next": "many"}'])
def test_without_its_manifest_a_folder_is_read_by_the_names(tmp_path: Path, manifest: bytes | None) -> None:
    written = Parts(tmp_path)
    parts: dict[Path, bytes] = {}
    for number in range(2 * FAN + 5):
        written.write({"t": rows(number)})
        parts |= {path: path.read_bytes() for path in files(tmp_path)}
    for path, content in parts.items():  # as if none had been removed
        path.write_bytes(content)
    (tmp_path / "parts.json").unlink()
    if manifest is not None:
        (tmp_path / "parts.json").write_bytes(manifest)
    assert read(tmp_path) == list(range(2 * FAN + 5))
    Parts(tmp_path).write({"t": rows(2 * FAN + 5)})
    assert read(tmp_path) == list(range(2 * FAN + 6))


def test_all_parts_take_no_more_than_the_limit_and_the_oldest_go(tmp_path: Path) -> None:
    written = Parts(tmp_path, 20_000)
    for number in range(150):
        written.write({"t": rows(number), "u": rows(number)})
        assert sum(path.stat().st_size for path in files(tmp_path)) <= 20_000
    kept = read(tmp_path)
    assert kept == list(range(kept[0], 150))
    assert kept[0] > 0
    assert read(tmp_path, "u")[-1] == 149


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    (tmp_path / "t-000003.parquet").write_bytes(b"")
    (tmp_path / "t-000004.parquet").write_bytes(b"PAR1 and nothing else")
    pq.write_table(rows(*range(1000)), tmp_path / "t-000005.parquet", compression="none")
    content = bytearray((tmp_path / "t-000005.parquet").read_bytes())
    content[4:60] = bytes(56)  # the pages, not the footer
    (tmp_path / "t-000005.parquet").write_bytes(content)
    return tmp_path


def test_a_damaged_part_is_passed_over_with_one_line(damaged: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        written = Parts(damaged, 2**30)
        for number in range(2 * FAN):
            written.write({"t": rows(number)})
        found = list(written.newest("t"))
    lines = [str(getattr(record, "roamcast_fields", {}).get("part")) for record in caplog.records]
    assert sorted({Path(line).name for line in lines}) == [f"t-00000{number}.parquet" for number in (3, 4, 5)]
    assert len(lines) == 3
    assert found[-1]["n"].to_pylist()[0] == 0


def test_the_limit_is_a_setting(tmp_path: Path) -> None:
    async def life() -> None:
        chosen = settings(tmp_path, facts=tmp_path / "facts", facts_limit=20_000)
        async with Node(chosen) as node, Client(address(node)) as client:
            for _ in range(15):
                await client.publish({"a": 1})
                await node.facts.cut(node.clock.now())

    run(life)
    assert sum(part.stat().st_size for part in files(tmp_path / "facts")) <= 20_000
