"""Figure 12 of the paper on extended ODMRP, as a measure: how much of what arrives came by the longer way."""

import numpy as np

from roamcast.analysis.measures.measure import measure
from roamcast.analysis.pairs import pairs
from roamcast.analysis.run import Run, mean


@measure(title="by a longer route (share of deliveries)", share=True)
def longer_route(run: Run) -> float | None:
    """Share of the delivered pairs with more hops than the fewest that this subscriber had in the run."""
    found = pairs(run)
    reached = found.reached & ~found.expected.own
    unit, hops = found.expected.unit[reached], found.hops[reached]
    fewest = np.full(len(found.expected.units), np.iinfo(np.int64).max)
    np.minimum.at(fewest, unit, hops)
    return mean(hops > fewest[unit])
