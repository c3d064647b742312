"""The one encoding of messages: a version byte, then MessagePack.

A simulated frame has the size of this encoding, and a device sends these bytes. A codec knows the messages of one
protocol; whatever else arrives is a `FrameError`, raised here and nowhere else.

Each kind of message has a largest length, and what it may build is counted before it is built (`content/structure.py`).
"""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any, Final

import msgspec

from roamcast.content.structure import SHORT, check
from roamcast.errors import ContentError, RoamcastError
from roamcast.protocols.messages import Message, kind_of, limits_of

VERSION: Final = 1


class FrameError(RoamcastError):
    """Bytes that are not a message of this protocol and version."""


class Codec:
    def __init__(self, messages: Sequence[type[Message]]) -> None:
        union: Any = reduce(or_, messages)
        self._encoder = msgspec.msgpack.Encoder()
        self._encoded_whole = {message for message in messages if message.encoded_size is Message.encoded_size}
        self._limits = {kind_of(message).encode(): limits_of(message) for message in messages}
        self._decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(union)

    def encode(self, message: Message) -> bytes:
        return bytes((VERSION,)) + self._encoder.encode(message)

    def sendable(self, message: Message) -> bytes:
        """The encoding of a message to another device. Raises `FrameError` if every receiver would refuse it."""
        encoded = self.encode(message)
        if len(encoded) > SHORT:
            self._check(encoded)
        return encoded

    def size(self, message: Message) -> int:
        """The length of the encoding."""
        if type(message) in self._encoded_whole:  # most are; this spares two calls for each
            return 1 + len(self._encoder.encode(message))
        return 1 + message.encoded_size(self._encoder.encode)

    def decode(self, frame: bytes) -> Message:
        if not frame:
            raise FrameError("an empty frame")
        if frame[0] != VERSION:
            raise FrameError(f"a frame of version {frame[0]}; this is version {VERSION}")
        if len(frame) > SHORT:
            self._check(frame)
        try:
            return self._decoder.decode(memoryview(frame)[1:])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
            raise FrameError(f"not a message: {problem}") from None

    def _check(self, frame: bytes) -> None:
        """Raises `FrameError` if a long frame is longer than its kind may be, or would build too much."""
        kind = _kind(frame)
        limits = self._limits.get(kind)
        if limits is None:
            raise FrameError("not a message: its kind is unknown")
        try:
            check(frame[1:], limits)
        except ContentError as problem:
            raise FrameError(f"not a message: {kind.decode()!r} with {problem}") from None


def _kind(frame: bytes) -> bytes:
    """The tag of a message, from its encoding; empty if there is none."""
    # A message is an array: of up to 15 elements, or of more, with two octets or four for their number.
    start = {0xDC: 4, 0xDD: 6}.get(frame[1], 2)
    first = frame[start] if len(frame) > start else 0
    if 0xA0 <= first < 0xC0:
        return frame[start + 1 : start + 1 + (first & 31)]
    return frame[start + 2 : start + 2 + frame[start + 1]] if first == 0xD9 and len(frame) > start + 1 else b""
