"""Hostile XPath: whatever the text, reading it gives a filter or a `ContentError`."""

import contextlib
import random
from collections.abc import Iterator
from typing import Final

from bench.fuzz.making import any_unicode, mixed, mutated
from roamcast.content.xpath import filter_from_xpath
from roamcast.errors import ContentError

SEEDS: Final = (
    '/CD[category="jazz"][composer="Evans"]',
    '/CD[category="classic" and price<"20"]',
    "/*[(a or @b = 'x') and 20 >= price]/info[label != 5]/@year",
    "/CD/info[./label[@lang='en'] = \"X\" or . < -.5]/year",
)
TOKENS: Final = (
    *("/", "//", "[", "]", "(", ")", "@", ".", "..", "*", "|", "+", "-", "$", ":", "::", ",", "!", "#", "\0", "\n"),
    *("=", "!=", "<", "<=", ">", ">=", " and ", " or ", " div ", " mod ", "and", "not(", "text()", "child::", "p:"),
    *("a", "CD", "é", "_", "'x'", '"1"', "'", '"', "1", "1.", ".5", "1e3", "9" * 25, "-1", "'true'", "\ud800"),
    *("\t", " ", "\U0001f3b7"),
)  # fmt: skip


def _mutation(rng: random.Random) -> str:
    return mutated(rng, SEEDS, TOKENS)


def _soup(rng: random.Random) -> str:
    return rng.choice(("", "/a", "/a[", "/a[b=")) + "".join(rng.choices(TOKENS, k=rng.randint(1, 12)))


def _nesting(rng: random.Random) -> str:
    depth = rng.choice((1, 2, 10, 99, 100, 101))
    opening, closing = rng.choice((("[a", "]"), ("[(", ")]"), ("(", ")"), ("[a or ", "]")))
    return "/a[" + opening * depth + rng.choice(TOKENS) + closing * (depth + rng.choice((-1, 0, 0, 1))) + "]"


def _unicode(rng: random.Random) -> str:
    return any_unicode(rng, ("{}", "/{}", "/a[{}]", "/a[b='{}']", "/a[b={}]"))


def inputs(rng: random.Random) -> Iterator[str]:
    return mixed(rng, {_mutation: 10, _soup: 8, _nesting: 1, _unicode: 4})


def read(text: str) -> None:
    with contextlib.suppress(ContentError):
        filter_from_xpath(text)
