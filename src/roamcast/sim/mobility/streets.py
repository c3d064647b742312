"""Streets: nodes walk on a map, from corner to corner, by the shortest way.

A destination is any corner, each as likely. Destinations are independent, so a walk starts in its stationary state as
random waypoint does (`waypoint`), with the length of the way in place of the distance.
"""

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, pairwise
from pathlib import Path
from random import Random
from typing import Annotated, Final

from msgspec import Meta

from roamcast.bounded import put
from roamcast.sim.mobility.base import (
    Area,
    Bounds,
    Leg,
    Model,
    Pen,
    Point,
    Problem,
    between,
    point_problems,
    residual,
    speed_problems,
    stream,
    time_problems,
)
from roamcast.sim.mobility.waypoint import mean_slowness

Street = tuple[Point, ...]

_LEAST: Final = 0.001
"""The shortest stretch of a street, m."""
_MOST_BLOCKS: Final = 100
_WAYS: Final = 256
"""For so many goals the ways are remembered."""


class Streets(Model, tag="streets", frozen=True, kw_only=True):
    """Nodes walk along streets, by the shortest way to a corner, pause, and walk to the next."""

    streets: Annotated[
        tuple[Street, ...],
        Meta(description="Each a list of corners [x, y], m; two that share a corner cross there; none: a grid."),
    ] = ()
    blocks: Annotated[tuple[int, int], Meta(description="Blocks of the grid in x and y, 1 or more each.")] = (5, 5)
    speed: Annotated[Bounds, Meta(description="Least and greatest speed of a trip, m/s, above 0.")] = (1.0, 20.0)
    pause: Annotated[Bounds, Meta(description="Least and greatest pause after a trip, s, 0 or more.")] = (0.0, 0.0)

    def problems(self, area: Area, nodes: int) -> Iterator[Problem]:
        yield from speed_problems(self.speed)
        yield from time_problems("pause", self.pause)
        if not 1 <= min(self.blocks) <= max(self.blocks) <= _MOST_BLOCKS:
            x, y = self.blocks
            yield "blocks", f"{x} x {y} blocks: a grid has one to {_MOST_BLOCKS} in each direction"
        bad = [problem for street in self.streets for problem in point_problems("streets", "corner", street, area)]
        for number, street in enumerate(self.streets):
            if len(street) < 2 or any(math.dist(*pair) < _LEAST for pair in pairwise(street)):
                rule = "it must have two corners or more, each at least 1 mm from the one before"
                bad.append(("streets", f"street {number}: {rule}"))
        yield from bad
        if self.streets and not bad and (apart := StreetMap(self.streets).apart()) is not None:
            yield "streets", f"no way leads from corner {self.streets[0][0]} to corner {apart}: all must be connected"

    def walks(self, area: Area, nodes: int, seed: int, folder: Path) -> list[Iterator[Leg]]:
        streets = StreetMap(self.streets or grid(area, self.blocks))
        return [self._walk(streets, stream(seed, node), area) for node in range(nodes)]

    def _walk(self, streets: "StreetMap", rng: Random, area: Area) -> Iterator[Leg]:
        pause, slowness = sum(self.pause) / 2, mean_slowness(self.speed)
        while True:
            origin, goal = streets.anywhere(rng), streets.anywhere(rng)
            trip = streets.length(origin, goal) * slowness
            if rng.random() * (pause + streets.reach * slowness) < pause + trip:
                break
        if rng.random() * (pause + trip) < pause:
            pen = Pen(area, streets.corners[goal])
            yield from pen.rest(residual(self.pause, rng))
        else:
            place, rest = streets.along(origin, goal, rng.random())
            pen, (low, high) = Pen(area, place), self.speed
            yield from _follow(pen, rest, low * (high / low) ** rng.random())
            yield from pen.rest(rng.uniform(*self.pause))
        while True:
            origin, goal = goal, streets.anywhere(rng)
            yield from _follow(pen, streets.way(origin, goal)[1:], rng.uniform(*self.speed))
            yield from pen.rest(rng.uniform(*self.pause))


def _follow(pen: Pen, places: Iterable[Point], speed: float) -> Iterator[Leg]:
    for place in places:
        yield from pen.walk(place, speed)


def grid(area: Area, blocks: tuple[int, int]) -> tuple[Street, ...]:
    """Streets around and between blocks of one size, over the whole area."""
    xs, ys = (
        [extent * number / count for number in range(count + 1)]
        for extent, count in zip((area.width, area.height), blocks, strict=True)
    )
    return (*(tuple((x, y) for x in xs) for y in ys), *(tuple((x, y) for y in ys) for x in xs))


class StreetMap:
    """Corners, numbered, and the shortest ways between them."""

    def __init__(self, streets: Sequence[Street]) -> None:
        numbers = {corner: number for number, corner in enumerate(dict.fromkeys(chain.from_iterable(streets)))}
        self.corners = list(numbers)
        self._beside: list[dict[int, float]] = [{} for _ in numbers]
        for one, other in chain.from_iterable(map(pairwise, streets)):
            length = math.dist(one, other)
            self._beside[numbers[one]][numbers[other]] = length
            self._beside[numbers[other]][numbers[one]] = length
        self._to: dict[int, dict[int, tuple[float, int]]] = {}
        self.reach = 2 * max(length for length, _ in self._towards(0).values())
        """No two corners are farther apart: each way through corner 0 is shorter."""

    def anywhere(self, rng: Random) -> int:
        return rng.randrange(len(self.corners))

    def apart(self) -> Point | None:
        """A corner that cannot be reached from the first."""
        return next((at for number, at in enumerate(self.corners) if number not in self._towards(0)), None)

    def length(self, origin: int, goal: int) -> float:
        return self._towards(goal)[origin][0]

    def way(self, origin: int, goal: int) -> list[Point]:
        """The corners from the origin to the goal."""
        found = [origin]
        while found[-1] != goal:
            found.append(self._towards(goal)[found[-1]][1])
        return [self.corners[number] for number in found]

    def along(self, origin: int, goal: int, part: float) -> tuple[Point, list[Point]]:
        """The point after this part of the way, and the corners still ahead."""
        way = self.way(origin, goal)
        ends = list(accumulate(math.dist(*pair) for pair in pairwise(way)))
        number = next(number for number, end in enumerate(ends) if part * ends[-1] < end)
        length = math.dist(way[number], way[number + 1])
        left = (ends[number] - part * ends[-1]) / length
        return between(way[number], way[number + 1], 1 - left), way[number + 1 :]

    def _towards(self, goal: int) -> dict[int, tuple[float, int]]:
        """From each corner: the length of the shortest way to the goal, and the next corner on it (Dijkstra)."""
        if goal in self._to:
            return self._to[goal]
        found: dict[int, tuple[float, int]] = {}
        heap = [(0.0, goal, goal)]
        while heap:
            length, corner, following = heapq.heappop(heap)
            if corner not in found:
                found[corner] = length, following
                for other, more in self._beside[corner].items():
                    heapq.heappush(heap, (length + more, other, corner))
        put(self._to, goal, found, _WAYS)
        return found
