"""Events that wait for applications: a mailbox per subscription, and the pool that holds their events.

The rules this file owns:

* An event is encoded once and held once for all durable subscriptions, and once for all others.
* **Events of durable subscriptions are in the store**, from the commit of their delivery until they were sent, so that
  they survive the node. Memory has copies for connected listeners while there is room.
* A mailbox has at most `MAX_EVENTS` events or `MAX_BYTES`. All mailboxes together take at most `MAX_MEMORY` of real
  memory, and `MAX_STORED` of the store. Copies of stored events are dropped first; then the fullest mailbox drops its
  oldest event, repeatedly.
* A listener is told how many events were dropped before it gets the next one.
* An event of a durable subscription that could not be sent remains the next. If the node is killed after an event was
  sent and before that was recorded, it is sent again; a listener that says which number it last received (`forget`)
  gets each event exactly once. A listener that polls gets `upcoming` events, which stay until it says so; one that
  acknowledges events (MQTT) takes them, and they stay until it has.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import msgspec

from roamcast.content.subscription import Subscription
from roamcast.live.control_messages import MSGPACK, SubscriberMessage, encode
from roamcast.live.store import Store

MAX_EVENTS: Final = 1024
MAX_BYTES: Final = 4 * 2**20
MAX_MEMORY: Final = 32 * 2**20
MAX_STORED: Final = 128 * 2**20
OVERHEAD: Final = 160
"""Bytes of memory that an event takes beyond its encoding: this object, its numbers, and the header of its bytes."""
PLACE: Final = 16
"""Bytes of memory per event in a mailbox."""
STORED_OVERHEAD: Final = 64
"""Bytes of the store that an event takes beyond its encoding."""


class QueuedDelivery:
    """An event on its way to listeners."""

    __slots__ = ("holders", "number", "packed", "size")

    def __init__(self, packed: bytes | None, size: int, number: int = 0) -> None:
        self.packed = packed
        """An encoded `SubscriberMessage`; None: only the store has it."""
        self.size = size
        """Bytes of its encoding."""
        self.number = number
        """Its number in the store; 0: it is not in the store."""
        self.holders = 0


class Pool:
    """All events that wait in mailboxes."""

    def __init__(self, store: Store, last: int = 0) -> None:
        """`last` is the number of the last delivery that was put into the store."""
        self.memory = 0
        self.stored = 0
        self._store = store
        self.last = last
        self._copies: dict[QueuedDelivery, None] = {}  # stored events that are also in memory, oldest first
        self._gone: list[tuple[int | None, int]] = []  # subscription and number, sent or dropped; None: for nobody

    def new(self, message: SubscriberMessage, durable: tuple[int, ...]) -> QueuedDelivery:
        """An event for listeners; for durable subscriptions it gets a number and is queued for the store."""
        if not durable:
            packed = encode(message, MSGPACK)
            return QueuedDelivery(packed, len(packed))
        self.last += 1
        packed = encode(msgspec.structs.replace(message, position=self.last), MSGPACK)
        self._store.add_delivery(self.last, packed, durable)
        return QueuedDelivery(packed, len(packed), self.last)

    def hold(self, delivery: QueuedDelivery) -> None:
        self.memory += PLACE
        delivery.holders += 1
        if delivery.holders > 1:
            return
        self.memory += OVERHEAD
        if delivery.number:
            self.stored += delivery.size + STORED_OVERHEAD
        if delivery.packed is not None:
            self.memory += delivery.size
            if delivery.number:
                self._copies[delivery] = None

    def release(self, delivery: QueuedDelivery, subscription: int | None) -> None:
        """A subscription's mailbox no longer holds the delivery."""
        self.memory -= PLACE
        delivery.holders -= 1
        if delivery.number and subscription is not None:
            self._gone.append((subscription, delivery.number))
        if delivery.holders:
            return
        self.memory -= OVERHEAD
        if delivery.packed is not None:
            self.memory -= delivery.size
        if delivery.number:
            self._copies.pop(delivery, None)
            self.stored -= delivery.size + STORED_OVERHEAD
            self._gone.append((None, delivery.number))

    def drop_copy(self, delivery: QueuedDelivery) -> None:
        if self._copies.pop(delivery, delivery) is None:
            delivery.packed = None
            self.memory -= delivery.size

    def make_room(self, mailboxes: Iterable["Mailbox"]) -> None:
        while self.memory > MAX_MEMORY and self._copies:
            self.drop_copy(next(iter(self._copies)))
        if self.memory > MAX_MEMORY:
            _shrink(mailboxes, lambda: self.memory > MAX_MEMORY)
        if self.stored > MAX_STORED:
            _shrink((mailbox for mailbox in mailboxes if mailbox.durable), lambda: self.stored > MAX_STORED)

    async def packed(self, delivery: QueuedDelivery) -> bytes | None:
        """The bytes to send; None if the store has lost them."""
        return delivery.packed if delivery.packed is not None else await self._store.delivery(delivery.number)

    # --- What goes with the next commit ------------------------------------------------------------------------------

    @property
    def uncommitted(self) -> bool:
        return bool(self._gone)

    def before_commit(self) -> None:
        for subscription, number in self._gone:
            if subscription is not None:
                self._store.remove_waiting(subscription, number)
            else:
                self._store.remove_delivery(number)
        self._gone.clear()


