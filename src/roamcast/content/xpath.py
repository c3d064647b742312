"""Filters from XPath: the subset in which the odmrp paper writes subscriptions (section III.B).

    expression  = "/" (name | "*") predicate* ("/" path)?       /* puts no constraint on the event's type
    path        = step ("/" step)*                              step = "." | name predicate* | "@" name predicate*
    predicate   = "[" condition "]"                             condition of "and", "or", "(" ")" over
    comparison  = path | path operator literal | literal operator path       operator: = != < <= > >=

A literal is a quoted string or a number, which may have a minus sign but no exponent. All else is refused by name.

A comparison becomes constraints on the typed values that `xml.event_from_xml` extracts from a document, so that a
filter agrees with XPath 1.0 on the document if values and literals are written in their shortest form:

* `=` and `!=` with a quoted literal compare strings in XPath. Here a literal that has the form of a number or a bool
  also equals that number or bool. So `price = "18.0"` finds `18.00`, which XPath proper does not, and `"1"` does not
  find `001`, which is not a number here.
* `=`, `!=` with a bare number and all orderings compare numbers, the quoted literal of an ordering included; strings,
  such as `001`, have no order here, where XPath would read them as numbers. Integers compare exactly, not as doubles.
* `!=` holds for a value of any other type, as in XPath: `label != "X"` finds the number 1984, `year != 1984` finds "X".

So one comparison may be several alternatives: two for `= "18"`, three or four for `!=`. `and` multiplies them, up to
the bound of a filter: three `!=` in one conjunction fit, four do not.

Where it differs on purpose:

* Names are local names. XPath proper would not let `/CD` find an element in a default namespace, as the paper's are.
* Only leaves and attributes have values. A path to an element with children never holds, by itself or compared.
* Conditions are per path, since an event does not keep which repeated elements belong together:
  `info[label = "X" and year = 1959]` holds if one `info` has the label and another the year. Such documents may match
  too often, never too rarely.
"""

import math
import re
from collections.abc import Iterator
from typing import Final, NamedTuple, NoReturn

from roamcast.content.event import INT_MAX, INT_MIN, TYPE, Scalar, check_text
from roamcast.content.filter import (
    MAX_CONSTRAINTS,
    ORDERING,
    Conjunction,
    Constraint,
    Filter,
    Kind,
    Operator,
    kind_of,
    written_out,
)
from roamcast.content.tokens import Token
from roamcast.content.xml import MAX_PATH, ROOT_LEAF, value_from_form
from roamcast.errors import ContentError, SyntaxProblem

MAX_EXPRESSION: Final = 1 << 16
"""Characters of an expression."""

MAX_NESTING: Final = 100
"""Predicates and parentheses inside each other."""

_NAME_START: Final = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)  # the production NameStartChar of XML 1.0, without the colon
_TOKENS: Final = re.compile(
    r"(?P<space>[ \t\r\n]+)"
    r"|(?P<string>\"[^\"]*\"|'[^']*')"
    r"|(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
    rf"|(?P<name>[{_NAME_START}][-.0-9\u00b7\u0300-\u036f\u203f\u2040{_NAME_START}]*)"
    r"|(?P<symbol>//|::|\.\.|!=|<=|>=|[][/@()=<>|+*$.:,-])"
)
_NUMBER: Final = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")

_COMPARISONS: Final = {str(operator): operator for operator in (Operator.EQ, Operator.NE, *ORDERING)}

_OUTSIDE: Final = {
    "//": ("a descendant step '//'", "write every step from the root"),
    "..": ("a parent step '..'", "a path leads down from the element its predicate stands on"),
    "::": ("an axis", "steps go to children and, with '@', to attributes"),
    ":": ("a namespace prefix", "elements go by their local names"),
    "|": ("a union '|'", "use 'or' in a predicate, or subscribe twice"),
    "$": ("a variable", "write its value"),
    "/": ("a path from the root or from parentheses in a predicate", "a path starts with a name, '@' or '.'"),
    "*": ("'*' other than as the root step", "a path names its elements, and nothing is computed"),
    "and": ("'and' between paths", "use it in a predicate"),
    "or": ("'or' between paths", "use it in a predicate, or subscribe twice"),
    **{sign: (f"arithmetic ({sign!r})", "compare a path with a literal") for sign in ("+", "-", "div", "mod")},
    **{sign: (f"{sign!r} after a condition", "compare a path with a literal") for sign in _COMPARISONS},
}

_FLIPPED: Final = {
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}

