"""One run in one task, wherever Spark starts it: its files, or its error, exactly once.

The rules this file owns, which make a campaign safe to kill at any instant:

* A task writes below a name of its own attempt, renames each finished file to the place that follows from table and
  run, and writes `done/<run>.json` last. A run counts when that file is there and all that it lists is.
* Runs are deterministic, and so is what is written. Two attempts at one run, after a crash or by speculation, write
  the same bytes to the same places, in any order.
* What the run raises is its result, kept as a row. What the folder raises (a full disk, say) is nobody's result: the
  task reports it, and the campaign ends.
"""

import contextlib
import json
import re
import shutil
import socket
import time
import traceback
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

import roamcast
from roamcast.campaign.folder import done_file, facts_file, manifest_row
from roamcast.campaign.identity import canonical_hash, digests, relocated, run_id, write_files
from roamcast.campaign.plan import Run
from roamcast.campaign.schemas import with_run
from roamcast.facts.schema import TABLES
from roamcast.sim import run as simulation
from roamcast.sim.scenario import Scenario

BLOCKED: Final = "blocked"
"""The status of a run that could not be tried; never in a manifest."""
TEMPORARY: Final = "tmp"

_PACKAGE: Final = Path(roamcast.__file__).parent
_ADDRESS: Final = re.compile(r"\b0x[0-9a-f]+")


class Outcome(NamedTuple):
    """What a task reports back; the rest is in the folder."""

    run: str
    status: str
    problem: str = ""
    """Why it is blocked."""


def read_done(out: Path, run: str) -> dict[str, Any] | None:
    """What a finished run left in its last file; None if the run has to be done, or done again."""
    try:
        done: dict[str, Any] = json.loads(done_file(out, run).read_bytes())
        # A machine that lost its power may have kept the name of a file and not its contents.
        whole = all(facts_file(out, table, run).stat().st_size == size for table, size in done["sizes"].items())
    except (FileNotFoundError, ValueError):
        return None
    return done if whole else None


def perform(run: Run, out: Path, token: str) -> Outcome:
    """Does the run unless it is done. `token` is the name of a file that the driver has put into the folder."""
    if not (out / TEMPORARY / token).is_file():
        return Outcome(
            run.run,
            BLOCKED,
            f"{out}: {socket.gethostname()} does not see there what was written on the machine that started the "
            "campaign: the folder must be on storage that all of Spark's executors share",
        )
    attempt = out / TEMPORARY / f"{run.run}.{uuid.uuid4().hex}"
    try:
        done = read_done(out, run.run)
        if done is not None:
            return Outcome(run.run, done["row"]["status"])
        attempt.mkdir()
        return _attempt(run, out, attempt)
    except _AnotherVersion as problem:
        return Outcome(run.run, BLOCKED, str(problem))
    except OSError as problem:
        why = problem.strerror or problem
        place = problem.filename or out
        return Outcome(run.run, BLOCKED, f"{place}: cannot be written on {socket.gethostname()}: {why}")
    finally:
        shutil.rmtree(attempt, ignore_errors=True)


def _attempt(run: Run, out: Path, attempt: Path) -> Outcome:
    started, cpu = time.time(), time.process_time()
    scenario = msgspec.json.decode(run.scenario, type=Scenario)
    if run_id(scenario, run.files) != run.run:
        raise _AnotherVersion(
            f"{socket.gethostname()} has other sources of roamcast, or of an installed protocol, than the machine that "
            "started the campaign, or they have changed since: have the same everywhere, and start again"
        )
    result = _simulate(run, scenario, attempt)
    row = manifest_row(run.run, scenario, result.error, attempt, result.rows)
    sizes = {table: _file(attempt, table).stat().st_size for table in result.rows}
    for table in result.rows:
        place = facts_file(out, table, run.run)
        place.parent.mkdir(exist_ok=True)
        _file(attempt, table).replace(place)
    record = {
        "row": row,
        "sizes": sizes,
        "cpu": time.process_time() - cpu,
        "simulating": result.cpu,
        "started": started,
        "ended": time.time(),
        "host": socket.gethostname(),
    }
    last = attempt / "done.json"
    last.write_text(json.dumps(record), encoding="utf-8")
    last.replace(done_file(out, run.run))
    return Outcome(run.run, row["status"])


