"""Contexts: what they say, which hosts they hold for, where they may be used, and what is refused."""

import contextlib
import math
import operator as python_operators
import statistics
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from content.strategies import ATTRIBUTE_NAMES, ordered_numbers, scalars, strings
from examples import examples
from roamcast.content.context.evaluate import evaluate, holds
from roamcast.content.context.expression import (
    MAX_DEPTH,
    MAX_SIZE,
    Aggregate,
    And,
    Context,
    Exists,
    Expression,
    ExpressionNode,
    Function,
    HostComparison,
    Not,
    Or,
    Scope,
    Within,
    depth,
    size,
)
from roamcast.content.context.host import HostView, Situation
from roamcast.content.context.rules import (
    PUBLICATION_DOMAIN,
    check_domain,
    check_interest,
    check_relevance,
    query_distance,
    region_of,
)
from roamcast.content.context.text import parse_context
from roamcast.content.event import Scalar
from roamcast.content.filter import ORDERING, STRING_ONLY, Operator
from roamcast.content.region import MAX_RADIUS, Circle, Polygon, Rectangle, Region
from roamcast.content.tokens import MAX_LENGTH
from roamcast.errors import ContentError, SyntaxProblem

decoder: Final = msgspec.msgpack.Decoder(Context)


def is_(left: str | Aggregate, symbol: str, right: Scalar | Aggregate) -> HostComparison:
    return HostComparison(left, Operator(symbol), right)


A, B, C = is_("a", "=", 1), is_("b", "<", 2.5), Exists("c")
SQUARE: Final = Rectangle(0, 0, 100, 50)


# What a text says


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("true", And(())),
        ("false", Or(())),
        ("exists c", C),
        ("a = 1 or b < 2.5 and exists c", Or((A, And((B, C))))),
        ("a = 1 and b < 2.5 or exists c", Or((And((A, B)), C))),
        ("a = 1 and b < 2.5 and exists c", And((A, B, C))),
        ("a = 1 and (b < 2.5 and exists c)", And((A, And((B, C))))),
        ("(a = 1 or b < 2.5) and exists c", And((Or((A, B)), C))),
        ("((a = 1))", A),
        ("not a = 1 and b < 2.5", And((Not(A), B))),
        ("not (a = 1 and b < 2.5)", Not(And((A, B)))),
        ("not not a=1", Not(Not(A))),
        ("not(a = 1)", Not(A)),
        ("within(rect(0, 0, 100, 50))", Within(SQUARE)),
        ("within ( rect(0,0,1e2,+50) )", Within(SQUARE)),
        ("within(circle(-5, .5, 7))", Within(Circle(-5, 0.5, 7))),
        ("within(polygon(0 0, 10 0, 5 5))", Within(Polygon(((0, 0), (10, 0), (5, 5))))),
        ("speed > max(neighbours.speed)", is_("speed", ">", Aggregate(Function.MAX, "speed"))),
        ("count(neighbours) >= 3", is_(Aggregate(Function.COUNT), ">=", 3)),
        ("min(neighbours.distance) < 20", is_(Aggregate(Function.MIN, "distance"), "<", 20)),
        (
            'count(neighbours within 50 where heading = "east" or not a = 1) = 0',
            is_(Aggregate(Function.COUNT, within=50, where=Or((is_("heading", "=", "east"), Not(A)))), "=", 0),
        ),
        (
            "mean(hosts.`x y` within 500) != mean(neighbours.a.b)",
            is_(Aggregate(Function.MEAN, "x y", Scope.HOSTS, 500), "!=", Aggregate(Function.MEAN, "a.b")),
        ),
        # Words only in their places
        ("count = 3", is_("count", "=", 3)),
        ("within = 3 and where = 1", And((is_("within", "=", 3), is_("where", "=", 1)))),
        ("max(neighbours.max where neighbours = 1) = inf",
         is_(Aggregate(Function.MAX, "max", where=is_("neighbours", "=", 1)), "=", math.inf)),
        ("type = 'car'", is_("type", "=", "car")),
        ("`not` = true", is_("not", "=", True)),
    ],
)  # fmt: skip
def test_what_a_text_says(text: str, meaning: Expression) -> None:
    assert parse_context(text) == Context(meaning)


def test_a_region_reads_back() -> None:
    for region in (SQUARE, Circle(1, 2.5, 3e-7), Polygon(((0, 0), (10, 0), (5, 5)))):
        assert parse_context(f"within({region})") == Context(Within(region))


def test_printing_keeps_the_parentheses_that_matter() -> None:
    text = "not (a = 1 and b = 2) and (c = 3 or d = 4) or e = 5 and not f = 6"
    assert str(parse_context(text)) == text
    assert str(parse_context("((a = 1) or ((b = 2) and (c = 3)))")) == "a = 1 or b = 2 and c = 3"
    assert str(parse_context("count( neighbours  where(a=1))>=3")) == "count(neighbours where a = 1) >= 3"


