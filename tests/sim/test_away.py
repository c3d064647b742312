"""What a suspended node does on waking: its events and its timers, by hand."""

from pathlib import Path
from typing import Any

import pytest

from roamcast.facts.sinks import MemorySink
from roamcast.sim.core import reference
from roamcast.sim.mobility import ScenarioError
from roamcast.sim.run import run
from roamcast.sim.scenario.scenario import check
from roamcast.sim.world import CoreMaker
from roamcast.units import SECOND

CLOCK = """
from roamcast.protocols.api import Broker, Parameters
from roamcast.protocols.entry import Entry
from roamcast.protocols.messages import Message


class Tick(Message, frozen=True):
    pass


class Params(Parameters, frozen=True, kw_only=True):
    pass


class Clock(Broker[Params]):
    def start(self, now, kept):
        for second in (1, 3, 4, 9):
            self.port.set_timer(second * 1_000_000_000, second)

    def timer(self, now, key):
        self.port.note(f"timer {key} at {now / 1e9:g}")

    def receive(self, now, sender, message):
        pass

    def publish(self, now, publication):
        pass


ENTRY = Entry("clock", "counts", Params, Clock, (Tick,))
"""
SCENARIO: dict[str, Any] = {
    "nodes": 2,
    "duration": 12.0,
    "radio": {"propagation": "links"},
    "links": {"up": [[0, 1]]},
    "mac": {"model": "ideal"},
    "protocol": {"name": "clock.py:ENTRY"},
}


def facts(folder: Path, core: CoreMaker | None = None, **more: Any) -> dict[str, list[Any]]:  # noqa: ANN401  # fields
    (folder / "clock.py").write_text(CLOCK)
    sink = MemorySink()
    run(check(SCENARIO | more, "away", folder), sink, folder=folder, make_core=core)
    return {name: table.to_pylist() for name, table in sink.tables().items()}


@pytest.mark.parametrize("core", [None, reference.Core], ids=["compiled", "reference"])
@pytest.mark.parametrize(
    ("timers", "fired"),
    [
        # Away from 2 to 6 s: the timers for 3 and 4 s are due meanwhile, and the one for 9 s has 7 s left.
        ("fire", {"timer 1 at 1", "timer 3 at 6", "timer 4 at 6", "timer 9 at 9"}),
        ("wait", {"timer 1 at 1", "timer 3 at 7", "timer 4 at 8"}),  # and 9 at 13 s, after the end
    ],
)
def test_timers_of_a_suspended_node(tmp_path: Path, core: CoreMaker | None, timers: str, fired: set[str]) -> None:
    recorded = facts(tmp_path, core, away=[{"nodes": [0], "times": [[2, 6]], "timers": timers}])
    assert {row["fact"] for row in recorded["note"] if row["node"] == 0} == fired
    awake = {f"timer {second} at {second}" for second in (1, 3, 4, 9)}
    assert {row["fact"] for row in recorded["note"] if row["node"] == 1} == awake


@pytest.mark.parametrize(("events", "kept"), [("deferred", True), ("skipped", False)])
def test_events_of_a_suspended_node(tmp_path: Path, events: str, kept: bool) -> None:
    """Evenly spaced, one a second: of twelve, those due between 2 and 6 s are published at 6 s, or never."""
    workload = {
        "publishers": [{"nodes": [0], "rate": 1.0}],
        "subscribers": [{"nodes": [1], "start": 0.0}],
    }
    flooding = {"name": "flooding"}
    awake = [row["time"] for row in facts(tmp_path, protocol=flooding, workload=workload)["publish"]]
    away = [{"nodes": [0, 1], "times": [[2, 6]], "events": events}]
    recorded = facts(tmp_path, protocol=flooding, workload=workload, away=away)
    meanwhile = [time for time in awake if 2 * SECOND <= time < 6 * SECOND]
    assert (len(awake), len(meanwhile)) == (12, 4)
    others = [time for time in awake if time not in meanwhile]
    assert [row["time"] for row in recorded["publish"]] == sorted(others + [6 * SECOND] * len(meanwhile) * kept)
    # An event has its own number, published or not.
    numbers = [row["event"] & 0xFFFFFFFF for row in recorded["publish"]]
    assert numbers == [n for n, time in enumerate(awake, 1) if kept or time not in meanwhile]
    assert {row["event"] for row in recorded["deliver"]} == {row["event"] for row in recorded["publish"]}


def test_a_subscription_of_a_suspended_node_is_never_skipped(tmp_path: Path) -> None:
    workload = {"subscribers": [{"nodes": [1], "start": 3.0}]}
    away = [{"nodes": [1], "times": [[2, 6]], "events": "skipped"}]
    recorded = facts(tmp_path, protocol={"name": "flooding"}, workload=workload, away=away)
    assert [(row["time"], row["node"]) for row in recorded["subscribe"]] == [(6 * SECOND, 1)]


@pytest.mark.parametrize("field", [{"events": "skipped"}, {"timers": "wait"}])
def test_a_node_that_restarts_has_no_such_choice(tmp_path: Path, field: dict[str, str]) -> None:
    (tmp_path / "clock.py").write_text(CLOCK)
    raw = SCENARIO | {"away": [{"mode": "restart", "times": [[2, 6]], **field}]}
    with pytest.raises(ScenarioError, match=rf'away\[0\]\.{next(iter(field))}: needs mode = "suspended"'):
        check(raw, "away", tmp_path)
