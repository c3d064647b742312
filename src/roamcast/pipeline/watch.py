"""Facts as they come: one Structured Streaming job that tells which files are new, and what was made of them so far.

The rules this file owns:

* The stream's rows are files, by path and time; their content is read in Python, where facts are understood. A file
  may be gone by then, merged or packed with others: what replaced it is a new file, and comes too.
* **Nothing counts twice.** What was made of the files is kept under keys of the facts' own (a run; a fact itself), and
  replaced as a whole, before Spark's checkpoint says that a batch is done. A batch that is repeated after a kill
  therefore changes nothing, and none is left out.
* One process at a time uses a folder of state.
"""

import contextlib
import fcntl
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from roamcast.campaign.folder.layout import write_table
from roamcast.errors import RoamcastError
from roamcast.storage import spark_uri

STATE: Final = ".watch"
"""The folder of the state, in the first folder that is watched."""
_FILES: Final = 1000
"""Most files per batch, so that a large folder shows its first results soon."""
_FILE: Final = "path string, modificationTime timestamp, length bigint, content binary"
_LOOK: Final = 0.2
"""Seconds between two looks at the query while nothing is to be shown."""

Snapshot = dict[str, Any]
"""What is known so far, ready for JSON."""
Tables = dict[str, pa.Table]


class File(NamedTuple):
    path: Path
    written: float
    """Seconds since 1970."""


class Watched(Protocol):
    """What is watched: which files matter, and what is made of them."""

    folders: Sequence[Path]
    pattern: str
    """Of the names of files."""

    def absorb(self, spark: SparkSession, known: Tables, files: Sequence[File]) -> Tables:
        """What is known with these files; the same as before if it has them already."""

    def snapshot(self, known: Tables, now: float, looked: float) -> Snapshot:
        """What to show of it; `looked` is up to when files were seen, which may be long ago on a busy machine."""


def watch(spark: SparkSession, watched: Watched, state: Path, every: float, *, once: bool) -> Iterator[Snapshot]:
    """Gives what is known every so many seconds, for ever; with `once`, when all files that are there now are read."""
    with _locked(state):
        following = _Following(spark, watched, state)
        query = following.start(every, once)
        try:
            while query.isActive and not (following.looked or _idle(query)):
                time.sleep(_LOOK)  # nothing is said before the first look at the folder
            while True:
                if not once:
                    yield following.snapshot(_idle(query))
                until = time.monotonic() + every
                while query.isActive and (once or time.monotonic() < until):
                    time.sleep(_LOOK)
                following.check(query.exception())
                if not query.isActive:
                    break
            yield following.snapshot(idle=True)
        finally:
            with contextlib.suppress(PySparkException):
                query.stop()


class _Following:
    """The query, and what it has made so far."""

    def __init__(self, spark: SparkSession, watched: Watched, state: Path) -> None:
        self._spark, self._watched, self._state = spark, watched, state
        self.known: Tables = read_kept(state)
        self.looked = 0.0
        """When files were last read by this process: what is known may be from one before."""
        self._problem: Exception | None = None

    def start(self, every: float, once: bool) -> Any:  # noqa: ANN401  # Spark's query
        frame = reduce(DataFrame.union, [self._files_in(folder) for folder in self._watched.folders])
        writer = frame.writeStream.foreachBatch(self._absorb)
        writer = writer.option("checkpointLocation", spark_uri(self._state / "checkpoint"))
        given: dict[str, Any] = {"availableNow": True} if once else {"processingTime": f"{every} seconds"}
        return writer.trigger(**given).start()

    def _files_in(self, folder: Path) -> DataFrame:
        reader = self._spark.readStream.format("binaryFile").schema(_FILE)
        for name, value in {
            "pathGlobFilter": self._watched.pattern,
            "recursiveFileLookup": "true",
            "ignoreMissingFiles": "true",
            "maxFilesPerTrigger": str(_FILES),
            "maxFileAge": "36500d",  # Spark would leave out files a week older than the newest
        }.items():
            reader = reader.option(name, value)
        return reader.load(spark_uri(folder)).select("path", "modificationTime")  # without their content

    def _absorb(self, batch: DataFrame, _number: int) -> None:
        begun = time.time()
        try:
            rows = batch.collect()
            files = [File(Path(row.path.removeprefix("file:")), row.modificationTime.timestamp()) for row in rows]
            known = self._watched.absorb(batch.sparkSession, self.known, sorted(files))
            keep(self._state, known)
            self.known, self.looked = known, begun
        except Exception as problem:
            self._problem = problem
            raise

    def snapshot(self, idle: bool) -> Snapshot:
        now = time.time()
        self.looked = now if idle else self.looked
        return self._watched.snapshot(self.known, now, self.looked)

    def check(self, problem: Exception | None) -> None:
        """Raises what ended the query, if something did."""
        if isinstance(self._problem, RoamcastError):
            raise self._problem
        if problem is not None or self._problem is not None:
            for folder in self._watched.folders:
                if not folder.exists():
                    raise RoamcastError(f"{folder}: is gone: there is nothing to watch any more") from self._problem
            raise self._problem or RoamcastError(f"Spark gave up: {problem}")


def _idle(query: Any) -> bool:  # noqa: ANN401  # Spark's query
    """Whether all files that were seen are read."""
    return bool(query.status["message"].startswith("Waiting"))


# --- State ----------------------------------------------------------------------------------------------------------


def keep(state: Path, tables: Mapping[str, pa.Table]) -> None:
    """Replaces the state as a whole: one file, with every table in it."""
    contents = pa.array(map(encoded, tables.values()), pa.large_binary())
    whole = pa.table({"table": pa.array(tables, pa.string()), "content": contents})
    write_table(state / "known.parquet", whole)


def read_kept(state: Path) -> Tables:
    if not (state / "known.parquet").is_file():
        return {}
    whole = pq.read_table(state / "known.parquet", partitioning=None).to_pylist()
    return {row["table"]: decoded(row["content"]) for row in whole}


def encoded(rows: pa.Table) -> bytes:
    """A table as one value, whatever its columns."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def decoded(content: bytes) -> pa.Table:
    return pa.ipc.open_stream(content).read_all()


@contextlib.contextmanager
def _locked(state: Path) -> Iterator[None]:
    try:
        state.mkdir(parents=True, exist_ok=True)
        lock = (state / "lock").open("w")
    except OSError as problem:
        raise RoamcastError(
            f"{state}: cannot be written: {problem.strerror}: name another folder with --state"
        ) from problem
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RoamcastError(
                f"{state}: another `roamcast watch` uses it: stop that one, or name another folder with --state"
            ) from None
        yield
