"""The results of one run in one file: its facts, and its record.

A campaign's tasks write such a file per run, `done/<run>.run`, and later hundreds of them become a few Parquet files
(`packs`). Until then there is one file per run, not one per table, and a run is done when its file exists: only one
rename has to go right. The rules this file owns:

* Blocks, each a batch of one table as a stream of Arrow, in the order in which they came; then a footer in JSON, its
  length, and the same magic word as at the beginning. A truncated file lacks the end, and does not count.
* The digest of a run is that of its blocks, table by table: the same facts have the same digest.
* Blocks have no column `run`: the file is named after it.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa

from roamcast.errors import RoamcastError
from roamcast.facts.schema import TABLES

_MAGIC: Final = b"roamcast run 1\n"
_LENGTH: Final = 8
_LARGE: Final = 1 << 16
"""Smaller blocks, in bytes, are not compressed: compression makes writing take ten times as long."""
_COMPRESSED: Final = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)

Record = dict[str, Any]
"""A run's record: its row of the manifest, CPU seconds, times, machine."""


class Damaged(RoamcastError):
    """A file that differs from what was written."""


class RunFile:
    """Collects the facts of a run as they come; `finish` makes the file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._blocks: dict[str, list[tuple[int, int]]] = {}
        self._rows: dict[str, int] = {}
        self._hashes: dict[str, Any] = {}
        self.problem: OSError | None = None
        """An error of the file system, which the simulator may have mistaken for the protocol's own."""
        self._write(_MAGIC)

    def __call__(self, table: str, batch: pa.RecordBatch) -> None:
        block = _encoded(batch)
        self._blocks.setdefault(table, []).append((self._file.tell(), len(block)))
        self._hashes.setdefault(table, hashlib.sha256()).update(block)
        self._rows[table] = self._rows.get(table, 0) + batch.num_rows
        self._write(block)

    @property
    def rows(self) -> dict[str, int]:
        """The number of rows by table, in the order of the vocabulary."""
        return {table: self._rows[table] for table in _ordered(self._rows)}

    @property
    def digest(self) -> str:
        return _whole(self._hashes)

    def finish(self, record: Record) -> None:
        footer = json.dumps({**record, "blocks": self._blocks}).encode()
        self._write(footer + len(footer).to_bytes(_LENGTH, "big") + _MAGIC)
        self._file.close()

    def close(self) -> None:
        """Closes and abandons the file."""
        with contextlib.suppress(OSError):
            self._file.close()

    def _write(self, content: bytes | pa.Buffer) -> None:
        try:
            self._file.write(content)
            if len(content) >= _LARGE:
                self._file.flush()
        except OSError as problem:
            self.problem = problem
            raise


def _encoded(batch: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_COMPRESSED if batch.nbytes >= _LARGE else None) as stream:
        stream.write_batch(batch)
    return sink.getvalue()


def read_record(path: Path) -> Record | None:
    """The run's record; None if the file does not exist or is incomplete."""
    try:
        with path.open("rb") as file:
            return _footer(file)
    except FileNotFoundError:
        return None


def _footer(file: BinaryIO) -> Record | None:
    tail = _LENGTH + len(_MAGIC)
    size = file.seek(0, 2)
    if size < tail:
        return None
    file.seek(size - tail)
    end = file.read(tail)
    begin = size - tail - int.from_bytes(end[:_LENGTH], "big")
    if end[_LENGTH:] != _MAGIC or begin < 0:
        return None
    file.seek(begin)
    try:
        footer: Record = json.loads(file.read(size - tail - begin))
    except ValueError:
        return None
    return footer


def read_blocks(path: Path, record: Record) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The facts, table by table in the order of the vocabulary. Raises `Damaged`, at the latest after the last one."""
    hashes = {}
    with path.open("rb") as file:
        for table in _ordered(record["blocks"]):
            hashes[table] = hashlib.sha256()
            for offset, length in record["blocks"][table]:
                file.seek(offset)
                block = file.read(length)
                hashes[table].update(block)
                yield table, _decoded(block, path)
    if _whole(hashes) != record["row"]["digest"]:
        raise Damaged(f"{path}: is not the file that was written: its digest differs")


def read_facts(path: Path, record: Record, table: str) -> pa.Table:
    """One table that the run has, without checking the digest, for which all of them would have to be read."""
    with path.open("rb") as file:
        batches = []
        for offset, length in record["blocks"][table]:
            file.seek(offset)
            batches.append(_decoded(file.read(length), path))
    return pa.Table.from_batches(batches)


def _decoded(block: bytes, path: Path) -> pa.RecordBatch:
    try:
        with pa.ipc.open_stream(block) as stream:
            return stream.read_next_batch()
    except (pa.ArrowException, OSError, StopIteration) as problem:
        raise Damaged(f"{path}: is not the file that was written: {problem}") from None


def _ordered(tables: Mapping[str, Any]) -> list[str]:
    return [table for table in dict.fromkeys([*TABLES, *tables]) if table in tables]


def _whole(hashes: Mapping[str, Any]) -> str:
    whole = hashlib.sha256()
    for table in _ordered(hashes):
        whole.update(f"{table} {hashes[table].hexdigest()}\n".encode())
    return whole.hexdigest()
