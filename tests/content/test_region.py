"""Regions: what they contain, how far they are, what they enclose and when a movement is in them."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Final

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from examples import examples
from roamcast.content.region import (
    MAX_COORDINATE,
    MAX_CORNERS,
    MAX_RADIUS,
    Circle,
    Polygon,
    Rectangle,
    Region,
    bounding_box,
    may_intersect,
)
from roamcast.errors import ContentError

SQUARE: Final = Rectangle(0, 0, 100, 50)
DISC: Final = Circle(10, 20, 5)
# A U: the notch between x = 2 and x = 4 above y = 1 is outside.
U: Final = Polygon(((0, 0), (6, 0), (6, 5), (4, 5), (4, 1), (2, 1), (2, 5), (0, 5)))
DIAMOND: Final = Polygon(((3, 0), (6, 3), (3, 6), (0, 3)))

decoder: Final = msgspec.msgpack.Decoder(Region)


# What is one


@pytest.mark.parametrize(
    ("build", "rule"),
    [
        (lambda: Rectangle(0, 0, 0, 1), "x0 < x1"),
        (lambda: Rectangle(0, 2, 1, 1), "y0 < y1"),
        (lambda: Rectangle(math.nan, 0, 1, 1), "a rectangle's x0 must be within ±1e"),
        (lambda: Rectangle(0, 0, math.inf, 1), "a rectangle's x1 must be within"),
        (lambda: Rectangle(0, 0, 1, 2e9), "a rectangle's y1 must be within"),
        (lambda: Rectangle(0, 0, True, 1), "must be a number of metres, not True"),
        (lambda: Rectangle(0, 0, "1", 1), "must be a number of metres, not '1'"),  # type: ignore[arg-type]  # on purpose
        (lambda: Circle(0, 0, 0), "a radius above 0"),
        (lambda: Circle(0, 0, -1), "a radius above 0"),
        (lambda: Circle(0, 0, math.nan), "a circle's radius must be within"),
        (lambda: Circle(0, 0, 5e9), "a circle's radius must be within"),
        (lambda: Polygon(((0, 0), (1, 1))), "3 to 32 corners, not 2"),
        (lambda: Polygon(tuple((i, i * i) for i in range(MAX_CORNERS + 1))), "3 to 32 corners, not 33"),
        (lambda: Polygon(((0, 0), (2, 2), (2, 0), (0, 2))), "neither cross nor touch itself"),
        (lambda: Polygon(((0, 0), (1, 1), (2, 2))), "neither cross nor touch itself"),
        (lambda: Polygon(((0, 0), (4, 0), (2, 0), (2, 3))), "neither cross nor touch itself"),
        (lambda: Polygon(((0, 0), (4, 0), (4, 4), (2, 0), (0, 4))), "neither cross nor touch itself"),
        (lambda: Polygon(((0, 0), (0, 0), (4, 0), (4, 4))), "neither cross nor touch itself"),
        (lambda: Polygon(((0, 0), (2, 2), (4, 0), (4, 4), (2, 2), (0, 4))), "neither cross nor touch itself"),
        (lambda: Polygon(((0, 0), (1, math.nan), (2, 0))), "a corner's y must be within"),
    ],
)
def test_what_is_no_region_is_refused(build: Callable[[], Region], rule: str) -> None:
    with pytest.raises(ContentError, match=rule.replace("(", r"\(")):
        build()


def test_a_corner_on_a_straight_edge_is_allowed() -> None:
    assert Polygon(((0, 0), (2, 0), (4, 0), (4, 4))).contains(3, 0)


@pytest.mark.parametrize("region", [SQUARE, DISC, U], ids=str)
def test_a_region_goes_over_the_air(region: Region) -> None:
    assert decoder.decode(msgspec.msgpack.encode(region)) == region


@pytest.mark.parametrize(
    "parts",
    [
        ["rect", 0, 0, 0, 1],
        ["rect", 0, 0, 1],
        ["rect", 0, 0, 1, math.inf],
        ["circle", 0, 0, -1],
        ["circle", 0, 0, math.nan],
        ["polygon", [[0, 0], [1, 1]]],
        ["polygon", [[0, 0], [1, 1, 1], [2, 0]]],
        ["polygon", [[0, 0], [2, 2], [2, 0], [0, 2]]],
        ["sphere", 0, 0, 1],
    ],
    ids=str,
)
def test_what_is_no_region_is_refused_from_the_air(parts: list[object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        decoder.decode(msgspec.msgpack.encode(parts))


def test_text() -> None:
    assert str(SQUARE) == "rect(0, 0, 100, 50)"
    assert str(Circle(0.5, -20, 1e-7)) == "circle(0.5, -20, 1e-07)"
    assert str(DIAMOND) == "polygon(3 0, 6 3, 3 6, 0 3)"


# Points


@pytest.mark.parametrize(
    ("region", "point", "distance"),
    [
        (SQUARE, (0, 0), 0),
        (SQUARE, (100, 50), 0),
        (SQUARE, (50, 25), 0),
        (SQUARE, (103, 54), 5),
        (SQUARE, (-7, 25), 7),
        (SQUARE, (50, 51), 1),
        (DISC, (10, 20), 0),
        (DISC, (13, 24), 0),
        (DISC, (16, 28), 5),
        (U, (1, 4), 0),
        (U, (5, 5), 0),
        (U, (3, 1), 0),
        (U, (3, 2), 1),
        (U, (3, 9), math.hypot(1, 4)),
        (U, (9, 9), 5),
        (DIAMOND, (1, 2), 0),
        (DIAMOND, (1, 1), math.sqrt(0.5)),
        (DIAMOND, (3, 8), 2),
    ],
    ids=str,
)
def test_points_and_distances(region: Region, point: tuple[float, float], distance: float) -> None:
    assert region.contains(*point) == (distance == 0)
    assert region.distance(*point) == pytest.approx(distance, abs=1e-12)


def test_the_border_of_a_polygon_is_decided_exactly() -> None:
    # In floats, the cross product of (0.1, 0.3) and (0.3, 0.9) comes out as 0 although 0.9 is not three times 0.3.
    slope = Polygon(((0, 0), (0.3, 0.9), (0.3, 0)))
    below = Fraction(0.3) * Fraction(0.3) - Fraction(0.9) * Fraction(0.1)
    assert below != 0
    assert slope.contains(0.1, 0.3) == (below <= 0)


@pytest.mark.parametrize(
    ("region", "box", "area"),
    [
        (SQUARE, (0, 0, 100, 50), 5000),
        (DISC, (5, 15, 15, 25), 25 * math.pi),
        (U, (0, 0, 6, 5), 22),
        (DIAMOND, (0, 0, 6, 6), 18),
    ],
    ids=str,
)
def test_box_and_area(region: Region, box: tuple[float, ...], area: float) -> None:
    assert (region.box.x0, region.box.y0, region.box.x1, region.box.y1) == pytest.approx(box, abs=1e-12)
    assert region.area == pytest.approx(area)


def test_bounding_box_of_several() -> None:
    assert bounding_box([SQUARE, Rectangle(-5, 10, 5, 60)]) == Rectangle(-5, 0, 100, 60)


def test_shifted() -> None:
    assert SQUARE.shifted(5, -5) == Rectangle(5, -5, 105, 45)
    assert DISC.shifted(5, -5) == Circle(15, 15, 5)
    assert DIAMOND.shifted(1, 2) == Polygon(((4, 2), (7, 5), (4, 8), (1, 5)))
    for region in (SQUARE, DISC, DIAMOND):
        with pytest.raises(ContentError, match="must be within"):
            region.shifted(MAX_COORDINATE, 0)


def test_enlarged() -> None:
    grown = SQUARE.enlarged(60)
    assert (grown.x0, grown.y0, grown.x1, grown.y1) == pytest.approx((-60, -60, 160, 110))
    assert DISC.enlarged(60).radius == pytest.approx(65)
    assert (U.enlarged(1).x0, U.enlarged(1).y1) == pytest.approx((-1, 6))
    for growth in (-1, math.nan, math.inf):
        with pytest.raises(ContentError, match="grows by 0 m or more"):
            SQUARE.enlarged(growth)


def test_nothing_grows_beyond_the_greatest_coordinate() -> None:
    everything = Rectangle(-MAX_COORDINATE, -MAX_COORDINATE, MAX_COORDINATE, MAX_COORDINATE)
    assert everything.enlarged(60) == everything
    assert Circle(MAX_COORDINATE, 0, 1).box.x1 == MAX_COORDINATE
    assert Circle(0, 0, MAX_RADIUS).enlarged(1e9).radius == MAX_RADIUS
    assert Circle(0, 0, MAX_RADIUS).box == everything


# Generated regions, against models that are obvious

coordinates = st.integers(-20, 20) | st.floats(-20, 20)
points = st.tuples(coordinates, coordinates)


@st.composite
def _rectangles(draw: st.DrawFn) -> Rectangle:
    (x0, x1), (y0, y1) = (sorted((draw(coordinates), draw(coordinates))) for _ in range(2))
    assume(x0 < x1 and y0 < y1)
    return Rectangle(x0, y0, x1, y1)


rectangles = _rectangles()
circles = st.builds(Circle, coordinates, coordinates, st.integers(1, 12) | st.floats(1e-9, 12))

Turn = tuple[int, int]
"""An integer matrix [[a, -b], [b, a]]: it turns and scales without rounding."""
turns = st.sampled_from([(1, 0), (0, 1), (-2, 0), (3, 4), (1, 1), (-5, 12), (2, -7)])


class Columns:
    """Bars of width 1 beside each other, turned: a polygon that may be concave, and whose points are known."""

    def __init__(self, heights: list[int], turn: Turn, at: tuple[int, int]) -> None:
        self.heights, self.turn, self.at = heights, turn, at
        corners = [(0, 0), (len(heights), 0)]
        for column in range(len(heights) - 1, -1, -1):
            corners += [(column + 1, heights[column]), (column, heights[column])]
        kept = [corner for i, corner in enumerate(corners) if corner != corners[i - 1]]
        self.polygon = Polygon(tuple(self.placed(x, y) for x, y in kept))

    def placed(self, x: int, y: int) -> tuple[int, int]:
        (a, b), (dx, dy) = self.turn, self.at
        return a * x - b * y + dx, b * x + a * y + dy

    def contains(self, x: float, y: float) -> bool:
        a, b = self.turn
        u, v = Fraction(x) - self.at[0], Fraction(y) - self.at[1]
        size = a * a + b * b
        s, t = (a * u + b * v) / size, (a * v - b * u) / size
        return any(i <= s <= i + 1 and 0 <= t <= height for i, height in enumerate(self.heights))


columns = st.builds(
    Columns,
    st.lists(st.integers(1, 5), min_size=1, max_size=7),
    turns,
    st.tuples(st.integers(-9, 9), st.integers(-9, 9)),
)
regions: st.SearchStrategy[Region] = rectangles | circles | columns.map(lambda bars: bars.polygon)


@settings(max_examples=examples(60), deadline=None)
@given(columns, st.lists(points, min_size=1, max_size=5), st.data())
def test_a_polygon_contains_what_its_bars_contain(
    bars: Columns, seen: list[tuple[float, float]], data: st.DataObject
) -> None:
    lattice = st.tuples(st.integers(-1, 8), st.integers(-1, 6)).map(lambda place: bars.placed(*place))
    for x, y in [*seen, *data.draw(st.lists(lattice, max_size=5))]:
        assert bars.polygon.contains(x, y) == bars.contains(x, y)


@settings(max_examples=examples(60), deadline=None)
@given(regions, points)
def test_distance_is_zero_inside_and_bounded_by_the_box(region: Region, point: tuple[float, float]) -> None:
    distance = region.distance(*point)
    assert distance == 0 if region.contains(*point) else distance >= 0
    assert region.distance(*point) >= region.box.distance(*point) - 1e-9
    if region.contains(*point):
        assert region.box.contains(*point)


@settings(max_examples=examples(60), deadline=None)
@given(columns, points)
def test_distance_to_a_polygon_is_that_to_its_nearest_bar(bars: Columns, point: tuple[float, float]) -> None:
    (a, b), (dx, dy) = bars.turn, bars.at
    size = math.hypot(a, b)
    u, v = point[0] - dx, point[1] - dy
    s, t = (a * u + b * v) / size**2, (a * v - b * u) / size**2
    nearest = min(
        math.hypot(s - min(max(s, i), i + 1), t - min(max(t, 0), height)) for i, height in enumerate(bars.heights)
    )
    assert bars.polygon.distance(*point) == pytest.approx(nearest * size, abs=1e-9)


@settings(max_examples=examples(60), deadline=None)
@given(regions, points, st.integers(0, 30) | st.floats(0, 30))
def test_enlarged_contains_all_within_the_distance(region: Region, point: tuple[float, float], by: float) -> None:
    if region.distance(*point) <= by:
        assert region.enlarged(by).contains(*point)
    distance = region.distance(*point)
    assert region.enlarged(distance).contains(*point)


@settings(max_examples=examples(60), deadline=None)
@given(regions, regions)
def test_regions_with_a_common_point_may_intersect(a: Region, b: Region) -> None:
    assert may_intersect(a, b) == may_intersect(b, a)
    middles = [
        (a.box.x0 + (a.box.x1 - a.box.x0) * i / 8, a.box.y0 + (a.box.y1 - a.box.y0) * j / 8)
        for i in range(9)
        for j in range(9)
    ]
    if any(a.contains(*point) and b.contains(*point) for point in middles):
        assert may_intersect(a, b)
    if not may_intersect(a.box, b.box):
        assert not may_intersect(a, b)


@settings(max_examples=examples(60), deadline=None)
@given(rectangles, rectangles)
def test_rectangles_intersect_if_the_corner_of_both_is_common(a: Rectangle, b: Rectangle) -> None:
    corner = max(a.x0, b.x0), max(a.y0, b.y0)
    assert may_intersect(a, b) == (a.contains(*corner) and b.contains(*corner))


@settings(max_examples=examples(60), deadline=None)
@given(circles, rectangles, circles)
def test_circles_intersect_what_comes_near(circle: Circle, rectangle: Rectangle, other: Circle) -> None:
    nearest = min(max(circle.x, rectangle.x0), rectangle.x1), min(max(circle.y, rectangle.y0), rectangle.y1)
    gap = math.dist((circle.x, circle.y), nearest) - circle.radius
    assume(abs(gap) > 1e-9)
    assert may_intersect(circle, rectangle) == (gap < 0)
    gap = math.dist((circle.x, circle.y), (other.x, other.y)) - circle.radius - other.radius
    assume(abs(gap) > 1e-9)
    assert may_intersect(circle, other) == (gap < 0)


@settings(max_examples=examples(60), deadline=None)
@given(columns, st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(-8, 8), st.integers(-8, 8))
def test_polygons_intersect_if_two_of_their_bars_do(bars: Columns, heights: list[int], right: int, up: int) -> None:
    other = Columns(heights, bars.turn, bars.placed(right, up))
    expected = any(
        i <= right + j + 1 and right + j <= i + 1 and up <= height and up + other_height >= 0
        for i, height in enumerate(bars.heights)
        for j, other_height in enumerate(heights)
    )
    assert may_intersect(bars.polygon, other.polygon) == expected


def test_regions_that_touch_intersect() -> None:
    assert may_intersect(Rectangle(0, 0, 1, 1), Rectangle(1, 1, 2, 2))
    assert may_intersect(Circle(0, 0, 2), Circle(3, 4, 3))
    assert may_intersect(Circle(0, 0, 5), Rectangle(3, 4, 9, 9))
    assert not may_intersect(Circle(0, 0, 4.999999), Rectangle(3, 4, 9, 9))
    assert may_intersect(U, Rectangle(2, 2, 4, 4))
    assert not may_intersect(U, Rectangle(2.1, 2, 3.9, 4)), "in the notch"
    assert not may_intersect(U, Circle(3, 3, 0.9))
    assert may_intersect(Circle(3, 3, 50), U)
    assert may_intersect(U, Rectangle(0.5, 0.5, 1, 1))
    assert may_intersect(Rectangle(-9, -9, 9, 9), DIAMOND)
    assert not may_intersect(DIAMOND, Rectangle(0, 0, 1, 1.5)), "the boxes overlap, they do not"


# Movements


@pytest.mark.parametrize(
    ("region", "start", "end", "intervals"),
    [
        (SQUARE, (-100, 25), (100, 25), [(0.5, 1)]),
        (SQUARE, (-100, 25), (300, 25), [(0.25, 0.5)]),
        (SQUARE, (10, 10), (20, 20), [(0, 1)]),
        (SQUARE, (-10, 50), (110, 50), [(1 / 12, 11 / 12)]),
        (SQUARE, (-10, 51), (110, 51), []),
        (SQUARE, (-50, 50), (50, -50), [(0.5, 0.5)]),
        (SQUARE, (5, 5), (5, 5), [(0, 1)]),
        (SQUARE, (5, 55), (5, 55), []),
        (DISC, (0, 20), (20, 20), [(0.25, 0.75)]),
        (DISC, (10, 20), (20, 20), [(0, 0.5)]),
        (DISC, (20, 20), (10, 20), [(0.5, 1)]),
        (DISC, (8, 20), (12, 20), [(0, 1)]),
        (DISC, (0, 15), (20, 15), [(0.5, 0.5)]),
        (DISC, (0, 14), (20, 14), []),
        (DISC, (0, 20), (4, 20), []),
        (DISC, (10, 20), (10, 20), [(0, 1)]),
        (DISC, (0, 20), (0, 20), []),
        (U, (-2, 3), (8, 3), [(0.2, 0.4), (0.6, 0.8)]),
        (U, (-2, 5), (8, 5), [(0.2, 0.4), (0.6, 0.8)]),
        (U, (-2, 1), (8, 1), [(0.2, 0.8)]),
        (U, (3, 3), (3, 1), [(1, 1)]),
        (U, (3, 5), (3, -5), [(0.4, 0.5)]),
        (U, (0, 5), (6, 5), [(0, 1 / 3), (2 / 3, 1)]),
        (DIAMOND, (0, 0), (6, 0), [(0.5, 0.5)]),
        (DIAMOND, (-1, 2), (4, 7), [(0.2, 0.8)]),
        (DIAMOND, (3, -3), (3, 9), [(0.25, 0.75)]),
        (DIAMOND, (3, 3), (3, 3), [(0, 1)]),
        (DIAMOND, (1, 1), (1, 1), []),
    ],
    ids=str,
)
def test_when_a_movement_is_inside(
    region: Region, start: tuple[float, float], end: tuple[float, float], intervals: list[tuple[float, float]]
) -> None:
    found = region.inside_during(start, end)
    assert len(found) == len(intervals)
    for got, expected in zip(found, intervals, strict=True):
        assert got == pytest.approx(expected, abs=1e-12)


@settings(max_examples=examples(60), deadline=None)
@given(regions, points, points)
def test_between_its_ends_a_movement_is_inside_exactly_then(
    region: Region, start: tuple[float, float], end: tuple[float, float]
) -> None:
    intervals = region.inside_during(start, end)
    flat = [t for interval in intervals for t in interval]
    assert flat == sorted(flat)
    assert all(0 <= t <= 1 for t in flat)
    assert intervals[0][0] == 0 if region.contains(*start) else True
    assert intervals[-1][1] == 1 if region.contains(*end) else True
    for t in [i / 17 for i in range(18)]:
        x, y = start[0] + t * (end[0] - start[0]), start[1] + t * (end[1] - start[1])
        if min((abs(t - border) for border in flat), default=1) < 1e-9:
            continue
        inside = any(begin < t < finish for begin, finish in intervals)
        if inside != region.contains(x, y):  # then it runs along the border, where a rounded point falls on any side
            assert inside
            assert region.distance(x, y) < 1e-9
