"""Who is connected with whom at given instants: over the links of a tree, by positions, or by scripted links.

The rules this file owns:

* A tree link joins two nodes if one has the other as parent **and** is among its children: both ends agree. What one
  end alone believes in is no link.
* Two nodes are neighbours if each hears the other: by positions, if each is within the other's range; by scripted
  links, if both directions are there.
* What happens at an instant has happened by then.

Parts are told by *labels*: an array with a row an instant and a column a node; the label of a node is the smallest node
of its part. Two divisions of the nodes into parts are the same if their labels are.
"""

from typing import Final, NamedTuple

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from roamcast.errors import RoamcastError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Labels = NDArray[np.int32]

_NOBODY: Final = -1
_PLACES: Final = ("x0", "y0", "x1", "y1")


# --- Three ways to be connected -------------------------------------------------------------------------------------


def by_tree(instants: Ints, nodes: int, tree: pa.Table) -> Labels:
    """By tree links, from rows of `tree` in the order of time. A node without a row, or not on the tree, is alone."""
    node = tree["node"].to_numpy()
    if len(node) and not 0 <= node.min() <= node.max() < nodes:
        raise RoamcastError(f"the table `tree` names node {node.max()}, but the run has {nodes} nodes, numbered from 0")
    parent = pc.fill_null(tree["parent"], _NOBODY).to_numpy()
    known = np.where((parent >= 0) & (parent < nodes), parent, _NOBODY)
    children = tree["children"].combine_chunks()
    counts = pc.fill_null(pc.list_value_length(children), 0).to_numpy().astype(np.int64)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return _by_tree(instants, nodes, tree["time"].to_numpy(), node, known, ends, children.flatten().to_numpy())


def by_movement(instants: Ints, nodes: int, leg: pa.Table, outdoor: float, indoor: float) -> Labels | None:
    """By positions and ranges, from rows of `leg`; None where a node has no position."""
    node, start = leg["node"].to_numpy(), leg["start"].to_numpy()
    if len(np.unique(node)) < nodes:
        return None
    order = np.lexsort((start, node))
    first = np.searchsorted(node[order], np.arange(nodes + 1))
    reach = np.where(leg["indoor"].to_numpy(zero_copy_only=False), indoor, outdoor)[order]
    ways = [leg[name].to_numpy()[order] for name in _PLACES]
    return _by_movement(instants, first, reach, start[order], leg["end"].to_numpy()[order], *ways)


def by_links(instants: Ints, nodes: int, link: pa.Table) -> Labels:
    """By scripted or recorded links, from rows of `link` in the order of time."""
    up = pc.is_valid(link["loss"]).to_numpy(zero_copy_only=False)
    time, sender, receiver = (link[name].to_numpy() for name in ("time", "sender", "receiver"))
    return _by_links(instants, nodes, time, sender, receiver, up)


# --- Two divisions compared -----------------------------------------------------------------------------------------


class Agreement(NamedTuple):
    """How far the parts of a tree are those of the network."""

    matched: float
    """Share of the instants at which the parts are the same."""
    reach: float | None
    """Mean, over the instants at which any two nodes are connected physically, of the share of such pairs that the tree
    connects too."""


def parts(labels: Labels) -> Ints:
    """How many parts there are, by instant: every part has one node whose label is the node itself."""
    count: Ints = (labels == np.arange(labels.shape[1], dtype=np.int32)).sum(axis=1)
    return count


def agreement(tree: Labels, network: Labels) -> Agreement:
    """At least one instant is needed."""
    both, physical = _pairs(tree, network)
    some = physical > 0
    reach = float((both[some] / physical[some]).mean()) if some.any() else None
    return Agreement(float((tree == network).all(axis=1).mean()), reach)


# --- Compiled -------------------------------------------------------------------------------------------------------


@numba.njit(cache=True)
def _least(root: Labels, node: int) -> int:
    """The smallest node of the part as it is known so far."""
    while root[node] != node:
        root[node] = root[root[node]]
        node = root[node]
    return node


@numba.njit(cache=True)
def _join(root: Labels, a: int, b: int) -> None:
    i, j = _least(root, a), _least(root, b)
    if i < j:
        root[j] = i
    else:
        root[i] = j


