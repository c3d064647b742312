"""Writes the facts of one live node to disk, in the tables of every run, as parts that are complete or not there.

The rules this file owns:

* A part of each table (`parts.py`) is written every `interval` seconds and at the end, so that `kill -9` loses only the
  last seconds. The publications of the lost seconds are written after the restart: the store has them
  (`last_published` says from where on).
* Totals (`transmit`, `note`) are written as increments since the last part: rows of the same key add up.
* What a node cannot know is 0: collisions, half duplex, losses on a link, and airtime, which only a radio knows.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from msgspec.structs import astuple

from roamcast.content.event import Scalar
from roamcast.content.rows import event_rows, filter_rows, typed
from roamcast.content.subscription import Publication, Subscription
from roamcast.facts.recorder import Row, batch_of
from roamcast.facts.rows import publish_row, subscribe_row, unsubscribe_row
from roamcast.facts.schema import ACK_ROLE, COUNTERS, tables_of
from roamcast.live import log
from roamcast.live.facts import DEFAULT_LIMIT, INTERVAL, Facts, add
from roamcast.live.introductions import Introduction
from roamcast.live.parts import EPOCH, Parts
from roamcast.protocols.api import Node, Time
from roamcast.protocols.entry import Entry
from roamcast.protocols.facts import Fact
from roamcast.protocols.messages import Message, kind_of
from roamcast.units import SECOND

MAX_ROWS: Final = 50_000
"""Rows held in memory; with more, a part is written earlier."""
PATIENCE: Final = 120
LONGEST_INTERVAL: Final = 300.0
_AMOUNTS: Final = ("messages", *COUNTERS)


class WrittenFacts(Facts):
    """Records what happens on a node and writes it to disk."""

    def __init__(
        self,
        folder: Path,
        node: Node,
        entry: Entry,
        *,
        decisions: bool = False,
        limit: int = DEFAULT_LIMIT,
        epoch: int | None = None,
    ) -> None:
        """With `decisions`, what the broker decides about events is recorded too; `limit` is in bytes, `epoch` in ns
        since 1970."""
        super().__init__()
        self.recording = True
        self.decisions = decisions
        self._folder = folder
        self._node = node
        self._tables = tables_of(entry.facts)
        self._metadata = {} if epoch is None else {EPOCH: str(epoch)}
        kinds: tuple[type[Message], ...] = (*entry.messages, Introduction)
        self._roles = {kind_of(message): message.role for message in kinds} | {"ack": ACK_ROLE}
        self._rows: dict[str, list[Row]] = {table: [] for table in self._tables}
        self._sensed: dict[str, Scalar] = {}
        self._held = 0
        self._totals: dict[tuple[str, int], Counter[str]] = {}  # by kind and cause, since the last part
        self._seconds: dict[tuple[int, str], Counter[str]] = {}
        self._notes: Counter[str] = Counter()  # since the last part
        self._writer = ThreadPoolExecutor(1, "facts")
        self._writing: asyncio.Future[None] | None = None
        pa.array([0])  # Arrow imports pandas with its first array: better now than under traffic
        self._cut = 0  # parts written since the start
        self._parts = Parts(folder, limit)
        newest = next((rows for rows in self._parts.newest("publish") if rows.num_rows), None)
        if newest is not None:
            self.last_published = max(newest["event"].to_pylist())

    @property
    def interval(self) -> float:
        """It doubles every `PATIENCE` parts: an experiment of minutes loses seconds to `kill -9`, and a permanent node
        writes some hundred parts per day."""
        return min(INTERVAL * 2.0 ** (self._cut // PATIENCE), LONGEST_INTERVAL)

    # --- What happens -----------------------------------------------------------------------------------------------

    def subscribed(self, now: Time, subscription: Subscription) -> None:
        self._add("subscribe", *subscribe_row(now, self._node, subscription))
        for row in filter_rows(subscription.id, subscription.filter):
            self._add("filter_constraint", *row)

    def unsubscribed(self, now: Time, number: int) -> None:
        self._add("subscribe", *unsubscribe_row(now, self._node, number))

    def published(self, now: Time, publication: Publication) -> None:
        self._add("publish", *publish_row(now, self._node, publication))
        for row in event_rows(publication.event):
            self._add("event_attribute", *row)

    def delivered(
        self, now: Time, event_id: int, subscriptions: Iterable[int], published: Time | None, hops: int, via: str
    ) -> None:
        for subscription in subscriptions:
            self._add("deliver", now, self._node, event_id, subscription, published, hops, via)

    def record(self, now: Time, fact: Fact) -> None:
        self._add(fact.table, now, self._node, *astuple(fact))

    def sensed(self, now: Time, attributes: Mapping[str, Scalar]) -> None:
        for name, value in attributes.items():
            if self._sensed.get(name) != value:
                self._sensed[name] = value
                self._add("attribute", now, self._node, name, *typed(value))

    def note(self, what: str) -> None:
        super().note(what)
        self._notes[what] += 1

    def count(self, now: Time, kind: str, cause: int = 0, **amounts: int) -> None:
        super().count(now, kind, cause, **amounts)
        add(self._totals, (kind, cause), amounts)
        add(self._seconds, (now // SECOND, kind), amounts)

    def _add(self, table: str, *row: Any) -> None:  # noqa: ANN401  # a row is as its schema says
        self._rows[table].append(row)
        self._held += 1
        if self._held >= MAX_ROWS and self._writing is None:
            self._begin_part()

    # --- Parts ------------------------------------------------------------------------------------------------------

    async def cut(self, now: Time, *, last: bool = False) -> None:
        """Writes a part with everything up to the last full second; the last part includes the current second."""
        self._settle(now // SECOND, last)
        await self._written_out()
        self._begin_part()
        await self._written_out()

    async def close(self, now: Time) -> None:
        await self.cut(now, last=True)
        self._writer.shutdown()

    async def _written_out(self) -> None:
        while self._writing is not None:
            await asyncio.wait([self._writing])
            await asyncio.sleep(0)  # lets the callback that checks the result run

    def _settle(self, second: int, last: bool) -> None:
        """Turns what was counted into rows."""
        for (kind, cause), amounts in sorted(self._totals.items()):
            self._add("transmit", self._node, kind, self._roles[kind], cause, *(amounts[name] for name in _AMOUNTS))
        for fact, count in sorted(self._notes.items()):
            self._add("note", self._node, fact, count)
        self._totals.clear()
        self._notes.clear()
        for key in sorted(self._seconds):
            if last or key[0] < second:
                amounts = self._seconds.pop(key)
                self._add("series", *key, self._roles[key[1]], *(amounts[name] for name in _AMOUNTS))

    def _begin_part(self) -> None:
        rows = {table: rows for table, rows in self._rows.items() if rows}
        if not rows:
            return
        self._rows = {table: [] for table in self._tables}
        self._held = 0
        self._cut += 1
        last = rows["publish"][-1][2] if "publish" in rows else None
        self._writing = asyncio.get_running_loop().run_in_executor(self._writer, self._write, rows)
        self._writing.add_done_callback(lambda writing: self._written(writing, last))

    def _written(self, writing: asyncio.Future[None], last: int | None) -> None:
        self._writing = None
        problem = writing.exception()
        if problem is not None:
            # Facts are for measuring: the node continues without them, and logs it.
            self.note("facts lost")
            log.error("facts could not be written", reason=str(problem), folder=str(self._folder))
        elif last is not None:
            self.on_recorded(last)

    def _write(self, rows: dict[str, list[Row]]) -> None:
        batches = {table: batch_of(held, self._tables[table]) for table, held in rows.items()}
        tables = {table: pa.Table.from_batches([batch]) for table, batch in batches.items()}
        self._parts.write(
            {
                table: rows.replace_schema_metadata({**(rows.schema.metadata or {}), **self._metadata})
                for table, rows in tables.items()
            }
        )
