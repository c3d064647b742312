"""The subscriptions of a broker's own node, and the rule that a subscription gets an event once.

The rules this file owns:

* Each matching subscription gets an event once: once per (event, subscription).
* A later copy does not reach a subscription made meanwhile. A broker that still holds the event can deliver it with
  `deliver_held`.
* **What was delivered is remembered for as long as the broker could deliver it again**: while the broker holds the
  event (`Broker.holds`), and otherwise among the latest `capacity` events. It is kept through the port, so that the
  rule holds across a restart too. So the memory is bounded if what the broker holds is: `capacity` events, and at most
  twice as many as it can hold. An event costs one small record on disk (8 bytes, and 8 for each subscription that got
  it), written when it is first delivered and again for each later subscription.
* A broker that restarts holds nothing until it has restored it, or has heard it again from others. So an entry is
  forgotten only when another event is delivered, and two at most for each.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Final, Literal, Protocol

from roamcast.content.event import Event, EventId
from roamcast.content.filter import Filter
from roamcast.content.index import FilterIndex
from roamcast.content.subscription import Subscription

KEPT: Final = "delivered/"
_WORD: Final = 8
"""Bytes of a number in a kept record."""
_SLACK: Final = 16
_FEW: Final = 4
"""Up to this many subscriptions, asking each is faster than the index."""


class _Keeper(Protocol):
    """The part of a port that `LocalSubscriptions` needs."""

    def deliver(self, event: Event, subscriptions: tuple[int, ...], hops: int, via: str) -> None: ...
    def spend(self, work: Literal["match"]) -> None: ...
    def keep(self, key: str, value: bytes) -> None: ...
    def forget(self, key: str) -> None: ...


class LocalSubscriptions:
    def __init__(self, port: _Keeper, capacity: int, holds: Callable[[EventId], bool] = lambda event_id: False) -> None:
        """`holds` tells whether the broker could deliver an event again by itself."""
        self._port = port
        self._capacity = capacity
        self._holds = holds
        self._index: FilterIndex[int] = FilterIndex()
        self._filters: dict[int, Filter] = {}
        self._recent: dict[EventId, tuple[int, ...]] = {}  # delivered to which subscriptions; oldest event first
        self._held: dict[EventId, tuple[int, ...]] = {}  # older ones that the broker held when last looked at
        self._most_held = _SLACK  # with more, those that the broker no longer holds are sorted out
        self._serial = 0

    def __len__(self) -> int:
        return len(self._filters)

    @property
    def remembered(self) -> int:
        """The number of events that are remembered as delivered."""
        return len(self._recent) + len(self._held)

    @property
    def filters(self) -> list[Filter]:
        """The filters in the order of subscription; one that replaced another has its place."""
        return list(self._filters.values())

    def restore(self, kept: Mapping[str, bytes]) -> None:
        """Restores what was delivered before a restart, oldest first."""
        records = [(_numbers(value), key) for key, value in kept.items() if key.startswith(KEPT)]
        for (serial, *subscriptions), key in sorted(records):
            self._recent[int(key.removeprefix(KEPT))] = tuple(subscriptions)
            self._serial = serial

    def add(self, subscription: Subscription) -> None:
        self._filters[subscription.id] = subscription.filter
        self._index.add(subscription.id, subscription.filter)

    def remove(self, subscription_id: int) -> None:
        if self._filters.pop(subscription_id, None) is not None:
            self._index.remove(subscription_id)

    def matches(self, event: Event) -> bool:
        """Whether a subscription wants the event."""
        return bool(self._matching(event))

    def deliver(self, event: Event, hops: int, via: str) -> bool:
        """Hands a received event to the matching subscriptions, if none had it; returns whether any matches."""
        if not self._filters:
            return False
        wanted_by = self._matching(event)
        if wanted_by and not self._had(event.id):
            self._hand_over(event, (), tuple(wanted_by), hops, via)
        return bool(wanted_by)

    def deliver_held(self, event: Event, hops: int, via: str) -> None:
        """Hands an event that the broker holds to the matching subscriptions that have not got it."""
        had = self._had(event.id)
        wanting = tuple([number for number in self._matching(event) if number not in had])
        if wanting:
            self._hand_over(event, had, wanting, hops, via)

    def _matching(self, event: Event) -> list[int]:
        if not self._filters:
            return []
        self._port.spend("match")
        if len(self._filters) <= _FEW:
            return [number for number, filter in self._filters.items() if filter.matches(event)]
        return self._index.match(event)

    def has(self, event_id: EventId, subscription_id: int) -> bool:
        """Whether a subscription got an event."""
        return subscription_id in self._had(event_id)

    def hand(self, event: Event, subscriptions: tuple[int, ...], hops: int, via: str) -> None:
        """Hands an event to subscriptions that the broker has chosen, if they are in force and have not got it."""
        had = self._had(event.id)
        wanting = tuple(number for number in subscriptions if number not in had and number in self._filters)
        if wanting:
            self._hand_over(event, had, wanting, hops, via)

    def _had(self, event_id: EventId) -> tuple[int, ...]:
        """The subscriptions that got an event."""
        return self._recent.get(event_id) or self._held.get(event_id, ())

    def _hand_over(self, event: Event, had: tuple[int, ...], wanting: tuple[int, ...], hops: int, via: str) -> None:
        self._recent.pop(event.id, None)
        self._held.pop(event.id, None)
        self._remember(event.id, had + wanting)
        for _ in range(2):
            if len(self._recent) > self._capacity:
                self._forget_oldest()
        if len(self._held) > self._most_held:
            for id in [id for id in self._held if not self._holds(id)]:
                self._remember(id, self._held.pop(id))  # it may come again from others: it is the newest now
            self._most_held = 2 * len(self._held) + _SLACK
        self._port.deliver(event, wanting, hops, via)

    def _remember(self, event_id: EventId, subscriptions: tuple[int, ...]) -> None:
        self._recent[event_id] = subscriptions
        self._serial += 1
        numbers = (self._serial, *subscriptions)
        self._port.keep(f"{KEPT}{event_id}", struct.pack(f">{len(numbers)}q", *numbers))

    def _forget_oldest(self) -> None:
        oldest = next(iter(self._recent))
        subscriptions = self._recent.pop(oldest)
        if self._holds(oldest):
            self._held[oldest] = subscriptions
        else:
            self._port.forget(f"{KEPT}{oldest}")


def _numbers(record: bytes) -> tuple[int, ...]:
    words = (record[start : start + _WORD] for start in range(0, len(record), _WORD))
    return tuple(int.from_bytes(word, "big", signed=True) for word in words)
