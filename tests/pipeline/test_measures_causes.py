"""The measure `causes`: shares by cause, without Spark."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from pipeline.measured import Run, S, write_campaign
from roamcast.facts.sinks import MemorySink
from roamcast.pipeline.measures import FAMILIES, MEASURES
from roamcast.pipeline.measures.by_run import Files
from roamcast.pipeline.measures.causes import NAMES, _shares
from roamcast.sim import reference
from roamcast.sim.run import run
from roamcast.sim.scenario import check

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


def test_shares_and_what_was_delivered_make_one(tmp_path: Path) -> None:
    scenario = check(LINE, "a test", Path())
    sink = MemorySink()
    run(scenario, sink, make_core=reference.Core)
    facts = {name: table for name, table in sink.tables().items() if table.num_rows}
    encoded = msgspec.json.encode(scenario).decode()
    write_campaign(tmp_path, [Run("a", facts, simulated=5.0, nodes=4, scenario=encoded)])
    files = Files(tmp_path, {table: frozenset("a") for table in facts})
    found = _shares(files, "a", 0, 5 * S, 4, encoded)
    assert {name: share for name, share in found.items() if share} == {
        "cause_not_chosen": pytest.approx(1 / 3),
        "cause_no_path": pytest.approx(1 / 3),
    }


def test_the_family_has_every_cause() -> None:
    assert FAMILIES["causes"] == tuple(NAMES.values())
    assert all(name in MEASURES for name in FAMILIES["causes"])
