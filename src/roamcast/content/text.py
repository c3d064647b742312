r"""The filter language that people type: `type = "CD" and category = "jazz" and (price < 20 or composer ^= "Ev")`.

This file owns the text form of a filter. `parse_filter(format_filter(f)) == f` for every filter whose text is within
`MAX_LENGTH`; what is printed is the disjunction of conjunctions that the filter is, so it never needs parentheses.

    filter      = conjunction { "or" conjunction }
    conjunction = factor { "and" factor }
    factor      = "(" filter ")" | "true" | "false" | "exists" NAME | NAME OPERATOR VALUE
    OPERATOR    = "=" | "!=" | "<" | "<=" | ">" | ">=" | "^=" (prefix) | "$=" (suffix) | "*=" (contains)

* **Names.** Bare: a letter of any script, `_` or `@`, then letters, digits and `_ @ / . : -`; so `a-1` is one name. The
  bare name `type` is the event's type. Any other name, and one spelled like a keyword or `type`, stands in backquotes,
  with a backquote inside doubled.
* **Keywords** are lower case: and, or, exists, true, false, inf, and `not`, which is reserved only to be refused.
* **Values.** `true`, `false`; strings in double or single quotes; integers of 64 bits (`-12`, `+5`); floats, rounded
  to the nearest there is (`1.5`, `.5`, `5.`, `1e3`, `inf`, `-inf`).
* **Escapes**, in all three kinds of quotes: `\\`, `\n`, `\r`, `\t`, `\"`, `\'`, `` \` ``, `\uXXXX`, `\UXXXXXXXX`.
  Unescaped control characters are accepted; printing escapes whatever is not printable, in names as in strings, since
  a filter that came from a stranger may end on a terminal.
* **Bounds.** `MAX_LENGTH` characters, `MAX_DEPTH` parentheses inside each other, and `MAX_CONSTRAINTS` constraints and
  as many alternatives once `and` is distributed over `or`, repetitions counted.
"""

import math
import re
from typing import Final, NamedTuple

from roamcast.content.event import INT_MAX, INT_MIN, TYPE, Scalar
from roamcast.content.filter import MAX_CONSTRAINTS, ORDERING, STRING_ONLY, Conjunction, Constraint, Filter, Operator
from roamcast.errors import SyntaxProblem

MAX_LENGTH: Final = 65536
MAX_DEPTH: Final = 100

