"""Generated inputs for the filter language.

Most are short, since a mistake in the parser seldom needs a long text and short texts go by the million; the few long
ones try the bounds.
"""

import random
from collections.abc import Callable, Iterator
from typing import Final

from roamcast.content.text import MAX_LENGTH, format_filter, parse_filter
from roamcast.errors import ContentError

VALID: Final = (
    'type = "CD" and category = "jazz" and (price < 20 or composer ^= "Ev")',
    "exists a and (b != -1.5e3 or not_b >= .5) or `x ``y` *= 'z'",
    "true and (false or a = true) and b < -inf",
    r'a = "\\ \" \n \u00e9 \U0001F4FB" or ü $= ' + "'\\''",
    "((a<1 or b<2) and (c<3 or d<4)) or @id = 9223372036854775807",
)
TOKENS: Final = (
    *("a", "b", "type", "@id", "a/b", "ü", "`x y`", "`and`", "````", "``", "`"),
    *("and", "or", "exists", "true", "false", "not", "AND", "inf", "-inf"),
    *("=", "!=", "<", "<=", ">", ">=", "^=", "$=", "*=", "==", "<>", "&&", "||", "!"),
    *("0", "-1", "1.5", ".5", "5.", "1e3", "1e999", "9223372036854775807", "9223372036854775808", "2nd", "-", "."),
    *('"x"', "'y'", '""', '"', "'", r'"\n"', r'"\ud800"', r'"\q"', "\\", "\0", "\u2028", "\U0010ffff", "\udc00", ","),
    *("(", ")", " ", "\n"),
)
COMPARISONS: Final = ("a = 1", "b<2.5", "c ^= 'x'", "exists d", "type != 'e'", "`f` = true", "true", "false")
CHARACTERS: Final = "".join(map(chr, range(128))) + "é²½٣\u00a0\u0301\u2028\ufeff\uffff\ud800\udfff\U0001f4fb\U0010ffff"


def soup(rng: random.Random) -> str:
    return rng.choice(("", " ")).join(rng.choices(TOKENS, k=rng.randrange(1, 10)))


def sentence(rng: random.Random) -> str:
    """Comparisons joined at random, with parentheses that need not balance: often a filter, or nearly one."""
    parts = []
    for _ in range(rng.randrange(1, 5)):
        parts += [rng.choice(("", "", "(")), rng.choice(COMPARISONS), rng.choice(("", "", ")"))]
        parts.append(rng.choice((" and ", " or ")))
    return "".join(parts[:-1])


def mutation(rng: random.Random) -> str:
    """A valid text with a piece cut out, doubled, or replaced by a character or a token."""
    text = rng.choice(VALID)
    start = rng.randrange(len(text))
    end = start + rng.randrange(6)
    middle = rng.choice(("", text[start:end] * 2, rng.choice(CHARACTERS), rng.choice(TOKENS)))
    return text[:start] + middle + text[end:]


def characters(rng: random.Random) -> str:
    return "".join(rng.choices(CHARACTERS, k=rng.randrange(1, 12)))


def code_points(rng: random.Random) -> str:
    return rng.choice(("", 'a = "', "`", "a = ")) + "".join(chr(rng.randrange(0x110000)) for _ in range(4))


def nesting(rng: random.Random) -> str:
    depth = rng.choice((1, 10, 99, 100, 101, 1000))
    return "(" * depth + rng.choice(COMPARISONS) + ")" * (depth - rng.choice((0, 0, 1, -1)))


def run(rng: random.Random) -> str:
    """One piece again and again, up to and beyond the greatest length."""
    piece = rng.choice(("a = 1 and ", "true or ", "(a<1 or b<2) and ", "\\n", "9", rng.choice(TOKENS)))
    length = rng.choice((100, 1000, MAX_LENGTH, MAX_LENGTH + 1))
    return (rng.choice(("", "a = ", 'a = "', "`")) + piece * length)[:length] + rng.choice(("", '"', "`", "a = 1"))


MAKERS: Final[dict[Callable[[random.Random], str], int]] = {
    soup: 4000,
    sentence: 2000,
    mutation: 1500,
    characters: 3000,
    code_points: 500,
    nesting: 20,
    run: 15,
}


def inputs(rng: random.Random) -> Iterator[str]:
    makers, weights = list(MAKERS), list(MAKERS.values())
    while True:
        for make in rng.choices(makers, weights, k=1000):
            yield make(rng)


def read(text: str) -> None:
    """Reads a text and, if it is a filter, its printed form too. Raises `ContentError` if it is none."""
    parsed = parse_filter(text)
    printed = format_filter(parsed)
    assert printed.isprintable(), printed
    if len(printed) > MAX_LENGTH:
        return
    try:
        again = parse_filter(printed)
    except ContentError as problem:
        raise AssertionError(f"{printed!r} was printed but cannot be read") from problem
    assert again == parsed, (text, printed)
