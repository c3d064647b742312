"""Sets the nodes' positions and attributes in a lab, as the scenario has them.

A simulated broker knows both at any instant. A real node learns them through its API; the lab sets them when an
attribute changes, and every `INTERVAL` while the node moves. If a node cannot be reached, the next update will do.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import aiohttp

from roamcast.content.event import Scalar
from roamcast.errors import RoamcastError
from roamcast.live.client import Client
from roamcast.sim.places import Places
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
        self._places: Places | None = None
        if scenario.area is not None and scenario.links is None:
            self._places = Places(scenario.moving.walks(scenario.area, scenario.nodes, scenario.seed, folder))
        self._told = 0  # when positions were set last
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
        if self._places is not None:
            await self._tell(self._clients[node].set_here(self._places.here(node, max(0, self._clock()))))

    async def _tell_attributes(self, now: int) -> None:
        changed: dict[int, None] = {}
        while self._changes and self._changes[0].time <= now:
            change = self._changes.pop(0)
            self._attributes[change.node] = {**self._attributes[change.node], **change.values}
            changed[change.node] = None
        requests = (self._clients[node].set_attributes(self._attributes[node]) for node in changed)
        await asyncio.gather(*map(self._tell, requests))

    async def _tell_places(self, now: int) -> None:
        places, before = self._places, self._told
        if places is None:
            return
        self._told = now
        nodes = range(self._scenario.nodes)
        moved = [node for node in nodes if now == 0 or places.here(node, now) != places.here(node, before)]
        await asyncio.gather(*(self._tell(self._clients[node].set_here(places.here(node, now))) for node in moved))

    @staticmethod
    async def _tell(request: Awaitable[None]) -> None:
        with contextlib.suppress(RoamcastError, aiohttp.ClientError, OSError):
            await request
