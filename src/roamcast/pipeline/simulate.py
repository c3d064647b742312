"""From a plan to facts: one Spark task per run, the longest first, in a folder that can be continued.

Short runs share a task. When all runs are done, further tasks pack their files (`campaign.packs`).

The rules this file owns:

* A folder belongs to one campaign. The same experiments may have more or fewer seeds, points, axes and variants than
  before; other experiments are refused, and so is a folder of anything else.
* Finished runs are kept. Started again, a campaign does the missing runs; failed runs are repeated only on request.
* The manifest is written when every run of the plan is done or has failed, and says nothing that depends on when,
  where or how often they were tried. With it goes the table of runs, so that the two always fit each other. All facts
  of its runs are packed by then, and in the index.

`task` has what happens inside a task.
"""

import concurrent.futures
import contextlib
import errno
import fcntl
import json
import math
import shutil
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark import Accumulator, AccumulatorParam, SparkContext
from pyspark.errors import PySparkAttributeError
from pyspark.sql import SparkSession

from roamcast.campaign.folder import (
    CAMPAIGN_FILE,
    COMMIT,
    MANIFEST_FILE,
    check_version,
    commit,
    done_file,
    write_commit,
)
from roamcast.campaign.limits import Limits
from roamcast.campaign.packs import in_packs, pack, read_packs, write_index
from roamcast.campaign.plan import CampaignError, Plan, Run
from roamcast.campaign.progress import Forecast, OnProgress, State, time_left
from roamcast.campaign.provenance import provenance
from roamcast.campaign.run_file import Damaged
from roamcast.campaign.schemas import FAILED, MANIFEST_ARROW, RUNS_ARROW
from roamcast.campaign.stored import INDEX
from roamcast.facts.schema import FACTS_VERSION
from roamcast.pipeline.task import BLOCKED, TEMPORARY, Outcome, perform_all, read_done
from roamcast.protocols.catalogue import CATALOGUE

_LOCK_FILE: Final = ".lock"
_KEPT: Final = "what is done is kept: start the campaign again to go on"
DEFAULT_LIMITS: Final = Limits()
_INTERVAL: Final = 0.25
"""Seconds between two looks at Spark's progress."""
_PAUSES: Final = 4
"""The pause after a look is at least this many times as long as the look: with 100,000 runs, a look is work."""
_TASKS_PER_SLOT: Final = 4
_MOST: Final = 50
"""Most runs in a task."""
_TOGETHER: Final = 2.0
"""About the most CPU seconds of the runs that share a task; a longer run gets its own."""

T = TypeVar("T")


def simulate(
    spark: SparkSession,
    plan: Plan,
    out: Path,
    on_progress: OnProgress | None = None,
    retry_failed: bool = False,
    *,
    command: str = "",
    limits: Limits = DEFAULT_LIMITS,
) -> pa.Table:
    """Simulates the missing runs of the plan, and returns the manifest. `command` is how a person would start it;
    `limits` apply to each run."""
    out = out.resolve()
    with _writing(out), _claimed(plan, out, command):
        survey = look(plan, out)
        if retry_failed:
            for run in survey.failed:
                done_file(out, run).unlink()
        settled = {**survey.ok, **({} if retry_failed else survey.failed)}
        todo = [run for run in plan.distinct if run.run not in settled]
        if todo or survey.waiting:
            # A cluster's executors may still be working when this raises: what they write then is right, or discarded.
            with _token(out) as token:
                if todo:
                    plan.sources.store(out)
                    _Campaign(context_of(spark), plan, todo, settled, on_progress).run(out, token, limits)
                survey = look(plan, out)
                _pack(context_of(spark), out, token, survey.waiting)
        return _write_tables(plan, out, survey)


# --- The folder -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Survey:
    """What a folder already contains. `ok` and `failed` have the runs' records, by run."""

    ok: Mapping[str, dict[str, Any]]
    failed: Mapping[str, dict[str, Any]]
    waiting: Sequence[str]
    """The runs that are ok and not yet packed."""
    added: Sequence[str]
    """What the plan adds to an earlier plan of the same campaign, as text."""

    def forecast(self, plan: Plan) -> Forecast:
        """Predicts the CPU seconds of runs from the finished ones."""
        return Forecast(plan.distinct, {run: done["cpu"] for run, done in self.ok.items()})


