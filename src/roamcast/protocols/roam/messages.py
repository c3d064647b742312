"""The messages: a hello says who and what is near, data carries an event with the claims of its sender.

In hellos a subscriber is named by a key of 16 bits, and its distance is in eighths of a hop: three bytes. An event's
claims take two: five bits of distance, and a name of 11 bits, made of the key and the event's number. Two subscribers
may have the same name, and the farther one depends on repair then; but with the next event they have others. Lives and
intervals are in milliseconds from the moment of sending, since clocks differ.
"""

import struct
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from roamcast.content.event import Event, EventId
from roamcast.content.filter import Filter
from roamcast.protocols.messages import MAX_HOPS, Message, Role
from roamcast.units import SECOND

MAX_LISTED: Final = 64
"""Most subscribers in a hello, nearest first, and in the claims of an event."""
MAX_PUBLISHERS: Final = 64
"""Most publishers in a digest, those heard last."""
MAX_ASKED: Final = 16
"""Most filters that a hello asks for."""
MAX_BEHIND: Final = 256
"""A digest says which of so many serials of a publisher were received; what is older counts as received."""
FARTHEST: Final = 15.0
"""The longest distance that is told, in hops."""
LEVELS: Final = (*(n / 4 for n in range(16)), *(n / 2 for n in range(8, 16)), *(float(n) for n in range(8, 16)))
"""The distances that a claim can tell: the nearer, the more exactly."""
_LEVEL: Final = [min((abs(level - step / 4), code) for code, level in enumerate(LEVELS))[1] for step in range(61)]
"""The nearest of them, by quarters of a hop."""
_STEPS: Final = 8
MAX_SPAN: Final = 10**12
"""The longest life and interval that is believed, ms."""
MILLISECOND: Final = SECOND // 1000
_ENTRY: Final = struct.Struct(">HB")
# The same objects again and again: tables that share them are found in the processor's cache more often.
_HOPS: Final = [steps / _STEPS for steps in range(256)]
_NAMES: Final = list(range(2**11))
_KEYS: Final[dict[int, int]] = {}  # at most 2**16

encode: Final = msgspec.msgpack.Encoder().encode

Key = int
"""A subscriber's name in hellos."""
Name = int
"""A subscriber's name in the claims of an event."""
Number = Annotated[int, Meta(ge=0)]
Digest = dict[int, tuple[int, int]]
"""By publisher: the highest serial received, and a mask whose bit n stands for the n-th serial below it."""


def key_of(node: int) -> Key:
    return (node * 0x9E3779B1 >> 8) & 0xFFFF


class _Names(dict[Key, Name]):
    def __init__(self, event: EventId) -> None:
        self._salt = event * 0x9E3779B97F4A7C15 >> 40 & 0xFFFF

    def __missing__(self, key: Key) -> Name:
        name = self[key] = _NAMES[(key ^ self._salt) * 0x9E35 >> 5 & 0x7FF]
        return name


@lru_cache(128)
def names(event: EventId) -> Mapping[Key, Name]:
    """The names of subscribers in the claims of an event, by key. They are asked for again at each copy."""
    return _Names(event)


def pack(distances: Iterable[tuple[Key, float]]) -> bytes:
    """Distances as a hello has them."""
    return b"".join([_ENTRY.pack(key, min(max(0, round(distance * _STEPS)), 255)) for key, distance in distances])


def unpack(entries: bytes) -> dict[Key, float]:
    whole = len(entries) // _ENTRY.size * _ENTRY.size
    return {_KEYS.setdefault(key, key): _HOPS[steps] for key, steps in _ENTRY.iter_unpack(entries[:whole])}


def pack_claims(claims: Mapping[Name, float]) -> bytes:
    codes = [name << 5 | _LEVEL[min(max(0, round(4 * distance)), 60)] for name, distance in claims.items()]
    return struct.pack(f">{len(codes)}H", *codes)


def unpack_claims(entries: bytes) -> list[tuple[Name, float]]:
    codes = struct.unpack_from(f">{len(entries) // 2}H", entries)
    return [(_NAMES[code >> 5], LEVELS[code & 31]) for code in codes]


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
    longest: ClassVar[int | None] = 2**16  # five filters and full lists have a sixth of that

    density: Number
    """The mean number of neighbours that nodes have around it."""
    interval: Number
    """Until its next hello, ms."""
    ways: Annotated[dict[int, Entries], Meta(max_length=MAX_LISTED)]
    """By filter: the distances to the subscribers that want it."""
    filters: Annotated[dict[int, Filter], Meta(max_length=8)]
    """Its own filter, and those of others that somebody has asked for."""
    unknown: Annotated[tuple[int, ...], Meta(max_length=MAX_ASKED)]
    """Filters that it asks for: it has heard of subscribers that want them, and not what they are."""
    received: Annotated[tuple[Received, ...], Meta(max_length=MAX_PUBLISHERS)] | None
    """Its digest: what it has received; None: it does not tell."""

    # What follows is worked out once for all receivers that share the object.

    @cached_property
    def distances(self) -> list[tuple[int, dict[Key, float]]]:
        return [(filter, unpack(entries)) for filter, entries in self.ways.items()]

    @cached_property
    def digest(self) -> Digest | None:
        if self.received is None:
            return None
        return {part.publisher: (part.top, int.from_bytes(part.mask, "little")) for part in self.received}

    @cached_property
    def span(self) -> int:
        """Until its next hello, ns."""
        return min(self.interval, MAX_SPAN) * MILLISECOND


class Data(Message, frozen=True, tag="roam", dict=True):
    """An event on its way, with the subscribers known to want it, and how near somebody who sent it is to each."""

    role: ClassVar[Role] = "data"

    event: Event
    hops: Annotated[int, Meta(ge=0, le=MAX_HOPS)]
    """How many times it was transmitted before, 0 from its publisher."""
    life: Number
    """How long it may still be delivered, ms."""
    late: bool
    """Whether it is handed to a neighbour that lacks it, after its first spreading."""
    claims: Annotated[bytes, Meta(max_length=MAX_LISTED * 2)]
    hello: Hello | None = None

    @cached_property
    def nearest(self) -> dict[Name, float]:
        """The shortest distance to each subscriber."""
        return dict(unpack_claims(self.claims))

    @cached_property
    def kept(self) -> msgspec.Raw:
        """The event, encoded to be kept."""
        return msgspec.Raw(encode(self.event))
