"""What arrives at brokers: bytes, messages, throughput, and which messages carry events.

After the evaluation of extended ODMRP (Yoneki, Bacon 2004, section IV). The rules this file owns:

* **Incoming** is every message or fragment that a node received from the warm-up on, for whichever node, without
  headers. Which node received which frame is only known with `record.frames = true`; without, what needs it is
  undefined.
* A **receiver** is a node that had a subscription. It is *served* if an event of the measured time was delivered to it,
  and *unserved* if none was. Receivers are counted in the order of their numbers: of the first five there are measures
  of their own, as the paper has a bar for each.
* **Throughput** is the number of measured events that were delivered at least once, over the time from the first
  publication to the last delivery.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.campaign.measured import About
from roamcast.pipeline.measures.facts import Facts, Measure
from roamcast.units import SECOND

_LOCAL: Final = "local"
"""How events reach subscriptions on their publisher's own node."""
_IN_REQUEST: Final = "join_event"
_PROTOCOL: Final = "odmrp"
PLACES: Final = (1, 2, 3, 4, 5)
"""The receivers that have measures of their own."""


def _measured(facts: Facts, table: str, time: str) -> DataFrame:
    """The rows of a table from the end of the warm-up on."""
    start = F.round(F.col("warmup") * SECOND).cast("long")
    runs = F.broadcast(facts.runs.select("run", start.alias("_start")))
    return facts.table(table).join(runs, "run", "inner").where(F.col(time) >= F.col("_start")).drop("_start")


def incoming(facts: Facts) -> DataFrame:
    """(run, and means of bytes and messages over all nodes, receivers, served and unserved ones). For `Facts.once`."""
    frames = _measured(facts, "frame", "end").select("run", "frame", "size")
    received = facts.table("reception").where(F.col("outcome") == "received").select("run", "frame", "node")
    by_node = (
        received.join(frames, ["run", "frame"], "inner")
        .groupBy("run", "node")
        .agg(F.sum("size").alias("bytes"), F.count("*").alias("messages"))
    )
    wanting = facts.table("subscribe").select("run", "node").distinct().withColumn("receiver", F.lit(True))
    got = _measured(facts, "deliver", "published").where(F.col("via") != _LOCAL)
    served = got.select("run", "node").distinct().withColumn("served", F.lit(True))
    recorded = facts.of(facts.having("frame"), facts.runs)
    nodes = recorded.select("run", F.explode(F.sequence(F.lit(0), F.col("nodes") - 1)).alias("node"))
    every = (
        nodes.join(by_node, ["run", "node"], "left")
        .join(wanting, ["run", "node"], "left")
        .join(served, ["run", "node"], "left")
        .fillna(0, ["bytes", "messages"])
        .fillna(False, ["receiver", "served"])
    )
    order = Window.partitionBy("run", "receiver").orderBy("node")
    return (
        every.withColumn("place", F.row_number().over(order))
        .groupBy("run")
        .agg(
            F.avg("bytes").alias("bytes"),
            F.avg("messages").alias("messages"),
            _mean_where("receiver").alias("receiver_bytes"),
            _mean_where("receiver", "served").alias("served_bytes"),
            _mean_where("receiver", "not served").alias("unserved_bytes"),
            *(_mean_where("receiver", f"place = {place}").alias(f"receiver_{place}_bytes") for place in PLACES),
        )
    )


def _mean_where(*conditions: str) -> Column:
    return F.avg(F.when(F.expr(" and ".join(conditions)), F.col("bytes")))


def deliveries(facts: Facts) -> DataFrame:
    """(run, events, in_requests, all, first, last) of measured events delivered to other nodes. For `Facts.once`."""
    published = _measured(facts, "publish", "time").groupBy("run").agg(F.min("time").alias("first"))
    arrived = (
        _measured(facts, "deliver", "published")
        .where(F.col("via") != _LOCAL)
        .groupBy("run")
        .agg(
            F.count_distinct("event").alias("events"),
            F.count_if(F.col("via") == _IN_REQUEST).alias("in_requests"),
            F.count("*").alias("all"),
            F.max("time").alias("last"),
        )
    )
    return arrived.join(published, "run", "inner").select("run", "events", "in_requests", "all", "first", "last")


def _mean(name: str, column: str, unit: str, title: str, description: str) -> Measure:
    def function(facts: Facts) -> DataFrame:
        return facts.once(incoming).select("run", F.col(column).alias("value"))

    return Measure(About(name=name, title=title, unit=unit, description=description, good="low"), function)


def _unserved_share(facts: Facts) -> DataFrame:
    return facts.once(incoming).select("run", F.try_divide("unserved_bytes", "served_bytes").alias("value"))


def _throughput(facts: Facts) -> DataFrame:
    span = (F.col("last") - F.col("first")) / SECOND
    return facts.once(deliveries).select("run", F.try_divide(F.col("events"), span).alias("value"))


def _in_requests(facts: Facts) -> DataFrame:
    ours = facts.runs.where(F.col("protocol") == _PROTOCOL).select("run")
    share = F.try_divide(F.col("in_requests"), F.col("all"))
    return facts.once(deliveries).join(ours, "run", "inner").select("run", share.alias("value"))


MEASURES: Final = (
    _mean("bytes_in", "bytes", "B", "incoming (bytes per node)", "Mean number of bytes that a node received"),
    _mean("messages_in", "messages", "", "incoming (messages per node)", "Mean number of messages a node received"),
    _mean(
        "bytes_in_receivers",
        "receiver_bytes",
        "B",
        "incoming (bytes per receiver)",
        "Mean number of bytes that a node with a subscription received",
    ),
    *(
        _mean(
            f"bytes_in_receiver_{place}",
            f"receiver_{place}_bytes",
            "B",
            f"incoming (bytes at receiver {place})",
            f"Bytes that receiver {place} received, in the order of the receivers' numbers",
        )
        for place in PLACES
    ),
    Measure(
        About(
            name="bytes_in_unserved",
            title="incoming at receivers that match nothing (in parts of what the others receive)",
            description="Bytes received by receivers to which nothing was delivered, in parts of those of the others",
            good="low",
        ),
        _unserved_share,
    ),
    Measure(
        About(
            name="throughput",
            title="throughput (events per s)",
            unit="1/s",
            description="Events delivered, over the time from the first publication to the last delivery",
            good="high",
        ),
        _throughput,
    ),
    Measure(
        About(
            name="in_join_requests",
            title="delivered inside Join Requests (share of deliveries)",
            description="Share of the deliveries by ODMRP that came inside a Join Request, not as data",
            share=True,
            whole=True,
        ),
        _in_requests,
    ),
)
