"""Exports our movements to other simulators, so that results can be checked there (ns-2, ns-3, the ONE, BonnMotion),
and to maps (GPX).

Legs are exact in BonnMotion, whose waypoints are their ends, and in ns-2 up to the digits of a speed: `setdest` has a
speed and not a time of arrival, so each leg starts at its own time and corrects what the one before left. The ONE takes
positions at ticks. A node that is away stays where it is in all three: none of them can say so. GPX can, with a new
segment; its points are the ends of the legs, in degrees from a corner that the user gives, from 1970 on.
"""

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from roamcast.earth import metres_per_degree
from roamcast.sim.mobility.base import Leg, position
from roamcast.units import SECOND

Walks = list[list[Leg]]
"""The legs of each node, from 0 to the end or beyond it."""


class ExportOptions(NamedTuple):
    """What some of the formats need to know."""

    tick: float = 1.0
    """s."""
    corner: tuple[float, float] = (0.0, 0.0)
    """The latitude and longitude of (0, 0)."""


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


def ns2(walks: Walks, end: int, how: ExportOptions) -> Iterator[str]:
    for node, legs in enumerate(walks):
        for axis, value in (("X", legs[0].x0), ("Y", legs[0].y0), ("Z", 0.0)):
            yield f"$node_({node}) set {axis}_ {value:.6f}"
    moving = [(leg.start, node, leg) for node, legs in enumerate(walks) for leg in legs if leg.start < end]
    for start, node, leg in sorted(moving, key=lambda one: one[:2]):
        way = math.hypot(leg.x1 - leg.x0, leg.y1 - leg.y0)
        if way > 0:
            speed = way / ((leg.end - leg.start) / SECOND)
            yield f'$ns_ at {start / SECOND:.9f} "$node_({node}) setdest {leg.x1:.6f} {leg.y1:.6f} {speed:.9f}"'


def one(walks: Walks, end: int, how: ExportOptions) -> Iterator[str]:
    places = [(leg.x0, leg.y0) for legs in walks for leg in legs] + [(leg.x1, leg.y1) for legs in walks for leg in legs]
    x, y = max(place[0] for place in places), max(place[1] for place in places)
    yield f"0 {end / SECOND:.3f} 0 {x:.6f} 0 {y:.6f}"
    at = [0] * len(walks)
    for number in range(int(end / (how.tick * SECOND)) + 1):
        time = round(number * how.tick * SECOND)
        for node, legs in enumerate(walks):
            while at[node] + 1 < len(legs) and legs[at[node]].end <= time:
                at[node] += 1
            here = position(legs[at[node]], time)
            yield f"{time / SECOND:.3f} {node} {here[0]:.6f} {here[1]:.6f}"


def bonnmotion(walks: Walks, end: int, how: ExportOptions) -> Iterator[str]:
    for legs in walks:
        points = [(0, legs[0].x0, legs[0].y0), *(_last(leg, end) for leg in legs)]
        yield " ".join(f"{time / SECOND:.9f} {x:.6f} {y:.6f}" for time, x, y in points)


def gpx(walks: Walks, end: int, how: ExportOptions) -> Iterator[str]:
    south, west = how.corner
    height = max(max(leg.y0, leg.y1) for legs in walks for leg in legs)
    east, north = metres_per_degree(south + height / metres_per_degree(south)[1] / 2)

    def point(time: int, x: float, y: float) -> str:
        # Nine digits of a degree are a tenth of a millimetre.
        place = f'lat="{south + y / north:.9f}" lon="{west + x / east:.9f}"'
        moment = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=time // 1000)
        return f"<trkpt {place}><time>{moment:%Y-%m-%dT%H:%M:%S.%fZ}</time></trkpt>"

    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<gpx version="1.1" creator="roamcast" xmlns="http://www.topografix.com/GPX/1/1">'
    for node, legs in enumerate(walks):
        yield f"<trk><name>{node}</name>"
        there = False
        for leg in legs:
            if there and leg.absent:
                yield "</trkseg>"
            elif not there and not leg.absent:
                yield f"<trkseg>{point(leg.start, leg.x0, leg.y0)}"
            there = not leg.absent
            if there:
                yield point(*_last(leg, end))
        yield "</trkseg></trk>" if there else "</trk>"
    yield "</gpx>"


def _last(leg: Leg, end: int) -> tuple[int, float, float]:
    """When and where a leg ends, at the latest at the end."""
    return (leg.end, leg.x1, leg.y1) if leg.end <= end else (end, *position(leg, end))


FORMATS: Final[dict[str, Callable[[Walks, int, ExportOptions], Iterator[str]]]] = {
    "ns2": ns2,
    "one": one,
    "bonnmotion": bonnmotion,
    "gpx": gpx,
}
"""Exporters by name: from walks and an end in ns to lines."""
