"""The rules of matching, case by case."""

import functools
import math
import operator

import msgspec
import pytest

from roamcast.content.event import INT_MAX, INT_MIN, TYPE, Event, Scalar
from roamcast.content.filter import EVERYTHING, MAX_CONSTRAINTS, NOTHING, Constraint, Filter, Operator
from roamcast.errors import ContentError

CASES: list[tuple[Scalar, str, Scalar | None, bool]] = [
    # value in the event, operator, value in the filter, does it hold
    (5, "=", 5, True),
    (5, "=", 5.0, True),
    (5.0, "=", 5, True),
    (5, "!=", 5.0, False),
    (5, "!=", 6, True),
    (5, "<", 5, False),
    (5, "<=", 5, True),
    (4.999, "<", 5, True),
    (5, ">", 5, False),
    (5, ">=", 5.0, True),
    # exact, also where a double cannot tell the two apart
    (2**53 + 1, "=", float(2**53), False),
    (2**53 + 1, ">", float(2**53), True),
    (INT_MAX, "<", 2.0**63, True),
    (INT_MAX, "=", 2.0**63, False),
    (INT_MIN, "=", -(2.0**63), True),
    # infinities are numbers above and below all others
    (math.inf, ">", INT_MAX, True),
    (math.inf, "=", math.inf, True),
    (math.inf, ">", math.inf, False),
    (-math.inf, "<", INT_MIN, True),
    (1.7e308, "<", math.inf, True),
    (-0.0, "=", 0, True),
    (-0.0, "<", 0.0, False),
    # unlike types: never, and never an error
    ("5", "=", 5, False),
    ("5", "!=", 5, False),
    (5, "!=", "5", False),
    ("a", "<", 5, False),
    (5, ">", "a", False),
    (True, "=", 1, False),
    (True, "!=", 1, False),
    (1, "=", True, False),
    (True, ">", 0, False),
    (True, "<", "z", False),
    (5, "^=", "5", False),
    (True, "*=", "", False),
    # bools
    (True, "=", True, True),
    (True, "!=", False, True),
    (False, "!=", False, False),
    # strings, by code point, never normalised
    ("jazz", "=", "jazz", True),
    ("jazz", "=", "Jazz", False),
    ("Zebra", "<", "apple", True),
    ("", "<", "\0", True),
    ("", "=", "", True),
    ("a", "<", "a\0", True),
    ("\uffff", "<", "\U00010000", True),
    ("\u00e9", "=", "e\u0301", False),
    ("Evans", "^=", "Ev", True),
    ("Evans", "^=", "ev", False),
    ("Evans", "^=", "", True),
    ("", "^=", "", True),
    ("Ev", "^=", "Evans", False),
    ("Evans", "$=", "ans", True),
    ("Evans", "$=", "an", False),
    ("Evans", "*=", "van", True),
    ("Evans", "*=", "", True),
    ("a\nb", "*=", "\n", True),
    # exists asks for nothing but presence
    (False, "exists", None, True),
    ("", "exists", None, True),
]


@pytest.mark.parametrize(("value", "relation", "bound", "expected"), CASES)
def test_one_value_against_one_constraint(value: Scalar, relation: str, bound: Scalar | None, expected: bool) -> None:
    assert Filter.where("a", relation, bound).matches(Event.of("T", {"a": value})) is expected


@pytest.mark.parametrize("operator", [o for o in Operator if o is not Operator.EXISTS])
def test_a_missing_attribute_satisfies_nothing(operator: str) -> None:
    assert not Filter.where("a", operator, "").matches(Event.of("T", {"b": ""}))


def test_one_of_several_values_is_enough_for_each_constraint() -> None:
    event = Event.of("T", {"p": [2, 7, "x"]})
    assert Filter.where("p", "=", 7).matches(event)
    assert Filter.where("p", "!=", 7).matches(event)
    assert (Filter.where("p", ">", 5) & Filter.where("p", "<", 3)).matches(event)
    assert (Filter.where("p", "^=", "x") & Filter.where("p", "<", 3)).matches(event)
    assert not Filter.where("p", ">", 7).matches(event)


def test_the_type_is_matched_like_an_attribute() -> None:
    assert Filter.where(TYPE, "=", "CD").matches(Event.of("CD"))
    assert not Filter.where(TYPE, "=", "CD").matches(Event.of("DVD"))
    assert Filter.where(TYPE, "exists").matches(Event.of(""))


def test_and_or_everything_nothing() -> None:
    jazz, cheap, evans = (
        Filter.where("category", "=", "jazz"),
        Filter.where("price", "<", 20),
        Filter.where("composer", "^=", "Ev"),
    )
    wanted = jazz & (cheap | evans)
    assert wanted.matches(Event.of("CD", {"category": "jazz", "price": 18.0}))
    assert wanted.matches(Event.of("CD", {"category": "jazz", "price": 30.0, "composer": "Evans"}))
    assert not wanted.matches(Event.of("CD", {"category": "jazz", "price": 30.0}))
    assert not wanted.matches(Event.of("CD", {"category": "pop", "price": 18.0}))
    assert EVERYTHING.matches(Event.of(""))
    assert not NOTHING.matches(Event.of(""))
    assert wanted & EVERYTHING == wanted
    assert wanted & NOTHING == NOTHING
    assert wanted | NOTHING == wanted


def test_order_and_repetition_do_not_matter() -> None:
    a, b = Filter.where("a", "=", 1), Filter.where("b", "=", "x")
    assert a & b & a == b & a
    assert (a | b) | a == b | a


def test_true_and_one_are_different_constraints() -> None:
    flag, number = Constraint("a", Operator.EQ, True), Constraint("a", Operator.EQ, 1)
    assert flag != number
    assert len({flag, number, Constraint("a", Operator.EQ, 1.0)}) == 2
    assert len(Filter(((flag,), (number,))).alternatives) == 2


def test_a_filter_survives_the_wire() -> None:
    wanted = Filter.where("a", "<=", 1.5) & Filter.where("b", "exists") | Filter.where("c", "$=", "\U0010ffff")
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(wanted), type=Filter) == wanted


@pytest.mark.parametrize(
    ("operator", "value", "complaint"),
    [
        (Operator.EXISTS, 1, "'exists' takes no value, not 1"),
        (Operator.LT, None, "'<' needs a value to compare with"),
        (Operator.LT, True, "'<' has no meaning for True: bools have no order"),
        (Operator.PREFIX, 5, r"'\^=' looks at strings, not at 5"),
        (Operator.EQ, math.nan, "the value compared with 'a' is NaN"),
        (Operator.EQ, 2**63, "beyond 64 bits"),
        (Operator.EQ, "\ud800", "lone surrogate"),
    ],
)
def test_constraints_that_cannot_exist(operator: Operator, value: Scalar | None, complaint: str) -> None:
    with pytest.raises(ContentError, match=complaint):
        Constraint("a", operator, value)


def test_an_unknown_operator_is_named() -> None:
    with pytest.raises(ContentError, match="'=~' is not an operator; there are = != < <= > >= "):
        Filter.where("a", "=~", "x")


def test_an_explosion_of_alternatives_is_refused() -> None:
    either = [Filter.where(f"x{n}", "=", 0) | Filter.where(f"x{n}", "=", 1) for n in range(40)]
    with pytest.raises(ContentError, match=f"at most {MAX_CONSTRAINTS}"):
        functools.reduce(operator.and_, either)
