"""A whole campaign in one call: simulate, then measure. What the command line and notebooks use."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from roamcast.campaign.experiment import check_measures, wanted_measures
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
) -> list[dict[str, Any]]:
    """Runs what is not done yet and measures all; gives the manifest rows of the runs that failed.

    The results are in `out`: facts, `measures/summary.parquet` and the rest. What was interrupted goes on.
    """
    experiments = measures.with_names(experiments)
    check_measures(experiments, measures.MEASURES)
    planned = planned or plan(experiments)
    with session.session(master, conf) as spark:
        manifest = simulate.simulate(spark, planned, out, on_progress, retry_failed, command=command)
        failures = [row for row in manifest.select(["run", "status", "error"]).to_pylist() if row["error"]]
        if len(failures) < len(manifest):
            measures.measure(spark, out, wanted_measures(experiments))
    return failures
