"""Runs to measure: small ones, whose every number is worked out by hand, and real ones."""

import json
import math
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st

from pipeline.measured import MS, Run, S, tables
from roamcast.analysis.measures import caches, causes, contexts, incoming, repairs, stable_core, tree
from roamcast.analysis.measures.ages import AGES
from roamcast.analysis.measures.catalogue import FAMILIES
from roamcast.analysis.measures.deadlines import within
from roamcast.analysis.measures.measure import Family
from roamcast.facts.schema import COUNTERS
from roamcast.facts.sinks import MemorySink
from roamcast.sim.run import run
from roamcast.sim.scenario.scenario import check


def values_of(run: Run, *families: Family, coded: bool = False) -> dict[str, float | None]:
    """What these families say of a run, without any all; None where they say nothing."""
    found: dict[str, float | None] = {}
    one_run = run.in_memory(coded=coded)
    for family in families or FAMILIES:
        given, names = family(one_run), {one.name for one in family.measures}
        assert given.keys() <= names
        found |= dict.fromkeys(names) | dict(given)
    return found


def typed(event: int, type_: str) -> tuple[Any, ...]:
    return event, "", "str", None, None, type_, None


def price(event: int, amount: int) -> tuple[Any, ...]:
    return event, "price", "int", amount, None, None, None


def by_hand() -> Run:
    """Seven nodes in a row, 100 m apart; two want something, and four events are published."""
    facts = tables(
        subscribe=[(0, 1, 1, True, "price < 20"), (0, 2, 2, True, "true")],
        publish=[(1 * S, 0, 10, "t", 50), (5 * S, 0, 11, "t", 50), (6 * S, 0, 12, "t", 50), (7 * S, 0, 13, "t", 50)],
        event_attribute=[typed(event, "t") for event in (10, 11, 12, 13)]
        + [price(10, 5), price(11, 10), price(12, 20), price(13, 19)],
        deliver=[
            (2 * S, 1, 10, 1, 1 * S, 9, "hello"),  # published in the warm-up: counts for nothing but its carrier
            (5 * S + 10 * MS, 1, 11, 1, 5 * S, 1, "data"),
            (5 * S + 20 * MS, 2, 11, 2, 5 * S, 2, "data"),
            (5 * S + 30 * MS, 2, 11, 2, 5 * S, 3, "data"),  # once more
            (6 * S + 60 * MS, 2, 12, 2, 6 * S, 3, "data"),
            (6 * S + 70 * MS, 1, 12, 1, 6 * S, 3, "data"),  # does not match
            (6 * S + 80 * MS, 5, 12, 2, 6 * S, 3, "data"),  # a node that never subscribed
        ],
        series=[
            (4, "data", *[100] * 9),  # begins in the warm-up
            (5, "data", 4, 4000, 2 * MS, 8, 1, 2, 3, 4, 5),
            (5, "beacon", 5, 500, 1 * MS, 10, 0, 0, 0, 0, 0),
            (6, "data", 2, 2000, 1 * MS, 4, 1, 0, 0, 0, 0),
            (6, "hello", 1, 100, 1 * MS, 0, 0, 0, 0, 0, 0),
            (6, "background", 50, 5000, 1 * MS, 2, 0, 0, 0, 0, 0),
        ],
        transmit=[
            (0, "data", "data", 0, 1, 1, 100, 2 * MS, *[0] * 6),
            (0, "beacon", "beacon", 0, 1, 1, 100, 1 * MS, *[0] * 6),
            (1, "data", "data", 0, 1, 1, 100, 1 * MS, *[0] * 6),
            (2, "background", "background", 0, 1, 1, 100, 9 * MS, *[0] * 6),
        ],
        note=[(0, "duplicate", 2), (1, "duplicate", 3), (1, "dropped", 1)],
        # Node 6 leaves at 6 s, and is out of reach at 8 s and 9 s.
        leg=[(node, 0, 100 * S, 100.0 * node, 0.0, 100.0 * node, 0.0, False) for node in range(6)]
        + [(6, 6 * S, 8 * S, 600.0, 0.0, 600.0, 200.0, False), (6, 0, 6 * S, 600.0, 0.0, 600.0, 0.0, False)]
        + [(6, 8 * S, 90 * S, 600.0, 200.0, 600.0, 200.0, False)],
    )
    radio = json.dumps({"radio": {"range": [100.0, 300.0 - 2 * 37.5]}})  # drawn: 162.5 m on average
    return Run("hand", facts, simulated=10.0, warmup=4.5, nodes=7, scenario=radio, experiment="hand")


