"""Dictionaries that others can fill: bounded, the oldest entry makes room."""

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def put(table: dict[K, V], key: K, value: V, capacity: int) -> K | None:
    """Sets an entry, which is the newest now; gives the key of the oldest if that had to go."""
    table.pop(key, None)
    table[key] = value
    if len(table) <= capacity:
        return None
    oldest = next(iter(table))
    del table[oldest]
    return oldest
