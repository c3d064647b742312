"""Points of an experiment in words: `at degree 4 to 16`, `at every speed`, `at rate 1 with speed 5 and 10`."""

import itertools
from collections.abc import Sequence
from typing import Any, Final

from roamcast.report.numbers import value_text

Place = tuple[Any, ...]

_MOST: Final = 3
"""Most parts of a list of points; with more, they are counted."""


def where(chosen: Sequence[Place], places: Sequence[Place], axes: Sequence[str]) -> str:
    """At which points; empty if there is only one. A point has one value for each axis."""
    if len(places) < 2:
        return ""
    if len(chosen) == len(places):
        varied = [axis for number, axis in enumerate(axes) if len({value_text(place[number]) for place in places}) > 1]
        several = any(axis.endswith("s") for axis in varied)  # nobody says "at every nodes"
        return f" at every {'value of ' if several else ''}{listed(varied)}"
    parts = _product(chosen, places, axes)
    if parts is not None:
        return f" at {parts}"
    rest = [place for place in places if place not in chosen]
    parts = _product(rest, places, axes) if len(rest) < len(chosen) else None
    return f" at {len(chosen)} of {len(places)} points" if parts is None else f" everywhere but at {parts}"


def _product(chosen: Sequence[Place], places: Sequence[Place], axes: Sequence[str]) -> str | None:
    """Points that are all combinations of some values of each axis; None if they are not."""
    texts = [tuple(map(value_text, place)) for place in chosen]
    orders = [list(dict.fromkeys(value_text(place[number]) for place in places)) for number in range(len(axes))]
    sides = [[value for value in order if value in {text[n] for text in texts}] for n, order in enumerate(orders)]
    if len(set(texts)) != len(list(itertools.product(*sides))):
        return None
    parts = [
        f"{axis} {neighbours(side, order)}"
        for axis, side, order in zip(axes, sides, orders, strict=True)
        if len(side) < len(order)
    ]
    return " with ".join(parts)


def neighbours(texts: Sequence[str], order: Sequence[str]) -> str:
    """Values of an axis; three or more neighbours are written as a range."""
    runs = []
    for _, run in itertools.groupby(enumerate(texts), key=lambda at: order.index(at[1]) - at[0]):
        group = [text for _, text in run]
        runs += [f"{group[0]} to {group[-1]}"] if len(group) > 2 else group
    return listed(runs) if len(runs) <= _MOST else f"{', '.join(runs[:_MOST])} and {len(runs) - _MOST} more"


def listed(words: Sequence[str], last: str = "and") -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"
