"""Combines the facts of many nodes into those of one run: the tables that the simulator would have written.

The rules this file owns:

* Nodes count time from an epoch before all of them were ready; the run begins when they are. Subscriptions and trees
  from before the start count as of time 0. Everything else before the start or after the end is left out, except for
  the totals of `transmit` and `note`, which have no time.
* Ids are those of the workload, whatever the nodes called their subscriptions and events.
* Only the publisher's node knows when an event was published: `deliver.published` is filled in from there.
* The series is the network's: the sum of the nodes' own.
* If a killed node lost the fact of an acknowledged publication, it is added from the application that got the
  acknowledgement.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from roamcast.content.rows import event_rows
from roamcast.content.subscription import Publication
from roamcast.facts.recorder import Recorder, Sink
from roamcast.facts.rows import publish_row
from roamcast.facts.schema import LASTING, TABLES
from roamcast.lab.air import TableRow
from roamcast.live.parts import read
from roamcast.units import SECOND

_DESCRIBING: Final = ("filter_constraint", "event_attribute")
"""Tables without a time: the content of filters and events."""
_CLAMPED: Final = ("subscribe", "attribute")
"""Tables of states that continue from before the start, like those of the protocols' facts that are marked so."""
_KEYS: Final = {"transmit": 4, "series": 3, "note": 2}
"""Tables of counts, and how many of their first columns are the key; rows of the same key add up."""

RowByName = dict[str, Any]


@dataclass
class Acknowledged:
    """A publication that a node acknowledged to its application."""

    time: int
    """ns since the start."""
    node: int
    event: int
    """The id that the node gave it."""
    publication: Publication
    """As in the workload."""


@dataclass
class Names:
    """Maps the nodes' ids to the workload's."""

    subscriptions: dict[tuple[int, int], int] = field(default_factory=dict)
    """By node and the node's id."""
    acknowledged: list[Acknowledged] = field(default_factory=list)


def gather(
    folders: Mapping[int, Sequence[Path]],
    names: Names,
    shift: int,
    end: int,
    air: Iterable[TableRow],
    sink: Sink,
    tables: Mapping[str, pa.Schema] = TABLES,
) -> None:
    """`folders` has each node's folders of facts, one per start of the node; `shift` is the run's start in the nodes'
    time; `tables` are those of a run of the protocol."""
    gathering = _Gathering(names, shift, end, tables)
    for node in sorted(folders):
        for folder in filter(Path.is_dir, folders[node]):  # a node may have ended before it could make one
            for table, part in read(folder):
                for row in part.to_pylist():
                    gathering.add(node, table, row, lasting=LASTING in (part.schema.metadata or {}))
    gathering.add_lost()
    recorder = Recorder(sink, tables)
    for table, values in chain(gathering.facts(), air):
        recorder.add(table, *values)
    recorder.close()


class _Gathering:
    def __init__(self, names: Names, shift: int, end: int, tables: Mapping[str, pa.Schema]) -> None:
        self._names = names
        self._shift = shift
        self._end = end
        self._events = {one.event: one.publication.event.id for one in names.acknowledged}
        self._published: dict[int, int] = {}
        self._tables = tables
        self._timed: dict[str, list[RowByName]] = {
            table: [] for table, schema in tables.items() if "time" in schema.names
        }
        self._plain: dict[str, list[RowByName]] = {table: [] for table in _DESCRIBING}
        self._counts: dict[str, Counter[tuple[Any, ...]]] = {}

    def add(self, node: int, table: str, row: RowByName, *, lasting: bool = False) -> None:
        if "subscription" in row:
            row["subscription"] = self._names.subscriptions.get((node, row["subscription"]), row["subscription"])
        if "event" in row:
            row["event"] = self._events.get(row["event"], row["event"])
        if table in self._timed:
            self._add_timed(table, row, lasting)
        elif table in self._plain:
            self._plain[table].append(row)
        elif table in _KEYS:
            self._count(table, row)

    def _add_timed(self, table: str, row: RowByName, lasting: bool) -> None:
        row["time"] -= self._shift
        if lasting or table in _CLAMPED:
            row["time"] = max(row["time"], 0)
        if not 0 <= row["time"] < self._end:
            return
        if table == "publish":
            if row["event"] in self._published:  # recorded before a crash, and again after it
                return
            self._published[row["event"]] = row["time"]
        self._timed[table].append(row)

    def _count(self, table: str, row: RowByName) -> None:
        if table == "series":
            row["second"] -= self._shift // SECOND
            if not 0 <= row["second"] * SECOND < self._end:
                return
        columns = TABLES[table].names
        key = tuple(row[name] for name in columns[: _KEYS[table]])
        totals = self._counts.setdefault(table, Counter())
        for name in columns[_KEYS[table] :]:
            totals[*key, name] += row[name] or 0

    def add_lost(self) -> None:
        for one in self._names.acknowledged:
            event = one.publication.event
            if event.id not in self._published and 0 <= one.time < self._end:
                self._published[event.id] = one.time
                row = publish_row(one.time, one.node, one.publication)
                self._timed["publish"].append(dict(zip(TABLES["publish"].names, row, strict=True)))
        described = {row["event"] for row in self._plain["event_attribute"]}
        for one in self._names.acknowledged:
            if one.publication.event.id not in described:
                names, rows = TABLES["event_attribute"].names, event_rows(one.publication.event)
                self._plain["event_attribute"].extend(dict(zip(names, row, strict=True)) for row in rows)

    def facts(self) -> Iterator[TableRow]:
        for table, rows in self._timed.items():
            for row in sorted(rows, key=lambda row: row["time"]):
                if table == "deliver":
                    # An event that was published before the start, or by no application, counts as published when it
                    # was delivered.
                    row["published"] = min(self._published.get(row["event"], row["time"]), row["time"])
                yield table, tuple(row[name] for name in self._tables[table].names)
        seen: set[tuple[Any, ...]] = set()
        for table, rows in self._plain.items():
            for row in rows:
                fact = table, tuple(row[name] for name in TABLES[table].names)
                # A restarted node records its subscriptions again.
                if table != "filter_constraint" or fact not in seen:
                    seen.add(fact)
                    yield fact
        for table, totals in self._counts.items():
            keys = sorted({key[:-1] for key in totals})
            counted = TABLES[table].names[_KEYS[table] :]
            yield from ((table, (*key, *(totals[*key, name] for name in counted))) for key in keys)
