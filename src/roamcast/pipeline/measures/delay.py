"""Delay: for each expected pair that was delivered, the time from publication to the first delivery."""

from typing import Final

from roamcast.campaign.measured import About
from roamcast.facts.pairs import PERCENTILES
from roamcast.pipeline.measures.delivery import of_pairs

_TITLES: Final = {50: "median delay (s)"}

MEASURES: Final = (
    of_pairs(
        About(
            name="delay_mean",
            title="mean delay (s)",
            unit="s",
            description="Mean delay of the delivered pairs",
            good="low",
        ),
        "delay_mean",
    ),
    *(
        of_pairs(
            About(
                name=f"delay_p{percent}",
                title=_TITLES.get(percent, f"delay, {percent}th percentile (s)"),
                unit="s",
                description=f"Least delay that at least {percent} % of the delivered pairs do not exceed",
                good="low",
            ),
            f"delay_p{percent}",
        )
        for percent in PERCENTILES
    ),
)
