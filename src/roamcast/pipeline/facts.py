"""The facts of a campaign as Spark sees them.

The rules this file owns:

* Only facts that the manifest lists are read: only successful runs, only files with rows, with explicit schemas.
  Anything else in the folder is ignored.
* A table with few rows per run that several measures use is computed once: `Facts.once`.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it
from pyspark.sql.types import StructType

from roamcast.campaign.folder.layout import check_version, read_commit
from roamcast.campaign.folder.schemas import MANIFEST_ARROW, OK, RUNS_ARROW
from roamcast.campaign.folder.stored import Stored
from roamcast.errors import RoamcastError
from roamcast.pipeline.schemas import FACTS, spark_schema
from roamcast.storage import Store

OUR_RUNS: Final = pa.schema(
    [
        *(MANIFEST_ARROW.field(name) for name in ("run", "simulated", "warmup", "nodes", "protocol")),
        RUNS_ARROW.field("scenario"),
        ("cooldown", pa.float64()),
    ]
)

_LISTED_HERE: Final = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_NAMED: Final = 500
"""Up to this many files are named one by one; if there are more, the folder is read."""


class Facts:
    """The facts of the successful runs."""

    def __init__(
        self, spark: SparkSession, out: Path, only: Collection[str] | None = None, store: Store | None = None
    ) -> None:
        """`only` limits the runs; None: all. `store` has the facts, if they are not in `out`."""
        self.spark = spark
        self.out = out.resolve()
        self.store: Final = (store or Store.at(self.out)).absolute()
        self._stored: Final = Stored(self.store)
        check_version(self.out)
        planned, manifest_table = read_commit(self.out)
        self.planned: Final = planned
        """The table RUNS, of all planned runs, successful or not."""
        manifest = [row for row in manifest_table.to_pylist() if only is None or row["run"] in only]
        self._rows = {row["run"]: dict(row["rows"] or ()) for row in manifest if row["status"] == OK}
        scenarios = dict(zip(*(self.planned[name].to_pylist() for name in ("run", "scenario")), strict=True))
        described = [row | _described(scenarios.get(row["run"])) for row in manifest if row["status"] == OK]
        self.runs: Final = spark.createDataFrame(pa.Table.from_pylist(described, OUR_RUNS), spark_schema(OUR_RUNS))
        """One row per run: run, simulated (s), warmup (s), nodes, protocol, scenario (JSON), cooldown (s)."""
        self._tables: dict[str, DataFrame] = {}
        self._settled: dict[Callable[[Facts], DataFrame], DataFrame] = {}

    def __len__(self) -> int:
        """The number of runs."""
        return len(self._rows)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._rows)

    def having(self, table: str) -> frozenset[str]:
        """The runs that have rows in this table."""
        return frozenset(run for run, rows in self._rows.items() if rows.get(table))

    def _among(self, runs: frozenset[str], frame: DataFrame) -> DataFrame:
        # With a schema: Spark Connect infers none if there are no rows.
        names = self.spark.createDataFrame(pa.table({"run": pa.array(sorted(runs), pa.string())}), "run string")
        return frame.join(F.broadcast(names), "run", "left_semi")

    def table(self, name: str) -> DataFrame:
        """The facts of one table of `trace.TABLES`, all runs together, with a first column `run`."""
        if name not in self._tables:
            runs = self.having(name)
            self._tables[name] = self._read(name, runs) if runs else self.spark.createDataFrame([], self._schema(name))
        return self._tables[name]

    def _read(self, name: str, runs: frozenset[str]) -> DataFrame:
        """Reads a table. A folder with nothing else in it is read as a folder: 10,000 names are too many here too."""
        schema = self._schema(name)
        names = self._stored.files(name, runs)
        whole = self.store.sizes(f"facts/{name}").keys() == set(names)
        try:
            if whole or (len(names) > _NAMED and not self._stored.packed):
                rows = self.spark.read.schema(schema).parquet(self.store.spark_uri(f"facts/{name}"))
                return rows if whole and not self._stored.others(name, runs) else self._among(runs, rows)
            paths = [self.store.spark_uri(one) for one in names]
            with _setting(self.spark, _LISTED_HERE, str(len(paths))):  # else a Spark job, one task per file
                rows = self.spark.read.schema(schema).parquet(*paths)
        except Exception as problem:  # from Py4J or from Spark Connect
            if self.store.local is not None or not _without_scheme(problem):
                raise
            rows = self._read_here(names, schema)
        return self._among(runs, rows) if self._stored.others(name, runs) else rows

    def _read_here(self, names: list[str], schema: StructType) -> DataFrame:
        """Reads with Arrow, in Python tasks: for a store that this Spark has no file system for."""
        store, columns = self.store, schema.names

        def each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for name in batch["name"].to_pylist():
                    yield from store.read_table(name, columns=columns, use_threads=False).to_batches()

        files = self.spark.createDataFrame(pa.table({"name": names}))
        return files.repartition(len(names)).mapInArrow(each, schema)

    def _schema(self, name: str) -> StructType:
        """The schema of a table that every run has, or of a protocol's own table, as its runs have written it."""
        if name in FACTS:
            return FACTS[name]
        having = self.having(name)
        if not having:
            raise RoamcastError(f"there is no table {name!r}: no run has recorded such facts, and not every run would")
        return spark_schema(self._stored.schema(name, min(having)))

    def once(self, transform: Callable[["Facts"], DataFrame]) -> DataFrame:
        """The result of `transform`, computed on first use and collected: it must be small, a few rows per run.

        Spark would otherwise compute it again for every measure that reads it.
        """
        if transform not in self._settled:
            frame = transform(self)
            self._settled[transform] = self.spark.createDataFrame(frame.toArrow(), frame.schema)
        return self._settled[transform]


class _Cooldown(msgspec.Struct):
    """The part of a scenario that is read here."""

    cooldown: float = 0.0


def _described(scenario: str | None) -> dict[str, Any]:
    """What a run's scenario adds to its row of the manifest."""
    return {"scenario": scenario, "cooldown": msgspec.json.decode(scenario or "{}", type=_Cooldown).cooldown}


def _without_scheme(problem: Exception) -> bool:
    """Whether Spark says that it has no code for a scheme (the jars of hadoop-aws, for `s3a:`)."""
    return any(word in str(problem) for word in ("No FileSystem for scheme", "S3AFileSystem not found"))


@contextmanager
def _setting(spark: SparkSession, key: str, value: Any) -> Iterator[None]:  # noqa: ANN401  # as Spark takes it
    before = spark.conf.get(key)
    spark.conf.set(key, value)
    try:
        yield
    finally:
        spark.conf.set(key, str(before))
