"""The filter language that people type: `type = "CD" and category = "jazz" and (price < 20 or composer ^= "Ev")`.

This file owns the text form of a filter. `parse_filter(format_filter(f)) == f` for every filter whose text is within
`MAX_LENGTH`; what is printed is the disjunction of conjunctions that the filter is, so it never needs parentheses.

    filter      = conjunction { "or" conjunction }
    conjunction = factor { "and" factor }
    factor      = "(" filter ")" | "true" | "false" | "exists" NAME | NAME OPERATOR VALUE
    OPERATOR    = "=" | "!=" | "<" | "<=" | ">" | ">=" | "^=" (prefix) | "$=" (suffix) | "*=" (contains)

Names, values and quotes are those of `tokens.py`. The bare name `type` is the event's type; an attribute called so is
written `` `type` ``. `not` is reserved only to be refused. A text is bounded by `MAX_LENGTH` characters, `MAX_DEPTH`
parentheses inside each other, and `MAX_CONSTRAINTS` constraints and as many alternatives once `and` is distributed
over `or`, repetitions counted.
"""

from collections.abc import Mapping
from typing import ClassVar, Final

from roamcast.content.event import TYPE
from roamcast.content.filter import MAX_CONSTRAINTS, Conjunction, Constraint, Filter, Operator, written_out
from roamcast.content.tokens import MAX_LENGTH, Token, TokenReader, format_name, format_value
from roamcast.errors import SyntaxProblem

__all__ = ["MAX_DEPTH", "MAX_LENGTH", "format_filter", "parse_filter"]

MAX_DEPTH: Final = 100

_NO_NEGATION: Final = "there is no negation; write != or the opposite comparison"


def parse_filter(text: str) -> Filter:
    """Parses a filter. Raises `SyntaxProblem` at the first character that cannot be read."""
    parser = _FilterParser(text)
    alternatives = parser.alternatives()
    parser.end()
    return Filter(tuple(alternatives))


def format_filter(filter: Filter) -> str:
    """The text of a filter, which `parse_filter` reads back."""
    return " or ".join(map(_format_conjunction, filter.alternatives)) or "false"


def _format_conjunction(conjunction: Conjunction) -> str:
    return " and ".join(map(_format_constraint, conjunction)) or "true"


def _format_constraint(constraint: Constraint) -> str:
    name = _format_attribute(constraint.attribute)
    if constraint.value is None:
        return f"exists {name}"
    return f"{name} {constraint.operator} {format_value(constraint.value)}"


def _format_attribute(name: str) -> str:
    if name == TYPE:
        return "type"
    return "`type`" if name == "type" else format_name(name)


class _FilterParser(TokenReader):
    """Recursive descent, one token ahead.

    Each part of the text becomes a list of alternatives; only the whole becomes a `Filter`, since sorting at every
    level would let a hostile text take minutes. Each step that grows a list checks the bound, and refuses the word that
    exceeds it.
    """

    MEANT: ClassVar[Mapping[str, str]] = {"not": _NO_NEGATION, "!": _NO_NEGATION}
    MOST_INSIDE: ClassVar[tuple[int, str]] = (MAX_DEPTH, "parentheses")

    def alternatives(self) -> list[Conjunction]:
        alternatives = self.conjunction()
        constraints = _count(alternatives)
        while self.token.is_word("or"):
            place = self.take()
            more = self.conjunction()
            constraints += _count(more)
            self.check_size(len(alternatives) + len(more), constraints, place)
            alternatives += more
        return alternatives

    def conjunction(self) -> list[Conjunction]:
        product = self.factor()
        while self.token.is_word("and"):
            place = self.take()
            product = self.multiply(product, self.factor(), place)
        return product

    def multiply(self, left: list[Conjunction], right: list[Conjunction], place: Token) -> list[Conjunction]:
        # Apart from `true`, a factor either empties the product or makes it larger by at least its own length. So,
        # with `true` handled first, the bound on the size also bounds the time.
        if right == [()]:
            return left
        if left == [()]:
            return right
        self.check_size(len(left) * len(right), written_out(left, right), place)
        return [mine + theirs for mine in left for theirs in right]

    def check_size(self, alternatives: int, constraints: int, place: Token) -> None:
        if max(alternatives, constraints) > MAX_CONSTRAINTS:
            raise SyntaxProblem(
                f"expected at most {MAX_CONSTRAINTS} constraints and as many alternatives; written out, this "
                f"'{place.text}' gives {constraints} constraints in {alternatives} alternatives",
                self.text,
                place.position,
            )

    def factor(self) -> list[Conjunction]:
        if self.token.kind == "open":
            return self.group()
        if self.token.is_word("true"):
            self.take()
            return [()]
        if self.token.is_word("false"):
            self.take()
            return []
        if self.token.is_word("exists"):
            self.take()
            return [(Constraint(self.attribute("an attribute's name"), Operator.EXISTS),)]
        first = self.token
        name = self.attribute("a comparison such as price < 20")
        operator = self.operator(first)
        return [(Constraint(name, operator, self.value(operator)),)]

    def group(self) -> list[Conjunction]:
        opened = self.deeper()
        alternatives = self.alternatives()
        self.close(opened, "'and', 'or' or ")
        return alternatives

    def attribute(self, expected: str) -> str:
        bare = self.token.kind == "word"
        name = self.name(expected)
        return TYPE if bare and name == "type" else name


def _count(alternatives: list[Conjunction]) -> int:
    return sum(map(len, alternatives))
