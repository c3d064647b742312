import itertools
import math
import sys

import pytest

from roamcast.content.event import INT_MAX, INT_MIN, TYPE, Scalar
from roamcast.content.filter import ORDERING, STRING_ONLY, Constraint, Operator
from roamcast.content.intervals import following, prefix_end, value_set

LAST = "\U0010ffff"
BIG = 2**53
TINY = 5e-324


def implies(given: Constraint, wanted: Constraint) -> bool:
    """Whether `wanted` holds for every event for which `given` holds."""
    narrow, wide = value_set(given), value_set(wanted)
    if not narrow.intervals or (wanted.attribute == TYPE and wide.is_all_strings):
        return True
    return given.attribute == wanted.attribute and narrow.within(wide)


def p(operator: str, value: Scalar | None = None, attribute: str = "p") -> Constraint:
    return Constraint(attribute, Operator(operator), value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, TINY),
        (-TINY, 0),
        (1.0, 1.0000000000000002),
        (BIG - 1, BIG),
        (BIG, BIG + 1),
        (float(BIG), BIG + 1),
        (BIG + 1, BIG + 2),
        (-BIG - 1, -BIG),
        (INT_MAX - 1, INT_MAX),
        (INT_MAX, 2.0**63),
        (2.0**63, 9223372036854777856.0),
        (-9223372036854777856.0, INT_MIN),
        (INT_MIN, INT_MIN + 1),
        (sys.float_info.max, math.inf),
        (-math.inf, -sys.float_info.max),
        (math.inf, None),
        ("", "\0"),
        ("a", "a\0"),
        (False, True),
        (True, None),
    ],
)
def test_the_next_value_of_the_domain(value: Scalar, expected: Scalar | None) -> None:
    assert following(value) == expected


@pytest.mark.parametrize(
    ("prefix", "end"),
    [
        ("a", "b"),
        ("ab", "ac"),
        ("\0", "\x01"),
        ("a" + LAST, "b"),
        ("a" + LAST + LAST, "b"),
        (LAST + "a", LAST + "b"),
        ("\ud7ff", "\ue000"),
        ("", None),
        (LAST, None),
        (LAST + LAST, None),
    ],
)
def test_the_end_of_a_prefix(prefix: str, end: str | None) -> None:
    assert prefix_end(prefix) == end


