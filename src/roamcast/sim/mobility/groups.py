"""Groups that keep together, as rescue teams or tourists do: reference point group mobility (Hong, Gerla, Pei, Chiang,
"A group mobility model for ad hoc wireless networks", 1999).

A group's centre moves by random waypoint. A member strays from it: every `interval` it draws a new offset, uniformly
from the disk of `radius`, and changes from one to the next evenly. So it is never farther than `radius` from the
centre: both move straight between turns, disk and area are convex, and what would leave the area stays on its border.

It starts as it goes on: the centre does (`waypoint`), and at time 0 a member is anywhere between two offsets.

Every member computes the centre's way for itself, from the stream that the group shares, as in `column`.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Annotated

from msgspec import Meta

from roamcast.sim.mobility.base import (
    Area,
    Bounds,
    Leg,
    Model,
    Pen,
    Point,
    Problem,
    between,
    nanoseconds,
    position,
    speed_problems,
    stream,
    time_problems,
)
from roamcast.sim.mobility.waypoint import Habits, roam_stationary


class Groups(Model, tag="groups", frozen=True, kw_only=True):
    """Nodes in groups: the centre of each walks by random waypoint, and its members stay around it."""

    size: Annotated[int, Meta(description="Nodes of a group, 1 or more; the last may have fewer.", ge=1)] = 5
    radius: Annotated[
        float, Meta(description="How far from the centre a member may be, m, 0 or more.", ge=0, le=1e7)
    ] = 20.0
    interval: Annotated[
        float, Meta(description="How often a member draws a new place beside the centre, s, from 0.1.", ge=0.1, le=1e9)
    ] = 10.0
    speed: Annotated[Bounds, Meta(description="Least and greatest speed of a centre's trip, m/s, above 0.")] = (
        1.0,
        2.0,
    )
    pause: Annotated[Bounds, Meta(description="Least and greatest pause after a trip, s, 0 or more.")] = (0.0, 0.0)

    def problems(self, area: Area, nodes: int) -> Iterator[Problem]:
        yield from speed_problems(self.speed)
        yield from time_problems("pause", self.pause)

    def walks(self, area: Area, nodes: int, seed: int, folder: Path) -> list[Iterator[Leg]]:
        habits = Habits(area.anywhere, area.diagonal, self.speed, self.pause)
        centres = [roam_stationary(habits, stream(seed, f"group {node // self.size}"), area) for node in range(nodes)]
        return [self._member(centre, stream(seed, node), area) for node, centre in enumerate(centres)]

    def _member(self, centre: Iterator[Leg], rng: Random, area: Area) -> Iterator[Leg]:
        step = nanoseconds(self.interval)
        until = rng.randint(1, step)
        before, after, leg = self._offset(rng), self._offset(rng), next(centre)

        def place(time: int) -> Point:
            (x, y), (east, north) = position(leg, time), between(before, after, 1 - (until - time) / step)
            return x + east, y + north

        pen = Pen(area, place(0))
        while True:
            time = min(leg.end, until)
            yield from pen.move(place(time), time)
            if time == until:
                before, after, until = after, self._offset(rng), until + step
            if time == leg.end:
                leg = next(centre)

    def _offset(self, rng: Random) -> Point:
        """Uniformly in the disk."""
        far, angle = self.radius * math.sqrt(rng.random()), math.tau * rng.random()
        return far * math.cos(angle), far * math.sin(angle)
