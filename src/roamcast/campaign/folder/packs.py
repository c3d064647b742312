"""Packs: the facts of hundreds of runs in one Parquet file per table.

Tasks write one file per run (`run_file`); when all runs of a campaign are done, the successful ones are packed. The
rules this file owns:

* A pack is named after its runs, and so are its files, `facts/<table>/<pack>.parquet`. Two attempts at one pack write
  the same bytes to the same places.
* `done/<pack>.json` is written last, and has each run's record and where its facts are. A pack counts when that file
  and all files that it lists exist; only then are the files of its runs removed.
* Small runs share a row group, so that a thousand tiny ones cost next to nothing; a large one has several of its own.
  The rows of a run are consecutive, in the order in which they were recorded.
* A run is in one pack. If a late task of a killed campaign makes a pack after the next start has made others, the first
  by name counts, and runs that only the other has are run again.
* A pack is never changed: a campaign that grows gets further ones. Runs that failed are not packed: they may be tried
  again.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from roamcast.campaign.folder.layout import done_file
from roamcast.campaign.folder.run_file import Damaged, Record, read_blocks, read_record
from roamcast.campaign.folder.schemas import with_run
from roamcast.campaign.folder.stored import INDEX, INDEX_ARROW, Stored, index_content
from roamcast.files import write_file
from roamcast.storage import Store

RUNS_PER_PACK: Final = 500
BYTES_PER_PACK: Final = 1 << 28
"""Total size of the run files that become one pack: packing should take minutes at most."""
_SHARED: Final = 4096
"""Runs share a row group up to this many rows. Reading one of them reads them all."""
_LARGEST: Final = 100_000
"""Most rows in a row group."""
_PREFIX: Final = "pack-"


class PackedTable:
    """One packed file while it is written."""

    def __init__(self, sink: Any, schema: pa.Schema) -> None:  # noqa: ANN401  # whatever pyarrow writes to
        self._writer = pq.ParquetWriter(sink, schema, compression="zstd")
        self._pending: list[pa.RecordBatch] = []
        self._rows = 0
        self._group = 0

    def begin(self, rows: int) -> tuple[int, int]:
        """Where a run of `rows` rows will begin: the row group, and the row in it."""
        if self._rows + rows > _SHARED:
            self._flush()
        return self._group, self._rows

    def add(self, batch: pa.RecordBatch) -> None:
        self._pending.append(batch)
        self._rows += batch.num_rows
        if self._rows >= _LARGEST:
            self._flush()

    def close(self) -> None:
        try:
            self._flush()
            self._writer.close()
        finally:
            self._writer.is_open = False  # or its destructor tries again, and prints an error

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(pa.Table.from_batches(self._pending), row_group_size=self._rows)
            self._group += 1
            self._pending, self._rows = [], 0


# --- From files of runs ---------------------------------------------------------------------------------------------


def pack_name(runs: Sequence[str]) -> str:
    return _PREFIX + hashlib.sha256("\n".join(runs).encode()).hexdigest()[:16]


def in_packs(sizes: Mapping[str, int]) -> list[list[str]]:
    """Divides the runs into packs by the sizes of their files; in order of name, so that the result is reproducible."""
    packs: list[list[str]] = []
    size = 0
    for run in sorted(sizes):
        if not packs or len(packs[-1]) == RUNS_PER_PACK or size + sizes[run] > BYTES_PER_PACK:
            packs.append([])
            size = 0
        packs[-1].append(run)
        size += sizes[run]
    return packs


def pack(out: Path, runs: Sequence[str], attempt: Path) -> None:
    """Makes a pack of these runs, unless it exists; `attempt` is a new folder for this attempt."""
    name = pack_name(runs)
    if _read(out, out / "done" / f"{name}.json") is None:
        attempt.mkdir()
        draft = _Draft(name, attempt)
        try:
            for run in runs:
                draft.add(run, done_file(out, run))
        except Damaged:
            done_file(out, run).unlink(missing_ok=True)  # the run is done again
            raise
        except FileNotFoundError:
            # Another attempt was faster, and has removed the files it packed.
            if _read(out, out / "done" / f"{name}.json") is None:
                raise
            return
        finally:
            draft.close()
        draft.commit(out)
    for run in runs:
        done_file(out, run).unlink(missing_ok=True)


class _Draft:
    """A pack in the making, in the folder of its attempt."""

    def __init__(self, name: str, attempt: Path) -> None:
        self._name = name
        self._attempt = attempt
        self._tables: dict[tuple[str, pa.Schema], tuple[str, PackedTable]] = {}
        self._runs: dict[str, Record] = {}
        self._places: dict[str, dict[str, tuple[str, int, int, int]]] = {}

    def add(self, run: str, path: Path) -> None:
        record = read_record(path)
        if record is None:
            raise FileNotFoundError(path)
        begun = None
        for table, batch in read_blocks(path, record):
            rows = record["row"]["rows"][table]
            file, packed = self._table(table, with_run(batch.schema))
            if begun != table:
                begun = table
                self._places.setdefault(table, {})[run] = (file, *packed.begin(rows), rows)
            columns = [pa.repeat(run, batch.num_rows), *batch.columns]
            packed.add(pa.RecordBatch.from_arrays(columns, schema=with_run(batch.schema)))
        self._runs[run] = {key: value for key, value in record.items() if key != "blocks"}

    def _table(self, table: str, schema: pa.Schema) -> tuple[str, PackedTable]:
        """The file for a table. Two protocols may use one name for different tables: each gets a file."""
        if (table, schema) not in self._tables:
            others = sum(name == table for name, _ in self._tables)
            file = f"facts/{table}/{self._name}{f'-{others + 1}' if others else ''}.parquet"
            self._tables[table, schema] = file, PackedTable(self._attempt / _flat(file), schema)
        return self._tables[table, schema]

    def close(self) -> None:
        for _, packed in self._tables.values():
            packed.close()

    def commit(self, out: Path) -> None:
        files = {}
        for file, _ in self._tables.values():
            draft = self._attempt / _flat(file)
            with draft.open("rb") as content:
                files[file] = {
                    "size": draft.stat().st_size,
                    "digest": hashlib.file_digest(content, "sha256").hexdigest(),
                }
        for file in files:
            (out / file).parent.mkdir(parents=True, exist_ok=True)
            (self._attempt / _flat(file)).replace(out / file)
        last = self._attempt / "pack.json"
        last.write_text(json.dumps({"runs": self._runs, "files": files, "places": self._places}), encoding="utf-8")
        last.replace(out / "done" / f"{self._name}.json")


def _flat(file: str) -> str:
    return file.replace("/", "-")


# --- What is packed -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pack:
    """The contents of `done/<pack>.json`."""

    runs: Mapping[str, Record]
    files: Mapping[str, Mapping[str, Any]]
    """Size and digest, by name."""
    places: Mapping[str, Mapping[str, tuple[str, int, int, int]]]
    """By table and run: file, row group, first row in it, number of rows."""

    def index(self) -> Iterator[dict[str, Any]]:
        for table, places in self.places.items():
            for run, (file, group, offset, rows) in places.items():
                digest = self.files[file]["digest"]
                yield dict(zip(INDEX_ARROW.names, (table, run, file, digest, group, offset, rows), strict=True))


def read_packs(out: Path) -> dict[str, Pack]:
    """The packs in a campaign's folder, by name."""
    found: dict[str, Pack] = {}
    runs: set[str] = set()
    for path in sorted((out / "done").glob(f"{_PREFIX}*.json")):
        one = _read(out, path)
        if one is not None and runs.isdisjoint(one.runs):
            found[path.stem] = one
            runs |= one.runs.keys()
    return found


