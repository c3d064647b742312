"""A payload with its author's signature, and the hashes that stand for a payload that is not there.

Hosts sign and check (`live/signatures.py`); brokers only carry this along. The rules this file owns:

* A payload is hashed in blocks of `block` bytes, or as a whole if `block` is 0. Its *leaves* are the first 16 bytes of
  each block's SHA-256, its *root* is the SHA-256 of its length and its leaves. The signature covers the root: so a
  document's head can be checked before its payload is here, and each block of the payload by itself.
* A signed payload has its bytes, or its root instead of them, never both.
"""

from hashlib import sha256
from typing import Annotated, Final

import msgspec
from msgspec import Meta

LEAF: Final = 16
"""Bytes of a leaf."""
SIGNATURE: Final = 64
"""Bytes of an Ed25519 signature."""
_LENGTH: Final = 8

Block = Annotated[int, Meta(ge=0, le=2**31)]
Root = Annotated[bytes, Meta(max_length=32)]


class Signed(msgspec.Struct, frozen=True, array_like=True):
    """A signed payload, and what its author said that the event does not."""

    payload: bytes
    signature: Annotated[bytes, Meta(max_length=SIGNATURE)]
    time: Annotated[int, Meta(ge=0, le=2**53)]
    """When it was published by its author's clock, in ms since 1970: a claim."""
    lifetime: Annotated[int, Meta(ge=0, le=2**62)] | None = None
    """Its lifetime when it was published, ns."""
    contexts: Annotated[bytes, Meta(max_length=2 * LEAF)] = b""
    """Hashes of its contexts; empty if it has none."""
    block: Block = 0
    root: Root = b""
    """Stands for a payload that is left out."""


def leaves_of(payload: bytes, block: int) -> bytes:
    """The leaves of a payload, one after another."""
    if not block or len(payload) <= block:
        return sha256(payload).digest()[:LEAF]
    parts = (payload[start : start + block] for start in range(0, len(payload), block))
    return b"".join([sha256(part).digest()[:LEAF] for part in parts])


def root_of(length: int, leaves: bytes) -> bytes:
    """The root of a payload of this length in bytes."""
    return sha256(length.to_bytes(_LENGTH, "big") + leaves).digest()
