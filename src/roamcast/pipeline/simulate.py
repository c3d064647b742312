"""From a plan to facts: one Spark task per run, the longest first, in a folder that can be continued.

Short runs share a task. When all runs are done, further tasks pack their files (`campaign.folder.packs`).

`campaign.folder.survey` has which runs are done already, `campaign.folder.claim` how the folder is taken and written,
`task` has what happens inside a task.
"""

import concurrent.futures
import contextlib
import math
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark import Accumulator, AccumulatorParam, SparkContext
from pyspark.sql import SparkSession

from roamcast.campaign.define.limits import RunLimits
from roamcast.campaign.define.plan import CampaignError, Plan, PlannedRun
from roamcast.campaign.folder.claim import TEMPORARY, claimed, clear, token_in, write_tables
from roamcast.campaign.folder.layout import done_file, write_plan
from roamcast.campaign.folder.packs import in_packs, pack
from roamcast.campaign.folder.run_file import Damaged
from roamcast.campaign.folder.schemas import FAILED, RUNS_ARROW
from roamcast.campaign.folder.survey import look
from roamcast.campaign.progress import OnProgress, State, time_left
from roamcast.files import writing
from roamcast.pipeline import SIMULATES
from roamcast.pipeline.spread import context_of
from roamcast.pipeline.task import BLOCKED, TaskReport, cannot_write, perform_all
from roamcast.protocols.catalogue import CATALOGUE

_KEPT: Final = "what is done is kept: start the campaign again to go on"
DEFAULT_LIMITS: Final = RunLimits()
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
    limits: RunLimits = DEFAULT_LIMITS,
) -> pa.Table:
    """Simulates the missing runs of the plan, and returns the manifest. `command` is how a person would start it;
    `limits` apply to each run."""
    out = out.resolve()
    with writing(out), claimed(plan, out, command):
        survey = look(plan, out)
        if retry_failed:
            for run in survey.failed:
                done_file(out, run).unlink()
        settled = {**survey.ok, **({} if retry_failed else survey.failed)}
        todo = [run for run in plan.distinct if run.run not in settled]
        if todo or survey.waiting:
            # A cluster's executors may still be working when this raises: what they write then is right, or discarded.
            with token_in(out) as token:
                if todo:
                    plan.sources.store(out)
                    write_plan(out, pa.Table.from_pylist(plan.rows, RUNS_ARROW))
                    _SparkJob(classic_context(spark), plan, todo, settled, on_progress).run(out, token, limits)
                survey = look(plan, out)
                _pack(classic_context(spark), out, token, survey.waiting)
        return write_tables(plan, out, survey)


def classic_context(spark: SparkSession) -> SparkContext:
    """The context of a classic session. Spark Connect has none, and cannot run one task per run in a given order."""
    context = context_of(spark)
    if context is None:
        raise CampaignError(
            "simulating needs a classic Spark session, and this is one of Spark Connect: give --master, or simulate "
            "elsewhere; measuring works over Spark Connect too"
        )
    return context


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


class _Gathered(AccumulatorParam[list[TaskReport]]):
    """Collects the outcomes of tasks as Spark receives them. A task that Spark repeats may report twice."""

    def zero(self, value: list[TaskReport]) -> list[TaskReport]:
        return []

    def addInPlace(self, value1: list[TaskReport], value2: list[TaskReport]) -> list[TaskReport]:  # noqa: N802  # Spark's name
        value1.extend(value2)
        return value1


def _task(
    out: str, token: str, limits: RunLimits, outcomes: Accumulator[list[TaskReport]], runs: list[PlannedRun]
) -> None:
    outcomes.add(perform_all(runs, Path(out), token, limits))


def in_tasks(todo: Sequence[PlannedRun], slots: int) -> list[list[PlannedRun]]:
    """The runs in order, divided into tasks; many short runs of our own protocols share tasks."""
    most = min(_MOST, len(todo) // (_TASKS_PER_SLOT * slots))
    tasks: list[list[PlannedRun]] = []
    together = math.inf
    for run in todo:
        ours = run.protocol in CATALOGUE
        together += run.estimate
        if not ours or together > _TOGETHER or len(tasks[-1]) >= most:
            tasks.append([])
            together = run.estimate if ours else math.inf
        tasks[-1].append(run)
    return tasks


class _SparkJob:
    """The Spark job, and the watch over it."""

    def __init__(
        self,
        context: SparkContext,
        plan: Plan,
        todo: list[PlannedRun],
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

    def run(self, out: Path, token: str, limits: RunLimits) -> None:
        # Spark starts its workers' parent with it: those that only measure need no simulator.
        self._context.environment[SIMULATES] = "1"
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
        return cannot_write(out, problem)
    finally:
        clear(attempt)
    return ""


def _first_line(problem: Exception) -> str:
    if isinstance(problem, Py4JJavaError):
        return str(problem.java_exception.getMessage()).partition("\n")[0]
    return str(problem).partition("\n")[0] or "its JVM is gone"
