"""A filter and an event as rows, so that matching is a join and a count.

The rule this file owns: **a row of a filter is only ever compared with values of one machine type.** Otherwise an
engine that compares a 64-bit integer with a double by rounding the integer would disagree with `Filter.matches`. So a
numeric constraint gives one row for integers and one for doubles, under the same constraint number, each with the
bound converted exactly: for integers `< 2.5` is `<= 2`. If every value of the type satisfies the constraint, the row
is `exists` of that kind; if none can, there is no row.

How to match:

1. Join on the attribute and the kind. Kind "any" (only with `exists`) joins with every kind.
2. Keep the pairs where `value operator bound` holds, both taken from the column of the kind.
3. A conjunction matches an event when `needed` *distinct* constraint numbers are left. A filter matches when one of its
   conjunctions does.

Nothing else is special. The empty conjunction, which always holds, becomes `exists` of the type, which every event has.
A constraint that nothing can satisfy has no rows but counts in `needed`. The empty filter has no rows.
"""

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from roamcast.content.event import INT_MAX, INT_MIN, TYPE, Event, EventId, Scalar
from roamcast.content.filter import Constraint, Filter, Operator

ANY: Final = "any"
INT: Final = "int"
FLOAT: Final = "float"
STR: Final = "str"
BOOL: Final = "bool"


class FilterRow(NamedTuple):
    """One constraint for values of one kind. Of the last four columns, only that of `kind` is set; none for exists."""

    subscription: int
    conjunction: int
    needed: int
    """How many constraints the conjunction has."""
    constraint: int
    attribute: str
    operator: str
    """As `Operator` spells it."""
    kind: str
    integer: int | None = None
    real: float | None = None
    text: str | None = None
    flag: bool | None = None


class EventRow(NamedTuple):
    """One value of one attribute. The type is an attribute too, named `TYPE`."""

    event: EventId
    attribute: str
    kind: str
    integer: int | None = None
    real: float | None = None
    text: str | None = None
    flag: bool | None = None


ValueColumns = tuple[str, int | None, float | None, str | None, bool | None]


def filter_rows(subscription: int, filter: Filter) -> Iterator[FilterRow]:
    """The rows of a filter; conjunctions and constraints are numbered from 0 in their canonical order."""
    for number, conjunction in enumerate(filter.alternatives):
        constraints = conjunction or (Constraint(TYPE, Operator.EXISTS),)
        for position, constraint in enumerate(constraints):
            for operator, columns in _comparisons(constraint):
                yield FilterRow(
                    subscription, number, len(constraints), position, constraint.attribute, operator.value, *columns
                )


def event_rows(event: Event) -> Iterator[EventRow]:
    """The rows of an event: its type's, and one for each value of each attribute."""
    for attribute in (TYPE, *event.attributes):
        for value in event.values(attribute):
            yield EventRow(event.id, attribute, *typed(value))


def typed(value: Scalar) -> ValueColumns:
    match value:
        case bool():
            return BOOL, None, None, None, value
        case int():
            return INT, value, None, None, None
        case float():
            return FLOAT, None, value + 0.0, None, None  # -0.0 becomes 0.0: engines differ on whether they are equal
        case _:
            return STR, None, None, value, None


def _comparisons(constraint: Constraint) -> Iterator[tuple[Operator, ValueColumns]]:
    operator, value = constraint.operator, constraint.value
    if value is None:
        yield operator, (ANY, None, None, None, None)
    elif isinstance(value, str | bool):
        yield operator, typed(value)
    else:
        for kind, nearest in ((INT, _nearest_integers(value)), (FLOAT, _nearest_doubles(value))):
            yield from _converted(operator, kind, *nearest)


Nearest = tuple[int | float | None, int | float | None, int | float | None]
"""The values of one machine type around a number: the greatest below, the equal one, the least above; None if none."""


def _nearest_integers(number: int | float) -> Nearest:
    if number < INT_MIN:
        return None, None, INT_MIN
    if number > INT_MAX:
        return INT_MAX, None, None
    floor = math.floor(number)
    if floor == number:
        return None, floor, None
    return floor, None, floor + 1


def _nearest_doubles(number: int | float) -> Nearest:
    double = float(number)
    if double == number:
        return None, double, None
    if double < number:
        return double, None, math.nextafter(double, math.inf)
    return math.nextafter(double, -math.inf), None, double


def _converted(
    operator: Operator,
    kind: str,
    below: int | float | None,
    equal: int | float | None,
    above: int | float | None,
) -> Iterator[tuple[Operator, ValueColumns]]:
    """The comparison with a number, for values of one machine type, given the number's nearest values of that type."""
    if equal is not None:
        yield operator, typed(equal)
    elif operator is Operator.EQ:
        return
    elif operator is Operator.NE:
        yield Operator.EXISTS, (kind, None, None, None, None)
    else:
        upwards = operator in (Operator.GT, Operator.GE)
        bound, beyond = (above, below) if upwards else (below, above)
        if beyond is None:
            yield Operator.EXISTS, (kind, None, None, None, None)
        elif bound is not None:
            yield Operator.GE if upwards else Operator.LE, typed(bound)
