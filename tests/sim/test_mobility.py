"""The rules that every walk obeys, and what is particular to each model but recorded movement."""

import math
import tracemalloc
from collections.abc import Iterator
from itertools import pairwise, takewhile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from roamcast.sim.mobility import (
    FOREVER,
    Area,
    Building,
    Buildings,
    Column,
    Groups,
    HotSpots,
    Leg,
    Model,
    Movement,
    RandomWaypoint,
    Recorded,
    ScenarioError,
    Static,
    Streets,
    position,
)
from roamcast.sim.mobility.streets import StreetMap
from roamcast.units import SECOND

HERE = Path(__file__).parent
KM = Area(width=1000.0, height=1000.0)


def until(walk: Iterator[Leg], seconds: float) -> list[Leg]:
    """The legs of a walk that start before a time."""
    return list(takewhile(lambda leg: leg.start < seconds * SECOND, walk))


def at(walk: Iterator[Leg], seconds: float) -> tuple[float, float]:
    time = round(seconds * SECOND)
    return next(position(leg, time) for leg in walk if leg.end >= time)


def bounds(low: float, high: float) -> st.SearchStrategy[tuple[float, float]]:
    number = st.floats(low, high)
    return st.tuples(number, number).map(lambda pair: (min(pair), max(pair)))


areas = st.builds(Area, width=st.floats(50, 2000), height=st.floats(50, 2000))
shares = st.floats(0, 1)
speeds, pauses = bounds(0.1, 30), bounds(0, 60)
corners = st.tuples(st.sampled_from([0.0, 7.5, 50.0]), st.sampled_from([0.0, 20.0, 50.0]))
models: st.SearchStrategy[Model] = st.one_of(
    st.builds(RandomWaypoint, speed=speeds, pause=pauses, start=st.sampled_from(["stationary", "uniform"])),
    st.builds(
        HotSpots,
        spots=st.lists(corners, min_size=1, max_size=3).map(tuple),
        radius=st.floats(1, 5000),
        attraction=shares,
        speed=speeds,
        pause=pauses,
    ),
    st.builds(
        Groups,
        size=st.integers(1, 6),
        radius=st.floats(0, 500),
        interval=st.floats(0.1, 100),
        speed=speeds,
        pause=pauses,
    ),
    st.builds(Streets, blocks=st.tuples(st.integers(1, 4), st.integers(1, 4)), speed=speeds, pause=pauses),
    st.builds(
        Streets, streets=st.just((((0.0, 0.0), (50.0, 0.0), (50.0, 7.0)), ((50.0, 0.0), (1.0, 50.0)))), speed=speeds
    ),
    st.builds(Column, speed=speeds, pause=pauses, gap=st.floats(0.1, 12), deviation=st.floats(0, 100)),
    st.builds(
        Column,
        speed=speeds,
        pause=pauses,
        gap=st.floats(0.1, 5),
        deviation=st.floats(0, 100),
        waypoints=st.lists(corners, max_size=4, unique=True).map(lambda more: ((25.0, 25.0), (50.0, 25.5), *more)),
    ),
    st.builds(Static, placement=st.sampled_from(["uniform", "grid"])),
    st.builds(Static, positions=st.lists(corners, min_size=5, max_size=5).map(tuple)),
    st.builds(Buildings, buildings=st.integers(2, 4), edge=bounds(2, 12), speed=speeds, stay=pauses, intra=shares),
    st.builds(
        Buildings,
        buildings=st.just((Building(0, 0, 25, 30), Building(25, 10, 25, 20), Building(0, 40, 50, 10))),
        speed=speeds,
        stay=pauses,
        intra=shares,
    ),
)


@settings(max_examples=examples(150), deadline=None)
@given(model=models, area=areas, seed=st.integers(0, 2**64))
def test_legs_start_at_0_join_last_and_stay_in_the_area(model: Model, area: Area, seed: int) -> None:
    assert list(model.problems(area, 5)) == []
    walks = model.walks(area, 5, seed, HERE)
    assert len(walks) == 5
    for walk in walks:
        legs = until(walk, 600)
        assert legs[0].start == 0
        assert legs[-1].end >= 600 * SECOND
        for leg in legs:
            assert leg.end > leg.start
            assert 0 <= leg.x0 <= area.width
            assert 0 <= leg.x1 <= area.width
            assert 0 <= leg.y0 <= area.height
            assert 0 <= leg.y1 <= area.height
        for before, after in pairwise(legs):
            assert (after.start, after.x0, after.y0) == (before.end, before.x1, before.y1)


