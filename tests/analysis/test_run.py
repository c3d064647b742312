"""A run as measures see it: what is read, and what is computed, once."""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from analysis.places import place
from analysis.runs import MINUTE, by_hand, ferry
from pipeline.measured import Run as Made
from pipeline.measured import S, tables
from roamcast.analysis import limits, pairs
from roamcast.analysis.measures import topology
from roamcast.analysis.measures.catalogue import FAMILIES
from roamcast.analysis.measures.possible import possible
from roamcast.analysis.run import Run, Worlds, once, once_per_world
from roamcast.errors import RoamcastError
from roamcast.facts.schema import TABLES

# --- Tables ---------------------------------------------------------------------------------------------------------


class Reading:
    """A run that notes which columns of which tables are read."""

    def __init__(self, made: Made) -> None:
        self.made = made
        self.reads: list[tuple[str, tuple[str, ...] | None, tuple[str, ...]]] = []
        whole = made.in_memory()
        self.run = Run(made.name, whole.scenario, whole.tables, self._read)

    def _read(self, table: str, columns: Sequence[str] | None, dictionaries: Sequence[str]) -> pa.Table:
        self.reads.append((table, None if columns is None else tuple(columns), tuple(dictionaries)))
        rows = self.made.facts[table]
        return rows if columns is None else rows.select(list(columns))

    @property
    def columns(self) -> Iterator[tuple[str, str]]:
        """Every column each time that it was read."""
        for table, columns, _ in self.reads:
            yield from ((table, name) for name in columns or self.made.facts[table].column_names)


def test_only_what_is_asked_for_is_read_and_only_once() -> None:
    reading = Reading(by_hand())
    run = reading.run
    assert reading.reads == []
    assert run.column("publish", "time").tolist() == [1 * S, 5 * S, 6 * S, 7 * S]
    assert run.table("publish", "event", "time").to_pylist()[0] == {"event": 10, "time": S}
    run.column("publish", "event")
    assert reading.reads == [("publish", ("time",), ()), ("publish", ("event",), ())]
    run.column("deliver", "via")
    assert reading.reads[2:] == [("deliver", ("via",), ("via",))]


def test_a_whole_table_is_read_once_with_all_its_columns() -> None:
    reading = Reading(by_hand())
    assert reading.run.table("note").equals(by_hand().facts["note"])
    reading.run.table("note", "count")
    reading.run.table("note")
    assert reading.reads == [("note", ("node", "fact", "count"), ())]


def test_a_table_has_its_columns_in_their_order_whatever_was_read_before() -> None:
    run = by_hand().in_memory()
    run.table("publish", "event")
    assert run.table("publish").column_names == TABLES["publish"].names
    assert run.table("publish", "size", "time").column_names == ["size", "time"]


def test_all_measures_together_read_every_column_at_most_once() -> None:
    reading = Reading(by_hand())
    for family in FAMILIES:
        family(reading.run)
    times = Counter(reading.columns)
    assert {column: count for column, count in times.items() if count > 1} == {}
    assert {table for table, _ in times} == reading.run.tables


def test_a_table_without_rows_has_none() -> None:
    run = Made("bare", tables(note=[(0, "duplicate", 2)])).in_memory()
    assert run.tables == {"note"}
    assert (run.has("note"), run.has("publish"), run.has("note", "publish")) == (True, False, False)
    assert run.table("publish").schema == TABLES["publish"]
    assert run.table("publish", "event", "time").column_names == ["event", "time"]
    assert len(run.column("publish", "time")) == 0


def test_a_table_of_a_protocol_has_the_columns_that_were_written() -> None:
    reading = Reading(Made("r", tables(tree=[place(0, 1, "start", 0, None)])))
    assert reading.run.table("tree").column_names == reading.made.facts["tree"].column_names
    reading.run.table("tree", "node")
    reading.run.table("tree")
    assert reading.reads == [("tree", None, ())]


def test_a_column_that_is_not_there_is_refused_by_name() -> None:
    """Files are read without a word about columns that they do not have."""
    run = by_hand().in_memory()
    asked = Run(
        "hand", run.scenario, run.tables, lambda table, _columns, _coded: by_hand().facts[table].select(["time"])
    )
    with pytest.raises(RoamcastError, match="run hand: the table publish has no column 'tine'"):
        asked.column("publish", "tine")


def test_a_table_that_no_run_needs_to_have_is_asked_for_first() -> None:
    with pytest.raises(RoamcastError, match=r"run bare: has no table 'tree'; ask `run.has\('tree'\)` first"):
        Made("bare", {}).in_memory().table("tree")


def test_a_run_knows_its_times_and_its_protocol() -> None:
    run = Made("r", {}, simulated=10.0, warmup=4.5, nodes=7, protocol="gossip").in_memory()
    assert (run.nodes, run.start, run.end, run.protocol) == (7, 4_500_000_000, 10 * S, "gossip")
    assert repr(run) == "Run('r', gossip, 7 nodes, 10 s)"


# --- What is computed once ------------------------------------------------------------------------------------------


def test_once_is_once_for_each_run() -> None:
    seen: list[str] = []

    @once
    def noted(run: Run) -> int:
        seen.append(run.name)
        return len(seen)

    first, second = (Made(name, {}).in_memory() for name in ("first", "second"))
    assert [noted(first), noted(first), noted(second), noted(first)] == [1, 1, 2, 1]
    assert seen == ["first", "second"]


