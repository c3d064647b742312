"""Measures the claims about the code of extended ODMRP (O7, O8), and what its brokers cost in the simulator.

O7: converting an event to its digest over nesting 1 to 200, and comparing it; once with a leaf on every level, so that
the event grows with its depth, and once with one leaf at the bottom. O8: false positives and negatives over the number
of filters. Then the paper's own run, CPU time per reception beside hint on the same moving network, and what every
switch of the protocol changes by itself. `python -m bench.odmrp moving` has the last among nodes that move,
`groupings` compares what makes a group in the map's world, `protocols` the extension with plain ODMRP, hint and COMAN,
`throughput` has the paper's Figure 6, `waiting` what waits too long there, `figures` its others, and `trees` looks for
the topology most in favour of O2.
"""

import random
import sys
import tomllib
from pathlib import Path
from time import process_time
from typing import Any, Final

import msgspec

from bench.content_summary import EVENTS, cost, nested, record, subscription
from roamcast import papers
from roamcast.analysis.run import Run
from roamcast.analysis.summary import summarise
from roamcast.content.event import Event
from roamcast.content.filter import Filter
from roamcast.content.summary.digest import Affixes, EventDigest
from roamcast.content.summary.summary import Summary
from roamcast.content.xml import event_from_xml
from roamcast.facts.sinks import MemorySink
from roamcast.sim.run import run as simulate
from roamcast.sim.scenario.scenario import Scenario, check, load
from roamcast.statistics.intervals import interval
from roamcast.units import SECOND

