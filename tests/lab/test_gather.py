"""The facts of two nodes, written by hand, and the tables of one run that must come of them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from facts.rows import complete
from roamcast.content.event import Event
from roamcast.content.subscription import Publication
from roamcast.facts.schema import TABLES
from roamcast.facts.sinks import MemorySink
from roamcast.lab.gather import Acknowledged, Names, gather
from roamcast.units import SECOND

START = 10 * SECOND
"""Of the run, in the nodes' time."""
END = 5 * SECOND


def write(folder: Path, table: str, *rows: tuple[Any, ...], part: int = 0) -> None:
    folder.mkdir(exist_ok=True)
    columns = [dict(zip(TABLES[table].names, complete(table, row), strict=True)) for row in rows]
    pq.write_table(pa.Table.from_pylist(columns, TABLES[table]), folder / f"{table}-{part:06}.parquet")


def gathered(folders: dict[int, list[Path]], names: Names | None = None) -> MemorySink:
    sink = MemorySink()
    gather(folders, names or Names(), START, END, [("link", (0, 0, 1, 0.0))], sink)
    return sink


def rows(sink: MemorySink, table: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in sink.table(table).to_pylist()]


def counts(packets: int, receptions: int = 0) -> tuple[int, ...]:
    return (packets, 8 * packets, 0, receptions, 0, 0, 0, 0, 0)


def test_times_are_of_the_run_and_what_is_outside_of_it_is_left_out(tmp_path: Path) -> None:
    write(
        tmp_path / "0",
        "publish",
        (START - 1, 0, 1, "t", 20),
        (START, 0, 2, "t", 20),
        (START + END - 1, 0, 3, "t", 20),
        (START + END, 0, 4, "t", 20),
    )
    write(tmp_path / "0", "subscribe", (START - 7, 0, 1, True, "true"), (START + 5, 0, 1, False, None))
    sink = gathered({0: [tmp_path / "0"]})
    assert [(row[0], row[2]) for row in rows(sink, "publish")] == [(0, 2), (END - 1, 3)]
    assert rows(sink, "subscribe") == [
        complete("subscribe", (0, 0, 1, True, "true")),
        complete("subscribe", (5, 0, 1, False, None)),
    ]
    assert rows(sink, "link") == [(0, 0, 1, 0.0)]


def test_rows_are_in_the_order_of_time_whoever_wrote_them(tmp_path: Path) -> None:
    write(tmp_path / "0", "publish", (START + 30, 0, 1, "t", 20))
    write(tmp_path / "1", "publish", (START + 10, 1, 2, "t", 20))
    write(tmp_path / "1", "publish", (START + 40, 1, 3, "t", 20), part=1)
    sink = gathered({0: [tmp_path / "0"], 1: [tmp_path / "1"]})
    assert [row[:2] for row in rows(sink, "publish")] == [(10, 1), (30, 0), (40, 1)]


def test_when_an_event_was_published_is_filled_in_from_where_it_was(tmp_path: Path) -> None:
    write(tmp_path / "0", "publish", (START + 100, 0, 7, "t", 20))
    write(
        tmp_path / "1",
        "deliver",
        (START + 350, 1, 7, 1, None, 2, "data"),
        (START + 400, 1, 8, 1, None, 1, "data"),  # nobody knows of its publication
        (START + 90, 1, 7, 2, None, 2, "data"),  # a clock that is behind: no negative delay
    )
    sink = gathered({0: [tmp_path / "0"], 1: [tmp_path / "1"]})
    assert [(row[0], row[4]) for row in rows(sink, "deliver")] == [(90, 90), (350, 100), (400, 400)]


