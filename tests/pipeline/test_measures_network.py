"""The network of a run by its scenario, and what was possible in it: small runs worked out by hand, without Spark."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline.measured import S, tables
from roamcast.facts.contacts import Reach
from roamcast.facts.possible import NEVER
from roamcast.facts.sinks import MemorySink
from roamcast.pipeline.measures import possible
from roamcast.pipeline.measures.by_run import Files
from roamcast.pipeline.measures.possible import figures, limit_of
from roamcast.sim.network import network_of, reach_of
from roamcast.sim.run import run
from roamcast.sim.scenario import check
from roamcast.storage import Store

NODES, END = 4, 4000 * S
MINUTE = 60 * S


def reach(**radio: Any) -> Reach | None:  # noqa: ANN401  # as in a scenario
    return reach_of(json.dumps({"seed": 5, "radio": radio}), 2)


def test_the_reach_of_a_scenario() -> None:
    assert reach(range=70.0) == Reach(70.0)
    assert reach(range=[10.0, 20.0]) == Reach((10.0, 20.0))
    assert reach(range=70.0, indoor_range=30.0) == Reach(70.0, 30.0)
    assert reach(range=70.0, walls="opaque") == Reach(70.0, walls=True)
    assert reach(range=70.0, ends="both") == Reach(70.0, both_ends=True)
    assert reach(propagation="links") is None


OWN_RANGES = {"radio": {"range": [40.0, 160.0], "drawn": "node"}}
BUILDINGS = {
    "movement": {"model": "buildings", "buildings": 2, "edge": [60, 90], "stay": [2, 8], "speed": [5, 9]},
    "radio": {"range": 120.0, "indoor_range": 50.0, "walls": "opaque"},
    "away": [{"nodes": [0, 1, 2], "on": [2, 9], "off": [2, 9]}],
}


@pytest.mark.parametrize("world", [OWN_RANGES, BUILDINGS], ids=["own ranges", "walls and nodes away"])
def test_frames_of_a_real_run_reach_exactly_those_in_contact(world: dict[str, Any]) -> None:
    raw = {
        "nodes": 12,
        "duration": 40,
        "area": {"width": 300, "height": 300},
        "mac": {"model": "ideal"},
        "record": {"frames": True},
        "workload": {
            "subscribers": [{"count": 3, "filter": "true"}],
            "publishers": [{"count": 6, "rate": 1.0}],
        },
        **world,
    }
    scenario, sink = check(raw, "real", Path()), MemorySink()
    run(scenario, sink)
    facts = sink.tables()
    found = network_of(facts, 12, 40 * S, json.dumps(raw), directed=True)
    assert found is not None
    intervals = list(zip(*(c.tolist() for c in (found.sender, found.receiver, found.begin, found.until)), strict=True))
    received: dict[int, set[int]] = {}
    for row in facts["reception"].to_pylist():
        received.setdefault(row["frame"], set()).add(row["node"])
    frames = facts["frame"].to_pylist()
    assert len(frames) > 100
    for frame in frames:
        near = {b for a, b, begin, until in intervals if a == frame["sender"] and begin <= frame["start"] < until}
        assert received.get(frame["frame"], set()) == near


# --- What was possible ----------------------------------------------------------------------------------------------

# Node 0 publishes. It meets 1 after 10 minutes, 1 meets 2 after 40, 2 and 3 are always together. 2 and 3 subscribe, and
# 0 itself, which does not count.
LINK = [
    *((0, 2, 3, 0.0), (0, 3, 2, 0.0)),
    *((10 * MINUTE, 0, 1, 0.0), (11 * MINUTE, 0, 1, None)),
    *((40 * MINUTE, 1, 2, 0.0), (41 * MINUTE, 1, 2, None)),
]
SUBSCRIBE = [(0, node, node, True, "true") for node in (0, 2, 3)]


def world(*published: tuple[Any, ...], **more: list[tuple[Any, ...]]) -> dict[str, pa.Table]:
    """Events by time, publisher, id and lifetime."""
    publish = [(time, node, event, "t", 50, lifetime, None, None) for time, node, event, lifetime in published]
    said = [(event, "", "str", None, None, "t", None) for _, _, event, _ in published]
    return tables(link=LINK, subscribe=SUBSCRIBE, publish=publish, event_attribute=said, **more)


def test_a_carrier_nobody_would_think_of() -> None:
    """1 is not interested: if only the interested carry, nothing of 0 ever arrives."""
    facts = world((0, 0, 10, None), (0, 0, 11, 39 * MINUTE), (0, 3, 12, None), (20 * MINUTE, 0, 13, None))
    limit = limit_of(facts, 0, END, NODES, "{}")
    assert limit is not None
    assert [(pair.event, pair.node) for pair in limit.pairs] == [
        *((10, 2), (10, 3), (11, 2), (11, 3)),
        *((12, 0), (12, 2), (13, 2), (13, 3)),
    ]
    late, never = 40 * MINUTE, NEVER
    assert limit.possible.tolist() == [late, late, never, never, never, 0, never, never]  # 11 lives for 39 min only
    assert limit.interested.tolist() == [never] * 5 + [0] + [never] * 2
    deliver = tables(deliver=[(41 * MINUTE, 2, 10, 2, 0, 2, "data"), (1, 2, 12, 2, 0, 1, "data")])["deliver"]
    found = figures(limit, deliver, END)
    assert found["possible"] == pytest.approx(3 / 8)
    assert found["at_once"] == pytest.approx(1 / 8)
    assert found["interested"] == pytest.approx(1 / 8)
    assert found["achieved"] == pytest.approx(2 / 3)
    # 4000 s are the end: what was published at 20 min is too young for an hour.
    assert (found["possible_1800"], found["possible_3600"]) == pytest.approx((1 / 8, 3 / 6))
    assert (found["interested_1800"], found["interested_3600"]) == pytest.approx((1 / 8, 1 / 6))
    assert found["possible_5400"] is None


def test_the_warm_up_counts_for_nothing() -> None:
    limit = limit_of(world((0, 3, 12, None), (2 * S, 3, 13, None)), S, END, NODES, "{}")
    assert limit is not None
    assert {pair.event for pair in limit.pairs} == {13}


def test_where_nothing_was_wanted_nothing_is_told() -> None:
    limit = limit_of(world((0, 3, 12, None)), S, END, NODES, "{}")
    assert limit is not None
    assert set(figures(limit, tables()["deliver"], END).values()) == {None}
    unknown = tables(subscribe=SUBSCRIBE, publish=[(0, 0, 1, "t", 50, None, None, None)])
    assert limit_of(unknown, 0, END, NODES, "{}") is None


def test_a_world_is_worked_out_once_for_all_protocols(monkeypatch: pytest.MonkeyPatch) -> None:
    late = [(41 * MINUTE, 2, 10, 2, 0, 2, "data")]
    same = {"a": world((0, 0, 10, None)), "b": world((0, 0, 10, None), deliver=late), "c": world((5, 0, 10, None))}
    monkeypatch.setattr(Files, "read", lambda _, name: dict(same[name]))
    worked_out = []

    def counting(*given: Any) -> Any:  # noqa: ANN401  # as the original
        worked_out.append(given)
        return limit_of(*given)

    monkeypatch.setattr(possible, "limit_of", counting)
    work = possible.OfWorlds(Files(Store.at(Path()), {}), possible._FIGURES, figures)
    scenarios = [json.dumps({"protocol": {"name": name}}) for name in ("gossip", "hint", "hint")]
    found = [work(name, 0, END, NODES, scenario) for name, scenario in zip("abc", scenarios, strict=True)]
    assert [one["achieved"] for one in found] == [0.0, 0.5, 0.0]
    assert len(worked_out) == 2


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
    facts = sink.tables()
    limit = limit_of(facts, 0, 60 * S, 20, json.dumps(raw))
    assert limit is not None
    rows = facts["deliver"].to_pylist()
    delay = {(row["event"], row["node"], row["subscription"]): row["time"] - row["published"] for row in reversed(rows)}
    assert len(limit.pairs) > 300
    for pair, earliest in zip(limit.pairs, limit.possible.tolist(), strict=True):
        if pair in delay:
            assert earliest <= delay[pair]
    at_once = np.array([pair in delay for pair in limit.pairs])[limit.possible == 0]
    assert len(at_once) > 100
    assert at_once.mean() > 0.95
