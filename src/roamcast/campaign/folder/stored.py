"""The facts of a campaign's runs, wherever the campaign is stored.

The rule this file owns: `facts/packed.parquet` is the index of packed facts (`packs`): for each table and run the file,
its digest, and which rows of which row group. One run can be read alone, and Spark reads the whole file like any other.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from roamcast.errors import RoamcastError
from roamcast.storage import Store

INDEX: Final = "facts/packed.parquet"
INDEX_ARROW: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("table", "run", "file", "digest")),
        *((name, pa.int64()) for name in ("group", "offset", "rows")),
    ]
)


@dataclass(frozen=True)
class FactsPlace:
    """Where the facts of one run and table are."""

    file: str
    digest: str
    """The digest of the file."""
    group: int
    """The row group in which they begin."""
    offset: int
    """The first row in that group."""
    rows: int


class Stored:
    """The facts in a store."""

    def __init__(self, store: Store, index: pa.Table | None = None) -> None:
        """`index` stands in for the one in the store, which is written when all runs are packed."""
        self.store: Final = store
        self.stamp, self._index = _read_index(store) if index is None else ("", index)
        """A hash of the index in the store."""
        self._places: dict[str, Mapping[str, FactsPlace]] = {}

    def place(self, table: str, run: str) -> FactsPlace:
        found = self._of(table).get(run)
        if found is None:
            raise RoamcastError(f"{self.store}/{INDEX}: does not say where the table {table} of run {run} is")
        return found

    def _of(self, table: str) -> Mapping[str, FactsPlace]:
        """The places of a table, built on first use: with 100,000 runs, most processes read only a few tables."""
        if table not in self._places:
            rows = self._index.filter(pc.field("table") == table).drop_columns("table").to_pydict()
            self._places[table] = {run: FactsPlace(*place) for run, *place in zip(*rows.values(), strict=True)}
        return self._places[table]

    def files(self, table: str, runs: Collection[str]) -> list[str]:
        """The files that have these runs, each once, in order."""
        return sorted({self.place(table, run).file for run in runs})

    def others(self, table: str, runs: Collection[str]) -> bool:
        """Whether these files have other runs too."""
        files, wanted = set(self.files(table, runs)), frozenset(runs)
        return any(place.file in files and run not in wanted for run, place in self._of(table).items())

    def index_of(self, runs: Collection[str]) -> bytes:
        """An index of only these runs."""
        return _written(self._index.filter(pc.field("run").isin(sorted(runs))))

    def read(
        self, table: str, run: str, columns: Sequence[str] | None = None, dictionaries: Sequence[str] = ()
    ) -> pa.Table:
        """One run's facts of a table that it has; `dictionaries` are columns to read as dictionaries."""
        chosen, place = None if columns is None else list(columns), self.place(table, run)
        file = _opened(self.store, place.file, place.digest, tuple(dictionaries))
        groups = groups_of(place, file.metadata)
        # One thread: Spark allots the machine's cores.
        return file.read_row_groups(groups, columns=chosen, use_threads=False).slice(place.offset, place.rows)

    def read_all(self, table: str, runs: Collection[str]) -> pa.Table:
        """The facts of these runs, each of which has that table: every file is read once."""
        whole = pa.concat_tables(self.store.read_table(file) for file in self.files(table, runs))
        return whole.filter(pc.field("run").isin(sorted(runs))) if self.others(table, runs) else whole

    def schema(self, table: str, run: str) -> pa.Schema:
        with self.store.open(self.place(table, run).file) as content, pq.ParquetFile(content) as file:
            return file.schema_arrow


def groups_of(place: FactsPlace, metadata: pq.FileMetaData) -> list[int]:
    """The row groups of a packed file that have these rows; too few if the file does not have them all."""
    groups, missing = [], place.offset + place.rows
    for group in range(place.group, metadata.num_row_groups):
        if missing <= 0:
            break
        groups.append(group)
        missing -= metadata.row_group(group).num_rows
    return groups


@lru_cache(maxsize=8)
def stored_in(store: Store, stamp: str) -> Stored:
    """The facts in a store, shared in a process so that an index is read once. `stamp` is that of the current facts."""
    return Stored(store)


@lru_cache(maxsize=32)
def _opened(store: Store, file: str, digest: str, dictionaries: tuple[str, ...]) -> pq.ParquetFile:
    """A file that stays open, so that a packed file's footer is read once for all its runs."""
    plain = pq.ParquetFile(store.open(file))
    there = [name for name in dictionaries if name in plain.schema_arrow.names]
    if not there:
        return plain
    return pq.ParquetFile(store.open(file), metadata=plain.metadata, read_dictionary=there)


def _read_index(store: Store) -> tuple[str, pa.Table]:
    try:
        content = store.read(INDEX)
    except FileNotFoundError:
        raise RoamcastError(f"{store}: {INDEX} is missing: run the campaign's command again") from None
    return hashlib.sha256(content).hexdigest(), pq.read_table(pa.BufferReader(content), schema=INDEX_ARROW)


def index_content(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """The contents of an index file with these rows."""
    return _written(pa.Table.from_pylist(list(rows), INDEX_ARROW))


def _written(index: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    ordered = index.sort_by([("table", "ascending"), ("run", "ascending")])
    pq.write_table(ordered, sink, compression="zstd")
    content: bytes = sink.getvalue().to_pybytes()
    return content
