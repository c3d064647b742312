"""Buildings: users who walk in and between buildings.

From section 3 of Haillot and Guidec, "A Protocol for Content-Based Communication in Disconnected Mobile Ad Hoc
Networks" (2008), whose values are the defaults.

A user stays a while, walks straight to a place in the same building (a share `intra` of moves) or in another one,
stays again. Which other building, and where in it, is uniform. A way that crosses walls is cut there, doors or not,
so that every leg is wholly indoors or wholly outdoors; a wall itself counts as indoors.

Walks start as they go on: at time 0 some users stay and some are under way, as at any later instant. Over a long time
a move starts in every building equally often, anywhere in it, and ends anywhere in the building it leads to, so that a
move and the stay after it can be drawn without a past, and are then weighted by how long they last.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Annotated, Final, NamedTuple

from msgspec import Meta

from roamcast.content.geometry import crossing
from roamcast.sim.mobility.base import (
    Area,
    Bounds,
    Leg,
    Model,
    Pen,
    Point,
    Problem,
    ScenarioError,
    between,
    residual,
    speed_problems,
    stream,
    time_problems,
)
from roamcast.sim.mobility.waypoint import mean_slowness

MAX_BUILT: Final = 0.25
"""The greatest share of the area that buildings drawn at random may need; beyond it, finding room becomes a search."""
TRIES: Final = 200
"""Tries to find room for one building before all are drawn again, and tries of all before giving up."""


class Building(NamedTuple):
    """A rectangle; (x, y) is the corner nearest to the origin."""

    x: float
    y: float
    width: float
    height: float

    def overlaps(self, other: "Building") -> bool:
        """Whether two buildings overlap; walls may touch."""
        return (
            self.x < other.x + other.width
            and other.x < self.x + self.width
            and self.y < other.y + other.height
            and other.y < self.y + self.height
        )

    def anywhere(self, rng: Random) -> Point:
        # `uniform` may round to beyond its bounds, and the place would be on the wrong side of the wall.
        east, north = self.x + self.width, self.y + self.height
        return min(rng.uniform(self.x, east), east), min(rng.uniform(self.y, north), north)

    def part_of_way(self, origin: Point, goal: Point) -> tuple[float, float] | None:
        """The part of the way that leads through the building, as two fractions of it; None if it does not."""
        part = crossing(origin, goal, (self.x, self.y), (self.x + self.width, self.y + self.height))
        return part if part is not None and part[0] < part[1] else None


class Buildings(Model, tag="buildings", frozen=True, kw_only=True):
    """Users walk in and between buildings, and stay in them."""

    buildings: Annotated[
        Annotated[int, Meta(ge=1)] | tuple[Building, ...],
        Meta(description="How many to place at random, from 1, or each as [x, y, width, height], m."),
    ] = 5
    edge: Annotated[Bounds, Meta(description="Least and greatest edge of a building placed at random, m, above 0.")] = (
        100.0,
        150.0,
    )
    speed: Annotated[Bounds, Meta(description="Least and greatest walking speed, m/s, above 0.")] = (0.5, 2.0)
    stay: Annotated[Bounds, Meta(description="Least and greatest stay between two moves, s, 0 or more.")] = (
        30.0,
        180.0,
    )
    intra: Annotated[float, Meta(description="Share of moves within a building, 0 to 1.", ge=0, le=1)] = 0.4

    def problems(self, area: Area, nodes: int) -> Iterator[Problem]:
        yield from speed_problems(self.speed)
        yield from time_problems("stay", self.stay)
        if isinstance(self.buildings, int):
            yield from _room_problems(self.buildings, self.edge, area)
        else:
            yield from _plan_problems(self.buildings, area)
        count = self.buildings if isinstance(self.buildings, int) else len(self.buildings)
        if count == 1 and self.intra < 1:
            yield "intra", f"{self.intra:g} with one building: there is no other to walk to; it must be 1"

    def walks(self, area: Area, nodes: int, seed: int, folder: Path) -> list[Iterator[Leg]]:
        plan = self.plan(area, seed)
        return [self._walk(plan, stream(seed, node), area) for node in range(nodes)]

    def plan(self, area: Area, seed: int) -> Sequence[Building]:
        """The positions of the buildings."""
        if isinstance(self.buildings, tuple):
            return self.buildings
        rng = stream(seed, "buildings")
        for _ in range(TRIES):
            if plan := _draw_plan(self.buildings, self.edge, area, rng):
                return plan
        raise ScenarioError(f"buildings: no room found in {TRIES} tries for {self.buildings} in the area of {area}")

    def _walk(self, plan: Sequence[Building], rng: Random, area: Area) -> Iterator[Leg]:
        origin, home, start, goal, staying = self._at_any_instant(plan, rng, area)
        if staying:
            pen = Pen(area, goal)
            yield from pen.rest(residual(self.stay, rng), room=home)
        else:
            pen = Pen(area, between(start, goal, rng.random()))
            low, high = self.speed
            yield from _cross(plan, origin, home, goal, low * (high / low) ** rng.random(), pen)
            yield from pen.rest(rng.uniform(*self.stay), room=home)
        while True:
            origin, home = home, self._next(home, plan, rng)
            yield from _cross(plan, origin, home, plan[home].anywhere(rng), rng.uniform(*self.speed), pen)
            yield from pen.rest(rng.uniform(*self.stay), room=home)

    def _next(self, home: int, plan: Sequence[Building], rng: Random) -> int:
        """The building to which a user of this building goes next."""
        if rng.random() < self.intra:
            return home
        return (home + rng.randrange(1, len(plan))) % len(plan)

    def _at_any_instant(self, plan: Sequence[Building], rng: Random, area: Area) -> tuple[int, int, Point, Point, bool]:
        """The buildings and places between which a user moves or has moved last, and whether it is there and stays."""
        stay, slowness = sum(self.stay) / 2, mean_slowness(self.speed)
        while True:
            origin = rng.randrange(len(plan))
            home = self._next(origin, plan, rng)
            start, goal = plan[origin].anywhere(rng), plan[home].anywhere(rng)
            move = math.dist(start, goal) * slowness
            if rng.random() * (stay + area.diagonal * slowness) < stay + move:
                return origin, home, start, goal, rng.random() * (stay + move) < stay


def _cross(plan: Sequence[Building], home: int, goal: int, place: Point, speed: float, pen: Pen) -> Iterator[Leg]:
    """The legs of a move from one building to a place in another, or in the same, cut at the walls."""
    origin, start = (pen.x, pen.y), pen.time
    duration = pen.arrival(place, speed) - start
    ways = ((building.part_of_way(origin, place), number) for number, building in enumerate(plan))
    for (enter, leave), number in sorted((way, number) for way, number in ways if way is not None):
        outside, inside = start + round(duration * enter), start + round(duration * leave)
        yield from pen.move(between(origin, place, enter), outside, travelling=home != goal)
        travelling = goal not in (home, number)
        yield from pen.move(between(origin, place, leave), inside, room=number, travelling=travelling)


def _draw_plan(count: int, edge: Bounds, area: Area, rng: Random) -> list[Building] | None:
    """One building after another, each where no earlier one is; None if one of them finds no room."""
    plan: list[Building] = []
    while len(plan) < count:
        for _ in range(TRIES):
            width, height = rng.uniform(*edge), rng.uniform(*edge)
            x, y = rng.uniform(0, area.width - width), rng.uniform(0, area.height - height)
            drawn = Building(x, y, width, height)
            if not any(drawn.overlaps(other) for other in plan):
                plan.append(drawn)
                break
        else:
            return None
    return plan


def _room_problems(count: int, edge: Bounds, area: Area) -> Iterator[Problem]:
    low, high = edge
    shown = f"from {low:g} to {high:g} m"
    if not (0 < low <= high and math.isfinite(high)):
        yield "edge", f"{shown}: both must be finite and above 0, the least not above the greatest"
    elif high > min(area.width, area.height):
        yield "edge", f"{shown}: the greatest must fit into the area of {area}"
    elif count * high * high > MAX_BUILT * area.width * area.height:
        rule = f"must need no more than {MAX_BUILT:.0%} of the area of {area}"
        yield "buildings", f"{count} with edges {shown}: to be placed at random, they {rule}"


def _plan_problems(plan: Sequence[Building], area: Area) -> Iterator[Problem]:
    if not plan:
        yield "buildings", "none are given: users have nowhere to be; there must be at least 1"
    for number, building in enumerate(plan):
        shown = f"building {number}, {list(building)}"
        if not (building.width > 0 and building.height > 0):
            yield "buildings", f"{shown}: width and height must be above 0"
        elif not (
            area.holds(building.x, building.y) and area.holds(building.x + building.width, building.y + building.height)
        ):
            yield "buildings", f"{shown}: it must lie in the area of {area}"
    for (i, a), (j, b) in combinations(enumerate(plan), 2):
        if a.overlaps(b):
            yield "buildings", f"buildings {i}, {list(a)}, and {j}, {list(b)}: they must not overlap"
