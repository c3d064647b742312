"""The applications of a lab: they do what the workload says, through clients, in real time.

The rules this file owns:

* The acts of one node are done in their order, one after the other; nodes do not wait for each other. An act that
  comes late is done all the same, and how late the latest was is told.
* What an application wants at time 0 it wants before the run starts: so it is in force when the first event comes.
* Events are taken from the nodes as they come, and thrown away: what was delivered is a fact of the node's.
* A node that does not do what it is asked is told of, by its number and its reason, and the workload goes on.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from itertools import takewhile
from pathlib import Path

import aiohttp

from roamcast.content.subscription import Publication, Subscription
from roamcast.errors import RoamcastError
from roamcast.lab.gather import Names, Said
from roamcast.live.client import Client, Events
from roamcast.sim.places import scenario_acts
from roamcast.sim.scenario import Scenario
from roamcast.sim.workload import Act
from roamcast.units import SECOND

Watch = Callable[[str, float, float], None]
"""Told how far it is: of what (`nodes` or `seconds`), how much, of how much."""


class Driver:
    """`clients` by node: the list is looked at anew for every act, since a node that came back has another."""

    def __init__(
        self,
        clients: Sequence[Client],
        names: Names,
        clock: Callable[[], int],
        folder: Path = Path(),
        *,
        durable: bool = False,
    ) -> None:
        self.refused: list[str] = []
        self.missed = 0
        self.latest = 0.0
        """Seconds by which the latest act came after its time."""
        self._clients = clients
        self._names = names
        self._clock = clock
        self._durable = durable
        self._folder = folder
        self._listening: dict[int, asyncio.Task[None]] = {}
        self._events: dict[int, Events] = {}

    async def prepare(self, scenario: Scenario) -> None:
        """What the workload has for time 0. Publications wait for the run."""
        first = takewhile(lambda act: act.time == 0, scenario_acts(scenario, self._folder))
        await asyncio.gather(*(self._do(act) for act in first if not isinstance(act.what, Publication)))

    async def run(self, scenario: Scenario, watch: Watch | None = None) -> None:
        """The rest, until the scenario's end."""
        queues: dict[int, asyncio.Queue[Act]] = {}
        async with asyncio.TaskGroup() as workers:
            started = []
            for act in scenario_acts(scenario, self._folder):
                if act.time == 0 and not isinstance(act.what, Publication):
                    continue
                await self._sleep_until(act.time, scenario, watch)
                if act.node not in queues:
                    queues[act.node] = asyncio.Queue()
                    started.append(workers.create_task(self._work(queues[act.node])))
                queues[act.node].put_nowait(act)
            await self._sleep_until(scenario.end, scenario, watch)
            for worker in started:
                worker.cancel()

    async def close(self) -> None:
        """Stops listening."""
        for task in self._listening.values():
            task.cancel()
        await asyncio.gather(*self._listening.values(), return_exceptions=True)
        await asyncio.gather(*(events.close() for events in self._events.values()), return_exceptions=True)
        self.missed += sum(events.missed for events in self._events.values())
        self._events.clear()
        self._listening.clear()

    async def _sleep_until(self, time: int, scenario: Scenario, watch: Watch | None) -> None:
        while (left := time - self._clock()) > 0:
            await asyncio.sleep(min(left, SECOND) / SECOND)
            if watch is not None:
                watch("seconds", max(0.0, min(self._clock() / SECOND, scenario.duration)), scenario.duration)

    async def _work(self, queue: asyncio.Queue[Act]) -> None:
        while True:
            act = await queue.get()
            self.latest = max(self.latest, (self._clock() - act.time) / SECOND)
            await self._do(act)

    async def _do(self, act: Act) -> None:
        try:
            if isinstance(act.what, Publication):
                await self._publish(act.node, act.what)
            elif isinstance(act.what, Subscription):
                await self._subscribe(act.node, act.what)
            else:
                await self._unsubscribe(act.node, act.what)
        except (RoamcastError, aiohttp.ClientError, OSError) as problem:
            self.refused.append(f"node {act.node} at {act.time / SECOND:.3f} s: {problem}")

    async def _publish(self, node: int, publication: Publication) -> None:
        event = publication.event
        asked = self._clock()
        # An event gets its id from its node; the workload's is put back when the facts are gathered.
        unnamed = type(event)(event.type, event.attributes, event.payload)
        named = await self._clients[node].publish(
            unnamed,
            lifetime=None if publication.lifetime is None else publication.lifetime / SECOND,
            relevance=publication.relevance,
            subscription_domain=publication.subscription_domain,
        )
        self._names.said.append(Said(asked, node, named, publication))

    async def _subscribe(self, node: int, subscription: Subscription) -> None:
        lifetime = None if subscription.lifetime is None else subscription.lifetime / SECOND
        events = self._clients[node].subscribe(
            subscription.filter,
            id=subscription.id,
            durable=self._durable,
            lifetime=lifetime,
            interest=subscription.interest,
            publication_domain=subscription.publication_domain,
        )
        await events.open()
        self._events[subscription.id] = events
        self._listening[subscription.id] = asyncio.create_task(_drain(events))

    async def _unsubscribe(self, node: int, subscription: int) -> None:
        listening = self._listening.pop(subscription, None)
        if listening is not None:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
        events = self._events.get(subscription)
        if events is not None:
            await events.close()


async def _drain(events: Events) -> None:
    with contextlib.suppress(RoamcastError, aiohttp.ClientError, OSError):  # the end of a node is told by its process
        async for _ in events:
            pass
