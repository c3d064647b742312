"""Scripted links: who hears whom when there are no positions, as in small topologies drawn by hand."""

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from roamcast.units import SECOND

Pair = tuple[int, int]
Flip = tuple[int, int, int, float | None]
"""A time in ns, the two ends, and the loss of the link, or None where it goes."""


class Change(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Links that come and go at one time."""

    at: Annotated[float, Meta(ge=0, description="when, s")]
    up: Annotated[tuple[Pair, ...], Meta(description="links that come, [a, b] each, in both directions")] = ()
    down: Annotated[tuple[Pair, ...], Meta(description="links that go")] = ()


class Links(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Links instead of positions."""

    up: Annotated[tuple[Pair, ...], Meta(description="links at the start, [a, b] each, in both directions")] = ()
    loss: Annotated[float, Meta(ge=0, lt=1, description="probability that a frame is lost on a link")] = 0.0
    change: Annotated[tuple[Change, ...], Meta(description="links that come and go, in the order of time")] = ()

    def problems(self, nodes: int) -> Iterator[tuple[str, str]]:
        for field, pairs in self._pairs():
            for a, b in pairs:
                if not (0 <= a < nodes and 0 <= b < nodes):
                    yield field, f"[{a}, {b}]: nodes are numbered from 0 to {nodes - 1}"
                elif a == b:
                    yield field, f"[{a}, {b}]: a node has no link to itself"
        for number, (earlier, later) in enumerate(zip(self.change, self.change[1:], strict=False), 1):
            if later.at < earlier.at:
                yield f"change[{number}].at", f"{later.at:g} s comes after {earlier.at:g} s: changes go by time"

    def _pairs(self) -> Iterator[tuple[str, tuple[Pair, ...]]]:
        yield "up", self.up
        for number, change in enumerate(self.change):
            yield f"change[{number}].up", change.up
            yield f"change[{number}].down", change.down

    def flips(self) -> Iterator[Flip]:
        """Every change of one direction of a link, in order; the first are those at the start."""
        for a, b in self.up:
            yield from ((0, a, b, self.loss), (0, b, a, self.loss))
        for change in self.change:
            at = round(change.at * SECOND)
            for a, b in change.down:
                yield from ((at, a, b, None), (at, b, a, None))
            for a, b in change.up:
                yield from ((at, a, b, self.loss), (at, b, a, self.loss))
