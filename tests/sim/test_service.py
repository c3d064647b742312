"""Service times: what follows work comes after it, and a busy CPU keeps calls waiting."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from roamcast.facts.sinks import MemorySink
from roamcast.sim.core import reference
from roamcast.sim.mobility import ScenarioError
from roamcast.sim.run import run
from roamcast.sim.scenario.scenario import Scenario, check
from roamcast.sim.service import Cpu
from roamcast.units import SECOND

MS = SECOND // 1000


class Agenda:
    """Calls what was planned, in the order of time."""

    def __init__(self) -> None:
        self.planned: list[tuple[int, Any]] = []

    def plan(self, time: int, what: Any) -> None:  # noqa: ANN401  # a test's
        self.planned.append((time, what))

    def run(self) -> None:
        while self.planned:
            self.planned.sort(key=lambda one: one[0])
            time, what = self.planned.pop(0)
            what(time)


def test_calls_wait_for_the_cpu_in_their_order_and_effects_follow_the_work() -> None:
    agenda = Agenda()
    cpu = Cpu({"match": 10, "convert": 100, "compare": 1}, agenda.plan)
    served: list[tuple[str, int]] = []
    effects: list[str] = []

    def work(now: int, name: str) -> None:
        served.append((name, now))
        cpu.then(lambda: effects.append(f"{name} begins"))
        cpu.spend("match")
        assert cpu.spent == 10
        cpu.then(lambda: effects.append(f"{name} ends"))

    cpu.call(work, 5, "first")
    cpu.call(work, 5, "second")
    cpu.call(work, 12, "third")
    assert served == [("first", 5)]
    agenda.run()
    assert served == [("first", 5), ("second", 15), ("third", 25)]
    assert effects == ["first begins", "first ends", "second begins", "second ends", "third begins", "third ends"]
    cpu.call(work, 50, "after a rest")
    assert served[-1] == ("after a rest", 50)


def star(**service: Any) -> Scenario:  # noqa: ANN401  # fields of [service]
    """A publisher in the middle of three subscribers; one channel, so that everybody matches everything."""
    raw = {
        "nodes": 4,
        "duration": 3,
        "radio": {"propagation": "links"},
        "mac": {"model": "ideal"},
        "links": {"up": [[0, 1], [0, 2], [0, 3]]},
        "protocol": {"name": "flooding", "parameters": {"jitter": 0.0}},
        "workload": {
            "subscribers": [{"nodes": [1, 2, 3], "filter": "true"}],
            "publishers": [{"nodes": [0], "rate": 5.0, "stop": 1.0}],
        },
        "service": service,
    }
    return check(raw, "test", Path())


def deliveries(scenario: Scenario) -> list[tuple[int, int, int]]:
    """Event, node, and the delay in ms, by event and time."""
    sink = MemorySink()
    run(scenario, sink, make_core=reference.Core)
    rows = sink.tables()["deliver"].to_pylist()
    return [(row["event"] & 0xFFFFFFFF, row["node"], (row["time"] - row["published"]) // MS) for row in rows]


def test_each_node_matches_on_its_own_cpu() -> None:
    found = deliveries(star(match=0.05))
    assert len(found) == 15
    assert {delay for _, _, delay in found} == {51}  # 50 ms and a frame of 256 bytes at 2 Mb/s


def test_a_shared_cpu_matches_for_one_node_after_another() -> None:
    found = deliveries(star(match=0.05, cpu="shared"))
    assert sorted(delay for event, _, delay in found if event == 1) == [51, 101, 151]


def test_a_shared_cpu_that_is_too_slow_falls_behind() -> None:
    # An event takes three times 100 ms, and 1.44 ms on the air, for which the next one has to wait. One comes every
    # 200 ms. So the third is done 3 x 301.44 ms after the first was published, and 400 ms less after itself.
    found = deliveries(star(match=0.1, cpu="shared"))
    assert [max(delay for event, _, delay in found if event == one) for one in (1, 3)] == [301, 504]


def test_without_times_the_facts_are_those_without_service() -> None:
    bare = msgspec.structs.replace(star(), service=None)
    assert deliveries(star(cpu="shared")) == deliveries(bare)


def test_conversion_delays_a_join_request_and_comparison_the_join_table() -> None:
    raw = {
        "nodes": 2,
        "duration": 2,
        "radio": {"propagation": "links"},
        "mac": {"model": "ideal"},
        "links": {"up": [[0, 1]]},
        "protocol": {"name": "odmrp", "parameters": {"jitter": 0.0, "gather": 0.0}},
        "workload": {
            "subscribers": [{"nodes": [1], "filter": 'category = "jazz"'}],
            "publishers": [{"nodes": [0], "rate": 1.0, "stop": 1.0, "attributes": {"category": "jazz"}}],
        },
        "service": {"convert": 0.2, "compare": 0.03, "match": 0.004},
        "record": {"frames": True},
    }
    sink = MemorySink()
    run(check(raw, "test", Path()), sink, make_core=reference.Core)
    (published,) = sink.tables()["publish"]["time"].to_pylist()
    frames = [(row["kind"], (row["start"] - published) // MS) for row in sink.tables()["frame"].to_pylist()]
    # The source converts; the receiver hears it 1 ms later, compares, matches, and then answers and passes it on.
    assert frames == [("join_event", 200), ("join_table", 235), ("join_event", 235)]


def test_service_times_and_absences_exclude_each_other() -> None:
    raw = msgspec.to_builtins(star(match=0.1))
    raw["away"] = [{"nodes": [1], "times": [[1.0, 2.0]]}]
    with pytest.raises(ScenarioError, match=r"service: cannot be combined with \[\[away\]\]"):
        check(raw, "test", Path())
