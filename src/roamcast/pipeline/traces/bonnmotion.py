"""BonnMotion's `X.movements` (.gz): a line per node of waypoints `t x y t x y …`, or `t x y z …` in three dimensions.

The id of a node is the number of its line, from 0. Only `X.params` beside it says whether there are two or three
dimensions (`dim=3`); it may be wrong, so a line whose numbers do not form such groups is refused.
"""

import gzip
from pathlib import Path

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.pipeline.traces.samples import Read
from roamcast.pipeline.traces.text import apart, number
from roamcast.storage import local_path


def read(spark: SparkSession, path: str) -> Read:
    width = 3 if _dimensions(local_path(path)) == 2 else 4
    # The number of a line is the order of the file: monotonic ids keep it within a file read in order.
    text = spark.read.text(path).select(F.trim("value").alias("line")).withColumn("at", F.monotonically_increasing_id())
    text = text.where((F.col("line") != "") & ~F.startswith("line", F.lit("#")))
    numbered = text.withColumn("id", (F.row_number().over(Window.orderBy("at")) - 1).cast("string"))
    words = numbered.withColumn("word", F.split("line", r"\s+"))
    fits = F.size("word") % width == 0
    groups = F.when(fits, F.sequence(F.lit(0), F.size("word") - width, F.lit(width))).otherwise(F.array(F.lit(-1)))
    parsed = words.withColumn("first", F.explode(groups)).select(
        "line",
        F.when(F.col("first") >= 0, F.col("id")).alias("id"),
        *(number(F.get("word", F.col("first") + at)).alias(name) for name, at in (("t", 0), ("x", 1), ("y", 2))),
    )
    needed = {
        "id": f"its numbers do not come in groups of {width}",
        **{column: f"{column} is not a number" for column in ("t", "x", "y")},
    }
    return apart(parsed, needed, continuous=True)


def _dimensions(path: Path) -> int:
    stem = path.name.removesuffix(".gz").removesuffix(".movements")
    for name, opened in ((f"{stem}.params", open), (f"{stem}.params.gz", gzip.open)):
        params = path.with_name(name)
        if params.is_file():
            with opened(params, "rt") as file:
                return 3 if "dim=3" in file.read().split() else 2
    return 2
