r"""The tokens that the filter and context languages share: words, names, values, quotes; and how mistakes are reported.

The filter language (`text.py`) and the context language (`context/text.py`) are grammars over these tokens:

* **Names.** Bare: a letter of any script, `_` or `@`, then letters, digits and `_ @ / . : -`; so `a-1` is one name. Any
  other name, and one spelled like a keyword, stands in backquotes, with a backquote inside doubled.
* **Keywords** are lower case: and, or, not, exists, true, false, inf.
* **Values.** `true`, `false`; strings in double or single quotes; integers of 64 bits (`-12`, `+5`); floats, rounded
  to the nearest double (`1.5`, `.5`, `5.`, `1e3`, `inf`, `-inf`).
* **Escapes**, in all three kinds of quotes: `\\`, `\n`, `\r`, `\t`, `\"`, `\'`, `` \` ``, `\uXXXX`, `\UXXXXXXXX`.
  Unescaped control characters are accepted; printing escapes everything that is not printable, in names as in strings,
  since text from a stranger may end up on a terminal.
* **Bounds.** `MAX_LENGTH` characters. No lone surrogates.
"""

import math
import re
from collections.abc import Mapping
from typing import ClassVar, Final, NamedTuple

from roamcast.content.event import INT_MAX, INT_MIN, Scalar
from roamcast.content.filter import ORDERING, STRING_ONLY, Operator
from roamcast.errors import SyntaxProblem

MAX_LENGTH: Final = 65536

# Runs of characters are one token and checked afterwards, so that a message can name `==`, `&&`, `20x` or `2024-01-05`
# as typed. Possessive quantifiers avoid searching for an unclosed quote again and again.
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

RESERVED: Final = frozenset({"and", "or", "exists", "true", "false", "inf", "not"})
_WORD_VALUES: Final[dict[str, Scalar]] = {"true": True, "false": False, "inf": math.inf, "-inf": -math.inf}
OPERATORS: Final = {str(operator): operator for operator in Operator if operator is not Operator.EXISTS}
_ESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t"}
_ESCAPES: Final = {character: f"\\{letter}" for letter, character in _ESCAPED.items()} | {"\\": "\\\\"}

_ESCAPE_RULE: Final = (
    r"""expected an escape, one of \\ \" \' \` \n \r \t, or \u with 4 or \U with 8 hexadecimal digits"""
)
_MEANT: Final = {
    "==": "write = for equality",
    "<>": "write != for inequality",
    "=<": "write <=",
    "=>": "write >=",
    "&": "write and",
    "&&": "write and",
    "|": "write or",
    "||": "write or",
}


def format_name(name: str) -> str:
    if is_bare(name):
        return name
    return f"`{_escape(name).replace('`', '``')}`"


def format_value(value: Scalar) -> str:
    # The base classes' own repr: the repr of a subclass, such as numpy's float64, need not be a number.
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


def is_bare(word: str) -> bool:
    starts_well = word[0].isalpha() or word[0] in "_@"  # `\w` alone would let ² begin a name
    return starts_well and word not in RESERVED and _BARE.fullmatch(word) is not None


class Token(NamedTuple):
    """One word, symbol, quoted text, parenthesis or other character, or the end."""

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
        """The text, shortened and printable, for a message."""
        shown = self.text if len(self.text) <= 40 else self.text[:39] + "…"
        return "".join(c if c.isprintable() else _escape_code(c) for c in shown)

    def __str__(self) -> str:
        return "the end of the text" if self.kind == "end" else f"'{self.shown}'"