_ALL_OF_KIND: Final[dict[Kind, tuple[tuple[Operator, Scalar], ...]]] = {
    Kind.STRING: ((Operator.PREFIX, ""),),
    Kind.NUMBER: ((Operator.GE, -math.inf),),
    Kind.BOOL: ((Operator.EQ, True), (Operator.EQ, False)),
}
"""Constraints: one of them holds if and only if a value is of that kind."""

Alternatives = tuple[Conjunction, ...]
"""An unfinished filter. Not a `Filter`, which sorts: at every step, that would take quadratic time."""


class _Literal(NamedTuple):
    text: str
    quoted: bool
    token: Token


class _LocationPath(NamedTuple):
    attribute: str
    conditions: list[Alternatives]
    """The conditions of its predicates."""
    ends_in_predicate: bool

    def exists(self) -> list[Alternatives]:
        """The conditions under which the path finds something.

        There is no negation, so a predicate can hold only on an element that exists. The root always exists.
        """
        if self.ends_in_predicate or self.attribute == "":
            return self.conditions
        return [*self.conditions, ((Constraint(self.attribute, Operator.EXISTS),),)]


def filter_from_xpath(expression: str) -> Filter:
    """Parses an XPath expression. `SyntaxProblem` names what a filter cannot express, and where."""
    check_text(expression, "an XPath expression")
    if len(expression) > MAX_EXPRESSION:
        raise ContentError(f"an XPath expression may have {MAX_EXPRESSION} characters, not {len(expression)}")
    try:
        return Filter(_XPathParser(expression).expression())
    except SyntaxProblem:
        raise
    except ContentError as problem:
        raise SyntaxProblem(str(problem), expression, 0) from None


def _all_of(parts: list[Alternatives]) -> Alternatives:
    result: Alternatives = (tuple(constraint for part in parts if len(part) == 1 for constraint in part[0]),)
    for part in parts:
        if len(part) > 1:  # each turn at least doubles the result, so there are few turns
            _check_size(max(written_out(result, part), len(result) * len(part)))
            result = tuple(mine + theirs for mine in result for theirs in part)
    return result


def _check_size(size: int) -> None:
    if size > MAX_CONSTRAINTS:
        raise ContentError(
            f"written out as alternatives, this expression would have {size} constraints or more; "
            f"at most {MAX_CONSTRAINTS} are allowed"
        )


def _number(text: str) -> int | float:
    """The value of a text that has the form `_NUMBER`."""
    if len(text) < 40 and "." not in text and INT_MIN <= int(text) <= INT_MAX:
        return int(text)
    return float(text)


def _tokens(text: str) -> Iterator[Token]:
    position = 0
    while position < len(text):
        found = _TOKENS.match(text, position)
        if found is None:
            if text[position] in "\"'":
                raise SyntaxProblem("a string without its closing quote", text, position)
            raise SyntaxProblem(f"no token of XPath begins with {text[position]!r}", text, position)
        if found.lastgroup != "space":
            yield Token(str(found.lastgroup), found.group(), position)
        position = found.end()
    yield Token("end", "", position)


