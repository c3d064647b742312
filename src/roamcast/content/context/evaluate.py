"""Whether a host is in a context.

The rules this file owns:

* **What cannot be answered is false, and its `not` is true**: a comparison with a missing attribute or of unlike types,
  a region for a host whose location is unknown, `min`, `max` or `mean` over a group in which nobody has a number under
  that name. So `not speed > max(neighbours.speed)` holds for a host that is alone. `count` is always a number.
* Comparisons are those of filters: numbers compare exactly, unlike types never, `!=` included.
* `min`, `max` and `mean` skip hosts without a number under that name. A mean is the float nearest to the exact one;
  infinities of both signs have no mean.
* The order of a group never changes an answer.
* Until the hosts beyond one hop have been queried, what depends on them is *unknown*, and an answer is given only if it
  is the same whatever they would answer.
"""

import enum
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from roamcast.content.context.expression import (
    DISTANCE,
    Aggregate,
    And,
    Context,
    Exists,
    Expression,
    Function,
    HostComparison,
    Not,
    Or,
    Scope,
    Within,
)
from roamcast.content.context.host import HostView, Situation
from roamcast.content.event import Scalar
from roamcast.content.filter import Kind, compare, kind_of

Truth = bool | None
"""None: it depends on hosts that have not been queried."""


class _Unknown(enum.Enum):
    UNKNOWN = enum.auto()


_UNKNOWN: Final = _Unknown.UNKNOWN


def evaluate(context: Context, situation: Situation) -> Truth:
    """Whether the situation's host is in the context; None if that depends on hosts that have not been queried.

    The time is proportional to the size of the context times the number of hosts around.
    """
    return _truth(context.expression, situation, None)


def holds(context: Context, situation: Situation) -> bool:
    """Whether the host is surely in the context."""
    return evaluate(context, situation) is True


def _truth(expression: Expression, situation: Situation, distance: float | None) -> Truth:
    """`distance`, of a host in a group, is for a `where`."""
    match expression:
        case Within():
            location = situation.host.location
            return location is not None and expression.region.contains(*location)
        case HostComparison():
            return _compared(expression, situation, distance)
        case And():
            return _decided(expression.parts, situation, distance, False)
        case Or():
            return _decided(expression.parts, situation, distance, True)
        case Not():
            truth = _truth(expression.part, situation, distance)
            return None if truth is None else not truth
        case Exists():
            return _value(situation.host, expression.attribute, distance) is not None


def _decided(parts: Sequence[Expression], situation: Situation, distance: float | None, by: bool) -> Truth:
    """An `or` is decided by one part that is true, an `and` by one that is false."""
    known = True
    for part in parts:
        truth = _truth(part, situation, distance)
        if truth is by:
            return by
        known = known and truth is not None
    return not by if known else None


def _compared(comparison: HostComparison, situation: Situation, distance: float | None) -> Truth:
    left = (
        _aggregated(comparison.left, situation)
        if isinstance(comparison.left, Aggregate)
        else _value(situation.host, comparison.left, distance)
    )
    if left is None:
        return False
    right = _aggregated(comparison.right, situation) if isinstance(comparison.right, Aggregate) else comparison.right
    if right is None:
        return False
    if isinstance(left, _Unknown) or isinstance(right, _Unknown):
        return None
    return compare(left, comparison.operator, right)


def _value(host: HostView, name: str, distance: float | None) -> Scalar | None:
    return distance if name == DISTANCE and distance is not None else host.value(name)


def _aggregated(aggregate: Aggregate, situation: Situation) -> int | float | _Unknown | None:
    """The aggregate's number; None if it has none."""
    group = situation.neighbours if aggregate.scope is Scope.NEIGHBOURS else situation.hosts
    if group is None:
        return _UNKNOWN
    values: list[Scalar | None] = []
    for member in group:
        distance = situation.host.distance(member)
        if aggregate.within is not None and (distance is None or distance > aggregate.within):
            continue
        if aggregate.where is not None and not _truth(aggregate.where, Situation(member), distance):
            continue
        values.append(None if aggregate.attribute is None else _value(member, aggregate.attribute, distance))
    if aggregate.function is Function.COUNT:
        return len(values)
    numbers = [value for value in values if isinstance(value, int | float) and kind_of(value) is Kind.NUMBER]
    if not numbers:
        return None
    match aggregate.function:
        case Function.MIN:
            return min(numbers)
        case Function.MAX:
            return max(numbers)
        case _:
            return _mean(numbers)


def _mean(numbers: list[int | float]) -> float | None:
    infinite = {number for number in numbers if math.isinf(number)}
    if infinite:
        return infinite.pop() if len(infinite) == 1 else None
    return float(sum(map(Fraction, numbers)) / len(numbers))
