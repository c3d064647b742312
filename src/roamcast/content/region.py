"""A region: a rectangle, a circle or a polygon of the plane, in metres.

The rules this file owns:

* A border belongs to its region. Containment in a rectangle or a polygon is exact; in a circle it is as exact as a
  float holds the distance from the centre.
* Sizes are above 0. Coordinates are at most `MAX_COORDINATE` from 0, radii at most `MAX_RADIUS`, so that no product of
  two overflows; a polygon has at most `MAX_CORNERS` corners, and its border neither crosses nor touches itself.
* Regions made to contain something (`box`, `enlarged`) are rounded outwards, by some units of the last place, but not
  beyond the largest coordinate: nothing lies there.

`str` gives the text form, `circle(50, 50, 10)`, which `context/text.py` reads.
"""

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

import msgspec

from roamcast.content.geometry import (
    WHOLE,
    MovementPart,
    Point,
    crossing,
    distance_to_segment,
    is_simple,
    meetings,
    merged,
    on_segment,
    orientation,
    segments_touch,
)
from roamcast.errors import ContentError

MAX_COORDINATE: Final = 1e9
"""Metres in each direction: farther than the Moon."""
MAX_RADIUS: Final = 4e9
"""Metres. A circle of this radius around any point contains all valid points."""
MAX_CORNERS: Final = 32
"""Corners of a polygon. Checking that it is simple takes quadratic time, and regions arrive from strangers."""

_ROUNDING: Final = 1e-12
"""Relative; far above the rounding error of a distance."""


def metres(value: float, what: str, most: float = MAX_COORDINATE) -> float:
    """A coordinate or a length as a float. Raises `ContentError`, naming `what`, if it cannot be one."""
    if type(value) is float and -most <= value <= most:  # the common case: hosts report their location often
        return value + 0.0  # -0.0 becomes 0.0
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ContentError(f"{what} must be a number of metres, not {value!r}")
    if not -most <= value <= most:  # NaN is not
        raise ContentError(f"{what} must be within ±{most:g} m, not {value!r}")
    return float(value) + 0.0


def _outwards(value: float, by: float) -> float:
    """`value + by` and a little more in the same direction, but not beyond the largest coordinate."""
    slack = 4 * math.ulp(max(abs(value), abs(by)))
    moved = value + by + math.copysign(slack, by)
    return min(max(moved, -MAX_COORDINATE), MAX_COORDINATE)


def _growth(value: float) -> float:
    if not 0 <= value < math.inf:
        raise ContentError(f"a region grows by 0 m or more, not by {value!r}")
    return min(float(value), MAX_RADIUS)  # a float: the sign of its 0 says which way is outwards


def text_of(number: float) -> str:
    """The shortest text that reads back as the number."""
    return float.__repr__(number).removesuffix(".0")


class Rectangle(msgspec.Struct, frozen=True, array_like=True, tag="rect"):
    """The points with `x0 <= x <= x1` and `y0 <= y <= y1`."""

    x0: float
    y0: float
    x1: float
    y1: float

    def __post_init__(self) -> None:
        for name in ("x0", "y0", "x1", "y1"):
            msgspec.structs.force_setattr(self, name, metres(getattr(self, name), f"a rectangle's {name}"))
        for low, high in (("x0", "x1"), ("y0", "y1")):
            if getattr(self, low) >= getattr(self, high):
                raise ContentError(
                    f"a rectangle needs {low} < {high}, not {getattr(self, low)} and {getattr(self, high)}"
                )

    def __str__(self) -> str:
        return f"rect({', '.join(map(text_of, (self.x0, self.y0, self.x1, self.y1)))})"

    @property
    def box(self) -> "Rectangle":
        """The bounding box."""
        return self

    @property
    def area(self) -> float:
        """Square metres."""
        return (self.x1 - self.x0) * (self.y1 - self.y0)

    @property
    def corners(self) -> tuple[Point, ...]:
        return (self.x0, self.y0), (self.x1, self.y0), (self.x1, self.y1), (self.x0, self.y1)

    def contains(self, x: float, y: float) -> bool:
        return self.x0 <= x <= self.x1 and self.y0 <= y <= self.y1

    def distance(self, x: float, y: float) -> float:
        """How far the point is from the region; 0 inside."""
        dx = self.x0 - x if x < self.x0 else x - self.x1 if x > self.x1 else 0.0
        dy = self.y0 - y if y < self.y0 else y - self.y1 if y > self.y1 else 0.0
        return math.hypot(dx, dy)

    def enlarged(self, by: float) -> "Rectangle":
        """A region that contains every point within that distance: a rectangle, so more at the corners."""
        by = _growth(by)
        return Rectangle(
            _outwards(self.x0, -by), _outwards(self.y0, -by), _outwards(self.x1, by), _outwards(self.y1, by)
        )

    def shifted(self, dx: float, dy: float) -> "Rectangle":
        """The region moved. Raises `ContentError` if that leads beyond `MAX_COORDINATE`."""
        return Rectangle(self.x0 + dx, self.y0 + dy, self.x1 + dx, self.y1 + dy)

    def inside_during(self, start: Point, end: Point) -> tuple[MovementPart, ...]:
        """When a point that moves straight from start to end is in the region: parameters in 0..1, in order.

        A touch counts, as an interval of length 0; one at a corner may be lost to rounding.
        """
        crossed = crossing(start, end, (self.x0, self.y0), (self.x1, self.y1))
        return () if crossed is None else (crossed,)


