"""Which nodes a tree connected, and when, from the facts of table `tree`.

The rule this file owns: a *tree link* connects two nodes if one has the other as parent **and** is among its children:
both ends agree. If only one end believes in it, there is no link. Whether the two can still hear each other is another
question: `Contacts.while_in` answers it.
"""

import numpy as np
import pyarrow as pa

from roamcast.analysis.contacts import Contacts, IntervalBuilder, Spans
from roamcast.errors import RoamcastError
from roamcast.facts.rows import rows_of


def tree_links(tree: pa.Table, nodes: int, end: int) -> Contacts:
    """The times of tree links as mutual contacts, from rows of `tree` in order of time."""
    links = _TreeLinks()
    for time, node, parent, children in rows_of(tree, "time", "node", "parent", "children"):
        if not 0 <= node < nodes:
            raise RoamcastError(f"the table `tree` names node {node}, but the run has {nodes} nodes, numbered from 0")
        links.take(time, node, parent, frozenset(children or ()))
    everybody = Spans(np.arange(nodes), np.zeros(nodes, np.int64), np.full(nodes, end))
    return Contacts(nodes, end, True, *links.times.columns(end), everybody)


class _TreeLinks:
    """The nodes' recorded positions in the tree, and the links on which both ends agree."""

    def __init__(self) -> None:
        self.times = IntervalBuilder()
        self._parent: dict[int, int | None] = {}
        self._children: dict[int, frozenset[int]] = {}
        self._above: dict[int, int] = {}
        """The parent of a node, if that parent agrees."""

    def take(self, time: int, node: int, parent: int | None, children: frozenset[int]) -> None:
        former = self._children.get(node, frozenset())
        self._parent[node], self._children[node] = parent, children
        for child in sorted({node} | former | children):
            self._settle(time, child)

    def _settle(self, time: int, child: int) -> None:
        parent = self._parent.get(child)
        agreed = parent is not None and parent != child and child in self._children.get(parent, frozenset())
        now, before = parent if agreed else None, self._above.pop(child, None)
        if now is not None:
            self._above[child] = now
        if before is not None and before != now and self._above.get(before) != child:
            self.times.down((min(child, before), max(child, before)), time)
        if now is not None:
            self.times.up((min(child, now), max(child, now)), time)
