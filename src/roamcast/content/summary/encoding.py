"""The bytes of a summary or a digest by itself, as a field of a message has them inside the message's own."""

from typing import TypeVar

import msgspec

from roamcast.errors import ContentError

T = TypeVar("T")


def decoded(decoder: msgspec.msgpack.Decoder[T], encoded: bytes) -> T:
    """What the bytes stand for; whatever is wrong with them is a `ContentError`."""
    try:
        return decoder.decode(encoded)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise ContentError(f"not an encoding: {problem}") from None
