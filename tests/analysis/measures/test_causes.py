"""Shares of missed pairs by cause."""

import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import pytest

from analysis.runs import values_of
from pipeline.measured import Run
from roamcast.analysis.measures.catalogue import GROUPS
from roamcast.analysis.measures.causes import NAMES, causes
from roamcast.analysis.why.causes import Cause
from roamcast.facts.sinks import MemorySink
from roamcast.sim.core import reference
from roamcast.sim.run import run
from roamcast.sim.scenario.scenario import check

LINE: dict[str, Any] = {
    "nodes": 4,
    "duration": 5,
    "radio": {"propagation": "links"},
    "links": {"up": [[0, 1], [1, 2]]},
    "protocol": {"name": "gossip", "parameters": {"p": 0.01, "jitter": 0}},
    "workload": {"subscribers": [{"nodes": [1, 2, 3]}], "publishers": [{"nodes": [0], "rate": 1, "stop": 2}]},
    "record": {"frames": True, "decisions": True},
}
"""Node 1 hears both events and tosses against passing them on to 2; 3 is alone."""


@pytest.fixture(scope="module")
def line() -> Run:
    scenario, sink = check(LINE, "a test", Path()), MemorySink()
    run(scenario, sink, make_core=reference.Core)
    return Run("aa", sink.tables(), simulated=5.0, nodes=4, scenario=msgspec.json.encode(scenario).decode())


def test_shares_and_what_was_delivered_make_one(line: Run) -> None:
    found = values_of(line, causes)
    assert found == dict.fromkeys(NAMES.values(), 0) | {
        "cause_not_chosen": pytest.approx(1 / 3),
        "cause_no_path": pytest.approx(1 / 3),
    }


@pytest.mark.parametrize("table", ["frame", "decision"])
def test_what_was_not_recorded_cannot_be_a_cause(line: Run, table: str) -> None:
    some = {name: rows for name, rows in line.facts.items() if name != table}
    assert set(values_of(dataclasses.replace(line, facts=some), causes).values()) == {None}


def test_an_experiment_gets_every_cause_by_one_name() -> None:
    assert set(GROUPS["causes"]) == set(NAMES.values()) == {one.name for one in causes.measures}
    assert set(Cause) - set(NAMES) == {Cause.NOT_SUBSCRIBED, Cause.NOT_RECORDED}
