import pytest

from roamcast.content.clauses import Clause, clause_of, join, satisfiable
from roamcast.content.event import TYPE, Scalar
from roamcast.content.filter import Constraint, Operator

Short = tuple[str, str] | tuple[str, str, Scalar]


def made(*constraints: Short) -> tuple[Constraint, ...]:
    return tuple(Constraint(attribute, Operator(operator), *value) for attribute, operator, *value in constraints)


def clause(*constraints: Short) -> Clause:
    return satisfiable(made(*constraints))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([("p", ">", 5), ("p", ">", 3)], [("p", ">", 5)]),
        ([("p", "exists"), ("p", "<", 3)], [("p", "<", 3)]),
        ([("p", "=", 1.0), ("q", "<", 2.5)], [("p", "=", 1), ("q", "<", 2.5)]),
        # different values may satisfy these
        ([("p", ">", 10), ("p", "<", 5)], [("p", "<", 5), ("p", ">", 10)]),
        ([("p", "=", 1), ("p", "=", 2)], [("p", "=", 1), ("p", "=", 2)]),
        ([(TYPE, "exists"), (TYPE, "*=", "")], []),
    ],
)
def test_a_clause_has_no_redundant_constraint(given: list[Short], expected: list[Short]) -> None:
    assert clause(*given).conjunction == made(*expected)


def test_an_equal_integer_is_spelt_in_one_way() -> None:
    assert type(clause(("p", "=", 1.0)).conjunction[0].value) is int


@pytest.mark.parametrize("impossible", [("p", ">", float("inf")), ("p", "<", ""), (TYPE, "=", 1)])
def test_what_nothing_satisfies_is_no_clause(impossible: Short) -> None:
    assert clause_of(made(("q", "=", 1), impossible)) is None


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([("p", "<", 5)], [("p", "<", 9)], [("p", "<", 9)]),
        ([("p", "=", 3)], [("p", "=", 8)], [("p", "<=", 8), ("p", ">=", 3)]),
        ([("p", ">=", 1), ("p", "<=", 5)], [("p", ">=", 4), ("p", "<=", 9)], [("p", "<=", 9), ("p", ">=", 1)]),
        ([("p", "=", 3)], [("p", ">", 4), ("p", "<=", 9)], [("p", "<=", 9), ("p", ">=", 3)]),
        ([("p", "<", 5)], [("p", "=", 5)], [("p", "<=", 5)]),
        ([("p", "<", 7)], [("p", ">", 7)], [("p", "!=", 7)]),
        ([("p", "<", 7)], [("p", ">", 8)], [("p", ">=", float("-inf"))]),
        ([("p", "=", 1), ("q", "=", 1)], [("p", "=", 1), ("r", "=", 1)], [("p", "=", 1)]),
        ([("p", "=", 1)], [("q", "=", 1)], []),
        ([("p", "=", 1)], [("p", "=", "a")], [("p", "exists")]),
        ([("p", "=", True)], [("p", "=", False)], [("p", "exists")]),
        ([("p", "=", "java")], [("p", "^=", "jazz")], [("p", "^=", "ja")]),
        (
            [("p", "=", "a.png")],
            [("p", "=", "b.png")],
            [("p", "<=", "b.png"), ("p", ">=", "a.png"), ("p", "$=", ".png")],
        ),
        ([("p", "$=", ".png")], [("p", "$=", ".jpg")], [("p", "$=", "g")]),
        ([("p", "*=", "rock")], [("p", "=", "sock")], [("p", "*=", "ock")]),
        ([("p", "*=", "rock")], [("p", "*=", "jazz")], [("p", ">=", "")]),
        ([("p", "^=", "a")], [("p", ">=", "b")], [("p", ">=", "a")]),
    ],
)
def test_a_join_is_as_tight_as_single_constraints_can_be(
    one: list[Short], other: list[Short], expected: list[Short]
) -> None:
    assert join(clause(*one), clause(*other)).conjunction == made(*expected)
    assert join(clause(*other), clause(*one)).conjunction == made(*expected)