class _XPathParser:
    """Recursive descent. `prefix` is the path of the element that the current predicate stands on."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._at = 0
        self._depth = 0

    def expression(self) -> Alternatives:
        if not self._take("/"):
            self._fail("expected a path from the root, such as /CD")
        parts: list[Alternatives] = []
        if not self._take("*"):
            parts.append(((Constraint(TYPE, Operator.EQ, self._name()),),))
        parts.extend(self._predicates(""))
        if self._take("/"):
            parts.extend(self._path("").exists())
        if self._now.kind != "end":
            self._fail("expected '[', '/' or the end")
        return _all_of(parts)

    def _condition(self, prefix: str) -> Alternatives:
        alternatives: Alternatives = ()
        while True:
            parts = [self._operand(prefix)]
            while self._take("and", "name"):
                parts.append(self._operand(prefix))
                _check_size(len(parts))
            alternatives += _all_of(parts)
            _check_size(len(alternatives))
            if not self._take("or", "name"):
                return alternatives

    def _operand(self, prefix: str) -> Alternatives:
        if self._take("("):
            return self._nested(prefix, ")")
        literal = self._literal()
        if literal is not None:
            operator = self._comparison_sign()
            if operator is None:
                what = f"{literal.text!r} by itself" if literal.quoted else f"a position ([{literal.text}])"
                self._outside(what, "compare a path with a literal", literal.token)
            return self._compared(self._path(prefix), _FLIPPED.get(operator, operator), literal)
        path = self._path(prefix)
        operator = self._comparison_sign()
        if operator is None:
            return _all_of(path.exists())
        literal = self._literal()
        if literal is None:
            self._fail("expected a literal: a path compares with a string or a number")
        return self._compared(path, operator, literal)

    def _nested(self, prefix: str, closing: str) -> Alternatives:
        self._depth += 1
        if self._depth > MAX_NESTING:
            self._problem(f"predicates and parentheses may be nested {MAX_NESTING} deep", self._tokens[self._at - 1])
        condition = self._condition(prefix)
        if not self._take(closing):
            self._fail(f"expected 'and', 'or' or {closing!r}")
        self._depth -= 1
        return condition

    def _predicates(self, prefix: str) -> list[Alternatives]:
        found = []
        while self._take("["):
            found.append(self._nested(prefix, "]"))
            _check_size(len(found))
        return found

    def _path(self, prefix: str) -> _LocationPath:
        path = prefix
        conditions: list[Alternatives] = []
        predicates: list[Alternatives] = []
        while True:
            attribute = self._take("@")
            if attribute or not self._take("."):
                start = self._now
                name = f"@{self._name()}" if attribute else self._name()
                path = f"{path}/{name}" if path else name
                if len(path) > MAX_PATH:
                    self._problem(f"a path may have {MAX_PATH} characters, not {len(path)}", start)
                predicates = self._predicates(path)
                conditions.extend(predicates)
            if not self._take("/"):
                return _LocationPath(path, conditions, bool(predicates))
            if attribute:
                self._problem("an attribute has nothing below it", self._now)

    def _compared(self, path: _LocationPath, operator: Operator, literal: _Literal) -> Alternatives:
        """Alternatives, one per type: the type of the event's value decides how XPath compares it."""
        name = path.attribute or ROOT_LEAF
        values: list[Scalar] = []
        if literal.quoted and operator not in ORDERING:
            values.append(literal.text)
            typed = value_from_form(literal.text)
            if not isinstance(typed, str):
                values.append(typed)
        else:
            form = literal.text.strip(" \t\r\n")
            if not _NUMBER.fullmatch(form):
                self._problem(
                    f"'{operator}' compares numbers, and {literal.text!r} is not a number: it can never hold",
                    literal.token,
                )
            values.append(_number(form))
        comparisons = [(operator, value) for value in values]
        if operator is Operator.NE:
            compared = {kind_of(value) for value in values}
            comparisons.extend(pair for kind, all_of in _ALL_OF_KIND.items() if kind not in compared for pair in all_of)
        alternatives = tuple((Constraint(name, sign, value),) for sign, value in comparisons)
        return _all_of([*path.conditions, alternatives])

    # Tokens

    @property
    def _now(self) -> Token:
        return self._tokens[self._at]

    def _take(self, text: str, kind: str = "symbol") -> bool:
        taken = self._now.kind == kind and self._now.text == text
        self._at += taken
        return taken

    def _comparison_sign(self) -> Operator | None:
        operator = _COMPARISONS.get(self._now.text) if self._now.kind == "symbol" else None
        self._at += operator is not None
        return operator

    def _literal(self) -> _Literal | None:
        token = self._now
        if token.kind == "string":
            self._at += 1
            return _Literal(token.text[1:-1], True, token)
        if token.kind == "number":
            self._at += 1
            return _Literal(token.text, False, token)
        if token.text == "-" and self._tokens[self._at + 1].kind == "number":
            self._at += 2
            return _Literal("-" + self._tokens[self._at - 1].text, False, token)
        return None

    def _name(self) -> str:
        token = self._now
        if token.kind != "name":
            self._fail("expected the name of an element or an attribute")
        self._at += 1
        if self._now.text in ("::", ":"):
            self._fail("expected a plain name")
        if self._now.text == "(":
            self._at -= 1
            self._fail("expected a plain name")
        return token.text

    # Refusals

    def _fail(self, expected: str) -> NoReturn:
        token = self._now
        if token.kind == "name" and self._tokens[self._at + 1].text == "(":
            self._outside(f"a function ({token.text}())", "compare a path with a literal", token)
        if token.kind in ("symbol", "name") and token.text in _OUTSIDE:
            self._outside(*_OUTSIDE[token.text], token)
        self._problem(expected, token)

    def _outside(self, what: str, instead: str, token: Token) -> NoReturn:
        self._problem(f"{what} is outside the XPath subset: {instead}", token)

    def _problem(self, message: str, token: Token) -> NoReturn:
        raise SyntaxProblem(message, self._text, token.position)
