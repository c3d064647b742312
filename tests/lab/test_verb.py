"""`roamcast lab` as a person starts it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from lab.test_processes import PATIENCE, wait_until_gone
from roamcast.cli.lab import lab as lab_verb
from roamcast.lab.lab import Death, LabReport

PROGRAM: Final = "from roamcast.cli.main import main; main(prog_name='x')"

LINE: Final = """
name = "small line"
nodes = 3
duration = 2.5

[area]
width = 500
height = 100

[movement]
model = "static"
positions = [[50, 50], [250, 50], [450, 50]]

[radio]
range = 250

[[workload.subscribers]]
nodes = [2]

[[workload.publishers]]
nodes = [0]
rate = 4
start = 0.5
stop = 1.5
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    file = tmp_path / "line.toml"
    file.write_text(LINE, encoding="utf-8")
    return file


def started(*words: str | Path, temporary: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "lab", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )


def finished(*words: str | Path, temporary: Path) -> tuple[int, str, str]:
    with started(*words, temporary=temporary) as lab:
        out, err = lab.communicate(timeout=5 * PATIENCE)
        return lab.returncode, out, err


def test_it_writes_the_facts_of_a_run_and_prints_its_summary(scenario: Path, tmp_path: Path) -> None:
    status, out, err = finished(scenario, "--out", tmp_path / "facts", temporary=tmp_path)
    assert (status, err) == (0, "")
    assert out.startswith("small line: flooding, seed 1, after 0 s of warm-up\ndelivery")
    assert "3 nodes ready after" in out
    # Four events over two hops to one subscriber, each sent by three nodes.
    record: dict[str, Any] = json.loads((tmp_path / "facts" / "run.json").read_text(encoding="utf-8"))
    assert (record["summary"]["pairs_delivered"], record["summary"]["packets"]) == (4, 12)
    assert record["lab"]["problems"] == []
    assert (tmp_path / "facts" / "scenario.toml").read_text(encoding="utf-8") == LINE
    assert len(pq.read_table(tmp_path / "facts" / "leg.parquet")) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["facts", "line.toml"]  # nothing else was left


def test_changes_and_the_seed_are_as_in_run(scenario: Path, tmp_path: Path) -> None:
    words = ("--seed", "7", "--set", "radio.range=100", "--set", "duration=1.6", "--json", "--out", tmp_path / "facts")
    status, out, err = finished(scenario, *words, temporary=tmp_path)
    assert (status, err) == (0, "")
    record = json.loads(out)
    assert record["seed"] == 7
    assert record["changes"] == ["radio.range=100", "duration=1.6", "seed=7"]
    assert (record["summary"]["events"], record["summary"]["pairs_delivered"]) == (4, 0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--set", "background.rate=1"), "background: the lab has only the traffic of its nodes"),
        (("--set", "protocol.name=none"), "no protocol is named 'none'"),
        (("--runs", "2"), "--runs needs --twin"),
        (("--netns", "--twin"), "--netns excludes --twin"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_starts(
    scenario: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    status, out, err = finished(scenario, *words, temporary=tmp_path)
    assert (status, out) == (2, "")
    assert said in err
    assert "Traceback" not in err


def descendants(pid: int) -> list[int]:
    children = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return children + [below for child in children for below in descendants(child)]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing_behind(scenario: Path, tmp_path: Path, how: signal.Signals) -> None:
    with started(scenario, "--set", "duration=3600", "--out", tmp_path / "facts", temporary=tmp_path) as lab:
        until = time.monotonic() + PATIENCE
        while len(pids := descendants(lab.pid)) < 4:  # the fork server and three nodes
            assert time.monotonic() < until
            assert lab.poll() is None
            time.sleep(0.02)
        lab.send_signal(how)
        out, err = lab.communicate(timeout=PATIENCE)
        assert (lab.returncode, out, err) == (130, "", "interrupted\n")
    wait_until_gone(pids)
    assert [path.name for path in tmp_path.iterdir()] == ["line.toml"]


def test_a_node_that_died_is_told_of_and_the_exit_code_is_1(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run_lab(*_: object, **__: object) -> LabReport:
        return LabReport(deaths=[Death(2, 1_500_000_000, -signal.SIGKILL, "it printed nothing")])

    monkeypatch.setattr("roamcast.lab.lab.run_lab", run_lab)
    result = CliRunner().invoke(lab_verb, [str(scenario), "--out", str(tmp_path / "facts")])
    assert result.exit_code == 1
    assert result.stderr == "node 2 ended by SIGKILL after 1.5 s: it printed nothing\n"
    record = json.loads((tmp_path / "facts" / "run.json").read_text(encoding="utf-8"))
    assert record["lab"]["problems"] == ["node 2 ended by SIGKILL after 1.5 s: it printed nothing"]
