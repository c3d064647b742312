import math
import operator
from collections.abc import Callable

import pytest
from hypothesis import given, settings

from content.strategies import constraints, events, filters
from examples import examples
from roamcast.content.event import INT_MAX, INT_MIN, TYPE, Event, Scalar
from roamcast.content.filter import EVERYTHING, NOTHING, Constraint, Filter, Operator
from roamcast.content.rows import EventRow, FilterRow, event_rows, filter_rows

TYPES = {"int": int, "float": float, "str": str, "bool": bool}
COMPARE: dict[str, Callable[..., bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "^=": str.startswith,
    "$=": str.endswith,
    "*=": operator.contains,
}
BIG = 2**53


def cell(row: FilterRow | EventRow) -> Scalar:
    """The value of the column of the row's kind, which must be the only one that is set."""
    cells = {"int": row.integer, "float": row.real, "str": row.text, "bool": row.flag}
    value = cells[row.kind]
    assert value is not None
    assert type(value) is TYPES[row.kind]
    assert [kind for kind, other in cells.items() if other is not None] == [row.kind]
    return value


def satisfied(row: FilterRow, value: EventRow) -> bool:
    """One pair of the join: the same attribute, the same machine type, and the comparison."""
    if row.attribute != value.attribute or row.kind not in ("any", value.kind):
        return False
    if row.operator == "exists":
        assert (row.integer, row.real, row.text, row.flag) == (None, None, None, None)
        return True
    return COMPARE[row.operator](cell(value), cell(row))


def joined(filter: Filter, event: Event) -> bool:
    """The join and the count as an engine would do them, one row at a time."""
    values = list(event_rows(event))
    needed: dict[int, int] = {}
    found: dict[int, set[int]] = {}
    for row in filter_rows(7, filter):
        assert row.subscription == 7
        assert needed.setdefault(row.conjunction, row.needed) == row.needed
        for value in values:
            if satisfied(row, value):
                found.setdefault(row.conjunction, set()).add(row.constraint)
    return any(len(found.get(number, ())) == count for number, count in needed.items())


@settings(max_examples=examples(600))
@given(filters, events)
def test_the_join_agrees_with_matching(filter: Filter, event: Event) -> None:
    assert joined(filter, event) == filter.matches(event)


@settings(max_examples=examples(600))
@given(constraints, events)
def test_the_join_agrees_with_matching_one_constraint(constraint: Constraint, event: Event) -> None:
    # The same constraint on every attribute of the event: most pairs meet on a value.
    for attribute in (TYPE, *event.attributes):
        filter = Filter.where(attribute, constraint.operator, constraint.value)
        assert joined(filter, event) == filter.matches(event)


EXTREMES: list[int | float] = [
    *(sign * (BIG + offset) for sign in (1, -1) for offset in (-1, 0, 1, 2, 3)),
    *(float(sign * (BIG + offset)) for sign in (1, -1) for offset in (-1, 0, 2)),
    *(INT_MIN, INT_MIN + 1, INT_MAX - 1, INT_MAX, float(INT_MIN), float(INT_MAX)),
    *(math.nextafter(2.0**63, 0), math.nextafter(-(2.0**63), -math.inf), math.inf, -math.inf),
    *(-1, 0, 1, 2, 3, -2.5, -0.5, -0.0, 0.5, 2.5, 5e-324, -5e-324, 1e300, -1e300),
]


@pytest.mark.parametrize("comparison", [name for name in Operator if name in ("=", "!=", "<", "<=", ">", ">=")])
def test_numbers_at_every_edge_of_both_machine_types(comparison: Operator) -> None:
    wrong = [
        (bound, value)
        for bound in EXTREMES
        for value in EXTREMES
        if joined(Filter.where("p", comparison, bound), Event.of("t", {"p": value}))
        != Filter.where("p", comparison, bound).matches(Event.of("t", {"p": value}))
    ]
    assert wrong == []


def shapes(comparison: str, value: Scalar | None = None) -> list[tuple[str, str, object]]:
    """Operator, kind and value of each row of a single constraint."""
    return [
        (row.operator, row.kind, None if row.operator == "exists" else cell(row))
        for row in filter_rows(1, Filter.where("p", comparison, value))
    ]


@pytest.mark.parametrize(
    ("comparison", "value", "expected"),
    [
        ("<", 20, [("<", "int", 20), ("<", "float", 20.0)]),
        ("<", 2.5, [("<=", "int", 2), ("<", "float", 2.5)]),
        (">=", -2.5, [(">=", "int", -2), (">=", "float", -2.5)]),
        ("=", 2.5, [("=", "float", 2.5)]),
        ("!=", 2.5, [("exists", "int", None), ("!=", "float", 2.5)]),
        ("=", BIG + 1, [("=", "int", BIG + 1)]),
        ("!=", BIG + 1, [("!=", "int", BIG + 1), ("exists", "float", None)]),
        ("<", BIG + 1, [("<", "int", BIG + 1), ("<=", "float", float(BIG))]),
        (">", BIG + 1, [(">", "int", BIG + 1), (">=", "float", float(BIG + 2))]),
        (">=", INT_MAX, [(">=", "int", INT_MAX), (">=", "float", 2.0**63)]),
        ("<", math.inf, [("exists", "int", None), ("<", "float", math.inf)]),
        (">=", math.inf, [(">=", "float", math.inf)]),
        ("<=", -1e300, [("<=", "float", -1e300)]),
        (">", -1e300, [("exists", "int", None), (">", "float", -1e300)]),
        ("^=", "a", [("^=", "str", "a")]),
        ("!=", True, [("!=", "bool", True)]),
        ("exists", None, [("exists", "any", None)]),
    ],
)
def test_the_rows_of_one_constraint(comparison: str, value: Scalar | None, expected: list[object]) -> None:
    assert shapes(comparison, value) == expected


def test_a_zero_has_no_sign() -> None:
    rows: list[FilterRow | EventRow] = [
        *filter_rows(1, Filter.where("p", "=", -0.0)),
        *event_rows(Event.of("t", {"p": -0.0})),
    ]
    assert [math.copysign(1, row.real) for row in rows if row.real is not None] == [1, 1]


def test_the_rows_of_a_filter_and_of_an_event() -> None:
    filter = Filter.where("p", "<", 2.5) & Filter.where("q", "exists") | Filter.where("a", "=", "x")
    assert list(filter_rows(3, filter)) == [
        FilterRow(3, 0, 1, 0, "a", "=", "str", text="x"),
        FilterRow(3, 1, 2, 0, "p", "<=", "int", integer=2),
        FilterRow(3, 1, 2, 0, "p", "<", "float", real=2.5),
        FilterRow(3, 1, 2, 1, "q", "exists", "any"),
    ]
    assert list(event_rows(Event.of("alarm", {"p": [1, 2.5], "q": True}, id=9))) == [
        EventRow(9, TYPE, "str", text="alarm"),
        EventRow(9, "p", "int", integer=1),
        EventRow(9, "p", "float", real=2.5),
        EventRow(9, "q", "bool", flag=True),
    ]


def test_always_and_never() -> None:
    assert list(filter_rows(3, EVERYTHING)) == [FilterRow(3, 0, 1, 0, TYPE, "exists", "any")]
    assert list(filter_rows(3, NOTHING)) == []
    impossible = Filter.where("p", "=", 1) & Filter.where("q", ">", math.inf)
    assert {row.needed for row in filter_rows(3, impossible)} == {2}
    assert not joined(impossible, Event.of("t", {"p": 1, "q": math.inf}))
