"""The filter index compared with asking every filter in turn: how much it saves, and what its cost depends on.

Filters have three constraints on three of ten attributes: an equality, a range or a prefix, as the attribute is. All
ten are in every event. Times are CPU time, and both ways take turns in one run, so that the ratio survives a busy
machine better than the microseconds do.
"""

import random
from dataclasses import dataclass
from time import process_time
from typing import Final

from roamcast.content.event import Event, Scalar
from roamcast.content.filter import Constraint, Filter, Operator
from roamcast.content.index import FilterIndex

SEED: Final = 1
EQUALITIES: Final = ("category", "city", "channel", "urgency")
RANGES: Final = ("price", "distance", "temperature")
PREFIXES: Final = ("title", "sender", "place")
TURN: Final = 10
"""Events matched in one way before the other way gets its turn."""


@dataclass(frozen=True)
class Workload:
    """How hard a constraint is to satisfy."""

    choices: int
    """Different values of an equality attribute."""
    reach: float
    """The mean share of values in a range."""
    letters: int
    """Different letters of a text; prefixes have one or two."""

    def filter(self, rng: random.Random) -> Filter:
        return Filter((tuple(self._constraint(name, rng) for name in rng.sample(EQUALITIES + RANGES + PREFIXES, 3)),))

    def event(self, rng: random.Random) -> Event:
        attributes: dict[str, Scalar] = {name: rng.randrange(self.choices) for name in EQUALITIES}
        attributes |= {name: rng.random() for name in RANGES}
        attributes |= {name: self._text(8, rng) for name in PREFIXES}
        return Event.of("bench", attributes)

    def _constraint(self, name: str, rng: random.Random) -> Constraint:
        if name in EQUALITIES:
            return Constraint(name, Operator.EQ, rng.randrange(self.choices))
        if name in PREFIXES:
            return Constraint(name, Operator.PREFIX, self._text(rng.randint(1, 2), rng))
        width = rng.uniform(0, 2 * self.reach)
        return Constraint(name, *rng.choice([(Operator.LT, width), (Operator.GE, 1 - width)]))

    def _text(self, length: int, rng: random.Random) -> str:
        return "".join(rng.choices("abcdefgh"[: self.letters], k=length))


RARE: Final = Workload(choices=10, reach=0.1, letters=6)
USUAL: Final = Workload(choices=5, reach=0.2, letters=3)
FREQUENT: Final = Workload(choices=2, reach=0.45, letters=2)


@dataclass(frozen=True)
class Comparison:
    """Means over events: the share of filters that match, and seconds per event either way."""

    share: float
    one_by_one: float
    indexed: float


def compare(filters: list[Filter], events: list[Event]) -> Comparison:
    index: FilterIndex[int] = FilterIndex()
    for key, filter in enumerate(filters):
        index.add(key, filter)
    matches = 0
    one_by_one = indexed = 0.0
    for turn in range(0, len(events), TURN):
        batch = events[turn : turn + TURN]
        start = process_time()
        expected = [[key for key, filter in enumerate(filters) if filter.matches(event)] for event in batch]
        middle = process_time()
        found = [index.match(event) for event in batch]
        indexed += process_time() - middle
        one_by_one += middle - start
        assert found == expected
        matches += sum(map(len, found))
    return Comparison(matches / len(filters) / len(events), one_by_one / len(events), indexed / len(events))


def add_and_remove(held: list[Filter], others: list[Filter]) -> tuple[float, float]:
    """Seconds to add and to remove one of the others, on top of those held."""
    index: FilterIndex[int] = FilterIndex()
    for key, filter in enumerate(held):
        index.add(key, filter)
    start = process_time()
    for key, filter in enumerate(others, len(held)):
        index.add(key, filter)
    middle = process_time()
    for key in range(len(held), len(held) + len(others)):
        index.remove(key)
    end = process_time()
    return (middle - start) / len(others), (end - middle) / len(others)


def row(filters: int, result: Comparison) -> str:
    ratio = result.one_by_one / result.indexed
    return (
        f"{filters:8,d} {result.share:9.2%} {result.one_by_one * 1e6:14,.0f} {result.indexed * 1e6:11,.0f} {ratio:7.1f}"
    )


def run() -> None:
    rng = random.Random(SEED)
    header = f"{'filters':>8} {'matching':>9} {'one by one, µs':>14} {'indexed, µs':>11} {'ratio':>7}"

    print("content index: one event against many filters")
    print(header)
    for count, asked in ((100, 1000), (1000, 200), (10_000, 60)):
        filters = [USUAL.filter(rng) for _ in range(count)]
        print(row(count, compare(filters, [USUAL.event(rng) for _ in range(asked)])))

    print("\nthe same number of filters, of which more and more match")
    print(header)
    for workload in (RARE, USUAL, FREQUENT):
        filters = [workload.filter(rng) for _ in range(10_000)]
        print(row(len(filters), compare(filters, [workload.event(rng) for _ in range(60)])))

    held, others = ([USUAL.filter(rng) for _ in range(10_000)] for _ in range(2))
    added, removed = add_and_remove(held, others)
    print(f"\nwith {len(held):,d} filters held: add {added * 1e6:.1f} µs, remove {removed * 1e6:.1f} µs a filter")


if __name__ == "__main__":
    run()
