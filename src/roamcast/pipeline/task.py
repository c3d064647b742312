"""Performs the runs of a Spark task, on any machine: each yields its facts, or its error, exactly once.

The rules this file owns, which make a campaign safe to kill at any instant:

* Each attempt at a run writes under its own name, and one rename to `done/<run>.run` makes it count (`run_file`).
* Runs are deterministic, and so is what is written. Two attempts at one run, after a crash or by speculation, write
  the same bytes to the same places, in any order.
* An exception in the run is its result, kept as a row. An error of the folder (a full disk, say) is not: the task
  reports it, and the campaign ends.
* A run that kills its process is tried `TRIES` times and then recorded as failed, with the reason; one that exceeds a
  limit fails at once. Neither holds up the others (`supervise`).
* Short runs of our own protocols may share a process, one after the other: a process costs more than they do. Protocols
  from outside get a new process for each run, since they may leave anything behind in it.
"""

import contextlib
import re
import socket
import time
import traceback
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from roamcast.campaign.define.identity import relocated, run_id
from roamcast.campaign.define.inputs import FILES
from roamcast.campaign.define.limits import RunLimits
from roamcast.campaign.define.plan import PlannedRun
from roamcast.campaign.folder.claim import TEMPORARY
from roamcast.campaign.folder.layout import done_file, manifest_row
from roamcast.campaign.folder.run_file import Record, RunFile, read_record
from roamcast.pipeline.supervise import in_child
from roamcast.sim import run as simulation
from roamcast.sim.raised import ProtocolRaised
from roamcast.sim.scenario.scenario import Scenario

BLOCKED: Final = "blocked"
"""The status of a run that could not be tried; never in a manifest."""
TRIES: Final = 3
"""A run has failed after its process has died this many times."""

_PACKAGE: Final = Path(__file__).parents[1]
_ADDRESS: Final = re.compile(r"\b0x[0-9a-f]+")


class TaskReport(NamedTuple):
    """What a task reports back; the rest is in the folder."""

    run: str
    status: str
    problem: str = ""
    """Why the run is blocked."""
    seconds: float = 0.0
    """Wall-clock time from start to end."""


def perform_all(runs: Sequence[PlannedRun], out: Path, token: str, limits: RunLimits) -> list[TaskReport]:
    """Does the runs that are not done yet, in a process of their own. `token` is the name of a file that the driver has
    put into the folder. It stops if the folder cannot be written; the last outcome then says so.
    """
    if not (out / TEMPORARY / token).is_file():
        return [
            TaskReport(
                runs[0].run,
                BLOCKED,
                f"{out}: {socket.gethostname()} does not see there what was written on the machine that started the "
                "campaign: the folder must be on storage that all of Spark's executors share",
            )
        ]
    found = {run.run: read_record(done_file(out, run.run)) for run in runs}
    outcomes = [TaskReport(run, done["row"]["status"]) for run, done in found.items() if done is not None]
    return outcomes + _attempts([run for run in runs if found[run.run] is None], out, limits)


def _draft(run: PlannedRun, out: Path) -> Path:
    return out / TEMPORARY / f"{run.run}.{uuid.uuid4().hex}"


def _attempts(runs: list[PlannedRun], out: Path, limits: RunLimits) -> list[TaskReport]:
    """Starts one child after the other until none dies: each continues with the run at which the previous one died."""
    outcomes: list[TaskReport] = []
    tries = 0
    while runs:
        drafts = [_draft(run, out) for run in runs]
        ended = in_child([partial(_attempt, run, out, to) for run, to in zip(runs, drafts, strict=True)], limits)
        outcomes += ended.results
        if any(outcome.status == BLOCKED for outcome in ended.results):
            break
        runs = runs[len(ended.results) :]
        if ended.death:
            with contextlib.suppress(OSError):
                drafts[len(ended.results)].unlink(missing_ok=True)
            tries = tries + 1 if not ended.results else 1
            # If other runs came before in the same process, they may be why a limit was exceeded.
            if (ended.limit and not ended.results) or tries == TRIES:
                times = f" ({tries} times of {tries})" if tries > 1 else ""
                outcomes.append(_put_aside(runs[0], out, f"the run {ended.death}{times}"))
                runs, tries = runs[1:], 0
    return outcomes


def _put_aside(run: PlannedRun, out: Path, error: str) -> TaskReport:
    scenario = msgspec.json.decode(run.scenario, type=Scenario)
    return _writing(run, out, lambda draft: _fail(run, scenario, out, draft, error, time.time(), 0.0))


def _attempt(run: PlannedRun, out: Path, draft: Path) -> TaskReport:
    return _writing(run, out, partial(_simulate, run, out), draft)


def _writing(run: PlannedRun, out: Path, work: Callable[[Path], TaskReport], draft: Path | None = None) -> TaskReport:
    """The outcome of `work` on a draft; if the folder cannot be written, an outcome that says so."""
    draft = draft or _draft(run, out)
    try:
        return work(draft)
    except OSError as problem:
        return TaskReport(run.run, BLOCKED, cannot_write(out, problem))
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def cannot_write(out: Path, problem: OSError) -> str:
    return f"{problem.filename or out}: cannot be written on {socket.gethostname()}: {problem.strerror or problem}"


def _simulate(run: PlannedRun, out: Path, draft: Path) -> TaskReport:
    """Simulates the run. Raises `OSError` only for errors of the folder."""
    started, cpu = time.time(), time.process_time()
    scenario = msgspec.json.decode(run.scenario, type=Scenario)
    if run_id(scenario, run.files) != run.run:
        return TaskReport(
            run.run,
            BLOCKED,
            f"{socket.gethostname()} has other sources of roamcast, or of an installed protocol, than the machine "
            "that started the campaign, or they have changed since: have the same everywhere, and start again",
        )
    files = out / FILES
    with contextlib.closing(RunFile(draft)) as facts:
        try:
            report = simulation.run(relocated(scenario, run.files), facts, folder=files)
        except (Exception, SystemExit) as problem:
            if facts.problem is not None:
                raise facts.problem from None
            spent = time.process_time() - cpu
            return _fail(run, scenario, out, draft, describe(problem, files), started, spent)
        if facts.problem is not None:  # a broker may have caught it
            raise facts.problem
        row = manifest_row(run.run, scenario, None, facts.rows, facts.digest)
        facts.finish(record_of(run, row, started, time.process_time() - cpu, report.cpu))
    return _finish(run, out, draft, row["status"], started)


def _fail(
    run: PlannedRun, scenario: Scenario, out: Path, draft: Path, error: str, started: float, cpu: float
) -> TaskReport:
    """Records a failed run: a row with the reason, and no facts."""
    with contextlib.closing(RunFile(draft)) as empty:
        row = manifest_row(run.run, scenario, error, {}, empty.digest)
        empty.finish(record_of(run, row, started, cpu, 0.0))
    return _finish(run, out, draft, row["status"], started)


def _finish(run: PlannedRun, out: Path, draft: Path, status: str, started: float) -> TaskReport:
    draft.replace(done_file(out, run.run))
    return TaskReport(run.run, status, seconds=time.time() - started)


def record_of(run: PlannedRun, row: dict[str, object], started: float, cpu: float, simulating: float) -> Record:
    """A run's record; `cpu` and `simulating` are the CPU seconds of the whole run and of the simulation alone."""
    return {
        "row": row,
        "inputs": [one.place for one in run.files.values()],
        "cpu": cpu,
        "simulating": simulating,
        "started": started,
        "ended": time.time(),
        "host": socket.gethostname(),
    }


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
