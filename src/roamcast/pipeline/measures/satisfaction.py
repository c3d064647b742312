"""How much of what was wanted arrived in time, where time is minutes or hours, and how old it was.

The definitions are those of `roamcast.facts.ages`: a publisher's own interest does not count, and documents that are
too young at the end of a run to have reached an age do not count for that age: else the end of the run would count as
loss.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.campaign.measured import About
from roamcast.facts.pairs import AGES
from roamcast.pipeline.measures.facts import Facts, Measure
from roamcast.pipeline.measures.pairs import pairs


def _within(place: int, age: int) -> Measure:
    def function(facts: Facts) -> DataFrame:
        return facts.once(pairs).select("run", F.col("satisfaction")[place].alias("value"))

    about = About(
        name=f"satisfaction_{age}",
        title=f"satisfaction within {age // 60} min (share of pairs)",
        description=f"Share of the expected pairs delivered within {age // 60} min",
        share=True,
        whole=True,
        good="high",
    )
    return Measure(about, function)


def _aged(place: int, age: int) -> Measure:
    def function(facts: Facts) -> DataFrame:
        return facts.once(pairs).select("run", F.col("aged")[place].alias("value"))

    about = About(
        name=f"aged_{age}",
        title=f"deliveries by {age // 60} min (share)",
        description=f"Of the deliveries within {AGES[-1] // 60} min, the share of those within {age // 60} min",
        share=True,
        whole=True,
    )
    return Measure(about, function)


_PEAK: Final = About(
    name="age_peak",
    title="age at which most arrive (s)",
    unit="s",
    description="Middle of the five minutes of age in which most deliveries fall, smoothed over three such spans",
)

MEASURES: Final = (
    *(_within(place, age) for place, age in enumerate(AGES)),
    *(_aged(place, age) for place, age in enumerate(AGES[:-1])),
    Measure(_PEAK, lambda facts: facts.once(pairs).select("run", F.col("age_peak").alias("value"))),
)