def look(plan: Plan, out: Path) -> Survey:
    """Which of the plan's runs a folder has; it may not exist yet. Refuses a folder that is not this campaign's."""
    out = out.resolve()
    added = _compare(plan, out)
    packed = {run: done for one in read_packs(out).values() for run, done in one.runs.items()}
    found = {run.run: done for run in plan.distinct if (done := packed.get(run.run) or read_done(out, run.run))}
    failed = {run: done for run, done in found.items() if done["row"]["status"] == FAILED}
    ok = {run: done for run, done in found.items() if run not in failed}
    return Survey(ok, failed, [run for run in ok if run not in packed], added)


def _compare(plan: Plan, out: Path) -> list[str]:
    """What the plan adds to the folder's campaign."""
    if out.exists() and not out.is_dir():
        raise CampaignError(f"{out}: is a file, not a folder for a campaign")
    file = out / CAMPAIGN_FILE
    if not file.is_file():
        # A campaign that was killed at its start may have left its lock or a draft: both are hidden files.
        if out.is_dir() and any(not path.name.startswith(".") for path in out.iterdir()):
            raise CampaignError(f"{out}: is not empty and no campaign's folder: {CAMPAIGN_FILE} is missing")
        return []
    check_version(out)
    if (out / INDEX).is_file() and not (out / "done").is_dir():
        raise CampaignError(f"{out}: is a packed copy of a campaign, to be read: only the original can be added to")
    try:
        former = {one["name"]: one for one in json.loads(file.read_bytes())["experiments"]}
    except (ValueError, KeyError, TypeError):
        raise CampaignError(f"{file}: cannot be understood: it is no campaign's, or was cut short") from None
    _check_same(plan, former, out)
    return [addition for one in plan.experiments for addition in _additions(former[one["name"]], one)]


def _check_same(plan: Plan, former: dict[str, Any], out: Path) -> None:
    names = {one["name"] for one in plan.experiments}
    if names != set(former):
        raise CampaignError(
            f"{out}: holds another campaign, of {_listed(former)}, not of {_listed(names)}: choose another folder"
        )
    for one in plan.experiments:
        before = former[one["name"]].get("hashes", {})
        for part, value in one["hashes"].items():
            # Variants, axes and their values may be added or removed; those that stay must not change.
            changed = (
                [
                    f"{part[:-1]} {name!r}"
                    for name in value
                    if before.get(part, {}).get(name, value[name]) != value[name]
                ]
                if isinstance(value, dict)
                else [part] * (before.get(part) != value)
            )
            for what in changed:
                raise CampaignError(
                    f"{out}: holds another campaign: its experiment {one['name']!r} had another {what} than "
                    f"{one['source']} has now: choose another folder"
                )


def _additions(former: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    gains = [("seeds", _new(former["seeds"], now["seeds"]))]
    gains.append(
        ("variants", _new([one["name"] for one in former["variants"]], [one["name"] for one in now["variants"]]))
    )
    before = {axis["label"]: axis["values"] for axis in former["axes"]}
    gains += [(axis["label"], _new(before.get(axis["label"], []), axis["values"])) for axis in now["axes"]]
    for what, values in gains:
        if values:
            yield f"{now['name']}: {what} {', '.join(map(str, values))}"


def _new(before: Sequence[Any], now: Sequence[Any]) -> list[Any]:
    return [value for value in now if value not in before]


def _listed(names: Any) -> str:  # noqa: ANN401  # any collection of names
    return ", ".join(map(repr, sorted(names)))


@contextlib.contextmanager
def _writing(out: Path) -> Iterator[None]:
    """Turns errors of the file system into messages for people."""
    try:
        yield
    except OSError as problem:
        raise CampaignError(f"{out}: cannot be written: {problem.strerror or problem}") from problem


@contextlib.contextmanager
def _claimed(plan: Plan, out: Path, command: str) -> Iterator[None]:
    """Claims the folder for this campaign, and locks it for this process."""
    _compare(plan, out)
    out.mkdir(parents=True, exist_ok=True)
    with (out / _LOCK_FILE).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CampaignError(f"{out}: another process is at work on this campaign") from None
        except OSError as problem:
            if problem.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):  # storage without locks
                raise
        _compare(plan, out)  # again: another process may have been faster
        record = {
            "version": FACTS_VERSION,
            "command": command,
            **provenance(),
            "experiments": plan.experiments,
        }
        with _replacing(out / CAMPAIGN_FILE) as file:
            file.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        for folder in ("done", "facts"):
            (out / folder).mkdir(exist_ok=True)
        yield


