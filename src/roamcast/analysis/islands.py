"""The network over time: its islands (connected components), and how well a tree over it connects them.

The rules this file owns:

* Two nodes are on one *island* at an instant if a path of mutual contacts at that instant connects them. A node that
  hears nobody is an island of its own; a node that is away is on none.
* The network is evaluated whenever a contact begins or ends, and each state is weighted by how long it lasts: the
  figures are exact. Only widths may be sampled in steps instead, if there are too many nodes.
* The *width* of an island is its diameter: the greatest number of hops on a shortest path between two of its nodes; 0
  for a single node.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roamcast.analysis import kernels
from roamcast.analysis.contacts import Contacts, changes
from roamcast.analysis.kernels import Ints
from roamcast.errors import RoamcastError
from roamcast.units import SECOND


@dataclass(frozen=True)
class Islands:
    """The states of the network, one per look."""

    weight: Ints
    """How long each state lasted, ns."""
    present: Ints
    """How many nodes were present."""
    number: Ints
    """How many islands there were."""
    largest: Ints
    """Nodes of the largest island."""
    squares: Ints
    """Sum of the squared island sizes; divided by `present`, the mean size of a node's island."""
    widths: Ints | None
    """Sum of the islands' widths; None: not computed."""
    node_widths: Ints | None
    """Sum, over nodes, of the width of the node's island."""
    widest: Ints | None

    def number_mean(self) -> float | None:
        return _ratio(self.number * self.weight, self.weight)

    def largest_share(self) -> float | None:
        """Mean share of the present nodes that are on the largest island."""
        some = self.present > 0
        return _ratio(self.largest[some] / self.present[some] * self.weight[some], self.weight[some])

    def size(self) -> float | None:
        """Mean number of nodes on an island."""
        return _ratio(self.present * self.weight, self.number * self.weight)

    def size_by_node(self) -> float | None:
        """Mean size of a node's island, over nodes."""
        return _ratio(self.squares * self.weight, self.present * self.weight)

    def pairs_connected(self) -> float | None:
        """Mean share of the pairs of present nodes that are on the same island."""
        pairs = self.present * (self.present - 1)
        some = pairs > 0
        joined = (self.squares - self.present)[some]
        return _ratio(joined / pairs[some] * self.weight[some], self.weight[some])

    def width(self) -> float | None:
        """Mean width of an island."""
        return None if self.widths is None else _ratio(self.widths * self.weight, self.number * self.weight)

    def width_by_node(self) -> float | None:
        """Mean width of a node's island, over nodes."""
        return None if self.node_widths is None else _ratio(self.node_widths * self.weight, self.present * self.weight)

    def greatest_width(self) -> int | None:
        return None if self.widest is None or not len(self.widest) else int(self.widest.max())


def islands(network: Contacts, start: int, *, widths: bool = False, step: int | None = None) -> Islands:
    """The islands from `start` to the end of the contacts; sampled every `step` ns, or exact."""
    _need_mutual(network)
    on = network.present
    if step is None:
        looks, weight = _looks(start, network.end, network.begin, network.until, on.begin, on.until)
    else:
        looks = np.arange(start, network.end, step, dtype=np.int64)
        weight = np.full(len(looks), step)
    on_time, on_which, on_up = changes(on.begin, on.until)
    links = network.target, *changes(network.begin, network.until)
    seen = kernels.look(network.nodes, looks, *links, on_time, on.node[on_which], on_up, widths)
    present, number, largest, squares, *wide = seen.T
    return Islands(weight, present, number, largest, squares, *(wide if widths else (None, None, None)))


class Agreement(NamedTuple):
    """How well the links of a tree connect what the network connects. None: undefined."""

    connected: float | None
    """Share of the time during which all nodes are in one part of the tree."""
    parts: float | None
    """Mean number of the tree's parts; a node on no tree is one."""
    matched: float | None
    """Share of the time during which the tree's parts are exactly the network's."""
    reach: float | None
    """Share of the pairs of nodes connected by the network that the tree connects too; mean over the time during which
    the network connects any pair."""


