"""The values one constraint accepts, in a form that allows comparing two constraints without an event.

Three rules make the comparison exact:

* Every kind of value has an order, a least value and, for each value but the greatest, a next one: after a string
  comes the string with U+0000 appended; after a number comes the next double or the next 64-bit integer, whichever is
  nearer. So every comparison, strict or not, is one or two half-open intervals `[low, high)`, with None for "no upper
  end". (An interval with both ends in the domain lies in another if and only if its ends do.)
* A prefix is an interval too: it ends before the prefix with its last character replaced by the next one.
* Suffix and contains are not intervals. Their interval is all strings, and `text_operator` narrows it.

The type of an event is a single string that is always there: on `TYPE`, `exists` is "any string", and a constraint of
another kind accepts nothing.

One implication is missed: a string bound beginning with U+10FFFE may force U+10FFFF to occur further on.
"""

import math
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from roamcast.content.event import INT_MAX, INT_MIN, TYPE, Scalar
from roamcast.content.filter import Constraint, Kind, Operator, kind_of

Bound = Any
"""A value of one kind, or None above all values. Kinds are never mixed in a comparison, which types cannot express."""

Interval = tuple[Bound, Bound]
Intervals = tuple[Interval, ...]

LEAST: Final[dict[Kind, Scalar]] = {Kind.BOOL: False, Kind.NUMBER: -math.inf, Kind.STRING: ""}
LAST_CHARACTER: Final = "\U0010ffff"
ALL_STRINGS: Final[Intervals] = (("", None),)


class ValueSet(NamedTuple):
    """The values a constraint accepts. No intervals: none at all. Kind NOTHING: all values of every kind."""

    kind: Kind
    intervals: Intervals
    begins: str = ""
    """Every accepted string begins with this, ends with `ends` and contains `has`."""
    ends: str = ""
    has: str = ""
    text_operator: Operator | None = None
    """SUFFIX or CONTAINS, where the intervals alone would accept too much."""

    @property
    def is_all_strings(self) -> bool:
        return self.intervals == ALL_STRINGS and self.text_operator is None

    def within(self, other: "ValueSet") -> bool:
        """Whether `other` accepts every value that this region accepts."""
        if not self.intervals or other.kind is Kind.NOTHING:
            return True
        if self.kind is not other.kind:
            return False
        if other.text_operator is Operator.SUFFIX:
            return self.ends.endswith(other.ends)
        if other.text_operator is Operator.CONTAINS:
            return other.has in self.has
        if self.text_operator is not None:
            return self._scattered_within(other.intervals)
        for low, high in self.intervals:
            for other_low, other_high in other.intervals:
                if other_low <= low and (other_high is None or (high is not None and high <= other_high)):
                    break
            else:
                return False
        return True

    def _scattered_within(self, intervals: Intervals) -> bool:
        """`within` for the strings that end with, or contain, the text `has`: they are scattered over the order.

        One of them lies above every string (U+10FFFF as often as needed before the text), and one below every string
        except those of U+0000 alone (U+0000 before the text). So only two shapes of intervals hold them all: all
        strings but one, and all strings from a low end of U+0000 alone, if the text, their least, is not below it.
        """
        if len(intervals) == 2:
            missing = intervals[0][1]
            return not (missing.endswith(self.has) if self.text_operator is Operator.SUFFIX else self.has in missing)
        return any(high is None and not low.strip("\0") and self.has >= low for low, high in intervals)


def following(value: Scalar) -> Bound:
    """The next value of the same kind; None after the greatest."""
    if isinstance(value, str):
        return value + "\0"
    if isinstance(value, bool):
        return None if value else True
    if value == math.inf:
        return None
    double = float(value)
    if double <= value:
        double = math.nextafter(double, math.inf)
    if value >= INT_MAX:
        return double
    integer = INT_MIN if value < INT_MIN else math.floor(value) + 1
    return min(integer, double)


def prefix_end(prefix: str) -> str | None:
    """The least string above all that begin with `prefix`; None if there is none."""
    stem = prefix.rstrip(LAST_CHARACTER)
    if not stem:
        return None
    # No string has a surrogate, so the character after U+D7FF is U+E000.
    return stem[:-1] + ("\ue000" if stem[-1] == "\ud7ff" else chr(ord(stem[-1]) + 1))


def canonical(value: Scalar) -> Scalar:
    """The canonical form of a value: an integral double becomes the integer it equals."""
    if isinstance(value, float) and value.is_integer() and INT_MIN <= value <= INT_MAX:
        return int(value)
    return value


