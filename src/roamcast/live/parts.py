"""A folder of parts: the facts of one node on disk, in few files of bounded size, for readers along and after a crash.

The rules this file owns:

* A part is `<table>-<number>.parquet`, and it never changes. It is written to a temporary file, synced, and renamed: it
  is complete or not there. Numbers increase, also across restarts.
* `FAN` parts of a table and of one level are merged into a part of the next level with a name of its own,
  `merged-<table>-<first>-<last>.parquet`, unless that would be longer than `LONGEST`. So a table has some dozens of
  files, and every row is written three or four times. The latest `FAN` parts that were written are not merged yet.
* **The manifest, `parts.json`, says which files count**, oldest first, with their levels. It is replaced as a whole,
  and only then are files removed that it no longer lists: before that moment the merged part does not count, and from
  it on the parts that it replaces do not. A part whose number the manifest has not reached (`next`) counts as well: its
  node was killed before it could list it, or is about to.
* Whoever reads along takes what counts (`read`), or takes each `<table>-<number>.parquet` once, as it appears, and
  looks before `FAN` more have been written. Both get every row once.
* All parts together take at most `limit` bytes; beyond that, the oldest are removed.
* A part that cannot be read is skipped with a line in the log.
* The metadata of a part's schema have `EPOCH`, if its node knows it: time 0 of its rows, in ns since 1970.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from roamcast.live import log

FAN: Final = 32
LONGEST: Final = 4 * 2**20
MANIFEST: Final = "parts.json"
EPOCH: Final = b"roamcast.epoch"
_MERGED: Final = "merged-"
NAME: Final = re.compile(r"(?:merged-)?(?P<table>\w+)-(?P<first>\d+)(?:-(?P<last>\d+))?\.parquet")
_UNREADABLE: Final = (OSError, pa.ArrowException, ValueError, KeyError)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    path: Path
    table: str
    first: int
    last: int
    """The numbers that it stands for."""
    size: int
    level: int | None = 0
    """How often its rows were merged; None: it is not merged again."""


class _Manifest(msgspec.Struct):
    next: int = 0
    """The number of the parts to be written next."""
    tables: dict[str, dict[str, int | None]] = {}
    """The files of each table, oldest first, with their levels."""


def read(folder: Path) -> Iterator[tuple[str, pa.Table]]:
    """Every part with its table, oldest first: each row once, as of one moment, also while a node writes."""
    found: list[tuple[str, pa.Table]] | None = None
    while found is None:
        found = _read_all(folder)
    yield from found


def _read_all(folder: Path) -> list[tuple[str, pa.Table]] | None:
    """Everything that counts, or None if some of it was merged or removed meanwhile."""
    found = []
    for part in _counting(folder):
        rows = _read(part)
        if rows is not None:
            found.append((part.table, rows))
        elif not part.path.exists() and part.path not in {other.path for other in _counting(folder)}:
            return None
    return found


class Parts:
    """A node's own folder. Nobody else may write there."""

    def __init__(self, folder: Path, limit: int = sys.maxsize) -> None:
        self._folder = folder
        self._limit = limit
        folder.mkdir(parents=True, exist_ok=True)
        self._parts = [part for part in _counting(folder) if part.path.exists()]
        self._damaged: set[Path] = set()
        listed = _manifest(folder) or _Manifest()
        self.next_number = max((listed.next, *(part.last + 1 for part in self._parts)))
        for left in folder.glob(".*.partial"):  # left by a node that was killed
            left.unlink()
        self._remove_others()

    def newest(self, table: str) -> Iterator[pa.Table]:
        """The parts of a table, newest first."""
        for part in reversed(self._parts):
            if part.table == table and (rows := self._read(part)) is not None:
                yield rows

    def _read(self, part: Part) -> pa.Table | None:
        rows = None if part.path in self._damaged else _read(part)
        if rows is None:
            self._damaged.add(part.path)
        return rows

    def write(self, tables: Mapping[str, pa.Table]) -> None:
        """Writes a new part of each table."""
        number, self.next_number = self.next_number, self.next_number + 1
        for table, rows in tables.items():
            path = self._folder / f"{table}-{number:06}.parquet"
            self._parts.append(Part(path, table, number, number, _write(path, rows)))
        parts = self._within_limit(self._merged(tables))
        _to_disk(self._folder)  # all parts must be there before the manifest lists them
        self._list(parts)
        self._parts = parts
        self._remove_others()

    def _remove_others(self) -> None:
        """Removes the parts that do not count."""
        counting = {part.path for part in self._parts}
        for path in sorted(self._folder.iterdir()):
            if NAME.fullmatch(path.name) and path not in counting:
                path.unlink(missing_ok=True)

    def _list(self, parts: Iterable[Part]) -> None:
        manifest = _Manifest(self.next_number)
        for part in parts:
            manifest.tables.setdefault(part.table, {})[part.path.name] = part.level
        _replace(self._folder / MANIFEST, msgspec.json.encode(manifest))
        _to_disk(self._folder)  # the new manifest must be there before files are removed

    def _merged(self, tables: Iterable[str]) -> list[Part]:
        """The parts, with those merged of which these tables have many."""
        parts = self._parts
        for table in tables:
            level = 0
            while (some := [part for part in parts if part.table == table and part.level == level]) and (
                len(some) >= (FAN if level else 2 * FAN)
            ):
                merged = self._raised(some[:FAN], level + 1)
                parts = sorted([*(part for part in parts if part not in some[:FAN]), *merged], key=_order)
                level += 1
        return parts

    def _raised(self, parts: list[Part], level: int) -> list[Part]:
        """The parts, merged into as few of the next level as their sizes allow."""
        raised = []
        while parts:
            size, count = parts[0].size, 1
            while count < len(parts) and size + parts[count].size <= LONGEST:
                size += parts[count].size
                count += 1
            raised += self._make_one(parts[:count], level)
            parts = parts[count:]
        return raised

    def _make_one(self, parts: list[Part], level: int) -> list[Part]:
        """One part instead of some; those that cannot be read stay as they are."""
        read = [(part, self._read(part)) for part in parts]
        damaged = [replace(part, level=None) for part, rows in read if rows is None]
        sound = [(part, rows) for part, rows in read if rows is not None]
        if len(sound) < 2:
            return damaged + [replace(part, level=None if part.size > LONGEST // 2 else level) for part, _ in sound]
        first, last = sound[0][0], sound[-1][0]
        path = self._folder / f"{_MERGED}{first.table}-{first.first:06}-{last.last:06}.parquet"
        size = _write(path, pa.concat_tables([rows for _, rows in sound]))
        return [*damaged, Part(path, first.table, first.first, last.last, size, level)]

    def _within_limit(self, parts: list[Part]) -> list[Part]:
        total = sum(part.size for part in parts)
        oldest = 0
        while total > self._limit and oldest < len(parts):
            total -= parts[oldest].size
            oldest += 1
        return parts[oldest:]


def _manifest(folder: Path) -> _Manifest | None:
    try:
        return msgspec.json.decode((folder / MANIFEST).read_bytes(), type=_Manifest)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as problem:
        log.warn("the manifest of the facts is damaged, and passed over", folder=str(folder), reason=str(problem))
        return None


def _counting(folder: Path) -> list[Part]:
    """The parts that count, oldest first."""
    # In this order: what is merged and removed after the look at the folder is missing from the manifest too.
    there = [path.name for path in folder.iterdir()]
    manifest = _manifest(folder)
    if manifest is None:
        found = [part for name in there if (part := _part(folder, name, 0)) is not None]
        counting = [part for part in found if not any(_covers(other, part) for other in found)]
    else:
        listed = {name: level for names in manifest.tables.values() for name, level in names.items()}
        parts = [_part(folder, name, listed.get(name, 0)) for name in {**listed, **dict.fromkeys(there)}]
        counting = [
            part
            for part in parts
            if part is not None
            and (part.path.name in listed or (not part.path.name.startswith(_MERGED) and part.first >= manifest.next))
        ]
    return sorted(counting, key=_order)


def _order(part: Part) -> tuple[int, str]:
    return part.last, part.table


def _covers(one: Part, other: Part) -> bool:
    """Whether the rows of one part are those of the other and more."""
    within = one.table == other.table and one.first <= other.first and other.last <= one.last
    return within and one.path.name.startswith(_MERGED) and one.path != other.path


def _part(folder: Path, name: str, level: int | None) -> Part | None:
    named = NAME.fullmatch(name)
    if named is None:
        return None
    path = folder / name
    first = int(named["first"])
    return Part(path, named["table"], first, int(named["last"] or first), _size(path), level)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _read(part: Part) -> pa.Table | None:
    try:
        return pq.read_table(part.path, partitioning=None)
    except FileNotFoundError:
        return None
    except _UNREADABLE as problem:
        log.warn("a part of the facts is damaged, and passed over", part=str(part.path), reason=str(problem))
        return None


def _write(path: Path, rows: pa.Table) -> int:
    """Writes a part; returns its size."""
    encoded = pa.BufferOutputStream()
    pq.write_table(rows, encoded, compression="zstd")
    return _replace(path, encoded.getvalue())


def _replace(path: Path, content: bytes | pa.Buffer) -> int:
    """Writes a file, complete or not at all; returns its size."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    size = partial.write_bytes(content)
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
