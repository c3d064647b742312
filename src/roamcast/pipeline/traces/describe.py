"""What is in a trace: how many nodes and for how long, how fast, how well connected, how often they meet.

Speeds are shares of time, not of legs: a leg of an hour counts an hour. Degrees and islands are those of the nodes that
are there, at up to `INSTANTS` instants spread over the trace. Contacts and the times between two contacts of a pair are
counted whole; times between contacts that the ends of the trace cut off have no known length and are left out.
Quantiles are of values rounded to `_DIGITS` digits: Spark keeps one counter for each different value in memory.
"""

from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.pipeline.traces.contacts import contacts, pairs, positions
from roamcast.sim.mobility.trace import TraceDescription, read_about
from roamcast.storage import spark_uri
from roamcast.units import SECOND

INSTANTS: Final = 60
QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
_DIGITS: Final = 4


def legs_of(spark: SparkSession, trace: Path) -> DataFrame:
    read_about(trace, "positions")
    return spark.read.parquet(spark_uri(trace / "legs"))


def links_of(spark: SparkSession, trace: Path) -> DataFrame:
    read_about(trace, "contacts")
    return spark.read.parquet(spark_uri(trace / "links"))


def describe(spark: SparkSession, trace: Path, reach: float | None, tick: float = 1.0) -> dict[str, Any]:
    """The whole description, as JSON values. For positions, connectivity is for a range of `reach` metres, if given."""
    about = read_about(trace)
    found: dict[str, Any] = {"trace": trace.name, "kind": about.kind, "nodes": about.nodes, "span": about.span}
    if about.kind == "positions":
        legs = legs_of(spark, trace)
        found |= {"width": about.width, "height": about.height} | _movement(legs, about)
        if reach is None:
            return found
        instants = _instants(about, tick)
        places = positions(legs, tick, spark.createDataFrame(pa.table({"tick": instants})))
        found |= {"range": reach, "tick": tick, "over_time": _over_time(places, pairs(places, reach), tick)}
        met = contacts(legs, reach).persist()
    else:
        met = links_of(spark, trace).persist()
    try:
        return found | _contacts(met, _marks(about.span))
    finally:
        met.unpersist()


def _movement(legs: DataFrame, about: TraceDescription) -> dict[str, Any]:
    seconds = (F.col("end") - F.col("start")) / SECOND
    speed = F.hypot(F.col("x1") - F.col("x0"), F.col("y1") - F.col("y0")) / seconds
    timed = legs.select("node", seconds.alias("seconds"), speed.alias("speed"))
    row = timed.agg(
        F.sum("seconds").alias("there"),
        F.try_divide(F.sum(F.col("speed") * F.col("seconds")), F.sum("seconds")).alias("mean"),
        F.max("speed").alias("most"),
        F.try_divide(F.sum(F.when(F.col("speed") < 0.1, F.col("seconds")).otherwise(0.0)), F.sum("seconds")).alias(
            "still"
        ),
    ).first()
    assert row is not None
    # Time in hundredths of a second is the weight of a leg's speed.
    weight = F.greatest(F.lit(1), F.round(F.col("seconds") * 100)).cast("long")
    quantiles = timed.agg(_quantiles("speed", weight)).first()
    assert quantiles is not None
    whole = about.nodes * about.span
    return {
        "there": row["there"] / whole if whole else None,
        "speed": {"mean": row["mean"], "most": row["most"], "still": row["still"], **_named(quantiles[0])},
    }


def _quantiles(name: str, weight: Column | int = 1) -> Column:
    """The quantiles of a column of positive numbers, rounded as said above."""
    value = F.col(name)
    unit = F.pow(F.lit(10.0), F.floor(F.log10(value)) - (_DIGITS - 1))
    rounded = F.when(value > 0, F.round(value / unit) * unit).otherwise(value)
    return F.percentile(rounded, F.array(*map(F.lit, QUANTILES)), weight)


