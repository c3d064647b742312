"""A whole campaign in one call: simulate, then measure. What the command line and notebooks use."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from roamcast.campaign.experiment import check_measures, wanted_measures
from roamcast.campaign.limits import Limits
from roamcast.campaign.plan import Experiment, Plan, plan
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
) -> list[dict[str, Any]]:
    """Runs what is not done yet and measures all; gives the manifest rows of the runs that failed.

    The results are in `out`: facts, `measures/summary.parquet` and the rest. What was interrupted goes on.
    """
    experiments = measures.with_names(experiments)
    check_measures(experiments, measures.MEASURES)
    planned, wanted = planned or plan(experiments), wanted_measures(experiments)
    before = simulate.settled(planned, out)
    if before is not None:
        failures = _failures(before)
        if not (failures and retry_failed) and (len(failures) == len(before) or measures.is_current(out, wanted)):
            return failures  # nothing to do: no need to start Spark
    with session.session(master, conf) as spark:
        manifest = simulate.simulate(spark, planned, out, on_progress, retry_failed, command=command, limits=limits)
        failures = _failures(manifest)
        if len(failures) < len(manifest):
            measures.measure(spark, out, wanted)
    return failures


def _failures(manifest: pa.Table) -> list[dict[str, Any]]:
    return [row for row in manifest.select(["run", "status", "error"]).to_pylist() if row["error"]]
