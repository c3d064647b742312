"""Work spread over Spark's tasks: each gets a table, and gives one."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark import SparkContext
from pyspark.errors import PySparkAttributeError
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

Work = Callable[[pa.Table], pa.Table]


def slots(spark: SparkSession) -> int:
    """How many tasks run at a time."""
    context = context_of(spark)
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 1) if context is None else context.defaultParallelism


def spread(spark: SparkSession, tables: Sequence[pa.Table], each: Work, schema: pa.Schema) -> pa.Table:
    """What `each` makes of each table, in a task per table."""
    if (context := context_of(spark)) is not None:
        return pa.concat_tables(context.parallelize(tables, len(tables)).map(each).collect())
    sizes = [len(table) for table in tables]
    rows = pa.concat_tables(tables).append_column(
        "task", pa.array(np.repeat(np.arange(len(tables)), sizes), pa.int32())
    )
    rows = rows.append_column("place", pa.array(range(len(rows)), pa.int64()))
    # In one chunk: with an empty first one, Spark has found no rows at all.
    frame = spark.createDataFrame(rows.combine_chunks()).repartitionById(len(tables), "task")
    return frame.mapInArrow(partial(_of_rows, each), from_arrow_schema(schema)).toArrow().cast(schema)


def context_of(spark: SparkSession) -> SparkContext | None:
    """The context of a classic session; Spark Connect has none.

    It takes tasks as they are. Spark SQL would plan and compile a query, and the first one of a session costs 5 CPU s.
    """
    try:
        return spark.sparkContext
    except PySparkAttributeError:
        return None


def _of_rows(each: Work, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Calls `each` with the rows that Spark SQL gives to a task, in their order."""
    rows = pa.Table.from_batches(batches).sort_by("place")
    yield from each(rows.drop_columns(["task", "place"])).to_batches()
