"""What was possible: the earliest time at which an event could have reached each node, by contacts alone.

No protocol can deliver earlier, whatever it stores, carries and forwards; so a protocol's deliveries can be given as a
share of this limit. The rules this file owns:

* The publisher has an event from its publication on. A *carrier* that has it keeps it, and passes it on in every
  contact.
* A transfer takes `transfer` ns, during which the contact must last. With 0, an event crosses a whole island at once.
  Capacity is unlimited: any number of transfers run at the same time.
* Carriers are all nodes, or only some, such as the interested ones. Then others may still relay: a frame travels up to
  so many hops at one instant through nodes that keep nothing (`relayed`).
* There was an *instantaneous path* at publication if and only if an event could arrive, without transfer times and
  with all nodes as carriers, at the very instant of its publication.
"""

import numpy as np

from roamcast.analysis import kernels
from roamcast.analysis.contacts import Contacts, changes, ordered
from roamcast.analysis.kernels import NEVER, Bools, Ints
from roamcast.errors import RoamcastError

__all__ = ["NEVER", "earliest", "relayed"]


def earliest(
    contacts: Contacts, publisher: Ints, published: Ints, *, carriers: Bools | None = None, transfer: int = 0
) -> Ints:
    """The earliest time at which each event could have reached each node, or `NEVER`: a row per event, a column per
    node.

    `carriers` has the same shape; None: all nodes are carriers. A publisher always is.
    """
    publisher, published = np.asarray(publisher, np.int64), np.asarray(published, np.int64)
    if transfer < 0:
        raise RoamcastError(f"a transfer of {transfer} ns: it must take 0 or more")
    if len(publisher) and not 0 <= publisher.min() <= publisher.max() < contacts.nodes:
        raise RoamcastError(f"publishers are numbered from 0 to {contacts.nodes - 1}")
    if carriers is None:
        carriers = np.ones((1, contacts.nodes), np.bool_)
    elif carriers.shape != (len(publisher), contacts.nodes):
        raise RoamcastError(f"carriers: {carriers.shape} instead of {len(publisher)} events by {contacts.nodes} nodes")
    arcs = contacts.both_ways()
    # A transfer must begin by `last`. Contacts too short for a transfer are useless.
    last = arcs.until - max(transfer, 1)
    usable = last >= arcs.begin
    sender, receiver, begin, last = (column[usable] for column in (arcs.sender, arcs.receiver, arcs.begin, last))
    # The contacts of a pair p are contiguous: from `first[p]` to `first[p + 1]`.
    pairs, first = np.unique(sender * contacts.nodes + receiver, return_index=True)
    of_node = np.searchsorted(pairs, np.arange(contacts.nodes + 1) * contacts.nodes)
    first = np.append(first, len(begin)).astype(np.int64)
    met = pairs % contacts.nodes if len(pairs) else pairs
    found: Ints = kernels.earliest(publisher, published, carriers, transfer, of_node, met, first, begin, last)
    return found


def relayed(contacts: Contacts, hops: int) -> Contacts:
    """When nodes could reach each other over at most that many hops at one instant, as directed contacts."""
    if hops < 1:
        raise RoamcastError(f"{hops} hops: a contact has one or more")
    arcs = contacts.both_ways()
    if hops == 1:
        return arcs
    rows = kernels.relayed(contacts.nodes, hops, arcs.target, *changes(arcs.begin, arcs.until))
    sender, receiver, begin, until = rows.T
    return ordered(contacts.nodes, contacts.end, False, sender, receiver, begin, until, contacts.present)
