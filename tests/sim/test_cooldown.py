"""The cooldown of a run: nothing is published, what arrives counts, and of what is sent only what carries events."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from roamcast.analysis.run import Run
from roamcast.analysis.summary import summarise
from roamcast.campaign.define.described import ReportedExperiment
from roamcast.campaign.define.experiment import experiment
from roamcast.campaign.define.plan import Plan, plan
from roamcast.campaign.folder.layout import RUNS_FILE
from roamcast.campaign.folder.schemas import RUNS_ARROW
from roamcast.cli.campaign_options import concerns
from roamcast.facts.schema import DATA_ROLE
from roamcast.facts.sinks import MemorySink
from roamcast.report.ending import cut_short
from roamcast.report.source import SummaryRow
from roamcast.sim.core import reference
from roamcast.sim.mobility import ScenarioError
from roamcast.sim.run import run
from roamcast.sim.scenario.ending import MANY, hurried, left, warning, warning_before
from roamcast.sim.scenario.scenario import Scenario, check
from roamcast.sim.world import CoreMaker
from roamcast.units import SECOND
from sim.worlds import facts

S = SECOND
CARRIERS: dict[str, Any] = {
    "nodes": 3,
    "duration": 60.0,
    "warmup": 10.0,
    "radio": {"propagation": "links"},
    "links": {"up": [[0, 1]], "change": [{"at": 40, "down": [[0, 1]], "up": [[1, 2]]}]},
    "mac": {"model": "ideal"},
    "protocol": {"name": "opportunistic", "parameters": {"interval": 2.0, "scope": 1, "carry": "everything"}},
    "workload": {
        "subscribers": [{"nodes": [2]}],
        "publishers": [{"nodes": [0], "rate": 1.0}],
    },
}
"""Node 1 takes what node 0 publishes, and meets node 2 after 40 s."""


def made(**more: Any) -> Scenario:  # noqa: ANN401  # fields of a scenario
    return check(CARRIERS | more, "cooldown", Path())


@pytest.mark.parametrize("core", [None, reference.Core], ids=["compiled", "reference"])
def test_publishers_stop_and_what_arrives_counts(core: CoreMaker | None) -> None:
    recorded = facts(made(cooldown=25.0), core)
    last = max(row["time"] for row in recorded["publish"])
    assert 34 * S <= last < 35 * S
    whole = facts(made(), core)
    assert recorded["publish"] == [row for row in whole["publish"] if row["time"] < 35 * S]
    assert min(row["time"] for row in recorded["deliver"]) > 40 * S


def test_the_rest_of_the_world_is_the_same() -> None:
    recorded, whole = facts(made(cooldown=25.0)), facts(made())
    for table in ("subscribe", "link"):
        assert recorded[table] == whole[table]


def test_an_event_deferred_into_the_cooldown_is_never_published() -> None:
    away = [{"nodes": [0], "times": [[20, 36]]}]
    recorded = facts(made(cooldown=25.0, away=away))
    assert max(row["time"] for row in recorded["publish"]) < 20 * S
    assert any(row["time"] == 36 * S for row in facts(made(away=away))["publish"])


@pytest.mark.parametrize("core", [None, reference.Core], ids=["compiled", "reference"])
def test_cost_is_the_measured_time_and_what_carries_events_after_it(core: CoreMaker | None) -> None:
    """From frames, an independent record: until 35 s all of them, then those of role `data`."""
    sink = MemorySink()
    scenario = made(cooldown=25.0, record={"frames": True})
    run(scenario, sink, make_core=core)
    tables = sink.tables()
    frames = tables["frame"].to_pylist()
    roles = {row["kind"]: row["role"] for row in tables["series"].to_pylist()}
    late = [frame for frame in frames if frame["end"] > 35 * S]
    assert {roles[frame["kind"]] for frame in late} >= {DATA_ROLE, "beacon"}

    def packets(start: int) -> int:
        return sum(
            frame["packets"]
            for frame in frames
            if frame["end"] > start and (frame["end"] <= 35 * S or roles[frame["kind"]] == DATA_ROLE)
        )

    summary = summarise(Run.over(tables, scenario))
    assert summary.packets == packets(10 * S)
    assert sum(row["packets"] for row in tables["transmit"].to_pylist()) == packets(0)
    assert sum(row["packets"] for row in tables["series"].to_pylist()) == sum(frame["packets"] for frame in frames)
    spent = [row for row in tables["series"].to_pylist() if 10 <= row["second"] < 35]
    assert summary.airtime_share == pytest.approx(sum(row["airtime"] for row in spent) / S / 25)


def test_what_a_cause_costs_ends_with_the_measured_time(tmp_path: Path) -> None:
    """A repair each second: of those from 1 to 9 s, the ones at 6 s and later are in the cooldown."""
    (tmp_path / "repairing.py").write_text("""
from roamcast.protocols.entry import Entry
from roamcast.protocols.flooding import Flooding, FloodingBroker
from roamcast.protocols.messages import Message

class Repair(Message, frozen=True, tag="repair"):
    number: int

    @property
    def cause(self):
        return self.number

