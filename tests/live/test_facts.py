"""Parts of facts: complete or not there, numbered on, and owed after a crash."""

import shutil
from functools import partial
from pathlib import Path

import pytest

from live.nodes import address, facts, run, settings
from roamcast.content.event import Event, event_id
from roamcast.content.subscription import Publication
from roamcast.live import written as module
from roamcast.live.client import Client
from roamcast.live.facts import facts_of
from roamcast.live.node import Node
from roamcast.live.settings import NodeSettings
from roamcast.live.written import WrittenFacts
from roamcast.protocols.catalogue import find
from roamcast.units import SECOND


def test_totals_are_what_was_added_and_seconds_wait_until_they_are_over(tmp_path: Path) -> None:
    async def test() -> None:
        recorder = WrittenFacts(tmp_path, 3, find("flooding"))
        recorder.count(SECOND // 2, "data", 0, packets=1, bits=80)
        recorder.count(SECOND // 2, "data", 7, packets=2, bits=160)
        recorder.note("duplicate")
        await recorder.cut(SECOND // 2)
        recorder.count(3 * SECOND, "data", 7, packets=4)
        recorder.note("duplicate")
        recorder.note("duplicate")
        await recorder.close(3 * SECOND)
        assert recorder.notes == {"duplicate": 3}
        assert recorder.counted == {"data": {"packets": 7, "bits": 240}}

    run(test)
    found = facts(tmp_path)
    assert [(row["kind"], row["cause"], row["packets"], row["bits"]) for row in found["transmit"]] == [
        ("data", 0, 1, 80),
        ("data", 7, 2, 160),
        ("data", 7, 4, 0),
    ]
    assert [row["count"] for row in found["note"]] == [1, 2]
    assert [(row["second"], row["packets"], row["bits"]) for row in found["series"]] == [(0, 3, 240), (3, 4, 0)]
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "note-000000.parquet",
        "note-000001.parquet",
        "parts.json",
        "series-000001.parquet",
        "transmit-000000.parquet",
        "transmit-000001.parquet",
    ]


def test_many_rows_are_written_before_their_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ROWS", 10)

    async def test() -> None:
        recorder = WrittenFacts(tmp_path, 3, find("flooding"))
        told: list[int] = []
        recorder.on_recorded = told.append
        for serial in range(1, 26):
            recorder.published(serial, Publication(Event("t", id=event_id(3, serial))))
            if recorder._writing is not None:
                await recorder._written_out()
        await recorder.close(SECOND)
        assert told == [event_id(3, serial) for serial in (5, 10, 15, 20, 25)]  # a row of `event_attribute` each, too

    run(test)
    assert [row["time"] for row in facts(tmp_path)["publish"]] == list(range(1, 26))


def test_without_a_folder_there_are_only_counts() -> None:
    async def test() -> None:
        recorder = facts_of(NodeSettings(node=3, insecure=True), find("flooding"), 0)
        recorder.published(1, Publication(Event("t", id=5)))
        recorder.count(1, "data", packets=1)
        await recorder.close(SECOND)
        assert (recorder.recording, recorder.counted) == (False, {"data": {"packets": 1}})

    run(test)


def test_facts_that_cannot_be_written_do_not_end_the_node(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        recorder = WrittenFacts(tmp_path / "facts", 3, find("flooding"))
        shutil.rmtree(tmp_path / "facts")
        recorder.published(1, Publication(Event("t", id=5)))
        await recorder.cut(SECOND)
        assert recorder.notes["facts lost"] == 1
        await recorder.close(SECOND)

    run(test)
    assert "facts could not be written" in caplog.messages


def test_each_publication_is_a_fact_once_whatever_folders_lives_have(tmp_path: Path) -> None:
    async def life(folder: Path | None) -> None:
        async with Node(settings(tmp_path, facts=folder)) as node, Client(address(node)) as client:
            await client.publish({})

    for folder in (tmp_path / "a", tmp_path / "a", tmp_path / "b", None, tmp_path / "c"):
        run(partial(life, folder))
    serials = {name: [row["event"] - event_id(1, 1) + 1 for row in facts(tmp_path / name)["publish"]] for name in "abc"}
    assert serials == {"a": [1, 2], "b": [3], "c": [5]}


def test_what_a_killed_life_owes_is_written_by_the_next(tmp_path: Path) -> None:
    async def killed() -> None:
        async with Node(settings(tmp_path, facts=tmp_path / "a")) as node, Client(address(node)) as client:
            await client.publish({})
            await node.facts.cut(node.clock.now())
            await client.publish({"a": 1})
            assert isinstance(node.facts, WrittenFacts)
            node.facts._rows["publish"].clear()  # as if it had been killed here
            node.facts._rows["event_attribute"].clear()

    async def next_life() -> None:
        async with Node(settings(tmp_path, facts=tmp_path / "b")):
            pass

    run(killed)
    run(next_life)
    assert [row["event"] for row in facts(tmp_path / "a")["publish"]] == [event_id(1, 1)]
    later = facts(tmp_path / "b")
    assert [row["event"] for row in later["publish"]] == [event_id(1, 2)]
    assert [row["attribute"] for row in later["event_attribute"]] == ["", "a"]
