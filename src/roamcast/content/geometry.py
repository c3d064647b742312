"""Points and segments in the plane, with the predicates that regions need decided exactly.

The rule this file owns: **`orientation` has the exact sign** for all finite coordinates up to the bound of
`region.py`. Whether a point is on a border and whether two segments touch follows from that sign alone, so that the
answers never contradict each other. Lengths and positions along a segment are rounded floats.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Final

Point = tuple[float, float]
MovementPart = tuple[float, float]
"""A part of a movement, as parameters in 0..1, ends included. A touch is an interval of length 0."""

WHOLE: Final[MovementPart] = (0.0, 1.0)

_ERROR: Final = 4e-16
"""Bound on the relative rounding error of a cross product (Shewchuk 1997: 3.33e-16, for products that are normal)."""
_NORMAL: Final = 1e-280
"""Products below may have lost bits to underflow."""
_SMALLEST: Final = 5e-324
_MERGED: Final = 1e-12
"""Intervals of a movement with a smaller gap between them are merged: the gap is rounding."""


def orientation(a: Point, b: Point, p: Point) -> float:
    """Above 0 if p lies left of the line from a to b, below 0 if right, 0 if on it. The sign is exact.

    The absolute value is twice the area of the triangle, rounded.
    """
    left = (b[0] - a[0]) * (p[1] - a[1])
    right = (b[1] - a[1]) * (p[0] - a[0])
    cross = left - right
    if abs(cross) > _ERROR * (abs(left) + abs(right)) + _NORMAL:
        return cross
    return _exact_orientation(a, b, p)


def _exact_orientation(a: Point, b: Point, p: Point) -> float:
    ax, ay = Fraction(a[0]), Fraction(a[1])
    cross = (Fraction(b[0]) - ax) * (Fraction(p[1]) - ay) - (Fraction(b[1]) - ay) * (Fraction(p[0]) - ax)
    if not cross:
        return 0.0
    return float(cross) or math.copysign(_SMALLEST, cross.numerator)


def on_segment(a: Point, b: Point, p: Point) -> bool:
    """Whether p is a point of the segment, its ends included."""
    return (
        min(a[0], b[0]) <= p[0] <= max(a[0], b[0])
        and min(a[1], b[1]) <= p[1] <= max(a[1], b[1])
        and orientation(a, b, p) == 0
    )


def segments_touch(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Whether the segments a-b and c-d have a point in common, their ends included."""
    if (
        max(a[0], b[0]) < min(c[0], d[0])
        or max(c[0], d[0]) < min(a[0], b[0])
        or max(a[1], b[1]) < min(c[1], d[1])
        or max(c[1], d[1]) < min(a[1], b[1])
    ):
        return False
    # With overlapping bounding boxes, segments on one line touch too: all four signs are 0 then.
    return _apart(orientation(a, b, c), orientation(a, b, d)) and _apart(orientation(c, d, a), orientation(c, d, b))


def _apart(first: float, second: float) -> bool:
    """Whether two points are on different sides of a line, or one is on it."""
    return first == 0 or second == 0 or (first > 0) != (second > 0)


def distance_to_segment(a: Point, b: Point, p: Point) -> float:
    along = nearest_parameter(a, b, p)
    return math.hypot(p[0] - a[0] - along * (b[0] - a[0]), p[1] - a[1] - along * (b[1] - a[1]))


def meetings(start: Point, end: Point, a: Point, b: Point) -> tuple[float, ...]:
    """Where a movement from start to end meets the segment a-b: parameters in 0..1.

    One parameter, or, where the movement runs along the segment, two in order: the ends of the common part.
    """
    if not segments_touch(start, end, a, b):
        return ()
    side_a, side_b = orientation(start, end, a), orientation(start, end, b)
    if side_a == 0 and side_b == 0:
        return tuple(sorted((nearest_parameter(start, end, a), nearest_parameter(start, end, b))))
    # At a corner of a polygon both of its edges must give the same number.
    if side_a == 0:
        return (nearest_parameter(start, end, a),)
    if side_b == 0:
        return (nearest_parameter(start, end, b),)
    before, after = orientation(a, b, start), orientation(a, b, end)
    return (abs(before) / (abs(before) + abs(after)),)


def crossing(start: Point, end: Point, least: Point, greatest: Point) -> MovementPart | None:
    """The part of a movement that lies in the rectangle between two corners; None if it misses the rectangle."""
    begin, finish = WHOLE
    for a, b, low, high in zip(start, end, least, greatest, strict=True):
        if a == b:
            if not low <= a <= high:
                return None
            continue
        at_low, at_high = (low - a) / (b - a), (high - a) / (b - a)
        begin, finish = max(begin, min(at_low, at_high)), min(finish, max(at_low, at_high))
    return (begin, finish) if begin <= finish else None


def nearest_parameter(start: Point, end: Point, p: Point) -> float:
    """The parameter, within 0..1, at which a movement comes nearest to p."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    scale = max(abs(dx), abs(dy))  # the square of a tiny length would be 0
    if scale == 0:
        return 0.0
    ux, uy = dx / scale, dy / scale
    along = ((p[0] - start[0]) / scale * ux + (p[1] - start[1]) / scale * uy) / (ux * ux + uy * uy)
    return min(max(along, 0.0), 1.0)


def merged(intervals: Iterable[MovementPart]) -> tuple[MovementPart, ...]:
    """The union of intervals, in order."""
    union: list[MovementPart] = []
    for begin, end in sorted(intervals):
        if union and begin <= union[-1][1] + _MERGED:
            union[-1] = (union[-1][0], max(union[-1][1], end))
        else:
            union.append((begin, end))
    return tuple(union)


def is_simple(corners: Sequence[Point]) -> bool:
    """Whether the closed line through the corners neither crosses nor touches itself, nor turns back on itself."""
    edges = [(corners[i - 1], corners[i]) for i in range(len(corners))]
    last = len(edges) - 1
    for i, (a, b) in enumerate(edges):
        for j in range(i + 1, len(edges)):
            c, d = edges[j]
            if j == i + 1:
                touching = on_segment(a, b, d) or on_segment(c, d, a)
            elif i == 0 and j == last:
                touching = on_segment(a, b, c) or on_segment(c, d, b)
            else:
                touching = segments_touch(a, b, c, d)
            if touching:
                return False
    return True
