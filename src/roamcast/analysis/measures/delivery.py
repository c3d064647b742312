"""How much of what was wanted arrived, after how long, over how many hops.

The pairs are those of `roamcast.analysis.pairs`. **Delivery** is the share of an event's expected pairs that were
delivered; the mean is over the measured events with at least one expected pair. **Delay** is, for each delivered pair,
the time from publication to the first delivery.
"""

from typing import Final

import numpy as np

from roamcast.analysis.measures.measure import Measure, Values, family, good_share
from roamcast.analysis.pairs import nearest_rank, pairs
from roamcast.analysis.run import Run, mean, ratio
from roamcast.units import SECOND

PERCENTILES: Final = (50, 95, 99)
_TITLES: Final = {50: "median delay (s)"}


@family(
    good_share(
        "delivery",
        "delivery (share of interested subscribers)",
        "Mean, over the events that somebody wants, of the share of their subscriptions reached",
    ),
    Measure("events", description="Events published after the warm-up"),
    Measure("pairs_expected", description="Pairs of an event and a subscription in force that wants it"),
    Measure("pairs_delivered", description="Expected pairs that were delivered at least once", good="high"),
    Measure(
        "hops_mean",
        "mean path (hops)",
        "Mean number of transmissions on the way of a pair's first delivery",
        unit="hops",
    ),
    Measure("delay_mean", "mean delay (s)", "Mean delay of the delivered pairs", unit="s", good="low"),
    *(
        Measure(
            f"delay_p{percent}",
            _TITLES.get(percent, f"delay, {percent}th percentile (s)"),
            f"Least delay that at least {percent} % of the delivered pairs do not exceed",
            unit="s",
            good="low",
        )
        for percent in PERCENTILES
    ),
)
def delivery(run: Run) -> Values:
    found = pairs(run)
    event, reached, delays = found.expected.event, found.reached, found.delay[found.reached]
    wanted = np.bincount(event)
    shares = np.bincount(event[reached], minlength=len(wanted))[wanted > 0] / wanted[wanted > 0]
    return {
        "delivery": mean(shares),
        "events": int((run.column("publish", "time") >= run.start).sum()),
        "pairs_expected": len(event),
        "pairs_delivered": len(delays),
        "hops_mean": mean(found.hops[reached]),
        "delay_mean": ratio(mean(delays), SECOND),
        **{f"delay_p{percent}": ratio(nearest_rank(delays, percent), SECOND) for percent in PERCENTILES},
    }
