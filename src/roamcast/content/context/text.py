"""The context language that people type: `within(circle(500, 500, 100)) and speed > max(neighbours.speed)`.

This file owns the grammar. `parse_context(str(context)) == context` for every context whose text is within
`MAX_LENGTH`.

    context     = conjunction { "or" conjunction }
    conjunction = factor { "and" factor }
    factor      = "not" factor | "(" context ")" | "true" | "false" | "exists" NAME
                | "within" "(" region ")" | "around" "(" "me" "," RADIUS ")" | side OPERATOR (VALUE | aggregate)
    side        = NAME | aggregate
    aggregate   = "count" "(" group ")" | ("min" | "max" | "mean") "(" group ")"
    group       = ("neighbours" | "hosts") [ "." NAME ] [ "within" METRES ] [ "where" context ]
    region      = "rect" "(" X0 "," Y0 "," X1 "," Y1 ")" | "circle" "(" X "," Y "," RADIUS ")"
                | "polygon" "(" X Y { "," X Y } ")"

Names, values, operators and quotes are those of the filter language (`tokens.py`). Words that the filter language lacks
are keywords only in their places, so that a host may have an attribute `count`; `type` is an attribute like any other.
An attribute is allowed on the left only: on the right, a word without quotes is most likely text whose quotes were
forgotten. `count` takes a group without an attribute, the others one with it. `where` extends to the aggregate's
closing parenthesis, and contains no aggregate. `around(me, 200)` is `within(circle(x, y, 200))` with the position of
the node that reads it: it never leaves that node, and printing gives the circle. The bounds are those of
`expression.py`, and `MAX_LENGTH` characters.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import ClassVar, Final, NoReturn

from roamcast.content.context.expression import (
    MAX_DEPTH,
    MAX_SIZE,
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
from roamcast.content.filter import STRING_ONLY, Kind, Operator, kind_of
from roamcast.content.geometry import Point
from roamcast.content.region import MAX_RADIUS, Circle, Polygon, Rectangle, Region
from roamcast.content.tokens import OPERATORS, RESERVED, Token, TokenReader, is_bare
from roamcast.errors import ContentError, SyntaxProblem

_REGIONS: Final = ("rect", "circle", "polygon")
_NUMERIC: Final = [word for word, operator in OPERATORS.items() if operator not in STRING_ONLY]
_EXAMPLE: Final = "a property such as speed < 20 or within(rect(0, 0, 100, 100))"


def parse_context(text: str, me: Point | None = None) -> Context:
    """Parses a context. Raises `SyntaxProblem` at the first character that cannot be read.

    `me` is the position of the node.
    """
    parser = _ContextParser(text, me)
    expression = parser.alternatives()
    parser.end()
    return Context(expression)


class _ContextParser(TokenReader):
    """Recursive descent, one token ahead. Counts size and depth on the way, to say where they become too large."""

    KEYWORDS: ClassVar[frozenset[str]] = RESERVED.union(_REGIONS, Function, Scope, ("within", "where"))
    MEANT: ClassVar[Mapping[str, str]] = {
        "!": "write not",
        "neighbors": "write neighbours",
        "avg": "write mean",
        "average": "write mean",
        "rectangle": "write rect",
        "nearest": "write min(neighbours.distance)",
        **{word: f"write within({word}(...))" for word in _REGIONS},
    }

    MOST_INSIDE: ClassVar[tuple[int, str]] = (MAX_DEPTH, "parentheses, nots and aggregates")

    def __init__(self, text: str, me: Point | None) -> None:
        super().__init__(text)
        self.me = me
        self.size = 0
        self.in_where = False

    def count(self, amount: int, place: Token) -> None:
        self.size += amount
        if self.size > MAX_SIZE:
            self.refuse(place, f"a context of a size of at most {MAX_SIZE}")

    def refuse(self, place: Token, expected: str) -> NoReturn:
        """Refuses a token that was already taken."""
        self.token = place
        raise self.problem(expected)

    def alternatives(self) -> Expression:
        parts = [self.conjunction()]
        while self.token.is_word("or"):
            place = self.take()
            self.count(len(parts) == 1, place)
            parts.append(self.conjunction())
        return Or(tuple(parts)) if len(parts) > 1 else parts[0]

    def conjunction(self) -> Expression:
        parts = [self.factor()]
        while self.token.is_word("and"):
            place = self.take()
            self.count(len(parts) == 1, place)
            parts.append(self.factor())
        return And(tuple(parts)) if len(parts) > 1 else parts[0]

    def factor(self) -> Expression:
        token = self.token
        if token.kind == "open":
            return self.group()
        self.count(1, token)
        if token.is_word("not"):
            return self.negation()
        if token.is_word("true") or token.is_word("false"):
            self.take()
            return And(()) if token.text == "true" else Or(())
        if token.is_word("exists"):
            self.take()
            return Exists(self.name("an attribute's name"))
        if self.is_call("within"):
            return self.within()
        if self.is_call("around"):
            return self.around()
        return self.comparison()

    def group(self) -> Expression:
        opened = self.deeper()
        expression = self.alternatives()
        self.close(opened, "'and', 'or' or ")
        return expression

    def negation(self) -> Not:
        self.deeper()
        part = self.factor()
        self.depth -= 1
        return Not(part)

    def is_call(self, *words: str) -> bool:
        """Whether the current token is one of the words, with a parenthesis after it."""
        return self.token.kind == "word" and self.token.text in words and self.read(self.token.end).kind == "open"

    def within(self) -> Within:
        self.take()
        opened = self.take()
        region = self.region()
        self.closing(opened)
        return Within(region)

    def around(self) -> Within:
        self.take()
        opened = self.take()
        if not self.token.is_word("me"):
            raise self.problem("'me', as in around(me, 200)")
        self.take()
        self.comma("a ',' and the radius, as in around(me, 200)")
        place = self.token
        radius = self.metres("the radius")
        self.closing(opened)
        if self.me is None:
            raise ContentError(
                f"around(me, {radius:g}): the node does not know its position: give it --gps or --here, or set it"
            )
        try:
            return Within(Circle(*self.me, radius))
        except ContentError as problem:
            raise SyntaxProblem(f"expected a radius; {problem}", self.text, place.position) from None

    def region(self) -> Region:
        if not self.is_call(*_REGIONS):
            raise self.problem("a region: rect(x0, y0, x1, y1), circle(x, y, radius) or polygon(x y, x y, ...)")
        word, opened = self.take(), self.take()
        try:
            return self.polygon(word, opened) if word.text == "polygon" else self.shape(word, opened)
        except SyntaxProblem:
            raise
        except ContentError as problem:
            raise SyntaxProblem(f"expected a region; {problem}", self.text, word.position) from None

    def shape(self, word: Token, opened: Token) -> Region:
        names = ("x0", "y0", "x1", "y1") if word.text == "rect" else ("x", "y", "the radius")
        numbers: list[float] = []
        for name in names:
            if numbers:
                self.comma(f"a ',' and {name}, since a {word.text} takes {len(names)} numbers")
            numbers.append(self.metres(name))
        self.closing(opened)
        return Rectangle(*numbers) if word.text == "rect" else Circle(*numbers)

    def polygon(self, word: Token, opened: Token) -> Polygon:
        corners = [(self.metres("x"), self.metres("y"))]
        while self.token.text == ",":
            self.take()
            corners.append((self.metres("x"), self.metres("y")))
        self.closing(opened, "a ',' and another corner, or ")
        polygon = Polygon(tuple(corners))
        self.count(len(corners) - 1, word)
        return polygon

    def comma(self, expected: str) -> None:
        if self.token.text != ",":
            raise self.problem(expected)
        self.take()

    def metres(self, name: str) -> float:
        return self.number(f"{name}, a number of metres")

    def comparison(self) -> HostComparison:
        first = self.token
        if self.is_call(*Function):
            return self.comparison_of_numbers()
        left = self.name(_EXAMPLE)
        operator = self.operator(first)
        if self.is_call(*Function):
            if operator in STRING_ONLY:
                raise self.problem(f"a quoted string, since '{operator}' looks at strings")
            return HostComparison(left, operator, self.aggregate())
        return HostComparison(left, operator, self.value(operator))

    def comparison_of_numbers(self) -> HostComparison:
        left = self.aggregate()
        operator = OPERATORS.get(self.token.text)
        if operator is None or operator in STRING_ONLY:
            raise self.problem(f"a comparison of numbers, one of {' '.join(_NUMERIC)}")
        self.take()
        if self.is_call(*Function):
            return HostComparison(left, operator, self.aggregate())
        place = self.token
        right = self.value(Operator.EQ)
        if kind_of(right) is not Kind.NUMBER:
            self.refuse(place, f"a number, since '{left.function}' is one")
        return HostComparison(left, operator, right)

    def aggregate(self) -> Aggregate:
        if self.in_where:
            raise self.problem("an attribute's name, since the 'where' of an aggregate has no aggregate in it")
        self.count(1, self.token)
        function = Function(self.deeper().text)
        opened = self.take()
        scope, attribute = self.members(function)
        place = self.token
        within = self.distance() if place.is_word("within") else None
        if within is None and scope is Scope.HOSTS:
            self.refuse(place, "'within' and a distance, since hosts must be asked and a query must end somewhere")
        where = self.where() if self.token.is_word("where") else None
        if where is not None:
            self.close(opened, "'and', 'or' or ", "within comes before where" if self.token.is_word("within") else "")
        else:
            self.close(opened, "'within', 'where' or " if within is None else "'where' or ")
        return Aggregate(function, attribute, scope, within, where)

    def members(self, function: Function) -> tuple[Scope, str | None]:
        """`neighbours`, or `neighbours.NAME`, where the name may stand in backquotes."""
        token = self.token
        scope, dot, attribute = token.text.partition(".")
        if token.kind != "word" or scope not in tuple(Scope):
            raise self.problem("'neighbours' or 'hosts'", self.meant_group(function, token))
        if function is Function.COUNT:
            if dot:
                raise self.problem(f"{scope} without an attribute, since count counts hosts", f"write count({scope})")
            self.take()
            return Scope(scope), None
        if not dot:
            raise self.problem(f"the attribute of which to take the {function}", f"write {scope}.speed")
        if attribute and not is_bare(attribute):
            raise self.problem("an attribute's name", f"write {scope}. and then the name in backquotes")
        self.take()
        return Scope(scope), attribute or self.name("an attribute's name")

    def meant_group(self, function: Function, token: Token) -> str:
        """A hint at the group: its name in another spelling, or an attribute whose group is missing."""
        if token.kind != "word" or not is_bare(token.text):
            return ""
        word, dot, attribute = token.shown.partition(".")
        close = get_close_matches(word.lower(), tuple(Scope), n=1)
        group, attribute = (close[0], dot + attribute) if close else ("neighbours", f".{token.shown}")
        return f"write {function}({group}{'' if function is Function.COUNT else attribute})"

    def distance(self) -> float:
        self.take()
        place = self.token
        distance = self.metres("a distance")
        if not 0 < distance <= MAX_RADIUS:
            self.refuse(place, f"a distance above 0 m and up to {MAX_RADIUS:g} m")
        return distance

    def where(self) -> Expression:
        self.take()
        self.in_where = True
        expression = self.alternatives()
        self.in_where = False
        return expression
