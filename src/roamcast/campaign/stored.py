"""The facts of a campaign's runs in their files: one for each run and table, or packed, many runs to a file.

A campaign is simulated into a file for each run and table, which is what makes each run count once. A copy may be
*packed* (`roamcast publish --pack`): a hundred thousand runs are then a few hundred files. The rules this file owns:

* A packed file has the runs one after the other, each in a row group of its own, so that one run can be read alone and
  Spark reads the whole file like any other.
* `facts/packed.parquet` tells for each table and run the file, the row group, and the digest of the file.
* A packed copy is read, never simulated into.
"""

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from roamcast.campaign.folder import facts_name
from roamcast.storage import Store

INDEX: Final = "facts/packed.parquet"
RUNS_PER_FILE: Final = 500
_INDEX: Final = pa.schema(
    [*((name, pa.string()) for name in ("table", "run", "file", "digest")), ("group", pa.int32())]
)


@dataclass(frozen=True)
class Place:
    """Where the facts of one run and table are."""

    file: str
    group: int | None = None
    """The row group; none: the whole file."""
    digest: str = ""
    """Of the file, if it is a packed one."""


class Stored:
    """The facts in a store. Makes no difference between files of runs and packed ones."""

    def __init__(self, store: Store) -> None:
        self.store: Final = store
        self.stamp, self._packed = _index(store)
        """A hash of the index; empty: facts are not packed."""

    @property
    def packed(self) -> bool:
        return bool(self.stamp)

    def place(self, table: str, run: str) -> Place:
        return self._packed.get((table, run)) or Place(facts_name(table, run))

    def files(self, table: str, runs: Collection[str]) -> list[str]:
        """The files that have these runs, each once, in order."""
        return sorted({self.place(table, run).file for run in runs})

    def others(self, table: str, runs: Collection[str]) -> bool:
        """Whether these files have other runs too."""
        files, wanted = set(self.files(table, runs)), frozenset(runs)
        packed = ((run, place.file) for (name, run), place in self._packed.items() if name == table)
        return any(file in files and run not in wanted for run, file in packed)

    def read(
        self, table: str, run: str, columns: Sequence[str] | None = None, dictionaries: Sequence[str] = ()
    ) -> pa.Table:
        """The facts of one run, of a table that it has; `dictionaries` are columns to be read as such."""
        chosen, place = None if columns is None else list(columns), self.place(table, run)
        # One thread: the machine's cores are Spark's to give.
        if place.group is None:
            return self.store.read_table(
                place.file, columns=chosen, use_threads=False, read_dictionary=list(dictionaries)
            )
        file = _opened(self.store, place.file, place.digest, tuple(dictionaries))
        return file.read_row_group(place.group, columns=chosen, use_threads=False)

    def schema(self, table: str, run: str) -> pa.Schema:
        with self.store.open(self.place(table, run).file) as content, pq.ParquetFile(content) as file:
            return file.schema_arrow


@lru_cache(maxsize=8)
def stored_in(store: Store, stamp: str) -> Stored:
    """The same for all who ask, in one process: an index is read once. `stamp` is that of the facts as they are now."""
    return Stored(store)


@lru_cache(maxsize=8)
def _opened(store: Store, file: str, digest: str, dictionaries: tuple[str, ...]) -> pq.ParquetFile:
    """Kept open: what stands at the end of a packed file is read once for all its runs."""
    plain = pq.ParquetFile(store.open(file))
    there = [name for name in dictionaries if name in plain.schema_arrow.names]
    if not there:
        return plain
    return pq.ParquetFile(store.open(file), metadata=plain.metadata, read_dictionary=there)


def _index(store: Store) -> tuple[str, dict[tuple[str, str], Place]]:
    try:
        content = store.read(INDEX)
    except FileNotFoundError:
        return "", {}
    rows: list[dict[str, Any]] = pq.read_table(pa.BufferReader(content)).to_pylist()
    places = {(row["table"], row["run"]): Place(row["file"], row["group"], row["digest"]) for row in rows}
    return hashlib.sha256(content).hexdigest(), places


def pack(source: Stored, tables: dict[str, list[str]], target: Store) -> int:
    """Writes packed files of the runs of each table, and their index last; gives the number of files."""
    index = [row for table, runs in tables.items() for row in _pack_table(source, table, sorted(runs), target)]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(index, _INDEX), sink, compression="zstd")
    target.write(INDEX, sink.getvalue().to_pybytes())
    return len({row["file"] for row in index}) + 1


def _pack_table(source: Stored, table: str, runs: list[str], target: Store) -> Iterator[dict[str, Any]]:
    for first in range(0, len(runs), RUNS_PER_FILE):
        some = runs[first : first + RUNS_PER_FILE]
        name = f"facts/{table}/packed-{first // RUNS_PER_FILE:05}.parquet"
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, source.schema(table, some[0]), compression="zstd") as writer:
            for run in some:
                rows = source.read(table, run)
                writer.write_table(rows, row_group_size=max(1, rows.num_rows))
        content = sink.getvalue().to_pybytes()
        target.write(name, content)
        digest = hashlib.sha256(content).hexdigest()
        for group, run in enumerate(some):
            yield {"table": table, "run": run, "file": name, "group": group, "digest": digest}