def agreement(tree: Contacts, network: Contacts | None, start: int) -> Agreement:
    """From `start` to the end. Every node counts here; one that is away counts as its own part."""
    against = tree if network is None else network
    _need_mutual(tree)
    _need_mutual(against)
    looks, weight = _looks(start, tree.end, tree.begin, tree.until, against.begin, against.until)
    if not len(looks):
        return Agreement(None, None, None, None)
    parts, same, both, physical = kernels.compare(
        *(tree.nodes, looks, tree.target, *changes(tree.begin, tree.until)),
        *(against.target, *changes(against.begin, against.until)),
    ).T
    connected, mean = _ratio((parts == 1) * weight, weight), _ratio(parts * weight, weight)
    if network is None:
        return Agreement(connected, mean, None, None)
    some = physical > 0
    reach = _ratio(both[some] / physical[some] * weight[some], weight[some])
    return Agreement(connected, mean, _ratio(same * weight, weight), reach)


# --- Contacts themselves --------------------------------------------------------------------------------------------


def degree(network: Contacts, start: int) -> float | None:
    """Mean number of neighbours of a present node."""
    _need_mutual(network)
    on = network.present
    together = np.maximum(network.until - np.maximum(network.begin, start), 0)
    there = np.maximum(on.until - np.maximum(on.begin, start), 0)
    return _ratio(2 * together, there)


def durations(network: Contacts, start: int) -> Ints:
    """Lengths of contacts, ns: of those that began after `start` and ended before the end, so that both are known."""
    whole = (network.begin > start) & (network.until < network.end)
    lasted: Ints = (network.until - network.begin)[whole]
    return lasted


def gaps(network: Contacts, start: int) -> Ints:
    """Times between two contacts of a pair, ns: of the gaps that began after `start`."""
    again = (network.pair[1:] == network.pair[:-1]) & (network.until[:-1] > start)
    apart: Ints = (network.begin[1:] - network.until[:-1])[again]
    return apart


def breaks_per_minute(network: Contacts, start: int) -> float | None:
    """Contacts that ended, per minute."""
    if start >= network.end:
        return None
    broken = int(((network.until > start) & (network.until < network.end)).sum())
    return broken * 60 * SECOND / (network.end - start)


def changes_per_second(network: Contacts, start: int) -> float | None:
    """Contacts that began or ended, per second."""
    if start >= network.end:
        return None
    begun, ended = (int(((times > start) & (times < network.end)).sum()) for times in (network.begin, network.until))
    return (begun + ended) * SECOND / (network.end - start)


def path_hops(network: Contacts, start: int, step: int) -> float | None:
    """Mean hops of the shortest path between two connected nodes, sampled every `step` ns."""
    _need_mutual(network)
    looks = np.arange(start, network.end, step, dtype=np.int64)
    hops, pairs = kernels.paths(network.nodes, looks, network.target, *changes(network.begin, network.until)).T
    return _ratio(hops, pairs)


# --- Small things ---------------------------------------------------------------------------------------------------


def _looks(start: int, end: int, *times: Ints) -> tuple[Ints, Ints]:
    """The times of changes, including `start`, and how long each state lasted."""
    changed = np.unique(np.concatenate(times))
    within = changed[(changed > start) & (changed < end)]
    looks = np.concatenate([np.array([start], np.int64), within]) if start < end else within[:0]
    return looks, np.diff(looks, append=np.int64(end)) if len(looks) else looks


def _need_mutual(network: Contacts) -> None:
    if not network.mutual:
        raise RoamcastError("islands are made of mutual contacts: these have directions")


def _ratio(part: NDArray[Any], whole: NDArray[Any]) -> float | None:
    total = float(whole.sum(dtype=np.float64))
    return float(part.sum(dtype=np.float64)) / total if total else None
