"""Copies that wake no broker: a run must be the same as if every broker were woken for every copy."""

from pathlib import Path
from typing import Any

import pytest

from roamcast.facts.sinks import MemorySink
from roamcast.protocols.flooding import FloodingBroker
from roamcast.sim.core import reference
from roamcast.sim.first_copies import MAX_EVENTS, FirstCopies
from roamcast.sim.port import SimulatedPort
from roamcast.sim.run import run
from roamcast.sim.scenario.scenario import check

KIND = 2

CROWD: dict[str, Any] = {
    "nodes": 12,
    "duration": 3,
    "area": {"width": 300, "height": 300},
    "movement": {"model": "random-waypoint", "speed": [5, 20]},
    "radio": {"range": 120, "loss": 0.1},
    "record": {"decisions": True},
    "workload": {"subscribers": [{"count": 4}], "publishers": [{"count": 3, "rate": 10.0, "size": 60}]},
}


def outcome(raw: dict[str, Any]) -> tuple[dict[str, list[Any]], int]:
    """All facts, and how often a broker was woken."""
    woken = 0
    receive = FloodingBroker.receive

    def counting(self: FloodingBroker, *call: Any) -> None:  # noqa: ANN401  # as `receive` has it
        nonlocal woken
        woken += 1
        receive(self, *call)

    sink = MemorySink()
    with pytest.MonkeyPatch.context() as patch:
        # In the class itself, so that it is still the broker's own.
        patch.setattr(FloodingBroker, "receive", counting)
        run(check(raw, "test", Path()), sink, make_core=reference.Core)
    return {table: sink.table(table).to_pylist() for table in sink.tables()}, woken


@pytest.mark.parametrize(
    ("name", "window", "mode"),
    [
        ("flooding", 4096, None),
        ("flooding", 4096, "restart"),
        ("flooding", 4096, "suspended"),
        ("flooding", 2, "restart"),
        ("gossip", 4096, None),
        ("gossip", 3, "restart"),
    ],
)
def test_nothing_is_different_but_the_time_it_takes(
    name: str, window: int, mode: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = {**CROWD, "protocol": {"name": name, "parameters": {"window": window}}}
    if mode is not None:
        raw["away"] = [{"nodes": [1, 2, 3], "mode": mode, "on": [0.5, 1.0], "off": [0.2, 0.4]}]
    facts, woken = outcome(raw)
    monkeypatch.setattr(SimulatedPort, "first_copies", lambda *_: None)
    expected, in_all = outcome(raw)
    assert facts == expected
    assert sum(row["count"] for row in facts["note"] if row["fact"] == "duplicate") > 100
    assert woken < 0.7 * in_all


def test_a_broker_is_woken_when_it_may_have_forgotten() -> None:
    copies = FirstCopies(nodes=3)
    copies.follow(KIND, 2)
    assert copies.choose(KIND, 7, [0, 1]) == [0, 1]
    assert copies.choose(KIND, 7, [0, 1, 2]) == [2]
    copies.learn(KIND, 0, 8)
    assert copies.choose(KIND, 7, [0]) == []
    copies.learn(KIND, 0, 9)  # its window of two has 8 and 9
    assert copies.choose(KIND, 7, [0, 1]) == [0]
    copies.begin_again(KIND, 1)
    assert copies.choose(KIND, 7, [1, 2]) == [1]
    assert copies.skipped(KIND) == [2, 2, 1]


def test_kinds_have_nothing_to_do_with_each_other() -> None:
    copies = FirstCopies(nodes=1)
    copies.follow(KIND, 1)
    copies.follow(KIND + 1, 10)
    assert copies.choose(KIND, 7, [0]) == [0]
    assert copies.choose(KIND + 1, 7, [0]) == [0]
    copies.learn(KIND + 1, 0, 8)  # fills the window of the other kind alone
    assert copies.choose(KIND, 7, [0]) == []
    assert copies.skipped(KIND) == [1]
    assert copies.skipped(KIND + 1) == [0]


def test_of_an_event_that_is_followed_no_longer_every_copy_wakes() -> None:
    copies = FirstCopies(nodes=2)
    copies.follow(KIND, 10_000)
    for event in range(MAX_EVENTS + 1):
        assert copies.choose(KIND, event, [0]) == [0]
    assert copies.choose(KIND, 0, [0]) == [0]
    assert copies.choose(KIND, MAX_EVENTS, [0]) == []
