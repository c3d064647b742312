"""What MQTT sessions need of the node around them. They do no I/O themselves: a test can be the world."""

from collections.abc import Callable
from typing import Protocol

from roamcast.errors import RoamcastError
from roamcast.live.control_messages import EventForm, SubscribeRequest, SubscriberMessage
from roamcast.live.mailbox import Delivery, Mailbox


class Timer(Protocol):
    def cancel(self) -> None: ...


class World(Protocol):
    """Everything that may take time calls back, at once or later."""

    @property
    def takes_lifetimes(self) -> bool:
        """Whether events may have lifetimes."""
        ...

    def publish(
        self, form: EventForm, told: Callable[[int, BaseException | None], None], along: Callable[[], None]
    ) -> None:
        """As `Host.publish_then`."""

    def subscribe(self, request: SubscribeRequest, done: Callable[[Mailbox | RoamcastError], None]) -> None: ...

    def unsubscribe(self, number: int) -> None: ...

    def leave(self, mailbox: Mailbox) -> None: ...

    def number_of(self, client_id: str, topic_filter: str) -> int:
        """The number of a durable subscription, unique in the network."""
        ...

    def put(self, mailbox: Mailbox, message: SubscriberMessage) -> None:
        """Puts a message into one mailbox."""

    def fetch(self, delivery: Delivery, done: Callable[[bytes | None], None]) -> None:
        """Reads a delivery that only the store has; None: the store has lost it."""

    @property
    def latest(self) -> int:
        """The number of the latest delivery that waits in the store."""
        ...

    def keep(self, key: str, value: bytes) -> None: ...

    def forget(self, key: str) -> None: ...

    def then(self, call: Callable[[], None]) -> None:
        """Calls when everything kept and forgotten so far is on disk."""

    def soon(self, call: Callable[[], None]) -> None: ...

    def later(self, seconds: float, call: Callable[[], None]) -> Timer: ...

    def now(self) -> float:
        """Seconds since 1970."""
        ...


class Link(Protocol):
    """The connection of a client."""

    version: int

    def write(self, data: bytes) -> None: ...

    @property
    def clogged(self) -> bool:
        """Whether the client does not read as fast as it is sent to."""
        ...

    def end(self, reason: int, words: str = "") -> None:
        """Tells the client why, if its version can, and closes the connection."""

    def resume(self) -> None:
        """The session may be ready for the client's next packet."""
