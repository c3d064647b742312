"""The limit of a run: for each expected pair, how soon any protocol could have delivered it.

The pairs are the expected ones of `summary`, without a publisher's own interest, which needs no network. A pair was
possible if the event could have reached the subscriber before the run ended, and within the event's lifetime if it has
one. `possible` computes when that was, from contacts alone.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from roamcast.facts.compiled import Ints
from roamcast.facts.contacts import READ as OF_CONTACTS
from roamcast.facts.contacts import Contacts
from roamcast.facts.possible import NEVER, earliest, relayed
from roamcast.facts.summary import Pair, expected_pairs

READ: Final = (*OF_CONTACTS, "subscribe", "publish", "event_attribute")
"""The tables that a limit and its contacts need."""


class Limit(NamedTuple):
    """The expected pairs of a world, as columns."""

    pairs: list[Pair]
    published: Ints
    possible: Ints
    """The least delay with which the event could have arrived, ns; `NEVER`."""
    interested: Ints
    """The same with only interested nodes as carriers."""

    def delays(self, deliver: pa.Table) -> Ints:
        """The delay of each pair's first delivery, ns; `NEVER` if there was none."""
        names = ("event", "node", "subscription", "time", "published")
        first: dict[Pair, int] = {}
        for *pair, time, published in zip(*(deliver[name].to_pylist() for name in names), strict=True):
            key = Pair(*pair)
            first[key] = min(first.get(key, NEVER), time - published)
        return np.array([first.get(pair, NEVER) for pair in self.pairs], np.int64)


def limit_over(
    contacts: Contacts, tables: Mapping[str, pa.Table], start: int, *, transfer: int = 0, hops: int = 1
) -> Limit:
    """The limit for the events published from `start` (ns) on.

    A transfer takes `transfer` ns, and reaches over at most `hops` hops at one instant.
    """
    contacts = relayed(contacts, hops) if hops > 1 else contacts
    names = ("event", "node", "time", "lifetime")
    published = {
        event: row for event, *row in zip(*(tables["publish"][name].to_pylist() for name in names), strict=True)
    }
    pairs = sorted(pair for pair in expected_pairs(tables, start) if pair.node != published[pair.event][0])
    events = sorted({pair.event for pair in pairs})
    publisher, time = (np.array([published[event][place] for event in events], np.int64) for place in (0, 1))
    lifetime = np.array([NEVER if published[event][2] is None else published[event][2] for event in events], np.int64)
    row = np.searchsorted(np.array(events, np.int64), np.array([pair.event for pair in pairs], np.int64))
    node = np.array([pair.node for pair in pairs], np.int64)
    interested = np.zeros((len(events), contacts.nodes), np.bool_)
    interested[row, node] = True

    def delays(carriers: NDArray[np.bool_] | None) -> Ints:
        at = earliest(contacts, publisher, time, carriers=carriers, transfer=transfer)[row, node]
        delay = np.where(at == NEVER, NEVER, at - time[row])
        return np.where(delay > lifetime[row], NEVER, delay)

    return Limit(pairs, time[row], delays(None), delays(interested))
