"""The network of a run by its scenario."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roamcast.analysis.contacts import Reach
from roamcast.analysis.network import network, reach_of
from roamcast.analysis.run import Run
from roamcast.config.errors import decode
from roamcast.errors import RoamcastError
from roamcast.facts.sinks import MemorySink
from roamcast.sim.run import run
from roamcast.sim.scenario.draw import own_range
from roamcast.sim.scenario.scenario import Scenario, check


def reach(**radio: Any) -> Reach | None:  # noqa: ANN401  # as in a scenario
    raw = {"nodes": 2, "duration": 1, "seed": 5, "radio": radio}
    return reach_of(decode(raw, Scenario, "a test", RoamcastError, whole="the scenario"))


def test_the_reach_of_a_scenario() -> None:
    assert reach(range=70.0) == Reach(70.0)
    assert reach(range=[10.0, 20.0]) == Reach((10.0, 20.0))
    assert reach(range=70.0, indoor_range=30.0) == Reach(70.0, 30.0)
    assert reach(range=70.0, walls="opaque") == Reach(70.0, walls=True)
    assert reach(range=70.0, ends="both") == Reach(70.0, both_ends=True)
    assert reach(propagation="links") is None


def test_a_range_drawn_for_each_node_is_its_own() -> None:
    found = reach(range=[10.0, 20.0], drawn="node")
    assert found is not None
    assert np.asarray(found.outdoors).tolist() == [own_range((10.0, 20.0), 5, node) for node in (0, 1)]


OWN_RANGES = {"radio": {"range": [40.0, 160.0], "drawn": "node"}}
BUILDINGS = {
    "movement": {"model": "buildings", "buildings": 2, "edge": [60, 90], "stay": [2, 8], "speed": [5, 9]},
    "radio": {"range": 120.0, "indoor_range": 50.0, "walls": "opaque"},
    "away": [{"nodes": [0, 1, 2], "on": [2, 9], "off": [2, 9]}],
}


@pytest.mark.parametrize("world", [OWN_RANGES, BUILDINGS], ids=["own ranges", "walls and nodes away"])
def test_frames_of_a_real_run_reach_exactly_those_in_contact(world: dict[str, Any]) -> None:
    raw = {
        "nodes": 12,
        "duration": 40,
        "area": {"width": 300, "height": 300},
        "mac": {"model": "ideal"},
        "record": {"frames": True},
        "workload": {
            "subscribers": [{"count": 3, "filter": "true"}],
            "publishers": [{"count": 6, "rate": 1.0}],
        },
        **world,
    }
    scenario, sink = check(raw, "real", Path()), MemorySink()
    run(scenario, sink)
    facts = sink.tables()
    found = network(Run.over(facts, scenario), directed=True)
    assert found is not None
    intervals = list(zip(*(c.tolist() for c in (found.sender, found.receiver, found.begin, found.until)), strict=True))
    received: dict[int, set[int]] = {}
    for row in facts["reception"].to_pylist():
        received.setdefault(row["frame"], set()).add(row["node"])
    frames = facts["frame"].to_pylist()
    assert len(frames) > 100
    for frame in frames:
        near = {b for a, b, begin, until in intervals if a == frame["sender"] and begin <= frame["start"] < until}
        assert received.get(frame["frame"], set()) == near
