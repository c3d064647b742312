"""What the claims about code ask of extended ODMRP (O7, O8), and what its brokers cost in the simulator.

O7: converting an event to its digest over nesting 1 to 200, and comparing it; once with a leaf on every level, so that
the event grows with its depth, and once with one leaf at the bottom. O8: false positives and negatives over the number
of filters. Then the paper's own run, CPU time per reception beside hint on the same moving network, and what every
switch of the protocol changes by itself; `python -m bench.odmrp moving` has the last among nodes that move, and
`python -m bench.odmrp trees` looks for the topology most in favour of O2.
"""

import random
import sys
from pathlib import Path
from time import process_time
from typing import Any, Final

import msgspec

from bench.content_summary import EVENTS, cost, nested, record, subscription
from roamcast import papers
from roamcast.content.event import Event
from roamcast.content.filter import Filter
from roamcast.content.summary.digest import Affixes, Digest
from roamcast.content.summary.summary import Summary
from roamcast.content.xml import event_from_xml
from roamcast.facts.sinks import MemorySink
from roamcast.facts.summary import summarise
from roamcast.sim.run import run as simulate
from roamcast.sim.scenario import Scenario, check, load

SEED: Final = 1
DEPTHS: Final = (1, 10, 50, 100, 200)
COUNTS: Final = (1, 10, 100, 1000)
EXAMPLE: Final = Path(__file__).parents[1] / "examples" / "odmrp.toml"


def deep(depth: int) -> str:
    """A document with one leaf, on the last level."""
    opening = "".join(f"<level{level}>" for level in range(1, depth + 1))
    closing = "".join(f"</level{level}>" for level in range(depth, 0, -1))
    return f"<root>{opening}<leaf>1</leaf>{closing}</root>"


def xml_of(event: Event) -> str:
    """A document of a record, in the form of the paper's Figure 2."""
    (number,) = event.attributes["@id"]
    leaves = "".join(f"<{name}>{value}</{name}>" for name, (value,) in event.attributes.items() if name != "@id")
    return f'<{event.type} id="{number}">{leaves}</{event.type}>'


def conversion() -> None:
    for title, document in (("a leaf on every level", nested), ("one leaf, on the last level", deep)):
        print(f"O7: {title}; CPU µs")
        print(f"{'nesting':>8} {'event, bytes':>13} {'from XML':>9} {'digest':>8} {'compare':>8} {'of both':>8}")
        for depth in DEPTHS:
            text = document(depth)
            event = event_from_xml(text)
            summary = Summary.of([Filter.where(name, ">=", 0) for name in event.attributes])
            digest = Digest.of(event, affixes=Affixes())
            parsed, made, compared = (
                cost(lambda: event_from_xml(text), 20),  # noqa: B023  # called before the loop goes on
                cost(lambda: Digest.of(event, affixes=Affixes()), 20),  # noqa: B023
                cost(lambda: summary.passes(digest), 20),  # noqa: B023
            )
            share = compared / (parsed + made)
            print(f"{depth:8d} {event.size:13,d} {parsed:9,.0f} {made:8,.0f} {compared:8,.0f} {share:8.0%}")
        print()


def comparison(rng: random.Random) -> None:
    print("O7: over filters; CPU µs for one event of six elements")
    print(f"{'filters':>8} {'summary, bytes':>15} {'from XML':>9} {'digest':>8} {'compare':>8} {'of both':>8}")
    events = [record(rng) for _ in range(50)]
    documents = list(map(xml_of, events))
    digests = list(map(Digest.of, events))
    parsed = cost(lambda: list(map(event_from_xml, documents)), 4) / len(events)
    everyone = [subscription(rng) for _ in range(COUNTS[-1])]
    made = cost(lambda: list(map(Digest.of, events)), 4) / len(events)
    for count in COUNTS:
        summary = Summary.of(everyone[:count])
        compared = cost(lambda: [summary.passes(digest) for digest in digests], 4) / len(events)  # noqa: B023
        share = compared / (parsed + made)
        print(f"{count:8,d} {summary.size:15,d} {parsed:9.0f} {made:8.0f} {compared:8.0f} {share:8.0%}")


def errors(rng: random.Random) -> None:
    print(f"\nO8: of {EVENTS:,d} events, those wanted, wanted that do not pass, and unwanted that do")
    print(f"{'filters':>8} {'wanted':>8} {'false negatives':>16} {'false positives':>16}")
    events = [record(rng) for _ in range(EVENTS)]
    everyone = [subscription(rng) for _ in range(COUNTS[-1])]
    for count in (1, 3, 10, 30, 100, 300, 1000):
        filters = everyone[:count]
        summary = Summary.of(filters)
        passing = [summary.passes(Digest.of(event)) for event in events]
        wanted = [any(filter.matches(event) for filter in filters) for event in events]
        missed = sum(want and not passes for want, passes in zip(wanted, passing, strict=True))
        unwanted = wanted.count(False)
        passed = sum(passes and not want for want, passes in zip(wanted, passing, strict=True))
        print(f"{count:8,d} {sum(wanted):8,d} {missed:16,d} {passed / unwanted if unwanted else 0.0:16.1%}")