@settings(max_examples=examples(60), deadline=None)
@given(model=models, area=areas, seed=st.integers(0, 2**64), order=st.permutations(range(5)))
def test_a_walk_depends_on_seed_and_node_alone(model: Model, area: Area, seed: int, order: list[int]) -> None:
    one_by_one = [until(walk, 200) for walk in model.walks(area, 5, seed, HERE)]
    walks = model.walks(area, 5, seed, HERE)
    mixed: dict[int, list[Leg]] = {node: [] for node in order}
    for _ in range(max(map(len, one_by_one))):
        for node in order:
            if len(mixed[node]) < len(one_by_one[node]):
                mixed[node].append(next(walks[node]))
    assert [mixed[node] for node in range(5)] == one_by_one


@pytest.mark.parametrize(
    "model",
    [
        RandomWaypoint(),
        HotSpots(spots=((5.0, 5.0),), radius=9.0),
        Groups(),
        Streets(),
        Column(),
        Static(),
        Buildings(),
    ],
)
def test_seeds_and_nodes_differ(model: Model) -> None:
    firsts = [next(walk) for seed in (1, 2) for walk in model.walks(KM, 3, seed, HERE)]
    assert len(set(firsts)) == 6


def test_a_group_keeps_together() -> None:
    """Without a radius its members walk as one: on the way of the centre. With one they are at most that far from it,
    and no faster than it by more than 2 · radius / interval."""
    alone, loose = Groups(size=3, radius=0.0), Groups(size=3, radius=30.0, interval=4.0)
    centre, together = (until(walk, 600) for walk in alone.walks(KM, 4, 7, HERE)[:2])
    apart = until(loose.walks(KM, 4, 7, HERE)[1], 600)
    distances = []
    for seconds in range(0, 600, 7):
        place = at(iter(centre), seconds)
        assert at(iter(together), seconds) == pytest.approx(place, abs=1e-6)
        distances.append(math.dist(at(iter(apart), seconds), place))
    assert 20 < max(distances) <= 30 + 1e-6
    paces = [math.dist(leg[2:4], leg[4:6]) / (leg.end - leg.start) * SECOND for leg in apart]
    assert 2 < max(paces) <= 2 + 2 * 30 / 4 + 1e-3


def test_groups_are_nodes_in_a_row_and_go_their_own_ways() -> None:
    walks = Groups(size=2, radius=0.0).walks(KM, 5, 7, HERE)
    starts = [next(walk)[2:4] for walk in walks]
    assert starts[0] == starts[1] != starts[2] == starts[3] != starts[4]


H = (((0.0, 0.0), (0.0, 50.0), (0.0, 100.0)), ((0.0, 50.0), (40.0, 50.0)), ((40.0, 0.0), (40.0, 50.0), (40.0, 100.0)))
"""Two streets and one across, the letter H."""


def test_the_way_is_the_shortest_along_streets() -> None:
    streets = StreetMap(H)
    number = {corner: index for index, corner in enumerate(streets.corners)}
    start, end = number[0.0, 0.0], number[40.0, 100.0]
    assert streets.way(start, end) == [(0.0, 0.0), (0.0, 50.0), (40.0, 50.0), (40.0, 100.0)]
    assert streets.length(start, end) == 140
    assert streets.along(start, end, 0.5) == ((20.0, 50.0), [(40.0, 50.0), (40.0, 100.0)])
    assert streets.along(start, end, 0.0)[0] == (0.0, 0.0)


def test_nobody_leaves_the_streets() -> None:
    """Every leg lies on one of H's five stretches: x is 0 or 40, or y is 50."""
    for walk in Streets(streets=H, pause=(0.0, 5.0)).walks(KM, 20, 3, HERE):
        for leg in until(walk, 300):
            on = {(leg.x0, leg.x1) == (side, side) for side in (0.0, 40.0)} | {(leg.y0, leg.y1) == (50.0, 50.0)}
            assert any(on), leg


