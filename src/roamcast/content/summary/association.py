"""The association: which values the conditions of one conjunction ask for together.

Yoneki and Bacon (2004), III.C: the EAL stores "actual values that belong together in a subscription". Here a Bloom
vector has a hash of them, and each row says how an event's values are turned into what is looked up: the *step* of an
element, one byte. The rules this file owns:

* An equality is looked up by its value, a prefix or suffix as it is cut, and a range by its places on a grid: its step
  is the power of two that is wider than the range, so that it lies in two places at most. A range without a bound on
  one side, and what no structure holds, is not looked up.
* Places ascend with numbers, whatever is rounded on the way: a number in a range is in one of its places.
* Numbers of one element may satisfy the two bounds of a range together (see `arithmetic.py`): an element with several
  numbers is not looked up by place.
"""

import math
import struct
from typing import Final, NamedTuple

from roamcast.content.filter import Operator
from roamcast.content.summary.arithmetic import HIGHEST, LOWEST, Number, Range
from roamcast.content.summary.digest import DigestValues, Value
from roamcast.content.summary.element import ElementCondition
from roamcast.content.summary.hashing import AFFIX, AFFIX_LENGTHS, affix_hash, affix_length, token
from roamcast.content.summary.strings import Text

WHOLE: Final = 0
PREFIX: Final = 1
"""And the three steps after it: prefixes of `AFFIX_LENGTHS` characters."""
SUFFIX: Final = PREFIX + len(AFFIX_LENGTHS)
GRID: Final = 160
"""The grid of 1; a step above is twice as wide."""
_FINEST: Final = 64
_FARTHEST: Final = 1 << 62
_RELATIVE: Final = 2.0**-48
"""A grid is no finer than this, relative to the numbers of the range: floats have 53 bits."""


class Wanted(NamedTuple):
    """What a condition is looked up by."""

    step: int
    tokens: tuple[bytes, ...]


def wanted(condition: ElementCondition) -> Wanted | None:
    """None if the condition is not looked up."""
    if condition.range is not None:
        return _places(condition.range)
    if condition.equality is not None:
        return Wanted(WHOLE, (token(condition.equality),))
    constraint = condition.constraint
    if constraint is None or constraint.operator not in (Operator.PREFIX, Operator.SUFFIX):
        return None
    text = str(constraint.value)
    length = affix_length(text)
    at = AFFIX_LENGTHS.index(length)
    if constraint.operator is Operator.PREFIX:
        return Wanted(PREFIX + at, (_affix(PREFIX + at, affix_hash(text[:length])),))
    return Wanted(SUFFIX + at, (_affix(SUFFIX + at, affix_hash(text[len(text) - length :])),))


def _places(range: Range) -> Wanted | None:
    low, high = range
    if low == LOWEST or high == HIGHEST:
        return None
    first, last = float(low[0]), float(high[0])
    width = max(last - first, abs(first) * _RELATIVE, abs(last) * _RELATIVE)
    step = max(_FINEST, GRID + math.frexp(width)[1])
    if not (math.isfinite(width) and step < 256):
        return None
    places = dict.fromkeys((_place(low[0], step), _place(high[0], step)))
    return Wanted(step, tuple(_numbered(step, place) for place in places))


def known(values: DigestValues, step: int) -> list[bytes] | None:
    """What the values of an event's element are looked up by; None if that is not known."""
    if step == WHOLE:
        return [token(value.whole if isinstance(value, Text) else value) for value in values]
    if step < SUFFIX + len(AFFIX_LENGTHS):
        return _affixes(values, step)
    numbers = [value for value in values if type(value) is int or type(value) is float]  # a bool is neither
    return [_numbered(step, _place(numbers[0], step))] if len(numbers) == 1 else None


def _affixes(values: DigestValues, step: int) -> list[bytes] | None:
    found = []
    for value in values:
        if not isinstance(value, bytes | Text):
            continue
        hashes = _carried(value, step)
        if hashes is None:
            return None
        at = (step - (PREFIX if step < SUFFIX else SUFFIX)) * AFFIX
        if at < len(hashes):  # else the string is shorter
            found.append(_affix(step, hashes[at : at + AFFIX]))
    return found


def _carried(value: Value, step: int) -> bytes | None:
    """The hashes of a string's affixes, if the digest has them."""
    if not isinstance(value, Text):
        return None
    return value.prefixes if step < SUFFIX else value.suffixes


def _affix(step: int, hashed: bytes) -> bytes:
    return struct.pack(">cB", b"a", step) + hashed


def _numbered(step: int, place: int) -> bytes:
    return struct.pack(">cBq", b"g", step, place)


def _place(number: Number, step: int) -> int:
    """The place of a number on a grid; far from 0 all numbers share one."""
    real, exponent = float(number), step - GRID
    if math.isinf(real) or (real and math.frexp(real)[1] - exponent > 62):
        return int(math.copysign(_FARTHEST, real))
    return math.floor(math.ldexp(real, -exponent))
