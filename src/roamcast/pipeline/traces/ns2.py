"""Movement of ns-2. `roamcast.sim.mobility.ns2` says what is read, and reads it, here as in a scenario.

Where a node is when a command comes depends on all its earlier commands, so those of a node are followed in one place.
"""

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from roamcast.facts.recorder import batch_of
from roamcast.pipeline.traces.samples import Read
from roamcast.pipeline.traces.text import lines, parsed
from roamcast.sim.mobility.base import FOREVER, nanoseconds
from roamcast.sim.mobility.ns2 import Initial, parse, walk
from roamcast.units import SECOND

_SAID: Final = "id string, axis string, t double, x double, y double, speed double"
_POINT: Final = pa.schema(
    [("id", pa.string()), *((name, pa.float64()) for name in "txy"), ("reason", pa.string()), ("line", pa.string())]
)


def read(spark: SparkSession, path: str) -> Read:
    said = parsed(lines(spark, path), _row, _SAID)
    # A node without an initial position is known only here.
    points = said.where("reason is null").groupBy("id").applyInArrow(_way, from_arrow_schema(_POINT))
    refused = said.unionByName(points, allowMissingColumns=True).where("reason is not null").select("reason", "line")
    return Read(points.where("reason is null").select("id", "t", "x", "y"), refused, continuous=True)


def _row(line: str) -> tuple[Any, ...] | None:
    said = parse(line)
    if said is None:
        return None
    if isinstance(said, Initial):
        return said.node, said.axis, None, said.value, None, None
    return said.node, None, said.time, said.x, said.y, said.speed


def _way(said: pa.Table) -> pa.Table:
    """The waypoints of one node."""
    rows = said.sort_by([("order", "ascending")]).to_pylist()
    place = {row["axis"]: row["x"] for row in rows if row["axis"]}
    node = rows[0]["id"]
    points: list[tuple[Any, ...]]
    if place.keys() == {"x", "y"}:
        commands = [(nanoseconds(row["t"]), (row["x"], row["y"]), row["speed"]) for row in rows if not row["axis"]]
        points = [(node, *point, None, None) for point in _points((place["x"], place["y"]), commands)]
    else:
        reason = "its node has no initial position (X_ and Y_)"
        points = [(node, None, None, None, reason, row["line"]) for row in rows]
    return pa.Table.from_batches([batch_of(points, _POINT)])


def _points(first: tuple[float, float], commands: list[Any]) -> Iterator[tuple[float, float, float]]:
    yield 0.0, *first
    for leg in walk(first, commands, None):
        if leg.end < FOREVER:
            yield leg.end / SECOND, leg.x1, leg.y1
