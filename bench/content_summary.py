"""Summaries and digests: how many events nobody wants pass, why, and what making and comparing them costs.

Subscriptions are for a record shop as in Yoneki and Bacon (2004): equalities of strings, ranges of numbers, prefixes,
two constraints each. An unwanted event that passes does so for one of two reasons. Either rows recombined, which is
found by asking the same rows with exact constraints in place of the structures; or, the rest, something was hashed, cut
short or switched off.
"""

import random
from collections import defaultdict
from collections.abc import Callable
from itertools import accumulate
from time import process_time
from typing import Final

import msgspec

from roamcast.content.covering import summarise
from roamcast.content.event import Event
from roamcast.content.filter import Conjunction, Constraint, Filter, Operator
from roamcast.content.summary.columns import BY_NAME, Columns
from roamcast.content.summary.digest import Affixes, EventDigest
from roamcast.content.summary.params import SummaryParams
from roamcast.content.summary.summary import Summary
from roamcast.content.xml import event_from_xml

SEED: Final = 1
EVENTS: Final = 1000
TURNS: Final = 5
"""How often a cost is measured; the least counts, since the machine is shared."""

GENRES: Final = tuple(f"genre {number}" for number in range(30))
COMPOSERS: Final = tuple(f"composer {number}" for number in range(1000))
COMPOSER_WEIGHTS: Final = tuple(accumulate(1 / (rank + 10) for rank in range(len(COMPOSERS))))
COLUMNS: Final = Columns(("@id", "category", "composer", "price", "title", "year"))


def composer(rng: random.Random) -> str:
    return rng.choices(COMPOSERS, cum_weights=COMPOSER_WEIGHTS)[0]


def word(rng: random.Random, length: int) -> str:
    return "".join(rng.choices("abcdefghijklmnopqrst", k=length))


def record(rng: random.Random) -> Event:
    return Event.of(
        "CD",
        {
            "@id": f"{rng.randrange(100_000):05d}",
            "category": rng.choice(GENRES),
            "composer": composer(rng),
            "price": rng.randrange(500, 4000) / 100,
            "title": word(rng, 12),
            "year": rng.randrange(1950, 2005),
        },
    )


def subscription(rng: random.Random) -> Filter:
    kind = Constraint("category", Operator.EQ, rng.choice(GENRES))
    artist = Constraint("composer", Operator.EQ, composer(rng))
    cheap = Constraint("price", Operator.LT, rng.randrange(600, 1000) / 100)
    first = rng.randrange(1950, 2004)
    decade = Constraint("year", Operator.GE, first), Constraint("year", Operator.LE, first + 1)
    title = Constraint("title", Operator.PREFIX, word(rng, rng.randint(2, 4)))
    choices: list[Conjunction] = [(kind, artist), (kind, cheap), (artist, *decade), (title, cheap), (kind, *decade)]
    shop = Constraint("", Operator.EQ, "CD")
    return Filter(((shop, *rng.choices(choices, weights=(4, 2, 2, 1, 1))[0]),))


class ExactRows:
    """The rows of a summary with exact constraints: passes what recombination alone lets through."""

    def __init__(self, filters: list[Filter]) -> None:
        self._rows: set[frozenset[str]] = set()
        self._asked: dict[str, set[Conjunction]] = defaultdict(set)
        for filter in filters:
            for conjunction in filter.alternatives:
                attributes: dict[str, Conjunction] = defaultdict(tuple)
                for constraint in conjunction:
                    attributes[constraint.attribute] += (constraint,)
                self._rows.add(frozenset(attributes))
                for attribute, constraints in attributes.items():
                    self._asked[attribute].add(constraints)

    def passes(self, event: Event) -> bool:
        passing = {
            attribute
            for attribute, asked in self._asked.items()
            if any(all(constraint.holds(event) for constraint in constraints) for constraints in asked)
        }
        return any(row <= passing for row in self._rows)


def false_positives(filters: list[Filter], events: list[Event], params: SummaryParams) -> str:
    """A line: bytes of the filters and of their summary, rows, the shares of unwanted events that pass, by reason."""
    summary, rows = Summary.of(filters, params), ExactRows(filters)
    unwanted = [event for event in events if not any(filter.matches(event) for filter in filters)]
    passed = [event for event in unwanted if summary.passes(EventDigest.of(event))]
    recombined = sum(map(rows.passes, passed))
    plain = sum(len(msgspec.msgpack.encode(filter)) for filter in filters)
    masks = sum(len(entry.unpacked) for entry in summary.entries)
    shares = [count / len(unwanted) for count in (len(passed), recombined, len(passed) - recombined)]
    return (
        f"{len(filters):8,d} {plain:8,d} {params.bits:6,d} {summary.size:8,d} {masks:5d}"
        f" {1 - len(unwanted) / len(events):8.1%} {shares[0]:8.1%} {shares[1]:11.1%} {shares[2]:7.1%}"
    )


HEADER: Final = (
    f"{'filters':>8} {'bytes':>8} {'m':>6} {'summary':>8} {'rows':>5}"
    f" {'wanted':>8} {'passing':>8} {'recombined':>11} {'rest':>7}"
)


