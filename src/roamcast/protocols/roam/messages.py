"""The messages: a hello says who is near and what was received; data carries an event with what its sender claims.

Subscribers are named by a key of 16 bits, and distances to them are in eighths of a hop, so that a subscriber takes
three bytes in a frame. Two subscribers with the same key are taken for one: the nearer gets what the other wants.
Ages and lives are relative to the moment of sending, in milliseconds.
"""

import struct
from collections.abc import Iterable
from functools import cached_property
from typing import Annotated, ClassVar, Final, NamedTuple

import msgspec
from msgspec import Meta

from roamcast.content.event import Event, EventId
from roamcast.content.filter import Filter
from roamcast.protocols.messages import MAX_HOPS, Message, Role

MAX_LISTED: Final = 64
"""Most subscribers in a hello, nearest first, and in the claims of an event."""
MAX_PUBLISHERS: Final = 64
MAX_SPAN: Final = 10**12
_STEP: Final = 8
"""Distances on the air: steps per hop."""
_FARTHEST: Final = 127
_OWN: Final = 128
_ENTRY: Final = struct.Struct(">HB")

Key = int
"""A subscriber's name on the air."""
Number = Annotated[int, Meta(ge=0)]


def key_of(node: int) -> Key:
    return (node * 0x9E3779B1 >> 8) & 0xFFFF


class Claim(NamedTuple):
    """A distance to a subscriber, in hops."""

    key: Key
    distance: float
    own: bool
    """Whether it is the sender's own distance, or a better one that the sender was told with the event."""


def packed(claims: Iterable[Claim]) -> bytes:
    return b"".join(
        [
            _ENTRY.pack(key, min(round(distance * _STEP), _FARTHEST) | (_OWN if own else 0))
            for key, distance, own in claims
        ]
    )


def unpacked(entries: bytes) -> list[Claim]:
    whole = len(entries) // _ENTRY.size * _ENTRY.size
    return [
        Claim(key, (code & _FARTHEST) / _STEP, code >= _OWN) for key, code in _ENTRY.iter_unpack(entries[:whole])
    ]


Entries = Annotated[bytes, Meta(max_length=MAX_LISTED * _ENTRY.size)]


class Received(msgspec.Struct, frozen=True, array_like=True):
    """What was received from a publisher lately."""

    publisher: int
    top: Number
    """The highest serial received."""
    mask: Annotated[bytes, Meta(max_length=32)]
    """Bit n: whether the serial `top - n` was received. What is older than the last bit was not."""


class Hello(Message, frozen=True, tag="hello", dict=True):
    """What a node tells its neighbours: broadcast alone, or as a part of data."""

    role: ClassVar[Role] = "beacon"

    degree: Number
    """How many neighbours it has."""
    interval: Number
    """Milliseconds until its next hello."""
    ways: Annotated[dict[int, Entries], Meta(max_length=MAX_LISTED)]
    """By filter: the distances to subscribers that want it."""
    filters: Annotated[dict[int, Filter], Meta(max_length=MAX_LISTED)]
    """Some of these filters: its own always, and others in turn."""
    received: Annotated[tuple[Received, ...], Meta(max_length=MAX_PUBLISHERS)] | None
    """What it has received; None: it does not tell."""

    @cached_property
    def distances(self) -> list[tuple[int, list[Claim]]]:
        return [(filter, unpacked(entries)) for filter, entries in self.ways.items()]

    @cached_property
    def digest(self) -> dict[int, tuple[int, int, int]]:
        """By publisher: the highest serial, the mask, and its length."""
        return {
            part.publisher: (part.top, int.from_bytes(part.mask, "little"), 8 * len(part.mask))
            for part in self.received or ()
        }

    def lacks(self, event_id: EventId) -> bool:
        part = self.digest.get(event_id >> 32)
        if part is None:
            return len(self.digest) < MAX_PUBLISHERS
        top, mask, length = part
        behind = top - (event_id & 0xFFFFFFFF)
        return behind < 0 or not mask >> behind & 1 if behind < 256 else length < 256


class Data(Message, frozen=True, tag="roam", dict=True):
    """An event on its way, with the subscribers that its sender knows to want it."""

    role: ClassVar[Role] = "data"

    event: Event
    hops: Annotated[int, Meta(ge=0, le=MAX_HOPS)]
    life: Number
    """How long it may still be delivered, ms."""
    claims: Entries
    hello: Hello | None = None

    @cached_property
    def claimed(self) -> list[Claim]:
        return unpacked(self.claims)
