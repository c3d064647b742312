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
from roamcast.facts.contacts import Contacts, Ints
from roamcast.facts.unionfind import join, separate, settle
from roamcast.units import SECOND

Bools = NDArray[np.bool_]
Labels = NDArray[np.int32]
"""The smallest node of each node's part."""


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
    seen = _look(
        *(network.nodes, looks, network.sender, network.receiver, *_changes(network.begin, network.until)),
        *(on_time, on.node[on_which], on_up, widths),
    )
    present, number, largest, squares, *wide = seen
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
        *(tree.nodes, looks, tree.sender, tree.receiver, *_changes(tree.begin, tree.until)),
        *(against.sender, against.receiver, *_changes(against.begin, against.until)),
    )
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
    return (network.until - network.begin)[whole]


def gaps(network: Contacts, start: int) -> Ints:
    """How long pairs were apart between two contacts, ns: those gaps that began after `start`."""
    again = (network.pair[1:] == network.pair[:-1]) & (network.until[:-1] > start)
    return (network.begin[1:] - network.until[:-1])[again]


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
def _advance(
    now: int, row: int, count: int, time: Ints, which: Ints, up: Bools, active: Ints, place: Ints
) -> tuple[int, int, bool]:
    """Takes the changes up to `now`: the next row, how many contacts are active, and whether one has ended."""
    ended = False
    while row < len(time) and time[row] <= now:
        one = which[row]
        if up[row]:
            active[count], place[one] = one, count
            count += 1
        else:
            count -= 1
            last = active[count]
            active[place[one]], place[last] = last, place[one]
            ended = True
        row += 1
    return row, count, ended


@numba.njit(cache=True)
def _relabel(root: Labels, afresh: bool, active: Ints, count: int, sender: Ints, receiver: Ints) -> None:
    """The labels by the active contacts. New contacts only join; when one ends, all begins afresh."""
    if afresh:
        separate(root)
    for number in range(count):
        join(root, sender[active[number]], receiver[active[number]])
    settle(root)


@numba.njit(cache=True)
def _look(
    nodes: int,
    looks: Ints,
    sender: Ints,
    receiver: Ints,
    time: Ints,
    which: Ints,
    up: Bools,
    on_time: Ints,
    on_node: Ints,
    on_up: Bools,
    widths: bool,
) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints, Ints]:
    found = np.zeros((7, len(looks)), np.int64)
    active, place = np.empty(len(sender), np.int64), np.empty(len(sender), np.int64)
    row, count, on_row = 0, 0, 0
    on = np.zeros(nodes, np.bool_)
    root, size, width = np.arange(nodes).astype(np.int32), np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    touched = np.zeros(nodes, np.bool_)  # islands, by label, whose width must be worked out again
    for number in range(len(looks)):
        before = row
        row, count, ended = _advance(looks[number], row, count, time, which, up, active, place)
        while on_row < len(on_time) and on_time[on_row] <= looks[number]:
            on[on_node[on_row]] = on_up[on_row]
            on_row += 1
        if row > before:
            _relabel(root, ended, active, count, sender, receiver)
            if widths:
                # An island without an end of a changed contact has the same nodes and the same contacts as before.
                touched[:] = False
                for change in range(before, row):
                    touched[root[sender[which[change]]]] = True
                    touched[root[receiver[which[change]]]] = True
                _measure_widths(root, touched, active, count, sender, receiver, width)
        size[:] = 0
        for node in range(nodes):
            if on[node]:
                size[root[node]] += 1
        for label in range(nodes):
            many = size[label]
            if many:
                found[0, number] += many
                found[1, number] += 1
                found[2, number] = max(found[2, number], many)
                found[3, number] += many * many
                found[4, number] += width[label]
                found[5, number] += many * width[label]
                found[6, number] = max(found[6, number], width[label])
    return found[0], found[1], found[2], found[3], found[4], found[5], found[6]


