"""Estimates of a run's time: rough, but in the right direction."""

from pathlib import Path
from typing import Any

import pytest

from roamcast.campaign.define.estimate import COSTS, estimated
from roamcast.sim.scenario.scenario import check


def estimate(protocol: str, **parameters: Any) -> float:  # noqa: ANN401  # the protocol's
    raw = {
        "nodes": 50,
        "duration": 100,
        "area": {"width": 500, "height": 500},
        "movement": {"model": "random-waypoint", "speed": [1.0, 5.0]},
        "radio": {"range": 150},
        "protocol": {"name": protocol, "parameters": parameters},
        "workload": {"subscribers": [{"count": 5}], "publishers": [{"count": 2, "rate": 1.0}]},
    }
    return estimated(check(raw, "estimated", Path()))


@pytest.mark.parametrize("protocol", ["hint", "opportunistic", "context"])
def test_beacons_cost_more_the_oftener_they_are_sent(protocol: str) -> None:
    rare, often = estimate(protocol, interval=20.0), estimate(protocol, interval=1.0)
    assert rare < often < 20 * rare


def test_documents_cost_more_the_farther_they_travel() -> None:
    assert estimate("opportunistic", scope=1) < estimate("opportunistic") < estimate("opportunistic", scope=3)


@pytest.mark.parametrize("protocol", COSTS)
def test_every_protocol_has_an_estimate(protocol: str) -> None:
    assert 0.05 < estimate(protocol) < 60