def test_ids_are_the_workloads(tmp_path: Path) -> None:
    event = Event.of("t", {"price": 3}, id=70)
    names = Names({(0, 1): 11, (1, 1): 12}, [Acknowledged(100, 0, 7, Publication(event))])
    write(tmp_path / "0", "publish", (START + 100, 0, 7, "t", 20))
    write(
        tmp_path / "0",
        "event_attribute",
        (7, "", "str", None, None, "t", None),
        (7, "price", "int", 3, None, None, None),
    )
    for node in (0, 1):
        folder = tmp_path / str(node)
        write(folder, "subscribe", (START, node, 1, True, "true"))
        write(folder, "filter_constraint", (1, 0, 0, 0, "", "exists", "any", None, None, None, None))
        write(folder, "deliver", (START + 200, node, 7, 1, None, 1, "data"))
    sink = gathered({0: [tmp_path / "0"], 1: [tmp_path / "1"]}, names)
    assert [row[2] for row in rows(sink, "publish")] == [70]
    assert [row[0] for row in rows(sink, "event_attribute")] == [70, 70]
    assert [row[2] for row in rows(sink, "subscribe")] == [11, 12]
    assert [row[0] for row in rows(sink, "filter_constraint")] == [11, 12]
    assert [(row[1], row[2], row[3], row[4]) for row in rows(sink, "deliver")] == [(0, 70, 11, 100), (1, 70, 12, 100)]


def test_the_nodes_seconds_add_up_to_the_networks(tmp_path: Path) -> None:
    write(tmp_path / "0", "series", (9, "data", *counts(100)), (10, "data", *counts(1)), (12, "data", *counts(2)))
    write(tmp_path / "1", "series", (10, "data", *counts(4, 1)), (10, "ack", *counts(8)), (15, "data", *counts(100)))
    sink = gathered({0: [tmp_path / "0"], 1: [tmp_path / "1"]})
    assert rows(sink, "series") == [
        (0, "ack", "ack", 0, *counts(8)),
        (0, "data", "data", 0, *counts(5, 1)),
        (2, "data", "data", 0, *counts(2)),
    ]


def test_totals_of_several_parts_and_lives_add_up(tmp_path: Path) -> None:
    write(tmp_path / "a", "transmit", (0, "data", 0, *counts(1)), (0, "data", 5, *counts(2)))
    write(tmp_path / "a", "transmit", (0, "data", 0, *counts(4)), part=1)
    write(tmp_path / "b", "transmit", (0, "data", 0, *counts(8)))
    write(tmp_path / "a", "note", (0, "duplicate", 3))
    write(tmp_path / "b", "note", (0, "duplicate", 4))
    sink = gathered({0: [tmp_path / "a", tmp_path / "b"]})
    assert rows(sink, "transmit") == [
        (0, "data", "data", 0, 0, *counts(13)),
        (0, "data", "data", 5, 0, *counts(2)),
    ]
    assert rows(sink, "note") == [(0, "duplicate", 7)]


def test_an_acknowledged_publication_that_no_fact_tells_of_is_put_in(tmp_path: Path) -> None:
    lost = Event.of("t", {"price": 3}, id=71)
    write(tmp_path / "1", "deliver", (START + 500, 1, 8, 1, None, 1, "data"))
    sink = gathered(
        {0: [tmp_path / "none"], 1: [tmp_path / "1"]}, Names({}, [Acknowledged(300, 0, 8, Publication(lost))])
    )
    assert rows(sink, "publish") == [complete("publish", (300, 0, 71, "t", lost.size))]
    assert rows(sink, "event_attribute") == [
        (71, "", "str", None, None, "t", None),
        (71, "price", "int", 3, None, None, None),
    ]
    assert [(row[2], row[4]) for row in rows(sink, "deliver")] == [(71, 300)]


def test_what_a_node_that_came_back_says_again_counts_once(tmp_path: Path) -> None:
    asked = (1, 0, 1, 0, "price", "<", "int", 5, None, None, None)
    for life in ("a", "b"):
        write(tmp_path / life, "publish", (START + 100, 0, 7, "t", 20))
        write(tmp_path / life, "filter_constraint", asked)
    sink = gathered({0: [tmp_path / "a", tmp_path / "b"]})
    assert len(rows(sink, "publish")) == 1
    assert rows(sink, "filter_constraint") == [asked]


def test_a_part_that_is_not_complete_is_not_read(tmp_path: Path) -> None:
    write(tmp_path / "0", "publish", (START, 0, 1, "t", 20))
    (tmp_path / "0" / ".publish-000001.parquet.99.partial").write_bytes(b"PAR1 and then the power went")
    assert len(rows(gathered({0: [tmp_path / "0"]}), "publish")) == 1
