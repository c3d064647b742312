"""The subscriptions of a broker's own node, and the rule that nothing is delivered twice.

The ids of delivered events are kept through the port, so that the rule holds across a restart too.
"""

from collections.abc import Mapping
from typing import Final, Protocol

from roamcast.content.event import Event
from roamcast.content.filter import Filter
from roamcast.content.index import FilterIndex
from roamcast.content.subscription import Subscription
from roamcast.protocols.window import DuplicateWindow

KEPT: Final = "delivered/"
WINDOW: Final = 1024


class _Keeper(Protocol):
    """The part of a port that this needs."""

    def deliver(self, event: Event, subscriptions: tuple[int, ...], hops: int, via: str) -> None: ...
    def keep(self, key: str, value: bytes) -> None: ...
    def forget(self, key: str) -> None: ...


class LocalSubscriptions:
    def __init__(self, port: _Keeper) -> None:
        self._port = port
        self._index: FilterIndex[int] = FilterIndex()
        self._filters: dict[int, Filter] = {}
        self._delivered = DuplicateWindow(WINDOW)
        self._serial = 0

    def __len__(self) -> int:
        return len(self._filters)

    @property
    def filters(self) -> list[Filter]:
        """In the order of subscription; one that replaced another has its place."""
        return list(self._filters.values())

    def restore(self, kept: Mapping[str, bytes]) -> None:
        """Takes over what a former life had delivered, oldest first."""
        mine = [(int.from_bytes(value, "big"), key) for key, value in kept.items() if key.startswith(KEPT)]
        for serial, key in sorted(mine):
            self._delivered.add(int(key.removeprefix(KEPT)))
            self._serial = serial
            if self._delivered.evicted is not None:  # a crash came between keeping the newest and forgetting this
                self._port.forget(f"{KEPT}{self._delivered.evicted}")

    def add(self, subscription: Subscription) -> None:
        self._filters[subscription.id] = subscription.filter
        self._index.add(subscription.id, subscription.filter)

    def remove(self, subscription_id: int) -> None:
        if self._filters.pop(subscription_id, None) is not None:
            self._index.remove(subscription_id)

    def deliver(self, event: Event, hops: int, via: str) -> bool:
        """Hands the event to the subscriptions that match, if it was not before; whether any matches."""
        wanted_by = self._index.match(event) if self._filters else []
        if not wanted_by:
            return False
        if self._delivered.add(event.id):
            self._serial += 1
            self._port.keep(f"{KEPT}{event.id}", self._serial.to_bytes(8, "big"))
            if self._delivered.evicted is not None:
                self._port.forget(f"{KEPT}{self._delivered.evicted}")
            self._port.deliver(event, tuple(wanted_by), hops, via)
        return True
