"""What is inside the seal, for each kind of frame. Numbers are big-endian.

```
SAY, whole    octets
SAY, PART     number u64 | place u8 | parts u8 | octets
TELL, whole   number u64 | attempt u8 | octets
TELL, PART    number u64 | attempt u8 | place u8 | parts u8 | octets
ACK           number u64 | attempt u8 | the parts that have arrived: a little-endian set of bits
SKIP          salt, 16 octets | the last counter that is refused, u64
```
An authentic payload that is none of these is `malformed`: its sender has the key, and is broken or hostile.
"""

import struct
from typing import Final, NamedTuple

from roamcast.live.link.frame import ACK, ASK, BROADCAST, PART, SALT_SIZE, SAY, SKIP, TELL, Frame, FrameRefused, Sealer
from roamcast.live.link.reassembly import MAX_PARTS

_NUMBER: Final = struct.Struct(">Q")
_ATTEMPT: Final = struct.Struct(">QB")
_PLACE: Final = struct.Struct(">BB")
_SKIP: Final = struct.Struct(f">{SALT_SIZE}sQ")
MAX_HEADER: Final = _ATTEMPT.size + _PLACE.size
_MAX_BITS: Final = (MAX_PARTS + 7) // 8


class Piece(NamedTuple):
    """A message, or a part of it."""

    octets: bytes
    message: int = 0
    """Its number; a broadcast in one part has none."""
    attempt: int = 0
    place: int = 0
    parts: int = 1


class Answer(NamedTuple):
    message: int
    attempt: int
    have: int
    """Bit i: part i has arrived."""


class Skip(NamedTuple):
    """From where on the sender of this listens to the session of its receiver."""

    salt: bytes
    upto: int
    """The last counter that it refuses."""


def seal_piece(sealer: Sealer, to: int, piece: Piece, *, ask: bool = False) -> bytes:
    octets, message, attempt, place, parts = piece
    flags = 0
    if parts > 1:
        flags = PART
        octets = _PLACE.pack(place, parts) + octets
    if to == BROADCAST:
        return sealer.seal(SAY, to, _NUMBER.pack(message) + octets if parts > 1 else octets, flags=flags)
    return sealer.seal(TELL, to, _ATTEMPT.pack(message, attempt) + octets, flags=flags | (ASK if ask else 0))


def seal_answer(sealer: Sealer, to: int, answer: Answer) -> bytes:
    bits = answer.have.to_bytes((answer.have.bit_length() + 7) // 8, "little")
    return sealer.seal(ACK, to, _ATTEMPT.pack(answer.message, answer.attempt) + bits)


def seal_skip(sealer: Sealer, to: int, skip: Skip) -> bytes:
    return sealer.seal(SKIP, to, _SKIP.pack(*skip))


def read_skip(frame: Frame) -> Skip:
    if len(frame.payload) != _SKIP.size:
        raise FrameRefused("malformed")
    return Skip._make(_SKIP.unpack(frame.payload))


def read_piece(frame: Frame) -> Piece:
    """Of a SAY or a TELL."""
    octets = frame.payload
    message, attempt, place, parts = 0, 0, 0, 1
    if frame.kind == TELL:
        (message, attempt), octets = _cut(_ATTEMPT, octets)
    elif frame.flags & PART:
        (message,), octets = _cut(_NUMBER, octets)
    if frame.flags & PART:
        (place, parts), octets = _cut(_PLACE, octets)
        # A part without octets would be a place in a table for nothing; a single part is not sent as one.
        if parts < 2 or place >= parts or not octets:
            raise FrameRefused("malformed")
    return Piece(octets, message, attempt, place, parts)


def read_answer(frame: Frame) -> Answer:
    (message, attempt), bits = _cut(_ATTEMPT, frame.payload)
    if len(bits) > _MAX_BITS:
        raise FrameRefused("malformed")
    return Answer(message, attempt, int.from_bytes(bits, "little"))


def _cut(form: struct.Struct, payload: bytes) -> tuple[tuple[int, ...], bytes]:
    if len(payload) < form.size:
        raise FrameRefused("malformed")
    return form.unpack_from(payload), payload[form.size :]
