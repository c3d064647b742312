"""What every movement model shares: the area, the leg, and the rules of a walk.

A *walk* is the movement of one node: an iterator of legs. The rules, held by `Pen` for every model:

* The first leg starts at time 0. Each next one starts when and, to the bit, where the one before it ends.
* A leg lasts at least 1 ns. A walk either never ends or ends with a leg until `FOREVER` (or later).
* Both ends of a leg lie in the area, its borders included.

A walk is made lazily, and does not depend on which other walks are read and in which order: each node draws from its
own random stream.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from roamcast.errors import ConfigError
from roamcast.units import SECOND

OUTDOORS: Final = -1
FOREVER: Final = 2**62
"""A time no run reaches: 146 years in ns. Twice as much still fits into 64 bits."""

Point = tuple[float, float]
Bounds = tuple[float, float]
"""The least and the greatest value of a uniform draw."""
Problem = tuple[str, str]
"""A field, and the rule that its value breaks."""


class ScenarioError(ConfigError):
    """A scenario, or a file that it names, that cannot be run."""


class Area(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where nodes move: a rectangle with one corner at the origin."""

    width: Annotated[float, Meta(description="Extent in x, m, above 0.", gt=0, le=1e7)]
    height: Annotated[float, Meta(description="Extent in y, m, above 0.", gt=0, le=1e7)]

    def __str__(self) -> str:
        return f"{self.width:g} m × {self.height:g} m"

    @property
    def diagonal(self) -> float:
        return math.hypot(self.width, self.height)

    def holds(self, x: float, y: float) -> bool:
        return 0 <= x <= self.width and 0 <= y <= self.height

    def clamp(self, x: float, y: float) -> Point:
        """The nearest point of the area: corrects points that rounding put outside."""
        return min(max(x, 0.0), self.width), min(max(y, 0.0), self.height)

    def anywhere(self, rng: Random) -> Point:
        return rng.uniform(0, self.width), rng.uniform(0, self.height)


class Leg(NamedTuple):
    """Straight movement at constant speed, or a rest. Times in ns, coordinates in m."""

    start: int
    end: int
    x0: float
    y0: float
    x1: float
    y1: float
    indoor: bool = False
    room: int = OUTDOORS
    """The number of the building it is in."""
    travelling: bool = False
    """Whether the node is on its way to another building, and not inside it yet."""
    absent: bool = False
    """Whether the recording has no position for the node: it is away."""

    @property
    def recorded(self) -> tuple[int, int, float, float, float, float, bool, int]:
        """The part of the leg that is recorded as a fact, in the order of the columns of `leg`."""
        return (*self[:6], self.indoor, self.room)


def position(leg: Leg, t: int) -> Point:
    """Where a node on this leg is at `t`, computed as the core does; rounding may miss the end by a last bit or two."""
    span, past = leg.end - leg.start, t - leg.start
    return leg.x0 + (leg.x1 - leg.x0) / span * past, leg.y0 + (leg.y1 - leg.y0) / span * past


class Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="model", tag="abstract"):
    """A movement model: its parameters, and the walks that follow from them and a seed."""

    def problems(self, area: Area, nodes: int) -> Iterator[Problem]:
        """The rules that the parameters break, beyond what decoding has refused already."""
        raise NotImplementedError

    def walks(self, area: Area, nodes: int, seed: int, folder: Path) -> list[Iterator[Leg]]:
        """One walk per node. Must have no `problems`. File names are relative to `folder`."""
        raise NotImplementedError


def stream(seed: int, whose: int | str) -> Random:
    """The random numbers of one node's movement, or of a part of it that several share."""
    return Random(f"{seed}/movement/{whose}")


def nanoseconds(seconds: float) -> int:
    return round(min(seconds * SECOND, FOREVER))


class Pen:
    """Draws one walk. It knows the walk's current end, and ensures that legs join, last and stay in the area.

    A leg of no duration is left out: every method returns one leg or none.
    """

    __slots__ = ("_area", "time", "x", "y")

    def __init__(self, area: Area | None, place: Point) -> None:
        """Without an area, a walk may go anywhere."""
        self._area = area
        self.time = 0
        self.x, self.y = place if area is None else area.clamp(*place)

    def move(
        self, place: Point, until: int, *, room: int = OUTDOORS, travelling: bool = False, absent: bool = False
    ) -> list[Leg]:
        """Moves to `place`, to arrive at `until`."""
        if until <= self.time:
            return []
        x, y = place if self._area is None else self._area.clamp(*place)
        leg = Leg(self.time, until, self.x, self.y, x, y, room != OUTDOORS, room, travelling, absent)
        self.time, self.x, self.y = until, x, y
        return [leg]

    def arrival(self, place: Point, speed: float) -> int:
        """When a node that leaves now for `place` arrives."""
        distance = math.hypot(place[0] - self.x, place[1] - self.y)
        return self.time + max(1, nanoseconds(distance / speed))

    def walk(self, place: Point, speed: float) -> list[Leg]:
        return self.move(place, self.arrival(place, speed))

    def rest(self, seconds: float, *, room: int = OUTDOORS) -> list[Leg]:
        return self.move((self.x, self.y), self.time + nanoseconds(seconds), room=room)

    def stay(self, *, absent: bool = False) -> list[Leg]:
        """Stays for good."""
        return self.move((self.x, self.y), FOREVER, absent=absent)


def between(origin: Point, goal: Point, part: float) -> Point:
    """The point after this part, 0 to 1, of the way; the ends exactly."""
    if part == 1:
        return goal
    return origin[0] + (goal[0] - origin[0]) * part, origin[1] + (goal[1] - origin[1]) * part


def residual(bounds: Bounds, rng: Random) -> float:
    """What is left, at an arbitrary instant, of a pause drawn uniformly from `bounds`.

    An instant falls into a pause with a probability proportional to its length, and anywhere in it: the length has
    the density p / mean, whose distribution function is inverted here.
    """
    low, high = bounds
    return math.sqrt(low * low + rng.random() * (high * high - low * low)) * rng.random()


def speed_problems(speed: Bounds) -> Iterator[Problem]:
    low, high = speed
    if low <= 0:
        yield "speed", f"the least speed {low:g} m/s: a node would never arrive; it must be above 0"
    yield from _bounds_problems("speed", "speed", "m/s", low, high)


def time_problems(field: str, bounds: Bounds) -> Iterator[Problem]:
    low, high = bounds
    if low < 0:
        yield field, f"the least {field} {low:g} s: it must be 0 or more"
    yield from _bounds_problems(field, field, "s", low, high)


def _bounds_problems(field: str, noun: str, unit: str, low: float, high: float) -> Iterator[Problem]:
    if not (math.isfinite(low) and math.isfinite(high)):
        yield field, f"{noun} from {low:g} to {high:g} {unit}: both must be finite"
    elif low > high:
        yield field, f"{noun} from {low:g} to {high:g} {unit}: the least must not be above the greatest"


def point_problems(field: str, noun: str, points: Sequence[Point], area: Area) -> Iterator[Problem]:
    """Every point that is not in the area, by its number; NaN is nowhere."""
    for number, (x, y) in enumerate(points):
        if not area.holds(x, y):
            yield field, f"{noun} {number} at ({x:g}, {y:g}): it must lie in the area of {area}"