def _read(out: Path, path: Path) -> Pack | None:
    """Reads a pack; None if it is damaged. After a power failure a file may exist without its contents: such a pack
    does not count, and its runs are run again."""
    try:
        known = json.loads(path.read_bytes())
        whole = all((out / name).stat().st_size == file["size"] for name, file in known["files"].items())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return Pack(**known) if whole else None


def write_index(out: Path, packs: Iterable[Pack]) -> None:
    """Writes the index, from which readers learn where each run's facts are (`stored`)."""
    write_file(out / INDEX, index_content(row for one in packs for row in one.index()))


# --- From a campaign's facts, in a copy -----------------------------------------------------------------------------


def repack(source: Stored, tables: dict[str, list[str]], target: Store) -> int:
    """Writes full packs of the runs of each table, and their index last; returns the number of files."""
    index = [row for table, runs in tables.items() for row in _repack_table(source, table, sorted(runs), target)]
    target.write(INDEX, index_content(index))
    return len({row["file"] for row in index}) + 1


def _repack_table(source: Stored, table: str, runs: list[str], target: Store) -> Iterator[dict[str, Any]]:
    for first in range(0, len(runs), RUNS_PER_PACK):
        some = runs[first : first + RUNS_PER_PACK]
        name = f"facts/{table}/packed-{first // RUNS_PER_PACK:05}.parquet"
        sink, places = pa.BufferOutputStream(), []
        with contextlib.closing(PackedTable(sink, source.schema(table, some[0]))) as packed:
            for run in some:
                rows = source.read(table, run)
                places.append((run, *packed.begin(rows.num_rows), rows.num_rows))
                for batch in rows.to_batches():
                    packed.add(batch)
        content = sink.getvalue().to_pybytes()
        target.write(name, content)
        digest = hashlib.sha256(content).hexdigest()
        for run, *place in places:
            yield dict(zip(INDEX_ARROW.names, (table, run, name, digest, *place), strict=True))
