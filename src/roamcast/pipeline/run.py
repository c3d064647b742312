"""A whole campaign in one call: simulate, then measure. What the command line and notebooks use."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from roamcast.analysis.measures.catalogue import CATALOGUE
from roamcast.analysis.measures.measure import read_about
from roamcast.campaign.account import Account
from roamcast.campaign.decide.until import ResultsSoFar, Stopping, first_look, next_look
from roamcast.campaign.define.experiment import wanted_measures
from roamcast.campaign.define.limits import RunLimits
from roamcast.campaign.define.plan import Experiment, Plan, plan
from roamcast.campaign.folder.layout import RUN_MEASURES_FILE
from roamcast.campaign.folder.results import read_results
from roamcast.campaign.folder.survey import settled
from roamcast.campaign.folder.values import has, with_measures
from roamcast.errors import ConfigError
from roamcast.pipeline import measure, session, simulate
from roamcast.statistics.sequential import LEAST


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
    limits: RunLimits = simulate.DEFAULT_LIMITS,
    goal: Stopping | None = None,
    spark: SparkSession | None = None,
    account: Account | None = None,
) -> list[dict[str, Any]]:
    """Simulates the missing runs and measures all; returns the manifest rows of the failed runs.

    The results are in `out`: facts, `measures/summary.parquet` and the rest. An interrupted campaign continues. With a
    goal, points get seeds until they reach it, at most those of the plan. `spark` is an existing session, as in a
    notebook; without one, a session is started and ended here, with `master` and `conf`. `account` gets the time of
    each stage.
    """
    account = account or Account()
    experiments = with_measures(experiments)
    planned, wanted = planned or plan(experiments), wanted_measures(experiments)
    if goal is not None:
        goal.check(wanted or list(CATALOGUE), {variant.name for one in experiments for variant in one.variants})
    with contextlib.ExitStack() as undo:
        started = [] if spark is None else [spark]

        def running() -> SparkSession:
            """The session, started on first use: a campaign with nothing to do needs none."""
            if not started:
                with account.stage("start"):
                    started.append(undo.enter_context(session.session(master, conf)))
            return started[0]

        def run(part: Plan) -> list[dict[str, Any]]:
            before = settled(part, out)
            if before is not None:
                failures = _failures(before)
                if not (failures and retry_failed) and (
                    len(failures) == len(before) or measure.is_current(out, wanted)
                ):
                    return failures
            spark = running()
            with account.stage("simulate"):
                manifest = simulate.simulate(
                    spark, part, out, on_progress, retry_failed, command=command, limits=limits
                )
            failures = _failures(manifest)
            if len(failures) < len(manifest):
                with account.stage("measure"):
                    measure.measure(spark, out, wanted)
            return failures

        if goal is None:
            return run(planned)
        names = measure.chosen(wanted)
        return _until(planned, out, goal, run, lambda part: not retry_failed and has(out, part, names))


def _until(
    planned: Plan,
    out: Path,
    goal: Stopping,
    run: Callable[[Plan], list[dict[str, Any]]],
    is_known: Callable[[Plan], bool],
) -> list[dict[str, Any]]:
    """Looks again and again, with more seeds for the points that have not reached the goal. A continued campaign looks
    again at what it had looked at, and runs nothing for that."""
    places = {(row["experiment"], row["axes"]) for row in planned.rows}
    most = max(len(one.seeds) for one in planned.experiments)
    if most < LEAST:
        raise ConfigError(f"seeds: {most}: adding seeds until something is known needs --seeds of at least {LEAST}")
    seeds, before = dict.fromkeys(places, first_look(most)), dict.fromkeys(places, 0)
    while True:
        part = planned.with_seeds(seeds)
        known = is_known(part)
        failures = [] if known else run(part)
        if not (out / RUN_MEASURES_FILE).is_file():  # every run has failed
            return failures
        results = read_results(out, planned=part.rows)
        so_far = ResultsSoFar(results, read_about(out), seeds, before, most)
        waiting = [place for place in goal.waiting(so_far) if seeds[place] < most]
        before = dict(seeds)
        if not waiting:
            # The tables may have other runs as well, which are left out now.
            return run(part) if known else failures
        seeds |= {place: next_look(seeds[place], most) for place in waiting}


def _failures(manifest: pa.Table) -> list[dict[str, Any]]:
    return [row for row in manifest.select(["run", "status", "error"]).to_pylist() if row["error"]]
