"""Values that a scenario gives or draws: one value, a list to draw from, or bounds to draw between."""

from collections.abc import Iterator
from random import Random
from typing import Final, TypeVar

import msgspec

from roamcast.content.event import Scalar

T = TypeVar("T", str, float)

MIN_INTERVAL: Final = 0.001
"""Seconds between two changes of an attribute or a subscription."""


class Span(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A number drawn uniformly; whole if both bounds are."""

    low: int | float
    high: int | float

    def draw(self, rng: Random) -> int | float:
        if isinstance(self.low, int) and isinstance(self.high, int):
            return rng.randint(self.low, self.high)
        return rng.uniform(self.low, self.high)


Drawn = str | int | float | bool | tuple[str | int | float | bool, ...] | Span


def draw(drawn: Drawn, rng: Random) -> Scalar:
    if isinstance(drawn, Span):
        return drawn.draw(rng)
    return rng.choice(drawn) if isinstance(drawn, tuple) else drawn


def choices(one_or_more: T | tuple[T, ...] | None) -> tuple[T, ...]:
    """What to draw from; none: there is nothing to draw."""
    return () if one_or_more is None else one_or_more if isinstance(one_or_more, tuple) else (one_or_more,)


def interval_problems(field: str, interval: float | None, what: str) -> Iterator[tuple[str, str]]:
    if interval is not None and not interval >= MIN_INTERVAL:
        yield field, f"{interval:g} s: at least {MIN_INTERVAL:g} s between two {what}"


def values_of(drawn: Drawn) -> tuple[Scalar, ...]:
    """The possible values; for a span, its bounds. Raises `ValueError` if there is none."""
    if isinstance(drawn, Span):
        if not drawn.low <= drawn.high:
            raise ValueError(f"low {drawn.low} is above high {drawn.high}")
        return drawn.low, drawn.high
    values = drawn if isinstance(drawn, tuple) else (drawn,)
    if not values:
        raise ValueError("an empty list: at least one value to draw from")
    return values


def own_range(bounds: tuple[float, float], seed: int, node: int) -> float:
    """The range of a node, m, if each node's range is drawn once."""
    return Random(f"{seed}/range/{node}").uniform(*bounds)
