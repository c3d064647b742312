"""A run or a campaign in one call, from Python: for notebooks and scripts. `import roamcast` gives these names.

The rules this file owns:

* What can be written in a TOML file can be given as keywords or dicts of the same names; it is checked as a file is.
* File names in it are relative to the file that it was read from, or else to the working directory.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from roamcast.analysis.run import Run
from roamcast.analysis.summary import RunSummary, summarise
from roamcast.campaign.define import experiment as experiments
from roamcast.campaign.define.experiment import Experiment, load_experiment
from roamcast.campaign.define.plan import plan
from roamcast.config.fields import put
from roamcast.errors import RoamcastError
from roamcast.facts.sinks import MemorySink
from roamcast.pipeline.tables import Results
from roamcast.sim import run as simulation
from roamcast.sim.scenario.scenario import Scenario, check, read
from roamcast.storage import Store

if TYPE_CHECKING:  # pyspark takes a second to import, and a run does not need it
    from pyspark.sql import SparkSession

__all__ = ["Experiment", "Scenario", "experiment", "load", "run", "run_campaign", "scenario"]

_HERE = Path()


def scenario(file: Path | str | None = None, *, changes: Mapping[str, Any] | None = None, **fields: Any) -> Scenario:  # noqa: ANN401
    """A scenario: read from a TOML file, or from fields as such a file has them.

    `changes` are by full names, such as {"radio.range": 100}. `roamcast scenario --explain` lists the fields.
    """
    return _scenario(file, changes, fields)[0]


def _scenario(
    file: Path | str | None, changes: Mapping[str, Any] | None, fields: Mapping[str, Any]
) -> tuple[Scenario, Path]:
    raw = {**(read(Path(file)) if file is not None else {}), **fields}
    source, folder = ("the scenario", _HERE) if file is None else (str(file), Path(file).parent)
    for name, value in (changes or {}).items():
        put(raw, name, value, source)
    return check(raw, source, folder), folder


class SimulatedRun(Run):
    """A run that was simulated here."""

    @cached_property
    def summary(self) -> RunSummary:
        """Delivery, cost and delay, as `roamcast run` prints them."""
        return summarise(self)

    def __str__(self) -> str:
        return f"{self.scenario}\n{self.summary}"


def run(
    what: Scenario | Path | str,
    *,
    changes: Mapping[str, Any] | None = None,
    on_time: Callable[[int], None] | None = None,
) -> SimulatedRun:
    """Simulates a scenario, or the one in a file, and gives the run: its tables, and what measures say about it.

    `on_time` is called now and then with the simulated time, ns.
    """
    if isinstance(what, Scenario):
        if changes:
            raise RoamcastError("changes need a file: for a Scenario, pass them to `scenario(changes=…)`")
        checked, folder = what, _HERE
    else:
        checked, folder = _scenario(what, changes, {})
    sink = MemorySink()
    simulation.run(checked, sink, folder=folder, progress=on_time)
    return SimulatedRun.over(sink.tables(), checked, name=checked.name)


def experiment(
    file: Path | str | None = None,
    *,
    scenario: Scenario | Mapping[str, Any] | str | None = None,
    axes: Mapping[str, Sequence[Any]] | None = None,
    variants: Sequence[str] | Mapping[str, Mapping[str, Any]] = (),
    **fields: Any,  # noqa: ANN401  # as in a file
) -> Experiment:
    """An experiment: read from a TOML file, or made from a scenario, axes by field and variants.

    `variants` are names of protocols, or settings by name, such as {"sparse": {"nodes": 50}}.
    """
    if file is not None:
        return load_experiment(Path(file))
    raw: dict[str, Any] = {"name": "experiment", **fields}
    raw["scenario"] = msgspec.to_builtins(scenario) if isinstance(scenario, Scenario) else scenario
    raw["axes"] = [{"field": field, "values": list(values)} for field, values in (axes or {}).items()]
    settings = variants if isinstance(variants, Mapping) else {name: {"protocol.name": name} for name in variants}
    raw["variants"] = [{"name": name, "set": dict(fields)} for name, fields in settings.items()]
    return experiments.experiment(raw, "the experiment", _HERE)


def run_campaign(
    what: Experiment | Sequence[Experiment] | Path | str,
    out: Path | str,
    *,
    seeds: int | None = None,
    master: str | None = None,
    spark: "SparkSession | None" = None,
    on_progress: Callable[..., None] | None = None,
) -> Results:
    """Simulates and measures experiments, and gives their results; an interrupted campaign continues.

    `spark` is a session that there is already; otherwise one is started and ended here, for `master`.
    """
    from roamcast.pipeline import run as pipeline  # noqa: PLC0415  # it imports Spark, which takes a second

    if isinstance(what, Path | str):
        what = load_experiment(Path(what))
    several = [what] if isinstance(what, Experiment) else list(what)
    planned = plan(several, seeds)
    failures = pipeline.run_campaign(
        several, Path(out), planned=planned, master=master, spark=spark, on_progress=on_progress
    )
    if failures:
        raise RoamcastError(f"{len(failures)} of {len(planned.distinct)} runs failed: {failures[0]['error']}")
    return load(out, spark)


def load(out: Path | str, spark: "SparkSession | None" = None) -> Results:
    """The results in a campaign's folder, here or in an object store; with a session, as DataFrames too."""
    return Results(Store.at(out), spark)
