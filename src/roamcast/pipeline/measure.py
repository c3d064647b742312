"""From facts to numbers: every wanted measure of every run of a campaign, and the statistics over seeds.

The rules this file owns:

* Runs that share a world follow each other in one task, so that what depends on the world is computed once; the tasks
  are about equally long, the longest first. A task opens each table of a run once and calls all wanted families.
* Values that are known are kept and not measured again; new ones are added to them. Only what is missing is measured.
* Everything across runs is computed where Spark has brought together all values of a measure (`statistics.over_seeds`),
  in an order that does not depend on how Spark cuts its partitions.
"""

import heapq
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.analysis.measures.catalogue import CATALOGUE, FAMILIES
from roamcast.analysis.measures.measure import Family, OverAllRuns, Pooled, read_about, write_about
from roamcast.analysis.run import Run, Worlds, world_of
from roamcast.campaign.folder import values
from roamcast.campaign.folder.layout import check_version, read_commit, write_table
from roamcast.campaign.folder.schemas import ACROSS_RUNS_ARROW, OK, PAIRED_ARROW, RUN_MEASURES_ARROW, SUMMARY_ARROW
from roamcast.campaign.folder.stored import Stored, stored_in
from roamcast.campaign.folder.verify import check_facts
from roamcast.errors import RoamcastError
from roamcast.files import write_json
from roamcast.pipeline.facts import CampaignFacts
from roamcast.pipeline.spread import slots, spread
from roamcast.sim.scenario.scenario import Scenario
from roamcast.statistics.over_seeds import PLAN_COLUMNS, described, pooled
from roamcast.storage import Store, fetched

_TASKS_PER_SLOT: Final = 4
"""So that cores that finish early get more work."""
_VALUES_PER_TASK: Final = 500_000
"""Of what is computed across runs: fewer are not worth a task, more need too much memory."""


def measure(spark: SparkSession, out: Path | Store, names: Iterable[str] | None = None) -> None:
    """Measures the runs of a campaign that are ok and writes OUT/measures/{run,summary,paired}.parquet.

    `names` are those of the catalogue; without them, all. What was measured before is kept, and not measured again. The
    facts of a campaign in an object store are read there, and its measures go there.
    """
    store = Store.at(out)
    with fetched(store, returning=["measures"]) as folder:
        _Measuring(spark, folder.resolve(), store.absolute()).run(chosen(names))


def is_current(out: Path, names: Iterable[str] | None = None) -> bool:
    """Whether the folder has these measures of all its runs, so that there is nothing to measure."""
    return values.is_current(out.resolve(), chosen(names))


def chosen(names: Iterable[str] | None) -> list[str]:
    return list(CATALOGUE) if names is None else CATALOGUE.check(names)


