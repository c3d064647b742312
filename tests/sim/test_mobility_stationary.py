"""Random waypoint, hot spots and buildings start as they go on: measured on many nodes, against the theory in numpy.

The samples are fixed by their seeds, and the margins are four standard errors: a test passes always or never.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pytest

from roamcast.sim.mobility import Area, Buildings, Groups, HotSpots, Leg, Model, RandomWaypoint, Streets, position
from roamcast.sim.mobility.buildings import Building
from roamcast.units import SECOND

Floats = npt.NDArray[np.float64]
AREA = Area(width=1000.0, height=600.0)
NODES = 6000
LATER = 1500
LOW, HIGH = 1.0, 20.0


def observe(walk: Iterator[Leg], seconds: int) -> tuple[float, float, float]:
    """x, y and speed."""
    time = seconds * SECOND
    leg = next(leg for leg in walk if leg.end > time)
    return *position(leg, time), math.dist(leg[2:4], leg[4:6]) / (leg.end - leg.start) * SECOND


def at_start_and_later(model: Model, nodes: int = NODES) -> list[Floats]:
    """Columns x, y, speed, a row a node."""
    return [
        np.array([observe(walk, seconds) for walk in model.walks(AREA, nodes, 11, Path())]) for seconds in (0, LATER)
    ]


def central(seen: Floats) -> float:
    """The share in the middle box of half the width and half the height: 1/4 if nodes were anywhere."""
    x, y = seen[:, 0] / AREA.width, seen[:, 1] / AREA.height
    return float(np.mean((abs(x - 0.5) < 0.25) & (abs(y - 0.5) < 0.25)))


def expected_central_of_moving() -> float:
    """Of points on trips between uniform places, weighted by length: no rejection, unlike the code under test."""
    rng = np.random.default_rng(1)
    a, b = rng.random((2, 400_000, 2))
    length = np.hypot(*((b - a) * (AREA.width, AREA.height)).T)
    place = a + (b - a) * rng.random((400_000, 1))
    return float(np.average(np.all(abs(place - 0.5) < 0.25, axis=1), weights=length))


def mean_trip() -> float:
    """Of the distance of two uniform places in a rectangle, in closed form."""
    a, b = AREA.width, AREA.height
    d = math.hypot(a, b)
    logs = a * a / b * math.log((b + d) / a) + b * b / a * math.log((a + d) / b)
    return (a**3 / b**2 + b**3 / a**2 + d * (3 - a * a / b**2 - b * b / a**2) + 2.5 * logs) / 15


def share_error(share: float) -> float:
    return 4 * math.sqrt(share * (1 - share) / NODES)


def test_the_closed_form_of_the_mean_trip() -> None:
    a, b = np.random.default_rng(2).random((2, 400_000, 2)) * (AREA.width, AREA.height)
    assert float(np.mean(np.hypot(*(b - a).T))) == pytest.approx(mean_trip(), rel=0.004)


def test_without_pauses_positions_and_speeds_start_as_they_go_on() -> None:
    share = expected_central_of_moving()
    assert share > 0.25 + 3 * share_error(0.25)
    mean_speed = (HIGH - LOW) / math.log(HIGH / LOW)
    # The second moment of a density 1 / (v ln(high/low)).
    deviation = math.sqrt((HIGH**2 - LOW**2) / 2 / math.log(HIGH / LOW) - mean_speed**2)
    for seen in at_start_and_later(RandomWaypoint(speed=(LOW, HIGH))):
        assert central(seen) == pytest.approx(share, abs=share_error(share))
        assert np.mean(seen[:, 2]) == pytest.approx(mean_speed, abs=4 * deviation / math.sqrt(NODES))
        assert np.mean(seen[:, :2], axis=0) == pytest.approx([500, 300], abs=4 * 290 / math.sqrt(NODES))


def test_with_pauses_so_do_the_shares_of_moving_and_resting_nodes() -> None:
    low, high = 20.0, 100.0
    trip = mean_trip() * math.log(HIGH / LOW) / (HIGH - LOW)
    resting = 60 / (60 + trip)
    mean_speed = (HIGH - LOW) / math.log(HIGH / LOW)
    for seen in at_start_and_later(RandomWaypoint(speed=(LOW, HIGH), pause=(low, high))):
        rests = seen[:, 2] == 0
        assert np.mean(rests) == pytest.approx(resting, abs=share_error(resting))
        assert np.mean(seen[~rests, 2]) == pytest.approx(mean_speed, abs=4 * 5 / math.sqrt(NODES * (1 - resting)))
        # Who rests is anywhere; who moves is where those without pauses are.
        assert central(seen[rests]) == pytest.approx(0.25, abs=share_error(0.25) / math.sqrt(resting))
        share = expected_central_of_moving()
        assert central(seen[~rests]) == pytest.approx(share, abs=share_error(share) / math.sqrt(1 - resting))


def test_the_first_rest_is_what_is_left_of_a_pause() -> None:
    low, high = 20.0, 100.0
    walks = RandomWaypoint(speed=(1000.0, 1000.0), pause=(low, high)).walks(AREA, NODES, 5, Path())
    firsts = [next(walk) for walk in walks]
    rests = np.array([leg.end / SECOND for leg in firsts if leg[2:4] == leg[4:6]])
    assert len(rests) > 0.95 * NODES
    # The mean of what is left is E[p²] / 2 E[p]; below the least pause its density is 1 / E[p].
    mean = (high**3 - low**3) / (3 * (high - low)) / 60 / 2
    assert np.mean(rests) == pytest.approx(mean, abs=4 * 24 / math.sqrt(len(rests)))
    assert np.mean(rests < low) == pytest.approx(low / 60, abs=share_error(low / 60))


@pytest.mark.parametrize("speed", [3.0, 15.0])
def test_one_speed_is_kept(speed: float) -> None:
    for seen in at_start_and_later(RandomWaypoint(speed=(speed, speed)), nodes=500):  # true of each, not on average
        assert seen[:, 2] == pytest.approx(speed, rel=1e-6)


def test_a_uniform_start_is_anywhere_at_uniform_speed_and_then_changes() -> None:
    start: Literal["uniform"] = "uniform"
    first, later = at_start_and_later(RandomWaypoint(speed=(LOW, HIGH), start=start))
    assert central(first) == pytest.approx(0.25, abs=share_error(0.25))
    deviation = (HIGH - LOW) / math.sqrt(12)
    assert np.mean(first[:, 2]) == pytest.approx((LOW + HIGH) / 2, abs=4 * deviation / math.sqrt(NODES))
    assert np.mean(later[:, 2]) < 0.75 * (LOW + HIGH) / 2
    assert central(later) > 0.3


@pytest.mark.parametrize("pause", [(0.0, 0.0), (10.0, 200.0)])
def test_hot_spots_start_as_they_go_on(pause: tuple[float, float]) -> None:
    spots, radius = ((100.0, 100.0), (900.0, 500.0)), 120.0
    model = HotSpots(spots=spots, radius=radius, attraction=0.7, speed=(LOW, HIGH), pause=pause)
    first, later = at_start_and_later(model)

    def shares(seen: Floats) -> list[float]:
        near = [np.hypot(*(seen[:, :2] - spot).T) < radius for spot in spots]
        return [float(np.mean(those)) for those in (*near, seen[:, 2] == 0, seen[:, 2] < 5)]

    for now, then in zip(shares(first), shares(later), strict=True):
        assert now == pytest.approx(then, abs=math.sqrt(2) * share_error(then))
    by_chance = math.pi * 100**2 / (AREA.width * AREA.height)
    assert min(shares(first)[:2]) > 1.5 * by_chance


@pytest.mark.parametrize("pause", [(0.0, 0.0), (10.0, 200.0)])
@pytest.mark.parametrize("kind", [Groups, Streets])
def test_groups_and_streets_start_as_they_go_on(kind: type[Groups] | type[Streets], pause: tuple[float, float]) -> None:
    """Groups of one, which are independent. The shares: in the middle, near the border, slow."""
    model = (
        Groups(size=1, radius=60.0, speed=(LOW, HIGH), pause=pause)
        if kind is Groups
        else Streets(blocks=(3, 2), pause=pause)
    )
    first, later = at_start_and_later(model)

    def shares(seen: Floats) -> list[float]:
        return [central(seen), float(np.mean(seen[:, 0] < 0.1 * AREA.width)), float(np.mean(seen[:, 2] < 5))]

    for now, then in zip(shares(first), shares(later), strict=True):
        assert now == pytest.approx(then, abs=math.sqrt(2) * share_error(then))


@pytest.mark.parametrize("attraction", [1.0, 0.6])
def test_destinations_lie_near_spots_as_often_as_asked(attraction: float) -> None:
    spot, radius = (0.0, 600.0), 50.0  # a corner: only a quarter of the disk is in the area
    model = HotSpots(spots=(spot,), radius=radius, attraction=attraction, pause=(1.0, 1.0))
    goals = []
    for walk in model.walks(AREA, 100, 3, Path()):
        next(walk)  # the first trip is chosen by its length
        goals += [(leg.x1, leg.y1) for leg in (next(walk) for _ in range(40)) if leg[2:4] != leg[4:6]]
    distance = np.hypot(*(np.array(goals) - spot).T)
    by_chance = math.pi * radius**2 / 4 / (AREA.width * AREA.height)
    near = attraction + (1 - attraction) * by_chance
    assert np.mean(distance <= radius) == pytest.approx(near, abs=4 * math.sqrt(near * (1 - near) / len(goals)) + 1e-12)
    # Uniform in the quarter disk: the square of the distance is uniform.
    inside = distance[distance <= radius]
    assert np.mean((inside / radius) ** 2) == pytest.approx(0.5, abs=4 / math.sqrt(12 * len(inside)))


def test_first_trips_within_one_spot_are_chosen_by_their_length() -> None:
    """What is left of a trip chosen so, at a uniform point of it, is E[L²] / 2 E[L] on average.

    For two uniform places in a disk of radius r, E[L²] = r² and E[L] = 128 r / 45π.
    """
    radius = 100.0
    model = HotSpots(spots=((500.0, 300.0),), radius=radius, attraction=1.0)
    left = [math.dist(leg[2:4], leg[4:6]) for leg in map(next, model.walks(AREA, NODES, 8, Path()))]
    expected = radius * 45 * math.pi / 256
    assert np.mean(left) == pytest.approx(expected, abs=4 * 0.4 * radius / math.sqrt(NODES))


PLAN = (Building(50.0, 50.0, 100.0, 150.0), Building(850.0, 50.0, 100.0, 100.0), Building(400.0, 400.0, 150.0, 150.0))
STAY = (30.0, 180.0)


def seen_among_buildings(walk: Iterator[Leg], seconds: int) -> tuple[float, ...]:
    """x, y, speed, room, whether on the way to another building, and s until the leg ends."""
    time = seconds * SECOND
    leg = next(leg for leg in walk if leg.end > time)
    speed = math.dist(leg[2:4], leg[4:6]) / (leg.end - leg.start) * SECOND
    return *position(leg, time), speed, leg.room, leg.travelling, (leg.end - time) / SECOND


def moves_between(intra: float, count: int) -> tuple[Floats, Floats]:
    """Where moves start and end, far into a walk: every building is left equally often."""
    rng = np.random.default_rng(4)
    corners, sizes = np.array(PLAN)[:, :2], np.array(PLAN)[:, 2:]
    home = rng.integers(3, size=count)
    goal = np.where(rng.random(count) < intra, home, (home + rng.integers(1, 3, size=count)) % 3)
    return corners[home] + sizes[home] * rng.random((count, 2)), corners[goal] + sizes[goal] * rng.random((count, 2))


@pytest.mark.parametrize("intra", [0.4, 0.0])
def test_walks_among_buildings_start_as_they_go_on(intra: float) -> None:
    low, high = 0.5, 2.0
    starts, goals = moves_between(intra, 400_000)
    move = np.hypot(*(goals - starts).T) * math.log(high / low) / (high - low)
    staying = 105 / (105 + float(np.mean(move)))
    places = starts + (goals - starts) * np.random.default_rng(5).random((len(starts), 1))
    indoors = [np.all((places >= b[:2]) & (places <= np.add(b[:2], b[2:])), axis=1) for b in PLAN]
    mean_speed = (high - low) / math.log(high / low)
    left = (STAY[1] ** 3 - STAY[0] ** 3) / (3 * (STAY[1] - STAY[0])) / 105 / 2
    model = Buildings(buildings=PLAN, speed=(low, high), stay=STAY, intra=intra)
    for seconds in (0, LATER):
        walks = model.walks(AREA, NODES, 11, Path())
        seen = np.array([seen_among_buildings(walk, seconds) for walk in walks], dtype=float)
        stays = seen[:, 2] == 0
        assert np.mean(stays) == pytest.approx(staying, abs=share_error(staying))
        assert np.mean(seen[~stays, 2]) == pytest.approx(mean_speed, abs=4 * 0.44 / math.sqrt(np.sum(~stays)))
        # Who stays is in each building equally often, and has a part of the stay to go.
        for room, inside in enumerate(indoors):
            share = np.mean(seen[stays, 3] == room)
            assert share == pytest.approx(1 / 3, abs=share_error(1 / 3) / math.sqrt(staying))
            passing = float(np.average(inside, weights=move))
            assert np.mean(seen[~stays, 3] == room) == pytest.approx(
                passing, abs=share_error(passing) / math.sqrt(1 - staying)
            )
        assert np.mean(seen[stays, 5]) == pytest.approx(left, abs=4 * 44 / math.sqrt(np.sum(stays)))


def test_who_is_under_way_at_the_start_travels_until_it_is_inside() -> None:
    model = Buildings(buildings=PLAN, stay=STAY, intra=0.0)
    under_way = 0
    for walk in model.walks(AREA, 300, 3, Path()):
        first = next(walk)
        if first[2:4] == first[4:6]:
            continue
        under_way += 1
        legs = [first]
        while legs[-1][2:4] != legs[-1][4:6]:
            legs.append(next(walk))
        goal = legs[-1].room
        assert [leg.travelling for leg in legs] == [leg.room != goal for leg in legs]
    assert under_way > 200


@pytest.mark.parametrize("start", ["stationary", "uniform"])
def test_nodes_of_no_speed_stay_where_others_start(start: Literal["stationary", "uniform"]) -> None:
    still, slow, fast = (
        [next(walk) for walk in RandomWaypoint(speed=(v, v), start=start).walks(AREA, 50, 3, Path())]
        for v in (0, 1, 20)
    )
    for one, other, third in zip(still, slow, fast, strict=True):
        assert (one.x0, one.y0) == (one.x1, one.y1) == (other.x0, other.y0) == (third.x0, third.y0)
        assert one.end > 10**9 * SECOND
    assert not list(RandomWaypoint(speed=(0.0, 0.0)).problems(AREA, 50))
    assert [field for field, _ in RandomWaypoint(speed=(0.0, 1.0)).problems(AREA, 50)] == ["speed"]
