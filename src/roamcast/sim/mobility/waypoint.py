"""Random waypoint: to a random place at a random speed, a pause, and on; and how such a walk starts.

A walk that starts anywhere with a fresh trip is not yet what it will be: speeds fall for a long time, since slow
trips last longer, and nodes gather in the middle. So by default a walk starts as if it had lasted for ever.
Destinations being independent, that state is known (Le Boudec and Vojnović, "Perfect simulation and stationarity of a
class of mobility models", 2005): an instant falls into a pause or a trip in proportion to the time these take, and a
trip from a to b at speed v takes |b - a| / v.

`roam_stationary` draws from it exactly, without knowing the mean length of a trip. It draws a and b as any trip has
them and keeps them in proportion to (mean pause + |b - a| · mean 1/v); it then pauses at b, or moves, in proportion
to the two terms. What remains is a pause at a place like any destination's, or a trip chosen by its length; its speed
has a density in proportion to 1/v.
"""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Annotated, Final, Literal, NamedTuple

from msgspec import Meta, structs

from roamcast.sim.mobility.base import (
    Area,
    Bounds,
    Leg,
    Model,
    Pen,
    Point,
    Problem,
    between,
    residual,
    speed_problems,
    stream,
    time_problems,
)

STILL: Final = (0.0, 0.0)
"""The speed of nodes that never set off: the end of an axis of speeds."""


class Habits(NamedTuple):
    """How a node roams: where to, how fast (m/s), and how long it then pauses (s)."""

    destination: Callable[[Random], Point]
    """Draws a destination, independent of where the node is."""
    reach: float
    """No two destinations are farther apart, m."""
    speed: Bounds
    pause: Bounds


def roam(habits: Habits, rng: Random, pen: Pen) -> Iterator[Leg]:
    """Trip, pause, trip, …, from where the pen is."""
    while True:
        yield from pen.walk(habits.destination(rng), rng.uniform(*habits.speed))
        yield from pen.rest(rng.uniform(*habits.pause))


def roam_stationary(habits: Habits, rng: Random, area: Area) -> Iterator[Leg]:
    """The same, starting in the state of an arbitrary instant."""
    pause, slowness = sum(habits.pause) / 2, mean_slowness(habits.speed)
    while True:
        origin, goal = habits.destination(rng), habits.destination(rng)
        trip = math.dist(origin, goal) * slowness
        if rng.random() * (pause + habits.reach * slowness) < pause + trip:
            break
    if rng.random() * (pause + trip) < pause:
        pen = Pen(area, goal)
        yield from pen.rest(residual(habits.pause, rng))
    else:
        pen = Pen(area, between(origin, goal, rng.random()))
        low, high = habits.speed
        yield from pen.walk(goal, low * (high / low) ** rng.random())
        yield from pen.rest(rng.uniform(*habits.pause))
    yield from roam(habits, rng, pen)


def mean_slowness(speed: Bounds) -> float:
    """The mean of 1/v, s/m, of a speed drawn uniformly."""
    low, high = speed
    return math.log1p((high - low) / low) / (high - low) if low < high else 1 / low


class RandomWaypoint(Model, tag="random-waypoint", frozen=True, kw_only=True):
    """Each node walks to a place anywhere in the area, pauses, and walks to the next."""

    speed: Annotated[
        Bounds,
        Meta(description="Least and greatest speed of a trip, m/s, above 0; [0, 0]: nodes stay where they start."),
    ] = (1.0, 20.0)
    pause: Annotated[Bounds, Meta(description="Least and greatest pause after a trip, s, 0 or more.")] = (0.0, 0.0)
    start: Annotated[
        Literal["stationary", "uniform"],
        Meta(description='"stationary": as after a very long walk; "uniform": anywhere, with a new trip.'),
    ] = "stationary"

    def problems(self, area: Area, nodes: int) -> Iterator[Problem]:
        if self.speed != STILL:
            yield from speed_problems(self.speed)
        yield from time_problems("pause", self.pause)

    def walks(self, area: Area, nodes: int, seed: int, folder: Path) -> list[Iterator[Leg]]:
        if self.speed == STILL:
            return [iter(Pen(area, place).stay()) for place in self._starts(area, nodes, seed, folder)]
        habits = Habits(area.anywhere, area.diagonal, self.speed, self.pause)
        streams = [stream(seed, node) for node in range(nodes)]
        if self.start == "uniform":
            return [roam(habits, rng, Pen(area, area.anywhere(rng))) for rng in streams]
        return [roam_stationary(habits, rng, area) for rng in streams]

    def _starts(self, area: Area, nodes: int, seed: int, folder: Path) -> Iterator[Point]:
        """Where nodes of any one speed start, which does not depend on the speed unless they pause."""
        moving = structs.replace(self, speed=(1.0, 1.0))
        first = (next(walk) for walk in moving.walks(area, nodes, seed, folder))
        return ((leg.x0, leg.y0) for leg in first)
