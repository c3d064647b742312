"""Power cuts: whether a network of real nodes keeps its promises while nodes are killed with SIGKILL.

Every node publishes all the time and has a durable subscription to everything. The promises looked at:

* A publication that was acknowledged is in its node's store at the end.
* Nobody but the killed notices: no other process ends, no broker raises, and every node ends when it is asked to.
* No application that says where it was gets an event twice, within the window of events that a node remembers across a
  crash.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import aiohttp

from roamcast.content.event import Event, event_id
from roamcast.errors import RoamcastError
from roamcast.lab.lab import Lab, work_folder
from roamcast.live.store import Store
from roamcast.protocols.api import Parameters
from roamcast.sim.scenario.scenario import Scenario, check

_EVERYTHING: Final = 1
"""The id of each node's subscription."""
WINDOW: Final = Parameters().delivered
"""Events that a node remembers having delivered."""
_LULL: Final = 0.05
"""Seconds until an application tries again."""
_BROKEN: Final = (RoamcastError, aiohttp.ClientError, OSError)


@dataclass
class ChaosReport:
    killed: list[int] = field(default_factory=list)
    """Nodes, in the order of their deaths."""
    acknowledged: list[set[int]] = field(default_factory=list)
    """By node: the events whose publication it acknowledged."""
    stored: list[set[int]] = field(default_factory=list)
    """By node: the events in its store at the end."""
    got: list[list[int]] = field(default_factory=list)
    """By node: the events its application got, in order."""
    disturbed: list[str] = field(default_factory=list)
    """What happened to the nodes that were not killed."""

    @property
    def lost(self) -> list[int]:
        """Acknowledged events that are not in the store."""
        pairs = zip(self.acknowledged, self.stored, strict=True)
        return sorted(event for acknowledged, stored in pairs for event in acknowledged - stored)

    @property
    def repeated(self) -> list[tuple[int, int]]:
        """(node, event) where an application got an event again while its node should have known it."""
        return [(node, event) for node, got in enumerate(self.got) for event in _again(got)]


def _again(got: list[int]) -> list[int]:
    """The events that were among the `WINDOW` different ones before."""
    known: dict[int, None] = {}
    found = []
    for event in got:
        if event in known:
            found.append(event)
            continue
        known[event] = None
        if len(known) > WINDOW:
            del known[next(iter(known))]
    return found


def ring(
    nodes: int, protocol: str, duration: float, seed: int, parameters: Mapping[str, Any] | None = None
) -> Scenario:
    """Each node hears the one before and the one after it: every node is on somebody's path."""
    raw = {
        "name": "chaos",
        "seed": seed,
        "nodes": nodes,
        "duration": duration,
        "radio": {"propagation": "links"},
        "links": {"up": [[node, (node + 1) % nodes] for node in range(nodes)]},
        "mac": {"model": "ideal"},
        "protocol": {"name": protocol, "parameters": dict(parameters or {})},
    }
    return check(raw, "chaos", Path())


async def chaos(scenario: Scenario, *, interval: float, rate: float) -> ChaosReport:
    """Kills a random node every `interval` seconds; each node publishes `rate` events per second."""
    nodes = scenario.nodes
    report = ChaosReport([], [set() for _ in range(nodes)], [], [[] for _ in range(nodes)])
    with work_folder() as work:
        async with Lab(scenario, Path(), work) as lab:
            await lab.populate()
            lab.begin()
            applications = [
                *(asyncio.create_task(publish_for_ever(lab, node, rate, report)) for node in range(nodes)),
                *(asyncio.create_task(listen_for_ever(lab, node, report)) for node in range(nodes)),
            ]
            await _kill(lab, interval, scenario.duration, Random(f"{scenario.seed}/chaos"), report)
            for application in applications:
                application.cancel()
            for outcome in await asyncio.gather(*applications, return_exceptions=True):
                if not isinstance(outcome, asyncio.CancelledError):
                    report.disturbed.append(f"an application raised {outcome!r}")
            report.disturbed += await complaints(lab)
            await lab.stop()
            report.disturbed += lab.report.problems()
        for node in range(nodes):
            report.stored.append(await _stored(work / str(node) / "store", node))
    return report


async def _kill(lab: Lab, interval: float, duration: float, chance: Random, report: ChaosReport) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + duration
    while loop.time() + interval < end:
        await asyncio.sleep(interval)
        node = chance.randrange(lab.scenario.nodes)
        await lab.kill(node)
        report.killed.append(node)
        await lab.revive(node)
    await asyncio.sleep(max(0.0, end - loop.time()))


async def publish_for_ever(lab: Lab, node: int, rate: float, report: ChaosReport) -> None:
    number = 0
    while True:
        number += 1
        with contextlib.suppress(*_BROKEN):  # not acknowledged: nothing was promised
            named = await lab.clients[node].publish(Event.of("chaos", {"node": node, "number": number}))
            report.acknowledged[node].add(named)
        await asyncio.sleep(1 / rate)


async def listen_for_ever(lab: Lab, node: int, report: ChaosReport) -> None:
    position: int | None = None
    while True:
        with contextlib.suppress(*_BROKEN):
            async with lab.clients[node].subscribe("true", id=_EVERYTHING, durable=True, after=position) as events:
                async for event in events:
                    report.got[node].append(event.id)
                    position = events.position
        await asyncio.sleep(_LULL)


async def complaints(lab: Lab) -> list[str]:
    found = []
    for node, client in enumerate(lab.clients):
        counters = (await client.status())["counters"]["node"]
        if counters.get("raised"):
            found.append(f"the broker of node {node} raised {counters['raised']} times")
    return found


async def _stored(path: Path, node: int) -> set[int]:
    store = Store(path, node)
    try:
        return {event_id(node, publication.serial) for publication in store.publications()}
    finally:
        await store.close()