class TokenReader:
    """The part of a recursive-descent parser, one token ahead, that does not depend on the grammar."""

    KEYWORDS: ClassVar[frozenset[str]] = RESERVED
    """The words of the language, including those that may also be names."""
    MEANT: ClassVar[Mapping[str, str]] = {}
    """Hints for words of other languages that this one lacks."""
    MOST_INSIDE: ClassVar[tuple[int, str]]
    """How many of what may be inside each other."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            expected = f"expected at most {MAX_LENGTH} characters; found {len(text)}"
            raise SyntaxProblem(expected, text[:MAX_LENGTH], MAX_LENGTH)
        if surrogate := _SURROGATE.search(text):
            raise SyntaxProblem("expected a character; found a lone surrogate", text, surrogate.start())
        self.text = text
        self.depth = 0
        self.token = self.read(0)

    def read(self, position: int) -> Token:
        match = _TOKEN.match(self.text, position)
        assert match is not None, "every character is a token, or a part of one"
        assert match.lastgroup is not None
        return Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup))

    def take(self) -> Token:
        token = self.token
        self.token = self.read(token.end)
        return token

    def deeper(self) -> Token:
        """Takes the token with which another level begins."""
        most, what = self.MOST_INSIDE
        if self.depth == most:
            raise self.problem(f"at most {most} {what} inside each other")
        self.depth += 1
        return self.take()

    def close(self, opened: Token, others: str = "", hint: str = "") -> None:
        """Takes the parenthesis that closes `opened`, and leaves the level that `deeper` entered there."""
        self.depth -= 1
        self.closing(opened, others, hint)

    def closing(self, opened: Token, others: str = "", hint: str = "") -> None:
        if self.token.kind != "close":
            raise self.problem(f"{others}a ')' for the '(' at position {opened.position}", hint)
        self.take()

    def end(self) -> None:
        if self.token.kind != "end":
            raise self.problem("'and', 'or' or the end of the text")

    def meant(self, token: Token) -> str:
        """A hint at what the writer probably meant by a misplaced token; often empty."""
        word = token.text.lower()
        known = self.MEANT.get(word) or _MEANT.get(word)
        if known:
            return known
        return f"keywords are lower case: write {word}" if word in self.KEYWORDS and word != token.text else ""

    def problem(self, expected: str, hint: str = "") -> SyntaxProblem:
        """The error for the current token. If that is an unclosed quote, the error is about the quote."""
        token = self.token
        if token.kind == "unclosed":
            return SyntaxProblem(f"expected a closing {token.text} for this one", self.text, token.position)
        hint = self.meant(token) or hint
        found = f"found {token}: {hint}" if hint else f"found {token}"
        return SyntaxProblem(f"expected {expected}; {found}", self.text, token.position)

    def name(self, expected: str) -> str:
        token = self.token
        if token.kind == "word" and is_bare(token.text):
            self.take()
            return token.text
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

    def operator(self, name: Token) -> Operator:
        operator = OPERATORS.get(self.token.text)
        if operator is None:
            alone = self.token.text in ("", ")", "and", "or")
            hint = f"to ask whether it is there, write exists {name.shown}" if alone else self.meant(name)
            raise self.problem(f"an operator, one of {' '.join(OPERATORS)}", hint)
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

    def number(self, expected: str) -> int | float:
        token = self.token
        number = _NUMBER.fullmatch(token.text)
        if number is None:
            raise self.problem(expected)
        value = self.real(token) if number["real"] else self.integer(token)
        self.take()
        return value

    def integer(self, token: Token) -> int:
        digits = token.text.lstrip("+-0") or "0"
        # Twenty digits are beyond 64 bits already, and Python refuses to convert thousands of them.
        value = int(digits[:20]) * (-1 if token.text[0] == "-" else 1)
        if INT_MIN <= value <= INT_MAX:
            return value
        raise self.problem(f"an integer in {INT_MIN}..{INT_MAX}", "write a larger number as a float, such as 1e20")

    def real(self, token: Token) -> float:
        value = float(token.text)
        if math.isinf(value):
            raise self.problem("a float of 64 bits", f"for infinity write {value}")
        return value

    def unquote(self, token: Token) -> str:
        """The text between the quotes of a string or a name."""

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
