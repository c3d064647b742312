"""The facts of a campaign's runs, wherever they are: packed, many runs per file; or one file per run and table.

The rules this file owns:

* `facts/packed.parquet` is the index of packed facts (`packs`): for each table and run the file, its digest, and which
  rows of which row group. One run can be read alone, and Spark reads the whole file like any other.
* Facts that are not in the index have a file of their own, `facts/<table>/<run>.parquet`.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from roamcast.campaign.folder.layout import facts_name
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
    digest: str = ""
    """The digest of the file, if it is packed."""
    group: int | None = None
    """The row group in which they begin; none: they are the whole file."""
    offset: int = 0
    """The first row in that group."""
    rows: int = 0


class Stored:
    """The facts in a store, whether in files per run or packed."""

    def __init__(self, store: Store, index: pa.Table | None = None) -> None:
        """`index` stands in for the one in the store, which is written when all runs are packed."""
        self.store: Final = store
        self.stamp, self._index = _read_index(store) if index is None else ("", index)
        """A hash of the index; empty: facts are not packed."""
        self._places: dict[str, Mapping[str, FactsPlace]] = {}

    @property
    def packed(self) -> bool:
        return bool(self.stamp)

    def place(self, table: str, run: str) -> FactsPlace:
        return self._of(table).get(run) or FactsPlace(facts_name(table, run))

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
        # One thread: Spark allots the machine's cores.
        if place.group is None:
            return self.store.read_table(
                place.file, columns=chosen, use_threads=False, read_dictionary=list(dictionaries)
            )
        file = _opened(self.store, place.file, place.digest, tuple(dictionaries))
        groups = groups_of(place, file.metadata)
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
    assert place.group is not None
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
        return "", INDEX_ARROW.empty_table()
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
