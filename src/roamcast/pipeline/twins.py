"""Lab runs and their simulated twins as one campaign: the same measures, side by side.

The rules this file owns:

* A twin is the same scenario with the same seed, so with the same movement and workload, in the simulator. It has the
  ideal medium access, as the lab has, or the scenario's own.
* The folder is a campaign's, with the variants `live` and `simulated`: whatever reads campaigns reads it. A lab run is
  put there as a finished task would have put it; the campaign then finds it done.
* What is done stays done: a lab run counts when all of it is in the folder, and is not repeated when the same is
  started again, unless a node died in it. Its name tells the scenario, not the result: unlike a
  simulation, it would not come out the same again.
"""

import contextlib
import dataclasses
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow.parquet as pq

from roamcast.campaign.define.experiment import experiment
from roamcast.campaign.define.identity import canonical_hash
from roamcast.campaign.define.plan import Experiment, Plan, PlannedRun, plan
from roamcast.campaign.folder.layout import done_file, manifest_row
from roamcast.campaign.folder.packs import read_packs
from roamcast.campaign.folder.run_file import RunFile, read_record
from roamcast.campaign.folder.schemas import FAILED, OK
from roamcast.campaign.folder.survey import look
from roamcast.facts.recorder import Sink
from roamcast.pipeline import simulate
from roamcast.pipeline.measure import measure
from roamcast.pipeline.session import session
from roamcast.pipeline.task import record_of
from roamcast.sim.scenario.scenario import Scenario

LIVE: Final = "live"
SIMULATED: Final = "simulated"
_WAITING: Final = ".live"
"""Where lab runs wait until the campaign has claimed the folder. Hidden, since such a folder counts as empty."""

RunLive = Callable[[Scenario, Sink], Sequence[str]]
"""Runs a scenario in the lab; returns what went wrong. If anything did, the run has failed."""


@dataclass(frozen=True)
class Twins:
    """The runs to do both in the lab and in the simulator."""

    experiment: Experiment
    plan: Plan
    """The plan of both."""

    @property
    def live(self) -> list[PlannedRun]:
        """The lab runs, in the order of points and seeds."""
        runs = {run.run: run for run in self.plan.distinct}
        return [runs[row["run"]] for row in self.plan.rows if row["variant"] == LIVE]

    @property
    def simulated(self) -> Plan:
        """The simulator's part of the plan: the same experiment, without the live rows."""
        rows = [row for row in self.plan.rows if row["variant"] == SIMULATED]
        names = {row["run"] for row in rows}
        distinct = [run for run in self.plan.distinct if run.run in names]
        return Plan(self.plan.experiments, rows, distinct, self.plan.sources)


def twins(
    raw: dict[str, Any],
    source: str,
    folder: Path,
    runs: int,
    *,
    ideal: bool,
    axis: tuple[str, list[Any]] | None = None,
) -> Twins:
    """The campaign of an unchecked scenario, repeated with seeds from its own on; `axis` is a field and its values."""
    first = raw.get("seed", 1)
    spec = {
        "name": "lab",
        "title": f"{raw.get('name', 'unnamed')}: live and simulated",
        "seeds": [first + number for number in range(runs)],
        "baseline": SIMULATED,
        "scenario": raw,
        "axes": [] if axis is None else [{"field": axis[0], "values": axis[1]}],
        "variants": [{"name": LIVE}, {"name": SIMULATED, "set": {"mac.model": "ideal"} if ideal else {}}],
    }
    one = experiment(spec, source, folder)
    planned = plan([one])
    named = {row["run"]: canonical_hash([LIVE, row["run"]])[:16] for row in planned.rows if row["variant"] == LIVE}
    for row in planned.rows:
        if row["variant"] == LIVE:
            row["run"] = named[row["run"]]
    # A twin with the scenario's own medium access had the name that the live row has just lost.
    wanted = {row["run"] for row in planned.rows}
    distinct = [run for run in planned.distinct if run.run in wanted]
    distinct += [dataclasses.replace(run, run=named[run.run]) for run in planned.distinct if run.run in named]
    return Twins(one, Plan(planned.experiments, planned.rows, distinct, planned.sources))


def run_twins(
    wanted: Twins, out: Path, run_live: RunLive, command: str, told: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Does the missing runs of both, the lab's first, and measures all; returns the manifest rows of failed runs."""
    out = out.resolve()
    look(wanted.simulated, out)  # refuses a folder of something else before an hour is wasted
    run_missing(wanted, out, run_live, told)
    told("simulated twins, and measures")
    with session() as spark:
        simulate.simulate(spark, wanted.simulated, out, command=command)
        for run in wanted.live:
            _put_in_place(out, run.run)
        manifest = simulate.simulate(spark, wanted.plan, out, command=command).to_pylist()
        failures = [row for row in manifest if row["status"] == FAILED]
        if len(failures) < len(manifest):
            measure(spark, out, None)
    shutil.rmtree(out / _WAITING, ignore_errors=True)
    return failures


def run_missing(wanted: Twins, out: Path, run_live: RunLive, told: Callable[[str], None]) -> None:
    """Does the missing lab runs."""
    for number, run in enumerate(wanted.live, 1):
        if _is_done(out, run.run):
            told(f"live run {number} of {len(wanted.live)} is done already")
            continue
        told(f"live run {number} of {len(wanted.live)}")
        _live(run, out, run_live)


def _is_done(out: Path, run: str) -> bool:
    records = (read_record(done_file(out, run)), read_record(_waiting(out, run)))
    return any(done["row"]["status"] == OK for done in records if done) or any(
        run in one.runs for one in read_packs(out).values()
    )


def _waiting(out: Path, run: str) -> Path:
    return out / _WAITING / f"{run}.run"


def _live(run: PlannedRun, out: Path, run_live: RunLive) -> None:
    """Does one lab run, in the folder where it waits; it is done when its file has its final name."""
    place = _waiting(out, run.run)
    draft = place.with_suffix(".draft")
    draft.parent.mkdir(parents=True, exist_ok=True)
    scenario = msgspec.json.decode(run.scenario, type=Scenario)
    started, cpu = time.time(), time.process_time()
    with contextlib.closing(RunFile(draft)) as facts:
        problems = run_live(scenario, facts)
        error, rows = "; ".join(problems) or None, {} if problems else facts.rows
        row = manifest_row(run.run, scenario, error, rows, facts.digest)
        facts.finish(record_of(run, row, started, time.process_time() - cpu, 0.0))
    draft.replace(place)


def _put_in_place(out: Path, run: str) -> None:
    """Moves a run's file into place as a task does, with one rename."""
    with contextlib.suppress(FileNotFoundError):  # it is in place already
        _waiting(out, run).replace(done_file(out, run))


def side_by_side(out: Path) -> dict[str, dict[str, dict[str, dict[str, Any]]]]:
    """By point (JSON of its axes, in their order), measure and variant: rows of `measures/summary.parquet`."""
    found: dict[str, dict[str, dict[str, dict[str, Any]]]] = {}
    for row in pq.read_table(out / "measures" / "summary.parquet").sort_by("point").to_pylist():
        found.setdefault(row["axes"], {}).setdefault(row["measure"], {})[row["variant"]] = row
    return found
