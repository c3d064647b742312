"""What was possible: the earliest moment at which an event could have been anywhere, by contacts alone.

No protocol can deliver earlier, whatever it stores, carries and forwards; so what a protocol delivered can be told as a
share of this limit. The rules this file owns:

* An event is with its publisher from its publication on. Whoever has it and *carries* keeps it, and passes it on in
  every contact it has.
* A transfer takes `transfer` ns, during which the contact must last; an instantaneous one takes none, and then an event
  crosses a whole island at once. Channels do not fill up: any number of transfers go on at a time.
* Carriers are all nodes, or only those that are told, such as the interested. Then others may still relay: a frame
  travels up to so many hops at one instant through nodes that keep nothing (`relayed`).
* There was an *instantaneous path* at publication exactly if an event could arrive, without transfer times and with
  everybody carrying, at the very instant of its publication.
"""

from typing import Final

import numba
import numpy as np

from roamcast.errors import RoamcastError
from roamcast.facts.adjacency import NOBODY, Bools, forget, link, search, targets, unlink
from roamcast.facts.contacts import Contacts, Ints, append, ordered

NEVER: Final = np.iinfo(np.int64).max
"""A time that does not come."""


def earliest(
    contacts: Contacts, publisher: Ints, published: Ints, *, carriers: Bools | None = None, transfer: int = 0
) -> Ints:
    """When each event could have been at each node, at the earliest: a row an event, a column a node; `NEVER`.

    `carriers` has the same shape; None: everybody carries. A publisher always does.
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
    # A transfer must begin by `last`. Contacts too short for one are of no use.
    last = arcs.until - max(transfer, 1)
    usable = last >= arcs.begin
    sender, receiver, begin, last = (column[usable] for column in (arcs.sender, arcs.receiver, arcs.begin, last))
    # The contacts of a pair stand together: one stretch of columns from `first[p]` to `first[p + 1]`.
    pairs, first = np.unique(sender * contacts.nodes + receiver, return_index=True)
    of_node = np.searchsorted(pairs, np.arange(contacts.nodes + 1) * contacts.nodes)
    first = np.append(first, len(begin)).astype(np.int64)
    met = pairs % contacts.nodes if len(pairs) else pairs
    return _earliest(publisher, published, carriers, transfer, of_node, met, first, begin, last)


@numba.njit(cache=True)
def _earliest(
    publisher: Ints,
    published: Ints,
    carriers: Bools,
    transfer: int,
    of_node: Ints,
    met: Ints,
    first: Ints,
    begin: Ints,
    last: Ints,
) -> Ints:
    """Dijkstra's algorithm over time, an event at a time: who has it earliest passes it on next."""
    nodes = len(of_node) - 1
    at = np.full((len(publisher), nodes), NEVER)
    waiting = np.empty(nodes, np.int64)
    for event in range(len(publisher)):
        arrival, carries = at[event], carriers[event if len(carriers) > 1 else 0]
        settled = np.zeros(nodes, np.bool_)
        arrival[publisher[event]] = published[event]
        waiting[0] = publisher[event]
        count = 1  # nodes that have it and have not passed it on
        while count:
            place = 0
            for other in range(1, count):
                if arrival[waiting[other]] < arrival[waiting[place]]:
                    place = other
            node = waiting[place]
            count -= 1
            waiting[place] = waiting[count]
            settled[node] = True
            if not carries[node] and node != publisher[event]:
                continue
            now = arrival[node]
            for pair in range(of_node[node], of_node[node + 1]):
                other = met[pair]
                if settled[other]:
                    continue
                contact = first[pair] + np.searchsorted(last[first[pair] : first[pair + 1]], now)
                if contact == first[pair + 1]:
                    continue  # they do not meet again
                then = max(now, begin[contact]) + transfer
                if then < arrival[other]:
                    if arrival[other] == NEVER:
                        waiting[count] = other
                        count += 1
                    arrival[other] = then
    return at


def relayed(contacts: Contacts, hops: int) -> Contacts:
    """When two nodes could hear each other over at most so many hops at one instant, as directed contacts."""
    if hops < 1:
        raise RoamcastError(f"{hops} hops: a contact has one or more")
    arcs = contacts.both_ways()
    if hops == 1:
        return arcs
    time, which = np.concatenate([arcs.begin, arcs.until]), np.tile(np.arange(len(arcs)), 2)
    order = np.argsort(time, kind="stable")
    target = targets(arcs.sender, arcs.receiver)
    rows = _relayed(contacts.nodes, contacts.end, hops, target, time[order], which[order], order < len(arcs))
    sender, receiver, begin, until = rows.T
    return ordered(contacts.nodes, contacts.end, False, sender, receiver, begin, until, contacts.present)


@numba.njit(cache=True)
def _relayed(nodes: int, end: int, hops: int, target: Ints, time: Ints, which: Ints, up: Bools) -> Ints:
    """Whenever contacts change: who is near enough to a change, against the arcs, searches again.

    Even arcs lead from senders to receivers, odd ones back, in lists of their own.
    """
    rows, count = np.empty((1024, 4), np.int64), 0
    head, back = np.full(nodes, NOBODY), np.full(nodes, NOBODY)
    after, before = np.empty(len(target), np.int64), np.empty(len(target), np.int64)
    distance, queue = np.full(nodes, NOBODY), np.empty(nodes, np.int64)
    since = np.full((nodes, nodes), NOBODY)
    affected = np.zeros(nodes, np.bool_)
    row = 0
    while row < len(time):
        now, began = time[row], row
        while row < len(time) and time[row] == now:
            row += 1
        for moment in range(2):  # by the ways there were, and by those there are
            for one in which[began:row]:
                reached = search(target[2 * one + 1], hops - 1, NOBODY, back, after, target, distance, queue)
                for node in queue[:reached]:
                    affected[node] = True
                forget(distance, queue, reached)
            if moment == 0:
                for number in range(began, row):
                    arc = 2 * which[number]
                    if up[number]:
                        link(arc, head, after, before, target)
                        link(arc + 1, back, after, before, target)
                    else:
                        unlink(arc, head, after, before, target)
                        unlink(arc + 1, back, after, before, target)
        for node in range(nodes):
            if not affected[node]:
                continue
            affected[node] = False
            reached = search(node, hops, NOBODY, head, after, target, distance, queue)
            for other in range(nodes):
                if other == node or (distance[other] < 0) == (since[node, other] == NOBODY):
                    continue
                if distance[other] >= 0:
                    since[node, other] = now
                else:
                    rows, count = append(rows, count, node, other, since[node, other], now)
                    since[node, other] = NOBODY
            forget(distance, queue, reached)
    assert (since == NOBODY).all(), "every contact has an end"
    return rows[:count]
