"""A whole campaign in one call: simulate, then measure. What the command line and notebooks use."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from roamcast.campaign.experiment import check_measures, wanted_measures
from roamcast.campaign.limits import Limits
from roamcast.campaign.plan import Experiment, Plan, plan
from roamcast.campaign.sequential import LEAST
from roamcast.campaign.until import Stopping, first_look, next_look
from roamcast.errors import ConfigError
from roamcast.pipeline import measures, session, simulate


def run_campaign(
    experiments: Sequence[Experiment],
    out: Path,
    *,
    planned: Plan | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    retry_failed: bool = False,
    command: str = "",
    on_progress: Callable[..., None] | None = None,
    limits: Limits = simulate.DEFAULT_LIMITS,
    goal: Stopping | None = None,
    spark: SparkSession | None = None,
) -> list[dict[str, Any]]:
    """Simulates the missing runs and measures all; returns the manifest rows of the failed runs.

    The results are in `out`: facts, `measures/summary.parquet` and the rest. An interrupted campaign continues. With a
    goal, points get seeds until they reach it, at most those of the plan. `spark` is an existing session, as in a
    notebook; without one, a session is started and ended here, with `master` and `conf`.
    """
    experiments = measures.with_names(experiments)
    check_measures(experiments, measures.MEASURES)
    planned, wanted = planned or plan(experiments), wanted_measures(experiments)
    if goal is not None:
        goal.check(wanted or list(measures.MEASURES))
    with contextlib.ExitStack() as undo:
        started = [] if spark is None else [spark]

        def running() -> SparkSession:
            """The session, started on first use: a campaign with nothing to do needs none."""
            if not started:
                started.append(undo.enter_context(session.session(master, conf)))
            return started[0]

        def run(part: Plan) -> list[dict[str, Any]]:
            before = simulate.settled(part, out)
            if before is not None:
                failures = _failures(before)
                if not (failures and retry_failed) and (
                    len(failures) == len(before) or measures.is_current(out, wanted)
                ):
                    return failures
            manifest = simulate.simulate(
                running(), part, out, on_progress, retry_failed, command=command, limits=limits
            )
            failures = _failures(manifest)
            if len(failures) < len(manifest):
                measures.measure(running(), out, wanted)
            return failures

        return run(planned) if goal is None else _until(planned, out, goal, run)


def _until(
    planned: Plan, out: Path, goal: Stopping, run: Callable[[Plan], list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Looks again and again, with more seeds for the points that have not reached the goal."""
    places = {(row["experiment"], row["axes"]) for row in planned.rows}
    most = max(len(one["seeds"]) for one in planned.experiments)
    if most < LEAST:
        raise ConfigError(f"seeds: {most}: adding seeds until something is known takes {LEAST} or more at the most")
    seeds, before = dict.fromkeys(places, first_look(most)), dict.fromkeys(places, 0)
    while True:
        failures = run(planned.with_seeds(seeds))
        if not (out / "measures" / "run.parquet").is_file():  # every run has failed
            return failures
        waiting = [place for place in goal.waiting(out, seeds, before, most) if seeds[place] < most]
        before = dict(seeds)
        if not waiting:
            return failures
        seeds |= {place: next_look(seeds[place], most) for place in waiting}


def _failures(manifest: pa.Table) -> list[dict[str, Any]]:
    return [row for row in manifest.select(["run", "status", "error"]).to_pylist() if row["error"]]
