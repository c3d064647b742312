"""The facts of a campaign as Spark sees them, and what a measure is.

The rules this file owns:

* Facts are read by the manifest: only runs that are ok, only the files that it says have rows, with explicit schemas.
  What else lies in the folder is not looked at.
* A table with few rows a run, on which several measures stand, is computed once: `Facts.once`.
"""

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it
from pyspark.sql.types import StructType

from roamcast.campaign.folder import MANIFEST_FILE, RUNS_FILE, check_commit, check_version, facts_file
from roamcast.campaign.measured import About
from roamcast.campaign.schemas import MANIFEST_ARROW, OK, RUNS_ARROW
from roamcast.errors import RoamcastError
from roamcast.pipeline.schemas import FACTS, spark_schema
from roamcast.pipeline.storage import spark_uri

OUR_RUNS: Final = pa.schema(
    [
        *(MANIFEST_ARROW.field(name) for name in ("run", "simulated", "warmup", "nodes", "protocol")),
        RUNS_ARROW.field("scenario"),
    ]
)

_LISTED_HERE: Final = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_NAMED: Final = 500
"""Files that are named one by one; of more, the folder is read."""


class Facts:
    """The facts of the runs that are ok."""

    def __init__(self, spark: SparkSession, out: Path, only: Collection[str] | None = None) -> None:
        """`only` these runs; none: all."""
        self.spark = spark
        self.out = out.resolve()
        check_version(self.out)
        manifest = [
            row
            for row in _read(self.out / MANIFEST_FILE, MANIFEST_ARROW).to_pylist()
            if only is None or row["run"] in only
        ]
        self._rows = {row["run"]: dict(row["rows"] or ()) for row in manifest if row["status"] == OK}
        self.planned: Final = _read(self.out / RUNS_FILE, RUNS_ARROW)
        """RUNS, whatever became of them."""
        check_commit(self.out, self.planned)
        scenarios = dict(zip(*(self.planned[name].to_pylist() for name in ("run", "scenario")), strict=True))
        described = [row | {"scenario": scenarios.get(row["run"])} for row in manifest if row["status"] == OK]
        self.runs: Final = spark.createDataFrame(pa.Table.from_pylist(described, OUR_RUNS), spark_schema(OUR_RUNS))
        """A row a run: run, simulated (s), warmup (s), nodes, protocol, scenario (JSON)."""
        self._tables: dict[str, DataFrame] = {}
        self._settled: dict[Callable[[Facts], DataFrame], DataFrame] = {}

    def __len__(self) -> int:
        """How many runs there are."""
        return len(self._rows)

    @property
    def partitions(self) -> int:
        """How many parts Spark makes of a shuffle: a measure of how much it does at once, over Spark Connect too."""
        return int(self.spark.conf.get("spark.sql.shuffle.partitions") or 1)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._rows)

    def having(self, table: str) -> frozenset[str]:
        """The runs that have rows of that table."""
        return frozenset(run for run, rows in self._rows.items() if rows.get(table))

    def of(self, runs: frozenset[str], frame: DataFrame) -> DataFrame:
        """The rows of a frame that belong to these runs. A join: ten thousand names are no condition."""
        return frame if runs >= self._rows.keys() else self._among(runs, frame)

    def _among(self, runs: frozenset[str], frame: DataFrame) -> DataFrame:
        names = self.spark.createDataFrame(pa.table({"run": pa.array(sorted(runs), pa.string())}))
        return frame.join(F.broadcast(names), "run", "left_semi")

    def rows(self, table: str) -> int:
        """How many rows of that table there are in all."""
        return sum(rows.get(table, 0) for rows in self._rows.values())

    def table(self, name: str) -> DataFrame:
        """The facts of one table of `trace.TABLES`, all runs together, with a first column `run`."""
        if name not in self._tables:
            runs = self.having(name)
            reader = self.spark.read.schema(self._schema(name)) if runs else None
            if reader is None:
                self._tables[name] = self.spark.createDataFrame([], self._schema(name))
            elif len(runs) > _NAMED:
                folder = self.out / "facts" / name
                everything = reader.parquet(spark_uri(folder))
                alone = {entry.name for entry in os.scandir(folder)} == {f"{run}.parquet" for run in runs}
                self._tables[name] = everything if alone else self._among(runs, everything)
            else:
                paths = [spark_uri(facts_file(self.out, name, run)) for run in sorted(runs)]
                with _setting(self.spark, _LISTED_HERE, str(len(paths))):  # else a Spark job with a task a file
                    self._tables[name] = reader.parquet(*paths)
        return self._tables[name]

    def _schema(self, name: str) -> StructType:
        """Of a table that every run has; or of one that a protocol has declared, as its runs have written it."""
        if name in FACTS:
            return FACTS[name]
        having = self.having(name)
        if not having:
            raise RoamcastError(f"there is no table {name!r}: no run has recorded such facts, and not every run would")
        return spark_schema(pq.read_schema(facts_file(self.out, name, min(having))))

    def once(self, transform: Callable[["Facts"], DataFrame]) -> DataFrame:
        """The result of `transform`, computed when first asked for and collected: it must be small, a few rows a run.

        Spark would otherwise compute it again for every measure that reads it.
        """
        if transform not in self._settled:
            frame = transform(self)
            self._settled[transform] = self.spark.createDataFrame(frame.toArrow(), frame.schema)
        return self._settled[transform]


@dataclass(frozen=True)
class Measure:
    """One number about a run. `docs/measures.md` shows how to write one."""

    about: About
    function: Callable[[Facts], DataFrame]
    """Gives rows (run, value): at most one a run. A run without one, or with null, has no value."""

    @property
    def name(self) -> str:
        return self.about.name


def _read(path: Path, schema: pa.Schema) -> pa.Table:
    try:
        return pq.read_table(path, schema=schema, partitioning=None)
    except (OSError, pa.ArrowException) as problem:
        raise RoamcastError(f"{path} cannot be read: {problem}") from None


@contextmanager
def _setting(spark: SparkSession, key: str, value: Any) -> Iterator[None]:  # noqa: ANN401  # as Spark takes it
    before = spark.conf.get(key)
    spark.conf.set(key, value)
    try:
        yield
    finally:
        spark.conf.set(key, str(before))
