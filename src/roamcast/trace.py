"""The vocabulary of facts: what every world records, simulated or live, and the pipeline reads.

A run records what happened, never what it means. Times are int64 nanoseconds since the run's start. Facts are streamed
out in batches, so that memory does not grow with time. `docs/facts.md` explains each column.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind) for name, kind in columns.items()])


_I, _F, _S, _B = pa.int64(), pa.float64(), pa.string(), pa.bool_()

_TYPED_VALUE: Final = {"kind": _S, "integer": _I, "real": _F, "text": _S, "flag": _B}
_COUNTED: Final = dict.fromkeys(
    ("packets", "bits", "airtime", "receptions", "collision", "half_duplex", "link", "queue_full", "unreachable"), _I
)

TABLES: Final[dict[str, pa.Schema]] = {
    # Who asked for what, and when it was over (`active` false)
    "subscribe": _schema(time=_I, node=_I, subscription=_I, active=_B, filter=_S),
    # A subscription's filter as rows, see content/rows.py
    "asked": _schema(
        subscription=_I, conjunction=_I, needed=_I, constraint=_I, attribute=_S, operator=_S, **_TYPED_VALUE
    ),
    "publish": _schema(time=_I, node=_I, event=_I, type=_S, size=_I),
    # An event's attributes as rows
    "said": _schema(event=_I, attribute=_S, **_TYPED_VALUE),
    "deliver": _schema(time=_I, node=_I, event=_I, subscription=_I, published=_I, hops=_I, via=_S),
    # Totals by node, kind and cause (0: none); rows of the same key add up
    "transmit": _schema(node=_I, kind=_S, cause=_I, **_COUNTED),
    # The network by second and kind
    "series": _schema(second=_I, kind=_S, **_COUNTED),
    # What brokers noted, by node; rows of the same key add up
    "note": _schema(node=_I, fact=_S, count=_I),
    # A node's place in a tree changed: at a root the parent is null, and so is a leader that is not known
    "tree": _schema(time=_I, node=_I, change=_S, cause=_I, parent=_I, children=pa.list_(_I), leader=_I),
    # One stretch of straight movement
    "leg": _schema(node=_I, start=_I, end=_I, x0=_F, y0=_F, x1=_F, y1=_F, indoor=_B),
    # A link came (with its loss) or went (loss null)
    "link": _schema(time=_I, sender=_I, receiver=_I, loss=_F),
    # On request: every transmission, and what became of it at each node it was meant for
    "frame": _schema(frame=_I, start=_I, end=_I, sender=_I, to=_I, kind=_S, cause=_I, packets=_I, size=_I),
    "reception": _schema(frame=_I, node=_I, outcome=_S),
}

BATCH: Final = 50_000
"""Rows of a table that are held before they are written."""

Sink = Callable[[str, pa.RecordBatch], None]


class Recorder:
    """Takes rows, as tuples in the order of the columns, and passes them on in batches."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in TABLES}

    def add(self, table: str, *row: Any) -> None:  # noqa: ANN401  # a row is as its schema says
        rows = self._rows[table]
        rows.append(row)
        if len(rows) >= BATCH:
            self._flush(table)

    def close(self) -> None:
        for table in TABLES:
            self._flush(table)

    def _flush(self, table: str) -> None:
        rows, schema = self._rows[table], TABLES[table]
        if rows:
            columns = zip(*rows, strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
            self._sink(table, pa.RecordBatch.from_arrays(arrays, schema=schema))
            rows.clear()


class MemorySink:
    """Keeps the batches, for tests and notebooks."""

    def __init__(self) -> None:
        self._batches: dict[str, list[pa.RecordBatch]] = {table: [] for table in TABLES}

    def __call__(self, table: str, batch: pa.RecordBatch) -> None:
        self._batches[table].append(batch)

    def table(self, name: str) -> pa.Table:
        return pa.Table.from_batches(self._batches[name], TABLES[name])

    def tables(self) -> dict[str, pa.Table]:
        return {name: self.table(name) for name in TABLES}


class ParquetSink:
    """Writes each table to `folder/table.parquet`; a table with no rows gets no file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writers: dict[str, pq.ParquetWriter] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, table: str, batch: pa.RecordBatch) -> None:
        if table not in self._writers:
            self._writers[table] = pq.ParquetWriter(
                self._folder / f"{table}.parquet", TABLES[table], compression="zstd"
            )
        self._writers[table].write_batch(batch)

    def close(self) -> None:
        """Finishes every file, or raises the first problem after having tried all."""
        problems = []
        for writer in self._writers.values():
            try:
                writer.close()
            except OSError as problem:
                writer.is_open = False  # or its destructor tries again, and complains aloud
                problems.append(problem)
        if problems:
            raise problems[0]