def value_set(constraint: Constraint) -> ValueSet:
    """The values that `constraint` accepts."""
    operator, value = constraint.operator, constraint.value
    if constraint.attribute == TYPE:
        if value is None:
            return ValueSet(Kind.STRING, ALL_STRINGS)
        if not isinstance(value, str):
            return ValueSet(Kind.STRING, ())
    if value is None:
        return ValueSet(Kind.NOTHING, ((None, None),))
    if not isinstance(value, str):
        return ValueSet(kind_of(value), _intervals(operator, value))
    match operator:
        case Operator.SUFFIX | Operator.CONTAINS if value:
            return ValueSet(Kind.STRING, ALL_STRINGS, "", value if operator is Operator.SUFFIX else "", value, operator)
        case Operator.EQ:
            return ValueSet(Kind.STRING, _intervals(operator, value), value, value, value)
        case Operator.PREFIX:
            return ValueSet(Kind.STRING, _intervals(operator, value), value, "", value)
        case Operator.GT | Operator.GE:
            # A string above one that begins with the last character begins with that character too.
            begins = value[: len(value) - len(value.lstrip(LAST_CHARACTER))]
            return ValueSet(Kind.STRING, _intervals(operator, value), begins, "", begins)
        case _:
            return ValueSet(Kind.STRING, _intervals(operator, value))


def _intervals(operator: Operator, value: Scalar) -> Intervals:
    least, after = LEAST[kind_of(value)], following(value)
    intervals: Intervals
    match operator:
        case Operator.EQ:
            intervals = ((value, after),)
        case Operator.NE:
            intervals = ((least, value), (after, None))
        case Operator.LT:
            intervals = ((least, value),)
        case Operator.LE:
            intervals = ((least, after),)
        case Operator.GT:
            intervals = ((after, None),)
        case Operator.GE:
            intervals = ((value, None),)
        case Operator.PREFIX:
            intervals = ((value, prefix_end(str(value))),)
        case _:  # SUFFIX and CONTAINS of the empty string
            intervals = ALL_STRINGS
    # `after` is None above the greatest value, where nothing lies.
    return tuple((low, high) for low, high in intervals if low is not None and low != high)


def joined(first: Intervals, second: Intervals) -> Intervals:
    """The union of two sets of intervals; intervals that touch become one."""
    result: list[Interval] = []
    for low, high in sorted(first + second, key=lambda part: part[0]):
        if result and (result[-1][1] is None or low <= result[-1][1]):
            start, end = result[-1]
            result[-1] = start, None if end is None or high is None else max(end, high)
        else:
            result.append((low, high))
    return tuple(result)


def common(first: Intervals, second: Intervals) -> Intervals:
    """The intersection of two sets of intervals."""
    result: list[Interval] = []
    for low, high in first:
        for other_low, other_high in second:
            start = max(low, other_low)
            end = high if other_high is None else other_high if high is None else min(high, other_high)
            if end is None or start < end:
                result.append((start, end))
    return tuple(result)


def from_low(attribute: str, low: Bound, values: Iterable[Scalar]) -> Constraint:
    """The constraint that accepts `low` and all above, spelt `> 5`, not `>= 5.000000000000001`, if 5 is in `values`."""
    for value in values:
        if following(value) == low:
            return Constraint(attribute, Operator.GT, value)
    return Constraint(attribute, Operator.GE, low)


def up_to_high(attribute: str, high: Bound, values: Iterable[Scalar]) -> Constraint:
    """The constraint that accepts all below `high`, spelt `<= 5`, not `< 5.000000000000001`, if 5 is in `values`."""
    for value in values:
        if following(value) == high:
            return Constraint(attribute, Operator.LE, value)
    return Constraint(attribute, Operator.LT, high)


def spelt(attribute: str, intervals: Intervals, values: Iterable[Scalar]) -> Constraint | None:
    """The constraint that accepts exactly these intervals, or None; `values` as for `from_low`.

    A single value would have a constraint too, but is never the union of two different regions.
    """
    (low, high), *rest = intervals
    kind = kind_of(low)
    if kind is Kind.BOOL or len(rest) > 1:
        return None
    if rest:
        ((second_low, second_high),) = rest
        if low == LEAST[kind] and second_high is None and following(high) == second_low:
            return Constraint(attribute, Operator.NE, high)
        return None
    if high is None:
        return from_low(attribute, low, values)
    if low == LEAST[kind]:
        return up_to_high(attribute, high, values)
    if kind is Kind.STRING and prefix_end(low) == high:
        return Constraint(attribute, Operator.PREFIX, low)
    return None
