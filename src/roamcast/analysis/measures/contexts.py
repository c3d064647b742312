"""Delivery where events and subscriptions have contexts, and what it cost.

After the evaluation of Frey and Roman (2007, section 4.2). The rules this file owns:

* **Delivery** is what was delivered of the pairs that an ideal system would have matched (`analysis/context_truth.py`).
  A run has few such pairs, so the ratio is *pooled* over the seeds of a point: all that was delivered of all that was
  ideal.
* **Cost** is all that was on the air in the measured time, in Mbit, acknowledgements and beacons included.
"""

from typing import Final

import pyarrow.compute as pc

from roamcast.analysis.context_truth import READ, ContextCounts, count_delivered, has_contexts
from roamcast.analysis.measures.measure import Measure, Pooled, Values, family
from roamcast.analysis.measures.traffic import ours, total
from roamcast.analysis.run import Run, once, ratio

REQUEST: Final = "matching-request"


def with_contexts(run: Run) -> bool:
    """Whether any publication or subscription has a context of relevance or interest."""
    return has_contexts({name: run.table(name) for name in ("publish", "subscribe")})


@once
def truth(run: Run) -> ContextCounts | None:
    """What was delivered of what an ideal system would match; None without contexts or positions."""
    if not run.has("leg", "publish", "subscribe") or not with_contexts(run):
        return None
    tables = {name: run.table(name) for name in READ}
    return count_delivered(tables, reach=run.scenario.radio.longest, start=run.start, end=run.end)


@family(
    Measure("context_pairs", "ideal pairs", "Pairs of an event and a subscription that an ideal system would match"),
    Measure("context_delivered", "ideal pairs that were delivered", "How many of the ideal pairs were delivered"),
    Measure(
        "context_beyond",
        "pairs delivered beyond the ideal",
        "Delivered pairs that no instant justifies: decided on what was out of date",
        good="low",
    ),
)
def pairs_with_contexts(run: Run) -> Values:
    found = truth(run)
    if found is None:
        return {}
    return {"context_pairs": found.ideal, "context_delivered": found.delivered, "context_beyond": found.beyond}


DELIVERY: Final = Pooled(
    Measure(
        "delivery_context",
        "delivery (share of ideal pairs, pooled over seeds)",
        "What was delivered of what an ideal system would match, all seeds of a point together",
        share=True,
        good="high",
    ),
    part="context_delivered",
    whole="context_pairs",
)


@family(
    Measure(
        "mbit",
        "cost (Mbit on the air)",
        "All that was on the air in the measured time, beacons and acknowledgements included",
        unit="Mbit",
        good="low",
    ),
    Measure(
        "mbit_per_cube",
        "cost by the cube of the side (Mbit/km³)",
        "All that was on the air, divided by the cube of the area's width",
        unit="Mbit/km³",
        good="low",
    ),
    Measure(
        "requests_share",
        "matching requests (share of the cost)",
        "Share of the bits on the air that were matching requests",
        share=True,
    ),
)
def traffic(run: Run) -> Values:
    rows, area = ours(run), run.scenario.area
    if not rows.num_rows:
        return {}
    mbit = total(rows, "bits") / 1e6
    requests = total(rows.filter(pc.equal(rows["kind"], REQUEST)), "bits") / 1e6
    return {
        "mbit": mbit,
        "mbit_per_cube": ratio(mbit, (area.width / 1000) ** 3) if area else None,
        "requests_share": ratio(requests, mbit),
    }
