"""Measures that need a run's order or its graph: computed run by run, in tasks that read the run's own files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.campaign.stored import stored_in
from roamcast.facts.schema import TABLES
from roamcast.pipeline.measures.facts import Facts
from roamcast.pipeline.schemas import spark_schema
from roamcast.storage import Store
from roamcast.units import SECOND

Work = Callable[[str, int, int, int, str], dict[str, Any] | list[dict[str, Any]]]
"""From a run, its warm-up and its end (ns), its number of nodes and its scenario (JSON) to columns by name; or to rows
of them."""

_MORE_TASKS: Final = 2
"""How many times as many tasks as a shuffle of Spark has, so that cores that finish early get more work."""


def of_runs(
    facts: Facts,
    runs: frozenset[str],
    work: Work,
    figures: tuple[str, ...],
    *,
    together: Mapping[str, str] | None = None,
) -> DataFrame:
    """(run, figures): one row per run. Runs with the same value in `together` follow each other in one task, so that
    `work` can keep what they share."""
    schema = pa.schema([("run", pa.string()), *((figure, pa.float64()) for figure in figures)])
    return rows_of_runs(facts, runs, work, schema, together=together)


def rows_of_runs(
    facts: Facts, runs: frozenset[str], work: Work, schema: pa.Schema, *, together: Mapping[str, str] | None = None
) -> DataFrame:
    """The same with columns of any types; the first of the schema is `run`."""
    if not runs:
        return facts.spark.createDataFrame([], spark_schema(schema))
    rows = facts.of(runs, bounds(facts))
    tasks = min(len(runs), _MORE_TASKS * facts.partitions)
    if together is None:
        rows = rows.repartition(tasks)
    else:
        shared = facts.spark.createDataFrame(
            [(run, together[run]) for run in sorted(runs)], "run string, shared string"
        )
        rows = rows.join(F.broadcast(shared), "run", "inner").repartition(tasks, "shared")
        rows = rows.sortWithinPartitions("shared", "run").drop("shared")
    return rows.mapInArrow(partial(_each, work, schema), spark_schema(schema))


def bounds(facts: Facts) -> DataFrame:
    """(run, start, end, nodes, scenario): the measured time starts after the warm-up; times in ns."""
    start, end = (F.round(F.col(name) * SECOND).cast("long") for name in ("warmup", "simulated"))
    return facts.runs.select("run", start.alias("start"), end.alias("end"), "nodes", "scenario")


def _each(work: Work, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        found = ((row["run"], work(*row.values())) for row in batch.to_pylist())
        rows = [
            {"run": run, **each} for run, given in found for each in (given if isinstance(given, list) else [given])
        ]
        yield pa.RecordBatch.from_pylist(rows, schema)


@dataclass(frozen=True)
class Files:
    """Where the tables of runs are; a table that the manifest does not list has no rows."""

    store: Store
    having: Mapping[str, frozenset[str]]
    stamp: str = ""
    """The stamp of packed facts."""

    @classmethod
    def of(cls, facts: Facts, *tables: str) -> "Files":
        return cls(facts.store, {table: facts.having(table) for table in tables}, facts.stamp)

    def rows(
        self, table: str, run: str, columns: Sequence[str] | None = None, dictionaries: Sequence[str] = ()
    ) -> pa.Table:
        """One table of one run; `dictionaries` are columns to read as dictionaries."""
        if run not in self.having[table]:
            empty = TABLES[table].empty_table()
            return empty if columns is None else empty.select(list(columns))
        return stored_in(self.store, self.stamp).read(table, run, columns, dictionaries)

    def read(self, run: str) -> dict[str, pa.Table]:
        """All these tables of one run."""
        return {table: self.rows(table, run) for table in self.having}
