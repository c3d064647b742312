"""Decoding a summary or a digest by itself, outside a message."""

from typing import TypeVar

import msgspec

from roamcast.errors import ContentError

T = TypeVar("T")


def decoded(decoder: msgspec.msgpack.Decoder[T], encoded: bytes) -> T:
    """The decoded value. Raises `ContentError` if anything is wrong with the bytes."""
    try:
        return decoder.decode(encoded)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise ContentError(f"not an encoding: {problem}") from None
