"""Hostile contexts: whatever the text, reading it gives a context or a `ContentError`.

What is a context must print as a text that reads back, survive the air, and be decided for any host.
"""

import random
from collections.abc import Iterator
from typing import Final

import msgspec

from bench.fuzz.making import any_unicode, mixed, mutated
from roamcast.content.context.evaluate import evaluate
from roamcast.content.context.expression import Context
from roamcast.content.context.host import HostView, Situation
from roamcast.content.context.rules import query_distance, region_of
from roamcast.content.context.text import parse_context
from roamcast.content.tokens import MAX_LENGTH
from roamcast.errors import ContentError

SEEDS: Final = (
    'within(rect(0, 0, 100, 50)) and heading = "east" or not speed > max(neighbours.speed)',
    'count(neighbours within 50 where heading ^= "e" and not (a = true or exists `x y`)) >= 3',
    "mean(hosts.`x ``y` within 500) != min(neighbours.distance where within(circle(1, -2, .5)))",
    "within(polygon(0 0, 6 0, 6 5, 4 5, 4 1, 2 1, 2 5, 0 5)) and (a < -inf or false)",
    "count = 3 and not not (within = 1 or where != 'x') and true",
)
TOKENS: Final = (
    *("within", "within(", "rect(", "circle(", "polygon(", "count(", "min(", "max(", "mean(", "where ", "("),
    *("neighbours", "neighbours.", "neighbours.speed", "hosts", "hosts.a ", ".", ",", ")", "))", "`", "`x`", "'", '"'),
    *(" and ", " or ", "not ", "exists ", "true", "false", "inf", "-inf", "AND", "Within", "neighbors", "distance"),
    *("=", "!=", "<", "<=", ">", ">=", "^=", "$=", "*=", "==", "!", "a", "x", "type", "'x'", r"'\n'", r"'\q'"),
    *("0", "-1", "1e9", "4e9", "1e999", "5e-324", "-0.0", "9223372036854775808", "0 0", "1 1, ", "0, 0, 1, 1)"),
    *(" ", "\n", "\0", "\u2028", "\U0010ffff", "\udc00"),
)
HOSTS: Final = (
    HostView((1.0, -2.0), (3.0, 4.0), {"heading": "east", "a": True, "x y": 5, "count": 3}),
    HostView((50.0, 25.0), None, {"a": "x", "speed": float("inf")}),
    HostView(None, None, {"a": 1, "speed": float("-inf")}),
)

_decoder: Final = msgspec.msgpack.Decoder(Context)


def _mutation(rng: random.Random) -> str:
    return mutated(rng, SEEDS, TOKENS)


def _soup(rng: random.Random) -> str:
    return rng.choice(("", "a = 1 and ", "within(", "count(neighbours ")) + "".join(
        rng.choices(TOKENS, k=rng.randint(1, 12))
    )


def _sentence(rng: random.Random) -> str:
    """Properties joined at random, with parentheses that need not balance: often a context, or nearly one."""
    parts = []
    for _ in range(rng.randint(1, 4)):
        parts += [rng.choice(("", "", "not ", "(")), rng.choice((_region, _relation))(rng), rng.choice(("", "", ")"))]
        parts.append(rng.choice((" and ", " or ")))
    return "".join(parts[:-1])


def _region(rng: random.Random) -> str:
    size = rng.choice((2, 3, 3, 4, 4, 5, 32, 33))
    coordinates = [rng.choice((rng.randint(-9, 9), rng.uniform(-9, 9), 1e-300, 1e9)) for _ in range(2 * size)]
    if rng.random() < 0.5:
        return f"within(polygon({', '.join(f'{x} {y}' for x, y in zip(*[iter(coordinates)] * 2, strict=True))}))"
    return f"within({rng.choice(('rect', 'circle'))}({', '.join(map(str, coordinates[:size]))}))"


def _relation(rng: random.Random) -> str:
    function, scope = rng.choice(("count", "min", "max", "mean")), rng.choice(("neighbours", "hosts"))
    attribute = "" if function == "count" else rng.choice((".speed", ".distance", ".a", ".`x y`"))
    within = rng.choice(("", "", " within 50", " within 1e-9"))
    where = rng.choice(("", "", f" where not a = 1 or {_region(rng)}", " where distance < 5", " where exists a"))
    return f"{function}({scope}{attribute}{within}{where}) {rng.choice(('=', '<', '>='))} {rng.choice((3, 1e308))}"


def _nesting(rng: random.Random) -> str:
    depth = rng.choice((1, 10, 31, 32, 33, 1000))
    opening, closing = rng.choice((("(", ")"), ("not ", ""), ("not (", ")"), ("count(neighbours where ", ") = 1")))
    return opening * depth + rng.choice(("a = 1", "count(neighbours) = 1")) + closing * depth


def _run(rng: random.Random) -> str:
    """One piece again and again, up to and beyond the greatest length."""
    piece = rng.choice(("a = 1 and ", "0 0, ", "count(neighbours) = 1 or ", "9", ".", rng.choice(TOKENS)))
    length = rng.choice((100, 1000, MAX_LENGTH, MAX_LENGTH + 1))
    return (rng.choice(("", "a = ", "within(polygon(", "max(neighbours.")) + piece * length)[:length]


def _unicode(rng: random.Random) -> str:
    return any_unicode(rng, ("{}", "a = '{}'", "`{}` = 1", "within({})", "max(neighbours.`{}`) = 1"))


def inputs(rng: random.Random) -> Iterator[str]:
    return mixed(rng, {_mutation: 1000, _soup: 800, _sentence: 600, _unicode: 200, _nesting: 10, _run: 4})


def read(text: str) -> None:
    parsed = parse_context(text)
    printed = str(parsed)
    assert printed.isprintable(), printed
    if len(printed) <= MAX_LENGTH:
        try:
            again = parse_context(printed)
        except ContentError as problem:
            raise AssertionError(f"{printed!r} was printed but cannot be read") from problem
        assert again == parsed, (text, printed)
    assert _decoder.decode(msgspec.msgpack.encode(parsed)) == parsed, text
    region = region_of(parsed)
    for number, host in enumerate(HOSTS):
        others = (*HOSTS[:number], *HOSTS[number + 1 :])
        truth = evaluate(parsed, Situation(host, others, others))
        assert truth is not None, text
        assert evaluate(parsed, Situation(host, others)) in (truth, None), text
        assert query_distance(parsed) > 0 or evaluate(parsed, Situation(host, others)) is truth, text
        if truth and region is not None:
            assert host.location is not None, text
            assert region.contains(*host.location), text
