"""The filter language: what it means, what it prints, and what it says about mistakes."""

import contextlib
import math
import operator as python_operators
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from content.strategies import constraints, events, filters, scalars
from examples import examples
from roamcast.content.event import INT_MAX, INT_MIN, TYPE, Event, Scalar
from roamcast.content.filter import EVERYTHING, MAX_CONSTRAINTS, NOTHING, Constraint, Filter, Operator
from roamcast.content.text import MAX_DEPTH, MAX_LENGTH, format_filter, parse_filter
from roamcast.errors import SyntaxProblem

where = Filter.where


def only(text: str) -> Constraint:
    """The constraint of a text that has just one."""
    ((constraint,),) = parse_filter(text).alternatives
    return constraint


# What it means


def test_the_example_of_the_documentation() -> None:
    parsed = parse_filter('type = "CD" and category = "jazz" and (price < 20 or composer ^= "Ev")')

    jazz = (Constraint(TYPE, Operator.EQ, "CD"), Constraint("category", Operator.EQ, "jazz"))
    cheap = Constraint("price", Operator.LT, 20)
    evans = Constraint("composer", Operator.PREFIX, "Ev")
    assert parsed == Filter(((*jazz, cheap), (*jazz, evans)))
    assert parsed.matches(Event.of("CD", {"category": "jazz", "price": 19.99}))
    assert not parsed.matches(Event.of("LP", {"category": "jazz", "price": 19.99}))
    assert format_filter(parsed) == (
        'type = "CD" and category = "jazz" and composer ^= "Ev" or type = "CD" and category = "jazz" and price < 20'
    )


@pytest.mark.parametrize("symbol", ["=", "!=", "<", "<=", ">", ">=", "^=", "$=", "*="])
@pytest.mark.parametrize("space", ["", " ", "\n\t "])
def test_every_operator_with_and_without_spaces(symbol: str, space: str) -> None:
    assert parse_filter(f"a{space}{symbol}{space}'x'") == where("a", symbol, "x")


A, B, C = where("a", "=", 1), where("b", "=", 2), where("c", "exists")


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("true", EVERYTHING),
        ("false", NOTHING),
        ("exists c", C),
        ("a = 1 or b = 2 and exists c", A | (B & C)),
        ("a = 1 and b = 2 or exists c", (A & B) | C),
        ("(a = 1 or b = 2) and exists c", (A & C) | (B & C)),
        ("a = 1 and (b = 2 or exists c)", (A & B) | (A & C)),
        ("((a=1))and(b=2)", A & B),
        ("a = 1 or true", Filter(((), *A.alternatives))),
        ("a = 1 and true", A),
        ("true and a = 1", A),
        ("a = 1 and false or b = 2", B),
        ("false or a = 1", A),
        ("a = 1 and a = 1", A),
    ],
)
def test_precedence_and_constants(text: str, meaning: Filter) -> None:
    assert parse_filter(text) == meaning


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("type = 1", TYPE),
        ("`type` = 1", "type"),
        ("Type = 1", "Type"),
        ("`and` = 1", "and"),
        ("And = 1", "And"),
        ("`inf` = 1", "inf"),
        ("a-1=1", "a-1"),
        ("@id = 1", "@id"),
        ("_x2/y.z:w-v@ = 1", "_x2/y.z:w-v@"),
        ("größe = 1", "größe"),
        ("価格 = 1", "価格"),
        ("x² = 1", "x²"),
        ("`²` = 1", "²"),
        ("`x y` = 1", "x y"),
        ("```` = 1", "`"),
        ("`a``b\\`c` = 1", "a`b`c"),
        (r"`\u0000\\` = 1", "\0\\"),
    ],
)
def test_names(text: str, name: str) -> None:
    assert only(text).attribute == name
    assert only(format_filter(parse_filter(text))).attribute == name


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-12", -12),
        ("+5", 5),
        ("007", 7),
        ("-9223372036854775808", INT_MIN),
        ("9223372036854775807", INT_MAX),
        pytest.param("0" * 5000 + "7", 7, id="zeros"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("-.5E+1", -5.0),
        ("1e3", 1000.0),
        ("9223372036854775808.0", 2.0**63),
        ("1e-999", 0.0),
        ("-0.0", -0.0),
        ("inf", math.inf),
        ("-inf", -math.inf),
        ("true", True),
        ("false", False),
        ('""', ""),
        ("'say \"hi\"'", 'say "hi"'),
        ('"it\'s"', "it's"),
        (r'"\\ \" \' \` \n \r \t \u00e9 \U0001F4FB"', "\\ \" ' ` \n \r \t é \U0001f4fb"),
        (r"'\\'", "\\"),
        ('"``"', "``"),
        ('"\t\n\0"', "\t\n\0"),
        (r'"\ud7ff\ue000\U0010ffff"', "\ud7ff\ue000\U0010ffff"),
        ('"and) or"', "and) or"),
    ],
)
def test_values(text: str, value: Scalar) -> None:
    parsed = only(f"a = {text}").value
    assert (type(parsed), repr(parsed)) == (type(value), repr(value))