SEED: Final = 1
DEPTHS: Final = (1, 10, 50, 100, 200)
COUNTS: Final = (1, 10, 100, 1000)
GROUPINGS: Final = ("elements", "digest", "subscription", "source")
PAPERS: Final = Path(papers.__file__).parent
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
            digest = EventDigest.of(event, affixes=Affixes())
            parsed, made, compared = (
                cost(lambda: event_from_xml(text), 20),  # noqa: B023  # called before the loop goes on
                cost(lambda: EventDigest.of(event, affixes=Affixes()), 20),  # noqa: B023
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
    digests = list(map(EventDigest.of, events))
    parsed = cost(lambda: list(map(event_from_xml, documents)), 4) / len(events)
    everyone = [subscription(rng) for _ in range(COUNTS[-1])]
    made = cost(lambda: list(map(EventDigest.of, events)), 4) / len(events)
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
        passing = [summary.passes(EventDigest.of(event)) for event in events]
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
    print(f"\n{experiment.spec.title}; means of {seeds} seeds with their 95 % intervals")
    print(f"{'':66} {'delivery':>15} {'packets':>13} {'kbit':>15} {'in requests':>13} {'delay, ms':>13}")
    for variant, point in (
        (one, point) for point in experiment.points(experiment.variants[0]) for one in experiment.variants
    ):
        scenario = experiment.at(variant, point)
        scenario = msgspec.structs.replace(scenario, duration=duration or scenario.duration)
        title = ", ".join((variant.name, *(f"{value} {label}" for label, value in point.items())))
        rows = [_figures(msgspec.structs.replace(scenario, seed=seed)) for seed in experiment.seeds(seeds)]
        scales = (1, 1, 1e-3, 1, 1e3)
        values = [
            [value * scale for value in column] for scale, column in zip(scales, zip(*rows, strict=True), strict=True)
        ]
        print(f"{title:66}", *(f"{one.mean:9.3f} ±{one.half:6.3f}" for one in map(interval, values)), flush=True)


def groupings(
    cells: tuple[tuple[float, int, float, int], ...] = ((1, 867, 1.0, 2), (1, 1243, 0.2, 3), (20, 867, 0.2, 3)),
) -> None:
    """What makes a group, in the map's world with the paper's filters and contents, ids and timestamps.

    A cell: m/s, the side of the area in metres, each publisher's events per second, and seeds.
    """
    workload = tomllib.loads((PAPERS / "experiments" / "odmrp-moving.toml").read_text())["scenario"]["workload"]
    fresh = {name: {"low": 1, "high": 10**9} for name in ("id", "timestamp")}
    for speed, side, rate, seeds in cells:
        raw = tomllib.loads((PAPERS / "scenarios" / "map.toml").read_text())
        raw |= {"duration": 220, "area": {"width": side, "height": side}, "record": {"movement": False}}
        raw["movement"]["speed"] = [speed, speed]
        raw["workload"]["subscribers"][0]["filter"] = workload["subscribers"][0]["filter"]
        contents = workload["publishers"][0]["contents"]
        raw["workload"]["publishers"][0] |= {"rate": rate, "type": "CD", "contents": contents, "attributes": fresh}
        for parameters in (
            *({"grouping": name} for name in GROUPINGS),
            {"grouping": "source", "forwarding": "summary"},
        ):
            scenario = check({**raw, "protocol": {"name": "odmrp", "parameters": parameters}}, "bench", Path())
            rows = [_figures(msgspec.structs.replace(scenario, seed=seed)) for seed in range(101, 101 + seeds)]
            delivery, packets, bits = (sum(column) / seeds for column in list(zip(*rows, strict=True))[:3])
            said = f"{speed:g} m/s, {side} m, {rate:g}/s, {' '.join(parameters.values())}"
            print(f"{said:48} {delivery:9.3f} {packets:9.2f} {bits / 1e3:9.2f} kbit", flush=True)


def _figures(scenario: Scenario) -> tuple[float, ...]:
    """Delivery, packets and bits per delivered pair, the share inside Join Requests, and the mean delay (s)."""
    sink = MemorySink()
    simulate(scenario, sink)
    tables = sink.tables()
    summary = summarise(Run.over(tables, scenario))
    via = tables["deliver"]["via"].to_pylist()
    found = (summary.delivery, summary.packets_per_pair, summary.bits_per_pair, summary.delay_mean)
    delivery, packets, bits, delay = (0.0 if value is None else value for value in found)
    return delivery, packets, bits, via.count("join_event") / max(1, len(via)), delay


def throughput(seeds: int = 3) -> None:
    """Figure 6 without Spark: events per second, for each seed, at four of its rates."""
    (experiment,) = (one for one in papers.load(["odmrp"]) if one.name == "odmrp-6")
    print("events delivered a second, one number for each seed")
    for point in experiment.points(experiment.variants[0]):
        if point["rate"] in (2.0, 5.0, 10.0, 50.0):
            for variant in experiment.variants:
                scenario = experiment.at(variant, point)
                found = [_throughput(msgspec.structs.replace(scenario, seed=seed)) for seed in experiment.seeds(seeds)]
                print(f"{point['rate']:6.1f} {variant.name:32}", *(f"{one:6.2f}" for one in found))


def _throughput(scenario: Scenario) -> float:
    return _delivered(scenario)[1]


def _delivered(scenario: Scenario) -> tuple[int, float]:
    """Events that somebody got, and how many per second."""
    sink = MemorySink()
    simulate(scenario, sink)
    delivered, published = sink.tables()["deliver"], sink.tables()["publish"]
    events = len(set(delivered["event"].to_pylist()))
    span: int = max(delivered["time"].to_pylist()) - min(published["time"].to_pylist())
    return events, events / (span / SECOND)


def waiting(seeds: int = 10) -> None:
    """Figure 6 at its shortest intervals: what the bounds on waiting for a member drop at the source."""
    (experiment,) = (one for one in papers.load(["odmrp"]) if one.name == "odmrp-6")
    extended = next(variant for variant in experiment.variants if variant.name == "extended")
    bounds: tuple[dict[str, float], ...] = ({}, {"held": 4096}, {"held": 4096, "refresh": 60.0, "timeout": 120.0})
    print(f"extended, one CPU, mean of {seeds} seeds: events delivered of 100, and a second")
    for point in experiment.points(extended):
        if point["rate"] in (10.0, 20.0, 50.0):
            for bound in bounds:
                scenario = experiment.at(extended, point)
                protocol = msgspec.structs.replace(
                    scenario.protocol, parameters={**scenario.protocol.parameters, **bound}
                )
                runs = [
                    _delivered(msgspec.structs.replace(scenario, seed=seed, protocol=protocol))
                    for seed in range(1, seeds + 1)
                ]
                events, rate = (sum(column) / seeds for column in zip(*runs, strict=True))
                said = ", ".join(f"{name} = {value:g}" for name, value in bound.items()) or "as it is"
                print(f"{1000 / point['rate']:6.0f} ms  {said:40} {events:6.1f} {rate:6.2f}")


def figures(seeds: int = 4) -> None:
    """Figures 7, 10, 11 and 12 without Spark: means over seeds, at the least, middle and greatest times."""
    experiments = {one.name: one for one in papers.load(["odmrp"])}
    print("Figure 7: incoming bytes at R1 to R5, on average, and over all nodes")
    for variant in experiments["odmrp-7"].variants:
        scenario = experiments["odmrp-7"].at(variant, {"size": 256})
        found = [_bytes_in(msgspec.structs.replace(scenario, seed=seed)) for seed in range(1, 2 * seeds + 1)]
        by_node = [sum(column) / len(found) for column in zip(*found, strict=True)]
        print(
            f"{variant.name:36}", *(f"{one:8,.0f}" for one in (*by_node[5:], sum(by_node[5:]) / 5, sum(by_node) / 10))
        )
    for name, label in (("odmrp-10", "switching"), ("odmrp-12", "switching"), ("odmrp-11", "step")):
        print(f"\n{experiments[name].spec.title}: delivery, share in Join Requests, bytes per node")
        for variant in experiments[name].variants:
            for every in (0.1, 0.5, 1.0, 2.0, 10.0):
                scenario = experiments[name].at(variant, {label: every})
                runs = [msgspec.structs.replace(scenario, seed=seed) for seed in range(1, seeds + 1)]
                rows = [(*_figures(one)[::3], sum(_bytes_in(one)) / one.nodes) for one in runs]
                delivery, inside, size = (sum(column) / len(rows) for column in zip(*rows, strict=True))
                print(f"{variant.name:36} {every:5.1f} s {delivery:7.3f} {inside:6.2f} {size:8,.0f}")


def _bytes_in(scenario: Scenario) -> list[int]:
    """Bytes that each node received."""
    sink = MemorySink()
    simulate(scenario, sink)
    frames, heard = sink.tables()["frame"], sink.tables()["reception"]
    size = dict(zip(frames["frame"].to_pylist(), frames["size"].to_pylist(), strict=True))
    total = [0] * scenario.nodes
    for frame, node, outcome in zip(*(heard[name].to_pylist() for name in ("frame", "node", "outcome")), strict=True):
        total[node] += size[frame] if outcome == "received" else 0
    return total


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
    return sum(_bytes_in(scenario)[5:]) / 5


def run() -> None:
    conversion()
    comparison(random.Random(SEED))
    errors(random.Random(SEED))
    brokers()
    switches()


if __name__ == "__main__":
    if sys.argv[1:] == ["moving"]:
        switches("odmrp-switches-moving", duration=130.0)
    elif sys.argv[1:] == ["protocols"]:
        switches("odmrp-moving", duration=130.0)
    elif sys.argv[1:] == ["groupings"]:
        groupings()
    elif sys.argv[1:] == ["figures"]:
        figures()
    elif sys.argv[1:] == ["throughput"]:
        throughput()
    elif sys.argv[1:] == ["waiting"]:
        waiting()
    elif sys.argv[1:] == ["trees"]:
        topologies()
    else:
        run()
