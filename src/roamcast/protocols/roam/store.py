"""The store: the events that a node carries until their lifetime ends, on disk too; and what it has received.

Both are bounded: the oldest make room. What was received is remembered for a while after its lifetime, so that a
neighbour whose clock is behind does not send it again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from roamcast.bounded import put
from roamcast.content.event import Event, EventId
from roamcast.errors import ContentError
from roamcast.protocols.api import Port
from roamcast.protocols.roam.messages import MAX_PUBLISHERS, Claim, Key, Received
from roamcast.units import SECOND

_KEPT: Final = "carried/"
_MARGIN: Final = 10 * SECOND
_WIDEST: Final = 256


class _Record(msgspec.Struct, frozen=True, array_like=True):
    event: Event
    hops: int
    expires: int


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_Record).decode


@dataclass(slots=True, eq=False)
class Held:
    """An event that a node carries."""

    event: Event
    hops: int
    """How often it was transmitted on its way here."""
    expires: int
    heard: int
    """When the node got it."""
    claims: dict[Key, float] = field(default_factory=dict)
    """The least distance to each subscriber that a sender of the event has claimed."""
    copies: int = 0
    due: int | None = None
    """When the node will send it, unless it hears it before."""
    jitter: int = 0
    repair: bool = False

    def merge(self, claims: list[Claim]) -> None:
        mine = self.claims
        for key, distance, _ in claims:
            if distance < mine.get(key, 1e9):
                mine[key] = distance


class Store:
    def __init__(self, port: Port, capacity: int, window: int) -> None:
        self._port = port
        self._capacity = capacity
        self._window = window
        self._held: dict[EventId, Held] = {}  # oldest first
        self._received: dict[EventId, int] = {}  # until when it is remembered
        self._summary: tuple[Received, ...] | None = None

    def get(self, id: EventId) -> Held | None:
        return self._held.get(id)

    def received(self, id: EventId) -> bool:
        return id in self._received

    def remember(self, id: EventId, expires: int) -> None:
        put(self._received, id, expires + _MARGIN, self._window)
        self._summary = None

    def put(self, held: Held) -> EventId | None:
        """Carries an event; returns the one that had to make room."""
        evicted = put(self._held, held.event.id, held, self._capacity)
        if evicted is not None:
            self._port.forget(f"{_KEPT}{evicted}")
        self._port.keep(f"{_KEPT}{held.event.id}", _encode(_Record(held.event, held.hops, held.expires)))
        return evicted

    def restore(self, now: int, kept: Mapping[str, bytes]) -> None:
        found = []
        for key, value in kept.items():
            if not key.startswith(_KEPT):
                continue
            try:
                record = _decode(value)
            except (msgspec.MsgspecError, ContentError):
                record = None
            if record is None or record.expires <= now:
                self._port.forget(key)
            else:
                found.append(record)
        for record in sorted(found, key=lambda record: (record.expires, record.event.id)):
            self._held[record.event.id] = Held(record.event, record.hops, record.expires, now)
            self.remember(record.event.id, record.expires)

    def expire(self, now: int) -> None:
        for id in [id for id, held in self._held.items() if held.expires <= now]:
            del self._held[id]
            self._port.forget(f"{_KEPT}{id}")
        gone = [id for id, until in self._received.items() if until <= now]
        for id in gone:
            del self._received[id]
        if gone:
            self._summary = None

    def summary(self) -> tuple[Received, ...]:
        """What was received, by publisher, those heard last first."""
        if self._summary is None:
            serials: dict[int, list[int]] = {}
            for id in reversed(self._received):
                serials.setdefault(id >> 32, []).append(id & 0xFFFFFFFF)
            parts = list(serials.items())[:MAX_PUBLISHERS]
            self._summary = tuple(_received(publisher, numbers) for publisher, numbers in parts)
        return self._summary

    def __iter__(self) -> Iterator[Held]:
        """Newest first."""
        return reversed(self._held.values())

    def __len__(self) -> int:
        return len(self._held)

    @property
    def remembered(self) -> int:
        return len(self._received)


def _received(publisher: int, serials: list[int]) -> Received:
    top = max(serials)
    mask = 0
    for serial in serials:
        if top - serial < _WIDEST:
            mask |= 1 << top - serial
    return Received(publisher, top, mask.to_bytes((mask.bit_length() + 7) // 8, "little"))