@numba.njit(cache=True)
def _by_tree(
    instants: Ints, nodes: int, time: Ints, node: Ints, parent: Ints, child_ends: Ints, children: Ints
) -> Labels:
    labels = np.empty((len(instants), nodes), np.int32)
    current = np.full(nodes, _NOBODY)  # the row that has the node's place
    row = 0
    for number in range(len(instants)):
        while row < len(time) and time[row] <= instants[number]:
            current[node[row]] = row
            row += 1
        root = labels[number]
        for one in range(nodes):
            root[one] = one
        for one in range(nodes):
            above = parent[current[one]] if current[one] != _NOBODY else _NOBODY
            if above == _NOBODY or current[above] == _NOBODY:
                continue
            place = current[above]
            for child in range(child_ends[place], child_ends[place + 1]):
                if children[child] == one:
                    _join(root, one, above)
                    break
        for one in range(nodes):
            root[one] = _least(root, one)
    return labels


@numba.njit(cache=True)
def _by_movement(
    instants: Ints,
    first: Ints,
    reaches: Floats,
    starts: Ints,
    ends: Ints,
    x0: Floats,
    y0: Floats,
    x1: Floats,
    y1: Floats,
) -> Labels:
    """The instants must rise; the legs of node n are those from first[n] to first[n + 1], in order."""
    nodes = len(first) - 1
    labels = np.empty((len(instants), nodes), np.int32)
    current = first.copy()
    x, y, reach = np.empty(nodes), np.empty(nodes), np.empty(nodes)
    for number in range(len(instants)):
        now, root = instants[number], labels[number]
        for node in range(nodes):
            leg = current[node]
            while ends[leg] <= now and leg + 1 < first[node + 1]:
                leg += 1
            current[node] = leg
            share = min(1.0, (now - starts[leg]) / (ends[leg] - starts[leg]))
            x[node] = x0[leg] + share * (x1[leg] - x0[leg])
            y[node] = y0[leg] + share * (y1[leg] - y0[leg])
            reach[node] = reaches[leg]
            root[node] = node
        # From the left to the right: whoever is too far along x has only such behind it.
        order = np.argsort(x)
        for place in range(nodes):
            a = order[place]
            for later in range(place + 1, nodes):
                b = order[later]
                dx, dy = x[b] - x[a], y[b] - y[a]
                if dx > reach[a]:
                    break
                mutual = min(reach[a], reach[b])
                if dx * dx + dy * dy <= mutual * mutual:
                    _join(root, a, b)
        for node in range(nodes):
            root[node] = _least(root, node)
    return labels


@numba.njit(cache=True)
def _by_links(instants: Ints, nodes: int, time: Ints, sender: Ints, receiver: Ints, up: NDArray[np.bool_]) -> Labels:
    labels = np.empty((len(instants), nodes), np.int32)
    hears = np.zeros((nodes, nodes), np.bool_)
    row, changed = 0, True
    for number in range(len(instants)):
        while row < len(time) and time[row] <= instants[number]:
            hears[receiver[row], sender[row]] = up[row]
            row += 1
            changed = True
        root = labels[number]
        if not changed:
            root[:] = labels[number - 1]
            continue
        for node in range(nodes):
            root[node] = node
        for a in range(nodes):
            for b in range(a):
                if hears[a, b] and hears[b, a]:
                    _join(root, a, b)
        for node in range(nodes):
            root[node] = _least(root, node)
        changed = False
    return labels


@numba.njit(cache=True)
def _pairs(tree: Labels, network: Labels) -> tuple[Ints, Ints]:
    """By instant, the ordered pairs of nodes that both divisions have in one part, and those that the second has."""
    instants, nodes = tree.shape
    both, physical = np.zeros(instants, np.int64), np.zeros(instants, np.int64)
    size = np.empty(nodes, np.int64)
    for number in range(instants):
        size[:] = 0
        for node in range(nodes):
            size[network[number, node]] += 1
        for node in range(nodes):
            physical[number] += size[network[number, node]] - 1
        # Nodes that share both labels stand side by side.
        shared = np.sort(tree[number].astype(np.int64) * nodes + network[number])
        run = 0
        for place in range(nodes):
            run = run + 1 if place and shared[place] == shared[place - 1] else 1
            both[number] += 2 * (run - 1)
    return both, physical
