"""How much of what was wanted arrived."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.campaign.measured import About
from roamcast.pipeline.measures.facts import Facts, Measure
from roamcast.pipeline.measures.pairs import pairs


def of_pairs(about: About, column: str) -> Measure:
    """A measure that is a column of `pairs`."""

    def function(facts: Facts) -> DataFrame:
        return facts.once(pairs).select("run", F.col(column).cast("double").alias("value"))

    return Measure(about, function)


MEASURES: Final = (
    of_pairs(
        About(
            name="delivery",
            title="delivery (share of interested subscribers)",
            description="Mean, over the events that somebody wants, of the share of their subscriptions reached",
            share=True,
            whole=True,
            good="high",
        ),
        "delivery",
    ),
    of_pairs(About(name="events", description="Events published after the warm-up"), "events"),
    of_pairs(
        About(name="pairs_expected", description="Pairs of an event and a subscription in force that wants it"),
        "expected",
    ),
    of_pairs(
        About(name="pairs_delivered", description="Expected pairs that were delivered at least once", good="high"),
        "delivered",
    ),
    of_pairs(
        About(
            name="hops_mean",
            title="mean path (hops)",
            unit="hops",
            description="Mean number of transmissions on the way of a pair's first delivery",
        ),
        "hops_mean",
    ),
)
