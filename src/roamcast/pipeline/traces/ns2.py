"""Movement of ns-2, as `setdest`, BonnMotion, SUMO's exporter and many others write it.

    $node_(0) set X_ 12.5                            where node 0 is at first; Y_ likewise; Z_ is ignored
    $ns_ at 10.0 "$node_(0) setdest 50.0 60.0 1.5"   at 10 s it leaves for (50, 60) at 1.5 m/s

A `setdest` before the last goal is reached starts from where the node is then; speed 0 stops it; a fourth number (z) is
ignored. Commands to `$god_` and to routing agents are skipped. Jumps (`at … set X_ …`) are refused: a leg has a speed.
Where a node is when a command comes depends on all its earlier commands, so they are folded in order, in one expression
per node.
"""

from typing import Final

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.pipeline.traces.samples import Read
from roamcast.pipeline.traces.text import apart, lines, number

_PLACE: Final = r"^\$node_\((\w+)\)\s+set\s+([XYZ])_\s+(\S+)$"
_SETDEST: Final = r'^\$ns_\s+at\s+(\S+)\s+"\$node_\((\w+)\)\s+setdest\s+(\S+)\s+(\S+)\s+([^\s"]+)(?:\s+[^\s"]+)?\s*"$'
_SKIPPED: Final = r'^(\$god_\s|set\s|\$ns_\s+at\s+\S+\s+"\s*\$god_\s)|RoutingAgent|activate'
_JUMP: Final = r'^\$ns_\s+at\s+\S+\s+"\$node_\(\w+\)\s+set\s'
_POINT: Final = "struct<t: double, x: double, y: double>"


def read(spark: SparkSession, path: str) -> Read:
    text = lines(spark, path).where(~F.col("line").rlike(_SKIPPED))

    def of(pattern: str, group: int) -> Column:
        return F.regexp_extract("line", pattern, group)

    command, place = F.col("line").rlike(_SETDEST), F.col("line").rlike(_PLACE)
    parsed = text.where(~(place & (of(_PLACE, 2) == "Z"))).select(
        "line",
        F.when(command, of(_SETDEST, 2)).when(place, of(_PLACE, 1)).alias("id"),
        F.when(command, number(of(_SETDEST, 1))).when(place, F.lit(-1.0)).alias("t"),
        F.when(command, number(of(_SETDEST, 3))).when(place & (of(_PLACE, 2) == "X"), number(of(_PLACE, 3))).alias("x"),
        F.when(command, number(of(_SETDEST, 4))).when(place & (of(_PLACE, 2) == "Y"), number(of(_PLACE, 3))).alias("y"),
        F.when(command, number(of(_SETDEST, 5))).when(place, F.lit(0.0)).alias("speed"),
        F.when(F.col("line").rlike(_JUMP), None).otherwise(F.lit(True)).alias("steady"),
        F.when(place | (number(of(_SETDEST, 3)).isNotNull() & number(of(_SETDEST, 4)).isNotNull()), True).alias("goal"),
    )
    needed = {
        "steady": "a jump: a node cannot be set elsewhere at a time",
        "id": "expected a first place or a setdest of ns-2",
        "t": "its time is no number",
        "goal": "its goal is no place",
        "speed": "its speed is no number",
    }
    good, refused = apart(parsed, needed, ["id", "t", "x", "y", "speed"])
    order = F.sort_array(F.collect_list(F.when(F.col("t") >= 0, F.struct("t", "x", "y", "speed"))))
    first = [F.max(F.when(F.col("t") < 0, F.col(axis))).alias(axis) for axis in ("x", "y")]
    nodes = good.groupBy("id").agg(*first, order.alias("commands")).where("x is not null and y is not null")
    rows = nodes.select("id", F.explode(F.aggregate("commands", _start(), _obeyed, _ended)).alias("point"))
    return Read(rows.select("id", "point.*"), refused, continuous=True)


def _start() -> Column:
    """The initial state: at the first position, at rest. `points` is the path so far."""
    here = [F.lit(0.0).alias("t"), F.col("x").alias("x"), F.col("y").alias("y")]
    goal = [F.col("x").alias("goal_x"), F.col("y").alias("goal_y"), F.lit(0.0).alias("arrival")]
    return F.struct(*here, *goal, F.array(F.struct(*here)).cast(f"array<{_POINT}>").alias("points"))


def _point(t: Column, x: Column, y: Column) -> Column:
    return F.struct(t.alias("t"), x.alias("x"), y.alias("y"))


def _obeyed(state: Column, command: Column) -> Column:
    """The state after a command: the node has moved on until then, and now changes course."""
    t = command["t"]
    there = state["arrival"] <= t
    part = F.when(there, 1.0).otherwise((t - state["t"]) / (state["arrival"] - state["t"]))
    x, y = (state[axis] + part * (state[f"goal_{axis}"] - state[axis]) for axis in ("x", "y"))
    goes = command["speed"] > 0
    distance = F.hypot(command["x"] - x, command["y"] - y)
    way = F.when(there, F.array(_goal(state), _point(t, x, y))).otherwise(F.array(_point(t, x, y)))
    return F.struct(
        t.alias("t"),
        x.alias("x"),
        y.alias("y"),
        F.when(goes, command["x"]).otherwise(x).alias("goal_x"),
        F.when(goes, command["y"]).otherwise(y).alias("goal_y"),
        F.when(goes, t + distance / command["speed"]).otherwise(t).alias("arrival"),
        F.concat(state["points"], way.cast(f"array<{_POINT}>")).alias("points"),
    )


def _goal(state: Column) -> Column:
    return _point(state["arrival"], state["goal_x"], state["goal_y"])


def _ended(state: Column) -> Column:
    return F.concat(state["points"], F.array(_goal(state)).cast(f"array<{_POINT}>"))
