"""Decisions as facts: what brokers decided about an event, on request, and what a frame carried."""

from pathlib import Path
from typing import Any

import pytest

from roamcast.content.event import event_id
from roamcast.facts.sinks import MemorySink
from roamcast.protocols.catalogue import CATALOGUE
from roamcast.sim.run import run
from roamcast.sim.scenario.scenario import check

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


def context_decisions(places: list[list[float]], parameters: dict[str, Any]) -> list[tuple[int, str]]:
    """Of one event that node 0 publishes for a square around (500, 50): (node, decision), by time."""
    raw = {
        "nodes": len(places),
        "duration": 20,
        "area": {"width": 600, "height": 100},
        "movement": {"model": "static", "positions": places},
        "radio": {"range": 160},
        "mac": {"model": "ideal"},
        "protocol": {"name": "context", "parameters": parameters},
        "record": {"decisions": True},
        "workload": {
            "publishers": [
                {
                    "nodes": [0],
                    "rate": 0.1,
                    "start": 5,
                    "stop": 15,
                    "relevance": "within(rect(450, 0, 550, 100))",
                    "lifetime": 4,
                }
            ]
        },
    }
    sink = MemorySink()
    run(check(raw, "test", Path()), sink)
    return [(row["node"], row["decision"]) for row in sink.table("decision").to_pylist()]


def test_context_says_who_brings_an_event_nearer_to_its_region_and_who_holds_it() -> None:
    # 1 and 2 both hear the publisher; 2 is nearer to the region and goes first. 4 is farther away than the publisher.
    line = [[100.0, 50.0], [150.0, 50.0], [240.0, 50.0], [380.0, 50.0], [20.0, 50.0], [500.0, 50.0]]
    found = context_decisions(line, {"repeats": 0})
    assert found[0] == (0, "forwarded")
    assert sorted(found) == [
        (0, "forwarded"),
        (1, "suppressed"),
        (2, "forwarded"),
        (3, "forwarded"),
        (4, "not chosen"),
        (5, "expired"),
        (5, "forwarded"),
    ]


def test_context_gives_up_where_nobody_is_nearer() -> None:
    found = context_decisions([[100.0, 50.0], [200.0, 50.0]], {"repeats": 1})
    assert found == [(0, "forwarded"), (1, "forwarded"), (1, "forwarded"), (1, "given up")]


@pytest.mark.parametrize("protocol", sorted(CATALOGUE))
def test_who_sends_a_frame_with_an_event_has_decided_so_before(protocol: str) -> None:
    raw = {
        "nodes": 8,
        "duration": 60,
        "area": {"width": 300, "height": 300},
        "movement": {"model": "random-waypoint", "speed": [5.0, 10.0]},
        "radio": {"range": 120},
        "protocol": {"name": protocol},
        "record": {"decisions": True, "frames": True},
        "workload": {
            "subscribers": [{"count": 3}],
            "publishers": [{"count": 2, "rate": 0.2, "start": 20, "attributes": {"n": 1}}],
        },
    }
    sink = MemorySink()
    run(check(raw, "test", Path()), sink)
    decided: dict[tuple[int, int], int] = {}
    for row in sink.table("decision").to_pylist():
        if row["decision"] == "forwarded":
            decided.setdefault((row["node"], row["event"]), row["time"])
    sent = {(row["sender"], row["event"]): row["start"] for row in sink.table("frame").to_pylist() if row["event"]}
    assert len({event for _, event in sent}) > 5
    late = [pair for pair, start in sent.items() if pair not in decided or decided[pair] > start]
    assert not late
