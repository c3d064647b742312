"""A context specification: a property that hosts have or have not.

The rules this file owns:

* An *individual* property is about the host alone: where it is (`Within`), its attributes, its `x`, `y` and `speed`. A
  *relational* one compares an `Aggregate` over the hosts around it. They combine with `And`, `Or` and `Not`.
* An aggregate's `where` is an individual property of each host of the group: aggregates do not nest. So evaluating a
  context takes time proportional to its size times the hosts around.
* `size` counts every node, each aggregate and each corner of a polygon; `depth` counts how deep parentheses, nots and
  aggregates nest in the text. Both are bounded, since contexts come from strangers.
* `And` of nothing is true and `Or` of nothing false. Neither may have just one part: use the part itself.

Printing (`str`) gives the text that `context/text.py` reads back as an equal expression.
"""

import enum
from collections.abc import Iterator
from functools import cached_property
from typing import Final

import msgspec

from roamcast.content.event import Scalar, check_name
from roamcast.content.filter import STRING_ONLY, Constraint, Kind, Operator, kind_of
from roamcast.content.region import MAX_RADIUS, Polygon, Region, metres, text_of
from roamcast.content.tokens import format_name, format_value
from roamcast.errors import ContentError

MAX_SIZE: Final = 256
MAX_DEPTH: Final = 32

DISTANCE: Final = "distance"
"""The name that, for a host of a group, gives its distance in metres from the host that looks at the group."""


class Function(enum.StrEnum):
    """What an aggregate computes over a group."""

    COUNT = "count"
    MIN = "min"
    MAX = "max"
    MEAN = "mean"


class Scope(enum.StrEnum):
    """Which hosts an aggregate looks at."""

    NEIGHBOURS = "neighbours"
    """Those one hop away."""
    HOSTS = "hosts"
    """All within a distance, however many hops away: they must be queried."""


class Within(msgspec.Struct, frozen=True, array_like=True, tag="within"):
    """The host is in the region."""

    region: Region

    def __str__(self) -> str:
        return f"within({self.region})"


class Exists(msgspec.Struct, frozen=True, array_like=True, tag="exists"):
    """The host has the attribute."""

    attribute: str

    def __post_init__(self) -> None:
        check_name(self.attribute)

    def __str__(self) -> str:
        return f"exists {format_name(self.attribute)}"


class Aggregate(msgspec.Struct, frozen=True, array_like=True):
    """A number computed over a group of hosts."""

    function: Function
    attribute: str | None = None
    """None for `count`, which counts hosts."""
    scope: Scope = Scope.NEIGHBOURS
    within: float | None = None
    """Metres from the host that looks; None for all neighbours."""
    where: "Expression | None" = None

    def __post_init__(self) -> None:
        if (self.attribute is None) != (self.function is Function.COUNT):
            raise ContentError("'count' takes no attribute, every other aggregate takes one")
        if self.attribute is not None:
            check_name(self.attribute)
        if self.within is not None:
            msgspec.structs.force_setattr(self, "within", metres(self.within, "the distance of a group", MAX_RADIUS))
            if self.within <= 0:
                raise ContentError(f"the distance of a group must be above 0, not {self.within}")
        elif self.scope is Scope.HOSTS:
            raise ContentError("'hosts' needs a distance, as in hosts within 500: a query must end somewhere")
        if self.where is not None and any(isinstance(node, Aggregate) for node in nodes(self.where)):
            raise ContentError("the 'where' of an aggregate cannot have an aggregate in it")

    def __str__(self) -> str:
        group = str(self.scope) if self.attribute is None else f"{self.scope}.{format_name(self.attribute)}"
        within = "" if self.within is None else f" within {text_of(self.within)}"
        where = "" if self.where is None else f" where {self.where}"
        return f"{self.function}({group}{within}{where})"


