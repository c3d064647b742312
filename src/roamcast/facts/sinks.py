"""Where batches of facts go: to memory, or to Parquet files."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from roamcast.facts.schema import TABLES


class MemorySink:
    """Keeps the batches, for tests and notebooks."""

    def __init__(self) -> None:
        self._batches: dict[str, list[pa.RecordBatch]] = {}

    def __call__(self, table: str, batch: pa.RecordBatch) -> None:
        self._batches.setdefault(table, []).append(batch)

    def table(self, name: str) -> pa.Table:
        batches = self._batches.get(name)
        return pa.Table.from_batches(batches) if batches else TABLES[name].empty_table()

    def tables(self) -> dict[str, pa.Table]:
        """The tables that every run has, empty or not, and all others that were recorded."""
        return {name: self.table(name) for name in dict.fromkeys([*TABLES, *self._batches])}


class ParquetSink:
    """Writes each table to `folder/table.parquet`; a table with no rows gets no file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writers: dict[str, pq.ParquetWriter] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, table: str, batch: pa.RecordBatch) -> None:
        if table not in self._writers:
            self._writers[table] = pq.ParquetWriter(self._folder / f"{table}.parquet", batch.schema, compression="zstd")
        self._writers[table].write_batch(batch)

    def close(self) -> None:
        """Closes every file, then raises the first problem if there was one."""
        problems = []
        for writer in self._writers.values():
            try:
                writer.close()
            except OSError as problem:
                writer.is_open = False  # otherwise its destructor tries again and prints an error
                problems.append(problem)
        if problems:
            raise problems[0]
