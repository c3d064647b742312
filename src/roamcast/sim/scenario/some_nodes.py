"""The nodes that a part of a scenario applies to."""

from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec
from msgspec import Meta


class SomeNodes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a scenario that is about some nodes, or about all."""

    nodes: Annotated[tuple[int, ...] | None, Meta(description="which nodes; none: all")] = None

    def members(self, nodes: int) -> tuple[int, ...]:
        return tuple(range(nodes)) if self.nodes is None else self.nodes

    def problems(self, nodes: int) -> Iterator[tuple[str, str]]:
        for problem in unknown_nodes(self.nodes or (), nodes):
            yield "nodes", problem


def unknown_nodes(named: Iterable[int], nodes: int) -> Iterator[str]:
    """A complaint about each named node that does not exist, given the number of nodes."""
    for node in named:
        if not 0 <= node < nodes:
            yield f"{node}: nodes are numbered from 0 to {nodes - 1}"
