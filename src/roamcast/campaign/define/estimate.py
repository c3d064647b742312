"""Estimates roughly how long a run will take, from its scenario alone.

The estimates are good enough to start the longest runs first and to predict what a campaign costs; a campaign corrects
them per protocol, from its finished runs. `python -m bench estimates` measures the numbers below and the error of the
estimates.
"""

import math
from typing import Final, NamedTuple

import msgspec

from roamcast.protocols.catalogue import CATALOGUE
from roamcast.sim.scenario.scenario import Scenario

_RUN: Final = 0.05
"""CPU seconds that even the shortest run takes: a process, the compiled core, its file."""
_BACKGROUND_AT_NODE: Final = 5e-7
"""CPU seconds per background message and node, inside the core."""
_PIECE: Final = 1024
"""About how many bytes of an event fit into one frame."""
_LINK_DEGREE: Final = 3.0
"""Assumed neighbours per node if links are scripted."""


class UnitCosts(NamedTuple):
    """CPU seconds on a typical core."""

    node: float
    """Per node and second: moving, timers, sending beacons."""
    neighbour: float
    """Per node's neighbour and second: hearing beacons."""
    event: float
    """Per event and node, for each KiB of the event."""
    copy: float
    """Per event and node's neighbour, for each KiB of the event."""


COSTS: Final = {
    "flooding": UnitCosts(8.4e-07, 0, 2.6e-06, 1.2e-06),
    "gossip": UnitCosts(5.2e-07, 2e-08, 6.7e-07, 9.7e-07),
    "counter": UnitCosts(2.2e-06, 0, 1.1e-05, 1.3e-06),
    "hint": UnitCosts(2.5e-06, 2e-08, 2.6e-06, 7.3e-07),
    "odmrp": UnitCosts(8.6e-07, 0, 8e-06, 1.2e-06),
    "maodv": UnitCosts(1.9e-05, 4.3e-06, 1.6e-05, 0),
    "coman": UnitCosts(2e-05, 4.8e-06, 1.8e-05, 0),
    "opportunistic": UnitCosts(7.4e-06, 3.2e-06, 1.5e-06, 0),
    "context": UnitCosts(2.3e-05, 5.5e-07, 2.3e-05, 2.3e-06),
    "roam": UnitCosts(2.8e-05, 0, 8.1e-05, 0),
}
_UNKNOWN: Final = COSTS["flooding"]
"""The cost of a protocol from outside the package."""


def features(scenario: Scenario) -> UnitCosts:
    """How many units of each cost a run has."""
    nodes = scenario.nodes
    degree = _degree(scenario)
    events = sum(group.members * group.rate * math.ceil(group.size / _PIECE) for group in scenario.workload.publishers)
    beacons = 1 / _set_to(scenario, "interval")
    a_second = UnitCosts(beacons * nodes, beacons * nodes * degree, nodes * events, nodes * degree * events)
    hops = _set_to(scenario, "scope")
    return UnitCosts(*(hops * scenario.duration * count for count in a_second))


def _set_to(scenario: Scenario, parameter: str) -> float:
    """A protocol's parameter in multiples of its default; 1 if the protocol has no such number."""
    entry, value = CATALOGUE.get(scenario.protocol.name), scenario.protocol.parameters.get(parameter)
    fields = () if entry is None else msgspec.structs.fields(entry.parameters)
    default = next((field.default for field in fields if field.name == parameter), None)
    if isinstance(default, int | float) and isinstance(value, int | float) and default > 0 and value > 0:
        return value / default
    return 1.0


def _degree(scenario: Scenario) -> float:
    """The mean number of neighbours, if nodes are spread evenly over the area."""
    if scenario.area is None or scenario.radio.propagation == "links":
        return min(_LINK_DEGREE, scenario.nodes - 1)
    reach = scenario.radio.range
    mean = sum(reach) / 2 if isinstance(reach, tuple) else reach
    covered = min(math.pi * mean**2 / (scenario.area.width * scenario.area.height), 1.0)
    return covered * (scenario.nodes - 1)


def estimated(scenario: Scenario) -> float:
    """The estimated CPU seconds of a run."""
    costs = COSTS.get(scenario.protocol.name, _UNKNOWN)
    own = sum(cost * count for cost, count in zip(costs, features(scenario), strict=True))
    noise = scenario.background
    reach = scenario.nodes if noise and noise.reach == "network" else 1
    background = noise.rate * scenario.nodes * reach * scenario.duration if noise else 0.0
    return _RUN + own + _BACKGROUND_AT_NODE * background
