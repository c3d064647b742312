"""Lab runs and their simulated twins as one campaign: the same measures, side by side.

The rules this file owns:

* A twin is the same scenario with the same seed, so with the same movement and workload, in the simulator. It has the
  ideal medium access, as the lab has, or the scenario's own.
* The folder is a campaign's, with the variants `live` and `simulated`: whatever reads campaigns reads it. A lab run is
  put there as a finished task would have put it; the campaign then finds it done.
* What is done stays done: a lab run counts when all of it is in the folder, and is not repeated when the same is
  started again, unless a node died in it. Its name says of which scenario it is, not what came out: unlike a
  simulation, it would not come out the same again.
"""

import contextlib
import dataclasses
import json
import shutil
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow.parquet as pq

from roamcast.campaign.experiment import experiment
from roamcast.campaign.folder import done_file, facts_file, manifest_row
from roamcast.campaign.identity import canonical_hash
from roamcast.campaign.plan import Experiment, Plan, Run, plan
from roamcast.campaign.schemas import FAILED, OK
from roamcast.facts.recorder import Sink
from roamcast.pipeline import measures, simulate
from roamcast.pipeline.session import session
from roamcast.pipeline.task import RunSink
from roamcast.sim.scenario import Scenario

LIVE: Final = "live"
SIMULATED: Final = "simulated"
_WAITING: Final = ".live"
"""Where lab runs wait, in the folder, until its campaign has claimed it. Hidden: a folder with nothing else is free."""
_DONE: Final = "done.json"

RunLive = Callable[[Scenario, Sink], Sequence[str]]
"""Runs a scenario in the lab; gives what went wrong. If anything did, the run has failed."""


@dataclass(frozen=True)
class Twins:
    """What is to be run twice."""

    experiment: Experiment
    plan: Plan
    """Of both worlds."""

    @property
    def live(self) -> list[Run]:
        """In the order of points and seeds."""
        runs = {run.run: run for run in self.plan.distinct}
        return [runs[row["run"]] for row in self.plan.rows if row["variant"] == LIVE]

    @property
    def simulated(self) -> Plan:
        """What the simulator has to do: the same experiment, without the live rows."""
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
    """Runs what is missing of both, the lab's first, and measures all; gives the manifest rows of those that failed."""
    out = out.resolve()
    simulate.look(wanted.simulated, out)  # refuses a folder of something else before an hour is spent
    run_missing(wanted, out, run_live, told)
    told("simulated twins, and measures")
    with session() as spark:
        simulate.simulate(spark, wanted.simulated, out, command=command)
        for run in wanted.live:
            _put_in_place(out, run.run)
        manifest = simulate.simulate(spark, wanted.plan, out, command=command).to_pylist()
        failures = [row for row in manifest if row["status"] == FAILED]
        if len(failures) < len(manifest):
            measures.measure(spark, out, None)
    shutil.rmtree(out / _WAITING, ignore_errors=True)
    return failures


def run_missing(wanted: Twins, out: Path, run_live: RunLive, told: Callable[[str], None]) -> None:
    """The lab's part."""
    for number, run in enumerate(wanted.live, 1):
        if _is_done(out, run.run):
            told(f"live run {number} of {len(wanted.live)} is done already")
            continue
        told(f"live run {number} of {len(wanted.live)}")
        _live(run, out, run_live)


def _is_done(out: Path, run: str) -> bool:
    for place in (done_file(out, run), out / _WAITING / run / _DONE):
        with contextlib.suppress(FileNotFoundError):
            if json.loads(place.read_bytes())["row"]["status"] == OK:
                return True
    return False


def _live(run: Run, out: Path, run_live: RunLive) -> None:
    """One lab run into the folder where it waits; complete when its last file is there."""
    place = out / _WAITING / run.run
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    scenario = msgspec.json.decode(run.scenario, type=Scenario)
    started, cpu = time.time(), time.process_time()
    with contextlib.closing(RunSink(run.run, place)) as sink:
        problems = run_live(scenario, sink)
        sink.finish()
        rows = {} if problems else sink.rows
    row = manifest_row(run.run, scenario, "; ".join(problems) or None, place, rows)
    record = {
        "row": row,
        "sizes": {table: (place / f"{table}.parquet").stat().st_size for table in rows},
        "cpu": time.process_time() - cpu,
        "simulating": 0.0,
        "started": started,
        "ended": time.time(),
        "host": socket.gethostname(),
    }
    draft = place / "draft.json"
    draft.write_text(json.dumps(record), encoding="utf-8")
    draft.replace(place / _DONE)


def _put_in_place(out: Path, run: str) -> None:
    """As a task does it: the facts, and last of all the file that says they are there."""
    place = out / _WAITING / run
    if not (place / _DONE).is_file():
        return
    for table in json.loads((place / _DONE).read_bytes())["sizes"]:
        facts_file(out, table, run).parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # an earlier attempt at this got as far
            (place / f"{table}.parquet").replace(facts_file(out, table, run))
    (place / _DONE).replace(done_file(out, run))


def side_by_side(out: Path) -> dict[str, dict[str, dict[str, dict[str, Any]]]]:
    """By point (JSON of its axes, in their order), measure and variant: rows of `measures/summary.parquet`."""
    found: dict[str, dict[str, dict[str, dict[str, Any]]]] = {}
    for row in pq.read_table(out / "measures" / "summary.parquet").sort_by("point").to_pylist():
        found.setdefault(row["axes"], {}).setdefault(row["measure"], {})[row["variant"]] = row
    return found
