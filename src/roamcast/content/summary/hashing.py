"""Hashes that leave the process: BLAKE2b, the same on every machine and in every Python.

The rules this file owns:

* A type and a whole string are hashed to 4 bytes, an element's name to 31 bits, an affix of a string to 2 bytes. What
  collides is a false positive, so short hashes cost little: a Bloom vector is a far coarser sieve.
* Prefixes and suffixes have the lengths `AFFIX_LENGTHS`, in characters. A digest is made before anybody knows which
  lengths subscribers ask for, so both sides cut to the longest of these that fits: `^= "Evans"` is kept as `^= "Evan"`.
* A nested element's name is its path from the root, and it is hashed in one piece: linear in the event's size, for the
  names are part of it. Hashing step by step from the root, in Python, would take 200 steps for each leaf 200 levels
  down; continuing from the state that a name shares with the one before took longer than hashing all of it again.
"""

import struct
from hashlib import blake2b
from typing import Final

from roamcast.content.event import Scalar
from roamcast.content.intervals import canonical

WHOLE: Final = 4
"""Bytes of the hash of a type or of a whole string."""

AFFIX: Final = 2
"""Bytes of the hash of a prefix or a suffix."""

AFFIX_LENGTHS: Final = (1, 2, 4, 8)
"""Each doubles the one before: more than half of a prefix of up to 15 characters stays, for four hashes per string."""

NAMED: Final = 1 << 31
"""Set in the key of an element that goes by the hash of its name; the keys of agreed columns are below."""


def string_hash(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=WHOLE).digest()


def type_hash(name: str) -> int:
    return int.from_bytes(string_hash(name), "big")


def name_key(name: str) -> int:
    """The key of an element that goes by its name."""
    return NAMED | int.from_bytes(string_hash(name), "big")


def affix_hash(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=AFFIX).digest()


def prefix_hashes(text: str) -> bytes:
    """The hashes of the prefixes that `text` has, one after the other."""
    return b"".join(affix_hash(text[:length]) for length in AFFIX_LENGTHS if length <= len(text))


def suffix_hashes(text: str) -> bytes:
    return b"".join(affix_hash(text[len(text) - length :]) for length in AFFIX_LENGTHS if length <= len(text))


def affix_length(text: str) -> int:
    """How many characters of a prefix or suffix are kept; none of an empty one."""
    return max((length for length in AFFIX_LENGTHS if length <= len(text)), default=0)


def token(value: Scalar | bytes) -> bytes:
    """A value as `joint_hash` takes it; bytes are the hash of a string. 18 and 18.0 have the same."""
    if isinstance(value, bytes):
        return b"s" + value
    if isinstance(value, str):
        return b"s" + string_hash(value)
    if isinstance(value, bool):
        return b"t" if value else b"f"
    number = canonical(value)
    return struct.pack(">cq", b"i", number) if isinstance(number, int) else struct.pack(">cd", b"d", number)


def joint_hash(parts: list[tuple[int, bytes]]) -> bytes:
    """The hash of several elements' values together: pairs of key and token, in the order of the keys."""
    joined = b"".join(struct.pack(">IB", key, len(value)) + value for key, value in parts)
    return blake2b(joined, digest_size=WHOLE).digest()