class Repairing(FloodingBroker):
    def start(self, now, kept):
        for second in range(1, 10):
            self.port.set_timer(second * 1_000_000_000, second)

    def timer(self, now, key):
        self.port.broadcast(Repair(key))

    def receive(self, now, sender, message):
        pass

ENTRY = Entry("repairing", "", Flooding, Repairing, (Repair,))
""")
    raw = {
        "nodes": 1,
        "duration": 10.0,
        "cooldown": 4.5,
        "radio": {"propagation": "links"},
        "links": {},
        "protocol": {"name": "repairing.py:ENTRY"},
    }
    sink = MemorySink()
    run(check(raw, "repairing", tmp_path), sink, folder=tmp_path)
    sent = {row["cause"]: row["messages"] for row in sink.table("transmit").to_pylist()}
    assert sent == dict.fromkeys(range(1, 6), 1)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"cooldown": 50.0}, "cooldown: 50 s, with a warm-up of 10 s, of a run of 60 s leave nothing to measure"),
        (
            {"cooldown": 20.0, "workload": {"publishers": [{"nodes": [0], "rate": 1.0, "start": 40.0}]}},
            r"workload.publishers\[0\].start: 40 s is not before the cooldown at 40 s",
        ),
    ],
)
def test_what_is_refused(more: dict[str, Any], problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        made(**more)


# --- Whether there is time to arrive --------------------------------------------------------------------------------


def with_stop(stop: float | None) -> dict[str, Any]:
    publishers = [{"nodes": [0], "rate": 1.0} | ({} if stop is None else {"stop": stop})]
    return {**CARRIERS["workload"], "publishers": publishers}


@pytest.mark.parametrize(
    ("cooldown", "stop", "delay", "share"),
    [
        (0.0, None, 10.0, 10 / 50),  # of the events of 10 to 60 s, those after 50 s
        (5.0, None, 10.0, 5 / 45),
        (10.0, None, 10.0, 0.0),
        (0.0, 40.0, 25.0, 5 / 30),  # publishers that stop leave as much time as a cooldown
        (0.0, None, 100.0, 1.0),
        (0.0, None, None, 0.0),  # nothing arrived: nothing is known
    ],
)
def test_the_share_of_events_that_are_hurried(
    cooldown: float, stop: float | None, delay: float | None, share: float
) -> None:
    scenario = made(cooldown=cooldown, workload=with_stop(stop))
    assert hurried(scenario, delay) == pytest.approx(share)
    assert (warning(scenario, delay) is not None) == (share > MANY)


def test_the_remedy_keeps_the_measured_time() -> None:
    scenario = made(cooldown=5.0)
    text = warning(scenario, 12.3)
    assert text is not None
    assert "95 % of the deliveries took up to 12.3 s, and 5 s are left" in text
    assert text.endswith("cooldown = 13, duration = 68, or more")
    corrected = made(cooldown=13.0, duration=68.0)
    assert corrected.stop == scenario.stop
    assert warning(corrected, 12.3) is None


def planned(measures: list[str] | None, **more: Any) -> Plan:  # noqa: ANN401  # fields of a scenario
    raw = {"name": "e", "seeds": 2, "measures": measures, "scenario": CARRIERS | more}
    return plan([experiment(raw, "file", Path())])


def test_a_plan_warns_once_per_variant_if_its_measures_count_to_the_end() -> None:
    (text,) = concerns(planned(["delivery"]))
    assert text.startswith("e, opportunistic: opportunistic carries events, and no time is left")
    assert len(concerns(planned(None))) == 1
    assert concerns(planned(["satisfaction_60", "cache_mean"])) == []
    assert concerns(planned(["delivery"], cooldown=20.0)) == []


def test_a_report_warns_by_the_delays_that_were_measured(tmp_path: Path) -> None:
    """Delays of 12 s with 5 s left: 7 of 45 s of publications; with 20 s left, none."""
    rows = [*planned(None, cooldown=5.0).rows]
    pq.write_table(pa.Table.from_pylist(rows, RUNS_ARROW), tmp_path / RUNS_FILE)
    variant = rows[0]["variant"]

    def told(delay: float | None, measures: list[str] | None = None) -> list[str]:
        measured = [SummaryRow("e", variant, {}, "delay_p95", 2, delay, None, None, None)]
        return cut_short(tmp_path, ReportedExperiment("e", [1, 2], measures=measures), measured)

    (text,) = told(12.0)
    assert text.startswith(f"{variant}: 16 % of the events had too little time")
    assert told(5.2) == []
    assert told(None) == [], "nothing arrived, and 5 s were left"
    assert told(12.0, ["satisfaction_60"]) == []


def test_before_a_run_protocols_that_carry_events_are_warned_about() -> None:
    text = "opportunistic carries events, and no time is left after the last publication"
    assert (warning_before(made()) or "").startswith(text)
    assert warning_before(made(cooldown=5.0)) is None
    assert warning_before(made(workload=with_stop(55.0))) is None
    assert left(made(workload=with_stop(55.0))) == 5.0
    assert warning_before(made(protocol={"name": "flooding"})) is None
