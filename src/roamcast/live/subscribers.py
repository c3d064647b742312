"""The applications that listen: an inbox for each subscription, bounded, which tells what it had to leave out.

The rule this file owns: a listener that is slow, or away, costs no more than `MOST_EVENTS` events or `MOST_BYTES`, and
no other listener anything. The oldest make room, and `take` says how many before it gives the next event.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Final

from roamcast.content.event import Event
from roamcast.content.filter import Filter
from roamcast.content.subscription import Subscription
from roamcast.errors import RoamcastError
from roamcast.live.wire import MSGPACK, EventForm, Told, encode

MOST_EVENTS: Final = 1024
MOST_BYTES: Final = 4 * 2**20
MOST_SUBSCRIPTIONS: Final = 1024
"""Of one node; each has an inbox."""


class Delivery:
    """An event on its way to listeners, encoded once for all of them."""

    __slots__ = ("packed", "told")

    def __init__(self, event: Event, hops: int, via: str) -> None:
        self.told = Told(event=EventForm.of(event), hops=hops, via=via)
        self.packed = encode(self.told, MSGPACK)


class Inbox:
    def __init__(self, subscription: Subscription, durable: bool) -> None:
        self.subscription = subscription
        self.durable = durable
        self.listening = False
        """Whether an application is connected."""
        self.missed = 0
        self.missed_in_all = 0
        self.ended = False
        self._waiting: deque[Delivery] = deque()
        self._bytes = 0
        self._news = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, delivery: Delivery) -> None:
        waiting = self._waiting
        waiting.append(delivery)
        self._bytes += len(delivery.packed)
        while len(waiting) > MOST_EVENTS or (self._bytes > MOST_BYTES and len(waiting) > 1):
            self._bytes -= len(waiting.popleft().packed)
            self.missed += 1
            self.missed_in_all += 1
        self._news.set()

    def end(self) -> None:
        """Nothing more will come."""
        self.ended = True
        self._news.set()

    async def take(self) -> tuple[int, Delivery] | None:
        """The next event, and how many were left out before it since the last one; None at the end."""
        while not self._waiting:
            if self.ended:
                return None
            self._news.clear()
            await self._news.wait()
        delivery = self._waiting.popleft()
        self._bytes -= len(delivery.packed)
        missed, self.missed = self.missed, 0
        return missed, delivery


class Subscribers:
    """All subscriptions that came through the API."""

    def __init__(self, node: int, made: int) -> None:
        """`made` is how many were given a number here before."""
        self._node = node
        self.made = made
        self._inboxes: dict[int, Inbox] = {}

    def __iter__(self) -> Iterator[Inbox]:
        return iter(self._inboxes.values())

    def __len__(self) -> int:
        return len(self._inboxes)

    def get(self, number: int) -> Inbox | None:
        return self._inboxes.get(number)

    def add(self, filter: Filter, number: int | None, durable: bool) -> Inbox:
        """A new subscription; without a number it gets one that no other in the network has."""
        if len(self._inboxes) >= MOST_SUBSCRIPTIONS:
            raise RoamcastError(f"this node has {MOST_SUBSCRIPTIONS} subscriptions, and takes no more")
        if number is None:
            self.made += 1
            number = self._node << 32 | self.made
        inbox = Inbox(Subscription(number, filter), durable)
        self._inboxes[number] = inbox
        return inbox

    def remove(self, number: int) -> None:
        inbox = self._inboxes.pop(number, None)
        if inbox is not None:
            inbox.end()

    def deliver(self, event: Event, subscriptions: tuple[int, ...], hops: int, via: str) -> None:
        delivery = Delivery(event, hops, via)
        for number in subscriptions:
            inbox = self._inboxes.get(number)
            if inbox is not None:  # it may have left since the broker looked
                inbox.put(delivery)