def _named(values: list[float] | None) -> dict[str, float | None]:
    return {f"p{100 * q:g}": values[place] if values else None for place, q in enumerate(QUANTILES)}


def _instants(about: TraceDescription, tick: float) -> pa.Array:
    ticks = max(1, int(about.span / tick))
    return pa.array(sorted({int(at) for at in np.linspace(0, ticks - 1, min(INSTANTS, ticks))}), pa.int64())


def _over_time(places: DataFrame, met: DataFrame, tick: float) -> list[dict[str, Any]]:
    """At each instant: the number of nodes there, their mean degree, islands, and the share of the largest island."""
    there = places.select("tick", "node")
    # Both come from the same rows: with one name, Spark could not tell which tick is meant.
    grouped = there.groupBy("tick").cogroup(met.withColumnRenamed("tick", "at").groupBy("at"))
    rows = grouped.applyInArrow(_connected, "tick long, nodes long, degree double, islands long, largest double")
    found = rows.orderBy("tick").toArrow().to_pylist()
    return [{"time": row.pop("tick") * tick, **row} for row in found]


def _connected(there: pa.Table, met: pa.Table) -> pa.Table:
    """One instant: one call for a whole graph."""
    nodes = np.unique(there["node"].to_numpy())
    a, b = (np.searchsorted(nodes, met[name].to_numpy()) for name in ("a", "b"))
    sizes = np.bincount(island_of(len(nodes), a, b), minlength=1)
    sizes = sizes[sizes > 0]
    return pa.table(
        {
            "tick": there["tick"].slice(0, 1),
            "nodes": [len(nodes)],
            "degree": [2 * len(a) / len(nodes)],
            "islands": [len(sizes)],
            "largest": [float(sizes.max()) / len(nodes)],
        }
    )


def island_of(nodes: int, a: "np.ndarray[Any, Any]", b: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """For each node, the smallest node number that it can reach: labels spread over links until nothing changes."""
    label = np.arange(nodes)
    while len(a):
        before = label.copy()
        np.minimum.at(label, a, label[b])
        np.minimum.at(label, b, label[a])
        label = label[label]  # take over what the label's node has found meanwhile
        if np.array_equal(before, label):
            break
    return label


def _marks(span: float) -> list[float]:
    """The seconds at which distributions are given: 0.1, 0.2, 0.5, 1 and so on, up to the trace's span."""
    marks = (digit * 10.0**power for power in range(-1, 9) for digit in (1, 2, 5))
    return [mark for mark in marks if mark <= max(span, 1.0)]


def _contacts(met: DataFrame, marks: list[float]) -> dict[str, Any]:
    order = Window.partitionBy("a", "b").orderBy("start")
    spans = met.select(
        ((F.col("end") - F.col("start")) / SECOND).alias("length"),
        ((F.lead("start").over(order) - F.col("end")) / SECOND).alias("between"),
    )
    row = spans.agg(
        F.count("length").alias("contacts"),
        F.mean("length").alias("length_mean"),
        _quantiles("length").alias("length"),
        F.count("between").alias("again"),
        F.mean("between").alias("between_mean"),
        _quantiles("between").alias("between"),
        *(
            F.array(*(F.count_if(F.col(name) > mark) for mark in marks)).alias(f"{name}_longer")
            for name in ("length", "between")
        ),
    ).first()
    assert row is not None
    met_once = met.select("a", "b").distinct().count()

    def longer(name: str, count: int) -> list[list[float]]:
        """By seconds, the share that lasted longer: a distribution, as it is usually drawn."""
        return [[mark, above / count] for mark, above in zip(marks, row[f"{name}_longer"], strict=True) if count]

    return {
        "contacts": row["contacts"],
        "pairs": met_once,
        "contact": {
            "mean": row["length_mean"],
            **_named(row["length"]),
            "longer": longer("length", row["contacts"]),
        },
        "between_contacts": {
            "count": row["again"],
            "mean": row["between_mean"],
            **_named(row["between"]),
            "longer": longer("between", row["again"]),
        },
    }
