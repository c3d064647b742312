"""Fairness: how evenly the time on the air is spread over the nodes.

From the totals of the run, warm-up included, without background traffic; of a cooldown, only messages that carry
events. A node that sent nothing counts: being spared is a part of the spread. Undefined if nobody sent anything.
"""

import pyarrow.compute as pc

from roamcast.analysis.measures.measure import Measure, Values, family, good_share
from roamcast.analysis.run import Run
from roamcast.facts.schema import BACKGROUND_ROLE


@family(
    good_share(
        "airtime_jain",
        "evenness of airtime (Jain's index)",
        "Jain's index of the nodes' airtime: 1 if all send alike, 1/nodes if one sends everything",
    ),
    Measure(
        "airtime_most",
        "airtime of the busiest node (share)",
        "Share of all airtime that the busiest node sends",
        share=True,
        good="low",
    ),
)
def fairness(run: Run) -> Values:
    rows = run.table("transmit", "node", "role", "airtime")
    rows = rows.filter(pc.not_equal(rows["role"], BACKGROUND_ROLE))
    by_node = rows.group_by("node").aggregate([("airtime", "sum")])["airtime_sum"].to_numpy().astype(float)
    total = float(by_node.sum())
    if not total:
        return {}
    return {
        "airtime_jain": total * total / (run.nodes * float((by_node * by_node).sum())),
        "airtime_most": float(by_node.max()) / total,
    }
