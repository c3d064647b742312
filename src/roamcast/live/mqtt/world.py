"""The node as MQTT sessions see it. They do no I/O themselves: a test can be the world."""

import asyncio
import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from roamcast.errors import RoamcastError
from roamcast.live.control_messages import EventForm, SubscribeRequest, SubscriberMessage
from roamcast.live.mailbox import Mailbox, QueuedDelivery
from roamcast.live.under_way import Told
from roamcast.units import SECOND

if TYPE_CHECKING:
    from roamcast.live.node import Node

_KEPT: Final = "mqtt sessions"
"""Under this name, which no protocol can have, sessions are in the store."""


class Timer(Protocol):
    def cancel(self) -> None: ...


class MqttWorld:
    """Everything that may take time calls back, at once or later."""

    def __init__(self, node: "Node") -> None:
        self._host, self._store, self._clock = node.host, node.store, node.clock
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def takes_lifetimes(self) -> bool:
        """Whether events may have lifetimes."""
        return self._host.takes_lifetimes

    def publish(self, form: EventForm, told: Told, along: Callable[[], None]) -> None:
        """As `Host.publish_then`."""
        self._host.publish_then(form, told, along)

    def subscribe(self, request: SubscribeRequest, done: Callable[[Mailbox | RoamcastError], None]) -> None:
        try:
            mailbox = self._host.begin_subscription(request)
        except RoamcastError as problem:
            done(problem)
            return
        self._store.then(lambda problem: done(mailbox) if problem is None else self._host.leave(mailbox))

    def unsubscribe(self, number: int) -> None:
        self._host.unsubscribe(number)

    def leave(self, mailbox: Mailbox) -> None:
        self._host.leave(mailbox)

    def number_of(self, client_id: str, topic_filter: str) -> int:
        """The number of a durable subscription, unique in the network."""
        named = f"{self._host.node}\0{client_id}\0{topic_filter}".encode()
        return int.from_bytes(hashlib.sha256(named).digest()[:8]) >> 2 | 1 << 62

    def put(self, mailbox: Mailbox, message: SubscriberMessage) -> None:
        """Puts a message into one mailbox."""
        pool = self._host.subscribers.pool
        mailbox.put(pool.new(message, (mailbox.subscription.id,) if mailbox.durable else ()))

    def fetch(self, delivery: QueuedDelivery, done: Callable[[bytes | None], None]) -> None:
        """Reads a delivery that only the store has; None: the store has lost it."""

        async def fetch() -> None:
            done(await self._host.subscribers.pool.packed(delivery))

        task = asyncio.get_running_loop().create_task(fetch())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def latest(self) -> int:
        """The number of the latest delivery that waits in the store."""
        return self._host.subscribers.pool.last

    def kept(self) -> dict[str, bytes]:
        return self._store.kept(_KEPT)

    def keep(self, key: str, value: bytes) -> None:
        self._store.keep(_KEPT, key, value)

    def forget(self, key: str) -> None:
        self._store.forget(_KEPT, key)

    def then(self, call: Callable[[], None]) -> None:
        """Calls when everything kept and forgotten so far is on disk."""
        # If the store fails the node ends, and nothing more is acknowledged.
        self._store.then(lambda problem: call() if problem is None else None)

    def soon(self, call: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(call)

    def later(self, seconds: float, call: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, call)

    def now(self) -> float:
        """Seconds since 1970."""
        return self._clock.wall / SECOND
