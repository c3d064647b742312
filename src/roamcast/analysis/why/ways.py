"""The last steps that were not taken: who had the event, and where it should have gone next.

The rules this file owns:

* A *gap* is a pair of nodes: one that had the event, and its neighbour on a way to the subscriber that did not have it
  in time.
* Of all ways to the subscriber those count that have the fewest nodes without the event on them. If a neighbour of the
  subscriber had it, the gaps lead straight to the subscriber.
* A protocol that carries nothing needs a way at one instant: the network at publication. One whose nodes keep events
  may use every contact between the time a node had the event and the deadline, in the right order.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from roamcast.analysis.contacts import Contacts
from roamcast.analysis.kernels import Bools, Ints
from roamcast.analysis.why.copies import Copy
from roamcast.analysis.why.record import at


class Gap(NamedTuple):
    holder: int
    next: int


def gaps_at(network: Contacts, time: int, had: Mapping[int, Copy], subscriber: int) -> list[Gap]:
    """Those of the network at one instant; none: no way led from a holder to the subscriber."""
    there, holders = at(network, time), _holders(network.nodes, had)
    sender, receiver = network.sender[there], network.receiver[there]
    for layer in _layers(subscriber, receiver, sender, network.nodes):
        bridged = layer[receiver] & holders[sender]
        if bridged.any():
            return _sorted(sender[bridged], receiver[bridged])
    return []


def gaps_over_time(network: Contacts, deadline: int, had: Mapping[int, Copy], subscriber: int) -> list[Gap]:
    """Those of all contacts up to the deadline."""
    since = np.full(network.nodes, deadline, np.int64)
    for node, copy in had.items():
        since[node] = copy.time
    holders = _holders(network.nodes, had)
    latest = np.full(network.nodes, -1, np.int64)  # by when a node must have it, for the subscriber to get it
    latest[subscriber] = deadline
    layer = np.zeros(network.nodes, np.bool_)
    layer[subscriber] = True
    while layer.any():
        leads = layer[network.receiver]
        sender, receiver = network.sender[leads], network.receiver[leads]
        # The sender may pass it on from the contact's begin to its end, or to when the receiver must have it.
        last = np.minimum(network.until[leads], latest[receiver])
        usable = network.begin[leads] < last
        bridged = usable & holders[sender] & (since[sender] < last)
        if bridged.any():
            return _sorted(sender[bridged], receiver[bridged])
        before = latest.copy()
        # Nobody could pass it on over these: their senders never had it, or got it too late.
        np.maximum.at(latest, sender[usable], last[usable])
        layer = latest > before
    return []


def _holders(nodes: int, had: Mapping[int, Copy]) -> Bools:
    holders = np.zeros(nodes, np.bool_)
    holders[list(had)] = True
    return holders


def _layers(first: int, origin: Ints, goal: Ints, nodes: int) -> Iterator[Bools]:
    """The nodes that are 0, 1, 2, … hops from the first, over the links from origins to goals."""
    reached = np.zeros(nodes, np.bool_)
    reached[first] = True
    layer = reached.copy()
    while layer.any():
        yield layer
        following = np.zeros(nodes, np.bool_)
        following[goal[layer[origin]]] = True
        layer = following & ~reached
        reached |= layer


def _sorted(sender: Ints, receiver: Ints) -> list[Gap]:
    return [Gap(*pair) for pair in sorted(set(zip(sender.tolist(), receiver.tolist(), strict=True)))]


def hops_between(network: Contacts, time: int, one: int, other: int) -> int | None:
    """On the shortest way at an instant; None: there is none."""
    there = at(network, time)
    layers = _layers(one, network.sender[there], network.receiver[there], network.nodes)
    return next((hops for hops, layer in enumerate(layers) if layer[other]), None)
