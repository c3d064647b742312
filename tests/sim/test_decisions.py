"""Decisions as facts: what brokers decided about an event, on request, and what a frame carried."""

from pathlib import Path
from typing import Any

import pytest

from roamcast.content.event import event_id
from roamcast.facts.sinks import MemorySink
from roamcast.sim.run import run
from roamcast.sim.scenario import check

LINE = [[0, 1], [1, 2], [2, 3]]


def decisions(
    protocol: str, *, parameters: dict[str, Any] | None = None, **changes: dict[str, Any]
) -> list[tuple[int, str, Any]]:
    """Of one event that node 0 publishes in a line of four, node 3 subscribing: (node, decision, to)."""
    raw = {
        "nodes": 4,
        "duration": 60,
        "radio": {"propagation": "links"},
        "links": {"up": LINE},
        "mac": {"model": "ideal"},
        "protocol": {"name": protocol, "parameters": parameters or {}},
        "record": {"decisions": True},
        "workload": {
            "subscribers": [{"nodes": [3], "filter": "n = 1"}],
            "publishers": [{"nodes": [0], "rate": 0.1, "start": 45, "stop": 55, "attributes": {"n": 1}}],
        },
    } | changes
    sink = MemorySink()
    run(check(raw, "test", Path()), sink)
    rows = sink.table("decision").to_pylist() if "decision" in sink.tables() else []
    assert {row["event"] for row in rows} <= {event_id(0, 1)}
    return [(row["node"], row["decision"], row["to"]) for row in rows]


def test_flooding_forwards_everywhere() -> None:
    assert decisions("flooding") == [(node, "forwarded", None) for node in range(4)]


def test_gossip_may_lose_its_toss() -> None:
    assert decisions("gossip", parameters={"p": 1e-9}) == [(0, "forwarded", None), (1, "not chosen", None)]


def test_hint_needs_a_hint_and_may_be_suppressed() -> None:
    # Only node 2 has heard beacons of node 3, so node 1 has no reason to pass it on.
    assert decisions("hint") == [(0, "forwarded", None), (1, "no route", None)]
    ring = {"links": {"up": [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]]}}
    found = decisions("hint", **ring)
    assert found[0] == (0, "forwarded", None)
    assert sorted(found[1:3]) == [(1, "forwarded", None), (2, "forwarded", None)]
    assert [decision for _, decision, _ in found[3:]].count("suppressed") == 1


@pytest.mark.parametrize("protocol", ["maodv", "coman"])
def test_trees_say_to_whom(protocol: str) -> None:
    assert decisions(protocol) == [
        (0, "forwarded", 1),
        (1, "forwarded", 2),
        (2, "forwarded", 3),
        (3, "no route", None),
    ]


def test_nothing_is_recorded_unless_asked_for() -> None:
    assert decisions("flooding", record={}) == []


def test_a_frame_says_which_event_it_carried() -> None:
    raw = {
        "nodes": 2,
        "duration": 20,
        "radio": {"propagation": "links"},
        "links": {"up": [[0, 1]]},
        "protocol": {"name": "hint"},
        "record": {"frames": True},
        "workload": {"subscribers": [{"nodes": [1]}], "publishers": [{"nodes": [0], "rate": 0.1, "stop": 10}]},
    }
    sink = MemorySink()
    run(check(raw, "test", Path()), sink)
    carried = {(row["kind"], row["event"]) for row in sink.table("frame").to_pylist()}
    assert carried == {("beacon", None), ("hinted", event_id(0, 1))}
