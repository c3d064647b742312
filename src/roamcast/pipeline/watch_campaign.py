"""A campaign that is at work, or was: how many of its runs are done, and what they say so far.

The rule this file owns: a run counts once, by its name. Whether its file or its pack is seen first, and how often,
makes no difference; only a failed run that was tried again is replaced.
"""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from roamcast.analysis.measures.catalogue import CATALOGUE
from roamcast.analysis.run import Worlds
from roamcast.campaign.folder.finished import FinishedRuns
from roamcast.campaign.folder.layout import read_campaign, read_plan
from roamcast.campaign.folder.packs import read_packs
from roamcast.campaign.folder.schemas import FAILED, OK, RUN_MEASURES_ARROW
from roamcast.errors import RoamcastError
from roamcast.pipeline.measure import in_tasks
from roamcast.pipeline.spread import slots, spread
from roamcast.pipeline.watch import File, Snapshot, Tables
from roamcast.sim.scenario.scenario import Scenario
from roamcast.statistics.over_seeds import PLAN_COLUMNS, described

MEASURES: Final = ("delivery", "airtime_per_delivery", "delay_mean")
_RUNS: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("run", "status", "error")),
        ("ended", pa.float64()),
        *((name, pa.float64()) for name in MEASURES),
    ]
)
_NOT_PLANNED: Final = "not planned"
"""The status of a run that is there, but that the plan did not have when it was seen."""


class CampaignWatched:
    """A campaign's folder. It knows the table `runs`, of _RUNS."""

    pattern = "*.{run,json}"

    def __init__(self, out: Path) -> None:
        self.out: Final = out.resolve()
        self.campaign: Final = read_campaign(self.out)
        self.folders: Sequence[Path] = [self.out / "done"]
        if not self.folders[0].is_dir():
            raise RoamcastError(f"{out}: is a copy of a finished campaign: `roamcast report {out}` shows it")

    def absorb(self, spark: SparkSession, known: Tables, files: Sequence[File]) -> Tables:
        runs = known.get("runs", _RUNS.empty_table())
        statuses = dict(zip(runs["run"].to_pylist(), runs["status"].to_pylist(), strict=True))
        wanted = {file.path.stem for file in files if file.path.suffix == ".run" and file.path.stem not in statuses}
        packs = {file.path.stem for file in files if file.path.suffix == ".json"}
        for name, pack in read_packs(self.out).items() if packs else ():
            wanted |= {run for run in pack.runs if name in packs and statuses.get(run) != OK}
        wanted |= {run for run, status in statuses.items() if status == _NOT_PLANNED}
        plan = read_plan(self.out)
        scenarios = dict(zip(plan["run"].to_pylist(), plan["scenario"].to_pylist(), strict=True))
        unknown = [{"run": run, "status": _NOT_PLANNED} for run in sorted(wanted - scenarios.keys())]
        fresh = self._measured(spark, {run: scenarios[run] for run in sorted(wanted & scenarios.keys())})
        fresh = pa.concat_tables([fresh, pa.Table.from_pylist(unknown, _RUNS)])
        others = runs.filter(pc.invert(pc.is_in(runs["run"], fresh["run"])))
        return {"runs": pa.concat_tables([others, fresh]).combine_chunks()}

    def _measured(self, spark: SparkSession, scenarios: dict[str, str]) -> pa.Table:
        """The runs of these scenarios that are there, in Spark's tasks."""
        if not scenarios:
            return _RUNS.empty_table()
        tasks = in_tasks(scenarios, dict.fromkeys(scenarios, 1), 4 * slots(spark))
        work = [pa.table({"run": runs, "scenario": [scenarios[run] for run in runs]}) for runs in tasks]
        return spread(spark, work, partial(_measure_all, self.out), _RUNS)

    def snapshot(self, known: Tables, now: float, looked: float) -> Snapshot:
        runs, plan = known.get("runs", _RUNS.empty_table()), read_plan(self.out)
        ours = runs.filter(pc.is_in(runs["run"], plan["run"].combine_chunks()))
        ok, failed = (ours.filter(pc.field("status") == status) for status in (OK, FAILED))
        planned, latest = len(plan["run"].unique()), pc.max(ours["ended"]).as_py()
        return {
            "watched": "campaign",
            "folder": str(self.out),
            "time": now,
            "runs": {
                "planned": planned,
                "done": ok.num_rows,
                "failed": failed.num_rows,
                "to_do": planned - ok.num_rows - failed.num_rows,
                "seconds_since_latest": None if latest is None else max(0.0, now - latest),
            },
            "errors": sorted(set(failed["error"].drop_null().to_pylist())),
            "points": _points(plan, ok),
        }


def _points(plan: pa.Table, ok: pa.Table) -> list[dict[str, Any]]:
    """Every planned variant and point, in the order of the plan, with its measures over the seeds that are done."""
    columns = [
        pa.table([ok["run"], pa.repeat(name, ok.num_rows), ok[name]], schema=RUN_MEASURES_ARROW) for name in MEASURES
    ]
    points: dict[tuple[str, str, int], dict[str, Any]] = {}
    done = set(ok["run"].to_pylist())
    for row in plan.select(PLAN_COLUMNS).to_pylist():
        first = {"experiment": row["experiment"], "variant": row["variant"], "axes": json.loads(row["axes"])}
        point = points.setdefault(
            (row["experiment"], row["variant"], row["point"]), {**first, "seeds": 0, "seeds_done": 0}
        )
        point["seeds"] += 1
        point["seeds_done"] += row["run"] in done
    if ok.num_rows:
        for table in described(plan.select(PLAN_COLUMNS), pa.concat_tables(columns), {}):
            for row in table.filter(table["baseline"].is_null()).to_pylist():
                measured = {name: row[name] for name in ("n", "mean", "low", "high")}
                points[row["experiment"], row["variant"], row["point"]][row["measure"]] = measured
    return list(points.values())


def _measure_all(out: Path, work: pa.Table) -> pa.Table:
    finished, worlds = FinishedRuns(out), Worlds()
    rows = []
    for row in work.to_pylist():
        try:
            rows.append(_row(finished, row["run"], row["scenario"], worlds))
        except FileNotFoundError:  # it was packed at this moment
            finished = FinishedRuns(out)
            rows.append(_row(finished, row["run"], row["scenario"], worlds))
    return pa.Table.from_pylist([row for row in rows if row is not None], _RUNS)


def _row(finished: FinishedRuns, name: str, scenario: str, worlds: Worlds) -> dict[str, Any] | None:
    opened = finished.open(name, msgspec.json.decode(scenario, type=Scenario), worlds)
    if opened is None:
        return None
    record, run = opened
    row = {"run": name, "status": record["row"]["status"], "error": record["row"]["error"], "ended": record["ended"]}
    if row["status"] == OK:
        row |= CATALOGUE.values(run, MEASURES)
    return row