IMPLIED = [
    # numbers
    (p("=", 5), p("=", 5.0)),
    (p("=", 5), p("!=", 4)),
    (p("=", 5), p("<=", 5)),
    (p("=", 2.5), p("<", 3)),
    (p("<", 3), p("!=", 7)),
    (p("<", 3), p("!=", 3)),
    (p("<", 3), p("<=", 2.9999999999999996)),
    (p(">", 5), p(">=", math.nextafter(5, math.inf))),
    (p(">=", math.nextafter(5, math.inf)), p(">", 5)),
    (p(">", BIG), p(">=", BIG + 1)),
    (p(">=", BIG + 1), p(">", float(BIG))),
    (p("<", BIG + 2), p("<=", BIG + 1)),
    (p("=", BIG + 1), p("!=", float(BIG))),
    (p(">", INT_MAX), p(">=", 2.0**63)),
    (p("<", INT_MIN), p("<=", -9223372036854777856.0)),
    (p("<=", 0.0), p("<=", -0.0)),
    (p(">=", math.inf), p("=", math.inf)),
    (p("<", math.inf), p("!=", math.inf)),
    (p("!=", math.inf), p("<=", sys.float_info.max)),
    (p("<=", -math.inf), p("=", -math.inf)),
    (p("!=", 3), p(">=", -math.inf)),
    # what nothing satisfies implies everything
    (p(">", math.inf), p("=", "x")),
    (p("<", -math.inf), p("=", 1)),
    (p("<", ""), p("=", True, "q")),
    (p("=", 1, TYPE), p("=", "x")),
    # strings
    (p("=", "jazz"), p("^=", "ja")),
    (p("=", "jazz"), p("$=", "zz")),
    (p("=", "jazz"), p("*=", "az")),
    (p("=", "jazz"), p(">", "j")),
    (p("^=", "jazz"), p("^=", "ja")),
    (p("^=", "ja"), p(">=", "ja")),
    (p("^=", "ja"), p("<", "jb")),
    (p("^=", "ja"), p("!=", "jb")),
    (p("^=", "ja"), p("*=", "a")),
    (p("$=", "azz"), p("$=", "zz")),
    (p("$=", "azz"), p("*=", "az")),
    (p("$=", "a"), p("!=", "b")),
    (p("$=", "a"), p("!=", "")),
    (p("$=", "a"), p(">=", "\0")),
    (p("$=", "a"), p(">", "\0\0")),
    (p("$=", "\0\0"), p(">=", "\0\0")),
    (p("*=", "azz"), p("*=", "z")),
    (p("*=", "ab"), p("!=", "ba")),
    (p("*=", "\0"), p(">=", "\0")),
    (p(">", "a"), p(">=", "a\0")),
    (p("<=", "a"), p("<", "a\0")),
    (p("<", "\0"), p("=", "")),
    (p("<", "\0\0"), p("<=", "\0")),
    (p("!=", ""), p(">=", "\0")),
    (p("^=", LAST), p(">=", LAST)),
    (p(">=", LAST), p("^=", LAST)),
    (p(">=", LAST), p("*=", LAST)),
    (p(">", LAST + "a"), p("^=", LAST)),
    (p("^=", "a" + LAST), p("<", "b")),
    (p("^=", "\ud7ff"), p("<", "\ue000")),
    # any string
    (p("*=", ""), p("^=", "")),
    (p("^=", ""), p("$=", "")),
    (p("$=", ""), p(">=", "")),
    (p(">=", ""), p("*=", "")),
    (p("!=", "a"), p("*=", "")),
    (p("$=", "a"), p("^=", "")),
    # bools
    (p("=", True), p("!=", False)),
    (p("!=", True), p("=", False)),
    # exists
    (p("=", 1), p("exists")),
    (p("$=", "a"), p("exists")),
    (p("exists"), p("exists")),
    # the type is always there, and always a string
    (p("=", 1), p("exists", None, TYPE)),
    (p("exists", None, TYPE), p(">=", "", TYPE)),
]

NOT_IMPLIED = [
    (p("=", 5), p("=", 5, "q")),
    (p("=", 5), p("=", 6)),
    (p("=", 5), p("!=", 5.0)),
    (p("=", 1), p("=", True)),
    (p("=", 1), p("!=", "a")),
    (p("=", True), p("=", 1)),
    (p("=", "1"), p("=", 1)),
    (p("<=", 5), p("<", 5)),
    (p(">=", 5), p(">", 5)),
    (p(">", 5), p(">=", 6)),
    (p("<", 3), p("!=", 2)),
    (p("!=", 3), p("<", 3)),
    (p("!=", 3), p("!=", 4)),
    (p("=", BIG + 1), p("=", float(BIG))),
    (p(">", BIG), p(">=", BIG + 2)),
    (p(">", float(BIG)), p("!=", BIG + 1)),
    (p(">", INT_MAX), p(">", 2.0**63)),
    (p(">=", 0), p("<", math.inf)),
    (p(">=", -math.inf), p("!=", math.inf)),
    (p(">=", -math.inf), p("^=", "")),
    (p("^=", "ja"), p("^=", "jazz")),
    (p("^=", "ja"), p("$=", "a")),
    (p("^=", "ja"), p(">", "ja")),
    (p("^=", "ja"), p("!=", "jaz")),
    (p("$=", "zz"), p("$=", "azz")),
    (p("$=", "zz"), p("^=", "z")),
    (p("$=", "a"), p("!=", "ba")),
    (p("$=", "a"), p(">=", "\0a")),
    (p("$=", "\0"), p(">=", "\0\0")),
    (p("$=", "a"), p("<", LAST)),
    (p("*=", "z"), p("$=", "z")),
    (p("*=", "z"), p("^=", "z")),
    (p("*=", "ab"), p("!=", "cabc")),
    (p("*=", "\0"), p(">=", "\0\0")),
    (p(">", "a"), p("^=", "a")),
    (p(">=", "a"), p("*=", "a")),
    (p(">", "a"), p(">=", "aa")),
    (p("<", "b"), p("<=", "a" + LAST)),
    (p("<", "\0\0"), p("=", "")),
    (p(">=", ""), p("!=", "")),
    (p("^=", "a" + LAST), p("<", "a" + LAST + LAST)),
    (p(">=", "a" + LAST), p("*=", LAST)),
    (p("exists"), p("^=", "")),
    (p("exists"), p("*=", "")),
    (p("exists"), p("!=", 1)),
    (p("exists"), p(">=", -math.inf)),
    (p("=", True), p("=", False)),
    (p("!=", True), p("=", True)),
    (p("exists", None, TYPE), p("!=", "", TYPE)),
    (p("exists", None, TYPE), p("exists")),
]


