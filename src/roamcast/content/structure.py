"""How much an encoding may build: counted before it is built, in one place for frames, the API and what was stored.

Building a Python object takes a hundred times longer than reading its octets, and some are checked in more than linear
time. So an encoding of more than `SHORT` octets is first counted, in one pass that builds nothing and stops at the
limit. A shorter one cannot have more than `SHORT` elements, since each takes an octet or more: it is decoded at once,
and so most frames cost nothing more.

An *element* is a value, a name, an array or a map. What it may be part of is bounded with it: a constraint takes four,
a corner of a polygon three. The types check the rest (`Event`, `Filter`, `Polygon`, `Context`).
"""

import re
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from roamcast.errors import ContentError

T = TypeVar("T")

SHORT: Final = 4096
"""Octets of an encoding that needs no counting, and the elements that most encodings may have."""
MAX_DEPTH: Final = 128
"""Arrays and maps within each other, in a long encoding: a context of the greatest depth takes fewer."""


class Limits(NamedTuple):
    """What an encoding may have."""

    octets: int
    elements: int = SHORT


def _steps() -> list[int]:
    """Octets of an element by its first octet, without the elements inside; 0: its length follows."""
    steps = [1] * 256
    for first in range(0xA0, 0xC0):  # short texts
        steps[first] = 1 + (first & 31)
    for first in (*range(0xC4, 0xCA), 0xD9, 0xDA, 0xDB, 0xDC, 0xDD, 0xDE, 0xDF):
        steps[first] = 0
    for first, size in zip(range(0xCA, 0xD4), (4, 8, 1, 2, 4, 8, 1, 2, 4, 8), strict=True):  # numbers
        steps[first] = 1 + size
    for first, size in zip(range(0xD4, 0xD9), (1, 2, 4, 8, 16), strict=True):  # short extensions
        steps[first] = 2 + size
    return steps


_STEPS: Final = _steps()
_SIZES: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
"""Octets of the length of bytes, extensions and texts."""
_EXTENSIONS: Final = (0xC7, 0xC8, 0xC9)
_LONG_ARRAYS: Final = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}
"""Octets of the length of arrays and maps, and elements for each of their items."""
_STRINGS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


def count(octets: bytes, most: int) -> int:
    """The elements of a MessagePack encoding, as far as it is one; at most one more than `most`.

    Raises `ContentError` if it is deeper than `MAX_DEPTH`.
    """
    steps, end = _STEPS, len(octets)
    at = found = 0
    inside: list[int] = []  # elements that are still to come in each array or map around
    while at < end and found <= most:
        found += 1
        first = octets[at]
        items = 0
        if 0x80 <= first < 0xA0:
            items = 2 * (first & 15) if first < 0x90 else first & 15
            at += 1
        elif steps[first]:
            at += steps[first]
        elif first in _SIZES:
            size = _SIZES[first]
            at += 1 + size + int.from_bytes(octets[at + 1 : at + 1 + size], "big") + (first in _EXTENSIONS)
        else:
            size, each = _LONG_ARRAYS[first]
            items = each * int.from_bytes(octets[at + 1 : at + 1 + size], "big")
            at += 1 + size
        if inside:
            inside[-1] -= 1
        if items:
            inside.append(items)
            if len(inside) > MAX_DEPTH:
                raise ContentError(f"an encoding may have arrays {MAX_DEPTH} deep, not more")
        while inside and not inside[-1]:
            inside.pop()
    return found


def check(octets: bytes, limits: Limits) -> None:
    """Raises `ContentError` if a MessagePack encoding is longer than its limits, or would build more."""
    length = len(octets)
    if length > limits.octets:
        raise ContentError(f"{length} bytes: at most {limits.octets} are allowed")
    if length > SHORT and count(octets, limits.elements) > limits.elements:
        raise ContentError(f"more than {limits.elements} values, names and lists: too many")


def check_json(octets: bytes, limits: Limits) -> None:
    """The same for JSON, whose elements are at most its separators and brackets outside of texts, and one."""
    if len(octets) > limits.octets:
        raise ContentError(f"{len(octets)} bytes: at most {limits.octets} are allowed")
    if len(octets) > SHORT:
        bare = _STRINGS.sub(b"", octets)
        if sum(map(bare.count, (b",", b":", b"[", b"{"))) >= limits.elements:
            raise ContentError(f"more than {limits.elements} values, names and lists: too many")


class Decoder(Generic[T]):
    """Decodes MessagePack of one type, within limits; whatever else it gets is a `ContentError`."""

    def __init__(self, shape: Any, limits: Limits) -> None:  # noqa: ANN401  # any annotation
        self._decode = msgspec.msgpack.Decoder(shape).decode
        self._limits = limits

    def decode(self, octets: bytes) -> T:
        check(octets, self._limits)
        try:
            return self._decode(octets)  # type: ignore[no-any-return]  # of the shape
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
            raise ContentError(str(problem)) from None