# What it prints


@pytest.mark.parametrize(
    ("filter_", "text"),
    [
        (EVERYTHING, "true"),
        (NOTHING, "false"),
        (EVERYTHING | A, "true or a = 1"),
        (where(TYPE, "exists"), "exists type"),
        (where("type", "exists"), "exists `type`"),
        (where("not", "exists"), "exists `not`"),
        (where("x y`\n", "exists"), r"exists `x y``\n`"),
        (where("\u0301", "exists"), "exists `\u0301`"),
        (where("a", "=", True), "a = true"),
        (where("a", "=", 1.0), "a = 1.0"),
        (where("a", "=", 1e16), "a = 1e+16"),
        (where("a", "<", -math.inf), "a < -inf"),
        (where("a", "=", 'it\'s "é"\\'), r'''a = "it's \"é\"\\"'''),
        (where("a", "=", "\0\x1b\t\u2028\U0010ffff"), r'a = "\u0000\u001b\t\u2028\U0010ffff"'),
    ],
)
def test_printing(filter_: Filter, text: str) -> None:
    assert format_filter(filter_) == text
    assert str(filter_) == text


def test_a_subclass_of_float_prints_as_the_number_it_is() -> None:
    class Measured(float):
        def __repr__(self) -> str:
            return f"Measured({float(self)})"

    assert format_filter(where("a", "<", Measured(2.5))) == "a < 2.5"


@settings(max_examples=examples(300), deadline=None)
@given(filters)
def test_what_is_printed_reads_back(filter_: Filter) -> None:
    text = format_filter(filter_)
    parsed = parse_filter(text)
    assert parsed == filter_
    assert repr(parsed) == repr(filter_), "1 stays an int and -0.0 keeps its sign, though they compare equal"
    assert text.isprintable()


@settings(max_examples=examples(300), deadline=None)
@given(scalars)
def test_values_read_back_identical(value: Scalar) -> None:
    parsed = only(format_filter(where("a", "!=", value))).value
    assert (type(parsed), repr(parsed)) == (type(value), repr(value))


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_name_reads_back(name: str) -> None:
    text = format_filter(where(name, "exists"))
    assert only(text).attribute == name
    assert text.isprintable()


def test_the_largest_filter_reads_back() -> None:
    pairs = [(Constraint(f"a{i}", Operator.EXISTS),) for i in range(MAX_CONSTRAINTS - 2)]
    largest = Filter((*pairs, A.alternatives[0] + B.alternatives[0], ()))
    assert (len(largest.alternatives), sum(map(len, largest.alternatives))) == (MAX_CONSTRAINTS, MAX_CONSTRAINTS)
    assert parse_filter(format_filter(largest)) == largest


# Generated expressions against an evaluator that knows nothing of alternatives

Tree = Constraint | bool | tuple[str, list["Tree"]]