# Runs are taken whole and judged afterwards, so that a message can name `==`, `&&`, `20x` or `2024-01-05` as they
# were typed. Possessive quantifiers keep an unclosed quote from being searched again and again.
_TOKEN: Final = re.compile(
    r"""\s*+(?:
        (?P<word>     [\w@/.:+-]++ )
      | (?P<symbol>   [=!<>^$*&|~]++ )
      | (?P<string>   "(?:[^"\\]++|\\.)*+" | '(?:[^'\\]++|\\.)*+' )
      | (?P<name>     `(?:[^`\\]++|\\.|``)*+` )
      | (?P<unclosed> ["'`] )
      | (?P<open>     \( )
      | (?P<close>    \) )
      | (?P<other>    . )
      | (?P<end>      \Z )
    )""",
    re.VERBOSE | re.DOTALL,
)
_BARE: Final = re.compile(r"[\w@][\w@/.:-]*")
_NUMBER: Final = re.compile(
    r"[+-]?(?:[0-9]+|(?P<real>(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+))"
)
_ESCAPE: Final = re.compile(
    r"""\\(?:(?P<letter>["'`\\nrt])|(?P<code>u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})|)|(?P<doubled>``)"""
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

_RESERVED: Final = frozenset({"and", "or", "exists", "true", "false", "inf", "not"})
_WORD_VALUES: Final[dict[str, Scalar]] = {"true": True, "false": False, "inf": math.inf, "-inf": -math.inf}
_OPERATORS: Final = {str(operator): operator for operator in Operator if operator is not Operator.EXISTS}
_ESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t"}
_ESCAPES: Final = {character: f"\\{letter}" for letter, character in _ESCAPED.items()} | {"\\": "\\\\"}

_ESCAPE_RULE: Final = (
    r"""expected an escape, one of \\ \" \' \` \n \r \t, or \u with 4 or \U with 8 hexadecimal digits"""
)
_NO_NEGATION: Final = "there is no negation; write != or the opposite comparison"
_MEANT: Final = {
    "==": "write = for equality",
    "<>": "write != for inequality",
    "=<": "write <=",
    "=>": "write >=",
    "&": "write and",
    "&&": "write and",
    "|": "write or",
    "||": "write or",
    "!": _NO_NEGATION,
    "not": _NO_NEGATION,
}


def parse_filter(text: str) -> Filter:
    """The filter that `text` says. Raises `SyntaxProblem` at the first character that cannot be read."""
    if len(text) > MAX_LENGTH:
        expected = f"expected at most {MAX_LENGTH} characters; found {len(text)}"
        raise SyntaxProblem(expected, text[:MAX_LENGTH], MAX_LENGTH)
    if surrogate := _SURROGATE.search(text):
        raise SyntaxProblem("expected a character; found a lone surrogate", text, surrogate.start())
    return Filter(tuple(_Parser(text).everything()))


def format_filter(filter: Filter) -> str:
    """The text of a filter, which `parse_filter` reads back."""
    return " or ".join(map(_format_conjunction, filter.alternatives)) or "false"


def _format_conjunction(conjunction: Conjunction) -> str:
    return " and ".join(map(_format_constraint, conjunction)) or "true"


def _format_constraint(constraint: Constraint) -> str:
    name = _format_name(constraint.attribute)
    if constraint.value is None:
        return f"exists {name}"
    return f"{name} {constraint.operator} {_format_value(constraint.value)}"


def _format_name(name: str) -> str:
    if name == TYPE:
        return "type"
    if name != "type" and _is_bare(name):
        return name
    return f"`{_escape(name).replace('`', '``')}`"


def _format_value(value: Scalar) -> str:
    # The base classes' own repr: that of a subclass, such as numpy's float64, need not be a number.
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return float.__repr__(value)
    return '"{}"'.format(_escape(value).replace('"', '\\"'))


def _escape(text: str) -> str:
    return "".join(_ESCAPES.get(c) or (c if c.isprintable() else _escape_code(c)) for c in text)


def _escape_code(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _is_bare(word: str) -> bool:
    starts_well = word[0].isalpha() or word[0] in "_@"  # `\w` alone would let ² begin a name
    return starts_well and word not in _RESERVED and _BARE.fullmatch(word) is not None


class _Token(NamedTuple):
    kind: str  # the name of a group of _TOKEN
    text: str
    position: int

    @property
    def end(self) -> int:
        return self.position + len(self.text)

    def is_word(self, word: str) -> bool:
        return self.kind == "word" and self.text == word

    @property
    def shown(self) -> str:
        """The text, fit for a message: not too long, and printable."""
        shown = self.text if len(self.text) <= 40 else self.text[:39] + "…"
        return "".join(c if c.isprintable() else _escape_code(c) for c in shown)

    def __str__(self) -> str:
        return "the end of the text" if self.kind == "end" else f"'{self.shown}'"

    @property
    def meant(self) -> str:
        """What the writer probably meant by a token that does not belong where it is; often nothing is known."""
        word = self.text.lower()
        if word in _MEANT:
            return _MEANT[word]
        return f"keywords are lower case: write {word}" if word in _RESERVED and word != self.text else ""


class _Parser:
    """Recursive descent, one token ahead.

    A part of the text becomes the list of its alternatives; only the whole is made a `Filter`, since sorting at every
    level would let a hostile text take minutes. Each step that grows a list is bounded at the word that asked for it.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.depth = 0
        self.token = self.read(0)

    def read(self, position: int) -> _Token:
        match = _TOKEN.match(self.text, position)
        assert match is not None, "every character is a token, or a part of one"
        assert match.lastgroup is not None
        return _Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup))

    def take(self) -> _Token:
        token = self.token
        self.token = self.read(token.end)
        return token

    def problem(self, expected: str, hint: str = "") -> SyntaxProblem:
        """The refusal of the token at hand. If that is a quote never closed, nothing else matters."""
        token = self.token
        if token.kind == "unclosed":
            return SyntaxProblem(f"expected a closing {token.text} for this one", self.text, token.position)
        hint = token.meant or hint
        found = f"found {token}: {hint}" if hint else f"found {token}"
        return SyntaxProblem(f"expected {expected}; {found}", self.text, token.position)

    def everything(self) -> list[Conjunction]:
        alternatives = self.alternatives()
        if self.token.kind != "end":
            raise self.problem("'and', 'or' or the end of the text")
        return alternatives

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

    def multiply(self, left: list[Conjunction], right: list[Conjunction], place: _Token) -> list[Conjunction]:
        # Apart from `true`, a factor either empties the product or makes it larger by its own length at least: with
        # `true` out of the way, the bound on the size is a bound on the time.
        if right == [()]:
            return left
        if left == [()]:
            return right
        constraints = _count(left) * len(right) + _count(right) * len(left)
        self.check_size(len(left) * len(right), constraints, place)
        return [mine + theirs for mine in left for theirs in right]

    def check_size(self, alternatives: int, constraints: int, place: _Token) -> None:
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
            return [(Constraint(self.name("an attribute's name"), Operator.EXISTS),)]
        first = self.token
        name = self.name("a comparison such as price < 20")
        operator = self.operator(first)
        return [(Constraint(name, operator, self.value(operator)),)]

    def group(self) -> list[Conjunction]:
        if self.depth == MAX_DEPTH:
            raise self.problem(f"at most {MAX_DEPTH} parentheses inside each other")
        opened = self.take()
        self.depth += 1
        alternatives = self.alternatives()
        self.depth -= 1
        if self.token.kind != "close":
            raise self.problem(f"'and', 'or' or a ')' for the '(' at position {opened.position}")
        self.take()
        return alternatives

    def name(self, expected: str) -> str:
        token = self.token
        if token.kind == "word" and _is_bare(token.text):
            self.take()
            return TYPE if token.text == "type" else token.text
        if token.kind == "name":
            name = self.unquote(token)
            if not name:
                raise self.problem("an attribute's name with one character or more")
            self.take()
            return name
        if token.kind == "string" or _NUMBER.fullmatch(token.text):
            raise self.problem(expected, "the attribute comes first, then the operator and the value")
        hint = f"an attribute of that name is written `{token.shown}`" if token.kind == "word" else ""
        raise self.problem(expected, hint)

    def operator(self, name: _Token) -> Operator:
        operator = _OPERATORS.get(self.token.text)
        if operator is None:
            alone = self.token.text in ("", ")", "and", "or")
            hint = f"to ask whether it is there, write exists {name.shown}" if alone else name.meant
            raise self.problem(f"an operator, one of {' '.join(_OPERATORS)}", hint)
        self.take()
        return operator

    def value(self, operator: Operator) -> Scalar:
        token = self.token
        if token.kind == "string":
            value: Scalar = self.unquote(token)
        elif token.text in _WORD_VALUES:
            value = _WORD_VALUES[token.text]
        elif number := _NUMBER.fullmatch(token.text):
            value = self.real(token) if number["real"] else self.integer(token)
        else:
            hints = {"word": f'for text write "{token.shown}"', "name": "backquotes are for names"}
            raise self.problem("a value: a number, a quoted string, true or false", hints.get(token.kind, ""))
        if operator in STRING_ONLY and not isinstance(value, str):
            raise self.problem(f"a quoted string, since '{operator}' looks at strings", f'write "{token.shown}"')
        if operator in ORDERING and isinstance(value, bool):
            raise self.problem("a number or a quoted string, since bools have no order", "write = or !=")
        self.take()
        return value

    def integer(self, token: _Token) -> int:
        digits = token.text.lstrip("+-0") or "0"
        # Twenty digits are beyond 64 bits already, and Python refuses to convert thousands of them.
        value = int(digits[:20]) * (-1 if token.text[0] == "-" else 1)
        if INT_MIN <= value <= INT_MAX:
            return value
        raise self.problem(f"an integer in {INT_MIN}..{INT_MAX}", "write a larger number as a float, such as 1e20")

    def real(self, token: _Token) -> float:
        value = float(token.text)
        if math.isinf(value):
            raise self.problem("a float of 64 bits", f"for infinity write {value}")
        return value

    def unquote(self, token: _Token) -> str:
        """What stands between the quotes of a string or a name."""

        def replace(match: re.Match[str]) -> str:
            place = token.position + 1 + match.start()
            if match["doubled"]:
                return "`" if token.kind == "name" else "``"
            if letter := match["letter"]:
                return _ESCAPED.get(letter, letter)
            if not match["code"]:
                raise SyntaxProblem(_ESCAPE_RULE, self.text, place)
            code = int(match["code"][1:], 16)
            if 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
                raise SyntaxProblem(f"expected the escape of a character; found {match[0]}", self.text, place)
            return chr(code)

        return _ESCAPE.sub(replace, token.text[1:-1])


def _count(alternatives: list[Conjunction]) -> int:
    return sum(map(len, alternatives))
