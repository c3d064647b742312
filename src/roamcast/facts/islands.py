"""The network over time: into which islands it falls, and how far a tree over it holds them together.

The rules this file owns:

* Two nodes are on one *island* at an instant if mutual contacts of that instant lead from one to the other. A node that
  hears nobody is an island; one that is away is on none.
* The network is looked at whenever a contact begins or ends, and what is seen counts for as long as it lasts: the
  figures are exact. Only the width of islands may be looked at in steps instead, where there are too many nodes.
* The *width* of an island is the greatest number of hops between two of its nodes over the shortest way: 0 for a node
  alone.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from roamcast.errors import RoamcastError
from roamcast.facts.adjacency import NOBODY, Bools, change, forget, search, targets
from roamcast.facts.contacts import Contacts, Ints
from roamcast.units import SECOND


@dataclass(frozen=True)
class Islands:
    """What was seen, look by look."""

    weight: Ints
    """For how long it was so, ns."""
    present: Ints
    """How many nodes were there."""
    number: Ints
    """How many islands there were."""
    largest: Ints
    """Nodes of the largest."""
    squares: Ints
    """Sum of the squared numbers of nodes: over `present`, the size of the island a node is on."""
    widths: Ints | None
    """Sum of the islands' widths; None: not looked at."""
    node_widths: Ints | None
    """Sum over nodes of the width of the island each is on."""
    widest: Ints | None

    def number_mean(self) -> float | None:
        return _ratio(self.number * self.weight, self.weight)

    def largest_share(self) -> float | None:
        """Mean share of the nodes present that are on the largest."""
        some = self.present > 0
        return _ratio(self.largest[some] / self.present[some] * self.weight[some], self.weight[some])

    def size(self) -> float | None:
        """Mean number of nodes on an island."""
        return _ratio(self.present * self.weight, self.number * self.weight)

    def size_by_node(self) -> float | None:
        """Mean number of nodes on the island that a node is on."""
        return _ratio(self.squares * self.weight, self.present * self.weight)

    def width(self) -> float | None:
        """Mean width of an island."""
        return None if self.widths is None else _ratio(self.widths * self.weight, self.number * self.weight)

    def width_by_node(self) -> float | None:
        """Mean width of the island that a node is on."""
        return None if self.node_widths is None else _ratio(self.node_widths * self.weight, self.present * self.weight)

    def greatest_width(self) -> int | None:
        return None if self.widest is None or not len(self.widest) else int(self.widest.max())


def islands(network: Contacts, start: int, *, widths: bool = False, step: int | None = None) -> Islands:
    """Those from `start` to the end of the contacts; looked at every `step` ns, or exactly."""
    _need_mutual(network)
    on = network.present
    if step is None:
        looks, weight = _looks(start, network.end, network.begin, network.until, on.begin, on.until)
    else:
        looks = np.arange(start, network.end, step, dtype=np.int64)
        weight = np.full(len(looks), step)
    on_time, on_which, on_up = _changes(on.begin, on.until)
    target = targets(network.sender, network.receiver)
    changes = _changes(network.begin, network.until)
    seen = _look(network.nodes, looks, target, *changes, on_time, on.node[on_which], on_up, widths)
    present, number, largest, squares, *wide = seen.T
    return Islands(weight, present, number, largest, squares, *(wide if widths else (None, None, None)))


class Agreement(NamedTuple):
    """How far the links of a tree connect what the network connects. None: undefined."""

    connected: float | None
    """Share of the time in which all nodes are in one part of the tree."""
    parts: float | None
    """Mean number of the tree's parts; a node on no tree is one."""
    matched: float | None
    """Share of the time in which the tree's parts are exactly the network's."""
    reach: float | None
    """Mean, over the time in which any two nodes are connected by the network, of the share of those pairs that the
    tree connects too."""