def _shrink(mailboxes: Iterable["Mailbox"], too_much: Callable[[], bool]) -> None:
    """Has the fullest mailbox drop its oldest event, repeatedly."""
    fullest = [(-mailbox.bytes, mailbox.subscription.id, mailbox) for mailbox in mailboxes if len(mailbox)]
    heapq.heapify(fullest)
    while fullest and too_much():
        mailbox = fullest[0][2]
        mailbox.leave_out()
        if len(mailbox):
            heapq.heapreplace(fullest, (-mailbox.bytes, mailbox.subscription.id, mailbox))
        else:
            heapq.heappop(fullest)


class Mailbox:
    def __init__(self, subscription: Subscription, durable: bool, pool: Pool) -> None:
        self.subscription = subscription
        self.durable = durable
        self.listening = False
        """Whether an application is connected."""
        self.missed = 0
        self.missed_in_all = 0
        self.ended = False
        self.bytes = 0
        """Bytes of the events that wait."""
        self._pool = pool
        self._waiting: deque[QueuedDelivery] = deque()
        self._news = asyncio.Event()
        self._notify: Callable[[], None] = self._news.set

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, delivery: QueuedDelivery) -> None:
        waiting = self._waiting
        waiting.append(delivery)
        self._pool.hold(delivery)
        self.bytes += delivery.size + OVERHEAD
        while len(waiting) > MAX_EVENTS or (self.bytes > MAX_BYTES and len(waiting) > 1):
            self.leave_out()
        self._notify()

    def leave_out(self) -> None:
        """Drops the oldest event."""
        self.done(self._waiting.popleft())
        self.missed += 1
        self.missed_in_all += 1

    def end(self) -> None:
        """No more events will come; the listener still gets those that wait."""
        self.ended = True
        self._notify()
        if not self.listening:
            self.clear()

    def forget(self, position: int) -> None:
        """Drops the events up to this number: the listener got them before the node was killed."""
        if position > self._pool.last:
            return  # the number is from another store
        while self._waiting and self._waiting[0].number <= position:
            self.done(self._waiting.popleft())

    def clear(self) -> None:
        while self._waiting:
            self.done(self._waiting.popleft())

    async def filled(self) -> None:
        """Waits until there is an event, or no more will come."""
        while not self._waiting and not self.ended:
            self._news.clear()
            await self._news.wait()

    async def upcoming(self, most: int, size: int) -> list[bytes]:
        """The oldest events, at most so many and about so many bytes; they stay here until `forget`."""
        found: list[bytes] = []
        for delivery in list(self._waiting)[:most]:
            packed = await self._pool.packed(delivery)
            if packed is not None:
                found.append(packed)
                size -= len(packed)
            if size <= 0:
                break
        return found

    async def pass_on(self, send: Callable[[int, bytes], Awaitable[None]]) -> bool:
        """Sends the next event, with how many were dropped before it; returns False at the end. An event that could not
        be sent remains the next."""
        await self.filled()
        if not self._waiting:
            return False
        delivery = self._waiting.popleft()
        missed, self.missed = self.missed, 0
        try:
            packed = await self._pool.packed(delivery)
            if packed is not None:
                await send(missed, packed)
        except BaseException:
            self.missed += missed
            self.give_back(delivery)
            raise
        if packed is None:
            self.missed += missed + 1
            self.missed_in_all += 1
        self.done(delivery)
        return True

    def watch(self, call: Callable[[], None] | None) -> None:
        """From now on `call` is called when there is an event to take; None: `pass_on` waits for it."""
        self._notify = self._news.set if call is None else call

    def take(self) -> QueuedDelivery | None:
        """The next event, for a listener that acknowledges it: it stays in the store until it is `done`."""
        return self._waiting.popleft() if self._waiting else None

    def give_back(self, delivery: QueuedDelivery) -> None:
        """An event that was taken and not acknowledged is the next again."""
        if self.ended:
            self.done(delivery)
        else:
            self._waiting.appendleft(delivery)

    def done(self, delivery: QueuedDelivery) -> None:
        """An event was sent or dropped; one that was taken, acknowledged."""
        self.bytes -= delivery.size + OVERHEAD
        self._pool.release(delivery, self.subscription.id)
