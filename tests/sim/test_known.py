"""Messages that are withheld from brokers: a run must be the same as if every broker got every message."""

from pathlib import Path
from typing import Any

import pytest

from roamcast.facts.sinks import MemorySink
from roamcast.protocols.api import Broker
from roamcast.protocols.catalogue import find
from roamcast.sim import known, world
from roamcast.sim.core import reference
from roamcast.sim.known import Marks, Subjects, subjects_followed
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
ANNOUNCING = {"scope": 3, "interval": 0.3}


def outcome(raw: dict[str, Any]) -> tuple[dict[str, list[Any]], int]:
    """All facts, and how often a broker was called for a message."""
    calls = 0
    made: type[Broker[Any]] = find(raw["protocol"]["name"]).broker
    receive = made.receive

    def counting(self: Broker[Any], *call: Any) -> None:  # noqa: ANN401  # as `receive` has it
        nonlocal calls
        calls += 1
        receive(self, *call)

    sink = MemorySink()
    with pytest.MonkeyPatch.context() as patch:
        # In the class itself, so that it is still the broker's own.
        patch.setattr(made, "receive", counting)
        run(check(raw, "test", Path()), sink, make_core=reference.Core)
    return {table: sink.table(table).to_pylist() for table in sink.tables()}, calls


@pytest.mark.parametrize(
    ("name", "parameters", "mode"),
    [
        ("flooding", {}, None),
        ("flooding", {}, "restart"),
        ("flooding", {}, "suspended"),
        ("flooding", {"window": 2}, "restart"),
        ("gossip", {}, None),
        ("gossip", {"window": 3}, "restart"),
        ("counter", {}, None),
        ("counter", {}, "restart"),
        ("counter", {"window": 3, "jitter": 0.01}, None),
        ("odmrp", {}, None),
        ("odmrp", {"window": 3}, "restart"),
        ("odmrp", {"upstream": "all", "request": "advertisement"}, None),
        ("opportunistic", ANNOUNCING, None),
        ("opportunistic", ANNOUNCING, "restart"),
        ("opportunistic", {**ANNOUNCING, "relaying": "flooding"}, "suspended"),
    ],
)
def test_nothing_is_different_but_the_time_it_takes(
    name: str, parameters: dict[str, Any], mode: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = {**CROWD, "protocol": {"name": name, "parameters": parameters}}
    if mode is not None:
        raw["away"] = [{"nodes": [1, 2, 3], "mode": mode, "on": [0.5, 1.0], "off": [0.2, 0.4]}]
    facts, calls = outcome(raw)
    monkeypatch.setattr(SimulatedPort, "withhold", lambda *_, **__: None)
    expected, in_all = outcome(raw)
    assert facts == expected
    assert calls < 0.9 * in_all


@pytest.mark.parametrize(
    ("name", "parameters", "places"),
    [
        ("flooding", {"window": 2, "jitter": 0.3}, 2),
        ("flooding", {"window": 2, "jitter": 0.3}, 3),
        ("odmrp", {"window": 2}, 3),
        ("opportunistic", ANNOUNCING, 1),
    ],
)
def test_nor_with_few_places_while_messages_wait(
    name: str, parameters: dict[str, Any], places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (known, world):
        monkeypatch.setattr(module, "subjects_followed", lambda _nodes: places)
    raw = {**CROWD, "protocol": {"name": name, "parameters": parameters}}
    facts, _ = outcome(raw)
    monkeypatch.setattr(SimulatedPort, "withhold", lambda *_, **__: None)
    assert facts == outcome(raw)[0]


def test_each_subject_has_a_number_and_the_oldest_loses_it() -> None:
    begun: list[int] = []
    subjects = Subjects("duplicate", 2, begun.append)
    assert [subjects.number(subject) for subject in ("a", "b", "a")] == [1, 2, 1]
    assert (subjects.find("b"), subjects.find("c")) == (2, None)
    assert [subjects.number(subject) for subject in ("c", "a", "b")] == [3, 4, 5]
    assert begun == [1, 2, 3, 4, 5]


def test_who_has_got_it_once_or_says_so_knows_it() -> None:
    marks = Marks(nodes=3)
    marks.follow(KIND, True)
    assert marks.choose(KIND, 7, [0, 1]) == [0, 1]
    assert marks.choose(KIND, 7, [0, 1, 2]) == [2]
    marks.know(KIND, 0, 8, True)
    assert marks.choose(KIND, 8, [0, 1]) == [1]
    marks.know(KIND, 0, 7, False)
    assert marks.choose(KIND, 7, [0, 1]) == [0]
    marks.begin_again(KIND, 1)
    assert marks.choose(KIND, 7, [0, 1, 2]) == [1]
    assert marks.skipped(KIND) == [3, 2, 1]


def test_without_once_only_those_know_it_that_say_so() -> None:
    marks = Marks(nodes=2)
    marks.follow(KIND, False)
    assert marks.choose(KIND, 7, [0, 1]) == [0, 1]
    marks.know(KIND, 1, 7, True)
    assert marks.choose(KIND, 7, [0, 1]) == [0]
    assert marks.skipped(KIND) == [0, 1]


def test_kinds_have_nothing_to_do_with_each_other() -> None:
    marks = Marks(nodes=1)
    marks.follow(KIND, True)
    marks.follow(KIND + 1, True)
    assert marks.choose(KIND, 7, [0]) == [0]
    assert marks.choose(KIND + 1, 7, [0]) == [0]
    marks.begin_again(KIND + 1, 0)
    assert marks.choose(KIND, 7, [0]) == []
    assert (marks.skipped(KIND), marks.skipped(KIND + 1)) == ([1], [0])


def test_nobody_knows_a_subject_that_has_lost_its_place() -> None:
    marks, places = Marks(nodes=1), subjects_followed(1)
    marks.follow(KIND, True)
    assert marks.choose(KIND, 1, [0]) == [0]
    assert marks.choose(KIND, 1 + places, [0]) == [0]
    marks.know(KIND, 0, 1, True)
    assert marks.choose(KIND, 1, [0]) == [0]
    assert marks.choose(KIND, 1 + places, [0]) == []


def test_large_networks_follow_fewer_subjects() -> None:
    assert [subjects_followed(nodes) for nodes in (2, 10_000, 10_000_000)] == [4096, 1600, 16]