def agreement(tree: Contacts, network: Contacts | None, start: int) -> Agreement:
    """From `start` to the end. Here every node counts, and one that is away is a part of its own."""
    against = tree if network is None else network
    _need_mutual(tree)
    _need_mutual(against)
    looks, weight = _looks(start, tree.end, tree.begin, tree.until, against.begin, against.until)
    if not len(looks):
        return Agreement(None, None, None, None)
    parts, same, both, physical = _compare(
        *(tree.nodes, looks, targets(tree.sender, tree.receiver), *_changes(tree.begin, tree.until)),
        *(targets(against.sender, against.receiver), *_changes(against.begin, against.until)),
    ).T
    connected, mean = _ratio((parts == 1) * weight, weight), _ratio(parts * weight, weight)
    if network is None:
        return Agreement(connected, mean, None, None)
    some = physical > 0
    reach = _ratio(both[some] / physical[some] * weight[some], weight[some])
    return Agreement(connected, mean, _ratio(same * weight, weight), reach)


# --- Contacts themselves --------------------------------------------------------------------------------------------


def degree(network: Contacts, start: int) -> float | None:
    """Mean number of neighbours of a node that is there."""
    _need_mutual(network)
    on = network.present
    together = np.maximum(network.until - np.maximum(network.begin, start), 0)
    there = np.maximum(on.until - np.maximum(on.begin, start), 0)
    return _ratio(2 * together, there)


def durations(network: Contacts, start: int) -> Ints:
    """How long contacts lasted, ns: those that began after `start` and ended before the end, so that both are known."""
    whole = (network.begin > start) & (network.until < network.end)
    lasted: Ints = (network.until - network.begin)[whole]
    return lasted


def gaps(network: Contacts, start: int) -> Ints:
    """How long pairs were apart between two contacts, ns: those gaps that began after `start`."""
    again = (network.pair[1:] == network.pair[:-1]) & (network.until[:-1] > start)
    apart: Ints = (network.begin[1:] - network.until[:-1])[again]
    return apart


def breaks_per_minute(network: Contacts, start: int) -> float | None:
    """How many contacts ended, a minute."""
    if start >= network.end:
        return None
    broken = int(((network.until > start) & (network.until < network.end)).sum())
    return broken * 60 * SECOND / (network.end - start)


# --- Looks and changes ----------------------------------------------------------------------------------------------


def _looks(start: int, end: int, *times: Ints) -> tuple[Ints, Ints]:
    """When something changed, with `start` itself, and how long it stayed so."""
    changed = np.unique(np.concatenate(times))
    within = changed[(changed > start) & (changed < end)]
    looks = np.concatenate([np.array([start], np.int64), within]) if start < end else within[:0]
    return looks, np.diff(looks, append=np.int64(end)) if len(looks) else looks


def _changes(begin: Ints, until: Ints) -> tuple[Ints, Ints, Bools]:
    """Every begin and end in the order of time: when, of which, and whether it is a begin."""
    time, which = np.concatenate([begin, until]), np.tile(np.arange(len(begin)), 2)
    order = np.argsort(time, kind="stable")
    return time[order], which[order], order < len(begin)


def _need_mutual(network: Contacts) -> None:
    if not network.mutual:
        raise RoamcastError("islands are made of mutual contacts: these have directions")


def _ratio(part: NDArray[Any], whole: NDArray[Any]) -> float | None:
    total = float(whole.sum(dtype=np.float64))
    return float(part.sum(dtype=np.float64)) / total if total else None


# --- Compiled -------------------------------------------------------------------------------------------------------


@numba.njit(cache=True)
def _look(
    nodes: int,
    looks: Ints,
    target: Ints,
    time: Ints,
    which: Ints,
    up: Bools,
    on_time: Ints,
    on_node: Ints,
    on_up: Bools,
    widths: bool,
) -> Ints:
    """A row of the columns of `Islands`, from `present` on, for each look."""
    found = np.zeros((len(looks), 7), np.int64)
    head, after, before = np.full(nodes, NOBODY), np.empty(len(target), np.int64), np.empty(len(target), np.int64)
    label, distance, queue = np.arange(nodes), np.full(nodes, NOBODY), np.empty(nodes, np.int64)
    on, touched = np.zeros(nodes, np.bool_), np.zeros(nodes, np.bool_)
    width = np.zeros(nodes, np.int64)
    row, on_row = 0, 0
    for number in range(len(looks)):
        began, changed = row, number == 0
        while row < len(time) and time[row] <= looks[number]:
            changed |= change(which[row], up[row], label, head, after, before, target, distance, queue)
            row += 1
        while on_row < len(on_time) and on_time[on_row] <= looks[number]:
            on[on_node[on_row]] = on_up[on_row]
            on_row += 1
            changed = True
        if widths and row > began:
            # An island without an end of a changed contact has the same nodes and the same contacts as before.
            touched[:] = False
            for one in which[began:row]:
                touched[label[target[2 * one]]] = True
                touched[label[target[2 * one + 1]]] = True
            _measure_widths(label, touched, head, after, target, distance, queue, width)
            changed = True
        if changed:
            _count(label, on, width, found[number])
        else:
            found[number] = found[number - 1]
    return found


