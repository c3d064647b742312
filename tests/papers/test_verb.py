"""`roamcast papers`, with Spark and the simulation replaced: they have tests of their own."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from roamcast.campaign.define.plan import Plan
from roamcast.campaign.folder.schemas import RUN_MEASURES_ARROW, RUNS_ARROW
from roamcast.cli.main import main
from roamcast.pipeline import measure, session, simulate


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def roamcast(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


# --- Without running anything ---------------------------------------------------------------------------------------


def test_papers_are_listed() -> None:
    lines = roamcast("papers", "--list").stdout.splitlines()
    assert [line.partition(":")[0] for line in lines if not line.startswith(" ")] == [
        "hint",
        "odmrp",
        "coman",
        "opportunistic",
        "context",
    ]
    assert lines[1] == "    hint-6          Impact of the forwarding probability"
    assert "    claims H1 to H8, 8 of them with checks" in lines
    odmrp = roamcast("papers", "--list", "odmrp").stdout.splitlines()
    assert odmrp[-1] == "    claims O1 to O8, 6 of them with checks"
    context = roamcast("papers", "--list", "context").stdout.splitlines()
    assert context[-1] == "    claims X1 to X4, 4 of them with checks"
    coman = roamcast("papers", "--list", "coman").stdout.splitlines()
    assert coman[1].split() == ["coman-9", "The", "tree", "over", "the", "side", "of", "the", "area"]
    assert coman[-1] == "    claims C1 to C9, 9 of them with checks"


def test_the_list_and_the_plan_for_scripts() -> None:
    (context,) = json.loads(roamcast("papers", "--list", "context", "--json").stdout)
    assert context["paper"] == "context"
    assert context["experiments"]["context-3a"] == "Impact of host speed"
    assert list(context["claims"]) == ["X1", "X2", "X3", "X4"]
    assert all(claim["text"] and claim["checks"] > 0 for claim in context["claims"].values())
    planned = json.loads(roamcast("papers", "hint", "--quick", "--plan", "--json").stdout)
    assert (len(planned["runs"]), planned["to_do"]) == (312, 297)


def test_the_plan_and_the_scenarios_are_printed() -> None:
    planned = roamcast("papers", "hint", "--quick", "--plan").stdout
    assert "\n312 runs planned, 297 of them distinct, 297 to do\n" in planned
    explained = roamcast("papers", "hint", "--explain").stdout
    assert "# hint-7: hint at credits 0, with all defaults.\n" in explained
    assert '#   variant hint, all beacon: protocol.parameters.beaconing = "all"\n' in explained
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["hnit"], "error: no paper is named 'hnit'; known are hint, "),
        (["--list", "hnit"], "error: no paper is named 'hnit'; known are hint, "),
        (["context", "--conf", "cores"], "error: --conf cores: expected K=V"),
        (["context", "--explain", "--json"], "error: --explain prints text only: leave --json out"),
    ],
)
def test_a_wrong_request_is_refused(arguments: list[str], words: str) -> None:
    answer = roamcast("papers", *arguments)
    assert (answer.exit_code, answer.stderr[: len(words)]) == (2, words)
    assert list(Path().iterdir()) == []


# --- The whole way --------------------------------------------------------------------------------------------------


class Stage:
    """Stands for simulating and measuring: every run delivers 0.7 or so at 2 packets, but those that are to fail."""

    def __init__(self, failing: int) -> None:
        self.failing = failing
        self.master: str | None = None
        self.command = ""
        self.runs: list[str] = []

    @contextlib.contextmanager
    def session(self, master: str, conf: dict[str, str]) -> Iterator[None]:
        self.master = master
        yield

    def simulate(self, spark: None, plan: Plan, out: Path, *_: object, command: str, **_limits: object) -> pa.Table:
        self.command = command
        self.runs = [run.run for run in plan.distinct]
        out.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(plan.rows, RUNS_ARROW), out / "runs.parquet")
        errors = ["it broke" if number < self.failing else None for number in range(len(self.runs))]
        status = ["failed" if error else "ok" for error in errors]
        return pa.table({"run": self.runs, "status": status, "error": pa.array(errors, pa.string())})

    def measure(self, spark: None, out: Path, names: list[str]) -> None:
        assert names[:3] == ["delivery", "overhead", "overhead_data"]
        values = {"delivery": 0.7, "overhead": 2.0}
        rows = [
            {"run": run, "measure": name, "value": value + number / 1e6}  # seeds that differ, if by little
            for number, run in enumerate(self.runs[self.failing :])
            for name, value in values.items()
        ]
        (out / "measures").mkdir()
        pq.write_table(pa.Table.from_pylist(rows, RUN_MEASURES_ARROW), out / "measures" / "run.parquet")


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage = Stage(failing=0)
    monkeypatch.setattr(session, "session", stage.session)
    monkeypatch.setattr(simulate, "simulate", stage.simulate)
    monkeypatch.setattr(measure, "measure", stage.measure)
    monkeypatch.setattr("roamcast.cli.papers.write_report", lambda out: out / "report" / "index.html")
    return stage


def _verdicts(out: str) -> dict[str, dict[str, Any]]:
    return {verdict["id"]: verdict for verdict in json.loads((Path(out) / "claims.json").read_text())}


def test_claims_are_judged_by_what_was_measured(stage: Stage) -> None:
    answer = roamcast("papers", "hint", "--quick", "--seeds", "2", "--master", "local[1]")
    assert (answer.exit_code, stage.master) == (0, "local[1]"), answer.output
    assert stage.command == "roamcast papers hint --quick --out out/hint-quick --seeds 2 --master 'local[1]'"
    verdicts = _verdicts("out/hint-quick")
    assert list(verdicts) == [f"H{n}" for n in range(1, 9)]
    checks = {check["says"]: check["verdict"] for check in verdicts["H2"]["checks"]}
    assert checks["hint delivers about 0.7 with no credit"] == "holds"
    assert checks["at about 2.5 packets"] == "does not hold"
    assert verdicts["H2"]["verdict"] == "does not hold"
    lines = answer.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    assert "    ✗  at about 2.5 packets: credits = 0: 2 (2 to 2); misses by 0.125" in lines
    assert (verdicts["H2"]["held"], verdicts["H2"]["of"], verdicts["H2"]["main"]) == (1, 4, "does not hold")
    assert "H2  ✗ does not hold · 1 of 4 checks hold · main point (*): ✗ does not hold" in lines
    assert "\nA preview with shorter runs" in answer.stdout
    assert verdicts["H2"]["explanation"].startswith("A preview with shorter runs")
    assert answer.stdout.endswith("report: out/hint-quick/report/index.html\n")


def test_verdicts_for_scripts(stage: Stage) -> None:
    answer = roamcast("papers", "hint", "--quick", "--seeds", "2", "--json")
    printed = json.loads(answer.stdout)
    assert printed == {
        "claims": list(_verdicts("out/hint-quick").values()),
        "preview": True,
        "report": "out/hint-quick/report/index.html",
    }


def test_without_names_all_claims_are_listed(stage: Stage) -> None:
    answer = roamcast("papers", "--seeds", "2", "--out", "all")
    assert answer.exit_code == 0, answer.output
    verdicts = _verdicts("all")
    assert len(verdicts) == 34
    assert verdicts["X4"]["verdict"] == "not measured"
    assert "A preview of shorter runs" not in answer.stdout + verdicts["H2"]["explanation"]
    assert (verdicts["H2"]["tested"], verdicts["H6"]["tested"]) == (True, False)
    lines = " ".join(answer.stdout.split())
    assert "explained by links in one direction: both ends must be in range: less than half the cost: " in lines
    assert "Explanation (a guess, not tested): It depends little on the interval" in lines
    assert "O8  – not measured" in answer.stdout.splitlines()


def test_runs_that_failed_are_told_and_the_others_judged(stage: Stage) -> None:
    stage.failing = 2
    answer = roamcast("papers", "hint", "--quick")
    assert answer.exit_code == 1
    assert "2 runs failed:" in answer.stderr
    assert "run them again with: roamcast papers hint --quick --out out/hint-quick --retry-failed" in answer.stderr
    assert _verdicts("out/hint-quick")["H1"]["verdict"] == "does not hold"


def test_if_every_run_failed_there_is_nothing_to_judge(stage: Stage) -> None:
    stage.failing = 10**6
    answer = roamcast("papers", "hint", "--quick")
    assert answer.exit_code == 1
    assert not Path("out/hint-quick/claims.json").exists()
