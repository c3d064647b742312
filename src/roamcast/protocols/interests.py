"""Interests: which of the nodes that were heard of want an event.

Nodes with equal filters are asked as one, and a few different filters are asked directly, which is faster than the
index. In most networks many nodes want the same.
"""

from typing import Final

from roamcast.content.clauses import Effort, EffortSpent
from roamcast.content.event import Event
from roamcast.content.filter import Filter
from roamcast.content.index import FilterIndex

_FEW: Final = 4
"""Filters up to which asking each is faster than the index."""
_SHORT: Final = 64
"""Constraints up to which it takes no longer than it may."""
MATCH_EFFORT: Final = 80_000
"""Tests for one event: some 20 ms. Only an attacker's filters and events need more."""


class Interests:
    def __init__(self) -> None:
        self._filters: dict[int, Filter] = {}  # by node
        self._nodes: dict[Filter, dict[int, None]] = {}  # in the order in which they came to want it
        self._index: FilterIndex[Filter] = FilterIndex()

    def put(self, node: int, filter: Filter) -> None:
        """A node wants this, and no longer what it wanted before."""
        known = self._filters.get(node)
        if known == filter:
            return
        if known is not None:
            self.remove(node)
        self._filters[node] = filter
        if filter not in self._nodes:
            self._nodes[filter] = {}
            self._index.add(filter, filter)
        self._nodes[filter][node] = None

    def remove(self, node: int) -> None:
        """Forgets a node; `KeyError` if nothing is known of it."""
        filter = self._filters.pop(node)
        nodes = self._nodes[filter]
        del nodes[node]
        if not nodes:
            del self._nodes[filter]
            self._index.remove(filter)

    def match(self, event: Event) -> list[int]:
        """The nodes that want an event, each once; or all of them, if it takes too long to find out."""
        if len(self._nodes) > _FEW or self._index.constraints > _SHORT:
            try:
                wanting = self._index.match(event, Effort(MATCH_EFFORT))
            except EffortSpent:
                wanting = list(self._nodes)
            return [node for filter in wanting for node in self._nodes[filter]]
        return [node for filter, nodes in self._nodes.items() if filter.matches(event) for node in nodes]

    def __len__(self) -> int:
        return len(self._filters)
