"""The ONE's external movement and its connection events.

Movement: a header `minTime maxTime minX maxX minY maxY [minZ maxZ]`, then lines `time id x y`, times in s and
coordinates in m. Headers may be wrong, so only the lines count. The ONE's other format, a line of `t,x,y` for each
path, is refused line by line.

Events: `time CONN a b up` or `… down`, perhaps with the name of an interface at the end; prefixes of ids (`n12`) are
kept. Lines of other actions (C, S, DE, A, DR, R) are about messages and are skipped. Both ends may report a
connection, and one may lose it before the other: it lasts until the last of the two does.
"""

from typing import Final

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.pipeline.traces.samples import Read
from roamcast.pipeline.traces.text import apart, lines, number

HEADER: Final = r"^(-?[\d.]+\s+){5}(-?[\d.]+\s+-?[\d.]+\s+)?-?[\d.]+$"
"""Of movement: six numbers or eight."""
_ACTIONS = ("C", "S", "DE", "A", "DR", "R")


def read_movement(spark: SparkSession, path: str) -> Read:
    words = lines(spark, path).where(~F.col("line").rlike(HEADER)).withColumn("word", F.split("line", r"\s+"))
    parsed = words.select(
        "line",
        F.when(F.size("word").between(4, 5), F.get("word", F.lit(1))).alias("id"),
        *(number(F.get("word", F.lit(at))).alias(name) for name, at in (("t", 0), ("x", 2), ("y", 3))),
    )
    needed = {
        "id": "expected time id x y",
        "t": "its time is not a number",
        "x": "x is not a number",
        "y": "y is not a number",
    }
    return apart(parsed, needed)


def read_connections(spark: SparkSession, path: str) -> Read:
    words = lines(spark, path).withColumn("word", F.split("line", r"\s+"))
    words = words.where(~F.get("word", F.lit(1)).isin(*_ACTIONS))
    one, other = (F.get("word", F.lit(at)) for at in (2, 3))
    state = F.lower(F.get("word", F.lit(4)))
    connection = F.get("word", F.lit(1)) == "CONN"
    parsed = words.select(
        "line",
        number(F.get("word", F.lit(0))).alias("t"),
        F.when(connection & (one != other), F.least(one, other)).alias("a"),
        F.when(connection & (one != other), F.greatest(one, other)).alias("b"),
        F.when(state == "up", 1).when(state == "down", -1).alias("change"),
    )
    needed = {
        "t": "its time is not a number",
        "a": "expected time CONN a b up, with two different nodes",
        "change": "expected up or down",
    }
    read = apart(parsed, needed, ("line", "t", "a", "b", "change"))
    good = read.rows.dropDuplicates(["line"]).drop("line")  # one "down" would not end what two equal lines began
    # How many of the two ends see it: 0, 1 or 2. If an up and a down come at the same time, the up goes first.
    order = Window.partitionBy("a", "b").orderBy("t", F.desc("change"))
    seen = F.sum("change").over(order)
    # A "down" without an "up" is of a connection from before the recording; it lowers the floor for those after it.
    floor = F.least(F.lit(0), F.min("seen").over(order))
    counted = good.withColumn("seen", seen).withColumn("up", F.col("seen") - floor)
    turns = counted.withColumn("was", F.coalesce(F.lag("up").over(order), F.lit(0))).where(
        "(was = 0 and up > 0) or (was > 0 and up = 0)"
    )
    last = good.agg(F.max("t").alias("last"))
    spans = (
        turns.withColumn("end", F.lead("t").over(order))
        .where("up > 0")
        .crossJoin(F.broadcast(last))
        .select("a", "b", F.col("t").alias("start"), F.coalesce("end", "last").alias("end"))
    )
    return Read(spans, read.refused)
