"""Units of time. Times are whole nanoseconds everywhere but where people read or write them."""

from typing import Final

SECOND: Final = 1_000_000_000
"""Nanoseconds."""


def seconds(amount: float) -> int:
    """A duration in seconds, as people write it, in nanoseconds."""
    return round(amount * SECOND)
