"""One run in one task, wherever Spark starts it: its files, or its error, exactly once.

The rules this file owns, which make a campaign safe to kill at any instant:

* A task writes below a name of its own attempt, renames each finished file to the place that follows from table and
  run, and writes `done/<run>.json` last. A run counts when that file is there and all that it lists is.
* Runs are deterministic, and so is what is written. Two attempts at one run, after a crash or by speculation, write
  the same bytes to the same places, in any order.
* What the run raises is its result, kept as a row. What the folder raises (a full disk, say) is nobody's result: the
  task reports it, and the campaign ends.
* A run that kills its process is tried `TRIES` times and then put aside as a row with the reason; one that exceeds a
  limit, at once. Neither holds up the others (`supervise`).
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
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

import roamcast
from roamcast.campaign.folder import done_file, facts_file, manifest_row
from roamcast.campaign.identity import relocated, run_id
from roamcast.campaign.inputs import FILES
from roamcast.campaign.limits import Limits
from roamcast.campaign.plan import Run
from roamcast.campaign.schemas import with_run
from roamcast.facts.schema import TABLES
from roamcast.pipeline.supervise import in_child
from roamcast.sim import run as simulation
from roamcast.sim.raised import ProtocolRaised
from roamcast.sim.scenario import Scenario

BLOCKED: Final = "blocked"
"""The status of a run that could not be tried; never in a manifest."""
TEMPORARY: Final = "tmp"
TRIES: Final = 3
"""Deaths of a run's process after which the run has failed."""

_PACKAGE: Final = Path(roamcast.__file__).parent
_ADDRESS: Final = re.compile(r"\b0x[0-9a-f]+")


class Outcome(NamedTuple):
    """What a task reports back; the rest is in the folder."""

    run: str
    status: str
    problem: str = ""
    """Why it is blocked."""
    seconds: float = 0.0
    """From its start to its end."""


def read_done(out: Path, run: str) -> dict[str, Any] | None:
    """What a finished run left in its last file; None if the run has to be done, or done again."""
    try:
        done: dict[str, Any] = json.loads(done_file(out, run).read_bytes())
        # A machine that lost its power may have kept the name of a file and not its contents.
        whole = all(facts_file(out, table, run).stat().st_size == size for table, size in done["sizes"].items())
    except (FileNotFoundError, ValueError):
        return None
    return done if whole else None


def perform(run: Run, out: Path, token: str, limits: Limits | None = None) -> Outcome:
    """Does the run unless it is done. `token` is the name of a file that the driver has put into the folder.

    With limits the run gets a process of its own; without, it runs in this one.
    """
    if not (out / TEMPORARY / token).is_file():
        return Outcome(
            run.run,
            BLOCKED,
            f"{out}: {socket.gethostname()} does not see there what was written on the machine that started the "
            "campaign: the folder must be on storage that all of Spark's executors share",
        )
    done = read_done(out, run.run)
    if done is not None:
        return Outcome(run.run, done["row"]["status"])
    attempt = out / TEMPORARY / f"{run.run}.{uuid.uuid4().hex}"
    try:
        return _attempt(run, out, attempt) if limits is None else _attempts(run, out, attempt, limits)
    except OSError as problem:
        return _blocked(run, out, problem)
    finally:
        shutil.rmtree(attempt, ignore_errors=True)


def _attempts(run: Run, out: Path, attempt: Path, limits: Limits) -> Outcome:
    """One attempt after the other, until one does not die."""
    tries = 0
    while tries < TRIES:
        tries += 1
        ended = in_child(partial(_attempt, run, out, attempt), limits)
        if ended.result is not None:
            return ended.result
        shutil.rmtree(attempt, ignore_errors=True)
        if ended.limit:
            break
    times = f" ({tries} times of {tries})" if tries > 1 else ""
    scenario = msgspec.json.decode(run.scenario, type=Scenario)
    attempt.mkdir()
    now = time.time()
    return _finish(run, scenario, out, attempt, _Result({}, f"the run {ended.death}{times}", 0.0), now, 0.0)


def _attempt(run: Run, out: Path, attempt: Path) -> Outcome:
    started, cpu = time.time(), time.process_time()
    try:
        attempt.mkdir()
        scenario = msgspec.json.decode(run.scenario, type=Scenario)
        if run_id(scenario, run.files) != run.run:
            return Outcome(
                run.run,
                BLOCKED,
                f"{socket.gethostname()} has other sources of roamcast, or of an installed protocol, than the machine "
                "that started the campaign, or they have changed since: have the same everywhere, and start again",
            )
        result = _simulate(run, scenario, out / FILES, attempt)
        return _finish(run, scenario, out, attempt, result, started, time.process_time() - cpu)
    except OSError as problem:
        return _blocked(run, out, problem)


def _blocked(run: Run, out: Path, problem: OSError) -> Outcome:
    why = problem.strerror or problem
    return Outcome(run.run, BLOCKED, f"{problem.filename or out}: cannot be written on {socket.gethostname()}: {why}")


def _finish(
    run: Run, scenario: Scenario, out: Path, attempt: Path, result: "_Result", started: float, cpu: float
) -> Outcome:
    """Moves a run's files to their places, and says last that they are there."""
    row = manifest_row(run.run, scenario, result.error, attempt, result.rows)
    sizes = {table: _file(attempt, table).stat().st_size for table in result.rows}
    for table in result.rows:
        place = facts_file(out, table, run.run)
        place.parent.mkdir(exist_ok=True)
        _file(attempt, table).replace(place)
    ended = time.time()
    record = {
        "row": row,
        "sizes": sizes,
        "inputs": [one.place for one in run.files.values()],
        "cpu": cpu,
        "simulating": result.cpu,
        "started": started,
        "ended": ended,
        "host": socket.gethostname(),
    }
    last = attempt / "done.json"
    last.write_text(json.dumps(record), encoding="utf-8")
    last.replace(done_file(out, run.run))
    return Outcome(run.run, row["status"], seconds=ended - started)


@dataclass(frozen=True)
class _Result:
    rows: dict[str, int]
    error: str | None
    cpu: float


def _simulate(run: Run, scenario: Scenario, files: Path, attempt: Path) -> _Result:
    """Runs the scenario into the attempt's folder. Raises `OSError` only where that folder did."""
    with contextlib.closing(RunSink(run.run, attempt)) as sink:
        try:
            report = simulation.run(relocated(scenario, run.files), sink, folder=files)
        except (Exception, SystemExit) as problem:
            if sink.problem is not None:
                raise sink.problem from None
            return _Result({}, describe(problem, files), 0.0)
        if sink.problem is not None:  # a broker may have caught it
            raise sink.problem
        sink.finish()
        return _Result(sink.rows, None, report.cpu)


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


def describe(problem: BaseException, files: Path) -> str:
    """An error in one line, with the innermost place in roamcast or in the protocol from outside, which is stored in
    `files`. The same error reads the same on every machine: no addresses of objects, no names of folders."""
    message = re.sub(rf"{re.escape(str(files))}/\w+/", "", _ADDRESS.sub("0x…", str(problem)))
    if isinstance(problem, ProtocolRaised):
        return message
    places = []
    for frame in traceback.extract_tb(problem.__traceback__):
        path = Path(frame.filename)
        for root in (_PACKAGE, files):
            if path.is_relative_to(root):
                name = path.relative_to(root).as_posix() if root == _PACKAGE else path.name
                places.append(f"{name}:{frame.lineno} in {frame.name}")
    return f"{type(problem).__name__}: {message} ({places[-1]})"
