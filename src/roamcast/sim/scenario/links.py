"""Scripted links: which nodes hear each other if there are no positions; written by hand, drawn or recorded."""

import heapq
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Annotated

import msgspec
from msgspec import Meta

from roamcast.sim.mobility.trace import Subset, Window, link_changes
from roamcast.sim.scenario.drawn_links import Cycle, NodePair, RandomTree
from roamcast.sim.scenario.some_nodes import unknown_nodes
from roamcast.units import SECOND

Flip = tuple[int, int, int, float | None]
"""A time in ns, the two ends, and the loss of the link, or None if the link ends."""


class LinkChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Links that come and go at one time."""

    at: Annotated[float, Meta(ge=0, description="when, s")]
    up: Annotated[tuple[NodePair, ...], Meta(description="links that come, [a, b] each, in both directions")] = ()
    down: Annotated[tuple[NodePair, ...], Meta(description="links that go")] = ()


class ScriptedLinks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Links instead of positions."""

    up: Annotated[tuple[NodePair, ...], Meta(description="links at the start, [a, b] each, in both directions")] = ()
    loss: Annotated[float, Meta(ge=0, lt=1, description="probability that a frame is lost on a link")] = 0.0
    change: Annotated[tuple[LinkChange, ...], Meta(description="links that come and go, in the order of time")] = ()
    tree: Annotated[RandomTree | None, Meta(description="a random tree, drawn from the seed")] = None
    cycle: Annotated[tuple[Cycle, ...], Meta(description="links that take turns")] = ()
    file: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="a trace of contacts, relative to the folder of the scenario"),
    ] = None
    window: Window = None
    subset: Subset = "first"

    def problems(self, nodes: int) -> Iterator[tuple[str, str]]:
        for field, pairs in self._pairs():
            for a, b in pairs:
                if not (0 <= a < nodes and 0 <= b < nodes):
                    yield field, f"[{a}, {b}]: nodes are numbered from 0 to {nodes - 1}"
                elif a == b:
                    yield field, f"[{a}, {b}]: a node has no link to itself"
        for number, (earlier, later) in enumerate(zip(self.change, self.change[1:], strict=False), 1):
            if later.at < earlier.at:
                yield (
                    f"change[{number}].at",
                    f"{later.at:g} s comes after {earlier.at:g} s: changes must be sorted by time",
                )
        for field, given in (("window", self.window is not None), ("subset", self.subset != "first")):
            if given and self.file is None:
                yield field, "needs a trace: give file"
        if self.tree is not None:
            yield from (("tree", rule) for rule in _tree_problems(self.tree, nodes))

    def _pairs(self) -> Iterator[tuple[str, tuple[NodePair, ...]]]:
        yield "up", self.up
        for number, change in enumerate(self.change):
            yield f"change[{number}].up", change.up
            yield f"change[{number}].down", change.down
        for number, cycle in enumerate(self.cycle):
            yield from ((f"cycle[{number}].states", state) for state in cycle.states)

    def flips(self, seed: int = 0, end: int = 0, nodes: int = 0, folder: Path = Path()) -> Iterator[Flip]:
        """Every change of one direction of a link, in order; the first are those at the start.

        Random links depend on the seed; links take turns until `end`. The name of a trace is relative to `folder`.
        """
        cycles = [self._taking_turns(cycle, n, seed, end) for n, cycle in enumerate(self.cycle)]
        recorded = self._recorded(seed, end, nodes, folder)
        return heapq.merge(self._scripted(seed), *cycles, recorded, key=lambda flip: flip[0])

    def _recorded(self, seed: int, end: int, nodes: int, folder: Path) -> Iterator[Flip]:
        if self.file is None:
            return
        for at, a, b, there in link_changes(folder / self.file, nodes, seed, self.window, self.subset):
            if at < end:
                yield from _both_ways(at, a, b, self.loss if there else None)

    def _scripted(self, seed: int) -> Iterator[Flip]:
        drawn = [] if self.tree is None else self.tree.links(Random(f"{seed}/links/tree"))
        yield from self._changed(0, (), (*self.up, *drawn))
        for change in self.change:
            yield from self._changed(round(change.at * SECOND), change.down, change.up)

    def _taking_turns(self, cycle: Cycle, number: int, seed: int, end: int) -> Iterator[Flip]:
        for at, down, up in cycle.changes(Random(f"{seed}/links/cycle/{number}"), end):
            yield from self._changed(at, down, up)

    def _changed(self, at: int, down: Iterable[NodePair], up: Iterable[NodePair]) -> Iterator[Flip]:
        for a, b in down:
            yield from _both_ways(at, a, b, None)
        for a, b in up:
            yield from _both_ways(at, a, b, self.loss)


def _both_ways(at: int, a: int, b: int, loss: float | None) -> tuple[Flip, Flip]:
    return (at, a, b, loss), (at, b, a, loss)


def _tree_problems(tree: RandomTree, nodes: int) -> Iterator[str]:
    if len(set(tree.nodes)) < len(tree.nodes):
        yield "a node is named more than once"
    yield from unknown_nodes(tree.nodes, nodes)
