"""Union-find: which nodes are connected, when links are told one after the other. The project's only one.

`root` has, for each node, another of its part or itself; at first every node is its own. The representative of a part
is its smallest node, so that two divisions of the nodes into parts are the same exactly if their labels are.

Compiled callers in other files are cached by numba, which does not notice a change here: after one, remove the
`__pycache__` folders.
"""

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.signedinteger[Any]]


@numba.njit(cache=True)
def least(root: Labels, node: int) -> int:
    """The smallest node of the part, as far as it is known."""
    while root[node] != node:
        root[node] = root[root[node]]
        node = root[node]
    return node


@numba.njit(cache=True)
def join(root: Labels, a: int, b: int) -> None:
    """There is a link between a and b."""
    i, j = least(root, a), least(root, b)
    if i < j:
        root[j] = i
    else:
        root[i] = j


@numba.njit(cache=True)
def separate(root: Labels) -> None:
    """Nobody is connected with anybody."""
    for node in range(len(root)):
        root[node] = node


@numba.njit(cache=True)
def settle(root: Labels) -> None:
    """Makes `root` the labels: the smallest node of each node's part. More may be joined afterwards."""
    for node in range(len(root)):
        root[node] = least(root, node)