# Which hosts it holds for

CAR: Final = HostView((10, 20), (3, 4), {"heading": "east", "occupants": 1, "braking": False, "road": "E40"})
AHEAD: Final = HostView((40, 60), (2, 0), {"heading": "east", "occupants": 2})  # 50 m away, 2 m/s
BESIDE: Final = HostView((10, 26), (0, -9), {"heading": "west", "occupants": 4.5, "fuel": "low"})  # 6 m away, 9 m/s
LOST: Final = HostView(None, None, {"heading": "east", "occupants": "many", "speed": 1})


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("true", True),
        ("false", False),
        # Individual
        ("within(rect(0, 0, 100, 50))", True),
        ("within(rect(0, 0, 9.9, 50))", False),
        ("x = 10 and y = 20 and speed = 5", True),
        ("x >= 10.5", False),
        ('heading = "east" and occupants < 2', True),
        ('heading ^= "ea" and heading $= "st" and heading *= "as"', True),
        ("occupants = 1.0", True),
        ("occupants = true", False),
        ("braking = false", True),
        ("braking != 0", False),
        ('occupants != "1"', False),
        ("exists road and exists x and exists speed", True),
        ("exists fuel", False),
        ("fuel = 1 or fuel != 1", False),
        ("not fuel = 1", True),
        ("distance < 1000", False),
        # Relational
        ("count(neighbours) = 3", True),
        ("count(neighbours within 50) = 2", True),
        ("count(neighbours within 49.9) = 1", True),
        ('count(neighbours where heading = "east") = 2', True),
        ('count(neighbours within 50 where heading = "east") = 1', True),
        ("count(neighbours where distance < 50) = 1", True),
        ("count(neighbours where within(circle(10, 26, 1))) = 1", True),
        ("count(neighbours where not exists fuel) = 2", True),
        ("count(neighbours where false) = 0", True),
        ("speed > max(neighbours.speed)", False),
        ("speed > max(neighbours.speed where heading = 'east')", True),
        ("speed > mean(neighbours.speed)", True),
        ("mean(neighbours.speed) = 4", True),
        ("min(neighbours.speed) = 1", True),
        ("min(neighbours.distance) = 6", True),
        ("max(neighbours.distance) <= 50", True),
        ("mean(neighbours.distance) = 28", True),
        ("max(neighbours.occupants) = 4.5 and min(neighbours.occupants) = 2", True),
        ("max(neighbours.heading) > 0", False),
        ("not max(neighbours.heading) > 0", True),
        ("min(neighbours.y) = 26 and max(neighbours.x) = 40", True),
        ("min(neighbours.speed within 5) > 0", False),
        ("not min(neighbours.speed within 5) > 0", True),
        ("min(neighbours.speed within 5) = min(neighbours.speed within 5)", False),
        ("count(neighbours) > count(neighbours within 50)", True),
        ("heading = max(neighbours.speed)", False),
    ],
)
def test_which_hosts_it_holds_for(text: str, truth: bool) -> None:
    assert evaluate(parse_context(text), Situation(CAR, (AHEAD, BESIDE, LOST))) is truth


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("within(rect(-1e9, -1e9, 1e9, 1e9))", False),
        ("not within(rect(-1e9, -1e9, 1e9, 1e9))", True),
        ("exists x", False),
        ("speed = 1", True),
        ("count(neighbours within 1e9) = 0", True),
        ("count(neighbours) = 1", True),
        ("min(neighbours.distance) >= 0", False),
    ],
)
def test_a_host_that_does_not_know_where_it_is(text: str, truth: bool) -> None:
    assert evaluate(parse_context(text), Situation(LOST, (CAR,))) is truth


def test_what_is_measured_hides_an_attribute_of_that_name() -> None:
    host = HostView((1, 2), (3, 4), {"x": "far", "speed": 99, "distance": -1})
    assert (host.value("x"), host.value("y"), host.value("speed")) == (1, 2, 5)
    assert holds(parse_context("distance = -1"), Situation(host))
    assert holds(parse_context("min(neighbours.distance) = 0"), Situation(host, (host,)))


@pytest.mark.parametrize(
    ("numbers", "mean"),
    [
        ((1, 2), 1.5),
        ((1.7e308, 1.7e308, 1.7e308), 1.7e308),
        ((1.7e308, 1.7e308, -1.7e308, -1.7e308), 0),
        ((2**63 - 1, 2**63 - 1), float(2**63)),
        ((1e100, 1.0, -1e100), 1 / 3),
        ((5e-324, 5e-324), 5e-324),
        ((math.inf, 1), math.inf),
        ((-math.inf, -math.inf), -math.inf),
        ((math.inf, -math.inf), None),
    ],
)
def test_means(numbers: tuple[int | float, ...], mean: float | None) -> None:
    hosts = [HostView(attributes={"n": number}) for number in numbers]
    for order in (hosts, hosts[::-1]):
        for symbol in ("<", "=", ">"):
            expected = mean is not None and symbol == "="
            comparison = Context(is_(Aggregate(Function.MEAN, "n"), symbol, 0 if mean is None else mean))
            assert holds(comparison, Situation(CAR, order)) == expected