@contextlib.contextmanager
def _token(out: Path) -> Iterator[str]:
    """A file that tells executors to go on, and an empty folder for their attempts, removed afterwards."""
    temporary = out / TEMPORARY
    _clear(temporary)
    temporary.mkdir(exist_ok=True)
    token = f"token-{uuid.uuid4().hex}"
    (temporary / token).touch()
    try:
        yield token
    finally:
        _clear(temporary)


def _clear(folder: Path) -> None:
    # What a running attempt writes here at this instant may stay until the next start.
    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _replacing(place: Path) -> Iterator[Path]:
    """A temporary file beside `place`, which replaces it if all goes well."""
    new = place.with_name(f".{place.name}.new")
    yield new
    new.replace(place)


def _write_tables(plan: Plan, out: Path, survey: Survey) -> pa.Table:
    write_index(out, read_packs(out).values())
    found = {**survey.ok, **survey.failed}
    rows = []
    for name in sorted(run.run for run in plan.distinct):
        if name not in found:
            raise CampaignError(f"{out}: run {name} was done and is not there any more: start the campaign again")
        row = found[name]["row"]
        rows.append({**row, "rows": list(row["rows"].items())})
    runs = pa.Table.from_pylist(plan.rows, RUNS_ARROW)
    return write_commit(out, runs, pa.Table.from_pylist(rows, MANIFEST_ARROW))


def settled(plan: Plan, out: Path) -> pa.Table | None:
    """The manifest, if it is this plan's and every run is done or has failed; else None."""
    out = out.resolve()
    survey = look(plan, out)
    missing = len(survey.ok) + len(survey.failed) < len(plan.distinct)
    if missing or survey.waiting or not (out / MANIFEST_FILE).is_file():
        return None
    manifest = pq.read_table(out / MANIFEST_FILE, partitioning=None)
    fits = (manifest.schema.metadata or {}).get(COMMIT) == commit(pa.Table.from_pylist(plan.rows, RUNS_ARROW)).encode()
    return manifest if fits else None


def context_of(spark: SparkSession) -> SparkContext:
    """The context of a classic session. Spark Connect has none, and cannot run one task per run in a given order."""
    try:
        return spark.sparkContext
    except PySparkAttributeError:
        raise CampaignError(
            "simulating needs a classic Spark session, and this is one of Spark Connect: give --master, or simulate "
            "elsewhere; measuring works over Spark Connect too"
        ) from None


# --- Spark ----------------------------------------------------------------------------------------------------------


def _job(
    context: SparkContext, group: str, about: str, parts: list[Any], task: Callable[[Any], T], watch: Callable[[], None]
) -> list[T]:
    """Runs one Spark task per part, and calls `watch` now and then. An interrupt, or an error in `watch`, ends it."""

    def work() -> list[T]:
        context.setJobGroup(group, about, interruptOnCancel=True)
        return context.parallelize(parts, len(parts)).map(task).collect()

    try:
        with concurrent.futures.ThreadPoolExecutor(1) as executor:
            job, pause = executor.submit(work), _INTERVAL
            try:
                while not concurrent.futures.wait([job], pause).done:
                    begin = time.monotonic()
                    watch()
                    pause = max(_INTERVAL, _PAUSES * (time.monotonic() - begin))
            finally:
                if not job.done():
                    with contextlib.suppress(Py4JError, ConnectionError):
                        context.cancelJobGroup(group)
        return job.result()
    except (Py4JError, ConnectionError) as problem:
        raise CampaignError(f"Spark gave up: {_first_line(problem)}\n{_KEPT}") from problem


class _Gathered(AccumulatorParam[list[Outcome]]):
    """Collects the outcomes of tasks as Spark receives them. A task that Spark repeats may report twice."""

    def zero(self, value: list[Outcome]) -> list[Outcome]:
        return []

    def addInPlace(self, value1: list[Outcome], value2: list[Outcome]) -> list[Outcome]:  # noqa: N802  # Spark's name
        value1.extend(value2)
        return value1