def test_a_walk_of_random_waypoint_does_not_change_with_the_number_of_nodes() -> None:
    few, many = (RandomWaypoint().walks(KM, nodes, 7, HERE) for nodes in (2, 50))
    assert until(few[1], 500) == until(many[1], 500)


@pytest.mark.parametrize(
    "model",
    [
        RandomWaypoint(),
        HotSpots(spots=((5.0, 5.0),), radius=9.0),
        Column(gap=100.0, pause=(1.0, 9.0)),
        Buildings(),
    ],
)
def test_memory_does_not_grow_with_time(model: Model) -> None:
    walk = model.walks(KM, 10, 1, HERE)[9]
    for _ in range(200):
        next(walk)
    tracemalloc.start()
    try:
        for _ in range(3000):
            next(walk)
        # Kept legs would be some 200 bytes each.
        assert tracemalloc.get_traced_memory()[0] < 20_000
    finally:
        tracemalloc.stop()


def test_position_is_linear_in_time() -> None:
    leg = Leg(start=10 * SECOND, end=14 * SECOND, x0=1.0, y0=50.0, x1=9.0, y1=30.0)
    assert position(leg, 10 * SECOND) == (1, 50)
    assert position(leg, 11 * SECOND) == pytest.approx((3, 45), abs=1e-12)
    assert position(leg, 14 * SECOND) == pytest.approx((9, 30), abs=1e-12)


def test_speeds_and_pauses_are_within_their_bounds_and_use_all_of_them() -> None:
    model = RandomWaypoint(speed=(2.0, 6.0), pause=(10.0, 30.0), start="uniform")
    moving, resting = [], []
    for walk in model.walks(KM, 20, 3, HERE):
        for leg in until(walk, 5000):
            distance, seconds = math.dist(leg[2:4], leg[4:6]), (leg.end - leg.start) / SECOND
            if distance:
                moving.append(distance / seconds)
            else:
                resting.append(seconds)
    assert 2 - 1e-6 < min(moving) < 2.1
    assert 5.9 < max(moving) < 6 + 1e-6
    assert 10 <= min(resting) < 10.5
    assert 29.5 < max(resting) <= 30


def test_static_places() -> None:
    def places(model: Static, area: Area, nodes: int) -> list[tuple[float, float]]:
        legs = [list(walk) for walk in model.walks(area, nodes, 1, HERE)]
        for (leg,) in legs:
            assert (leg.start, leg.end, leg.x0, leg.y0) == (0, FOREVER, leg.x1, leg.y1)
        return [(leg.x0, leg.y0) for (leg,) in legs]

    assert places(Static(positions=((1.0, 2.0), (0.0, 1000.0))), KM, 2) == [(1, 2), (0, 1000)]
    oblong = Area(width=300, height=200)
    thirds = [50.0, 150.0, 250.0]
    assert places(Static(placement="grid"), oblong, 6) == [(x, y) for y in (50.0, 150.0) for x in thirds]
    assert places(Static(placement="grid"), oblong, 5) == [(x, y) for y in (50.0, 150.0) for x in thirds][:5]
    assert places(Static(placement="grid"), Area(width=1000, height=1), 2) == [(250, 0.5), (750, 0.5)]
    assert places(Static(placement="grid"), Area(width=1, height=1000), 2) == [(0.5, 250), (0.5, 750)]
    xs, ys = zip(*places(Static(), Area(width=100, height=1000), 2000), strict=True)
    assert sum(xs) / 2000 == pytest.approx(50, abs=4 * 100 / math.sqrt(12 * 2000))
    assert sum(ys) / 2000 == pytest.approx(500, abs=4 * 1000 / math.sqrt(12 * 2000))


