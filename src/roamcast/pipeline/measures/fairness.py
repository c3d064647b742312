"""Fairness: how evenly the time on the air is spread over the nodes.

From the totals of the whole run, warm-up included, without background traffic. A node that sent nothing counts: being
spared is a part of the spread. Undefined if nobody sent anything.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.campaign.measured import About
from roamcast.facts.schema import BACKGROUND_ROLE
from roamcast.pipeline.measures.facts import Facts, Measure


def airtimes(facts: Facts) -> DataFrame:
    """(run, nodes, total, squares, most): sums over the nodes that sent. For `Facts.once`."""
    by_node = (
        facts.table("transmit")
        .where(F.col("role") != BACKGROUND_ROLE)
        .groupBy("run", "node")
        .agg(F.sum("airtime").cast("double").alias("airtime"))
    )
    sums = by_node.groupBy("run").agg(
        F.sum("airtime").alias("total"),
        F.sum(F.col("airtime") * F.col("airtime")).alias("squares"),
        F.max("airtime").alias("most"),
    )
    return facts.runs.select("run", "nodes").join(sums, "run", "inner").where(F.col("total") > 0)


def _jain(facts: Facts) -> DataFrame:
    index = F.col("total") * F.col("total") / (F.col("nodes") * F.col("squares"))
    return facts.once(airtimes).select("run", index.alias("value"))


def _most(facts: Facts) -> DataFrame:
    return facts.once(airtimes).select("run", (F.col("most") / F.col("total")).alias("value"))


MEASURES: Final = (
    Measure(
        About(
            name="airtime_jain",
            title="evenness of airtime (Jain's index)",
            description="Jain's index of the nodes' airtime: 1 if all send alike, 1/nodes if one sends everything",
            share=True,
            whole=True,
            good="high",
        ),
        _jain,
    ),
    Measure(
        About(
            name="airtime_most",
            title="airtime of the busiest node (share)",
            description="Share of all airtime that the busiest node sends",
            share=True,
            good="low",
        ),
        _most,
    ),
)
