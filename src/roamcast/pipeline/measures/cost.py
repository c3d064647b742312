"""What delivery cost: packets, bits, airtime and duplicates for each pair that was delivered."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.campaign.measured import About
from roamcast.facts.schema import BACKGROUND_ROLE
from roamcast.pipeline.measures.facts import Facts, Measure
from roamcast.pipeline.measures.pairs import pairs
from roamcast.pipeline.measures.traffic import counted
from roamcast.units import SECOND

_MILLISECOND: Final = SECOND // 1000


def costs(facts: Facts) -> DataFrame:
    """(run, delivered, packets, packets_data, bits, airtime (ms), duplicates): null where a run has none. For
    `Facts.once`."""
    outcome = facts.once(pairs)
    carriers = outcome.select("run", F.explode("carriers").alias("kind"), F.lit(True).alias("carrier"))
    sent = (
        facts.once(counted)
        .where(F.col("role") != BACKGROUND_ROLE)
        .join(carriers, ["run", "kind"], "left")
        .groupBy("run")
        .agg(
            F.sum("packets").alias("packets"),
            F.sum(F.when(F.col("carrier"), F.col("packets"))).alias("packets_data"),
            F.sum("bits").alias("bits"),
            (F.sum("airtime") / _MILLISECOND).alias("airtime"),
        )
    )
    noted = facts.table("note").where(F.col("fact") == "duplicate")
    duplicates = noted.groupBy("run").agg(F.sum("count").alias("duplicates"))
    return (
        outcome.join(sent, "run", "left")
        .join(duplicates, "run", "left")
        .select("run", "delivered", "packets", "packets_data", "bits", "airtime", "duplicates")
    )


def _for_each_pair(name: str, unit: str, column: str, title: str, description: str) -> Measure:
    def function(facts: Facts) -> DataFrame:
        ratio = F.try_divide(F.coalesce(column, F.lit(0)), F.col("delivered"))
        return facts.once(costs).select("run", ratio.alias("value"))

    return Measure(About(name=name, title=title, unit=unit, description=description, good="low"), function)


MEASURES: Final = (
    _for_each_pair(
        "overhead",
        "packets",
        "packets",
        "overhead (packets per delivery)",
        "Packets sent for each delivered pair, beacons included, background traffic not",
    ),
    _for_each_pair(
        "overhead_data",
        "packets",
        "packets_data",
        "overhead without control (packets per delivery)",
        "Packets of the kinds that carried events, for each delivered pair",
    ),
    _for_each_pair(
        "bits_per_delivery",
        "bit",
        "bits",
        "cost (bits per delivery)",
        "Bits on the air for each delivered pair, beacons included, background traffic not",
    ),
    _for_each_pair(
        "airtime_per_delivery",
        "ms",
        "airtime",
        "cost (ms on the air per delivery)",
        "Time on the air for each delivered pair, beacons included, background traffic not",
    ),
    _for_each_pair(
        "duplicates",
        "",
        "duplicates",
        "duplicates (per delivery)",
        "Events that brokers received once more, for each delivered pair",
    ),
)
