"""Sets the nodes' positions and attributes in a lab, as the scenario has them.

A simulated broker knows both at any instant. A real node learns them through its API; the lab sets them when an
attribute changes, and every `INTERVAL` while the node moves. If a node cannot be reached, the next update will do.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import aiohttp

from roamcast.content.event import Scalar
from roamcast.errors import RoamcastError
from roamcast.live.client import Client
from roamcast.sim.mobility import Leg, position
from roamcast.sim.scenario.attributes import attribute_changes
from roamcast.sim.scenario.scenario import Scenario

INTERVAL: Final = 0.5
"""Seconds between two positions of a moving node."""


class Feeder:
    """`clients` by node: looked up each time, since a restarted node has a new client."""

    def __init__(self, scenario: Scenario, folder: Path, clients: Sequence[Client], clock: Callable[[], int]) -> None:
        self._scenario = scenario
        self._clients = clients
        self._clock = clock
        self._walks: list[Iterator[Leg]] = []
        if scenario.area is not None and scenario.links is None:
            self._walks = scenario.moving.walks(scenario.area, scenario.nodes, scenario.seed, folder)
        self._legs = [next(walk) for walk in self._walks]
        self._attributes: list[dict[str, Scalar]] = [{} for _ in range(scenario.nodes)]
        self._changes = list(attribute_changes(scenario.attributes, scenario.nodes, scenario.seed, scenario.end))

    async def prepare(self) -> None:
        """Sets every node's position and attributes at the start."""
        await self._tell_attributes(0)
        await self._tell_places(0)

    async def run(self) -> None:
        """Runs until it is cancelled."""
        while True:
            await asyncio.sleep(INTERVAL)
            now = max(0, self._clock())
            await self._tell_attributes(now)
            await self._tell_places(now)

    async def tell_again(self, node: int) -> None:
        """Sets everything again for a restarted node."""
        if self._attributes[node]:
            await self._tell(self._clients[node].set_attributes(self._attributes[node]))
        if self._legs:
            await self._tell(self._clients[node].set_here(self._place(node, max(0, self._clock()))))

    async def _tell_attributes(self, now: int) -> None:
        changed: dict[int, None] = {}
        while self._changes and self._changes[0].time <= now:
            change = self._changes.pop(0)
            self._attributes[change.node] = {**self._attributes[change.node], **change.values}
            changed[change.node] = None
        requests = (self._clients[node].set_attributes(self._attributes[node]) for node in changed)
        await asyncio.gather(*map(self._tell, requests))

    async def _tell_places(self, now: int) -> None:
        moving = [node for node in range(len(self._legs)) if now == 0 or self._moves(node, now)]
        requests = (self._clients[node].set_here(self._place(node, now)) for node in moving)
        await asyncio.gather(*map(self._tell, requests))

    def _moves(self, node: int, now: int) -> bool:
        before = self._legs[node]
        self._place(node, now)
        leg = self._legs[node]
        return leg is not before or (leg.x0, leg.y0) != (leg.x1, leg.y1)

    def _place(self, node: int, now: int) -> tuple[float, float]:
        while self._legs[node].end <= now:
            self._legs[node] = next(self._walks[node])
        return position(self._legs[node], now)

    @staticmethod
    async def _tell(request: Awaitable[None]) -> None:
        with contextlib.suppress(RoamcastError, aiohttp.ClientError, OSError):
            await request
