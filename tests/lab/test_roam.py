"""roam on real nodes: parity with the simulator, a node that walks between two others, restarts, a lossy crowd."""

from typing import Any

import pytest

from lab.twins import GRID, LINE, RING, Links, delivered, linked, live, simulated, summary

pytestmark = pytest.mark.slow

A, B, C = range(3)
LEARNING = 12.0
"""Seconds for hellos to tell all nodes of a small network about its subscribers: a few intervals of about 4 s."""


def workload(start: float, length: float, **publishers: Any) -> dict[str, Any]:  # noqa: ANN401  # parts of a scenario
    return {
        "subscribers": [{"count": 2, "filter": "price < 30"}, {"count": 1, "filter": "true"}],
        "publishers": [
            {
                "count": 2,
                "rate": 3.0,
                "start": start,
                "stop": start + length,
                "attributes": {"price": {"low": 1, "high": 40}},
                **publishers,
            }
        ],
    }


@pytest.mark.parametrize("links", [LINE, RING, GRID], ids=["line", "ring", "grid"])
async def test_on_a_static_topology_the_same_pairs_are_delivered(links: Links) -> None:
    scenario = linked(links, "roam", duration=LEARNING + 6, workload=workload(LEARNING, 2.0))
    expected = delivered(simulated(scenario))
    assert len(expected) >= 12
    assert delivered(await live(scenario)) == expected


async def test_on_links_that_change_slowly_the_same_pairs_are_delivered() -> None:
    """The line breaks while events are published, and is closed at another place: carrying delivers all of them."""
    publishers = [{"nodes": [0], "rate": 1.0, "start": LEARNING, "stop": LEARNING + 6}]
    parts = {"subscribers": [{"nodes": [2]}, {"nodes": [4]}], "publishers": publishers}
    change = [{"at": LEARNING + 2, "down": [[1, 2]]}, {"at": LEARNING + 4, "up": [[0, 4]]}]
    scenario = linked(LINE, "roam", duration=LEARNING + 26, workload=parts, change=change)
    expected = delivered(simulated(scenario))
    assert [sum(one == node for _, one, _ in expected) for node in (2, 4)] == [6, 6]
    assert delivered(await live(scenario)) == expected


async def test_b_carries_events_from_a_to_c_who_never_meet() -> None:
    change = [{"at": 3.0, "down": [[A, B]]}, {"at": 3.5, "up": [[B, C]]}]
    parts = {
        "subscribers": [{"nodes": [C], "filter": "topic >= 2"}],
        "publishers": [
            {"nodes": [A], "rate": 8.0, "start": 1.0, "stop": 2.5, "attributes": {"topic": {"low": 1, "high": 3}}}
        ],
    }
    scenario = linked([[A, B]], "roam", seed=5, nodes=3, duration=14.0, change=change, workload=parts)
    facts = await live(scenario)
    expected = delivered(simulated(scenario))
    assert len(expected) >= 3
    assert {node for _, node, _ in expected} == {C}
    assert delivered(facts) == expected


async def test_twenty_nodes_with_a_third_of_all_frames_lost() -> None:
    """A ring of 20 with chords: every frame is lost with 30 %, and repair brings nearly all of them."""
    ring = [[node, (node + step) % 20] for node in range(20) for step in (1, 2)]
    parts = {
        "subscribers": [{"count": 6, "filter": "true"}],
        "publishers": [{"count": 2, "rate": 1.0, "start": LEARNING, "stop": LEARNING + 10}],
    }
    scenario = linked(ring, "roam", duration=LEARNING + 30, workload=parts, loss=0.3)
    shares = [summary(facts).delivery for facts in (await live(scenario), simulated(scenario))]
    assert all(share is not None and share >= 0.95 for share in shares), shares
