"""From positions to contacts, at scale: who is within a range of whom, and from when to when.

The rules this file owns:

* Positions are taken at every tick, on the straight line of the leg. Two nodes are in contact at a tick if they are
  both there and at most the range apart. A contact lasts from its first tick until the first at which it is over.
* Pairs are found tick by tick in a grid of cells as wide as the range: a node meets those of its own cell and of four
  neighbours, so that each pair is compared once and nobody is compared with everybody.
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.units import SECOND

_FORWARD: Final = ((0, 0), (1, 0), (-1, 1), (0, 1), (1, 1))
"""The own cell, and those neighbours of which the others are the mirror images."""


def positions(legs: DataFrame, tick: float, instants: DataFrame | None = None) -> DataFrame:
    """(tick, node, x, y): where nodes are at every tick, or at those of `instants` (a column `tick`)."""
    step = round(tick * SECOND)
    first, last = F.ceil(F.col("start") / step), F.ceil(F.col("end") / step) - 1
    rows = legs.where(first <= last).withColumn("tick", F.explode(F.sequence(first, last)))
    if instants is not None:
        rows = rows.join(F.broadcast(instants), "tick", "left_semi")
    part = (F.col("tick") * step - F.col("start")) / (F.col("end") - F.col("start"))
    x, y = (F.col(f"{axis}0") + part * (F.col(f"{axis}1") - F.col(f"{axis}0")) for axis in ("x", "y"))
    return rows.select("tick", "node", x.alias("x"), y.alias("y"))


def pairs(places: DataFrame, reach: float) -> DataFrame:
    """(tick, a, b) with a < b: the nodes within `reach` metres of each other."""
    cells = places.withColumns({"column": F.floor(F.col("x") / reach), "row": F.floor(F.col("y") / reach)})
    offsets = F.array(*(F.struct(F.lit(dx).alias("dx"), F.lit(dy).alias("dy")) for dx, dy in _FORWARD))
    looking = cells.withColumn("offset", F.explode(offsets)).select(
        "tick",
        (F.col("column") + F.col("offset.dx")).alias("column"),
        (F.col("row") + F.col("offset.dy")).alias("row"),
        ((F.col("offset.dx") == 0) & (F.col("offset.dy") == 0)).alias("own"),
        F.col("node").alias("one"),
        F.col("x").alias("x_one"),
        F.col("y").alias("y_one"),
    )
    dx, dy = F.col("x") - F.col("x_one"), F.col("y") - F.col("y_one")
    near = (dx * dx + dy * dy <= reach * reach) & (~F.col("own") | (F.col("one") < F.col("node")))
    return (
        looking.join(cells.hint("shuffle_hash"), ["tick", "column", "row"], "inner")
        .where(near)
        .select("tick", F.least("one", "node").alias("a"), F.greatest("one", "node").alias("b"))
    )


def contacts(met: DataFrame, tick: float) -> DataFrame:
    """(a, b, start, end) in ns: ticks of a pair that follow each other are one contact."""
    step = round(tick * SECOND)
    order = Window.partitionBy("a", "b").orderBy("tick")
    # Ticks minus their number stay the same as long as they follow each other.
    islands = met.withColumn("island", F.col("tick") - F.row_number().over(order))
    return (
        islands.groupBy("a", "b", "island")
        .agg((F.min("tick") * step).alias("start"), ((F.max("tick") + 1) * step).alias("end"))
        .select("a", "b", "start", "end")
    )