@pytest.mark.parametrize(("given", "wanted"), IMPLIED, ids=repr)
def test_implied(given: Constraint, wanted: Constraint) -> None:
    assert implies(given, wanted)


@pytest.mark.parametrize(("given", "wanted"), NOT_IMPLIED, ids=repr)
def test_not_implied(given: Constraint, wanted: Constraint) -> None:
    assert not implies(given, wanted)


def test_the_one_implication_between_string_constraints_that_is_not_seen() -> None:
    # At or above "\U0010fffe\U0010ffff" a string begins with that or with U+10FFFF: it contains U+10FFFF either way.
    assert not implies(p(">=", "\U0010fffe" + LAST), p("*=", LAST))


def words(alphabet: str, longest: int) -> list[str]:
    return ["".join(word) for length in range(longest + 1) for word in itertools.product(alphabet, repeat=length)]


def constraints_over(values: list[Scalar]) -> list[Constraint]:
    return [p("exists")] + [
        Constraint("p", operator, value)
        for value in values
        for operator in Operator
        if operator is not Operator.EXISTS
        and (isinstance(value, str) or operator not in STRING_ONLY)
        and (not isinstance(value, bool) or operator not in ORDERING)
    ]


# A universe must tell apart all that the bounds can: a character below, between and above those of the bounds, two
# characters more than the longest bound, and the neighbours of every number.
NUMBERS: list[int | float] = [half / 2 for half in range(-6, 7)]
NUMBERS += [*range(-3, 4), -math.inf, math.inf]
BETWEEN_NUMBERS = [math.nextafter(number, way) for number in NUMBERS for way in (-math.inf, math.inf)]
UNIVERSES: dict[str, tuple[list[Scalar], list[Scalar]]] = {
    "all kinds": (
        [*words("\0ab", 2), *NUMBERS, True, False],
        [*words("\0abc", 4), *NUMBERS, *BETWEEN_NUMBERS, True, False],
    ),
    "the last character": ([*words("\0a" + LAST, 2)], [*words("\0a\U0010fffe" + LAST, 4), 0]),
}


@pytest.mark.parametrize("name", UNIVERSES)
def test_implication_is_exactly_inclusion(name: str) -> None:
    bounds, universe = UNIVERSES[name]
    pool = constraints_over(bounds)
    accepted = [{position for position, value in enumerate(universe) if one.accepts(value)} for one in pool]
    wrong = [
        (given, wanted)
        for given, narrow in zip(pool, accepted, strict=True)
        for wanted, wide in zip(pool, accepted, strict=True)
        if implies(given, wanted) != (narrow <= wide)
    ]
    assert wrong == []
