"""Small scenarios of every kind, for tests that compare whole runs."""

from pathlib import Path
from typing import Any

from roamcast.facts.sinks import MemorySink
from roamcast.sim.run import run
from roamcast.sim.scenario.scenario import Scenario, check
from roamcast.sim.world import CoreMaker

WORKLOAD: dict[str, Any] = {
    "subscribers": [
        {"count": 4, "filter": ["price < 20", 'category = "jazz"', "true"]},
        {"count": 2, "filter": "exists price", "start": 1.0, "stop": 3.0},
    ],
    "publishers": [
        {
            "count": 3,
            "rate": 2.0,
            "timing": "poisson",
            "attributes": {"price": {"low": 0, "high": 40}, "category": ["jazz", "pop"]},
            "size": 200,
        }
    ],
}
AREA = {"width": 400.0, "height": 300.0}

SCENARIOS: dict[str, dict[str, Any]] = {
    "waypoint": {"movement": {"model": "random-waypoint", "speed": [5.0, 20.0]}, "record": {"frames": True}},
    "unit disk, overlap": {
        "radio": {"propagation": "unit-disk", "range": 120.0, "collisions": "overlap"},
        "background": {"rate": 5.0, "size": 300},
    },
    "heard in background traffic": {
        "movement": {"model": "random-waypoint", "speed": [20.0, 40.0]},
        "background": {"rate": 0.5, "size": 30},
        "protocol": {
            "name": "coman",
            "parameters": {"hearing": "traffic", "hello": 0.3, "misses": 1, "group_hello": 0.5},
        },
    },
    "range per frame": {"radio": {"range": [60.0, 150.0]}, "background": {"rate": 5.0, "reach": "neighbours"}},
    "range per node": {"radio": {"range": [60.0, 150.0], "drawn": "node", "loss": 0.2}},
    "buildings": {
        "area": {"width": 1000.0, "height": 1000.0},
        "nodes": 60,
        "movement": {"model": "buildings"},
        "radio": {"range": 100.0, "indoor_range": 40.0},
    },
    "opaque walls": {
        "area": {"width": 300.0, "height": 300.0},
        "nodes": 60,
        "movement": {
            "model": "buildings",
            "buildings": [[20, 20, 100, 100], [180, 20, 100, 100], [20, 180, 100, 100], [180, 180, 100, 100]],
            "stay": [0.5, 2.0],
            "speed": [20.0, 40.0],
        },
        "radio": {"range": 100.0, "walls": "opaque"},
        "record": {"frames": True},
    },
    "hot spots, ideal": {
        "movement": {
            "model": "hot-spots",
            "spots": [[100.0, 100.0], [300.0, 200.0]],
            "attraction": 0.7,
            "radius": 40.0,
        },
        "mac": {"model": "ideal"},
    },
    "column, fragments": {
        "movement": {"model": "column", "gap": 8.0},
        "mac": {"mtu": 100, "rate": 11},
        "radio": {"range": 60.0},
    },
    "away": {
        "movement": {"model": "random-waypoint", "speed": [5.0, 20.0]},
        "background": {"rate": 5.0, "size": 100},
        "record": {"frames": True},
        "away": [
            {"nodes": list(range(8)), "mode": "restart", "on": [0.2, 1.0], "off": [0.1, 0.5]},
            {"nodes": list(range(8, 16)), "mode": "suspended", "on": [0.2, 1.0], "off": [0.1, 0.5]},
            {"nodes": [16], "mode": "suspended", "times": [[0.0, 1.0], [2.0, 5.9999]]},
        ],
    },
    "away, ideal": {
        "mac": {"model": "ideal"},
        "record": {"frames": True},
        "away": [{"mode": "restart", "on": [0.1, 0.5], "off": [0.1, 0.5]}],
    },
    "links": {
        "nodes": 10,
        "radio": {"propagation": "links"},
        "links": {
            "up": [[n, n + 1] for n in range(9)],
            "loss": 0.1,
            "change": [{"at": 2.0, "down": [[3, 4]]}, {"at": 4.0, "up": [[3, 4]]}],
        },
    },
}


def scenario(name: str, **more: Any) -> Scenario:  # noqa: ANN401  # fields of a scenario
    raw: dict[str, Any] = {"nodes": 40, "duration": 6.0, "seed": 11, "workload": WORKLOAD, **SCENARIOS[name], **more}
    if raw.get("radio", {}).get("propagation") != "links":
        raw.setdefault("area", AREA)
        raw.setdefault("radio", {"range": 100.0})
    return check(raw, name, Path())


def facts(of: Scenario, core: CoreMaker | None = None, *, through_codec: bool = False) -> dict[str, list[Any]]:
    sink = MemorySink()
    run(of, sink, make_core=core, through_codec=through_codec)
    return {name: table.to_pylist() for name, table in sink.tables().items()}
