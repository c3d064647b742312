"""Hypothesis strategies for values, filters and events, shared by every test of `content`.

Names and values come from small pools, so that generated filters do match generated events; the extremes that the
rules of `event.py` and `filter.py` speak of are drawn often, not by luck.
"""

import math
from typing import Final

from hypothesis import strategies as st

from roamcast.content.event import INT_MAX, INT_MIN, TYPE, Event, Scalar
from roamcast.content.filter import ORDERING, STRING_ONLY, Conjunction, Constraint, Filter, Operator

ATTRIBUTE_NAMES: Final = ("price", "category", "@id", "a/b", "and", "type", "x y", "ü", "`")

DENSE: Final[tuple[Scalar, ...]] = (
    -1,
    0,
    1,
    2,
    3,
    -1.0,
    0.0,
    1.0,
    2.0,
    0.5,
    "",
    "a",
    "ab",
    "b",
    "\0",
    "é",
    True,
    False,
)

EXTREME_NUMBERS: Final[tuple[int | float, ...]] = (
    INT_MIN,
    INT_MIN + 1,
    INT_MAX - 1,
    INT_MAX,
    float(INT_MIN),
    float(INT_MAX),  # 2^63: above every int
    *(sign * (2**53 + offset) for sign in (1, -1) for offset in (-1, 0, 1)),
    *(float(sign * (2**53 + offset)) for sign in (1, -1) for offset in (-1, 0, 2)),
    math.inf,
    -math.inf,
    -0.0,
    5e-324,
    -5e-324,
    2.2250738585072014e-308,
    1.7976931348623157e308,
    -1.7976931348623157e308,
)

EXTREME_STRINGS: Final = (
    "\x01\x1f",
    "\x7f\x85",
    "\t\r\n",
    "\\",
    "\"'`",
    "e\u0301",
    "\u2028",
    "\ud7ff\ue000",  # the neighbours of the surrogates
    "\uffff",
    "\U00010000",
    "\U0001f4fb",
    "\U0010ffff",
)

strings = (
    st.sampled_from([value for value in DENSE if isinstance(value, str)])
    | st.sampled_from(EXTREME_STRINGS)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
)
ordered_numbers = (
    st.sampled_from([value for value in DENSE if isinstance(value, int | float) and not isinstance(value, bool)])
    | st.sampled_from(EXTREME_NUMBERS)
    | st.integers(INT_MIN, INT_MAX)
    | st.floats(allow_nan=False)
)
# The dense pool twice: about half of all values come from it, so equalities hit.
scalars: st.SearchStrategy[Scalar] = (
    st.sampled_from(DENSE) | st.sampled_from(DENSE) | ordered_numbers | strings | st.booleans()
)

attribute_names = st.sampled_from(ATTRIBUTE_NAMES)
constrained_names = st.sampled_from((*ATTRIBUTE_NAMES, TYPE))
operators = st.sampled_from(Operator)


def values_for(operator: Operator) -> st.SearchStrategy[Scalar | None]:
    """The values that a constraint with this operator may have."""
    if operator is Operator.EXISTS:
        return st.none()
    if operator in STRING_ONLY:
        return strings
    if operator in ORDERING:
        return ordered_numbers | strings
    return scalars


@st.composite
def _constraints(draw: st.DrawFn) -> Constraint:
    operator = draw(operators)
    return Constraint(draw(constrained_names), operator, draw(values_for(operator)))


constraints = _constraints()
conjunctions: st.SearchStrategy[Conjunction] = st.lists(constraints, max_size=4).map(tuple)
filters = st.lists(conjunctions, max_size=4).map(lambda alternatives: Filter(tuple(alternatives)))

event_types = st.sampled_from(("", "a", "ab", "b")) | strings
events = st.builds(
    Event,
    type=event_types,
    attributes=st.dictionaries(attribute_names, st.lists(scalars, min_size=1, max_size=3).map(tuple)),
    body=st.sampled_from((b"", b"\0")),
    id=st.sampled_from((0, 1, INT_MAX)),
)
