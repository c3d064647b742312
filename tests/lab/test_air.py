"""Who hears whom, against positions and links that can be checked by hand."""

from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.twins import LINE, linked, simulated
from roamcast.lab.air import LinkedAir, PlacedAir, air_facts, air_of, check_possible, mesh_facts
from roamcast.sim.mobility import ScenarioError
from roamcast.sim.scenario.scenario import Scenario, check
from roamcast.units import SECOND


def placed(**parts: Any) -> Scenario:  # noqa: ANN401
    raw = {
        "nodes": 3,
        "duration": 10,
        "area": {"width": 1000, "height": 100},
        "movement": {"model": "static", "positions": [[0, 0], [100, 0], [250, 0]]},
        "radio": {"range": 100},
        **parts,
    }
    return check(raw, "tests", Path())


def test_both_ends_of_the_range_belong_to_it() -> None:
    air = PlacedAir(placed(), Path())
    assert air.hears(0, 0) == [(1, 0.0)]
    assert air.hears(0, 1) == [(0, 0.0)]
    assert air.hears(0, 2) == []


def test_the_loss_is_the_radios() -> None:
    assert PlacedAir(placed(radio={"range": 300, "loss": 0.25}), Path()).hears(0, 0) == [(1, 0.25), (2, 0.25)]


def test_nodes_are_where_their_walk_has_taken_them(tmp_path: Path) -> None:
    (tmp_path / "walk.csv").write_text("time,node,x,y\n0,0,0,0\n10,0,100,0\n0,1,300,0\n", encoding="utf-8")
    scenario = placed(nodes=2, movement={"model": "recorded", "file": "walk.csv"}, radio={"range": 250})
    air = PlacedAir(scenario, tmp_path)
    # Node 0 walks 10 m a second towards node 1, and is within 250 m of it from 5 s on.
    assert air.hears(5 * SECOND - 1, 0) == []
    assert air.hears(5 * SECOND, 0) == [(1, 0.0)]
    assert air.hears(5 * SECOND, 1) == [(0, 0.0)]


def test_before_the_start_the_air_is_as_at_the_start() -> None:
    assert PlacedAir(placed(), Path()).hears(-5 * SECOND, 0) == [(1, 0.0)]
    assert LinkedAir(linked(LINE, "flooding")).hears(-1, 0) == [(1, 0.0)]


def test_a_range_of_a_nodes_own_is_the_one_the_simulator_draws() -> None:
    air = PlacedAir(placed(seed=3, radio={"range": [50, 150], "drawn": "node"}), Path())
    for node, neighbours in ((0, {1: 100, 2: 250}), (1, {0: 100, 2: 150}), (2, {0: 250, 1: 150})):
        reach = Random(f"3/range/{node}").uniform(50, 150)
        assert [other for other, _ in air.hears(0, node)] == [o for o, far in neighbours.items() if far <= reach]


def test_a_range_drawn_for_each_frame_varies() -> None:
    air = PlacedAir(placed(radio={"range": [50, 150]}), Path())
    heard = [len(air.hears(0, 0)) for _ in range(200)]
    assert set(heard) == {0, 1}
    assert 60 < sum(heard) < 140  # half of the ranges are 100 m or more; outside with a probability of 1e-8


def test_indoors_the_lesser_range_counts() -> None:
    air = PlacedAir(placed(radio={"range": 300, "indoor_range": 20}), Path())
    inside = air._places.leg(2, 0)._replace(indoor=True)
    air._places._legs[2] = [inside]
    assert air.hears(0, 0) == [(1, 0.0)]
    assert air.hears(0, 2) == []


def test_links_come_and_go_at_their_time() -> None:
    change = [{"at": 1, "down": [[1, 2]]}, {"at": 2, "up": [[0, 2]]}]
    air = LinkedAir(linked(LINE[:2], "flooding", change=change))
    assert air.hears(SECOND - 1, 1) == [(0, 0.0), (2, 0.0)]
    assert air.hears(SECOND, 1) == [(0, 0.0)]
    assert air.hears(2 * SECOND, 2) == [(0, 0.0)]
    assert air.hears(2 * SECOND, 0) == [(1, 0.0), (2, 0.0)]


@given(st.lists(st.integers(0, 20 * SECOND), min_size=1, max_size=20), st.integers(0, 5))
def test_asking_more_often_changes_nothing(times: list[int], seed: int) -> None:
    def fresh() -> PlacedAir:
        return PlacedAir(placed(nodes=4, seed=seed, movement={"model": "random-waypoint", "speed": [10, 50]}), Path())

    often = fresh()
    for time in sorted(times):
        assert often.hears(time, 0) == fresh().hears(time, 0)


def test_the_facts_of_the_air_are_those_of_the_simulator() -> None:
    moving = placed(movement={"model": "random-waypoint", "speed": [20, 50]}, mac={"model": "ideal"})
    legs = [row for table, row in air_facts(moving, Path()) if table == "leg"]
    assert legs == [tuple(row.values()) for row in simulated(moving)["leg"].to_pylist()]
    flipping = linked(LINE, "flooding", change=[{"at": 1, "down": [[1, 2]]}, {"at": 99, "up": [[1, 2]]}])
    links = [row for table, row in air_facts(flipping, Path()) if table == "link"]
    assert links == [tuple(row.values()) for row in simulated(flipping)["link"].to_pylist()]


def test_on_a_bridge_everybody_hears_everybody() -> None:
    assert [row for _, row in mesh_facts(2)] == [(0, 0, 1, 0.0), (0, 1, 0, 0.0)]


def test_the_scenario_says_which_air() -> None:
    assert isinstance(air_of(placed(), Path()), PlacedAir)
    assert isinstance(air_of(linked(LINE, "flooding"), Path()), LinkedAir)


@pytest.mark.parametrize(
    ("parts", "field"), [({"background": {"rate": 1.0}}, "background"), ({"record": {"frames": True}}, "record.frames")]
)
def test_what_only_a_simulator_can_is_refused_by_name(parts: dict[str, Any], field: str) -> None:
    with pytest.raises(ScenarioError, match=f"^x.toml: {field}: "):
        check_possible(placed(**parts), "x.toml")