class HostComparison(msgspec.Struct, frozen=True, array_like=True, tag="is", eq=False):
    """A value of the host, or of those around it, against a constant or an aggregate."""

    left: str | Aggregate
    """An attribute's name, or an aggregate."""
    operator: Operator
    right: Scalar | Aggregate

    def __post_init__(self) -> None:
        if isinstance(self.left, str):
            check_name(self.left)
        if self.operator is Operator.EXISTS:
            raise ContentError("'exists' is not a comparison")
        if isinstance(self.right, Aggregate):
            self._check_numeric("an aggregate")
            return
        Constraint("compared", self.operator, self.right)  # the same rules as a constraint's
        if isinstance(self.left, Aggregate):
            self._check_numeric(str(self.left.function))
            if kind_of(self.right) is not Kind.NUMBER:
                raise ContentError(f"'{self.left.function}' is a number and cannot be compared with {self.right!r}")

    def _check_numeric(self, what: str) -> None:
        if self.operator in STRING_ONLY:
            raise ContentError(f"'{self.operator}' looks at strings, and {what} is a number")

    def __str__(self) -> str:
        left = format_name(self.left) if isinstance(self.left, str) else self.left
        right = self.right if isinstance(self.right, Aggregate) else format_value(self.right)
        return f"{left} {self.operator} {right}"

    @property
    def key(self) -> tuple[object, ...]:
        """Identity. The kind keeps `a = true` and `a = 1`, which Python takes for equal, apart."""
        kind = None if isinstance(self.right, Aggregate) else kind_of(self.right)
        return self.left, self.operator, kind, self.right

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, HostComparison) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)


class Not(msgspec.Struct, frozen=True, array_like=True, tag="not"):
    """True exactly if its part is false."""

    part: "Expression"

    def __str__(self) -> str:
        return f"not {_inside(self, self.part)}"


class And(msgspec.Struct, frozen=True, array_like=True, tag="and"):
    """All of its parts hold."""

    parts: tuple["Expression", ...]

    def __post_init__(self) -> None:
        _check_parts("and", self.parts)

    def __str__(self) -> str:
        return " and ".join(_inside(self, part) for part in self.parts) or "true"


class Or(msgspec.Struct, frozen=True, array_like=True, tag="or"):
    """One of its parts holds."""

    parts: tuple["Expression", ...]

    def __post_init__(self) -> None:
        _check_parts("or", self.parts)

    def __str__(self) -> str:
        return " or ".join(_inside(self, part) for part in self.parts) or "false"


Expression = Within | Exists | HostComparison | Not | And | Or
ExpressionNode = Expression | Aggregate


def _check_parts(word: str, parts: tuple[Expression, ...]) -> None:
    if len(parts) == 1:
        raise ContentError(f"'{word}' of one part is that part")


def _needs_parentheses(outer: ExpressionNode, part: ExpressionNode) -> bool:
    if not (isinstance(outer, And | Or | Not) and isinstance(part, And | Or) and part.parts):
        return False
    return not (isinstance(outer, Or) and isinstance(part, And))


def _inside(outer: Expression, part: Expression) -> str:
    return f"({part})" if _needs_parentheses(outer, part) else str(part)


def _parts(node: ExpressionNode) -> tuple[ExpressionNode, ...]:
    match node:
        case And() | Or():
            return node.parts
        case Not():
            return (node.part,)
        case HostComparison():
            return tuple(side for side in (node.left, node.right) if isinstance(side, Aggregate))
        case Aggregate() if node.where is not None:
            return (node.where,)
        case _:
            return ()


def nodes(expression: ExpressionNode) -> Iterator[ExpressionNode]:
    """The expression and everything in it. A loop, not a recursion: a stranger's expression may be deep."""
    pending: list[ExpressionNode] = [expression]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(_parts(node)))


def size(expression: Expression) -> int:
    return sum(map(_weight, nodes(expression)))


def _weight(node: ExpressionNode) -> int:
    return len(node.region.corners) if isinstance(node, Within) and isinstance(node.region, Polygon) else 1


def depth(expression: Expression) -> int:
    deepest = 0
    pending: list[tuple[ExpressionNode, int]] = [(expression, 0)]
    while pending:
        node, level = pending.pop()
        level += isinstance(node, Not | Aggregate)
        deepest = max(deepest, level)
        pending.extend((part, level + _needs_parentheses(node, part)) for part in _parts(node))
    return deepest


class Context(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """A context specification, within its bounds."""

    expression: Expression

    def __post_init__(self) -> None:
        if (found := size(self.expression)) > MAX_SIZE:
            raise ContentError(f"a context may have a size of {MAX_SIZE}, not {found}")
        if (found := depth(self.expression)) > MAX_DEPTH:
            raise ContentError(f"a context may be {MAX_DEPTH} deep, not {found}")

    def __str__(self) -> str:
        return str(self.expression)

    @cached_property
    def weight(self) -> tuple[int, int]:
        """What evaluating it looks at: so much on the host itself, and so much on each host around it."""
        around = sum(sum(map(_weight, nodes(aggregate))) for aggregate in self.aggregates)
        return size(self.expression), around

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """In the order of the text."""
        return tuple(node for node in nodes(self.expression) if isinstance(node, Aggregate))