def calls_of(monkeypatch: pytest.MonkeyPatch, module: object, name: str) -> list[Any]:
    """The first arguments of each call of a function, from now on."""
    seen: list[Any] = []
    original = getattr(module, name)

    def noted(first: Any, *others: Any, **named: Any) -> Any:  # noqa: ANN401  # as the original
        seen.append(first)
        return original(first, *others, **named)

    monkeypatch.setattr(module, name, noted)
    return seen


def test_the_pairs_of_a_run_are_found_once_for_all_families(monkeypatch: pytest.MonkeyPatch) -> None:
    matched = calls_of(monkeypatch, pairs, "matches")
    followed = calls_of(monkeypatch, pairs, "_first_deliveries")
    run = by_hand().in_memory()
    for family in FAMILIES:
        family(run)
    assert len(matched) == len(followed) == 1


# --- Worlds ---------------------------------------------------------------------------------------------------------


def test_a_world_is_worked_out_once_for_all_protocols(monkeypatch: pytest.MonkeyPatch) -> None:
    late = [(41 * MINUTE, 2, 10, 2, 0, 2, "data")]
    same = [
        dataclasses.replace(ferry((0, 0, 10, None)), protocol="gossip"),
        dataclasses.replace(ferry((0, 0, 10, None), deliver=late), protocol="hint"),
        dataclasses.replace(ferry((5, 0, 10, None)), protocol="hint"),
    ]
    matched = calls_of(monkeypatch, pairs, "matches")
    limited = calls_of(monkeypatch, limits, "limit_over")
    worlds = Worlds()
    found = [possible(made.in_memory(worlds)) for made in same]
    assert [one["delivered_of_possible"] for one in found] == [0.0, 0.5, 0.0]
    assert len(matched) == len(limited) == 2


def test_the_graph_of_a_world_is_worked_out_once_for_all_families(monkeypatch: pytest.MonkeyPatch) -> None:
    made = calls_of(monkeypatch, topology, "network")
    worlds = Worlds()
    for protocol in ("gossip", "hint"):
        run = dataclasses.replace(by_hand(), protocol=protocol).in_memory(worlds)
        for family in (topology.graph, topology.widths, topology.paths):
            family(run)
    assert len(made) == 1


@once_per_world("publish")
def events_of(run: Run) -> list[int]:
    """A new list each time that it is computed."""
    found: list[int] = run.column("publish", "event").tolist()
    return found


def world(**changes: Any) -> Made:  # noqa: ANN401  # fields of a run
    facts = tables(publish=[(0, 0, event, "a" if event < 3 else "b", 50) for event in range(5)])
    return dataclasses.replace(Made("one", facts), **changes)


def shared(*two: Run) -> bool:
    first, second = (events_of(run) for run in two)
    assert first == second
    return first is second


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({}, True),
        ({"name": "two", "variant": "hint", "point": 3}, True),
        ({"protocol": "hint"}, True),
        ({"scenario": '{"mac": {"model": "ideal"}, "record": {"frames": true}, "name": "two"}'}, True),
        ({"seed": 2}, False),
        ({"warmup": 1.0}, False),
        ({"simulated": 11.0}, False),
        ({"scenario": '{"radio": {"range": 99}}'}, False),
    ],
    ids=str,
)
def test_runs_share_a_world_if_only_their_protocols_differ(changes: dict[str, Any], same: bool) -> None:
    worlds = Worlds()
    assert shared(world().in_memory(worlds), world(**changes).in_memory(worlds)) is same


def test_rows_of_other_tables_do_not_matter() -> None:
    worlds = Worlds()
    noted = {**world().facts, "note": tables(note=[(0, "duplicate", 2)])["note"]}
    assert shared(world().in_memory(worlds), world(facts=noted).in_memory(worlds))


def test_runs_with_different_rows_do_not_share_a_world() -> None:
    """Even if their scenarios say so: the facts may be those of real nodes."""
    worlds = Worlds()
    first, second = world(), world(facts=tables(publish=[(0, 0, event, "a", 50) for event in range(6)]))
    assert (len(events_of(first.in_memory(worlds))), len(events_of(second.in_memory(worlds)))) == (5, 6)


def test_the_same_rows_are_the_same_however_they_were_read() -> None:
    """In chunks, as part of a larger file, in dictionaries, or column by column."""
    worlds = Worlds()
    rows = world().facts["publish"]
    first = world().in_memory(worlds)
    events_of(first)
    in_chunks = pa.concat_tables([rows.slice(0, 2), rows.slice(2)])
    in_a_file = pa.concat_tables([rows, rows, rows]).combine_chunks().slice(5, 5)
    other_dictionary = pa.concat_tables(
        [in_a_file.set_column(3, "type", pa.array(["b", "a", "a", "a", "b", "b"]).dictionary_encode().slice(1))]
    )
    for named, read in {"chunks": in_chunks, "a file": in_a_file, "a dictionary": other_dictionary}.items():
        assert shared(first, world(facts={"publish": read}).in_memory(worlds)), named
    piece_by_piece = world().in_memory(worlds)
    piece_by_piece.column("publish", "size")
    assert shared(first, piece_by_piece), "piece by piece"


def test_worlds_are_those_of_the_runs_that_share_them() -> None:
    assert not shared(world().in_memory(), world().in_memory())
    assert shared(*[world().in_memory()] * 2)
