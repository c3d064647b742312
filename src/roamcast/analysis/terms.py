"""Terms of subscriptions: from when until when a node had which subscription.

The rule this file owns: a subscription made again under an id in use ends the former one. A subscription is identified
by its node and id.
"""

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from roamcast.facts.rows import rows_of

FOR_EVER: Final = int(np.iinfo(np.int64).max)


class SubscriptionTerm(NamedTuple):
    """One subscription for as long as it was in force, both ends included; times in ns."""

    node: int
    subscription: int
    start: int
    end: int
    """`FOR_EVER` if it did not end."""
    filter: str
    lifetime: int | None = None
    interest: str | None = None
    publication_domain: str | None = None

    def in_force_at(self, time: int) -> bool:
        return self.start <= time <= self.end


def terms_of(subscribe: pa.Table) -> list[SubscriptionTerm]:
    """All terms of a run, by start."""
    columns = ("time", "node", "subscription", "active", "filter", "lifetime", "interest", "publication_domain")
    rows = sorted(rows_of(subscribe, *columns), key=lambda row: row[0])
    terms: list[SubscriptionTerm] = []
    current: dict[tuple[int, int], int] = {}
    for time, node, subscription, active, *wanted in rows:
        former = current.pop((node, subscription), None)
        if former is not None:
            terms[former] = terms[former]._replace(end=time)
        if active:
            current[node, subscription] = len(terms)
            terms.append(SubscriptionTerm(node, subscription, time, FOR_EVER, *wanted))
    return terms
