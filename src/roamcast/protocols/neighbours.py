"""The soft-state table: what was last heard from each node, until it is too long ago.

Bounded: when it is full, the node silent for longest makes room.
"""

from collections.abc import ItemsView, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

V = TypeVar("V")


@dataclass(slots=True)
class Heard(Generic[V]):
    """Belongs to the table, which changes it when the node is heard of again: to be read at once, not kept."""

    last: int
    """Time it was last heard, ns."""
    value: V


class NeighbourTable(Generic[V]):
    def __init__(self, lifetime: int, capacity: int) -> None:
        if lifetime < 0 or capacity < 1:
            raise ValueError(f"a table needs a lifetime of 0 or more and room for one, not {lifetime} and {capacity}")
        self._lifetime = lifetime
        self._capacity = capacity
        self._heard: dict[int, Heard[V]] = {}  # longest ago first

    def hear(self, now: int, node: int, value: V) -> int | None:
        """Stores a node's value; returns the node that had to make room, if any."""
        heard = self._heard.pop(node, None)
        if heard is None:
            heard = Heard(now, value)
        else:
            heard.last, heard.value = now, value
        self._heard[node] = heard
        if len(self._heard) <= self._capacity:
            return None
        oldest = next(iter(self._heard))
        del self._heard[oldest]
        return oldest

    def renew(self, now: int, node: int) -> Heard[V] | None:
        """Notes that a known node was heard again, with its value as it was; None if the node is not known."""
        heard = self._heard.pop(node, None)
        if heard is not None:
            heard.last = now
            self._heard[node] = heard
        return heard

    def expire(self, now: int) -> list[int]:
        """Removes the nodes silent for longer than the lifetime, and returns them."""
        gone = []
        for node, heard in self._heard.items():
            if now - heard.last <= self._lifetime:
                break
            gone.append(node)
        for node in gone:
            del self._heard[node]
        return gone

    def get(self, node: int) -> Heard[V] | None:
        return self._heard.get(node)

    def items(self) -> ItemsView[int, Heard[V]]:
        """Longest ago first."""
        return self._heard.items()

    def __contains__(self, node: int) -> bool:
        return node in self._heard

    def __len__(self) -> int:
        return len(self._heard)

    def __iter__(self) -> Iterator[int]:
        """Longest ago first."""
        return iter(self._heard)
