"""Column: nodes that march in a line, one behind another.

Node 0 leads. It marches from time 0, by random waypoint or through given waypoints, where it stops at the last. Node
i follows `i * gap` metres behind, measured along the way: all march at the leader's pace and halt when it halts, and
each turns where the leader turned, that much later.

At time 0 the column stands straight behind the leader: with given waypoints, in line with the first two; else along
the longer side of the area, heading either way, anywhere the whole of it fits.

At every turn a node passes beside the leader's turning point, up to `deviation` metres to either side of the way
ahead (drawn anew for each node and turn, at most a quarter of the stretch before and of that after it): so no node
needs more than 1.5 times the leader's speed to keep up.

Every node computes the leader's way for itself, from the stream that all share: that costs a little time, but no walk
depends on how far another has been read, and nothing is stored.
"""

import math
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from pathlib import Path
from random import Random
from typing import Annotated, NamedTuple

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
    point_problems,
    speed_problems,
    stream,
    time_problems,
)
from roamcast.sim.mobility.waypoint import Habits, roam


class Segment(NamedTuple):
    """A node's own line from turn to turn; `length` is that of the leader's stretch beside it."""

    length: float
    origin: Point
    goal: Point


class Column(Model, tag="column", frozen=True, kw_only=True):
    """Nodes march in a line, each on the path of the one before it."""

    speed: Annotated[Bounds, Meta(description="Least and greatest speed of a stretch, m/s, above 0.")] = (1.0, 2.0)
    pause: Annotated[Bounds, Meta(description="Least and greatest halt after a stretch, s, 0 or more.")] = (0.0, 0.0)
    gap: Annotated[
        float, Meta(description="Distance to the node ahead along the path, m, from 0.1.", ge=0.1, le=1e7)
    ] = 20.0
    deviation: Annotated[float, Meta(description="Greatest distance beside the path, m, 0 or more.", ge=0, le=1e7)] = (
        2.0
    )
    waypoints: Annotated[
        tuple[Point, ...], Meta(description="The leader's path as [x, y], m, two or more; none: random waypoint.")
    ] = ()

    def problems(self, area: Area, nodes: int) -> Iterator[Problem]:
        yield from speed_problems(self.speed)
        yield from time_problems("pause", self.pause)
        if self.waypoints:
            yield from self._waypoint_problems(area, nodes)
        elif self._length(nodes) > max(area.width, area.height):
            yield "gap", f"{self.gap:g} m: a column of {nodes} nodes must fit along a side of the area of {area}"

    def _waypoint_problems(self, area: Area, nodes: int) -> Iterator[Problem]:
        problems = list(point_problems("waypoints", "waypoint", self.waypoints, area))
        if len(self.waypoints) < 2:
            problems.append(("waypoints", "1 waypoint: a path has two or more"))
        for number, (a, b) in enumerate(pairwise(self.waypoints)):
            if a == b:
                problems.append(("waypoints", f"waypoints {number} and {number + 1} are the same point {list(a)}"))
        if not problems:
            x, y = _behind(self.waypoints[0], self.waypoints[1], self._length(nodes))
            if not area.holds(x, y):
                where = f"the last node would start at ({x:g}, {y:g})"
                problems.append(("waypoints", f"{where}, behind the first waypoint: it must lie in the area of {area}"))
        yield from problems

    def walks(self, area: Area, nodes: int, seed: int, folder: Path) -> list[Iterator[Leg]]:
        return [self._walk(node, area, nodes, seed) for node in range(nodes)]

    def _length(self, nodes: int) -> float:
        return (nodes - 1) * self.gap

    def _walk(self, node: int, area: Area, nodes: int, seed: int) -> Iterator[Leg]:
        last, legs = self._leader(area, nodes, seed)
        first = next(legs)
        head = first.x0, first.y0
        place = between(head, last, node / (nodes - 1)) if node else head
        vertices = _vertices(place, chain([first], legs))
        track = _deviate(vertices, self.deviation, stream(seed, node), area)
        _, pace = self._leader(area, nodes, seed)
        return _follow(pace, track, area)

    def _leader(self, area: Area, nodes: int, seed: int) -> tuple[Point, Iterator[Leg]]:
        """Where the last node starts, and the leader's legs; the same at every call."""
        rng, length = stream(seed, "column"), self._length(nodes)
        if self.waypoints:
            head, *rest = self.waypoints
            return _behind(head, rest[0], length), self._march(rest, rng, Pen(area, head))
        head, last = _formation(area, length, rng)
        return last, roam(Habits(area.anywhere, area.diagonal, self.speed, self.pause), rng, Pen(area, head))

    def _march(self, waypoints: Iterable[Point], rng: Random, pen: Pen) -> Iterator[Leg]:
        for place in waypoints:
            yield from pen.walk(place, rng.uniform(*self.speed))
            yield from pen.rest(rng.uniform(*self.pause))
        yield from pen.stay()


def _behind(head: Point, ahead: Point, distance: float) -> Point:
    """The point this far behind `head`, seen by someone there who looks ahead."""
    back = -distance / math.dist(head, ahead)
    return between(head, ahead, back)


def _formation(area: Area, length: float, rng: Random) -> tuple[Point, Point]:
    """First and last place of a column of this length along the longer side of the area."""
    long, short = max(area.width, area.height), min(area.width, area.height)
    low, across = rng.uniform(0, long - length), rng.uniform(0, short)
    ends = [low, low + length]
    if rng.random() < 0.5:
        ends.reverse()
    if area.width >= area.height:
        return (ends[1], across), (ends[0], across)
    return (across, ends[1]), (across, ends[0])


def _vertices(place: Point, legs: Iterable[Leg]) -> Iterator[Point]:
    """Where a node that starts at `place` turns, no two in a row the same."""
    yield place
    for leg in legs:
        for turn in ((leg.x0, leg.y0), (leg.x1, leg.y1)):
            if turn != place:
                yield turn
                place = turn


def _deviate(vertices: Iterable[Point], deviation: float, rng: Random, area: Area) -> Iterator[Segment]:
    """The segments of a node that passes beside its vertices."""

    def beside(vertex: Point, way: tuple[float, float], limit: float) -> Point:
        off, length = rng.uniform(-limit, limit), math.hypot(*way)
        return area.clamp(vertex[0] - way[1] / length * off, vertex[1] + way[0] / length * off)

    before, origin = math.inf, (0.0, 0.0)
    for here, ahead in pairwise(vertices):
        length, way = math.dist(here, ahead), (ahead[0] - here[0], ahead[1] - here[1])
        goal = beside(here, way, min(deviation, before / 4, length / 4))
        if before < math.inf:
            yield Segment(before, origin, goal)
        before, origin = length, goal
    yield Segment(before, origin, beside(ahead, way, min(deviation, before / 4)))


def _follow(pace: Iterator[Leg], track: Iterator[Segment], area: Area) -> Iterator[Leg]:
    """One node's walk: along its track, as much at any time as the leader then walks along its own."""
    segment = next(track)
    pen, left = Pen(area, segment.origin), segment.length
    for leg in pace:
        stretch = ahead = math.dist((leg.x0, leg.y0), (leg.x1, leg.y1))
        while ahead > 0:
            if left == 0:
                segment = next(track)
                left = segment.length
            step = min(ahead, left)
            ahead -= step
            left -= step
            until = leg.start + round((leg.end - leg.start) * (1 - ahead / stretch))
            yield from pen.move(between(segment.origin, segment.goal, 1 - left / segment.length), until)
        yield from pen.move((pen.x, pen.y), leg.end)