@pytest.mark.parametrize(
    ("text", "unasked", "asked"),
    [
        ("count(hosts within 500) >= 1", None, True),
        ("not count(hosts within 500) >= 1", None, False),
        ("count(hosts within 500) >= 1 and occupants = 9", False, False),
        ("count(hosts within 500) >= 1 and occupants = 1", None, True),
        ("count(hosts within 500) >= 1 or occupants = 1", True, True),
        ("count(hosts within 500) >= 9 or occupants = 9", None, False),
        ("count(neighbours) = count(hosts within 500)", None, False),
        ("fuel > max(hosts.fuel within 5)", False, False),
        ("min(neighbours.speed) > max(hosts.fuel within 5)", False, False),
    ],
)
def test_hosts_that_nobody_has_asked(text: str, unasked: bool | None, asked: bool) -> None:
    context = parse_context(text)
    assert evaluate(context, Situation(CAR)) is unasked
    assert holds(context, Situation(CAR)) == (unasked is True)
    assert evaluate(context, Situation(CAR, (), (AHEAD, BESIDE))) is asked


# Generated contexts, against sets of hosts

ATTRIBUTES: Final = ("speed", "x", "y", "distance", "count", *ATTRIBUTE_NAMES)
names = st.sampled_from(ATTRIBUTES)
small = st.integers(-3, 3)
regions: st.SearchStrategy[Region] = (
    st.builds(lambda x, y, w, h: Rectangle(x, y, x + w, y + h), small, small, st.integers(1, 4), st.integers(1, 4))
    | st.builds(Circle, small, small, st.integers(1, 4) | st.floats(1e-3, 4))
    | st.builds(lambda x, y: Polygon(((x, y), (x + 3, y), (x + 3, y + 2), (x + 1, y + 1))), small, small)
)


@st.composite
def _comparisons(draw: st.DrawFn) -> HostComparison:
    operator = draw(st.sampled_from([operator for operator in Operator if operator is not Operator.EXISTS]))
    if operator in STRING_ONLY:
        return HostComparison(draw(names), operator, draw(strings))
    return HostComparison(draw(names), operator, draw(ordered_numbers | strings if operator in ORDERING else scalars))


individual: st.SearchStrategy[Expression] = st.builds(Within, regions) | st.builds(Exists, names) | _comparisons()


