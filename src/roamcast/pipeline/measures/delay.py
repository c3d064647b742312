"""How long it took: of each expected pair that was delivered, the first delivery's time since publication."""

from typing import Final

from roamcast.pipeline.measures.delivery import of_pairs
from roamcast.pipeline.measures.pairs import PERCENTILES

MEASURES: Final = (
    of_pairs("delay_mean", "s", "Mean delay of the delivered pairs", "delay_mean"),
    *(
        of_pairs(
            f"delay_p{percent}",
            "s",
            f"Least delay that at least {percent} % of the delivered pairs do not exceed",
            f"delay_p{percent}",
        )
        for percent in PERCENTILES
    ),
)
