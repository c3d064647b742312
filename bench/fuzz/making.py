"""What the generators of hostile text share."""

import random
from collections.abc import Callable, Iterator, Sequence

Maker = Callable[[random.Random], str]


def mixed(rng: random.Random, makers: dict[Maker, int]) -> Iterator[str]:
    """Texts without end, from makers by their shares."""
    while True:
        yield rng.choices(list(makers), list(makers.values()))[0](rng)


def mutated(rng: random.Random, seeds: Sequence[str], tokens: Sequence[str]) -> str:
    """A valid text with some places replaced, doubled or gone."""
    text = rng.choice(seeds)
    for _ in range(rng.randint(1, 4)):
        start = rng.randint(0, len(text))
        end = min(len(text), start + rng.choice((0, 0, 1, 2, 8)))
        middle = rng.choice((rng.choice(tokens), text[start:end] * 2, ""))
        text = text[:start] + middle + text[end:]
    return text


def any_unicode(rng: random.Random, shapes: Sequence[str]) -> str:
    """Characters from anywhere, surrogates included, in one of the shapes."""
    return rng.choice(shapes).format("".join(chr(rng.randrange(0x110000)) for _ in range(rng.randint(1, 6))))
