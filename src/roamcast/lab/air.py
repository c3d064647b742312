"""The air of a scenario: who hears whom at any time, from the simulator's own movement or its scripted links.

The rules are those of docs/model.md without its medium access: a frame is heard up to the range (the sender's, or drawn
per frame), ends included; indoors, up to the lesser of the two nodes' ranges. Nothing collides.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from roamcast.lab.ether import Medium
from roamcast.sim.mobility import Leg, Recorded, ScenarioError
from roamcast.sim.mobility.export import taken
from roamcast.sim.places import Places
from roamcast.sim.scenario.away import Switch, switches
from roamcast.sim.scenario.draw import own_range
from roamcast.sim.scenario.scenario import Scenario

TableRow = tuple[str, tuple[Any, ...]]
"""A table and a row of it."""


def air_of(scenario: Scenario, folder: Path) -> Medium:
    """The air; `folder` is where the scenario's relative file names start."""
    return LinkedAir(scenario) if scenario.links is not None else PlacedAir(scenario, folder)


def check_possible(scenario: Scenario, source: str) -> None:
    """Refuses what the simulator can do and real processes cannot."""
    if scenario.background is not None:
        raise ScenarioError(f"{source}: background: the lab has only the traffic of its nodes: leave the table out")
    if scenario.links is not None and scenario.links.file is not None:
        raise ScenarioError(f"{source}: links.file: the lab cannot replay recorded contacts: give the links themselves")
    if scenario.record.frames:
        raise ScenarioError(f"{source}: record.frames: the lab cannot record frames: set it to false")


class LinkedAir:
    """Scripted links."""

    def __init__(self, scenario: Scenario) -> None:
        assert scenario.links is not None
        self._flips = list(scenario.links.flips(scenario.seed, scenario.end))
        self._next = 0
        self._links: list[dict[int, float]] = [{} for _ in range(scenario.nodes)]
        self._heard: list[list[tuple[int, float]]] = [[] for _ in range(scenario.nodes)]

    def hears(self, now: int, sender: int) -> list[tuple[int, float]]:
        while self._next < len(self._flips) and self._flips[self._next][0] <= max(now, 0):
            _, a, b, loss = self._flips[self._next]
            self._next += 1
            if loss is None:
                self._links[a].pop(b, None)
            else:
                self._links[a][b] = loss
            self._heard[a] = sorted(self._links[a].items())
        return self._heard[sender]


class PlacedAir:
    """Nodes with positions and ranges."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        radio = scenario.radio
        assert scenario.area is not None
        self._places = Places(scenario.moving.walks(scenario.area, scenario.nodes, scenario.seed, folder))
        self._nodes = range(scenario.nodes)
        self._loss = radio.loss
        self._indoor = radio.indoor_range
        self._lesser = radio.indoor_range is not None or radio.ends == "both"
        self._bounds: tuple[float, float] | None = None
        if isinstance(radio.range, tuple):
            # Drawn as in the simulator for nodes; its draws per frame are the core's own and cannot be repeated here.
            self._reach = [own_range(radio.range, scenario.seed, node) for node in self._nodes]
            self._bounds = radio.range if radio.drawn == "frame" else None
        else:
            self._reach = [radio.range] * scenario.nodes
        self._chance = Random(f"{scenario.seed}/air")

    def hears(self, now: int, sender: int) -> list[tuple[int, float]]:
        now = max(now, 0)
        places = [self._places.here(node, now) for node in self._nodes]
        x, y = places[sender]
        reach = self._chance.uniform(*self._bounds) if self._bounds else self._range(sender, now)
        receivers = []
        for node, (other_x, other_y) in enumerate(places):
            limit = min(reach, self._range(node, now)) if self._lesser else reach
            if node != sender and (other_x - x) ** 2 + (other_y - y) ** 2 <= limit * limit:
                receivers.append((node, self._loss))
        return receivers

    def _range(self, node: int, now: int) -> float:
        if self._indoor is not None and self._places.leg(node, now).indoor:
            return self._indoor
        return self._reach[node]


def mesh_facts(nodes: int) -> Iterator[TableRow]:
    """The links of a bridge: everybody hears everybody, from the start."""
    yield from (("link", (0, a, b, 0.0)) for a in range(nodes) for b in range(nodes) if a != b)


def world_facts(scenario: Scenario, folder: Path) -> Iterator[TableRow]:
    """The facts that the simulator records about a scenario's world: movement or links, and who is away."""
    yield from (("away", tuple(switch)) for switch in away_times(scenario, folder))
    yield from air_facts(scenario, folder)


def away_times(scenario: Scenario, folder: Path) -> list[Switch]:
    """When nodes go away and come back, in order of time."""
    found = list(switches(scenario.away, scenario.nodes, scenario.seed, scenario.end))
    for group in scenario.away:
        if group.where is None:
            continue
        here = dict.fromkeys(group.members(scenario.nodes), False)
        for node, leg in _legs(scenario, folder):
            if node in here and here[node] != group.applies_on(leg):
                here[node] = group.applies_on(leg)
                found.append(Switch(leg.start, node, here[node], group.mode == "restart"))
    if isinstance(scenario.movement, Recorded) and not scenario.away:
        absent: set[int] = set()
        for node, leg in _legs(scenario, folder):
            if leg.absent != (node in absent):
                absent ^= {node}
                found.append(Switch(leg.start, node, leg.absent, scenario.movement.absence == "restart"))
    return sorted(found)


def air_facts(scenario: Scenario, folder: Path) -> Iterator[TableRow]:
    """The movement or the links, as the simulator records them, up to the scenario's end."""
    if scenario.links is not None:
        for flip in scenario.links.flips(scenario.seed, scenario.end):
            if flip[0] < scenario.end:
                yield "link", flip
        return
    if scenario.record.movement:
        yield from (("leg", (node, *leg.recorded)) for node, leg in _legs(scenario, folder))


def _legs(scenario: Scenario, folder: Path) -> list[tuple[int, Leg]]:
    assert scenario.area is not None
    walks = taken(scenario.moving.walks(scenario.area, scenario.nodes, scenario.seed, folder), scenario.end)
    return sorted(
        ((node, leg) for node, legs in enumerate(walks) for leg in legs), key=lambda one: (one[1].start, one[0])
    )