def _task(out: str, token: str, limits: Limits, outcomes: Accumulator[list[Outcome]], runs: list[Run]) -> None:
    outcomes.add(perform_all(runs, Path(out), token, limits))


def in_tasks(todo: Sequence[Run], slots: int) -> list[list[Run]]:
    """The runs in order, divided into tasks; many short runs of our own protocols share tasks."""
    most = min(_MOST, len(todo) // (_TASKS_PER_SLOT * slots))
    tasks: list[list[Run]] = []
    together = math.inf
    for run in todo:
        ours = run.protocol in CATALOGUE
        together += run.estimate
        if not ours or together > _TOGETHER or len(tasks[-1]) >= most:
            tasks.append([])
            together = run.estimate if ours else math.inf
        tasks[-1].append(run)
    return tasks


class _Campaign:
    """The Spark job, and the watch over it."""

    def __init__(
        self,
        context: SparkContext,
        plan: Plan,
        todo: list[Run],
        settled: Mapping[str, dict[str, Any]],
        on_progress: OnProgress | None,
    ) -> None:
        self._context = context
        self._total = len(plan.distinct)
        self._todo = todo
        self._before = [done["row"]["status"] for done in settled.values()]
        self._estimates = {run.run: run.estimate for run in todo}
        self._on_progress = on_progress
        self._outcomes = context.accumulator([], _Gathered())
        self._group = f"roamcast-{uuid.uuid4().hex}"
        self._started = time.monotonic()

    def run(self, out: Path, token: str, limits: Limits) -> None:
        tasks = in_tasks(self._todo, self._context.defaultParallelism)
        task = partial(_task, str(out), token, limits, self._outcomes)
        _job(self._context, self._group, f"{len(self._todo)} runs", tasks, task, self._watch)
        self._watch()

    def _watch(self) -> None:
        outcomes = {outcome.run: outcome for outcome in list(self._outcomes.value)}
        for outcome in outcomes.values():
            if outcome.status == BLOCKED:
                raise CampaignError(f"{outcome.problem}\n{_KEPT}")
        if self._on_progress is None:
            return
        statuses = [*self._before, *(outcome.status for outcome in outcomes.values())]
        failed = statuses.count(FAILED)
        worked = sum(self._estimates[run] for run in outcomes) / sum(self._estimates.values())
        elapsed = time.monotonic() - self._started
        took = {run: outcome.seconds for run, outcome in outcomes.items()}
        left = time_left(self._todo, took, elapsed, self._context.defaultParallelism)
        self._on_progress(
            State(self._total, len(statuses) - failed, failed, self._running(), min(worked, 1.0), elapsed, left)
        )

    def _running(self) -> int:
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        # Spark learns of a task's start before it notes the end of the previous one.
        return min(sum(stage.numActiveTasks for stage in stages if stage), self._context.defaultParallelism)


def _pack(context: SparkContext, out: Path, token: str, waiting: Sequence[str]) -> None:
    """Packs the runs that have a file each."""
    packs = in_packs({run: done_file(out, run).stat().st_size for run in waiting})
    if packs:
        group = f"roamcast-{uuid.uuid4().hex}"
        told = _job(context, group, f"{len(packs)} packs", packs, partial(_pack_task, str(out), token), lambda: None)
        for problem in filter(None, told):
            raise CampaignError(f"{problem}\n{_KEPT}")


def _pack_task(folder: str, token: str, runs: list[str]) -> str:
    """Packs some runs; returns the problem, if any."""
    out = Path(folder)
    if not (out / TEMPORARY / token).is_file():  # the campaign has ended
        return f"{out}: is not what it was when the campaign started"
    attempt = out / TEMPORARY / f"pack.{uuid.uuid4().hex}"
    try:
        pack(out, runs, attempt)
    except Damaged as problem:
        return str(problem)
    except OSError as problem:
        return f"{problem.filename or out}: cannot be written on {socket.gethostname()}: {problem.strerror or problem}"
    finally:
        _clear(attempt)
    return ""


def _first_line(problem: Exception) -> str:
    if isinstance(problem, Py4JJavaError):
        return str(problem.java_exception.getMessage()).partition("\n")[0]
    return str(problem).partition("\n")[0] or "its JVM is gone"
