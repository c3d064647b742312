"""The recorder: takes rows as they happen and passes them on in batches, so that memory does not grow with time."""

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from roamcast.facts.schema import TABLES

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
