"""The applications of a lab: they play the workload through clients, in real time.

The rules this file owns:

* Each node does its acts in order, one after the other; nodes do not wait for each other. A late act is done all the
  same, and the greatest delay is reported.
* Subscriptions of time 0 are made before the run starts, so they are in force when the first event comes.
* Events are read from the nodes and thrown away: the nodes' facts have the deliveries.
* A refusal by a node is reported with the node's number and the reason, and the workload continues.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from itertools import takewhile
from pathlib import Path

import aiohttp

from roamcast.content.subscription import Publication, Subscription
from roamcast.errors import RoamcastError
from roamcast.lab.gather import Acknowledged, Names
from roamcast.live.client import Client, Events
from roamcast.sim.places import scenario_acts
from roamcast.sim.scenario.scenario import Scenario
from roamcast.sim.scenario.workload import Act
from roamcast.units import SECOND

Watch = Callable[[str, float, float], None]
"""Called with the progress: the unit (`nodes` or `seconds`), how much is done, and the total."""


class Driver:
    """`clients` by node: looked up for every act, since a restarted node has a new client."""

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
        """The greatest delay of an act, in seconds."""
        self._clients = clients
        self._names = names
        self._clock = clock
        self._durable = durable
        self._folder = folder
        self._listening: dict[int, asyncio.Task[None]] = {}
        self._events: dict[int, Events] = {}

    async def prepare(self, scenario: Scenario) -> None:
        """Does the workload's acts of time 0, except publications."""
        first = takewhile(lambda act: act.time == 0, scenario_acts(scenario, self._folder))
        await asyncio.gather(*(self._do(act) for act in first if not isinstance(act.what, Publication)))

    async def run(self, scenario: Scenario, watch: Watch | None = None) -> None:
        """Does the rest, until the scenario's end."""
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
        requested = self._clock()
        # The node assigns the event's id; `gather` replaces it by the workload's.
        unnamed = type(event)(event.type, event.attributes, event.payload)
        named = await self._clients[node].publish(
            unnamed,
            lifetime=None if publication.lifetime is None else publication.lifetime / SECOND,
            relevance=publication.relevance,
            subscription_domain=publication.subscription_domain,
        )
        self._names.acknowledged.append(Acknowledged(requested, node, named, publication))

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
    with contextlib.suppress(RoamcastError, aiohttp.ClientError, OSError):  # `Processes` reports the end of a node
        async for _ in events:
            pass
