"""The messages: a hello says who and what is near, data carries an event with the claims of its sender.

Subscribers are named by a key of 16 bits, and distances are in eighths of a hop, so that a subscriber takes three bytes
of a frame. Two subscribers with the same key are taken for one: the nearer one gets what both want, the other depends
on repair. Lives and intervals are in milliseconds from the moment of sending, since clocks differ.
"""

import struct
from collections.abc import Iterable
from functools import cached_property
from typing import Annotated, ClassVar, Final, NamedTuple

import msgspec
from msgspec import Meta

from roamcast.content.event import Event
from roamcast.content.filter import Filter
from roamcast.protocols.messages import MAX_HOPS, Message, Role

MAX_LISTED: Final = 64
"""Most subscribers in a hello, nearest first, and in the claims of an event."""
MAX_PUBLISHERS: Final = 64
"""Most publishers in a digest, those heard last."""
MAX_BEHIND: Final = 256
"""A digest says which of so many serials of a publisher were received; what is older counts as received."""
FARTHEST: Final = 15.0
"""The longest distance that is told, in hops."""
_STEPS: Final = 8
_OWN: Final = 128
_ENTRY: Final = struct.Struct(">HB")

Key = int
"""A subscriber's name on the air."""
Number = Annotated[int, Meta(ge=0)]
Digest = dict[int, tuple[int, int]]
"""By publisher: the highest serial received, and a mask whose bit n stands for the n-th serial below it."""


def key_of(node: int) -> Key:
    return (node * 0x9E3779B1 >> 8) & 0xFFFF


class Claim(NamedTuple):
    """A distance to a subscriber, in hops."""

    key: Key
    distance: float
    own: bool = True
    """Whether it is the sender's own distance, or a shorter one of somebody who sent the event before."""


def pack(claims: Iterable[Claim]) -> bytes:
    return b"".join(
        [
            _ENTRY.pack(key, min(max(0, round(distance * _STEPS)), _OWN - 1) | (_OWN if own else 0))
            for key, distance, own in claims
        ]
    )


def unpack(entries: bytes) -> list[Claim]:
    whole = len(entries) // _ENTRY.size * _ENTRY.size
    return [Claim(key, (code & _OWN - 1) / _STEPS, code >= _OWN) for key, code in _ENTRY.iter_unpack(entries[:whole])]


Entries = Annotated[bytes, Meta(max_length=MAX_LISTED * _ENTRY.size)]


class Received(msgspec.Struct, frozen=True, array_like=True):
    """What was received of a publisher's events."""

    publisher: int
    top: Number
    """The highest serial."""
    mask: Annotated[bytes, Meta(max_length=MAX_BEHIND // 8)]
    """Bit n, the lowest first: whether the serial `top - n` was received."""


class Hello(Message, frozen=True, tag="hello", dict=True):
    """What a node tells its neighbours: alone in a frame, or as a part of data."""

    role: ClassVar[Role] = "beacon"

    degree: Number
    """How many neighbours it has."""
    interval: Number
    """Until its next hello, ms."""
    ways: Annotated[dict[int, Entries], Meta(max_length=MAX_LISTED)]
    """By filter: the distances to the subscribers that want it."""
    filters: Annotated[dict[int, Filter], Meta(max_length=MAX_LISTED)]
    """Some of these filters: its own, and others in turn."""
    received: Annotated[tuple[Received, ...], Meta(max_length=MAX_PUBLISHERS)] | None
    """Its digest: what it has received; None: it does not tell."""

    # What follows is worked out once for all receivers that share the object.

    @cached_property
    def distances(self) -> list[tuple[int, list[Claim]]]:
        return [(filter, unpack(entries)) for filter, entries in self.ways.items()]

    @cached_property
    def digest(self) -> Digest:
        return {part.publisher: (part.top, int.from_bytes(part.mask, "little")) for part in self.received or ()}


class Data(Message, frozen=True, tag="roam", dict=True):
    """An event on its way, with the subscribers known to want it, and how near somebody who sent it is to each."""

    role: ClassVar[Role] = "data"

    event: Event
    hops: Annotated[int, Meta(ge=0, le=MAX_HOPS)]
    """How many times it was transmitted before, 0 from its publisher."""
    life: Number
    """How long it may still be delivered, ms."""
    claims: Entries
    hello: Hello | None = None

    @cached_property
    def claimed(self) -> list[Claim]:
        return unpack(self.claims)

    @cached_property
    def nearest(self) -> dict[Key, float]:
        """The shortest distance to each subscriber."""
        return {key: distance for key, distance, _ in self.claimed}

    @cached_property
    def own(self) -> list[Claim]:
        """The distances of the sender itself."""
        return [claim for claim in self.claimed if claim.own]
