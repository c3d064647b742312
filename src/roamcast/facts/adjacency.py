"""The graph of the moment, for sweeps through time: links come and go at no cost, and parts follow.

Compiled; the state is a handful of arrays. A link c between two nodes is two *arcs*, 2c and 2c + 1, one for each
direction; `target[arc]` is where it leads, so `target[arc ^ 1]` is where it comes from. The arcs that leave a node are
a list through `after` and `before`, beginning with `head[node]`; -1 ends it.

*Labels* divide the nodes into parts: the label of a node is the smallest node of its part, so that two divisions are
the same exactly if their labels are. A link that comes joins two parts or none. One that goes divides a part only if no
other way is left, and where nodes have many neighbours another way is found within a few steps.

Compiled callers in other files are cached by numba, which does not notice a change here: after one, remove the
`__pycache__` folders.
"""

from typing import Final

import numba
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

NOBODY: Final = -1


def targets(first: Ints, second: Ints) -> Ints:
    """Where the arcs of links between these nodes lead."""
    return np.column_stack([second, first]).ravel()


@numba.njit(cache=True)
def link(arc: int, head: Ints, after: Ints, before: Ints, target: Ints) -> None:
    """The arc is there from now on."""
    node = target[arc ^ 1]
    after[arc], before[arc] = head[node], NOBODY
    if head[node] != NOBODY:
        before[head[node]] = arc
    head[node] = arc


@numba.njit(cache=True)
def unlink(arc: int, head: Ints, after: Ints, before: Ints, target: Ints) -> None:
    """The arc is no longer there."""
    if before[arc] == NOBODY:
        head[target[arc ^ 1]] = after[arc]
    else:
        after[before[arc]] = after[arc]
    if after[arc] != NOBODY:
        before[after[arc]] = before[arc]


@numba.njit(cache=True)
def search(
    source: int, hops: int, goal: int, head: Ints, after: Ints, target: Ints, distance: Ints, queue: Ints
) -> int:
    """Breadth first, at most so many hops, until `goal` is found: how many nodes were reached.

    They are in `queue`, the nearest first, with their distances. Before, all distances must be -1: see `forget`.
    """
    distance[source], queue[0] = 0, source
    place, reached = 0, 1
    while place < reached and distance[queue[place]] < hops:
        arc = head[queue[place]]
        while arc != NOBODY:
            other = target[arc]
            if distance[other] < 0:
                distance[other] = distance[queue[place]] + 1
                queue[reached] = other
                reached += 1
                if other == goal:
                    return reached
            arc = after[arc]
        place += 1
    return reached


@numba.njit(cache=True)
def forget(distance: Ints, queue: Ints, reached: int) -> None:
    """Undoes what a search has written to `distance`."""
    for place in range(reached):
        distance[queue[place]] = NOBODY


@numba.njit(cache=True)
def joined(label: Ints, a: int, b: int) -> bool:
    """A link between a and b has come: gives whether parts became one."""
    low, high = min(label[a], label[b]), max(label[a], label[b])
    if low == high:
        return False
    for node in range(len(label)):
        if label[node] == high:
            label[node] = low
    return True


@numba.njit(cache=True)
def divided(label: Ints, a: int, b: int, head: Ints, after: Ints, target: Ints, distance: Ints, queue: Ints) -> bool:
    """A link between a and b has gone: gives whether a part became two."""
    reached = search(a, len(label), b, head, after, target, distance, queue)
    apart: bool = distance[b] < 0
    if apart:
        old, here, there = label[a], len(label), len(label)
        for node in range(len(label)):
            if label[node] == old and distance[node] < 0:
                there = min(there, node)
            elif label[node] == old:
                here = min(here, node)
        for node in range(len(label)):
            if label[node] == old:
                label[node] = there if distance[node] < 0 else here
    forget(distance, queue, reached)
    return apart


@numba.njit(cache=True)
def change(
    one: int,
    up: bool,
    label: Ints,
    head: Ints,
    after: Ints,
    before: Ints,
    target: Ints,
    distance: Ints,
    queue: Ints,
) -> bool:
    """Link number `one` comes or goes, in both directions: gives whether the parts are others now."""
    a, b = target[2 * one + 1], target[2 * one]
    if up:
        link(2 * one, head, after, before, target)
        link(2 * one + 1, head, after, before, target)
        return joined(label, a, b)
    unlink(2 * one, head, after, before, target)
    unlink(2 * one + 1, head, after, before, target)
    return divided(label, a, b, head, after, target, distance, queue)
