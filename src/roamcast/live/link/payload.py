"""The sealed payload of each kind of frame. Numbers are big-endian.

```
BROADCAST_DATA, whole      octets
BROADCAST_DATA, FRAGMENT   number u64 | place u8 | total u8 | octets
BROADCAST_DATA, BUNDLE     2 to 8 messages, each: length u16 | octets
UNICAST_DATA, whole        number u64 | attempt u8 | octets
UNICAST_DATA, FRAGMENT     number u64 | attempt u8 | place u8 | total u8 | octets
ACK                        number u64 | attempt u8 | the fragments that have arrived: a little-endian set of bits
SKIP                       salt, 16 octets | the last counter that is refused, u64
```
An authentic payload that is none of these is `malformed`: its sender has the key, and is broken or hostile.
"""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from roamcast.live.link.frame import (
    ACK,
    ACK_REQUEST,
    BROADCAST,
    BROADCAST_DATA,
    BUNDLE,
    FRAGMENT,
    SALT_SIZE,
    SKIP,
    UNICAST_DATA,
    FrameRefused,
    OpenedFrame,
    Sealer,
)
from roamcast.live.link.reassembly import MAX_FRAGMENTS

_NUMBER: Final = struct.Struct(">Q")
_ATTEMPT: Final = struct.Struct(">QB")
_PLACE: Final = struct.Struct(">BB")
_LENGTH: Final = struct.Struct(">H")
BUNDLED: Final = _LENGTH.size
"""Octets that a message takes in a bundle beyond its own."""
MAX_BUNDLE: Final = 8
"""Messages in a bundle: one datagram must not bring much more work than another."""
_SKIP: Final = struct.Struct(f">{SALT_SIZE}sQ")
MAX_HEADER: Final = _ATTEMPT.size + _PLACE.size
_MAX_BITS: Final = (MAX_FRAGMENTS + 7) // 8


class Fragment(NamedTuple):
    """A whole message, or a fragment of one."""

    octets: bytes
    message: int = 0
    """The message's number; a whole broadcast has none."""
    attempt: int = 0
    place: int = 0
    total: int = 1


class Ack(NamedTuple):
    message: int
    attempt: int
    have: int
    """Bit i: fragment i has arrived."""


class Skip(NamedTuple):
    """Tells a node which counters of its session the sender of this refuses."""

    salt: bytes
    upto: int
    """The last counter that it refuses."""


def seal_fragment(sealer: Sealer, to: int, fragment: Fragment, *, ask: bool = False) -> bytes:
    octets, message, attempt, place, total = fragment
    flags = 0
    if total > 1:
        flags = FRAGMENT
        octets = _PLACE.pack(place, total) + octets
    if to == BROADCAST:
        return sealer.seal(BROADCAST_DATA, to, _NUMBER.pack(message) + octets if total > 1 else octets, flags=flags)
    return sealer.seal(
        UNICAST_DATA, to, _ATTEMPT.pack(message, attempt) + octets, flags=flags | (ACK_REQUEST if ask else 0)
    )


def seal_bundle(sealer: Sealer, messages: Sequence[bytes]) -> bytes:
    """Whole broadcasts that waited for each other, in one frame."""
    parts = [part for octets in messages for part in (_LENGTH.pack(len(octets)), octets)]
    return sealer.seal(BROADCAST_DATA, BROADCAST, b"".join(parts), flags=BUNDLE)


def read_bundle(frame: OpenedFrame) -> list[bytes]:
    octets, messages, start = frame.payload, list[bytes](), 0
    while start < len(octets):
        if len(messages) == MAX_BUNDLE or start + BUNDLED > len(octets):
            raise FrameRefused("malformed")
        end = start + BUNDLED + _LENGTH.unpack_from(octets, start)[0]
        if end > len(octets):
            raise FrameRefused("malformed")
        messages.append(octets[start + BUNDLED : end])
        start = end
    if len(messages) < 2:
        raise FrameRefused("malformed")
    return messages


def seal_ack(sealer: Sealer, to: int, answer: Ack) -> bytes:
    bits = answer.have.to_bytes((answer.have.bit_length() + 7) // 8, "little")
    return sealer.seal(ACK, to, _ATTEMPT.pack(answer.message, answer.attempt) + bits)


def seal_skip(sealer: Sealer, to: int, skip: Skip) -> bytes:
    return sealer.seal(SKIP, to, _SKIP.pack(*skip))


def read_skip(frame: OpenedFrame) -> Skip:
    if len(frame.payload) != _SKIP.size:
        raise FrameRefused("malformed")
    return Skip._make(_SKIP.unpack(frame.payload))


def read_fragment(frame: OpenedFrame) -> Fragment:
    """The payload of a BROADCAST_DATA or UNICAST_DATA frame."""
    octets = frame.payload
    message, attempt, place, total = 0, 0, 0, 1
    if frame.kind == UNICAST_DATA:
        (message, attempt), octets = _cut(_ATTEMPT, octets)
    elif frame.flags & FRAGMENT:
        (message,), octets = _cut(_NUMBER, octets)
    if frame.flags & FRAGMENT:
        (place, total), octets = _cut(_PLACE, octets)
        # An empty fragment would only take room in a table; a whole message is not sent as a fragment.
        if total < 2 or place >= total or not octets:
            raise FrameRefused("malformed")
    return Fragment(octets, message, attempt, place, total)


def read_ack(frame: OpenedFrame) -> Ack:
    (message, attempt), bits = _cut(_ATTEMPT, frame.payload)
    if len(bits) > _MAX_BITS:
        raise FrameRefused("malformed")
    return Ack(message, attempt, int.from_bytes(bits, "little"))


def _cut(form: struct.Struct, payload: bytes) -> tuple[tuple[int, ...], bytes]:
    if len(payload) < form.size:
        raise FrameRefused("malformed")
    return form.unpack_from(payload), payload[form.size :]
