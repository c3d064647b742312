"""Bloom vectors (Bloom, CACM 13(7), 1970): sets of hashes with false positives and without false negatives.

A vector is a power of two of bytes, or no bytes at all for the empty set. The k positions of a hash come from its two
halves (Kirsch and Mitzenmacher 2006, "Less hashing, same performance"). Two properties allow uniting any two vectors
without a false negative, whatever their parameters:

* sizes are powers of two, so a vector folds onto one of half its size: a position modulo 2m, taken modulo m, is the
  position in the smaller one;
* the positions for fewer hashes are the first of those for more, so both can be tested with the smaller k.
"""

from collections.abc import Iterator
from typing import Final

from roamcast.errors import ContentError

MIN_BITS: Final = 8
MAX_BITS: Final = 1 << 13
MAX_HASHES: Final = 16

_SPREAD: Final = 0x9E3779B97F4A7C15
"""An odd number near 2^64 divided by the golden ratio: spreads the 16 or 32 bits of a hash over 64."""


def positions(item: bytes, hashes: int) -> Iterator[int]:
    """The positions of a hash's bits, before taking them modulo the size of the vector."""
    place, step = _start(item)
    for _ in range(hashes):
        yield place
        place += step


def _start(item: bytes) -> tuple[int, int]:
    spread = int.from_bytes(item, "big") * _SPREAD & 0xFFFFFFFFFFFFFFFF
    return spread >> 32, spread & 0xFFFFFFFF | 1


def contains(vector: bytes, item: bytes, hashes: int) -> bool:
    if not vector:
        return False
    last = len(vector) * 8 - 1
    place, step = _start(item)
    for _ in range(hashes):  # `positions` without the cost of a generator: a comparison spends most of its time here
        if not vector[(place & last) >> 3] >> (place & 7) & 1:
            return False
        place += step
    return True


def check_vector(vector: bytes, what: str) -> None:
    size = len(vector) * 8
    if size & (size - 1) or size > MAX_BITS:
        raise ContentError(f"{what} has {size} bits; a Bloom vector has a power of two, at most {MAX_BITS}")


class VectorBuilder:
    """A vector in the making; `bits` is the size it gets when a hash is added."""

    def __init__(self, bits: int, hashes: int) -> None:
        self._bits = bits
        self._hashes = hashes
        self._vector = bytearray()

    def add(self, item: bytes) -> None:
        if not self._vector:
            self._vector = bytearray(self._bits // 8)
        last = len(self._vector) * 8 - 1
        for place in positions(item, self._hashes):
            self._vector[(place & last) >> 3] |= 1 << (place & 7)

    def unite(self, vector: bytes) -> None:
        """Takes in a finished vector: the larger of the two is folded onto the smaller."""
        if not self._vector or not vector:
            self._vector = self._vector or bytearray(vector)
            return
        size = min(len(self._vector), len(vector))
        united = _folded(self._vector, size) | _folded(vector, size)
        self._vector = bytearray(united.to_bytes(size, "little"))

    def build(self) -> bytes:
        return bytes(self._vector)


def _folded(vector: bytes | bytearray, size: int) -> int:
    """The vector's bits folded onto `size` bytes, as a number."""
    bits = 0
    for start in range(0, len(vector), size):
        bits |= int.from_bytes(vector[start : start + size], "little")
    return bits
