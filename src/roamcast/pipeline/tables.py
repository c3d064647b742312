"""A campaign's folder as tables: every row with its experiment, variant, seed and a column for each axis.

`load(OUT)` gives Arrow tables, which pandas, Polars and DuckDB read; with a Spark session, also DataFrames of any size
and views for SQL. The rules this file owns:

* `results` has one row per planned run and one column per measure; a failed run has nulls.
* Only facts that the manifest lists are read, as for measures (`pipeline.facts`).
* A query sees the campaign's tables by their plain names, whatever views the session has, and leaves those as they are:
  the views made for it have names of their own, and the query gets them as common table expressions.
"""

import contextlib
import hashlib
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from roamcast.campaign.folder.layout import RUN_MEASURES_FILE, check_version, read_commit
from roamcast.campaign.folder.results import axes_as_columns, read_results
from roamcast.campaign.folder.schemas import OK
from roamcast.campaign.folder.stored import Stored
from roamcast.errors import RoamcastError
from roamcast.statistics.over_seeds import PLAN_COLUMNS
from roamcast.storage import Store, fetched

if TYPE_CHECKING:  # pyspark takes a second to import, and small tables do not need it
    from pyspark.sql import DataFrame, SparkSession

_ABOUT_RUNS: Final = ("runs", "results")


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
        return axes_as_columns(self._planned.select(PLAN_COLUMNS))

    @cached_property
    def results(self) -> pa.Table:
        """`runs` with one more column per measure."""
        if not (self.out / RUN_MEASURES_FILE).is_file():
            raise RoamcastError(f"{self.store}: has no measures yet: finish the campaign first")
        return axes_as_columns(read_results(self.out))

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
        named = self._named(whole.column_names)
        # Row numbers are joined, not rows: Arrow's join refuses lists.
        rows, planned = (_numbered(one["run"], name) for one, name in ((whole, "row"), (named, "planned")))
        pairs = rows.join(planned, "run", join_type="inner").sort_by([("row", "ascending"), ("planned", "ascending")])
        joined = named.take(pairs["planned"])
        for name, column in zip(whole.column_names, whole.take(pairs["row"]).columns, strict=True):
            joined = joined if name == "run" else joined.append_column(name, column)
        return joined

    def frame(self, table: str) -> "DataFrame":
        """The same as a Spark DataFrame, of any size; also for `runs` and `results`."""
        from roamcast.pipeline.facts import CampaignFacts  # noqa: PLC0415  # it imports Spark

        spark = self._session()
        if table in _ABOUT_RUNS:
            return spark.createDataFrame(getattr(self, table))
        facts = CampaignFacts(spark, self.out, self.store).table(table)
        return spark.createDataFrame(self._named(facts.columns)).hint("broadcast").join(facts, "run", "inner")

    def _named(self, columns: list[str]) -> pa.Table:
        """`runs`, to stand beside these columns; to Spark, names that differ only in case are the same."""
        taken = {name.lower() for name in columns} - {"run"}
        return self.runs.rename_columns(
            [f"{name}_run" if name.lower() in taken else name for name in self.runs.column_names]
        )

    def sql(self, query: str) -> "DataFrame":
        """The result of an SQL query, which names `runs`, `results` and tables of facts as if they were views."""
        spark, here = self._session(), hashlib.sha256(str(self.store.absolute()).encode()).hexdigest()[:12]
        views = {}
        for name in (*_ABOUT_RUNS, *self.tables):
            if re.search(rf"\b{name}\b", query, re.IGNORECASE):
                views[name] = f"roamcast_{here}_{name}"
                self.frame(name).createOrReplaceTempView(views[name])
        given = ", ".join(f"{name} as (select * from {view})" for name, view in views.items())
        before, after = (f"with {given} (", "\n)") if views else ("", "")
        with self.explained():
            return spark.sql(f"{before}\n{query.strip().rstrip(';')}{after}")

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Makes of Spark's errors about a query a `RoamcastError` with Spark's sentence; also where its result is used,
        since many errors show only then."""
        from pyspark.errors import PySparkException  # noqa: PLC0415  # it imports Spark

        try:
            yield
        except PySparkException as problem:
            said = str(problem).strip()
            sentence = said.partition("\n")[0].partition(" SQLSTATE:")[0]
            if place := re.search(r"line (\d+),? pos(?:ition)? (\d+)", said):
                sentence += f" (line {int(place[1]) - 1}, position {place[2]})"  # the query begins on the second line
            views = ", ".join((*_ABOUT_RUNS, *self.tables))
            raise RoamcastError(f"{sentence}\nthere are the views {views}") from None

    def _session(self) -> "SparkSession":
        if self._spark is None:
            raise RoamcastError("that needs Spark: give load() a session")
        return self._spark


def load(out: Path | str | Store, spark: "SparkSession | None" = None) -> Results:
    """The tables in a campaign's folder, here or in an object store (`s3://…`)."""
    return Results(Store.at(out), spark)


def _numbered(runs: pa.ChunkedArray, name: str) -> pa.Table:
    return pa.table({"run": runs, name: pa.array(range(len(runs)), pa.int64())})
