"""How long a run will take, before it has run: roughly, from its scenario alone.

Good enough to start the longest runs first and to say what a campaign costs; a campaign corrects the estimates, by
protocol, with the runs that it has done. `python -m bench estimates` measures the numbers below and how far the
estimates are off.
"""

import math
from typing import Final, NamedTuple

from roamcast.sim.scenario import Scenario

_RUN: Final = 0.05
"""CPU seconds of a run, however short: a process, the compiled core, its file."""
_BACKGROUND_AT_NODE: Final = 5e-7
"""CPU seconds of a background message at a node, inside the core."""
_PIECE: Final = 1024
"""Bytes of an event that go in one frame, about."""
_LINK_DEGREE: Final = 3.0
"""Neighbours of a node where links are scripted."""


class Cost(NamedTuple):
    """CPU seconds, of a common core."""

    node: float
    """A node for a second: moving, timers, sending beacons."""
    neighbour: float
    """A node's neighbour for a second: hearing beacons."""
    event: float
    """An event at a node, for each KiB of it."""
    copy: float
    """An event at a node's neighbour, for each KiB of it."""


COSTS: Final = {
    "flooding": Cost(8.4e-07, 0, 2.6e-06, 1.2e-06),
    "gossip": Cost(5.2e-07, 2e-08, 6.7e-07, 9.7e-07),
    "hint": Cost(2.5e-06, 2e-08, 2.6e-06, 7.3e-07),
    "odmrp": Cost(8.6e-07, 0, 8e-06, 1.2e-06),
    "maodv": Cost(1.9e-05, 4.3e-06, 1.6e-05, 0),
    "coman": Cost(2e-05, 4.8e-06, 1.8e-05, 0),
    "opportunistic": Cost(7.4e-06, 3.2e-06, 1.5e-06, 0),
    "context": Cost(2.3e-05, 5.5e-07, 2.3e-05, 2.3e-06),
}
_UNKNOWN: Final = COSTS["flooding"]
"""Of a protocol from outside."""


def features(scenario: Scenario) -> Cost:
    """How many of each of the costs a run has."""
    nodes = scenario.nodes
    degree = _degree(scenario)
    events = sum(group.members * group.rate * math.ceil(group.size / _PIECE) for group in scenario.workload.publishers)
    a_second = Cost(nodes, nodes * degree, nodes * events, nodes * degree * events)
    return Cost(*(scenario.duration * count for count in a_second))


def _degree(scenario: Scenario) -> float:
    """Neighbours of a node, in the mean, if nodes are anywhere in the area."""
    if scenario.area is None or scenario.radio.propagation == "links":
        return min(_LINK_DEGREE, scenario.nodes - 1)
    reach = scenario.radio.range
    mean = sum(reach) / 2 if isinstance(reach, tuple) else reach
    covered = min(math.pi * mean**2 / (scenario.area.width * scenario.area.height), 1.0)
    return covered * (scenario.nodes - 1)


def estimated(scenario: Scenario) -> float:
    """CPU seconds, roughly."""
    costs = COSTS.get(scenario.protocol.name, _UNKNOWN)
    own = sum(cost * count for cost, count in zip(costs, features(scenario), strict=True))
    noise = scenario.background
    reach = scenario.nodes if noise and noise.reach == "network" else 1
    background = noise.rate * scenario.nodes * reach * scenario.duration if noise else 0.0
    return _RUN + own + _BACKGROUND_AT_NODE * background