def combined(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(parts, max_size=3).filter(lambda given: len(given) != 1).map(tuple)
    return st.builds(Not, parts) | st.builds(And, several) | st.builds(Or, several)


wheres = st.recursive(individual, combined, max_leaves=3)


@st.composite
def _aggregates(draw: st.DrawFn) -> Aggregate:
    function, scope = draw(st.sampled_from(Function)), draw(st.sampled_from(Scope))
    within = draw(st.integers(1, 5) | st.floats(0.1, 5))
    return Aggregate(
        function,
        None if function is Function.COUNT else draw(names),
        scope,
        draw(st.none() | st.just(within)) if scope is Scope.NEIGHBOURS else within,
        draw(st.none() | wheres),
    )


aggregates = _aggregates()
numeric = st.sampled_from([Operator.EQ, Operator.NE, *sorted(ORDERING)])
relational: st.SearchStrategy[Expression] = st.builds(HostComparison, names, numeric, aggregates) | st.builds(
    HostComparison, aggregates, numeric, small | ordered_numbers | aggregates
)
contexts = st.recursive(individual | relational, combined, max_leaves=6).map(Context)

hosts = st.builds(
    HostView,
    st.none() | st.tuples(small, small) | st.tuples(st.floats(-3, 3), st.floats(-3, 3)),
    st.none() | st.tuples(small, small),
    st.dictionaries(names, small | scalars, max_size=4),
)

COMPARE: Final[dict[str, Callable[[Scalar, Scalar], bool]]] = {
    "=": python_operators.eq,
    "!=": python_operators.ne,
    "<": python_operators.lt,
    "<=": python_operators.le,
    ">": python_operators.gt,
    ">=": python_operators.ge,
    "^=": lambda value, bound: str(value).startswith(str(bound)),
    "$=": lambda value, bound: str(value).endswith(str(bound)),
    "*=": lambda value, bound: str(bound) in str(value),
}


def is_number(value: Scalar | None) -> bool:
    return type(value) in (int, float)


class Model:
    """The context as the paper has it: the set of those hosts, by number, that it selects from a configuration.

    All hosts are neighbours of each other. `viewer` is the host whose group the others are, inside of a `where`.
    """

    def __init__(self, hosts: list[HostView]) -> None:
        self.hosts = hosts
        self.everybody = frozenset(range(len(hosts)))

    def apart(self, one: int, other: int) -> float | None:
        a, b = self.hosts[one].location, self.hosts[other].location
        return None if a is None or b is None else math.hypot(a[0] - b[0], a[1] - b[1])

    def value(self, host: int, name: str, viewer: int | None) -> Scalar | None:
        view = self.hosts[host]
        if name == "distance" and viewer is not None and (apart := self.apart(viewer, host)) is not None:
            return apart
        if name in ("x", "y") and view.location is not None:
            return dict(zip("xy", view.location, strict=True))[name]
        if name == "speed" and view.velocity is not None:
            return math.hypot(*view.velocity)
        return view.attributes.get(name)

    def selected(self, node: Expression, viewer: int | None = None) -> frozenset[int]:
        match node:
            case And():
                return self.everybody.intersection(*(self.selected(part, viewer) for part in node.parts))
            case Or():
                return frozenset().union(*(self.selected(part, viewer) for part in node.parts))
            case Not():
                return self.everybody - self.selected(node.part, viewer)
            case Within():
                located = {h: self.hosts[h].location for h in self.everybody}
                return frozenset(h for h, place in located.items() if place and node.region.contains(*place))
            case Exists():
                return frozenset(h for h in self.everybody if self.value(h, node.attribute, viewer) is not None)
            case HostComparison():
                return frozenset(h for h in self.everybody if self.compared(node, h, viewer))

    def compared(self, node: HostComparison, host: int, viewer: int | None) -> bool:
        left = self.number(node.left, host) if isinstance(node.left, Aggregate) else self.value(host, node.left, viewer)
        right = self.number(node.right, host) if isinstance(node.right, Aggregate) else node.right
        if left is None or right is None:
            return False
        alike = type(left) is type(right) or (is_number(left) and is_number(right))
        return alike and COMPARE[node.operator](left, right)

    def number(self, aggregate: Aggregate, host: int) -> int | float | None:
        group = [other for other in self.everybody if other != host]
        if aggregate.within is not None:
            apart = {other: self.apart(host, other) for other in group}
            group = [other for other in group if (far := apart[other]) is not None and far <= aggregate.within]
        if aggregate.where is not None:
            group = [other for other in group if other in self.selected(aggregate.where, host)]
        if aggregate.attribute is None:
            return len(group)
        values = [self.value(other, aggregate.attribute, host) for other in group]
        numbers = [value for value in values if isinstance(value, int | float) and is_number(value)]
        if not numbers:
            return None
        if aggregate.function is Function.MEAN:
            if math.inf in numbers and -math.inf in numbers:
                return None
            if any(map(math.isinf, numbers)):
                return math.inf if math.inf in numbers else -math.inf
            return float(statistics.mean(map(Fraction, numbers)))
        return sorted(numbers)[0 if aggregate.function is Function.MIN else -1]


@settings(max_examples=examples(100), deadline=None)
@given(contexts, st.lists(hosts, min_size=1, max_size=4))
def test_it_selects_the_hosts_that_the_sets_select(context: Context, present: list[HostView]) -> None:
    found = set()
    for number, host in enumerate(present):
        others = present[:number] + present[number + 1 :]
        truth = evaluate(context, Situation(host, others, others))
        assert evaluate(context, Situation(host, others[::-1], others[::-1])) is truth, "order has no meaning"
        unasked = evaluate(context, Situation(host, others))
        assert unasked is None or unasked is truth
        assert query_distance(context) > 0 or unasked is truth
        if truth:
            found.add(number)
            region = region_of(context)
            assert region is None or (host.location is not None and region.contains(*host.location))
    assert found == Model(present).selected(context.expression)


@settings(max_examples=examples(100), deadline=None)
@given(contexts)
def test_a_printed_context_reads_back_as_an_equal_one(context: Context) -> None:
    again = parse_context(str(context))
    assert again == context
    assert hash(again) == hash(context)
    assert str(again) == str(context)
    assert str(context).isprintable()


@settings(max_examples=examples(100), deadline=None)
@given(contexts)
def test_a_context_goes_over_the_air(context: Context) -> None:
    assert decoder.decode(msgspec.msgpack.encode(context)) == context


def test_one_and_true_are_not_the_same() -> None:
    assert parse_context("a = 1") != parse_context("a = true")
    assert parse_context("a = 1") == parse_context("a = 1.0")
    assert parse_context("a = 1") != A


# What it says about mistakes

MISTAKES: Final = [
    # Regions
    ("within rect(0, 0, 1, 1)", 7, "an operator"),
    ("rect(0, 0, 1, 1)", 4, "write within(rect(...))"),
    ("within()", 7, "a region: rect(x0, y0, x1, y1), circle(x, y, radius) or polygon(x y, x y, ...); found ')'"),
    ("within(rectangle(0, 0, 1, 1))", 7, "write rect"),
    ("within(rect)", 7, "a region"),
    ("within(rect(0, 0, 1))", 19, "a ',' and y1, since a rect takes 4 numbers; found ')'"),
    ("within(rect(0 0, 1 1))", 14, "a ',' and y0"),
    ("within(rect(0, 0, 1, 1, 1))", 22, "a ')' for the '(' at position 11; found ','"),
    ("within(circle(0, 0))", 18, "a ',' and the radius, since a circle takes 3 numbers"),
    ("within(circle(0, x, 1))", 17, "y, a number of metres; found 'x'"),
    ("within(circle(0, 0, inf))", 20, "the radius, a number of metres; found 'inf'"),
    ("a = 1 and within(rect(0, 0, 0, 1))", 17, "a region; a rectangle needs x0 < x1"),
    ("within(circle(0, 0, 5e9))", 7, "a region; a circle's radius must be within"),
    ("within(polygon(0 0, 1 1))", 7, "a region; a polygon has 3 to 32 corners, not 2"),
    ("within(polygon(0 0, 2 2, 2 0, 0 2))", 7, "a region; a polygon's border may neither cross nor touch itself"),
    ("within(polygon(0, 0, 1, 1))", 16, "y, a number of metres; found ','"),
    ("within(polygon(0 0, 1 1 2 2))", 24, "a ',' and another corner, or a ')' for the '(' at position 14; found '2'"),
    ("within(rect(0, 0, 1, 1)", 23, "a ')' for the '(' at position 6"),
    ("Within(rect(0, 0, 1, 1))", 6, "keywords are lower case: write within"),
    # Aggregates
    ("speed > max(speed)", 12, "'neighbours' or 'hosts'; found 'speed': write max(neighbours.speed)"),
    ("count() > 1", 6, "'neighbours' or 'hosts'; found ')'"),
    ("count(neighbors) > 1", 6, "write neighbours"),
    ("max(neighbors.speed) > 1", 4, "found 'neighbors.speed': write max(neighbours.speed)"),
    ("max(Neighbours.speed) > 1", 4, "write max(neighbours.speed)"),
    ("min(host.fuel within 9) > 1", 4, "write min(hosts.fuel)"),
    ("max(engine.heat) > 1", 4, "write max(neighbours.engine.heat)"),
    ("count(speed) > 1", 6, "found 'speed': write count(neighbours)"),
    ("avg(neighbours.speed) > 1", 3, "write mean"),
    ("count(neighbours.speed) > 1", 6, "neighbours without an attribute"),
    ("max(neighbours) > 1", 4, "the attribute of which to take the max; found 'neighbours': write neighbours.speed"),
    ("max(neighbours.2x) > 1", 4, "write neighbours. and then the name in backquotes"),
    ("max(neighbours. > 1", 16, "an attribute's name; found '>'"),
    ("count(hosts) > 1", 11, "'within' and a distance"),
    ("count(hosts where a = 1) > 1", 12, "'within' and a distance"),
    ("count(neighbours within x) > 1", 24, "a distance, a number of metres; found 'x'"),
    ("count(neighbours within 0) > 1", 24, "a distance above 0 m"),
    ("count(neighbours within 1e10) > 1", 24, "up to 4e+09 m"),
    ("count(neighbours where) > 1", 22, "a property such as speed < 20"),
    ("count(neighbours where a = 1 within 5) > 1", 29, "within comes before where"),
    ("count(neighbours within 5 within 5) > 1", 26, "'where' or a ')' for the '(' at position 5; found 'within'"),
    ("count(neighbours 50) > 1", 17, "'within', 'where' or a ')' for the '(' at position 5; found '50'"),
    ("count(neighbours where count(neighbours) > 1) > 1", 23, "has no aggregate in it"),
    ("count(neighbours where a > max(neighbours.a)) > 1", 27, "has no aggregate in it"),
    ("count(neighbours)", 17, "a comparison of numbers, one of = != < <= > >=; found the end"),
    ("count(neighbours) ^= 'x'", 18, "a comparison of numbers"),
    ("count(neighbours) = 'x'", 20, "a number, since 'count' is one"),
    ("count(neighbours) = true", 20, "a number, since 'count' is one"),
    ("a ^= max(neighbours.a)", 5, "a quoted string, since '^=' looks at strings"),
    ("count(neighbours) > a", 20, "a value"),
    # Comparisons, words and what is left over
    ("heading = east", 10, 'for text write "east"'),
    ("20 < speed", 0, "the attribute comes first"),
    ("braking", 7, "write exists braking"),
    ("a == 1", 2, "write = for equality"),
    ("! a = 1", 0, "write not"),
    ("not", 3, "a property such as speed < 20"),
    ("NOT a = 1", 4, "keywords are lower case: write not"),
    ("", 0, "a property such as speed < 20"),
    ("a = 1 b", 6, "'and', 'or' or the end of the text; found 'b'"),
    ("a = 1)", 5, "'and', 'or' or the end of the text"),
    ("(a = 1", 6, "'and', 'or' or a ')' for the '(' at position 0"),
    ("a = 'x", 4, "a closing '"),
    ("nearest < 20 and distance to nearest < 20", 26, "an operator"),
    ("a = \udc00", 4, "a lone surrogate"),
]


@pytest.mark.parametrize(("text", "position", "fragment"), MISTAKES, ids=[ascii(text[:40]) for text, *_ in MISTAKES])
def test_mistakes(text: str, position: int, fragment: str) -> None:
    with pytest.raises(SyntaxProblem) as caught:
        parse_context(text)
    assert (caught.value.position, caught.value.text) == (position, text)
    assert fragment in caught.value.expected


@pytest.mark.parametrize(
    ("build", "rule"),
    [
        (lambda: And((A,)), "'and' of one part is that part"),
        (lambda: Or((A,)), "'or' of one part is that part"),
        (lambda: Exists(""), "name is empty"),
        (lambda: is_("", "=", 1), "name is empty"),
        (lambda: is_("a", "=", math.nan), "NaN"),
        (lambda: is_("a", "<", True), "bools have no order"),
        (lambda: is_("a", "^=", 1), "looks at strings"),
        (lambda: is_("a", "exists", 1), "'exists' is not a comparison"),
        (lambda: is_("a", "^=", Aggregate(Function.COUNT)), "looks at strings, and an aggregate is a number"),
        (lambda: is_(Aggregate(Function.COUNT), "^=", "a"), "looks at strings, and count is a number"),
        (lambda: is_(Aggregate(Function.COUNT), "=", "a"), "'count' is a number and cannot be compared with 'a'"),
        (lambda: Aggregate(Function.COUNT, "a"), "'count' takes no attribute"),
        (lambda: Aggregate(Function.MAX), "every other aggregate takes one"),
        (lambda: Aggregate(Function.MAX, ""), "name is empty"),
        (lambda: Aggregate(Function.COUNT, within=0), "above 0"),
        (lambda: Aggregate(Function.COUNT, within=math.nan), "distance of a group must be within"),
        (lambda: Aggregate(Function.COUNT, within=2 * MAX_RADIUS), "distance of a group must be within"),
        (lambda: Aggregate(Function.COUNT, scope=Scope.HOSTS), "'hosts' needs a distance"),
        (
            lambda: Aggregate(Function.COUNT, where=Not(is_(Aggregate(Function.COUNT), "=", 1))),
            "cannot have an aggregate in it",
        ),
    ],
)
def test_what_is_no_expression_is_refused(build: Callable[[], ExpressionNode], rule: str) -> None:
    with pytest.raises(ContentError, match=rule):
        build()


@pytest.mark.parametrize(
    "parts",
    [
        {"location": (math.nan, 0)},
        {"location": (0, math.inf)},
        {"location": (0, 2e9)},
        {"velocity": (math.nan, 0)},
        {"attributes": {"": 1}},
        {"attributes": {"a": math.nan}},
        {"attributes": {"a": 2**63}},
        {"attributes": {"a": "\ud800"}},
        {"attributes": {"\ud800": 1}},
    ],
    ids=ascii,
)
def test_what_is_no_host_is_refused(parts: dict[str, object]) -> None:
    with pytest.raises(ContentError):
        HostView(**parts)  # type: ignore[arg-type]  # the types are right, the values are not


@given(hosts)
def test_a_host_goes_over_the_air(host: HostView) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(host), type=HostView) == host