class _Measuring:
    """One pass over a campaign's folder."""

    def __init__(self, spark: SparkSession, out: Path, store: Store) -> None:
        check_version(out)
        self._spark, self._out, self._store = spark, out, store
        self._planned, manifest = read_commit(out)
        self._runs = {row["run"]: dict(row["rows"] or ()) for row in manifest.to_pylist() if row["status"] == OK}
        """By run: its tables that have rows, and how many."""

    def run(self, asked: Sequence[str]) -> None:
        names = values.with_parts(asked)
        made, others = values.made_from(self._out, names), values.others(self._out, names, self._runs)
        described, theirs = read_about(self._out), others["measure"].unique().to_pylist()
        about = {name: CATALOGUE[name] for name in names} | {name: described[name] for name in theirs}
        floors = {name: one.floor for name, one in about.items() if one.floor is not None}
        pools = [way for name in names if isinstance(way := CATALOGUE.way(name), Pooled)]
        by_run = pa.concat_tables([self._values(names), others])
        across = self._across_runs(by_run, list(about), pools, floors)

        of_runs, of_pairs = across["run"].is_valid(), across["baseline"].is_valid()
        pooled = across.filter(of_runs).select(["run", "measure", "mean"]).rename_columns(RUN_MEASURES_ARROW.names)
        self._write("run", pa.concat_tables([by_run, pooled]), ["run", "measure"])
        summary = across.filter(pc.invert(pc.or_(of_runs, of_pairs))).select(SUMMARY_ARROW.names)
        self._write("summary", summary, ["experiment", "variant", "point", "measure"])
        paired = across.filter(of_pairs).select(PAIRED_ARROW.names)
        self._write("paired", paired, ["experiment", "point", "variant", "baseline", "measure"])
        write_about(self._out, about.values())
        write_json(self._out / values.MADE_FROM, made)

    def _values(self, names: Sequence[str]) -> pa.Table:
        """RUN_MEASURES, a row for each run and measure that is not pooled: known values, and the missing ones,
        measured now."""
        found = values.known(self._out, names, self._runs)
        families = CATALOGUE.families(names)
        todo: dict[str, tuple[int, ...]] = {}
        shared: dict[tuple[int, ...], tuple[int, ...]] = {}  # most runs lack the same ones: one object for all of them
        for number, family in enumerate(families):
            asked = [one.name for one in family.measures if one.name in names]
            for run in values.lacking(found, asked, self._runs):
                lacks = (*todo.get(run, ()), number)
                todo[run] = shared.setdefault(lacks, lacks)
        over_all = [way for name in names if isinstance(way := CATALOGUE.way(name), OverAllRuns)]
        check_facts(self._out, self._runs if over_all else todo, self._store)
        fresh = [self._of_families(families, todo)] if todo else []
        fresh += [self._over_all(way) for way in over_all]
        for table in fresh:
            found = found.join(table, ["run", "measure"], join_type="left anti")
        every = pa.concat_tables([found, *fresh])
        return every.filter(pc.is_in(every["measure"], pa.array(names, pa.string())))

    def _of_families(self, families: Sequence[Family], todo: Mapping[str, tuple[int, ...]]) -> pa.Table:
        scenarios = dict(zip(*(self._planned[name].to_pylist() for name in ("run", "scenario")), strict=True))
        sizes = {run: sum(self._runs[run].values()) for run in todo}
        tasks = in_tasks({run: scenarios[run] for run in todo}, sizes, _TASKS_PER_SLOT * slots(self._spark))
        work = [
            pa.table(
                {
                    "run": runs,
                    "scenario": [scenarios[run] for run in runs],
                    "tables": [[table for table, count in self._runs[run].items() if count] for run in runs],
                    "families": pa.array((todo[run] for run in runs), pa.list_(pa.int32())),
                }
            )
            for runs in tasks
        ]
        each = partial(_measure_all, self._store, Stored(self._store).stamp, _portable(families))
        return spread(self._spark, work, each, RUN_MEASURES_ARROW)

    def _over_all(self, way: OverAllRuns) -> pa.Table:
        """A row for each run, null if the measure gives none."""
        name, runs = way.measure.name, pa.table({"run": pa.array(sorted(self._runs), pa.string())})
        given = way.function(CampaignFacts(self._spark, self._out, self._store))
        if set(given.columns) != {"run", "value"}:
            raise RoamcastError(f"measure {name!r} must give the columns run and value, not {', '.join(given.columns)}")
        rows = given.select("run", F.lit(name).alias("measure"), F.col("value").cast("double").alias("value"))
        joined = runs.join(rows.toArrow(), "run")
        if joined.num_rows != runs.num_rows:
            raise RoamcastError(f"measure {name!r} must give one value per run: {joined.num_rows} for {len(runs)} runs")
        names = pa.array([name] * len(runs), pa.string())
        return pa.table([joined["run"], names, joined["value"]], schema=RUN_MEASURES_ARROW)

    def _across_runs(
        self, by_run: pa.Table, names: Sequence[str], pools: Sequence[Pooled], floors: Mapping[str, float]
    ) -> pa.Table:
        """ACROSS_RUNS, from all values of all runs. A task has all values of its measures, and a pooled measure is
        computed where its parts are."""
        together = {part: pool.measure.name for pool in pools for part in (pool.part, pool.whole)}
        keys = pa.array([together.get(name, name) for name in names], pa.string()).dictionary_encode()
        tasks = min(len(keys.dictionary), math.ceil((len(by_run) + 1) / _VALUES_PER_TASK))
        task, measures = pa.array(keys.indices.to_numpy() % tasks, pa.int32()), pa.array(names, pa.string())
        # A row without a run for each measure: perhaps no run has a value.
        nobody, nothing = pa.nulls(len(names), pa.string()), pa.nulls(len(names), pa.float64())
        rows = pa.concat_tables([by_run, pa.table([nobody, measures, nothing], schema=RUN_MEASURES_ARROW)])
        of_rows = task.take(pc.index_in(rows["measure"], measures))
        work = [rows.filter(pc.equal(of_rows, number)) for number in range(tasks)]
        plan = self._planned.select(PLAN_COLUMNS)
        if pools:
            same = pa.array(map(without_seed, self._planned["scenario"].to_pylist()), pa.string())
            plan = plan.append_column("same", same.dictionary_encode().indices)
        each = partial(_across_seeds, plan, [(pool.measure.name, pool.part, pool.whole) for pool in pools], floors)
        return spread(self._spark, work, each, ACROSS_RUNS_ARROW)

    def _write(self, name: str, table: pa.Table, order: list[str]) -> None:
        """In an order that does not depend on Spark."""
        (self._out / "measures").mkdir(exist_ok=True)
        ordered = table.sort_by([(column, "ascending") for column in order])
        write_table(self._out / "measures" / f"{name}.parquet", ordered)


