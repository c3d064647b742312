"""Merges spans of time that belong together ("gaps and islands"), with one sort by pair and time."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it


def merged(spans: DataFrame, slack: int = 0) -> DataFrame:
    """(a, b, start, end): spans of a pair that overlap, touch, or are no more than `slack` apart are one."""
    order = Window.partitionBy("a", "b").orderBy("start", "end")
    so_far = F.max("end").over(order.rowsBetween(Window.unboundedPreceding, -1))
    new = F.coalesce(F.col("start") > so_far + slack, F.lit(True)).cast("int")
    islands = F.sum("new").over(order.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    numbered = spans.withColumn("new", new).withColumn("island", islands)
    ends = numbered.groupBy("a", "b", "island").agg(F.min("start").alias("start"), F.max("end").alias("end"))
    return ends.select("a", "b", "start", "end")
