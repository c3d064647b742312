"""The sketch of a scenario, from recorded movement."""

from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from roamcast.campaign.folder.recorded import RecordedRun
from roamcast.facts.schema import TABLES
from roamcast.report.sketch import _facts, island_sizes, network_in, places_at
from roamcast.sim.scenario.scenario import Scenario, check
from roamcast.units import SECOND

LINE = {
    "nodes": 4,
    "duration": 10,
    "area": {"width": 400, "height": 100},
    "movement": {"model": "static"},
    "radio": {"range": 100},
}


def leg(node: int, begin: float, end: float, x: float, to: float) -> dict[str, object]:
    start, until = (round(time * SECOND) for time in (begin, end))
    return {
        "node": node,
        "start": start,
        "end": until,
        "x0": x,
        "y0": 0.0,
        "x1": to,
        "y1": 0.0,
        "indoor": False,
        "room": 0,
    }


def run_of(folder: Path, legs: list[dict[str, object]], scenario: Scenario) -> RecordedRun:
    return RecordedRun(
        folder, None, scenario, frozenset({"leg"}), lambda table: pa.Table.from_pylist(legs, TABLES[table])
    )


def test_nodes_are_where_their_legs_are() -> None:
    legs = pa.Table.from_pylist(
        [leg(0, 0, 10, 0, 100), leg(1, 0, 4, 0, 40), leg(1, 4, 8, 40, 0), leg(2, 5, 9, 7, 7)], TABLES["leg"]
    )
    places = places_at(legs, 3, 2 * SECOND)
    assert places[:2, 0].tolist() == [20, 20]
    assert np.isnan(places[2]).all()
    # The last leg of node 1 has ended: it stays where it got to.
    assert places_at(legs, 3, 9 * SECOND)[:, 0].tolist() == pytest.approx([90, 0, 7])


def test_degree_and_connectivity_of_a_line(tmp_path: Path) -> None:
    """0 and 1 hear each other, so do 2 and 3; nobody else: one neighbour each, and 2 of 6 pairs connected."""
    legs = [leg(node, 0, 10, x, x) for node, x in enumerate((0, 90, 200, 300))]
    network = network_in(run_of(tmp_path, legs, check(LINE, "test", tmp_path)))
    assert network is not None
    assert network.degree == 1
    assert network.connected == pytest.approx(2 / 6)


def test_a_network_without_positions_has_no_picture(tmp_path: Path) -> None:
    scenario = check(LINE, "test", tmp_path)
    assert network_in(run_of(tmp_path, [], scenario)) is None
    walls = msgspec.structs.replace(scenario, radio=msgspec.structs.replace(scenario.radio, walls="opaque"))
    assert network_in(run_of(tmp_path, [leg(0, 0, 10, 0, 0)], walls)) is None


def test_islands() -> None:
    linked = np.zeros((5, 5), np.bool_)
    for one, other in ((0, 1), (1, 4), (2, 3)):
        linked[one, other] = linked[other, one] = True
    assert sorted(island_sizes(linked)) == [2, 3]


@pytest.mark.parametrize(("speed", "words"), [([2.0, 2.0], "2 m/s"), ([1.0, 3.0], "1–3 m/s")])
def test_one_speed_is_no_range(speed: list[float], words: str, tmp_path: Path) -> None:
    scenario = check({**LINE, "movement": {"model": "random-waypoint", "speed": speed}}, "test", tmp_path)
    assert f"random-waypoint at {words}" in list(_facts(scenario, None))