@pytest.mark.parametrize(
    "parts",
    [
        ["within", ["rect", 0, 0, 0, 1]],
        ["and", [["exists", "a"]]],
        ["exists", ""],
        ["is", "a", "=", math.nan],
        ["is", "a", "=", None],
        ["is", "a", "exists", 1],
        ["is", "a", "=", 2**63],
        ["is", "a", "=", ["median", "a", "neighbours", None, None]],
        ["is", "a", "=", ["max", "a", "hosts", None, None]],
        ["is", "a", "=", ["max", "a", "neighbours", -1.0, None]],
        ["is", "a", "=", ["max", "a", "neighbours", None, ["is", ["count"], "=", 1]]],
        ["or", [["exists", f"a{i}"] for i in range(MAX_SIZE)]],
        ["sometimes"],
    ],
    ids=lambda parts: str(parts)[:60],
)
def test_what_is_no_context_is_refused_from_the_air(parts: list[object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        decoder.decode(msgspec.msgpack.encode([parts]))


# Bounds


def nested(levels: int) -> Expression:
    expression: Expression = A
    for level in range(levels):
        expression = Not(expression) if level % 3 == 0 else (And, Or)[level % 2]((expression, B))
    return expression


def test_depth_is_what_the_text_shows_inside_each_other() -> None:
    for text, shown in (
        ("a = 1", 0),
        ("a = 1 and b = 2 or c = 3", 0),
        ("a = 1 and (b = 2 or c = 3)", 1),
        ("not a = 1", 1),
        ("not (a = 1 and b = 2)", 2),
        ("not not not a = 1", 3),
        ("count(neighbours) = 1", 1),
        ("not count(neighbours where not (a = 1 and b = 2)) = 1", 4),
        ("within(rect(0, 0, 1, 1))", 0),
    ):
        assert depth(parse_context(text).expression) == shown


def test_depth_is_bounded() -> None:
    deepest = max((nested(levels) for levels in range(MAX_DEPTH + 1) if depth(nested(levels)) <= MAX_DEPTH), key=depth)
    assert parse_context(str(Context(deepest))) == Context(deepest)
    for text in ("{}a = 1{}".format("(" * MAX_DEPTH, ")" * MAX_DEPTH), "not " * MAX_DEPTH + "a = 1"):
        parse_context(text)
        beyond = f"not {text}"
        with pytest.raises(SyntaxProblem, match="at most 32 parentheses, nots and aggregates inside") as caught:
            parse_context(beyond)
        assert caught.value.position == beyond.rindex("(" if "(" in beyond else "not")
    with pytest.raises(SyntaxProblem, match="at most 32"):
        parse_context("not " * MAX_DEPTH + "count(neighbours) = 1")
    with pytest.raises(ContentError, match="a context may be 32 deep, not"):
        Context(nested(3 * MAX_DEPTH))


def test_size_is_bounded() -> None:
    # One `or`, and four for each comparison: itself, its aggregate, `not` and `exists`.
    part = "count(neighbours where not exists a) = 1"
    largest = " or ".join([part] * 63)
    assert size(parse_context(largest).expression) == 253
    with pytest.raises(SyntaxProblem, match="a size of at most 256") as caught:
        parse_context(f"{largest} or {part}")
    assert caught.value.position == len(largest) + len(" or ") + part.index("exists")
    corners = ", ".join(f"{i} {i * i}" for i in range(32))
    eight = " and ".join([f"within(polygon({corners}))"] * 7)
    assert size(parse_context(eight).expression) == 7 * 32 + 1
    with pytest.raises(SyntaxProblem, match="a size of at most 256"):
        parse_context(f"{eight} and within(polygon({corners}))")
    with pytest.raises(ContentError, match="a context may have a size of 256, not 301"):
        Context(And((A,) * 300))


def test_length_is_bounded() -> None:
    assert parse_context("a = 1".ljust(MAX_LENGTH)) == Context(A)
    with pytest.raises(SyntaxProblem, match="at most 65536 characters; found 65537"):
        parse_context("a = 1".ljust(MAX_LENGTH + 1))


def test_what_a_stranger_nests_too_deep_is_refused() -> None:
    for levels in (40, 900, 100_000):
        frame = b"\x91" + b"\x92\xa3not" * levels + msgspec.msgpack.encode(A)
        with pytest.raises((msgspec.ValidationError, RecursionError)):  # the codec takes both for a bad frame
            decoder.decode(frame)


@pytest.mark.parametrize(
    "text",
    [
        "(" * MAX_LENGTH,
        "not " * 20000,
        "count(" * 10000,
        " and ".join(["a = 1"] * 9000),
        "within(polygon(" + ", ".join(["0 0"] * 13000) + "))",
        "within(polygon(" + ", ".join(f"{i % 7} {i}" for i in range(8000)) + "))",
        "max(neighbours." + "a." * 30000 + ") > 1",
        "a = '" + "\\n" * 32000 + "'",
    ],
    ids=lambda text: text[:20],
)
def test_a_hostile_text_takes_less_than_a_second(text: str) -> None:
    started = time.process_time()
    with contextlib.suppress(SyntaxProblem):
        parse_context(text[:MAX_LENGTH])
    assert time.process_time() - started < 1


def test_evaluating_looks_at_a_neighbour_once_for_each_aggregate() -> None:
    class Counted(tuple[HostView, ...]):
        seen = 0

        def __iter__(self) -> Iterator[HostView]:
            for host in super().__iter__():
                Counted.seen += 1
                yield host

    text = " or ".join(["max(neighbours.speed where not (a = 1 or b = 2 or within(rect(0, 0, 1, 1)))) < 0"] * 30)
    evaluate(parse_context(text), Situation(CAR, Counted([AHEAD, BESIDE, LOST] * 20)))
    assert Counted.seen == 30 * 60


# Where it may be used


@pytest.mark.parametrize(
    ("text", "region"),
    [
        ("within(rect(0, 0, 10, 10))", Rectangle(0, 0, 10, 10)),
        ("within(rect(0, 0, 10, 10)) and a = 1", Rectangle(0, 0, 10, 10)),
        ("within(rect(0, 0, 10, 10)) and within(circle(5, 5, 1))", Circle(5, 5, 1)),
        ("within(rect(0, 0, 10, 10)) or within(rect(20, -5, 30, 5))", Rectangle(0, -5, 30, 10)),
        ("within(circle(0, 0, 1)) and a = 1 or within(circle(0, 0, 1)) and b = 1", Circle(0, 0, 1)),
        ("a = 1 and (b = 2 or true and within(rect(0, 0, 1, 1)))", None),
        ("within(rect(0, 0, 10, 10)) or a = 1", None),
        ("not within(rect(0, 0, 10, 10))", None),
        ("not not within(rect(0, 0, 10, 10))", None),
        ("count(neighbours where within(rect(0, 0, 10, 10))) > 1", None),
        ("x > 0 and x < 1 and y > 0 and y < 1", None),
        ("true", None),
        ("false", None),
    ],
)
def test_region(text: str, region: Region | None) -> None:
    assert region_of(parse_context(text)) == region


REGION: Final = "within(rect(0, 0, 10, 10))"


@pytest.mark.parametrize(
    "text",
    [
        REGION,
        f"{REGION} and fuel < 3",
        f"{REGION} and fuel < max(neighbours.heading)",
        f"{REGION} and count(neighbours within 5 where heading = 'east' and exists occupants) > 1",
        f"{REGION} and speed > mean(neighbours.speed where x > 0 and distance < 5)",
        f"{REGION} and within(rect(10, 10, 20, 20))",
        f"{REGION} and (within(rect(5, 5, 20, 20)) or within(rect(30, 0, 40, 10)))",
        f"{REGION} and not within(rect(20, 20, 30, 30))",
        f"{REGION} and count(neighbours where within(rect(20, 20, 30, 30))) > 1",
    ],
)
def test_what_may_be_a_context_of_relevance_or_interest(text: str) -> None:
    check_relevance(parse_context(text), {"heading", "occupants"})
    check_interest(parse_context(text), ("heading", "occupants"))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("heading = 'east'", 'has no region, and needs one: write within(...) and ...; it is heading = "east"'),
        (f"not {REGION}", "has no region"),
        (
            f"{REGION} and count(hosts within 500) > 1",
            "may look one hop far, at neighbours; count(hosts within 500) looks farther",
        ),
        (
            f"{REGION} and max(neighbours.fuel) > 1",
            "key attributes of neighbours only (heading, occupants); max(neighbours.fuel) looks at 'fuel'",
        ),
        (f"{REGION} and not count(neighbours where not exists fuel) > 1", "looks at 'fuel'"),
        (f"{REGION} and count(neighbours where heading = 'e' or fuel > 1) > 1", "looks at 'fuel'"),
        (
            f"{REGION} and within(circle(20, 5, 3))",
            "asks for rect(0, 0, 10, 10) and circle(20, 5, 3), which have no point in common",
        ),
        (
            f"({REGION} and heading = 'e') and (within(rect(11, 0, 12, 1)) or within(rect(12, 3, 13, 4)))",
            "no point in common",
        ),
        (
            f"{REGION} or {REGION} and (within(rect(9, 9, 12, 12)) and within(rect(11, 11, 12, 12)))",
            "no point in common",
        ),
    ],
)
def test_what_may_not_is_refused_by_name(text: str, rule: str) -> None:
    with pytest.raises(ContentError) as caught:
        check_relevance(parse_context(text), {"occupants", "heading"})
    assert str(caught.value).startswith("the context of relevance ")
    assert rule in str(caught.value)
    with pytest.raises(ContentError) as caught:
        check_interest(parse_context(text), {"occupants", "heading"})
    assert str(caught.value).startswith("the context of interest ")


def test_domains_may_look_as_far_as_hosts_can_be_asked() -> None:
    far = parse_context("count(hosts within 500) > 1 or max(hosts.fuel within 800) > 3 or max(neighbours.fuel) > 1")
    assert query_distance(far) == 800
    check_domain(far, PUBLICATION_DOMAIN)
    check_domain(far, PUBLICATION_DOMAIN, 800)
    with pytest.raises(ContentError) as caught:
        check_domain(far, PUBLICATION_DOMAIN, 600)
    assert str(caught.value) == (
        "the publication domain may ask hosts within 600 m; max(hosts.fuel within 800) asks farther"
    )
    with pytest.raises(ContentError, match="the publication domain asks for rect"):
        check_domain(parse_context("within(rect(0, 0, 1, 1)) and within(rect(2, 2, 3, 3))"), PUBLICATION_DOMAIN)
    near = parse_context("max(neighbours.fuel within 900) > 1")
    assert query_distance(near) == 0
    check_domain(near, PUBLICATION_DOMAIN, 0)