CHAIN = 6 + math.sqrt(162.5**2 - 100**2) / 100 - 4.5
"""For how long node 6 is in range after the warm-up, s: from 6 s on it leaves at 100 m/s."""
APART = 5.5 - CHAIN

BY_HAND = {
    "delivery": 2 / 3,  # of 11 all, of 12 all, of 13 none
    "events": 3,
    "pairs_expected": 5,  # 11: both; 12: one, at 20; 13: both
    "pairs_delivered": 3,
    "hops_mean": 2.0,
    "delay_mean": 0.03,
    "delay_p50": 0.02,
    "delay_p95": 0.06,
    "delay_p99": 0.06,
    "overhead": 12 / 3,
    "overhead_data": 7 / 3,
    "bits_per_delivery": 6600 / 3,
    "airtime_per_delivery": 5 / 3,
    "duplicates": 5 / 3,
    "airtime_jain": 4**2 / (7 * (3**2 + 1**2)),  # 3 ms and 1 ms; five nodes sent nothing
    "airtime_most": 3 / 4,
    # 5 ms sent. Heard: 12 + 2 + 3 frames of data of 0.5 ms each, 10 beacons of 0.2 ms: 10.5 ms. Of 7 nodes in 5.5 s.
    "energy_per_delivery": (1.3272 * 0.005 + 0.96696 * 0.0105 + 0.84372 * (38.5 - 0.0155)) / 3,
    "energy_beyond_idle": (483.48 * 0.005 + 123.24 * 0.0105) / 3,
    "lost_collision": 2 / 40,  # 24 received; 2, 2, 3, 4 and 5 lost
    "lost_half_duplex": 2 / 40,
    "lost_random": 3 / 40,
    "queue_full": 4 / 40,
    "unreachable": 5 / 40,
    # A chain of seven until node 6 is 162.5 m from node 5, from then on one of six, and a node alone.
    "degree_mean": (12 * CHAIN + 10 * APART) / (5.5 * 7),
    "partitions_mean": (CHAIN + 2 * APART) / 5.5,
    "largest_partition": (CHAIN + APART * 6 / 7) / 5.5,
    "island_size": 7 * 5.5 / (CHAIN + 2 * APART),
    "island_size_by_node": (CHAIN * 49 + APART * 37) / (5.5 * 7),
    # Looked at at 4.5, 5.5 and 6.5 s, and at 7.5, 8.5 and 9.5 s.
    "island_hops": (3 * 6 + 3 * 5) / (3 + 3 * 2),
    "island_hops_by_node": (3 * 7 * 6 + 3 * 6 * 5) / (6 * 7),
    "island_hops_max": 6,
    "contact_time": None,  # none began after the warm-up
    "intercontact_time": None,
    "contact_breaks": 60 / 5.5,
    "link_changes": 1 / 5.5,
    "pairs_connected": (CHAIN + APART * 30 / 42) / 5.5,
    "path_hops": 8 / 3,  # looked at once, when it is a chain: 1 hop six times, 2 five times, … of 21 pairs
    # There is always a way from 0 to 1 and 2, who are the subscribers.
    "possible": 1,
    "possible_at_once": 1,
    "possible_interested": 1,
    "delivered_of_possible": 3 / 5,
    # 11 and 12 are old enough for 1 s, and 13 too; nothing is old enough for 10 s.
    "satisfaction_1": 3 / 5,
    "possible_1": 1,
    "delivered_of_possible_1": 3 / 5,
    "delay_restricted_1": (0.01 + 0.02 + 0.06 + 1 + 1) / 5,
    **{one.name: None for one in within(10, 60, 600).measures},
    **{f"possible_{age}": None for age in AGES},
    **{f"possible_interested_{age}": None for age in AGES},
    "satisfaction_1800": None,
    "satisfaction_3600": None,
    "satisfaction_5400": None,
    "satisfaction_7200": None,
    "throughput": 2 / 1.08,  # 11 and 12, from 5 s to the last delivery at 6.08 s
    "in_join_requests": None,  # it is not ODMRP
    "mbit": 0.0066,
    "requests_share": 0,
    "mbit_per_cube": None,  # there is no area
    **dict.fromkeys(("aged_1800", "aged_3600", "aged_5400", "age_peak")),
    # Nothing has a context, no frames were recorded, and there are neither caches nor a tree.
    **{
        one.name: None
        for family in (
            contexts.pairs_with_contexts,
            incoming.incoming,
            caches.caches,
            causes.causes,
            tree.tree,
            repairs.repairs,
            stable_core.stable_core,
        )
        for one in family.measures
    },
}
"""Every measure of one run, of `by_hand()`."""


