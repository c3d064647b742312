"""The limit of a run: for each expected pair, how soon any protocol could have delivered it.

The pairs are the expected ones of `pairs`, without a publisher's own interest, which needs no network. A pair was
possible if the event could have reached the subscriber before the run ended, and within the event's lifetime if it has
one. `possible` computes when that was, from contacts alone.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roamcast.analysis.contacts import READ as OF_CONTACTS
from roamcast.analysis.contacts import Contacts
from roamcast.analysis.kernels import Ints
from roamcast.analysis.network import network
from roamcast.analysis.pairs import expected, pairs
from roamcast.analysis.possible import NEVER, earliest, relayed
from roamcast.analysis.run import Run, once_per_world

READ: Final = (*OF_CONTACTS, "subscribe", "publish", "event_attribute")
"""The tables that a limit depends on."""


class Limit(NamedTuple):
    """The expected pairs of a world, as columns."""

    published: Ints
    possible: Ints
    """The least delay with which the event could have arrived, ns; `NEVER`."""
    interested: Ints
    """The same with only interested nodes as carriers."""


@once_per_world(*READ)
def limit(run: Run) -> Limit | None:
    """The limit of a run's world; None where its movement was not recorded."""
    contacts = network(run, directed=True, drawn="possible")
    return None if contacts is None else limit_over(contacts, run)


def delays(run: Run) -> Ints:
    """The delay of the first delivery of each pair that the limit is about, ns; `NEVER` if there was none."""
    found = pairs(run)
    delay = found.delay[~found.expected.own]
    return np.where(delay < 0, NEVER, delay)


def limit_over(contacts: Contacts, run: Run, *, transfer: int = 0, hops: int = 1) -> Limit:
    """The limit over these contacts. A transfer takes `transfer` ns, and reaches over at most `hops` hops at one
    instant."""
    contacts = relayed(contacts, hops) if hops > 1 else contacts
    wanted = expected(run)
    remote = ~wanted.own
    events, row = np.unique(wanted.event[remote], return_inverse=True)
    node, published = wanted.node[remote], wanted.published[remote]
    publisher, time = np.zeros(len(events), np.int64), np.zeros(len(events), np.int64)
    publisher[row], time[row] = wanted.publisher[remote], published
    lifetime = _lifetimes(run, wanted.events[events])
    interested = np.zeros((len(events), contacts.nodes), np.bool_)
    interested[row, node] = True

    def least(carriers: NDArray[np.bool_] | None) -> Ints:
        at = earliest(contacts, publisher, time, carriers=carriers, transfer=transfer)[row, node]
        delay = np.where(at == NEVER, NEVER, at - time[row])
        return np.where(delay > lifetime[row], NEVER, delay)

    return Limit(published, least(None), least(interested))


def _lifetimes(run: Run, events: Ints) -> Ints:
    """The lifetimes of these events, ns; `NEVER` for one that lasts for ever."""
    given = run.table("publish", "event", "lifetime")
    known = dict(zip(given["event"].to_pylist(), given["lifetime"].to_pylist(), strict=True))
    return np.array([NEVER if known[event] is None else known[event] for event in events.tolist()], np.int64)