def rates(rng: random.Random) -> None:
    events = [record(rng) for _ in range(EVENTS)]
    everyone = [subscription(rng) for _ in range(1000)]
    for association in (False, True):
        title = "with the association" if association else "the four structures"
        print(f"summary: unwanted events that pass, of {EVENTS:,d}; k = 3, {title}")
        print(HEADER)
        for count in (1, 3, 10, 20, 30, 100, 300, 1000):
            print(false_positives(everyone[:count], events, SummaryParams(association=association)))
        print()
    for association, counts in ((False, (30, 300)), (True, (100,))):
        print(f"the same over the bits of a vector, m{', with the association' if association else ''}")
        print(HEADER)
        for count in counts:
            for bits in (32, 64, 128, 256, 512, 1024, 4096):
                print(false_positives(everyone[:count], events, SummaryParams(bits=bits, association=association)))
    print("\n30 filters, m = 256, one part switched off or on")
    print(f"{'':20} {HEADER}")
    for name, params in PARTS.items():
        print(f"{name:20} {false_positives(everyone[:30], events, params)}")


PARTS: Final = {
    "all four": SummaryParams(),
    "without EAL": SummaryParams(use_eal=False),
    "without AEC": SummaryParams(use_aec=False),
    "without SEC": SummaryParams(use_sec=False),
    "and the association": SummaryParams(association=True),
}


def beside_covering(rng: random.Random) -> None:
    events = [record(rng) for _ in range(EVENTS)]
    everyone = [subscription(rng) for _ in range(100)]
    print("\nunwanted events that pass a summary, and one filter of as many bytes (covering.summarise)")
    print(f"{'filters':>8} {'bytes':>8} {'summary':>8} {'filter':>8}")
    for count in (3, 10, 30, 100):
        filters = everyone[:count]
        summary = Summary.of(filters)
        widened = summarise(filters, summary.size)
        unwanted = [event for event in events if not any(filter.matches(event) for filter in filters)]
        passing = sum(summary.passes(EventDigest.of(event)) for event in unwanted) / len(unwanted)
        matching = sum(map(widened.matches, unwanted)) / len(unwanted)
        print(f"{count:8d} {summary.size:8,d} {passing:8.1%} {matching:8.1%}")


def sizes(rng: random.Random) -> None:
    events = [record(rng) for _ in range(100)]
    print(f"\ndigest: mean bytes of {len(events)} digests, whose events have {mean([one.size for one in events]):.0f}")
    print(f"{'':20} {'no affixes':>11} {'of title':>9} {'of all':>7}")
    for name, columns in (("elements by name", BY_NAME), ("columns agreed on", COLUMNS)):
        asked = Affixes(frozenset({columns.key("title")}))
        kinds = [
            mean([EventDigest.of(event, columns, some).size for event in events]) for some in (Affixes(), asked, None)
        ]
        print(f"{name:20} {kinds[0]:11.0f} {kinds[1]:9.0f} {kinds[2]:7.0f}")


def mean(numbers: list[int]) -> float:
    return sum(numbers) / len(numbers)


def cost(call: Callable[[], object], times: int) -> float:
    """CPU microseconds per call."""
    taken = []
    for _ in range(TURNS):
        start = process_time()
        for _ in range(times):
            call()
        taken.append(process_time() - start)
    return min(taken) / times * 1e6


def nested(depth: int) -> str:
    """A document with a leaf on every level."""
    opening = "".join(f"<level{level}><leaf>{level}</leaf>" for level in range(1, depth + 1))
    closing = "".join(f"</level{level}>" for level in range(depth, 0, -1))
    return f"<root>{opening}{closing}</root>"


def costs(rng: random.Random) -> None:
    print("\ncost of a digest over nesting, a leaf on every level, CPU µs")
    print(f"{'nesting':>8} {'event, bytes':>13} {'from XML':>9} {'digest':>8} {'per leaf':>9} {'compare':>8}")
    for depth in (1, 10, 50, 100, 200):
        document = nested(depth)
        event = event_from_xml(document)
        summary = Summary.of([Filter.where(name, ">=", 0) for name in event.attributes])
        digest = EventDigest.of(event)
        parsed, made, compared = (
            cost(lambda: event_from_xml(document), 20),  # noqa: B023  # called before the loop goes on
            cost(lambda: EventDigest.of(event), 20),  # noqa: B023
            cost(lambda: summary.passes(digest), 20),  # noqa: B023
        )
        print(f"{depth:8d} {event.size:13,d} {parsed:9,.0f} {made:8,.0f} {made / depth:9.1f} {compared:8,.0f}")

    print("\ncost of a comparison over filters, CPU µs for an event; one by one: asking each filter instead")
    print(f"{'filters':>8} {'bytes':>6} {'compare':>8} {'one by one':>11} {'make':>8} {'make, per filter':>17}")
    events = [record(rng) for _ in range(50)]
    digests = list(map(EventDigest.of, events))
    everyone = [subscription(rng) for _ in range(1000)]
    for count in (1, 10, 100, 1000):
        filters = everyone[:count]
        summary = Summary.of(filters)
        compared = cost(lambda: [summary.passes(digest) for digest in digests], 4) / len(events)  # noqa: B023
        asked = cost(lambda: [[one.matches(event) for one in filters] for event in events], 1) / len(events)  # noqa: B023
        made = cost(lambda: Summary.of(filters), 1)  # noqa: B023
        print(f"{count:8,d} {summary.size:6,d} {compared:8.0f} {asked:11.0f} {made:8,.0f} {made / count:17.0f}")


def run() -> None:
    rates(random.Random(SEED))
    beside_covering(random.Random(SEED))
    sizes(random.Random(SEED))
    costs(random.Random(SEED))


if __name__ == "__main__":
    run()