def without_seed(scenario: str) -> str:
    """A scenario (JSON) without its seed: what the runs of a point share."""
    whole = msgspec.json.decode(scenario, type=dict[str, Any])
    return msgspec.json.encode({name: whole[name] for name in sorted(whole) if name != "seed"}).decode()


# --- Tasks ----------------------------------------------------------------------------------------------------------


def in_tasks(scenarios: Mapping[str, str], sizes: Mapping[str, int], most: int) -> list[list[str]]:
    """The runs, divided into at most `most` tasks of about equal size, the largest first. Runs of one world stay
    together."""
    worlds: dict[bytes, list[str]] = {}
    for run, scenario in sorted(scenarios.items()):
        worlds.setdefault(world_of(msgspec.json.decode(scenario)), []).append(run)
    units = sorted(((sum(sizes[run] for run in runs), runs) for runs in worlds.values()), reverse=True)
    tasks: list[tuple[int, int, list[str]]] = [(0, number, []) for number in range(min(most, len(units)))]
    for size, runs in units:
        load, number, filled = heapq.heappop(tasks)
        heapq.heappush(tasks, (load + size, number, [*filled, *runs]))
    return [runs for _, _, runs in sorted(tasks, reverse=True)]


def _across_seeds(
    plan: pa.Table,
    pools: Sequence[tuple[str, str, str]],
    floors: Mapping[str, float],
    measured: pa.Table,
) -> pa.Table:
    """The statistics of a task's measures over the seeds; pooled measures are computed first."""
    tables = []
    for pool in pools:
        if pc.is_in(pa.scalar(pool[1]), measured["measure"]).as_py():
            of_runs = pooled(plan, measured, *pool)
            tables.append(of_runs.rename_columns(["run", "measure", "mean"]))
            measured = pa.concat_tables([measured, of_runs])
    tables += described(plan, measured, floors)
    # Each has nulls in the columns of the others.
    return pa.concat_tables([ACROSS_RUNS_ARROW.empty_table(), *tables], promote_options="default")


def _portable(families: Sequence[Family]) -> list[Family | tuple[str, ...]]:
    """The families as they go to tasks: ours by their names, others by value, since a task has no such module."""
    ours = set(FAMILIES)
    for family in families:
        module = sys.modules.get(family.function.__module__)
        if family not in ours and module is not None and module.__spec__ is None:  # of a file
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return [tuple(one.name for one in family.measures) if family in ours else family for family in families]


def _measure_all(store: Store, stamp: str, portable: Sequence[Family | tuple[str, ...]], work: pa.Table) -> pa.Table:
    ours = {tuple(one.name for one in family.measures): family for family in FAMILIES}
    families = [one if isinstance(one, Family) else ours[one] for one in portable]
    stored, worlds = stored_in(store, stamp), Worlds()
    found = []
    for row in work.to_pylist():
        name, scenario = row["run"], msgspec.json.decode(row["scenario"], type=Scenario)
        run = Run(name, scenario, row["tables"], partial(_read, stored, name), worlds)
        found.append(_values_of(run, [families[number] for number in row["families"]]))
    return pa.Table.from_batches(found)


def _read(stored: Stored, run: str, table: str, columns: Sequence[str] | None, dictionaries: Sequence[str]) -> pa.Table:
    return stored.read(table, run, columns, dictionaries)


def _values_of(run: Run, families: Iterable[Family]) -> pa.RecordBatch:
    names: list[str] = []
    numbers: list[float | None] = []
    for family in families:
        declared = [one.name for one in family.measures]
        given = family(run)
        if unknown := sorted(set(given) - set(declared)):
            raise RoamcastError(f"run {run.name}: a family gave a value for {unknown[0]!r}, which it does not declare")
        names += declared
        numbers += [None if (value := given.get(name)) is None else float(value) for name in declared]
    return pa.RecordBatch.from_arrays(
        [pa.array([run.name] * len(names)), pa.array(names), pa.array(numbers, pa.float64())],
        schema=RUN_MEASURES_ARROW,
    )
