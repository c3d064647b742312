"""`roamcast papers --readings`, with Spark and the simulation replaced: they have tests of their own."""

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


class Stage:
    """Stands for simulating and measuring. Everybody delivers 0.7 at 2 packets; 0.9 if suppression is by a covering
    copy, and at 3 packets if the range is 150 m."""

    def __init__(self) -> None:
        self.runs: dict[str, dict[str, Any]] = {}
        self.stages: list[tuple[str, set[int], set[float]]] = []

    @contextlib.contextmanager
    def session(self, master: str, conf: dict[str, str]) -> Iterator[None]:
        yield

    def simulate(self, spark: None, plan: Plan, out: Path, *_: object, command: str, **_limits: object) -> pa.Table:
        out.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(plan.rows, RUNS_ARROW), out / "runs.parquet")
        self.runs = {run.run: json.loads(run.scenario) for run in plan.distinct}
        made = list(self.runs.values())
        self.stages.append((out.name, {each["seed"] for each in made}, {each["duration"] for each in made}))
        return pa.table({"run": list(self.runs), "status": ["ok"] * len(self.runs), "error": [None] * len(self.runs)})

    def measure(self, spark: None, out: Path, names: list[str]) -> None:
        rows = []
        for run, scenario in self.runs.items():
            covered = scenario["protocol"]["parameters"].get("suppression") == "covered"
            far = scenario["radio"]["range"] == 150
            values = {"delivery": 0.9 if covered else 0.7, "overhead": 3.0 if far else 2.0}
            rows += [
                {"run": run, "measure": name, "value": value + scenario["seed"] / 1e9} for name, value in values.items()
            ]
        (out / "measures").mkdir()
        pq.write_table(pa.Table.from_pylist(rows, RUN_MEASURES_ARROW), out / "measures" / "run.parquet")


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage = Stage()
    monkeypatch.setattr(session, "session", stage.session)
    monkeypatch.setattr(simulate, "simulate", stage.simulate)
    monkeypatch.setattr(measure, "measure", stage.measure)
    return stage


def test_a_reading_is_chosen_and_confirmed_on_fresh_seeds(stage: Stage) -> None:
    answer = roamcast("papers", "hint", "--readings")
    assert answer.exit_code == 0, answer.output
    found = json.loads((Path("out") / "hint-readings" / "readings.json").read_text())
    assert [name for name, _, _ in stage.stages] == ["alone", "confirming"], "one setting mattered: nothing to combine"
    (_, exploring, short), (_, confirming, full) = stage.stages
    assert (exploring, short) == ({101, 102, 103}, {260})
    assert (confirming, full) == (set(range(1001, 1011)), {1060})
    assert found["best"] == {"open": "suppressed by a covering copy", "departure": "suppressed by a covering copy"}
    first, *others = found["tried"]
    assert (first["reading"], first["points"]["H4"]["met"]) == ("suppressed by a covering copy", True)
    assert [one["reading"] for one in others] == ["as in the ledger", "150 m for all"]
    assert found["same"]["no capture"] == "as in the ledger"
    assert len(found["same"]) == 8, "of eleven readings three are different"
    assert found["left_out"]["H4"] == {"reading": "as in the ledger", "met": False}, "chosen by H4 alone"
    verdicts = {one["id"]: one["main"] for one in found["confirmed"]["suppressed by a covering copy"]}
    assert verdicts["H4"] == "holds"
    lines = answer.stdout.splitlines()
    assert "best, open settings only: suppressed by a covering copy" in lines
    assert "no capture: every number as under 'as in the ledger'" in lines
    never = "H2 under no reading; misses by 0.5 under 'suppressed by a covering copy': credits = 0: 2 against 2, +0 % "
    assert any(line.startswith(never) for line in lines)


def test_what_was_explored_is_kept_if_it_is_not_confirmed(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = stage.simulate

    def interrupted(spark: None, plan: Plan, out: Path, *rest: object, **limits: Any) -> pa.Table:  # noqa: ANN401
        if out.name == "confirming":
            raise KeyboardInterrupt
        return whole(spark, plan, out, *rest, **limits)

    monkeypatch.setattr(simulate, "simulate", interrupted)
    assert roamcast("papers", "hint", "--readings").exit_code != 0
    found = json.loads((Path("out") / "hint-readings" / "readings.json").read_text())
    assert (found["stage"], found["confirmed"], len(found["tried"])) == ("alone", {}, 3)
    assert found["tried"][0]["points"]["H4"]["measured"].startswith("subscribers = 2: 0.9 (")


def test_the_plan_says_how_long_it_takes() -> None:
    answer = roamcast("papers", "odmrp", "--readings", "--plan")
    assert "departure  refresh and flags of 1 s\n" in answer.stdout
    assert "odmrp: 13 readings, one setting each, " in answer.stdout
    planned = json.loads(roamcast("papers", "odmrp", "--readings", "--plan", "--json").stdout)
    assert (planned["paper"], planned["readings"]) == ("odmrp", 13)
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("option", [["--until-decided"], ["--seeds", "3"], ["--explain"]])
def test_what_cannot_be_combined(option: list[str]) -> None:
    answer = roamcast("papers", "hint", "--readings", *option)
    assert (answer.exit_code, answer.stderr) == (
        2,
        "error: --readings cannot be combined with --until-decided, --seeds or --explain\n",
    )