@numba.njit(cache=True)
def _measure_widths(
    root: Labels, touched: Bools, active: Ints, count: int, sender: Ints, receiver: Ints, width: Ints
) -> None:
    """The widths of the touched islands.

    A search from one node bounds the farthest of every other node on its island: between `far - d` or d, and `far + d`.
    Nodes that cannot be farther from any than what is known need no search of their own: a few searches do.
    """
    nodes = len(root)
    first, near = neighbours(nodes, active, count, sender, receiver)
    high = np.full(nodes, nodes)
    distance, queue = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    members = np.argsort(root, kind="mergesort")
    begin = 0
    while begin < nodes:
        label = root[members[begin]]
        end = begin
        while end < nodes and root[members[end]] == label:
            end += 1
        if touched[label]:
            width[label] = 0
            while end - begin > 1:
                centre = members[begin]
                for number in range(begin, end):
                    if high[members[number]] > high[centre]:
                        centre = members[number]
                if high[centre] <= width[label]:
                    break
                reached = search(centre, nodes, first, near, distance, queue)
                far = distance[queue[reached - 1]]
                width[label] = max(width[label], far)
                for number in range(reached):
                    node = queue[number]
                    high[node] = min(high[node], far + distance[node])
                high[centre] = far
        begin = end


@numba.njit(cache=True)
def neighbours(nodes: int, active: Ints, count: int, sender: Ints, receiver: Ints) -> tuple[Ints, Ints]:
    """The neighbours of node n are those from first[n] to first[n + 1]."""
    first = np.zeros(nodes + 2, np.int64)
    for number in range(count):
        first[sender[active[number]] + 2] += 1
        first[receiver[active[number]] + 2] += 1
    for node in range(2, nodes + 2):
        first[node] += first[node - 1]
    near = np.empty(2 * count, np.int64)
    for number in range(count):
        a, b = sender[active[number]], receiver[active[number]]
        near[first[a + 1]] = b
        first[a + 1] += 1
        near[first[b + 1]] = a
        first[b + 1] += 1
    return first, near


@numba.njit(cache=True)
def search(source: int, hops: int, first: Ints, near: Ints, distance: Ints, queue: Ints) -> int:
    """Breadth first, at most so many hops: how many nodes were reached. They are in `queue`, the nearest first."""
    distance[:] = -1
    distance[source], queue[0] = 0, source
    head, tail = 0, 1
    while head < tail:
        node = queue[head]
        head += 1
        if distance[node] == hops:
            break
        for place in range(first[node], first[node + 1]):
            other = near[place]
            if distance[other] < 0:
                distance[other] = distance[node] + 1
                queue[tail] = other
                tail += 1
    return tail


@numba.njit(cache=True)
def _compare(
    nodes: int,
    looks: Ints,
    sender: Ints,
    receiver: Ints,
    time: Ints,
    which: Ints,
    up: Bools,
    sender2: Ints,
    receiver2: Ints,
    time2: Ints,
    which2: Ints,
    up2: Bools,
) -> tuple[Ints, Bools, Ints, Ints]:
    """By look: the parts of the first, whether both divide alike, the ordered pairs that both connect, and that the
    second does."""
    parts, same = np.empty(len(looks), np.int64), np.empty(len(looks), np.bool_)
    both, physical = np.zeros(len(looks), np.int64), np.zeros(len(looks), np.int64)
    active, place = np.empty(len(sender), np.int64), np.empty(len(sender), np.int64)
    active2, place2 = np.empty(len(sender2), np.int64), np.empty(len(sender2), np.int64)
    row, count, row2, count2 = 0, 0, 0, 0
    root, root2 = np.arange(nodes).astype(np.int32), np.arange(nodes).astype(np.int32)
    for number in range(len(looks)):
        row, count, ended = _advance(looks[number], row, count, time, which, up, active, place)
        row2, count2, ended2 = _advance(looks[number], row2, count2, time2, which2, up2, active2, place2)
        _relabel(root, ended, active, count, sender, receiver)
        _relabel(root2, ended2, active2, count2, sender2, receiver2)
        parts[number] = 0
        same[number] = True
        for node in range(nodes):
            parts[number] += root[node] == node
            same[number] &= root[node] == root2[node]
        both[number] = _pairs(root.astype(np.int64) * nodes + root2)
        physical[number] = _pairs(root2.astype(np.int64))
    return parts, same, both, physical


@numba.njit(cache=True)
def _pairs(labels: Ints) -> int:
    """How many ordered pairs of nodes share their label."""
    alike = np.sort(labels)  # nodes that share theirs stand side by side
    found, run = 0, 0
    for place in range(len(alike)):
        run = run + 1 if place and alike[place] == alike[place - 1] else 1
        found += 2 * (run - 1)
    return found