class Circle(msgspec.Struct, frozen=True, array_like=True, tag="circle"):
    """The points at most `radius` from (x, y)."""

    x: float
    y: float
    radius: float

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "x", metres(self.x, "a circle's x"))
        msgspec.structs.force_setattr(self, "y", metres(self.y, "a circle's y"))
        msgspec.structs.force_setattr(self, "radius", metres(self.radius, "a circle's radius", MAX_RADIUS))
        if self.radius <= 0:
            raise ContentError(f"a circle needs a radius above 0, not {self.radius}")

    def __str__(self) -> str:
        return f"circle({text_of(self.x)}, {text_of(self.y)}, {text_of(self.radius)})"

    @property
    def box(self) -> Rectangle:
        r = self.radius
        return Rectangle(_outwards(self.x, -r), _outwards(self.y, -r), _outwards(self.x, r), _outwards(self.y, r))

    @property
    def area(self) -> float:
        return math.pi * self.radius * self.radius

    def contains(self, x: float, y: float) -> bool:
        return math.hypot(x - self.x, y - self.y) <= self.radius

    def distance(self, x: float, y: float) -> float:
        return max(math.hypot(x - self.x, y - self.y) - self.radius, 0.0)

    def enlarged(self, by: float) -> "Circle":
        """A region that contains every point within that distance, and no others but for rounding."""
        by = _growth(by)
        slack = 4 * math.ulp(self.radius + by)
        return Circle(self.x, self.y, min(self.radius + by + slack, MAX_RADIUS))

    def shifted(self, dx: float, dy: float) -> "Circle":
        """The region moved. Raises `ContentError` if that leads beyond `MAX_COORDINATE`."""
        return Circle(self.x + dx, self.y + dy, self.radius)

    def inside_during(self, start: Point, end: Point) -> tuple[MovementPart, ...]:
        """When a point that moves straight from start to end is in the region: parameters in 0..1, in order.

        A touch counts, as an interval of length 0, unless it is lost to rounding.
        """
        starts, ends = self.contains(*start), self.contains(*end)
        if starts and ends:
            return (WHOLE,)
        length = math.dist(start, end)
        if length == 0:
            return ()
        # From the foot of the perpendicular, which may lie before the start or beyond the end, the border is as far
        # away on one side as on the other.
        foot, apart = self._perpendicular(start, end, length)
        half = math.sqrt(max((self.radius - apart) * (self.radius + apart), 0.0)) / length
        if starts or ends:
            return ((0.0, min(max(foot + half, 0.0), 1.0)),) if starts else ((min(max(foot - half, 0.0), 1.0), 1.0),)
        if apart > self.radius or not 0 <= foot <= 1:
            return ()
        return ((max(foot - half, 0.0), min(foot + half, 1.0)),)

    def _perpendicular(self, start: Point, end: Point, length: float) -> tuple[float, float]:
        """The parameter of the foot of the perpendicular from the centre, and the length of that perpendicular."""
        ux, uy = (end[0] - start[0]) / length, (end[1] - start[1]) / length
        dx, dy = self.x - start[0], self.y - start[1]
        return (dx * ux + dy * uy) / length, abs(dx * uy - dy * ux)


