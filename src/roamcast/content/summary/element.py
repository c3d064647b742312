"""One element in a summary: its AEC and its SEC, and what they keep of a conjunction's constraints on it.

All subscriptions that name the element share its structures. Each conjunction adds one condition, the most selective
that a structure can hold: an equality, a boolean, the longest prefix or suffix, or all bounds together as a range. That
condition follows from the conjunction, so no event is lost; adding two would only let more through, as a value passes
if it satisfies either. If no structure can hold anything (`!=`, `exists`, `contains`, the order of strings, an empty
prefix, or a structure that is switched off), an event that has the element passes.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from roamcast.content.event import Scalar
from roamcast.content.filter import ORDERING, Constraint, Kind, Operator, kind_of
from roamcast.content.intervals import canonical
from roamcast.content.summary.arithmetic import BOOL_BITS, Arithmetic, Number, Range, arithmetic, range_of
from roamcast.content.summary.bloom import VectorBuilder
from roamcast.content.summary.digest import DigestValues
from roamcast.content.summary.hashing import affix_hash, affix_length, string_hash
from roamcast.content.summary.strings import Strings
from roamcast.errors import ContentError

ElementId = tuple[int, bool]
"""An element's key, and whether a structure holds anything of it. Both matter: a subscription that only asks whether an
element is present must not weaken it for those that ask for its value."""


class ElementCondition(NamedTuple):
    """What is kept of a conjunction's constraints on one element: a constraint, or a range, or only its presence."""

    constraint: Constraint | None = None
    range: Range | None = None

    @property
    def equality(self) -> Scalar | None:
        """The value of an equality; None for other conditions."""
        constraint = self.constraint
        return constraint.value if constraint is not None and constraint.operator is Operator.EQ else None


PRESENT: Final = ElementCondition()


def condition_of(constraints: Sequence[Constraint], use_aec: bool, use_sec: bool) -> ElementCondition:
    """The condition that is kept of one conjunction's constraints on one element."""
    best = min(constraints, key=lambda constraint: _preference(constraint, use_aec, use_sec))
    preference, _ = _preference(best, use_aec, use_sec)
    if preference == _PRESENT:
        return PRESENT
    if preference == _ORDER:
        return ElementCondition(
            range=range_of(one for one in constraints if _is_number(one) and one.operator in ORDERING)
        )
    return ElementCondition(best)


_EQUAL, _BOOL, _AFFIX, _ORDER, _PRESENT = range(5)


def _preference(constraint: Constraint, use_aec: bool, use_sec: bool) -> tuple[int, int]:
    operator, value = constraint.operator, constraint.value
    match kind_of(value):
        case Kind.STRING if use_sec:
            if operator is Operator.EQ:
                return _EQUAL, 0
            length = affix_length(str(value))
            if operator in (Operator.PREFIX, Operator.SUFFIX) and length:
                return _AFFIX, -length
        case Kind.BOOL if use_aec:
            return _BOOL, 0
        case Kind.NUMBER if use_aec:
            if operator is Operator.EQ:
                return _EQUAL, 0
            if operator in ORDERING:
                return _ORDER, 0
    return _PRESENT, 0


def _is_number(constraint: Constraint) -> bool:
    return kind_of(constraint.value) is Kind.NUMBER


class Element(msgspec.Struct, frozen=True, array_like=True):
    """An element that subscriptions name. Without a structure, it only has to be present."""

    key: int
    aec: Arithmetic | None = None
    sec: Strings | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.key < 1 << 32:
            raise ContentError(f"the key of an element has 32 bits: {self.key}")
        if self.aec == Arithmetic() or self.sec == Strings():
            raise ContentError("an element has a structure with nothing in it")

    @property
    def id(self) -> ElementId:
        return self.key, self.aec is not None or self.sec is not None

    def accepts(self, values: DigestValues, hashes: int) -> bool:
        """Whether an event with these values of the element may satisfy a condition on it."""
        aec, sec = self.aec, self.sec
        if not values or (aec is None and sec is None):
            return True
        numbers: list[Number] = []
        for value in values:
            if type(value) is float or type(value) is int:  # a bool is neither
                numbers.append(value)
            elif isinstance(value, bool):
                if aec is not None and aec.bools & BOOL_BITS[value]:
                    return True
            elif sec is not None and not isinstance(value, int | float) and sec.accepts(value, hashes):
                return True
        return aec is not None and aec.accepts(numbers)


class ElementBuilder:
    """An element in the making. The order in which conditions and elements are added does not matter."""

    def __init__(self, key: int, bits: int, hashes: int) -> None:
        self._key = key
        self._ranges: list[Range] = []
        self._equalities: list[Number] = []
        self._bools = 0
        self._equal, self._prefix, self._suffix = (VectorBuilder(bits, hashes) for _ in range(3))

    def add(self, condition: ElementCondition) -> None:
        if condition.range is not None:
            self._ranges.append(condition.range)
        elif condition.constraint is not None:
            self._add_constraint(condition.constraint.operator, condition.constraint.value)

    def _add_constraint(self, operator: Operator, value: object) -> None:
        if isinstance(value, bool):
            self._bools |= BOOL_BITS[value == (operator is Operator.EQ)]
        elif isinstance(value, int | float):
            number = canonical(value)
            assert isinstance(number, int | float)
            self._equalities.append(number)
        elif isinstance(value, str):
            length = affix_length(value)
            if operator is Operator.EQ:
                self._equal.add(string_hash(value))
            elif operator is Operator.PREFIX:
                self._prefix.add(affix_hash(value[:length]))
            else:
                self._suffix.add(affix_hash(value[len(value) - length :]))

    def unite(self, element: Element) -> None:
        if element.aec is not None:
            self._ranges += element.aec.cuts()
            self._equalities += element.aec.equalities
            self._bools |= element.aec.bools
        if element.sec is not None:
            self._equal.unite(element.sec.equal)
            self._prefix.unite(element.sec.prefix)
            self._suffix.unite(element.sec.suffix)

    def build(self) -> Element:
        aec = arithmetic(self._ranges, self._equalities, self._bools)
        sec = Strings(self._equal.build(), self._prefix.build(), self._suffix.build())
        return Element(self._key, aec if aec != Arithmetic() else None, sec if sec != Strings() else None)