def slow() -> Run:
    """Documents that take their time: an hour and 40 minutes, of which the last ten seconds are too short for most."""
    hour = 3600 * S
    facts = tables(
        subscribe=[(0, 1, 1, True, "true"), (0, 2, 2, True, "true")],
        publish=[(0, 0, 10, "t", 50), (2400 * S, 0, 11, "t", 50), (2401 * S, 0, 12, "t", 50)],
        event_attribute=[typed(event, "t") for event in (10, 11, 12)],
        deliver=[
            (1800 * S, 1, 10, 1, 0, 1, "data"),
            (1800 * S + 1, 2, 10, 2, 0, 1, "data"),
            (2400 * S + hour, 2, 11, 2, 2400 * S, 1, "data"),
            (2402 * S, 2, 12, 2, 2401 * S, 1, "data"),
        ],
    )
    return Run("slow", facts, simulated=6000.0, seed=2, experiment="slow")


def nothing() -> Run:
    return Run("nothing", tables(), experiment="hand", seed=2)


MINUTE = 60 * S
# Node 0 publishes. It meets 1 after 10 minutes, 1 meets 2 after 40, 2 and 3 are always together. 2 and 3 subscribe, and
# 0 itself, which does not count.
_FERRY = [
    *((0, 2, 3, 0.0), (0, 3, 2, 0.0)),
    *((10 * MINUTE, 0, 1, 0.0), (11 * MINUTE, 0, 1, None)),
    *((40 * MINUTE, 1, 2, 0.0), (41 * MINUTE, 1, 2, None)),
]


def ferry(*published: tuple[Any, ...], warmup: float = 0.0, **more: list[tuple[Any, ...]]) -> Run:
    """Four nodes that never form a path, for 4000 s; events by time, publisher, id and lifetime."""
    facts = tables(
        link=_FERRY,
        subscribe=[(0, node, node, True, "true") for node in (0, 2, 3)],
        publish=[(time, node, event, "t", 50, lifetime, None, None) for time, node, event, lifetime in published],
        event_attribute=[typed(event, "t") for _, _, event, _ in published],
        **more,
    )
    return Run("ferry", facts, simulated=4000.0, warmup=warmup, nodes=4)


_HERE = "within(rect(0, 0, 10, 10))"


def _counts(bits: int) -> list[int]:
    """What is counted of frames, of which only the bits matter here."""
    return [bits if name == "bits" else 1 for name in COUNTERS]


