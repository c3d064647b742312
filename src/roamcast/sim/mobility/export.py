"""Exports our movements to other simulators, so that results can be checked there: ns-2, ns-3, the ONE, BonnMotion.

Legs are exact in BonnMotion, whose waypoints are their ends, and in ns-2 up to the digits of a speed: `setdest` has a
speed and not a time of arrival, so each leg starts at its own time and corrects what the one before left. The ONE takes
positions at ticks. A node that is away stays where it is in all three: none of them can say so.
"""

import math
from collections.abc import Callable, Iterator
from typing import Final

from roamcast.sim.mobility.base import Leg, position
from roamcast.units import SECOND

Walks = list[list[Leg]]
"""The legs of each node, from 0 to the end or beyond it."""


def taken(walks: list[Iterator[Leg]], end: int) -> Walks:
    """The legs that begin before the end."""
    found: Walks = []
    for walk in walks:
        legs: list[Leg] = []
        for leg in walk:
            legs.append(leg)
            if leg.end >= end:
                break
        found.append(legs)
    return found


def ns2(walks: Walks, end: int, tick: float) -> Iterator[str]:
    for node, legs in enumerate(walks):
        for axis, value in (("X", legs[0].x0), ("Y", legs[0].y0), ("Z", 0.0)):
            yield f"$node_({node}) set {axis}_ {value:.6f}"
    moving = [(leg.start, node, leg) for node, legs in enumerate(walks) for leg in legs if leg.start < end]
    for start, node, leg in sorted(moving, key=lambda one: one[:2]):
        way = math.hypot(leg.x1 - leg.x0, leg.y1 - leg.y0)
        if way > 0:
            speed = way / ((leg.end - leg.start) / SECOND)
            yield f'$ns_ at {start / SECOND:.9f} "$node_({node}) setdest {leg.x1:.6f} {leg.y1:.6f} {speed:.9f}"'


def one(walks: Walks, end: int, tick: float) -> Iterator[str]:
    places = [(leg.x0, leg.y0) for legs in walks for leg in legs] + [(leg.x1, leg.y1) for legs in walks for leg in legs]
    x, y = max(place[0] for place in places), max(place[1] for place in places)
    yield f"0 {end / SECOND:.3f} 0 {x:.6f} 0 {y:.6f}"
    at = [0] * len(walks)
    for number in range(int(end / (tick * SECOND)) + 1):
        time = round(number * tick * SECOND)
        for node, legs in enumerate(walks):
            while at[node] + 1 < len(legs) and legs[at[node]].end <= time:
                at[node] += 1
            here = position(legs[at[node]], time)
            yield f"{time / SECOND:.3f} {node} {here[0]:.6f} {here[1]:.6f}"


def bonnmotion(walks: Walks, end: int, tick: float) -> Iterator[str]:
    for legs in walks:
        points = [(0, legs[0].x0, legs[0].y0)]
        for leg in legs:
            until = min(leg.end, end)
            points.append((until, *((leg.x1, leg.y1) if until == leg.end else position(leg, until))))
        yield " ".join(f"{time / SECOND:.9f} {x:.6f} {y:.6f}" for time, x, y in points)


FORMATS: Final[dict[str, Callable[[Walks, int, float], Iterator[str]]]] = {
    "ns2": ns2,
    "one": one,
    "bonnmotion": bonnmotion,
}
"""Exporters by name: from walks, an end in ns and a tick in s to lines."""
