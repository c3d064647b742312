"""The facts of a campaign as Spark sees them.

The rules this file owns:

* Only facts that the manifest lists are read: only successful runs, only files with rows, with explicit schemas.
  Anything else in the folder is ignored.
* A table with few rows per run that several measures use is computed once: `CampaignFacts.once`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from roamcast.campaign.folder.layout import check_version, read_commit
from roamcast.campaign.folder.schemas import FACTS_ARROW, MANIFEST_ARROW, OK, RUNS_ARROW
from roamcast.campaign.folder.stored import Stored
from roamcast.errors import RoamcastError
from roamcast.storage import Store

OUR_RUNS: Final = pa.schema(
    [
        *(MANIFEST_ARROW.field(name) for name in ("run", "simulated", "warmup", "nodes", "protocol")),
        RUNS_ARROW.field("scenario"),
        ("cooldown", pa.float64()),
    ]
)


class CampaignFacts:
    """The facts of the successful runs."""

    def __init__(self, spark: SparkSession, out: Path, store: Store) -> None:
        """`store` has the facts, `out` the tables of runs."""
        self._spark: Final = spark
        self._store: Final = store.absolute()
        self._stored: Final = Stored(self._store)
        check_version(out)
        planned, manifest = read_commit(out)
        scenarios = dict(zip(*(planned[name].to_pylist() for name in ("run", "scenario")), strict=True))
        ok = [row | {"scenario": scenarios[row["run"]]} for row in manifest.to_pylist() if row["status"] == OK]
        self._rows = {row["run"]: dict(row["rows"] or ()) for row in ok}
        described = [row | {"cooldown": msgspec.json.decode(row["scenario"], type=_Cooldown).cooldown} for row in ok]
        self.runs: Final = spark.createDataFrame(pa.Table.from_pylist(described, OUR_RUNS), from_arrow_schema(OUR_RUNS))
        """One row per run: run, simulated (s), warmup (s), nodes, protocol, scenario (JSON), cooldown (s)."""
        self._tables: dict[str, DataFrame] = {}
        self._settled: dict[Callable[[CampaignFacts], DataFrame], DataFrame] = {}

    def table(self, name: str) -> DataFrame:
        """The facts of one table, all runs together, with a first column `run`."""
        if name not in self._tables:
            runs = sorted(run for run, rows in self._rows.items() if rows.get(name))
            schema = self._schema(name, runs)
            self._tables[name] = self._read(name, runs, schema) if runs else self._spark.createDataFrame([], schema)
        return self._tables[name]

    def _read(self, name: str, runs: list[str], schema: StructType) -> DataFrame:
        names = self._stored.files(name, runs)
        try:
            rows = self._spark.read.schema(schema).parquet(*map(self._store.spark_uri, names))
        except Exception as problem:  # from Py4J or from Spark Connect
            if self._store.local is not None or not _without_scheme(problem):
                raise
            rows = self._read_here(names, schema)
        if self._stored.others(name, runs):  # joined, as so many names would be too long a condition
            wanted = self._spark.createDataFrame(pa.table({"run": runs}))
            rows = rows.join(F.broadcast(wanted), "run", "left_semi")
        return rows

    def _read_here(self, names: list[str], schema: StructType) -> DataFrame:
        """Reads with Arrow, in Python tasks: for a store that this Spark has no file system for."""
        store, columns = self._store, schema.names

        def each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for name in batch["name"].to_pylist():
                    yield from store.read_table(name, columns=columns, use_threads=False).to_batches()

        files = self._spark.createDataFrame(pa.table({"name": names}))
        return files.repartition(len(names)).mapInArrow(each, schema)

    def _schema(self, name: str, runs: list[str]) -> StructType:
        """The schema of a table that every run has, or of a protocol's own table, as its runs have written it."""
        if name in FACTS_ARROW:
            return from_arrow_schema(FACTS_ARROW[name])
        if not runs:
            raise RoamcastError(f"there is no table {name!r}: no run has recorded such facts, and not every run would")
        return from_arrow_schema(self._stored.schema(name, runs[0]))

    def once(self, transform: Callable[["CampaignFacts"], DataFrame]) -> DataFrame:
        """The result of `transform`, computed on first use and collected: it must be small, a few rows per run.

        Spark would otherwise compute it again for every measure that reads it.
        """
        if transform not in self._settled:
            frame = transform(self)
            self._settled[transform] = self._spark.createDataFrame(frame.toArrow(), frame.schema)
        return self._settled[transform]


class _Cooldown(msgspec.Struct):
    """The part of a scenario that is read here."""

    cooldown: float = 0.0


def _without_scheme(problem: Exception) -> bool:
    """Whether Spark says that it has no code for a scheme (the jars of hadoop-aws, for `s3a:`)."""
    return any(word in str(problem) for word in ("No FileSystem for scheme", "S3AFileSystem not found"))
