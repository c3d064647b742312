"""Hot spots: random waypoint with places that draw people.

A destination lies, with probability `attraction`, in the disk around one of the spots (which, and where in the part
of the disk within the area, uniformly), else anywhere. Destinations are independent, so the walk starts in its
stationary state as random waypoint does: nothing has to be warmed up.
"""

import math
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Annotated

from msgspec import Meta

from roamcast.sim.mobility.base import (
    Area,
    Bounds,
    Leg,
    Model,
    Point,
    Problem,
    point_problems,
    speed_problems,
    stream,
    time_problems,
)
from roamcast.sim.mobility.waypoint import Habits, roam_stationary


class HotSpots(Model, tag="hot-spots", frozen=True, kw_only=True):
    """Random waypoint whose destinations mostly lie near a few given spots."""

    spots: Annotated[tuple[Point, ...], Meta(description="The spots as [x, y], m, within the area.", min_length=1)]
    radius: Annotated[float, Meta(description="How far from its spot a destination may lie, m, from 1.", ge=1, le=1e7)]
    attraction: Annotated[float, Meta(description="Share of trips that go to a spot, 0 to 1.", ge=0, le=1)] = 0.8
    speed: Annotated[Bounds, Meta(description="Least and greatest speed of a trip, m/s, above 0.")] = (1.0, 20.0)
    pause: Annotated[Bounds, Meta(description="Least and greatest pause after a trip, s, 0 or more.")] = (0.0, 0.0)

    def problems(self, area: Area, nodes: int) -> Iterator[Problem]:
        yield from speed_problems(self.speed)
        yield from time_problems("pause", self.pause)
        yield from point_problems("spots", "spot", self.spots, area)

    def walks(self, area: Area, nodes: int, seed: int, folder: Path) -> list[Iterator[Leg]]:
        def destination(rng: Random) -> Point:
            if rng.random() < self.attraction:
                return _near(rng.choice(self.spots), self.radius, area, rng)
            return area.anywhere(rng)

        habits = Habits(destination, self._reach(area), self.speed, self.pause)
        return [roam_stationary(habits, stream(seed, node), area) for node in range(nodes)]

    def _reach(self, area: Area) -> float:
        """A bound on a trip's length. The tighter, the fewer first trips are rejected: it matters for small disks."""
        if self.attraction < 1:
            return area.diagonal
        farthest = max((math.dist(a, b) for a, b in combinations(self.spots, 2)), default=0.0)
        return min(area.diagonal, farthest + 2 * self.radius)


def _near(spot: Point, radius: float, area: Area, rng: Random) -> Point:
    """Uniformly in disk and area. Of the box around both, the disk holds at least π/4: a try or two will do."""
    (west, south), (east, north) = (
        area.clamp(spot[0] - radius, spot[1] - radius),
        area.clamp(spot[0] + radius, spot[1] + radius),
    )
    while True:
        place = rng.uniform(west, east), rng.uniform(south, north)
        if math.dist(place, spot) <= radius:
            return place
