"""Bounds dictionaries that other nodes can fill: the oldest entry makes room."""

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def put(table: dict[K, V], key: K, value: V, capacity: int) -> K | None:
    """Sets an entry and makes it the newest; returns the key of the oldest if that was removed for it."""
    table.pop(key, None)
    table[key] = value
    if len(table) <= capacity:
        return None
    oldest = next(iter(table))
    del table[oldest]
    return oldest
