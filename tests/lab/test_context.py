"""Contexts in both worlds: the freeway on real nodes, which are told where they are, and in the simulator."""

from pathlib import Path
from typing import Any

import pytest

from lab.twins import delivered, live, simulated
from roamcast.sim.scenario.scenario import Scenario, check

ROAD = "within(rect(2000, 30, 3300, 70))"
ACCIDENT, ORDER = 0, 2
"""Who publishes: a car at mile 32, and the station at mile 30."""
X = 1
STILL = [(3200, 50), (2400, 90), (3000, 20), (2500, 20), *((x, 50) for x in range(2080, 3200, 240))]


def freeway(movement: dict[str, Any], folder: Path, duration: float = 8.0) -> Scenario:
    """`examples/freeway.toml` in short: X asks about its road, two stations about publishers in their sections."""
    once = {"rate": 1.0, "lifetime": 5}
    raw = {
        "name": "freeway",
        "nodes": len(STILL),
        "duration": duration,
        "area": {"width": 3500.0, "height": 200.0},
        "movement": movement,
        "radio": {"propagation": "unit-disk", "range": 300.0},
        "mac": {"model": "ideal"},
        "attributes": [
            {"nodes": [0, *range(4, len(STILL))], "set": {"heading": "east", "occupants": [1, 2]}},
            {"nodes": [1, 2, 3], "set": {"heading": "none", "occupants": 2}},
        ],
        "protocol": {"name": "context", "parameters": {"reach": 300.0, "interval": 0.5, "refresh": 1.0}},
        "workload": {
            "subscribers": [
                {"nodes": [X], "start": 2.5, "lifetime": 4, "interest": "within(rect(2200, 30, 2800, 70))"},
                {"nodes": [2], "interest": ROAD, "publication_domain": "within(rect(2800, 0, 3300, 100))"},
                {"nodes": [3], "interest": ROAD, "publication_domain": "within(rect(2300, 0, 2800, 100))"},
                {"nodes": [5, 6, 7], "interest": ROAD},
            ],
            "publishers": [
                {"nodes": [ACCIDENT], "start": 1.0, "stop": 2.0, **once, "relevance": f'{ROAD} and heading = "east"'},
                {
                    **{"nodes": [ORDER], "start": 3.5, "stop": 4.5, **once},
                    **{"relevance": ROAD, "subscription_domain": "occupants = 1"},
                },
            ],
        },
    }
    return check(raw, "tests", folder)


@pytest.mark.parametrize("speed", [0, pytest.param(3, marks=pytest.mark.slow)])
async def test_the_same_pairs_are_delivered_standing_still_and_moving_slowly(speed: float, tmp_path: Path) -> None:
    rows = ["node,time,x,y"]
    for node, (x, y) in enumerate(STILL):
        moves = speed if node >= 4 else 0
        rows += [f"{node},0,{x},{y}", f"{node},8,{x + 8 * moves},{y}"]
    (tmp_path / "cars.csv").write_text("\n".join(rows) + "\n")
    scenario = freeway({"model": "recorded", "file": str(tmp_path / "cars.csv")}, tmp_path)
    expected = delivered(simulated(scenario))
    assert {node for _, node, _ in expected} >= {X, 2}
    assert 3 not in {node for _, node, _ in expected}
    assert delivered(await live(scenario)) == expected
