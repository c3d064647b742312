"""The one encoding of messages: a version byte, then MessagePack.

A simulated frame has the size of this encoding, and a device sends these bytes. A codec knows the messages of one
protocol; whatever else arrives is a `FrameError`, raised here and nowhere else.
"""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any, Final

import msgspec

from roamcast.errors import RoamcastError
from roamcast.protocols.messages import Message

VERSION: Final = 1


class FrameError(RoamcastError):
    """Bytes that are not a message of this protocol and version."""


class Codec:
    def __init__(self, messages: Sequence[type[Message]]) -> None:
        union: Any = reduce(or_, messages)
        self._encoder = msgspec.msgpack.Encoder()
        self._encoded_whole = {message for message in messages if message.encoded_size is Message.encoded_size}
        self._decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(union)

    def encode(self, message: Message) -> bytes:
        return bytes((VERSION,)) + self._encoder.encode(message)

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
        try:
            return self._decoder.decode(memoryview(frame)[1:])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
            raise FrameError(f"not a message: {problem}") from None
