"""A campaign's folder as tables: every row with its experiment, variant, seed and a column for each axis.

`load(OUT)` gives Arrow tables, which pandas, Polars and DuckDB read; with a Spark session, also DataFrames of any size
and views for SQL. The rules this file owns:

* `results` has one row per planned run and one column per measure; a failed run has nulls.
* An axis with the name of another column gets the suffix `_axis`. An axis is numeric if all its values are numbers.
* Only facts that the manifest lists are read, as for measures (`measures.facts`).
"""

import contextlib
import json
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from roamcast.campaign.folder import check_version, read_commit
from roamcast.campaign.schemas import OK
from roamcast.campaign.stored import Stored
from roamcast.errors import RoamcastError
from roamcast.storage import Store, fetched

if TYPE_CHECKING:  # pyspark takes a second to import, and small tables do not need it
    from pyspark.sql import DataFrame, SparkSession

_OWN: Final = ("run", "experiment", "variant", "point", "seed")


class Results:
    """The tables of a campaign; made by `load`."""

    def __init__(self, store: Store, spark: "SparkSession | None" = None) -> None:
        self.store: Final = store
        self._spark = spark
        self._undo = contextlib.ExitStack()
        self.out: Final = self._undo.enter_context(fetched(store))
        """The small tables: the folder itself, or a copy that lasts as long as this object."""
        check_version(self.out)
        self._planned, manifest = read_commit(self.out)
        self._manifest = manifest.to_pylist()

    @cached_property
    def runs(self) -> pa.Table:
        """One row per planned run: run, experiment, variant, point, seed, and the axes."""
        axes = [json.loads(text) for text in self._planned["axes"].to_pylist()]
        labels = list(dict.fromkeys(label for point in axes for label in point))
        columns = {name: self._planned[name] for name in _OWN}
        for label in labels:
            values = [point.get(label) for point in axes]
            numbers = all(
                isinstance(value, int | float) and not isinstance(value, bool) for value in values if value is not None
            )
            name = f"{label}_axis" if label in columns else label
            columns[name] = pa.array(values, pa.float64()) if numbers else pa.array([_text(value) for value in values])
        return pa.table(columns)

    @cached_property
    def results(self) -> pa.Table:
        """`runs` with one more column per measure."""
        file = self.out / "measures" / "run.parquet"
        if not file.is_file():
            raise RoamcastError(f"{self.store}: has no measures yet: finish the campaign first")
        values: dict[str, dict[str, float | None]] = {}
        for row in pq.read_table(file, partitioning=None).to_pylist():
            values.setdefault(row["measure"], {})[row["run"]] = row["value"]
        table, names = self.runs, self._planned["run"].to_pylist()
        for measure, by_run in values.items():
            column = pa.array([by_run.get(run) for run in names], pa.float64())
            table = table.append_column(measure, column)
        return table

    @property
    def tables(self) -> list[str]:
        """The names of the tables of facts in which some run has rows."""
        return sorted({table for row in self._manifest if row["status"] == OK for table, _ in row["rows"] or ()})

    def facts(self, table: str) -> pa.Table:
        """The facts of one table, of all successful runs, in memory; the columns of `runs` come first."""
        runs = [row["run"] for row in self._manifest if row["status"] == OK and dict(row["rows"] or ()).get(table)]
        if not runs:
            raise RoamcastError(f"{self.store}: no run has facts named {table!r}; there are {', '.join(self.tables)}")
        whole = Stored(self.store).read_all(table, runs)
        clash = [name for name in self.runs.column_names if name != "run" and name in whole.column_names]
        named = self.runs.rename_columns([f"{name}_run" if name in clash else name for name in self.runs.column_names])
        joined = whole.join(named, "run", join_type="inner")
        return joined.select([*named.column_names, *(name for name in whole.column_names if name != "run")])

    def frame(self, table: str) -> "DataFrame":
        """The same as a Spark DataFrame, of any size; also for `runs` and `results`."""
        from roamcast.pipeline.measures.facts import Facts  # noqa: PLC0415  # it imports Spark

        spark = self._session()
        if table in ("runs", "results"):
            return spark.createDataFrame(getattr(self, table))
        facts = Facts(spark, self.out, store=self.store).table(table)
        runs = spark.createDataFrame(self.runs)
        for name in set(runs.columns) & set(facts.columns) - {"run"}:
            runs = runs.withColumnRenamed(name, f"{name}_run")
        return runs.hint("broadcast").join(facts, "run", "inner")

    def sql(self, query: str) -> "DataFrame":
        """The result of an SQL query over `runs`, `results` and every table of facts, as views."""
        from pyspark.errors import PySparkException  # noqa: PLC0415  # it imports Spark

        for name in ("runs", "results", *self.tables):
            self.frame(name).createOrReplaceTempView(name)
        try:
            return self._session().sql(query)
        except PySparkException as problem:
            said = str(problem).partition("\n")[0]
            raise RoamcastError(f"{said}\nthere are the views runs, results, {', '.join(self.tables)}") from None

    def _session(self) -> "SparkSession":
        if self._spark is None:
            raise RoamcastError("that needs Spark: give load() a session")
        return self._spark


def load(out: Path | str | Store, spark: "SparkSession | None" = None) -> Results:
    """The tables in a campaign's folder, here or in an object store (`s3://…`)."""
    return Results(Store.at(out), spark)


def _text(value: Any) -> str | None:  # noqa: ANN401  # any value of TOML
    return value if value is None or isinstance(value, str) else json.dumps(value)