def test_a_column_follows_its_leader_around_the_corner() -> None:
    # The leader walks east at 2 m/s from (100, 50) to (300, 50), rests 10 s, goes north to (300, 250) and stops there.
    model = Column(
        speed=(2.0, 2.0), pause=(10.0, 10.0), gap=20.0, deviation=0.0, waypoints=((100, 50), (300, 50), (300, 250))
    )
    expected = {
        0: [(100, 50), (80, 50), (60, 50)],
        50: [(200, 50), (180, 50), (160, 50)],
        100: [(300, 50), (280, 50), (260, 50)],
        110: [(300, 50), (280, 50), (260, 50)],
        115: [(300, 60), (290, 50), (270, 50)],
        120: [(300, 70), (300, 50), (280, 50)],
        125: [(300, 80), (300, 60), (290, 50)],
        210: [(300, 250), (300, 230), (300, 210)],
        9999: [(300, 250), (300, 230), (300, 210)],
    }
    for seconds, places in expected.items():
        walks = model.walks(KM, 3, 1, HERE)
        for walk, place in zip(walks, places, strict=True):
            assert at(walk, seconds) == pytest.approx(place, abs=1e-6)
    assert [list(walk)[-1].end for walk in model.walks(KM, 3, 1, HERE)] == [FOREVER] * 3


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), deviation=st.floats(0, 30), area=areas)
def test_a_column_stays_near_its_path_and_keeps_its_gaps(seed: int, deviation: float, area: Area) -> None:
    """Beside the way without deviation, which the same seed gives, nobody is farther off than it allows."""
    exact, loose = (Column(deviation=off, gap=5.0, pause=(0.0, 9.0)) for off in (0.0, deviation))
    for straight, free in zip(exact.walks(area, 4, seed, HERE), loose.walks(area, 4, seed, HERE), strict=True):
        for one, other in zip(until(straight, 500), until(free, 500), strict=True):
            assert one[:2] == other[:2]
            assert math.dist(one[4:6], other[4:6]) <= deviation + 1e-9
            assert math.dist(other[2:4], other[4:6]) <= 1.5 * math.dist(one[2:4], one[4:6]) + 1e-6
    first, second = (at(walk, 0) for walk in exact.walks(area, 2, seed, HERE))
    assert math.dist(first, second) == pytest.approx(5)
    side = 1 if area.width >= area.height else 0
    assert first[side] == second[side]


def test_a_column_heads_either_way_along_the_longer_side() -> None:
    ways = set()
    for seed in range(20):
        head, last = (at(walk, 0) for walk in Column(deviation=0.0).walks(Area(width=50, height=90), 2, seed, HERE))
        ways.add((head[0] - last[0], round(head[1] - last[1], 9)))
    assert ways == {(0, 20), (0, -20)}


def test_deviations_reach_to_both_sides_of_the_path() -> None:
    model = Column(gap=1.0, deviation=10.0, waypoints=((500, 500), (900, 500), (900, 900)))
    finals = [list(walk)[-1] for walk in model.walks(KM, 100, 5, HERE)]
    offsets = [leg.x1 - 900 for leg in finals]
    assert min(offsets) < -5 < 5 < max(offsets)
    assert all(abs(off) <= 10 + 1e-9 for off in offsets)