class Polygon(msgspec.Struct, frozen=True, array_like=True, tag="polygon"):
    """The area enclosed by a closed line through the corners. It may be concave, and run in either direction."""

    corners: tuple[Point, ...]

    def __post_init__(self) -> None:
        if not 3 <= len(self.corners) <= MAX_CORNERS:
            raise ContentError(f"a polygon has 3 to {MAX_CORNERS} corners, not {len(self.corners)}")
        corners = tuple((metres(x, "a corner's x"), metres(y, "a corner's y")) for x, y in self.corners)
        msgspec.structs.force_setattr(self, "corners", corners)
        if not is_simple(corners):
            raise ContentError("a polygon's border may neither cross nor touch itself")

    def __str__(self) -> str:
        return f"polygon({', '.join(f'{text_of(x)} {text_of(y)}' for x, y in self.corners)})"

    @property
    def edges(self) -> tuple[tuple[Point, Point], ...]:
        return tuple((self.corners[i - 1], self.corners[i]) for i in range(len(self.corners)))

    @property
    def box(self) -> Rectangle:
        xs, ys = zip(*self.corners, strict=True)
        return Rectangle(min(xs), min(ys), max(xs), max(ys))

    @property
    def area(self) -> float:
        return abs(math.fsum(orientation(self.corners[0], a, b) for a, b in self.edges)) / 2

    def contains(self, x: float, y: float) -> bool:
        odd = False
        a = self.corners[-1]
        for b in self.corners:
            if min(a[1], b[1]) <= y <= max(a[1], b[1]):
                if on_segment(a, b, (x, y)):
                    return True
                # A ray to the right crosses the edge if its ends are above and below, and the point is left of it.
                if (a[1] > y) != (b[1] > y) and (orientation(a, b, (x, y)) > 0) == (b[1] > a[1]):
                    odd = not odd
            a = b
        return odd

    def distance(self, x: float, y: float) -> float:
        return 0.0 if self.contains(x, y) else min(distance_to_segment(a, b, (x, y)) for a, b in self.edges)

    def enlarged(self, by: float) -> Rectangle:
        """A region that contains every point within that distance: the bounding box enlarged, so a good deal more."""
        box = self.box
        # The rounding error of a distance to a slanting edge grows with the corners' coordinates.
        slack = 16 * math.ulp(max(abs(box.x0), abs(box.y0), abs(box.x1), abs(box.y1)))
        return box.enlarged(_growth(by) + slack)

    def shifted(self, dx: float, dy: float) -> "Polygon":
        """The region moved. Raises `ContentError` if that leads beyond `MAX_COORDINATE`.

        Also refused: so far out that rounding makes one corner of two that are close together.
        """
        return Polygon(tuple((x + dx, y + dy) for x, y in self.corners))

    def inside_during(self, start: Point, end: Point) -> tuple[MovementPart, ...]:
        """When a point that moves straight from start to end is in the region: parameters in 0..1, in order.

        A touch counts, as an interval of length 0. Between two meetings with the border nothing changes, so one point
        in the middle decides.
        """
        shared = [met for a, b in self.edges if (met := meetings(start, end, a, b))]
        intervals = [(met[0], met[-1]) for met in shared]  # along an edge: no rounded point can tell
        times = sorted({*WHOLE, *(t for met in shared for t in met)})
        for begin, finish in pairwise(times):
            middle = (begin + finish) / 2
            x, y = (start[axis] + middle * (end[axis] - start[axis]) for axis in (0, 1))
            if self.contains(x, y):
                intervals.append((begin, finish))
        return merged(intervals)


Region = Rectangle | Circle | Polygon


def bounding_box(regions: Iterable[Region]) -> Rectangle:
    """The smallest rectangle that contains them all. There is at least one."""
    boxes = [region.box for region in regions]
    return Rectangle(
        min(box.x0 for box in boxes),
        min(box.y0 for box in boxes),
        max(box.x1 for box in boxes),
        max(box.y1 for box in boxes),
    )


def may_intersect(a: Region, b: Region) -> bool:
    """Whether two regions have a point in common. Never wrongly says no; exact if no circle is involved.

    With a circle, a gap that is smaller than rounding (1e-12 of the sizes involved) counts as none.
    """
    if isinstance(a, Circle):
        return _meets_circle(a, b)
    if isinstance(b, Circle):
        return _meets_circle(b, a)
    if a.box.x0 > b.box.x1 or b.box.x0 > a.box.x1 or a.box.y0 > b.box.y1 or b.box.y0 > a.box.y1:
        return False
    return (isinstance(a, Rectangle) and isinstance(b, Rectangle)) or _outlines_meet(a, b)


def _meets_circle(circle: Circle, other: Region) -> bool:
    distance = other.distance(circle.x, circle.y)
    box = other.box
    size = distance + circle.radius + math.hypot(box.x1 - box.x0, box.y1 - box.y0)
    return distance <= circle.radius + _ROUNDING * size


def _outlines_meet(a: Rectangle | Polygon, b: Rectangle | Polygon) -> bool:
    """Whether borders touch or one region lies in the other."""
    if a.contains(*b.corners[0]) or b.contains(*a.corners[0]):
        return True
    return any(
        segments_touch(a.corners[i - 1], a.corners[i], b.corners[j - 1], b.corners[j])
        for i in range(len(a.corners))
        for j in range(len(b.corners))
    )
