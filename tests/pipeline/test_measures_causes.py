"""The measure `causes`: shares by cause, without Spark."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from pipeline.measured import Run, S, write_campaign
from roamcast.campaign.recorded import open_run
from roamcast.errors import RoamcastError
from roamcast.facts.sinks import MemorySink
from roamcast.pipeline.measures import FAMILIES, MEASURES
from roamcast.pipeline.measures.by_run import Files
from roamcast.pipeline.measures.causes import NAMES, _shares
from roamcast.report.replay import write_replay
from roamcast.sim import reference
from roamcast.sim.run import run
from roamcast.sim.scenario import check
from roamcast.storage import Store

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


def campaign(out: Path) -> tuple[list[str], str]:
    """Two runs of the same; gives their tables and their scenario."""
    scenario = check(LINE, "a test", Path())
    sink = MemorySink()
    run(scenario, sink, make_core=reference.Core)
    facts = {name: table for name, table in sink.tables().items() if table.num_rows}
    encoded = msgspec.json.encode(scenario).decode()
    write_campaign(out, [Run(name, facts, simulated=5.0, nodes=4, scenario=encoded) for name in ("aa", "ab")])
    return list(facts), encoded


def test_shares_and_what_was_delivered_make_one(tmp_path: Path) -> None:
    tables, encoded = campaign(tmp_path)
    files = Files(Store.at(tmp_path), {table: frozenset({"aa", "ab"}) for table in tables})
    found = _shares(files, "aa", 0, 5 * S, 4, encoded)
    assert {name: share for name, share in found.items() if share} == {
        "cause_not_chosen": pytest.approx(1 / 3),
        "cause_no_path": pytest.approx(1 / 3),
    }


def test_the_family_has_every_cause() -> None:
    assert FAMILIES["causes"] == tuple(NAMES.values())
    assert all(name in MEASURES for name in FAMILIES["causes"])


def test_a_run_of_a_campaign_is_named_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    campaign(tmp_path)
    found = open_run(tmp_path / "ab")
    assert (found.id, found.scenario.nodes) == ("ab", 4)
    assert write_replay(found) == tmp_path / "replay" / "ab.html"
    for name, said in (
        ("", "it has 2 runs"),
        ("a", "2 of its runs begin with 'a'"),
        ("x", "none of its runs begins with 'x'"),
    ):
        with pytest.raises(RoamcastError, match=said) as refused:
            open_run(tmp_path / name)
        assert f"{tmp_path / 'aa'}   flooding" in str(refused.value)
