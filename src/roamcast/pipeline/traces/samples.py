"""The common form of all formats of positions, and the way from there to legs: sorted, split, thinned out, numbered.

All of it is column expressions: no Python function sees a row. The rules this file owns:

* A node moves straight, at constant speed, between two samples of its own. Of two samples at one time the later one by
  (x, y) counts, so that the result does not depend on how Spark cuts a file.
* A node that is silent for longer than `gap` is away in between. A sample with no neighbour in time makes no leg.
* What lies outside the box or the span is cut: a node is away while it is outside.
* Thinning leaves out samples that the straight line between their neighbours misses by `tolerance` at most, in all
  passes together: a pass drops no two neighbours, so it moves the track by no more than its share of the tolerance.
* Nodes are numbered by their sorted ids. Coordinates begin at 0, and so do times.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.earth import metres_per_degree
from roamcast.units import SECOND

_PASSES: Final = 4
"""Passes of thinning: each leaves half of a straight track."""


@dataclass(frozen=True)
class Read:
    """The result of reading a format: the rows that were understood, and the lines that were not."""

    rows: DataFrame
    """Positions: (id, t, x, y), with t in s and x, y in m or, where `geographic`, in degrees east and north; a column
    `part`, if there is one, changes where the recording says itself that there is a gap. Waypoints: the same. Contacts:
    (a, b, start, end) in s."""
    refused: DataFrame
    """(reason, line)."""
    geographic: bool = False
    continuous: bool = False
    """Whether a node is there between any two of its samples, however long: they are waypoints, not reports."""


@dataclass(frozen=True)
class Selection:
    """Which part of the positions to keep."""

    gap: float = 60.0
    """s."""
    tolerance: float = 0.0
    """m."""
    start: float | None = None
    end: float | None = None
    """s, in the file's own time."""
    box: tuple[float, float, float, float] | None = None
    """West, south, east, north, in the file's own coordinates."""


class Cutout(NamedTuple):
    """The bounds of what is kept, in the file's own coordinates and time."""

    west: float
    south: float
    east: float
    north: float
    start: float
    end: float


def kept(read: Read, cut: Selection) -> DataFrame:
    """The samples with a column `inside`. Those outside tell when a node left, so they stay until legs are made."""
    inside = F.lit(True)
    if cut.box is not None:
        west, south, east, north = cut.box
        # Across the date line, west is 179° and east −179°.
        across = (F.col("x") >= west) | (F.col("x") <= east)
        inside &= (F.col("x").between(west, east) if west < east else across) & F.col("y").between(south, north)
    rows = read.rows.withColumn("inside", inside)
    if cut.start is not None:
        rows = rows.where(F.col("t") >= cut.start)
    if cut.end is not None:
        rows = rows.where(F.col("t") <= cut.end)
    return rows


def metres(around: Cutout, geographic: bool) -> tuple[float, float]:
    """The length in metres of a unit of x and of y; of degrees, that at the middle of the box."""
    return metres_per_degree((around.south + around.north) / 2) if geographic else (1.0, 1.0)


def projected(samples: DataFrame, around: Cutout, geographic: bool) -> DataFrame:
    """Metres east and north of the box's corner, and ns since the first sample; `samples` have a column `node`."""
    east, north = metres(around, geographic)
    return samples.select(
        "node",
        F.round((F.col("t") - around.start) * SECOND).cast("long").alias("t"),
        ((F.col("x") - around.west) * east).alias("x"),
        ((F.col("y") - around.south) * north).alias("y"),
        "inside",
        *({"part"} & set(samples.columns)),
    )


def legs(samples: DataFrame, gap: float | None, tolerance: float) -> DataFrame:
    """(node, start, end, x0, y0, x1, y1) of projected samples; `gap` in s, none: a node is always there in between."""
    # All windows below have the same order of the same groups: Spark moves and sorts the rows once.
    of_node = Window.partitionBy("node").orderBy("t", "x", "y")

    def before(column: str) -> Column:
        return F.lag(column).over(of_node)

    def after(column: str) -> Column:
        return F.lead(column).over(of_node)

    points = samples.withColumn("next", after("t")).where("next is null or next > t").drop("next")
    joins = F.col("inside") & before("inside")
    if gap is not None:
        joins &= F.col("t") - before("t") <= round(gap * SECOND)
    if "part" in samples.columns:
        joins &= F.col("part") == before("part")
    if tolerance > 0:
        points = points.withColumn("joins", F.coalesce(joins, F.lit(False))).where("inside")
        joins = F.col("joins")
    for _ in range(_PASSES if tolerance > 0 else 0):
        # What follows a sample that is left out joins the one before it: all three were joined.
        points = (
            points.withColumn("turn", F.row_number().over(of_node) % 2 == 0)
            .withColumn("spare", joins & after("joins") & (_missed(before, after) <= tolerance / _PASSES))
            .where("not (turn and coalesce(spare, false))")
            .drop("turn", "spare")
        )
    ends = {"start": before("t"), "end": F.col("t"), "x0": before("x"), "y0": before("y")}
    ends |= {"x1": F.col("x"), "y1": F.col("y"), "joins": joins}
    return points.select("node", *(end.alias(name) for name, end in ends.items())).where("joins").drop("joins")


def _missed(before: Callable[[str], Column], after: Callable[[str], Column]) -> Column:
    """The distance, m, of a sample from where the line between its neighbours puts the node at that time."""
    part = (F.col("t") - before("t")) / (after("t") - before("t"))
    dx, dy = (F.col(axis) - before(axis) - part * (after(axis) - before(axis)) for axis in ("x", "y"))
    return F.sqrt(dx * dx + dy * dy)
