"""How much of what was wanted arrived in time, where time is minutes or hours.

Documents that are too young at the end of a run to have reached an age do not count for that age: else the end of the
run would count as loss.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.campaign.measured import About
from roamcast.pipeline.measures.facts import Facts, Measure
from roamcast.pipeline.measures.pairs import AGES, pairs


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


MEASURES: Final = tuple(_within(place, age) for place, age in enumerate(AGES))
