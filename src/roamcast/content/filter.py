"""A filter: a disjunction of conjunctions of constraints.

The rules of matching, which the index, the rows and covering must follow:

* A constraint holds if **one** of the attribute's values satisfies it. So on an attribute with several values
  `p > 5 and p < 3` can hold, and `p != 1` is not the negation of `p = 1`. A missing attribute satisfies nothing.
* int and float compare as numbers, exactly: `9007199254740993` is not `9007199254740992.0`. Every other comparison of
  unlike types does not hold, `!=` included. A bool is not a number, and has no order.
* Strings order by code point. Prefix, suffix and contains look at strings only; the empty string is a prefix of all.
* The empty conjunction holds for every event; the empty disjunction for none.
"""

import enum
from collections.abc import Callable, Sequence
from operator import contains, eq, ge, gt, le, lt, ne
from typing import Final

import msgspec

from roamcast.content.event import Event, Scalar, check_scalar, check_text, plain
from roamcast.errors import ContentError

MAX_CONSTRAINTS: Final = 1024
"""Filters with more are refused: distributing `and` over `or` grows exponentially, and frames come from strangers."""


class Operator(enum.StrEnum):
    """The operators of constraints, spelt as in the filter language."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    PREFIX = "^="
    SUFFIX = "$="
    CONTAINS = "*="
    EXISTS = "exists"


ORDERING: Final = frozenset({Operator.LT, Operator.LE, Operator.GT, Operator.GE})
STRING_ONLY: Final = frozenset({Operator.PREFIX, Operator.SUFFIX, Operator.CONTAINS})

_TESTS: Final[dict[Operator, Callable[..., bool]]] = {
    Operator.EQ: eq,
    Operator.NE: ne,
    Operator.LT: lt,
    Operator.LE: le,
    Operator.GT: gt,
    Operator.GE: ge,
    Operator.PREFIX: str.startswith,
    Operator.SUFFIX: str.endswith,
    Operator.CONTAINS: contains,
}

_RANK: Final = {operator: rank for rank, operator in enumerate(Operator)}


class Kind(enum.IntEnum):
    """The classes of values that compare with each other."""

    NOTHING = 0
    BOOL = 1
    NUMBER = 2
    STRING = 3


_KIND: Final = {type(None): Kind.NOTHING, bool: Kind.BOOL, int: Kind.NUMBER, float: Kind.NUMBER, str: Kind.STRING}


def kind_of(value: Scalar | None) -> Kind:
    return _KIND[type(value)]


def compare(value: Scalar, operator: Operator, bound: Scalar) -> bool:
    """Whether `value operator bound` holds, for a bound that a `Constraint` with the operator may have."""
    return _KIND[type(value)] is _KIND[type(bound)] and _TESTS[operator](value, bound)


class Constraint(msgspec.Struct, frozen=True, array_like=True, eq=False):
    """One question about one attribute, such as `price < 20`. `exists` has no value; all others have one."""

    attribute: str
    operator: Operator
    value: Scalar | None = None

    def __post_init__(self) -> None:
        check_text(self.attribute, "a constraint's attribute")
        if not isinstance(self.operator, Operator):
            raise ContentError(f"a constraint's operator must be an Operator, not {self.operator!r}")
        if self.operator is Operator.EXISTS:
            if self.value is not None:
                raise ContentError(f"'exists' takes no value, not {self.value!r}")
            return
        if self.value is None:
            raise ContentError(f"'{self.operator}' needs a value to compare with")
        check_scalar(self.value, "the value compared with", self.attribute)
        if self.operator in STRING_ONLY and not isinstance(self.value, str):
            raise ContentError(f"'{self.operator}' looks at strings, not at {self.value!r}")
        if self.operator in ORDERING and isinstance(self.value, bool):
            raise ContentError(f"'{self.operator}' has no meaning for {self.value}: bools have no order")

    @property
    def key(self) -> tuple[str, int, Kind, Scalar]:
        """Identity and order. The kind keeps `a = true` and `a = 1`, which Python takes for equal, apart."""
        return self.attribute, _RANK[self.operator], kind_of(self.value), 0 if self.value is None else self.value

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Constraint) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def accepts(self, value: Scalar) -> bool:
        """Whether this one value satisfies the constraint."""
        if self.operator is Operator.EXISTS:
            return True
        return _KIND[type(value)] is _KIND[type(self.value)] and _TESTS[self.operator](value, self.value)

    def holds(self, event: Event) -> bool:
        for value in event.values(self.attribute):  # a loop: `any` over a generator takes five times as long
            if self.accepts(value):
                return True
        return False


Conjunction = tuple[Constraint, ...]


def written_out(some: Sequence[Conjunction], others: Sequence[Conjunction]) -> int:
    """The number of constraints once `and` is distributed over the alternatives of both sides."""
    return sum(map(len, some)) * len(others) + sum(map(len, others)) * len(some)


class Filter(msgspec.Struct, frozen=True, array_like=True, cache_hash=True):
    """Alternatives: one must hold. Canonical: constraints and alternatives are sorted, repetitions gone."""

    alternatives: tuple[Conjunction, ...]

    def __post_init__(self) -> None:
        if sum(map(len, self.alternatives)) > MAX_CONSTRAINTS or len(self.alternatives) > MAX_CONSTRAINTS:
            raise ContentError(f"a filter may have {MAX_CONSTRAINTS} constraints in all its alternatives, not more")
        canonical = {
            tuple(sorted(set(conjunction), key=lambda constraint: constraint.key)) for conjunction in self.alternatives
        }
        ordered = tuple(sorted(canonical, key=lambda conjunction: [constraint.key for constraint in conjunction]))
        msgspec.structs.force_setattr(self, "alternatives", ordered)

    @classmethod
    def where(cls, attribute: str, operator: str, value: Scalar | None = None) -> "Filter":
        """A filter of one constraint: `Filter.where("price", "<", 20)`. Combine filters with `&` and `|`."""
        if operator not in _RANK:
            raise ContentError(f"{operator!r} is not an operator; there are {' '.join(Operator)}")
        return cls(((Constraint(attribute, Operator(operator), None if value is None else plain(value)),),))

    def __and__(self, other: "Filter") -> "Filter":
        constraints = written_out(self.alternatives, other.alternatives)
        if constraints > MAX_CONSTRAINTS:
            raise ContentError(
                f"written out as alternatives, this filter would have {constraints} constraints; "
                f"at most {MAX_CONSTRAINTS} are allowed"
            )
        return Filter(tuple(mine + theirs for mine in self.alternatives for theirs in other.alternatives))

    def __or__(self, other: "Filter") -> "Filter":
        return Filter(self.alternatives + other.alternatives)

    def __str__(self) -> str:
        from roamcast.content.text import format_filter  # text builds on filter: the one place that looks back

        return format_filter(self)

    def matches(self, event: Event) -> bool:
        for conjunction in self.alternatives:
            for constraint in conjunction:
                if not constraint.holds(event):
                    break
            else:
                return True
        return False


def tests(filter: Filter, values: int) -> int:
    """How many comparisons it may take to match the filter with an event that has that many values."""
    return sum(map(len, filter.alternatives)) * values


EVERYTHING: Final = Filter(((),))
NOTHING: Final = Filter(())