def inside(building: Building, x: float, y: float, margin: float) -> bool:
    return (
        building.x - margin < x < building.x + building.width + margin
        and building.y - margin < y < building.y + building.height + margin
    )


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_every_leg_is_wholly_indoors_or_outdoors(seed: int) -> None:
    model = Buildings()
    plan = model.plan(KM, seed)
    assert len(plan) == 5
    kinds = set()
    for walk in model.walks(KM, 5, seed, HERE):
        for leg in until(walk, 3000):
            kinds.add(leg.indoor)
            for part in range(1, 10):
                x, y = position(leg, leg.start + (leg.end - leg.start) * part // 10)
                if leg.indoor:
                    assert any(inside(building, x, y, 1e-6) for building in plan)
                else:
                    assert not any(inside(building, x, y, -1e-6) for building in plan)
    assert kinds == {True, False}


def test_a_way_through_a_third_building_is_cut_at_its_walls() -> None:
    # Three in a row, with gaps of 10 m: whoever goes from the first to the last is out, in, and out again.
    plan = (Building(0, 0, 10, 1), Building(20, 0, 10, 1), Building(40, 0, 10, 1))
    model = Buildings(buildings=plan, intra=0.0, stay=(5.0, 5.0), speed=(1.0, 1.0))
    area = Area(width=50, height=1)
    legs = until(model.walks(area, 1, 4, HERE)[0], 5000)
    moves: list[list[Leg]] = [[]]
    for leg in legs:
        if leg.x0 == leg.x1:
            moves.append([])
        else:
            moves[-1].append(leg)
    through = [move for move in moves if move and abs(move[0].x0 - move[-1].x1) > 30]
    assert len(through) > 5
    for move in through:
        assert [leg.indoor for leg in move] == [True, False, True, False, True]
        walls = [leg.x1 for leg in move[:-1]]
        assert sorted(walls) == pytest.approx([10, 20, 30, 40], abs=1e-9)
        total = math.dist(move[0][2:4], move[-1][4:6])
        assert (move[-1].end - move[0].start) / SECOND == pytest.approx(total)


def test_buildings_are_drawn_apart_within_the_area_and_their_edges() -> None:
    for seed in range(50):
        plan = Buildings().plan(KM, seed)
        for i, a in enumerate(plan):
            assert 100 <= a.width <= 150
            assert 100 <= a.height <= 150
            assert a.x >= 0
            assert a.y >= 0
            assert a.x + a.width <= 1000
            assert a.y + a.height <= 1000
            for b in plan[:i]:
                apart_in_x = a.x + a.width <= b.x or b.x + b.width <= a.x
                apart_in_y = a.y + a.height <= b.y or b.y + b.height <= a.y
                assert apart_in_x or apart_in_y


def test_buildings_that_block_each_other_are_drawn_anew() -> None:
    # Where the first stands in the middle, with less than 70 m on each side, the second finds no room.
    model, area = Buildings(buildings=2, edge=(70.0, 70.0)), Area(width=200, height=200)
    assert list(model.problems(area, 1)) == []
    assert {len(model.plan(area, seed)) for seed in range(200)} == {2}


def test_a_hopeless_plan_is_given_up() -> None:
    with pytest.raises(ScenarioError, match="no room found in 200 tries for 5 in the area of 300 m × 300 m"):
        Buildings(edge=(140.0, 150.0)).plan(Area(width=300, height=300), 1)


@pytest.mark.parametrize(
    ("origin", "goal", "part"),
    [
        ((-10, 5), (30, 5), (0.25, 0.5)),
        ((30, 5), (-10, 5), (0.5, 0.75)),
        ((5, 5), (5, 15), (0.0, 0.5)),
        ((2, 2), (8, 8), (0.0, 1.0)),
        ((-10, 11), (30, 11), None),
        ((11, -5), (11, 15), None),
        ((-5, 0), (0, -5), None),
        ((20, 5), (30, 5), None),
    ],
)
def test_the_part_of_a_way_that_leads_through_a_building(
    origin: tuple[float, float], goal: tuple[float, float], part: tuple[float, float] | None
) -> None:
    assert Building(0, 0, 10, 10).part_of_way(origin, goal) == part


def test_four_moves_in_ten_stay_in_their_building() -> None:
    plan = tuple(Building(200.0 * i, 100.0, 100.0, 100.0) for i in range(5))
    model = Buildings(buildings=plan)
    homes = []
    for walk in model.walks(KM, 100, 9, HERE):
        homes.append([int(leg.x0 // 200) for leg in until(walk, 10_000) if leg[2:4] == leg[4:6]])
    moves = [pair for stays in homes for pair in pairwise(stays)]
    same = sum(a == b for a, b in moves) / len(moves)
    assert same == pytest.approx(0.4, abs=4 * math.sqrt(0.24 / len(moves)))
    starts = [stays[0] for stays in homes]
    assert set(starts) == {0, 1, 2, 3, 4}


PROBLEMS: list[tuple[Model, str, str]] = [
    (
        RandomWaypoint(speed=(0.0, 2.0)),
        "speed",
        "the least speed 0 m/s: a node would never arrive; it must be above 0",
    ),
    (RandomWaypoint(speed=(3.0, 2.0)), "speed", "speed from 3 to 2 m/s: the least must not be above the greatest"),
    (RandomWaypoint(speed=(1.0, math.inf)), "speed", "speed from 1 to inf m/s: both must be finite"),
    (RandomWaypoint(speed=(math.nan, 1.0)), "speed", "speed from nan to 1 m/s: both must be finite"),
    (RandomWaypoint(pause=(-1.0, 1.0)), "pause", "the least pause -1 s: it must be 0 or more"),
    (RandomWaypoint(pause=(2.0, 1.0)), "pause", "pause from 2 to 1 s: the least must not be above the greatest"),
    (
        HotSpots(spots=((1.0, 1.0), (1.0, 1001.0)), radius=5.0),
        "spots",
        "spot 1 at (1, 1001): it must lie in the area of 1000 m × 1000 m",
    ),
    (HotSpots(spots=((1.0, 1.0),), radius=5.0, speed=(-1.0, 2.0)), "speed", "the least speed -1 m/s: "),
    (HotSpots(spots=((1.0, 1.0),), radius=5.0, pause=(-1.0, 2.0)), "pause", "the least pause -1 s: "),
    (Groups(speed=(0.0, 2.0)), "speed", "the least speed 0 m/s: "),
    (Groups(pause=(-2.0, 2.0)), "pause", "the least pause -2 s: "),
    (Streets(speed=(0.0, 2.0)), "speed", "the least speed 0 m/s: "),
    (Streets(pause=(-2.0, 2.0)), "pause", "the least pause -2 s: "),
    (Streets(blocks=(5, 0)), "blocks", "5 x 0 blocks: a grid has one to 100 in each direction"),
    (Streets(streets=(((1.0, 1.0), (1.0, 1001.0)),)), "streets", "corner 1 at (1, 1001): it must lie in the area"),
    (Streets(streets=(((1.0, 1.0),),)), "streets", "street 0: it must have two corners or more"),
    (
        Streets(streets=(((1.0, 1.0), (1.0, 9.0)), ((5.0, 5.0), (5.0, 9.0)))),
        "streets",
        "no way leads from corner (1.0, 1.0) to corner (5.0, 5.0): all must be connected",
    ),
    (Column(speed=(0.0, 2.0)), "speed", "the least speed 0 m/s: "),
    (Column(pause=(-2.0, 2.0)), "pause", "the least pause -2 s: "),
    (Column(gap=501.0), "gap", "501 m: a column of 3 nodes must fit along a side of the area of 1000 m × 1000 m"),
    (Column(waypoints=((5.0, 5.0),)), "waypoints", "1 waypoint: a path has two or more"),
    (
        Column(waypoints=((500.0, 5.0), (600.0, 5.0), (600.0, 5.0))),
        "waypoints",
        "waypoints 1 and 2 are the same point [600.0, 5.0]",
    ),
    (Column(waypoints=((500.0, 5.0), (600.0, -5.0))), "waypoints", "waypoint 1 at (600, -5): it must lie in"),
    (
        Column(waypoints=((30.0, 5.0), (600.0, 5.0))),
        "waypoints",
        "the last node would start at (-10, 5), behind the first waypoint: it must lie in the area",
    ),
    (Static(positions=((1.0, 1.0),)), "positions", "1 positions for 3 nodes: there must be one for each"),
    (
        Static(positions=((1.0, 1.0), (1.0, 2.0), (math.nan, 3.0))),
        "positions",
        "node 2 at (nan, 3): it must lie in the area of 1000 m × 1000 m",
    ),
    (
        Static(placement="grid", positions=((1.0, 1.0),) * 3),
        "placement",
        '"grid" cannot be combined with positions: give either',
    ),
    (Buildings(speed=(0.0, 2.0)), "speed", "the least speed 0 m/s: "),
    (Buildings(stay=(-1.0, 2.0)), "stay", "the least stay -1 s: it must be 0 or more"),
    (Buildings(edge=(0.0, 9.0)), "edge", "from 0 to 9 m: both must be finite and above 0"),
    (Buildings(edge=(9.0, 8.0)), "edge", "from 9 to 8 m: both must be finite and above 0, the least not above"),
    (Buildings(edge=(9.0, 1001.0)), "edge", "from 9 to 1001 m: the greatest must fit into the area"),
    (
        Buildings(buildings=12),
        "buildings",
        "12 with edges from 100 to 150 m: to be placed at random, they must need no more than 25% of the area",
    ),
    (Buildings(buildings=()), "buildings", "none are given: users have nowhere to be"),
    (Buildings(buildings=1), "intra", "0.4 with one building: there is no other to walk to; it must be 1"),
    (Buildings(buildings=(Building(0, 0, 9, 9),)), "intra", "0.4 with one building: "),
    (
        Buildings(buildings=(Building(0, 0, 9, 9), Building(8, 8, 9, 9))),
        "buildings",
        "buildings 0, [0, 0, 9, 9], and 1, [8, 8, 9, 9]: they must not overlap",
    ),
    (
        Buildings(buildings=(Building(0, 0, 9, 9), Building(992, 8, 9, 9))),
        "buildings",
        "building 1, [992, 8, 9, 9]: it must lie in the area of 1000 m × 1000 m",
    ),
    (
        Buildings(buildings=(Building(0, 0, 9, 9), Building(20, 8, 0, 9))),
        "buildings",
        "building 1, [20, 8, 0, 9]: width and height must be above 0",
    ),
]


@pytest.mark.parametrize(("model", "field", "rule"), PROBLEMS)
def test_a_broken_rule_is_named_with_its_value(model: Model, field: str, rule: str) -> None:
    found = list(model.problems(KM, 3))
    assert [problem[0] for problem in found] == [field]
    assert found[0][1].startswith(rule)


@pytest.mark.parametrize(
    "text",
    [
        'model = "teleport"',
        'model = "static"\nplacement = "hexagons"',
        'model = "random-waypoint"\nspead = [1, 2]',
        'model = "random-waypoint"\nspeed = [1, 2, 3]',
        'model = "hot-spots"\nradius = 5\nspots = []',
        'model = "hot-spots"\nradius = nan\nspots = [[1, 1]]',
        'model = "hot-spots"\nradius = 5\nspots = [[1, 1]]\nattraction = 1.1',
        'model = "column"\ngap = inf',
        'model = "buildings"\nbuildings = 0',
        'model = "recorded"\nfile = ""',
    ],
)
def test_decoding_refuses_simple_mistakes(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.toml.decode(text, type=Movement)


def test_models_are_decoded_by_their_tags() -> None:
    def decoded(text: str) -> object:
        return msgspec.toml.decode(text, type=Movement)

    assert decoded('model = "random-waypoint"\nspeed = [1, 2]') == RandomWaypoint(speed=(1.0, 2.0))
    assert decoded('model = "hot-spots"\nspots = [[1, 2]]\nradius = 9') == HotSpots(spots=((1.0, 2.0),), radius=9.0)
    assert decoded('model = "groups"\nsize = 3\nradius = 9') == Groups(size=3, radius=9.0)
    assert decoded('model = "streets"\nstreets = [[[1, 2], [3, 4]]]') == Streets(streets=(((1.0, 2.0), (3.0, 4.0)),))
    assert decoded('model = "column"\nwaypoints = [[1, 2], [3, 4]]') == Column(waypoints=((1.0, 2.0), (3.0, 4.0)))
    assert decoded('model = "static"\npositions = [[1, 2]]') == Static(positions=((1.0, 2.0),))
    assert decoded('model = "buildings"\nbuildings = [[1, 2, 3, 4]]') == Buildings(buildings=(Building(1, 2, 3, 4),))
    assert decoded('model = "recorded"\nfile = "a.csv"') == Recorded(file="a.csv")


@pytest.mark.parametrize(
    "model", [RandomWaypoint, HotSpots, Groups, Streets, Column, Static, Buildings, Recorded, Area]
)
def test_every_field_has_a_description(model: type[msgspec.Struct]) -> None:
    for field in msgspec.inspect.type_info(model).fields:  # type: ignore[attr-defined]
        assert isinstance(field.type, msgspec.inspect.Metadata)
        assert (field.type.extra_json_schema or {})["description"].endswith(".")
