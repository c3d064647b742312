"""A folder of parts: the facts of one node on disk, in few files of bounded size, safe against crashes.

The rules this file owns:

* A part is `<table>-<number>.parquet`. It is written to a temporary file, synced, and renamed: it is complete or not
  there. Numbers increase, also across restarts.
* When a table has `FAN` parts of one level, they are merged into one part of the next level, unless that would be
  longer than `LONGEST`. It replaces the last of them, and the others are removed. If the node is killed in between, it
  removes them at its next start: a merged part says which numbers it replaces. So a table has some dozens of small
  parts, and every row is written three or four times.
* All parts together take at most `limit` bytes; beyond that, the oldest are removed.
* A part that cannot be read is skipped with a line in the log.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from roamcast.live import log

FAN: Final = 32
LONGEST: Final = 4 * 2**20
_NAME: Final = re.compile(r"(\w+)-(\d+)\.parquet")
_MERGED: Final = b"roamcast.merged"
_UNREADABLE: Final = (OSError, pa.ArrowException, ValueError, KeyError)


@dataclass(slots=True)
class Part:
    path: Path
    table: str
    number: int
    size: int
    first: int
    """The lowest number that it replaces."""
    level: int | None = 0
    """How often its rows were merged; None: it is not merged again."""
    damaged: bool = False


class Parts:
    def __init__(self, folder: Path, limit: int = sys.maxsize) -> None:
        self._folder = folder
        self._limit = limit
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob(".*.partial"):  # left by a node that was killed
            left.unlink()
        names = [(found, path) for path in folder.iterdir() if (found := _NAME.fullmatch(path.name))]
        places = sorted((int(found[2]), found[1], path) for found, path in names)
        self.next_number = 1 + max((number for number, _, _ in places), default=-1)
        self._parts = [self._look(path, table, number) for number, table, path in places]  # by number
        self._remove_merged()

    def _look(self, path: Path, table: str, number: int) -> Part:
        part = Part(path, table, number, path.stat().st_size, number)
        try:
            merged = (pq.read_metadata(path).metadata or {}).get(_MERGED)
            if merged is not None:
                part.first, part.level = map(int, merged.split())
        except _UNREADABLE as problem:
            _pass_over(part, problem)
        return part

    def _remove_merged(self) -> None:
        """Removes parts that were merged and not removed because the node was killed."""
        covered: dict[str, int] = {}
        for part in reversed(self._parts):
            if part.number >= covered.get(part.table, part.number + 1):
                self._remove(part)
            else:
                covered[part.table] = part.first

    def newest(self, table: str) -> Iterator[pa.Table]:
        """The parts of a table, newest first."""
        for part in reversed(self._parts):
            if part.table == table and not part.damaged:
                read = _read(part)
                if read is not None:
                    yield read

    def all(self) -> Iterator[tuple[str, pa.Table]]:
        """Every part with its table, oldest first."""
        for part in list(self._parts):
            read = None if part.damaged else _read(part)
            if read is not None:
                yield part.table, read

    def write(self, tables: Mapping[str, pa.Table]) -> None:
        """Writes a new part of each table."""
        number, self.next_number = self.next_number, self.next_number + 1
        for table, rows in tables.items():
            path = self._folder / f"{table}-{number:06}.parquet"
            self._parts.append(Part(path, table, number, _write(path, rows), number))
        for table in tables:
            self._merge(table)
        self._make_room()
        _to_disk(self._folder)

    def _merge(self, table: str) -> None:
        level = 0
        while True:
            parts = [part for part in self._parts if part.table == table and part.level == level]
            if len(parts) < FAN:
                return
            while parts:
                size, count = parts[0].size, 1
                while count < len(parts) and size + parts[count].size <= LONGEST:
                    size += parts[count].size
                    count += 1
                self._make_one(parts[:count], level + 1)
                parts = parts[count:]
            level += 1

    def _make_one(self, parts: list[Part], level: int) -> None:
        last = parts[-1]
        if len(parts) == 1:
            last.level = None if last.size > LONGEST // 2 else level
            return
        read = [rows for part in parts if (rows := _read(part)) is not None]
        if not read:
            return
        merged = pa.concat_tables(read)
        metadata = {**(merged.schema.metadata or {}), _MERGED: b"%d %d" % (parts[0].first, level)}
        last.size = _write(last.path, merged.replace_schema_metadata(metadata))
        last.first, last.level = parts[0].first, level
        _to_disk(self._folder)  # the new part must be there before the old ones are removed
        for part in parts[:-1]:
            self._remove(part)

    def _make_room(self) -> None:
        total = sum(part.size for part in self._parts)
        while total > self._limit and self._parts:
            total -= self._parts[0].size
            self._remove(self._parts[0])

    def _remove(self, part: Part) -> None:
        part.path.unlink(missing_ok=True)
        self._parts = [other for other in self._parts if other is not part]


def _read(part: Part) -> pa.Table | None:
    try:
        return pq.read_table(part.path, partitioning=None)
    except _UNREADABLE as problem:
        _pass_over(part, problem)
        return None


def _pass_over(part: Part, problem: Exception) -> None:
    part.level, part.damaged = None, True
    log.warn("a part of the facts is damaged, and passed over", part=str(part.path), reason=str(problem))


def _write(path: Path, rows: pa.Table) -> int:
    """Writes a part; returns its size."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    encoded = pa.BufferOutputStream()
    pq.write_table(rows, encoded, compression="zstd")
    size = partial.write_bytes(encoded.getvalue())
    _to_disk(partial)
    partial.replace(path)
    return size


def _to_disk(path: Path) -> None:
    """Syncs a file or a folder. Without it, a renamed file may be empty or missing after a loss of power."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
