"""The recorder: takes rows as they happen and passes them on in batches, so that memory does not grow with time."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from roamcast.facts.schema import TABLES

BATCH: Final = 50_000
"""Rows of a table held in memory before they are written."""

Sink = Callable[[str, pa.RecordBatch], None]
Row = tuple[Any, ...]


class Recorder:
    """Takes rows, as tuples in the order of the columns, and passes them on in batches."""

    def __init__(self, sink: Sink, tables: Mapping[str, pa.Schema] = TABLES) -> None:
        self._sink = sink
        self._tables = tables
        self._rows: dict[str, list[Row]] = {table: [] for table in tables}

    def add(self, table: str, *row: Any) -> None:  # noqa: ANN401  # a row is as its schema says
        rows = self._rows[table]
        rows.append(row)
        if len(rows) >= BATCH:
            self._flush(table)

    def add_columns(self, table: str, *columns: Sequence[Any]) -> None:
        """Takes many rows at once, as columns, and passes them on at once."""
        self._flush(table)
        self._sink(table, _batch(columns, self._tables[table]))

    def close(self) -> None:
        for table in self._tables:
            self._flush(table)

    def _flush(self, table: str) -> None:
        if self._rows[table]:
            self._sink(table, batch_of(self._rows[table], self._tables[table]))
            self._rows[table].clear()


def batch_of(rows: Sequence[Row], schema: pa.Schema) -> pa.RecordBatch:
    """Rows as a batch."""
    return _batch(zip(*rows, strict=True) if rows else [()] * len(schema), schema)


def _batch(columns: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