class _AnotherVersion(Exception):
    pass


@dataclass(frozen=True)
class _Result:
    rows: dict[str, int]
    error: str | None
    cpu: float


def _simulate(run: Run, scenario: Scenario, attempt: Path) -> _Result:
    """Runs the scenario into the attempt's folder. Raises `OSError` only where that folder did."""
    folder = _placed(run, scenario, attempt)
    with contextlib.closing(RunSink(run.run, attempt)) as sink:
        try:
            report = simulation.run(relocated(scenario), sink, folder=folder)
        except (Exception, SystemExit) as problem:
            if sink.problem is not None:
                raise sink.problem from None
            return _Result({}, describe(problem, folder), 0.0)
        if sink.problem is not None:  # a broker may have caught it
            raise sink.problem
        sink.finish()
        return _Result(sink.rows, None, report.cpu)


def _placed(run: Run, scenario: Scenario, attempt: Path) -> Path:
    """A folder with the files from outside. It is one for all runs that have the same, in which a worker process finds
    a protocol that it has loaded already."""
    if not run.files:
        return attempt
    place = attempt.parent / f"files-{canonical_hash(digests(run.files))}"
    if place.is_dir():
        return place
    draft = attempt / "files"
    draft.mkdir()
    write_files(scenario, run.files, draft)
    try:
        draft.rename(place)
    except OSError:
        if not place.is_dir():
            raise
        # Another task was first; theirs are the same.
    return place


class RunSink:
    """Writes each table to a file of the folder, every row with its run. A table with no rows gets no file."""

    def __init__(self, run: str, folder: Path) -> None:
        self._run = run
        self._folder = folder
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._rows: dict[str, int] = {}
        self.problem: OSError | None = None

    @property
    def rows(self) -> dict[str, int]:
        """By table, in the order of the vocabulary."""
        return {table: self._rows[table] for table in [*TABLES, *self._rows] if table in self._rows}

    def __call__(self, table: str, batch: pa.RecordBatch) -> None:
        schema = with_run(batch.schema)
        rows = pa.RecordBatch.from_arrays([pa.repeat(self._run, batch.num_rows), *batch.columns], schema=schema)
        with self._noticing():
            if table not in self._writers:
                self._writers[table] = pq.ParquetWriter(_file(self._folder, table), schema, compression="zstd")
            self._writers[table].write_batch(rows)
        self._rows[table] = self._rows.get(table, 0) + batch.num_rows

    def finish(self) -> None:
        for writer in self._writers.values():
            with self._noticing():
                writer.close()

    def close(self) -> None:
        """Lets go of files that nobody wants any more."""
        for writer in self._writers.values():
            with contextlib.suppress(OSError):
                writer.close()
            writer.is_open = False  # or its destructor tries again, and complains aloud

    @contextlib.contextmanager
    def _noticing(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            self.problem = problem
            raise


def _file(attempt: Path, table: str) -> Path:
    return attempt / f"{table}.parquet"


def describe(problem: BaseException, folder: Path) -> str:
    """An error in one line, with the innermost place in roamcast or in the protocol from outside, whose file is in
    `folder`. The same error reads the same on every machine: no addresses of objects, no names of temporary folders."""
    places = []
    for frame in traceback.extract_tb(problem.__traceback__):
        for root in (_PACKAGE, folder):
            if Path(frame.filename).is_relative_to(root):
                places.append(f"{Path(frame.filename).relative_to(root).as_posix()}:{frame.lineno} in {frame.name}")
    message = _ADDRESS.sub("0x…", str(problem)).replace(f"{folder}/", "")
    return f"{type(problem).__name__}: {message} ({places[-1]})"