def with_contexts(name: str, number: int, events: int, delivered: int, contexts: str | None = _HERE) -> Run:
    """Host 0, in the region, publishes so many events for host 1, who wants them all and gets some."""
    facts = tables(
        leg=[(0, 0, 10 * S, 5.0, 5.0, 5.0, 5.0, False), (1, 0, 10 * S, 90.0, 90.0, 90.0, 90.0, False)],
        publish=[(S, 0, event, "t", 20, 0, contexts, None) for event in range(1, events + 1)],
        event_attribute=[typed(event, "t") for event in range(1, events + 1)],
        subscribe=[(0, 1, 7, True, "true", None, contexts, None)],
        series=[
            (1, "event", *_counts(12_000_000)),
            (2, "matching-request", *_counts(4_000_000)),
            (2, "background", *_counts(1_000_000)),
        ],
        deliver=[(2 * S, 1, event, 7, S, 1, "matched-event") for event in range(1, delivered + 1)],
    )
    scenario = {"seed": number, "area": {"width": 2000, "height": 2000}, "radio": {"range": 100.0}}
    return Run(name, facts, seed=number, scenario=json.dumps(scenario), protocol="context", nodes=2)


# --- Generated --------------------------------------------------------------------------------------------------------

_FILTERS = ("true", "false", 'type = "t"', "price < 2", 'type = "t" and price >= 1 or price = 3')
_TIMES = st.integers(0, 6)
_NODES, _IDS = st.integers(0, 2), st.integers(1, 2)
_ACTS = st.lists(st.tuples(_TIMES, _NODES, _IDS, st.none() | st.sampled_from(_FILTERS)), max_size=12)
_EVENTS = st.lists(st.tuples(_TIMES, st.sampled_from("tu"), st.integers(0, 3)), max_size=5)


@st.composite
def small_runs(draw: st.DrawFn) -> Run:
    """Runs of some seconds whose subscriptions, publications and deliveries often share an instant."""
    published = draw(_EVENTS)
    numbers = st.integers(1, len(published) + 1)  # one more than there are
    delivered = draw(st.lists(st.tuples(numbers, _TIMES, _NODES, _IDS, st.integers(0, 3)), max_size=12))
    begun = {number: time for number, (time, _, _) in enumerate(published, 1)}
    facts = tables(
        subscribe=[(time * S, node, number, text is not None, text) for time, node, number, text in draw(_ACTS)],
        publish=[(time * S, 0, number, type_, 1) for number, (time, type_, _) in enumerate(published, 1)],
        event_attribute=[
            row
            for number, (_, type_, cost) in enumerate(published, 1)
            for row in (typed(number, type_), price(number, cost))
        ],
        deliver=[
            ((begun.get(event, 0) + after) * S, node, event, number, begun.get(event, 0) * S, hops, "data")
            for event, after, node, number, hops in delivered
        ],
    )
    return Run("small", facts, simulated=13.0, warmup=draw(st.sampled_from([0.0, 2.0, 2.5, 9.0])))


# --- Real runs --------------------------------------------------------------------------------------------------------


def real(
    name: str,
    seed: int,
    protocol: str,
    experiment: str = "real",
    lifetime: float | None = None,
    **changes: Any,  # noqa: ANN401  # as in a scenario
) -> Run:
    """A real run, with subscriptions that come and go."""
    groups = [
        {"count": 6, "filter": ['category = "jazz" and price < 20', 'category = "rock"', "price >= 12.5"]},
        {"count": 4, "filter": "true", "start": 8.0, "stop": 21.5},
    ]
    said = {"category": ["jazz", "rock", "folk"], "price": {"low": 5.0, "high": 40.0}}
    raw = {
        "seed": seed,
        "nodes": 30,
        "duration": 30,
        "warmup": 5.5,
        "area": {"width": 500, "height": 500},
        "radio": {"range": 150},
        "protocol": {"name": protocol},
        "workload": {
            "disjoint": False,
            "subscribers": groups,
            "publishers": [{"count": 8, "rate": 1.0, "timing": "poisson", "attributes": said, "lifetime": lifetime}],
        },
        **changes,
    }
    scenario, facts = check(raw, name, Path()), MemorySink()
    run(scenario, facts)
    encoded = msgspec.json.encode(scenario).decode()
    return Run(name, facts.tables(), 30.0, 5.5, 30, encoded, protocol, 0, seed, experiment, protocol=protocol)


LINKS: dict[str, Any] = {
    "area": None,
    "radio": {"propagation": "links"},
    "links": {"up": [[n, n + 1] for n in range(29)]},
}
