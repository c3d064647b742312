"""How a person names a run of a campaign."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from pipeline.measured import Run, write_campaign
from roamcast.campaign.folder.recorded import differing, open_run
from roamcast.cli.main import main
from roamcast.errors import RoamcastError
from roamcast.facts.sinks import MemorySink
from roamcast.report.replay import write_replay
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


def campaign(out: Path) -> None:
    """Two runs of the same."""
    scenario, sink = check(LINE, "a test", Path()), MemorySink()
    run(scenario, sink, make_core=reference.Core)
    facts = {name: table for name, table in sink.tables().items() if table.num_rows}
    encoded = msgspec.json.encode(scenario).decode()
    write_campaign(out, [Run(name, facts, simulated=5.0, nodes=4, scenario=encoded) for name in ("aa", "ab")])


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


def test_a_run_of_a_campaign_is_seen_as_measures_see_it(tmp_path: Path) -> None:
    campaign(tmp_path)
    found = open_run(tmp_path / "ab").run
    assert (found.name, found.nodes, found.protocol, found.end) == ("ab", 4, "gossip", 5_000_000_000)
    assert found.table("subscribe", "node").to_pylist() == [{"node": node} for node in (1, 2, 3)]
    assert "run" not in found.table("decision").column_names


def test_a_run_of_a_campaign_is_run_again_and_compared(tmp_path: Path) -> None:
    """With --replay it has what `why` wants; one with a change is not compared."""
    campaign(tmp_path)
    again = CliRunner().invoke(main, ["run", str(tmp_path / "ab"), "--replay", "--quiet", "--reference"])
    assert again.exit_code == 0, again.output
    place = tmp_path / "again" / "ab"
    assert f"its facts are those of {tmp_path / 'ab'}" in again.stdout
    assert f"causes: roamcast why {place} --missed" in again.stdout
    assert differing(open_run(tmp_path / "ab"), open_run(place)) == []
    assert CliRunner().invoke(main, ["why", str(place), "--missed"]).exit_code == 0
    changed = ["--set", "protocol.parameters.p=1.0", "--out", str(tmp_path / "p")]
    other = CliRunner().invoke(main, ["run", str(tmp_path / "ab"), "--quiet", "--reference", *changed])
    assert "its facts are those" not in other.stdout
    assert "deliver" in differing(open_run(tmp_path / "p"), open_run(place))