def moving(protocol: str, parameters: dict[str, Any]) -> Scenario:
    content = {"category": ["jazz", "classic", "pop"], "price": {"low": 1, "high": 3}}
    raw = {
        "nodes": 60,
        "duration": 120,
        "area": {"width": 1000, "height": 1000},
        "movement": {"model": "random-waypoint", "speed": [1.0, 10.0]},
        "radio": {"range": 200.0},
        "record": {"movement": False},
        "protocol": {"name": protocol, "parameters": parameters},
        "workload": {
            "subscribers": [{"count": 10, "filter": ['category = "jazz"', "price < 2"]}],
            "publishers": [{"count": 4, "rate": 2.0, "attributes": content}],
        },
    }
    return check(raw, "bench", Path())


def spent(scenario: Scenario) -> tuple[float, int]:
    """CPU seconds of a run, the least of three, and the frames that were received in it."""
    taken, received = [], 0
    for _ in range(3):
        sink = MemorySink()
        start = process_time()
        simulate(scenario, sink)
        taken.append(process_time() - start)
        received = sum(sink.tables()["series"]["receptions"].to_pylist())
    return min(taken), received


def brokers() -> None:
    print("\nrun of a scenario: CPU, and by reception")
    seconds, received = spent(load(EXAMPLE))
    print(f"{'examples/odmrp.toml, ten nodes':44} {seconds:7.3f} s {received:9,d} {seconds / received * 1e6:6.1f} µs")
    for name, parameters in (
        ("odmrp", {}),
        ("odmrp", {"mode": "one-channel"}),
        ("hint", {"credits": 2}),
        ("flooding", {}),
    ):
        seconds, received = spent(moving(name, parameters))
        title = f"60 moving nodes, {name} {parameters or ''}"
        print(f"{title:44} {seconds:7.3f} s {received:9,d} {seconds / received * 1e6:6.1f} µs")


def switches(name: str = "odmrp-switches", seeds: int = 10, duration: float | None = None) -> None:
    """An experiment without Spark: every choice by itself."""
    (experiment,) = (one for one in papers.load(["odmrp"]) if one.name == name)
    print(f"\n{experiment.spec.title}; means of {seeds} seeds")
    print(f"{'':46} {'delivery':>9} {'packets':>8} {'bits':>8} {'in requests':>12} {'delay, ms':>10}")
    for variant in experiment.variants:
        scenario = experiment.at(variant, {})
        scenario = msgspec.structs.replace(scenario, duration=duration or scenario.duration)
        rows = [_figures(msgspec.structs.replace(scenario, seed=seed)) for seed in experiment.seeds(seeds)]
        delivery, packets, bits, inside, delay = (sum(column) / len(rows) for column in zip(*rows, strict=True))
        print(f"{variant.name:46} {delivery:9.3f} {packets:8.2f} {bits:8,.0f} {inside:12.3f} {delay * 1e3:10.1f}")


def _figures(scenario: Scenario) -> tuple[float, ...]:
    """Delivery, packets and bits a delivered pair, the share inside Join Requests, and the mean delay (s)."""
    sink = MemorySink()
    simulate(scenario, sink)
    tables = sink.tables()
    summary = summarise(tables, scenario.warmup)
    via = tables["deliver"]["via"].to_pylist()
    found = (summary.delivery, summary.packets_per_pair, summary.bits_per_pair, summary.delay_mean)
    delivery, packets, bits, delay = (0.0 if value is None else value for value in found)
    return delivery, packets, bits, via.count("join_event") / max(1, len(via)), delay


def topologies(seeds: int = 250) -> None:
    """Which of many random trees makes one channel cost most against the extension, in bytes per receiver."""
    (experiment,) = (one for one in papers.load(["odmrp"]) if one.name == "odmrp-7")
    plain, extended = (
        experiment.at(variant, {"size": 256})
        for name in ("one channel", "extended")
        for variant in experiment.variants
        if variant.name == name
    )
    ratios = {}
    for seed in range(1, seeds + 1):
        one, other = (_incoming(msgspec.structs.replace(mode, seed=seed)) for mode in (plain, extended))
        ratios[seed] = one / other
    best = max(ratios, key=ratios.__getitem__)
    print(f"one channel against extended, bytes per receiver, on {seeds} random trees:")
    mean, least = sum(ratios.values()) / seeds, min(ratios.values())
    print(f"mean {mean:.2f}, {least:.2f} to {ratios[best]:.2f}; the last of seed {best}:")
    assert extended.links is not None
    print(*(f"{a}-{b}" for _, a, b, _ in extended.links.flips(best) if a < b))


def _incoming(scenario: Scenario) -> float:
    """Bytes that the receivers, nodes 5 to 9, received on average."""
    sink = MemorySink()
    simulate(scenario, sink)
    frames, heard = sink.tables()["frame"], sink.tables()["reception"]
    size = dict(zip(frames["frame"].to_pylist(), frames["size"].to_pylist(), strict=True))
    rows = zip(*(heard[name].to_pylist() for name in ("frame", "node", "outcome")), strict=True)
    total: int = sum(size[frame] for frame, node, outcome in rows if node >= 5 and outcome == "received")
    return total / 5


def run() -> None:
    conversion()
    comparison(random.Random(SEED))
    errors(random.Random(SEED))
    brokers()
    switches()


if __name__ == "__main__":
    if sys.argv[1:] == ["moving"]:
        switches("odmrp-switches-moving", 3, 130.0)
    elif sys.argv[1:] == ["trees"]:
        topologies()
    else:
        run()
