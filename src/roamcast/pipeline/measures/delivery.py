"""How much of what was wanted arrived."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.pipeline.measures.facts import Facts, Measure
from roamcast.pipeline.measures.pairs import pairs
from roamcast.pipeline.measures.truth import measured_events


def of_pairs(name: str, unit: str, description: str, column: str) -> Measure:
    """A measure that is a column of `pairs`."""

    def function(facts: Facts) -> DataFrame:
        return facts.once(pairs).select("run", F.col(column).cast("double").alias("value"))

    return Measure(name, unit, description, function)


def _events(facts: Facts) -> DataFrame:
    counted = measured_events(facts).groupBy("run").agg(F.count("*").alias("events"))
    return facts.runs.join(counted, "run", "left").select("run", F.coalesce("events", F.lit(0)).alias("value"))


MEASURES: Final = (
    of_pairs(
        "delivery",
        "",
        "Mean, over the events that somebody wants, of the share of their subscriptions reached",
        "delivery",
    ),
    Measure("events", "", "Events published after the warm-up", _events),
    of_pairs("pairs_expected", "", "Pairs of an event and a subscription in force that wants it", "expected"),
    of_pairs("pairs_delivered", "", "Expected pairs that were delivered at least once", "delivered"),
    of_pairs("hops_mean", "hops", "Mean number of transmissions on the way of a pair's first delivery", "hops_mean"),
)
