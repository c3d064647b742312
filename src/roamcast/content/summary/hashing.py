"""Hashes that leave the process: BLAKE2b, the same on every machine and in every Python.

The rules this file owns:

* A type and a whole string are hashed to 4 bytes, an element's name to 31 bits, an affix of a string to 2 bytes. What
  collides is a false positive, so short hashes cost little: a Bloom vector is a far coarser sieve.
* Prefixes and suffixes have the lengths `AFFIX_LENGTHS`, in characters. A digest is made before anybody knows which
  lengths subscribers ask for, so both sides cut to the longest of these that fits: `^= "Evans"` is kept as `^= "Evan"`.
* A nested element's name is its path from the root, so a document's names may be quadratic in its depth. `PathHasher`
  continues from the part that a name shares with the name before it, so that each step of a path is hashed once.
"""

import struct
from hashlib import blake2b
from typing import Final

from roamcast.content.event import Scalar
from roamcast.content.intervals import plain

WHOLE: Final = 4
"""Bytes of the hash of a type or of a whole string."""

AFFIX: Final = 2
"""Bytes of the hash of a prefix or a suffix."""

AFFIX_LENGTHS: Final = (1, 2, 4, 8)
"""Each doubles the one before: a prefix keeps more than half of its characters, for four hashes a string."""

NAMED: Final = 1 << 31
"""Set in the key of an element that goes by the hash of its name; the keys of agreed columns are below."""

MAX_LEVELS: Final = 256
"""Steps of a path whose states are remembered: as deep as `xml.MAX_DEPTH`. What is below is hashed in one go."""


def string_hash(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=WHOLE).digest()


def type_hash(name: str) -> int:
    return int.from_bytes(string_hash(name), "big")


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
    number = plain(value)
    return struct.pack(">cq", b"i", number) if isinstance(number, int) else struct.pack(">cd", b"d", number)


def joint_hash(parts: list[tuple[int, bytes]]) -> bytes:
    """The hash of several elements' values together: pairs of key and token, in the order of the keys."""
    joined = b"".join(struct.pack(">IB", key, len(value)) + value for key, value in parts)
    return blake2b(joined, digest_size=WHOLE).digest()


class PathHasher:
    """The keys of names: BLAKE2b of the UTF-8 form. Names in document order cost least; any order gives the same."""

    def __init__(self) -> None:
        # The states after each step of the last name's path, with the path so far: "", "info/", "info/label/".
        self._steps = [("", blake2b(digest_size=WHOLE))]

    def key(self, name: str) -> int:
        while not name.startswith(self._steps[-1][0]):
            self._steps.pop()
        path, state = self._steps[-1]
        while len(self._steps) < MAX_LEVELS and (slash := name.find("/", len(path))) >= 0:
            state = state.copy()
            state.update(name[len(path) : slash + 1].encode())
            path = name[: slash + 1]
            self._steps.append((path, state))
        leaf = state.copy()
        leaf.update(name[len(path) :].encode())
        return NAMED | int.from_bytes(leaf.digest(), "big")