trees: st.SearchStrategy[Tree] = st.recursive(
    constraints | st.booleans(),
    lambda inner: st.tuples(st.sampled_from(("and", "or")), st.lists(inner, min_size=2, max_size=3)),
    max_leaves=10,
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


def comparable(value: Scalar, bound: Scalar) -> bool:
    numbers = (int, float)
    return type(value) is type(bound) or (type(value) in numbers and type(bound) in numbers)


def evaluate(tree: Tree, event: Event) -> bool:
    if isinstance(tree, bool):
        return tree
    if isinstance(tree, tuple):
        word, parts = tree
        return (all if word == "and" else any)([evaluate(part, event) for part in parts])
    values = (event.type,) if tree.attribute == TYPE else event.attributes.get(tree.attribute, ())
    bound = tree.value
    if bound is None:
        return len(values) > 0
    return any(comparable(value, bound) and COMPARE[tree.operator](value, bound) for value in values)


class Writer:
    """Writes a tree down as tokens in one of the many ways there are."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def one_of(self, *ways: str) -> str:
        return self.draw(st.sampled_from(ways))

    def name(self, name: str) -> str:
        if name == TYPE:
            return "type"
        quoted = "`" + name.replace("\\", "\\\\").replace("`", "``") + "`"
        return self.one_of(quoted, name) if name in ("price", "category", "@id", "a/b", "ü") else quoted

    def value(self, value: Scalar) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str):
            return self.string(value)
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        if isinstance(value, int):
            return self.one_of(str(value), f"{value:021d}")
        return self.one_of(repr(value), f"{value:.17e}", f"{Decimal(value):f}" + ("" if value % 1 else ".0"))

    def string(self, text: str) -> str:
        quote = self.one_of('"', "'")
        characters = []
        for character in text:
            code = ord(character)
            ways = [f"\\U{code:08X}"]
            if code <= 0xFFFF:
                ways.append(f"\\u{code:04x}")
            if character not in (quote, "\\"):
                ways.append(character)
            characters.append(self.one_of(*ways))
        return quote + "".join(characters) + quote

    def tree(self, tree: Tree, inside: str = "or") -> list[str]:
        if isinstance(tree, bool):
            tokens = ["true" if tree else "false"]
        elif isinstance(tree, tuple):
            word, parts = tree
            tokens = self.tree(parts[0], word)
            for part in parts[1:]:
                tokens += [word, *self.tree(part, word)]
        elif tree.value is None:
            tokens = ["exists", self.name(tree.attribute)]
        else:
            tokens = [self.name(tree.attribute), str(tree.operator), self.value(tree.value)]
        needed = isinstance(tree, tuple) and (tree[0], inside) == ("or", "and")
        return ["(", *tokens, ")"] if needed or self.draw(st.integers(0, 3)) == 0 else tokens

    def text(self, tree: Tree) -> str:
        parting = set("()\"'`=!<>^$*")
        text = self.one_of("", " ")
        for token in self.tree(tree):
            touching = text[-1:] == "" or text[-1] in parting or token[0] in parting
            text += self.one_of(*([""] if touching else []), " ", "\n", " \t\u00a0 ") + token
        return text + self.one_of("", "\r\n")


@st.composite
def written_trees(draw: st.DrawFn) -> tuple[str, Tree]:
    tree = draw(trees)
    return Writer(draw).text(tree), tree


@settings(max_examples=examples(400), deadline=None)
@given(written_trees(), st.lists(events, min_size=1, max_size=4))
def test_a_text_matches_what_its_tree_matches(written: tuple[str, Tree], seen: list[Event]) -> None:
    text, tree = written
    parsed = parse_filter(text)
    assert [parsed.matches(event) for event in seen] == [evaluate(tree, event) for event in seen]


# What it says about mistakes

MISTAKES: Final = [
    # The comparison
    ("price == 20", 6, "write = for equality"),
    ("price <> 5", 6, "write != for inequality"),
    ("price =< 5", 6, "write <="),
    ("price => 5", 6, "write >="),
    ("price ~ 5", 6, "an operator, one of = != < <= > >= ^= $= *=; found '~'"),
    ("20 < price", 0, "the attribute comes first"),
    ("a = 1 and 'jazz' = category", 10, "the attribute comes first"),
    (
        "price < twenty",
        8,
        "a value: a number, a quoted string, true or false; found 'twenty': for text write \"twenty\"",
    ),
    ("day > 2024-01-05", 6, 'for text write "2024-01-05"'),
    ("price < `cost`", 8, "backquotes are for names"),
    ("price < ", 8, "a value: a number, a quoted string, true or false; found the end of the text"),
    ("price < )", 8, "found ')'"),
    ("price", 5, "write exists price"),
    ("active and price < 20", 7, "write exists active"),
    ("price 20", 6, "an operator"),
    ("active < true", 9, "bools have no order"),
    ("active >= false", 10, "write = or !="),
    ("price ^= 5", 9, "'^=' looks at strings; found '5': write \"5\""),
    ("price $= true", 9, "looks at strings"),
    ("price *= inf", 9, "looks at strings"),
    # Words
    ("a = 1 && b = 2", 6, "write and"),
    ("a = 1||b = 2", 5, "write or"),
    ("not a = 1", 0, "there is no negation; write !="),
    ("!(a = 1)", 0, "there is no negation"),
    ("NOT a = 1", 4, "there is no negation"),
    ("a = 1 and not b = 1", 10, "there is no negation"),
    ("a = 1 AND b = 2", 6, "keywords are lower case: write and"),
    ("EXISTS a", 7, "keywords are lower case: write exists"),
    ("a = True", 4, "keywords are lower case: write true"),
    ("and = 1", 0, "an attribute of that name is written `and`"),
    ("exists exists", 7, "an attribute's name; found 'exists'"),
    ("exists", 6, "an attribute's name; found the end of the text"),
    ("", 0, "a comparison such as price < 20; found the end of the text"),
    (" \n ", 3, "found the end of the text"),
    ("a = 1 and", 9, "a comparison"),
    ("or a = 1", 0, "a comparison"),
    # Names
    ("2nd = 1", 0, "is written `2nd`"),
    ("²x = 1", 0, "is written `²x`"),
    ("-a = 1", 0, "is written `-a`"),
    ("/cd/title = 1", 0, "is written `/cd/title`"),
    ("a = 1 or `` = 1", 9, "one character or more"),
    ("`a``", 0, "a closing `"),
    ("\ufeffa = 1", 0, r"found '\ufeff'"),
    # Parentheses, quotes, and what is left over
    ("(a = 1", 6, "a ')' for the '(' at position 0; found the end of the text"),
    ("a = 1 and ((b = 2) c", 19, "a ')' for the '(' at position 10; found 'c'"),
    ("()", 1, "found ')'"),
    ("a = 1)", 5, "'and', 'or' or the end of the text; found ')'"),
    ("a = 1 b = 2", 6, "'and', 'or' or the end of the text; found 'b'"),
    ("a = 1, b = 2", 5, "found ','"),
    ("true = 1", 5, "found '='"),
    ('a = "jazz', 4, 'a closing "'),
    ("a = 'jazz\\'", 4, "a closing '"),
    ("a = 1 'x", 6, "a closing '"),
    # Escapes
    (r'a = "x\q"', 6, r"an escape, one of \\"),
    (r'a = "\u12"', 5, "4 or"),
    (r'a = "\x41"', 5, "an escape"),
    (r'a = "\0"', 5, "an escape"),
    (r"`x\0` = 1", 2, "an escape"),
    (r'a = "\\\ud83d\udcfb"', 7, r"the escape of a character; found \ud83d"),
    (r'a = "\ud800"', 5, "the escape of a character"),
    (r'a = "\U0000dfff"', 5, "the escape of a character"),
    (r'a = "\U00110000"', 5, "the escape of a character"),
    ('a = "x\udc00"', 6, "a lone surrogate"),
    # Numbers
    ("a = 9223372036854775808", 4, "write a larger number as a float"),
    ("a = -9223372036854775809", 4, "an integer in -9223372036854775808..9223372036854775807"),
    ("a = 10000000000000000000", 4, "write a larger number as a float"),
    ("a = " + "9" * 5000, 4, "write a larger number as a float"),
    ("a = 1e999", 4, "for infinity write inf"),
    ("a = -1e999", 4, "for infinity write -inf"),
    ("a = 1_000", 4, 'for text write "1_000"'),
    ("a = ٣", 4, "a value"),
    ("a = .", 4, "a value"),
    ("a = 0x10", 4, "a value"),
    ("a = 20and b = 1", 4, "found '20and'"),
]


@pytest.mark.parametrize(("text", "position", "fragment"), MISTAKES, ids=[ascii(text[:30]) for text, *_ in MISTAKES])
def test_mistakes(text: str, position: int, fragment: str) -> None:
    with pytest.raises(SyntaxProblem) as caught:
        parse_filter(text)
    assert (caught.value.position, caught.value.text) == (position, text)
    assert fragment in caught.value.expected


def test_a_mistake_is_shown_under_its_line() -> None:
    with pytest.raises(SyntaxProblem) as caught:
        parse_filter('category = "jazz" and\n\tprice == 20')
    assert str(caught.value) == (
        "at position 29: expected an operator, one of = != < <= > >= ^= $= *=; found '==': write = for equality\n"
        "  \N{REPLACEMENT CHARACTER}price == 20\n"
        "         ^"
    )


# Bounds


def test_depth_is_bounded() -> None:
    assert parse_filter("(" * MAX_DEPTH + "a = 1" + ")" * MAX_DEPTH) == A
    assert parse_filter("(true) and " * (2 * MAX_DEPTH) + "a = 1") == A, "groups beside each other are not deep"
    with pytest.raises(SyntaxProblem, match="at most 100 parentheses inside each other") as caught:
        parse_filter("(" * (MAX_DEPTH + 1) + "a = 1" + ")" * (MAX_DEPTH + 1))
    assert caught.value.position == MAX_DEPTH


def test_length_is_bounded() -> None:
    assert parse_filter("a = 1".ljust(MAX_LENGTH)) == A
    with pytest.raises(SyntaxProblem, match="at most 65536 characters; found 65537") as caught:
        parse_filter("a = 1".ljust(MAX_LENGTH + 1))
    assert caught.value.position == MAX_LENGTH


EITHER: Final = "(a = 1 or b = 2)"


@pytest.mark.parametrize(
    ("text", "position", "fragment"),
    [
        # Eight factors of two: 2^8 alternatives of 8 constraints. The `and` before the eighth is the one too many.
        (" and ".join([EITHER] * 12), 7 * len(EITHER) + 6 * len(" and ") + 1, "2048 constraints in 256 alternatives"),
        (" or ".join(["a=1"] * 5000), 1024 * 7 - 3, "1025 constraints in 1025 alternatives"),
        (" or ".join(["true"] * 5000), 1024 * 8 - 3, "0 constraints in 1025 alternatives"),
        (" and ".join(["a=1"] * 5000), 1024 * 8 - 4, "1025 constraints in 1 alternatives"),
    ],
)
def test_what_a_filter_can_hold_is_bounded(text: str, position: int, fragment: str) -> None:
    with pytest.raises(SyntaxProblem) as caught:
        parse_filter(text)
    assert caught.value.position == position
    assert text[position:].startswith(("and", "or"))
    assert fragment in caught.value.expected


EIGHT: Final = " and ".join([EITHER] * 8)


@pytest.mark.parametrize(
    "text",
    [
        "(" + " or ".join(f"a{i} = 1" for i in range(4000)) + ")" + " and true" * 1700,
        " or ".join([f"{EIGHT} and false"] * 350),
        " or ".join(["(" * 99 + EIGHT + " or false)" * 99 + " and false"] * 50),
        " and ".join(f"a{i} = 1" for i in range(4000)),
        "a = '" + "\\n" * 32000 + "'",
        "`" * MAX_LENGTH + "= 1",
        "a = " + "1" * 30000 + "." + "1" * 30000 + "e-30000",
        "(" * MAX_LENGTH,
    ],
    ids=["true", "products", "nested products", "ands", "escapes", "backquotes", "digits", "parentheses"],
)
def test_a_hostile_text_takes_less_than_a_second(text: str) -> None:
    started = time.process_time()
    with contextlib.suppress(SyntaxProblem):
        parse_filter(text[:MAX_LENGTH])
    assert time.process_time() - started < 1
