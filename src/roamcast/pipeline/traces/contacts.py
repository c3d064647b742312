"""From positions to contacts, at scale: which nodes are within range of each other, and from when to when.

The rules this file owns:

* Two nodes are in contact while both are there and at most the range apart. Between two positions nodes move straight,
  so the moments at which two of them come into range and leave it are roots of a quadratic: exact, not sampled.
* Pairs are found in a grid: legs are cut into pieces that fall into one span of time and are no longer than the range.
  Cells are twice as wide as the range, and a piece belongs to the cell of its middle: the pieces it can meet are in the
  same cell or in one of the eight around it, so that not all pairs need comparing.
* Contacts of a pair that follow each other within `_SAME` are one contact, cut at the edge of a piece.
* The join is divided into enough parts that the pieces of each fit into a small heap.
"""

import math
from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.pipeline.traces.spans import merged
from roamcast.units import SECOND

_FORWARD: Final = ((0, 0), (1, 0), (-1, 1), (0, 1), (1, 1))
"""The cell itself, and four of its neighbours; the other four are their mirror images."""
_SPANS: Final = (SECOND // 10, 600 * SECOND)
"""The shortest and the longest span of time."""
_SAME: Final = 1000
"""Most nanoseconds between two pieces of one contact: the gap that rounding may leave."""
_AT_ONCE: Final = 500_000
"""Legs per part of the join. A leg is one piece or two, in a table of some 200 bytes per piece."""


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
    dx, dy = F.col("x") - F.col("x_one"), F.col("y") - F.col("y_one")
    near = (dx * dx + dy * dy <= reach * reach) & (~F.col("own") | (F.col("node_one") < F.col("node")))
    return (
        _looking(cells, "tick", ("node", "x", "y"))
        .join(cells.hint("shuffle_hash"), ["tick", "column", "row"], "inner")
        .where(near)
        .select("tick", F.least("node_one", "node").alias("a"), F.greatest("node_one", "node").alias("b"))
    )


def _looking(cells: DataFrame, when: str, names: Sequence[str]) -> DataFrame:
    """Each row once for each cell in which another may be near: (when, column, row, own, names with `_one`)."""
    offsets = F.array(*(F.struct(F.lit(dx).alias("dx"), F.lit(dy).alias("dy")) for dx, dy in _FORWARD))
    return cells.withColumn("offset", F.explode(offsets)).select(
        when,
        (F.col("column") + F.col("offset.dx")).alias("column"),
        (F.col("row") + F.col("offset.dy")).alias("row"),
        ((F.col("offset.dx") == 0) & (F.col("offset.dy") == 0)).alias("own"),
        *(F.col(name).alias(f"{name}_one") for name in names),
    )


def contacts(legs: DataFrame, reach: float) -> DataFrame:
    """(a, b, start, end) in ns with a < b: every time for which two nodes are within `reach` metres of each other."""
    count, span = _count_and_span(legs)
    parts = _pieces(legs, reach, span)
    looking = _looking(parts, "span", ("node", "start", "end", "x", "y", "vx", "vy"))
    later, sooner = F.greatest("start", "start_one"), F.least("end", "end_one")
    others = (F.col("node") != F.col("node_one")) & (~F.col("own") | (F.col("node_one") < F.col("node")))
    cell, tasks = ["span", "column", "row"], math.ceil(count / _AT_ONCE)
    if tasks > int(legs.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1):
        looking, parts = (rows.repartition(tasks, *cell) for rows in (looking, parts))
    together = (
        looking.join(parts.hint("shuffle_hash"), cell, "inner")
        .where(others & (later < sooner))
        .withColumns({"from": later, "until": sooner})
    )
    return merged(_crossings(together, reach), _SAME)


def _count_and_span(legs: DataFrame) -> tuple[int, int]:
    """The number of legs, and the length of a span of time, ns: about that of a leg, so that a leg is one piece or
    two."""
    row = legs.agg(F.count("*"), F.mean(F.col("end") - F.col("start"))).first()
    assert row is not None
    least, most = _SPANS
    return row[0], int(min(max(row[1] or 0, least), most))


def _pieces(legs: DataFrame, reach: float, span: int) -> DataFrame:
    """(span, column, row, node, start, end, x, y, vx, vy): parts of legs; x, y at the start, speeds in m/s."""
    seconds = (F.col("end") - F.col("start")) / SECOND
    moving = legs.where("end > start").select(
        "node",
        "start",
        "end",
        "x0",
        "y0",
        ((F.col("x1") - F.col("x0")) / seconds).alias("vx"),
        ((F.col("y1") - F.col("y0")) / seconds).alias("vy"),
    )
    spans = F.sequence(F.floor(F.col("start") / span), F.floor((F.col("end") - 1) / span))
    clipped = moving.withColumn("span", F.explode(spans)).withColumns(
        {"from": F.greatest("start", F.col("span") * span), "until": F.least("end", (F.col("span") + 1) * span)}
    )
    length = F.hypot("vx", "vy") * (F.col("until") - F.col("from")) / SECOND
    count = F.greatest(F.lit(1), F.ceil(length / reach)).cast("long")
    cut = clipped.withColumn("count", count).withColumn("part", F.explode(F.sequence(F.lit(0), F.col("count") - 1)))
    width = F.col("until") - F.col("from")
    edges = {
        "first": F.col("from") + F.floor(width * F.col("part") / F.col("count")),
        "last": F.col("from") + F.floor(width * (F.col("part") + 1) / F.col("count")),
    }
    placed = cut.withColumns(edges).where("first < last")
    since, half = (F.col("first") - F.col("start")) / SECOND, (F.col("last") - F.col("first")) / (2 * SECOND)
    x, y = F.col("x0") + since * F.col("vx"), F.col("y0") + since * F.col("vy")
    return placed.select(
        "span",
        F.floor((x + half * F.col("vx")) / (2 * reach)).alias("column"),
        F.floor((y + half * F.col("vy")) / (2 * reach)).alias("row"),
        "node",
        F.col("first").alias("start"),
        F.col("last").alias("end"),
        x.alias("x"),
        y.alias("y"),
        "vx",
        "vy",
    )


def _crossings(together: DataFrame, reach: float) -> DataFrame:
    """(a, b, start, end): within the time that two pieces share, when |d + v t| <= reach."""

    def at_first(axis: str) -> Column:
        """Their distance along an axis when that time begins, m."""
        one = F.col(f"{axis}_one") + F.col(f"v{axis}_one") * (F.col("from") - F.col("start_one")) / SECOND
        return F.col(axis) + F.col(f"v{axis}") * (F.col("from") - F.col("start")) / SECOND - one

    moved = together.withColumns({"dx": at_first("x"), "dy": at_first("y")}).withColumns(
        {"wx": F.col("vx") - F.col("vx_one"), "wy": F.col("vy") - F.col("vy_one")}
    )
    square = F.col("wx") * F.col("wx") + F.col("wy") * F.col("wy")
    half = F.col("dx") * F.col("wx") + F.col("dy") * F.col("wy")
    rest = F.col("dx") * F.col("dx") + F.col("dy") * F.col("dy") - reach * reach
    solved = moved.select(
        F.least("node", "node_one").alias("a"),
        F.greatest("node", "node_one").alias("b"),
        "from",
        "until",
        square.alias("square"),
        half.alias("half"),
        rest.alias("rest"),
        (half * half - square * rest).alias("under"),
    ).where("square > 0 and under >= 0 or square = 0 and rest <= 0")
    root = F.sqrt("under")
    roots = {"begins": (-F.col("half") - root) / F.col("square"), "ends": (-F.col("half") + root) / F.col("square")}
    lasting = (F.col("until") - F.col("from")) / SECOND

    def moment(name: str) -> Column:
        inside = F.least(F.greatest(roots[name], F.lit(0.0)), lasting)
        return F.col("from") + F.round(inside * SECOND).cast("long")

    apart = F.col("square") > 0
    return solved.select(
        "a",
        "b",
        F.when(apart, moment("begins")).otherwise(F.col("from")).alias("start"),
        F.when(apart, moment("ends")).otherwise(F.col("until")).alias("end"),
    ).where("start < end")
