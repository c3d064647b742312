"""Causes of misses from a sample of runs that are simulated again."""

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from pipeline.measured import Run, write_campaign
from report.folders import write_folder
from roamcast.cli.main import main
from roamcast.errors import RoamcastError
from roamcast.facts.sinks import MemorySink
from roamcast.report.sampled import with_causes
from roamcast.report.source import read_report_data
from roamcast.sim.core import reference
from roamcast.sim.run import run
from roamcast.sim.scenario.scenario import Scenario, check

LINE = {
    "nodes": 4,
    "duration": 5,
    "radio": {"propagation": "links"},
    "links": {"up": [[0, 1], [1, 2]]},
    "protocol": {"name": "gossip", "parameters": {"p": 1e-9, "jitter": 0}},
    "workload": {"subscribers": [{"nodes": [1, 2, 3]}], "publishers": [{"nodes": [0], "rate": 1, "stop": 2}]},
}
"""Node 1 passes nothing on: node 2 misses every event by its decision; no path leads to node 3."""


def campaign(out: Path, **planned: Scenario) -> Path:
    """Three seeds of one point, without frames and decisions; `planned` replaces the scenario of a run."""
    scenario, sink = check(LINE, "a test", Path()), MemorySink()
    run(scenario, sink, make_core=reference.Core)
    facts = {name: table for name, table in sink.tables().items() if table.num_rows}
    runs = []
    for seed in (1, 2, 3):
        encoded = msgspec.json.encode(planned.get(f"seed_{seed}", scenario)).decode()
        name = f"hint-1-{seed}"
        runs.append(Run(name, facts, 5.0, 0.0, 4, encoded, variant="hint", point=1, seed=seed, experiment="credits"))
    return write_campaign(write_folder(out, error=None), runs)


def test_one_run_of_each_point_says_why(tmp_path: Path) -> None:
    told: list[str] = []
    found = with_causes(read_report_data(campaign(tmp_path / "out")), told.append)
    causes = {row.measure: (row.mean, row.n, row.run) for row in found.rows if row.measure.startswith("cause_")}
    shares = {name: share for name, (share, *_) in causes.items() if share}
    assert shares == {"cause_not_chosen": pytest.approx(1 / 3), "cause_no_path": pytest.approx(1 / 3)}
    assert {(seeds, of) for _, seeds, of in causes.values()} == {(1, "hint-1-1")}
    assert told == ['recording 1 of 1: hint, {"credits": 1}, run hint-1-1']


def test_the_page_shows_them_and_says_that_they_are_a_sample(tmp_path: Path) -> None:
    out = campaign(tmp_path / "out")
    without, sampled = (CliRunner().invoke(main, ["report", str(out), *more]) for more in ([], ["--causes"]))
    assert (without.exit_code, sampled.exit_code) == (0, 0), sampled.output
    page = (out / "report" / "index.html").read_text()
    assert "Pairs of an event and a subscriber that it did not reach, by cause (roamcast why), in one run of" in page
    assert 'aria-label="hint, credits 1; not chosen: 0.3333 of the pairs; missed: 0.6667"' in page
    assert (out / "report" / "figures" / "credits-causes.svg").is_file()


def test_a_run_that_goes_another_way_now_explains_nothing(tmp_path: Path) -> None:
    """As after a change of the protocol: here the run's scenario lets node 1 pass events on."""
    other = check({**LINE, "protocol": {"name": "gossip", "parameters": {"p": 1.0}}}, "a test", Path())
    results = read_report_data(campaign(tmp_path / "out", seed_1=other))
    with pytest.raises(RoamcastError, match="hint-1-1: gives other facts now"):
        with_causes(results)
