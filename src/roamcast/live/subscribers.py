"""The applications that listen: an mailbox for each subscription, bounded, which tells what it had to leave out.

The rule this file owns: a listener that is slow, or away, costs no more than `MAX_EVENTS` events or `MAX_BYTES`, and
all together cost no more than `MAX_ALL_BYTES`: beyond, the fullest gives up its oldest. `take` says how many were left
out before it gives the next event.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Final

from roamcast.content.event import Event
from roamcast.content.subscription import Subscription
from roamcast.errors import RoamcastError
from roamcast.live.control_messages import MSGPACK, EventForm, Told, decode, encode

MAX_EVENTS: Final = 1024
MAX_BYTES: Final = 4 * 2**20
MAX_ALL_BYTES: Final = 32 * 2**20
"""Of all mailboxes of a node."""
DELIVERY_COST: Final = 256
"""Bytes of memory that a waiting event takes beyond its encoding."""
MAX_SUBSCRIPTIONS: Final = 1024
"""Of one node; each has an mailbox."""


class Delivery:
    """An event on its way to listeners, encoded once for all of them: nothing else of it is kept."""

    __slots__ = ("packed",)

    def __init__(self, event: Event, hops: int, via: str) -> None:
        self.packed = encode(Told(event=EventForm.of(event), hops=hops, via=via), MSGPACK)

    @property
    def told(self) -> Told:
        return decode(self.packed, Told, MSGPACK)

    @property
    def cost(self) -> int:
        return len(self.packed) + DELIVERY_COST


class Mailbox:
    def __init__(self, subscription: Subscription, durable: bool) -> None:
        self.subscription = subscription
        self.durable = durable
        self.listening = False
        """Whether an application is connected."""
        self.missed = 0
        self.missed_in_all = 0
        self.ended = False
        self._waiting: deque[Delivery] = deque()
        self.bytes = 0
        """What waits costs."""
        self._news = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, delivery: Delivery) -> None:
        waiting = self._waiting
        waiting.append(delivery)
        self.bytes += delivery.cost
        while len(waiting) > MAX_EVENTS or (self.bytes > MAX_BYTES and len(waiting) > 1):
            self.leave_out()
        self._news.set()

    def leave_out(self) -> None:
        """The oldest that waits."""
        self.bytes -= self._waiting.popleft().cost
        self.missed += 1
        self.missed_in_all += 1

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
        self.bytes -= delivery.cost
        missed, self.missed = self.missed, 0
        return missed, delivery


class Subscribers:
    """All subscriptions that came through the API."""

    def __init__(self, node: int, made: int) -> None:
        """`made` is how many were given a number here before."""
        self._node = node
        self.made = made
        self._mailboxes: dict[int, Mailbox] = {}

    def __iter__(self) -> Iterator[Mailbox]:
        return iter(self._mailboxes.values())

    def __len__(self) -> int:
        return len(self._mailboxes)

    def get(self, number: int) -> Mailbox | None:
        return self._mailboxes.get(number)

    @property
    def next_number(self) -> int:
        """A number for a subscription that has none: no other in the network has it."""
        return self._node << 32 | (self.made + 1)

    def add(self, subscription: Subscription, durable: bool) -> Mailbox:
        """A new subscription."""
        if len(self._mailboxes) >= MAX_SUBSCRIPTIONS:
            raise RoamcastError(f"this node has {MAX_SUBSCRIPTIONS} subscriptions, and takes no more")
        if subscription.id == self.next_number:
            self.made += 1
        mailbox = Mailbox(subscription, durable)
        self._mailboxes[subscription.id] = mailbox
        return mailbox

    def remove(self, number: int) -> None:
        mailbox = self._mailboxes.pop(number, None)
        if mailbox is not None:
            mailbox.end()

    def deliver(self, event: Event, subscriptions: tuple[int, ...], hops: int, via: str) -> None:
        delivery = Delivery(event, hops, via)
        for number in subscriptions:
            mailbox = self._mailboxes.get(number)
            if mailbox is not None:  # it may have left since the broker looked
                mailbox.put(delivery)
        while sum(mailbox.bytes for mailbox in self) > MAX_ALL_BYTES:
            max(self, key=lambda mailbox: (mailbox.bytes, mailbox.subscription.id)).leave_out()
