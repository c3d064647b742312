"""How soon each expected pair could have been delivered: small runs worked out by hand, and a real one."""

import dataclasses
from pathlib import Path

import numpy as np

from analysis.runs import MINUTE, ferry
from pipeline.measured import S
from roamcast.analysis.limits import delays, limit
from roamcast.analysis.pairs import expected
from roamcast.analysis.possible import NEVER
from roamcast.analysis.run import Run
from roamcast.facts.sinks import MemorySink
from roamcast.sim.run import run
from roamcast.sim.scenario.scenario import check


def pairs_of(one: Run) -> list[tuple[int, int, int]]:
    """(event, node, subscription) of the pairs that a limit is about, in its order."""
    wanted = expected(one)
    rows = zip(wanted.events[wanted.event].tolist(), wanted.unit.tolist(), wanted.own.tolist(), strict=True)
    return [(event, *wanted.units[unit]) for event, unit, own in rows if not own]


def test_a_carrier_nobody_would_think_of() -> None:
    """1 is not interested: if only the interested carry, nothing of 0 ever arrives."""
    deliver = [(41 * MINUTE, 2, 10, 2, 0, 2, "data"), (1, 2, 12, 2, 0, 1, "data")]
    published = [(0, 0, 10, None), (0, 0, 11, 39 * MINUTE), (0, 3, 12, None), (20 * MINUTE, 0, 13, None)]
    one = ferry(*published, deliver=deliver).in_memory()
    found = limit(one)
    assert found is not None
    assert [(event, node) for event, node, _ in pairs_of(one)] == [
        *((10, 2), (10, 3), (11, 2), (11, 3)),
        *((12, 0), (12, 2), (13, 2), (13, 3)),
    ]
    late, never = 40 * MINUTE, NEVER
    assert found.published.tolist() == [0] * 6 + [20 * MINUTE] * 2
    assert found.possible.tolist() == [late, late, never, never, never, 0, never, never]  # 11 lives for 39 min only
    assert found.interested.tolist() == [never] * 5 + [0] + [never] * 2
    assert delays(one).tolist() == [41 * MINUTE, never, never, never, never, 1, never, never]


def test_the_warm_up_counts_for_nothing() -> None:
    one = ferry((0, 3, 12, None), (2 * S, 3, 13, None), warmup=1.0).in_memory()
    found = limit(one)
    assert found is not None
    assert len(found.published) == 2
    assert {event for event, _, _ in pairs_of(one)} == {13}


def test_there_is_no_limit_without_movement() -> None:
    unknown = ferry((0, 0, 1, None))
    bare = {name: rows for name, rows in unknown.facts.items() if name != "link"}
    assert limit(dataclasses.replace(unknown, facts=bare).in_memory()) is None


def test_the_limit_is_no_less_than_what_flooding_delivers() -> None:
    """In a real run, no delivery is earlier than it could be, and with an ideal medium what was possible at once is
    there within a second of flooding."""
    raw = {
        "nodes": 20,
        "duration": 60,
        "area": {"width": 500, "height": 500},
        "radio": {"range": 110.0},
        "mac": {"model": "ideal"},
        "workload": {
            "subscribers": [{"count": 6, "filter": "true"}],
            "publishers": [{"count": 4, "rate": 0.5}],
        },
    }
    scenario, sink = check(raw, "flood", Path()), MemorySink()
    run(scenario, sink)
    one = Run.over(sink.tables(), scenario)
    found = limit(one)
    assert found is not None
    rows = sink.tables()["deliver"].to_pylist()
    delay = {(row["event"], row["node"], row["subscription"]): row["time"] - row["published"] for row in reversed(rows)}
    pairs = pairs_of(one)
    assert len(pairs) > 300
    for pair, earliest in zip(pairs, found.possible.tolist(), strict=True):
        if pair in delay:
            assert earliest <= delay[pair]
    at_once = np.array([pair in delay for pair in pairs])[found.possible == 0]
    assert len(at_once) > 100
    assert at_once.mean() > 0.95
