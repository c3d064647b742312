"""The folder of a node's facts: few files, bounded, and whole whatever happens."""

import logging
from pathlib import Path

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
    """As the lab and everybody else read them: all parts by name."""
    return [n for path in sorted(folder.glob(f"{table}-*.parquet")) for n in pq.read_table(path)["n"].to_pylist()]


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
    assert renamed == [tmp_path / "t-000000.parquet"]
    assert flushed[-1] == tmp_path, "and the folder knows it"


def test_parts_are_merged_and_nothing_is_lost_repeated_or_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FAN", 4)
    written = Parts(tmp_path, 2**30)
    counts = []
    for number in range(3 * 16 + 5):
        written.write({"t": rows(2 * number, 2 * number + 1)})
        counts.append(len(list(tmp_path.iterdir())))
    assert read(tmp_path) == list(range(2 * len(counts)))
    assert max(counts) == 2 + 3 + 3  # of the levels 2, 1 and 0
    assert counts[-1] == 3 + 1 + 1
    assert Parts(tmp_path, 2**30).next_number == len(counts)


def test_a_day_at_two_events_a_second_is_some_hundred_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """106,000 files, they were. The parts are those of a day; what is in them is left out, to be quick."""
    monkeypatch.setattr(module, "_write", lambda path, table: 3000)
    monkeypatch.setattr(module, "_read", lambda part: rows(1))
    written, most = Parts(tmp_path, 2**30), 0
    for _ in range(1400):  # in 24 hours: test_mast.py has that
        written.write({table: rows(1) for table in TABLES})
        most = max(most, len(written._parts))
    assert most <= 6 * (2 * (FAN - 1) + 1)


def test_what_is_long_enough_is_not_merged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST", 2000)  # two or three parts of 400 to 800 bytes
    monkeypatch.setattr(module, "FAN", 4)
    written = Parts(tmp_path, 2**30)
    for number in range(40):
        written.write({"t": rows(*range(5 * number, 5 * number + 5))})
    assert read(tmp_path) == list(range(200))
    assert max(path.stat().st_size for path in tmp_path.iterdir()) <= 4000


def test_a_life_that_ended_while_it_merged_repeats_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(self: Parts, part: module.Part) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Parts, "_remove", killed)
    written = Parts(tmp_path, 2**30)
    for number in range(FAN - 1):
        written.write({"t": rows(number)})
    with pytest.raises(KeyboardInterrupt):
        written.write({"t": rows(FAN - 1)})
    assert len(list(tmp_path.iterdir())) == FAN, "merged, and nothing removed"
    assert len(read(tmp_path)) == 2 * FAN - 1
    monkeypatch.undo()
    again = Parts(tmp_path, 2**30)
    assert read(tmp_path) == list(range(FAN))
    again.write({"t": rows(FAN)})
    assert read(tmp_path) == list(range(FAN + 1))


def test_all_parts_take_no_more_than_the_limit_and_the_oldest_go(tmp_path: Path) -> None:
    written = Parts(tmp_path, 20_000)
    for number in range(150):
        written.write({"t": rows(number), "u": rows(number)})
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 20_000
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
        for number in range(FAN):
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
    assert sum(part.stat().st_size for part in (tmp_path / "facts").iterdir()) <= 20_000