@numba.njit(cache=True)
def _count(label: Ints, on: Bools, width: Ints, found: Ints) -> None:
    size = np.zeros(len(label), np.int64)
    for node in range(len(label)):
        if on[node]:
            size[label[node]] += 1
    for part in range(len(label)):
        many = size[part]
        if many:
            found[0] += many
            found[1] += 1
            found[2] = max(found[2], many)
            found[3] += many * many
            found[4] += width[part]
            found[5] += many * width[part]
            found[6] = max(found[6], width[part])


@numba.njit(cache=True)
def _measure_widths(
    label: Ints, touched: Bools, head: Ints, after: Ints, target: Ints, distance: Ints, queue: Ints, width: Ints
) -> None:
    """The widths of the touched islands.

    A search from one node bounds how far the farthest is from each node: d hops from the first, it is at most d more.
    Nodes whose bound is not above the width known so far need no search of their own: a few searches do.
    """
    nodes = len(label)
    bound = np.full(nodes, nodes)
    members = np.argsort(label, kind="mergesort")
    begin = 0
    while begin < nodes:
        part, end = label[members[begin]], begin
        while end < nodes and label[members[end]] == part:
            end += 1
        if touched[part]:
            width[part] = 0
            while end - begin > 1:
                centre = members[begin]
                for node in members[begin:end]:
                    if bound[node] > bound[centre]:
                        centre = node
                if bound[centre] <= width[part]:
                    break
                reached = search(centre, nodes, NOBODY, head, after, target, distance, queue)
                farthest = distance[queue[reached - 1]]
                width[part] = max(width[part], farthest)
                for node in queue[:reached]:
                    bound[node] = min(bound[node], farthest + distance[node])
                forget(distance, queue, reached)
        begin = end


@numba.njit(cache=True)
def _compare(
    nodes: int,
    looks: Ints,
    target: Ints,
    time: Ints,
    which: Ints,
    up: Bools,
    target2: Ints,
    time2: Ints,
    which2: Ints,
    up2: Bools,
) -> Ints:
    """A row for each look: the parts of the first, whether both divide alike, the ordered pairs of nodes that both
    connect, and those that the second connects."""
    found = np.zeros((len(looks), 4), np.int64)
    head, after, before = np.full(nodes, NOBODY), np.empty(len(target), np.int64), np.empty(len(target), np.int64)
    head2, after2, before2 = np.full(nodes, NOBODY), np.empty(len(target2), np.int64), np.empty(len(target2), np.int64)
    label, label2 = np.arange(nodes), np.arange(nodes)
    distance, queue = np.full(nodes, NOBODY), np.empty(nodes, np.int64)
    row, row2 = 0, 0
    for number in range(len(looks)):
        changed = number == 0
        while row < len(time) and time[row] <= looks[number]:
            changed |= change(which[row], up[row], label, head, after, before, target, distance, queue)
            row += 1
        while row2 < len(time2) and time2[row2] <= looks[number]:
            changed |= change(which2[row2], up2[row2], label2, head2, after2, before2, target2, distance, queue)
            row2 += 1
        if changed:
            found[number, 0] = (label == np.arange(nodes)).sum()
            found[number, 1] = (label == label2).all()
            found[number, 2] = _pairs(label * nodes + label2)
            found[number, 3] = _pairs(label2)
        else:
            found[number] = found[number - 1]
    return found


@numba.njit(cache=True)
def _pairs(labels: Ints) -> int:
    """How many ordered pairs of nodes share their label."""
    alike = np.sort(labels)  # nodes that share theirs stand side by side
    found, run = 0, 0
    for place in range(len(alike)):
        run = run + 1 if place and alike[place] == alike[place - 1] else 1
        found += 2 * (run - 1)
    return found
