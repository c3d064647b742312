"""From experiment files to tables of runs, and all that is refused before Spark starts."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from pipeline.tiny import made, odd, planned, raw
from roamcast.campaign.define import identity
from roamcast.campaign.define.experiment import check_measures, wanted_measures
from roamcast.campaign.define.plan import Plan, load_experiment, plan
from roamcast.cli.main import main
from roamcast.errors import RoamcastError
from roamcast.sim.scenario.scenario import Scenario

EXAMPLE = Path(__file__).parents[2] / "examples" / "campaigns" / "range.toml"


def axis(field: str, *values: Any, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"field": field, "values": list(values), **more}


def scenarios(plan: Plan, *path: str) -> list[Any]:
    """A field of the scenario of every row."""
    found = []
    for row in plan.rows:
        value = json.loads(row["scenario"])
        for step in path:
            value = value[step]
        found.append(value)
    return found


def test_a_grid_has_all_combinations_and_the_last_axis_turns_fastest(tmp_path: Path) -> None:
    axes = [axis("radio.range", 100, 150), axis("nodes", 10, 20, label="N")]
    grid = planned(tmp_path, seeds=1, axes=axes, variants=[{"name": "a"}])
    assert [json.loads(row["axes"]) for row in grid.rows] == [
        {"range": 100, "N": 10},
        {"range": 100, "N": 20},
        {"range": 150, "N": 10},
        {"range": 150, "N": 20},
    ]
    assert [row["point"] for row in grid.rows] == [0, 1, 2, 3]
    assert scenarios(grid, "radio", "range") == [100.0, 100.0, 150.0, 150.0]
    assert scenarios(grid, "nodes") == [10, 20, 10, 20]


def test_paired_axes_go_in_step(tmp_path: Path) -> None:
    axes = [axis("nodes", 10, 20), axis("workload.subscribers[0].count", 1, 2, label="wanting")]
    steps = planned(tmp_path, seeds=1, mode="paired", axes=axes, variants=[{"name": "a"}])
    assert [row["axes"] for row in steps.rows] == ['{"nodes": 10, "wanting": 1}', '{"nodes": 20, "wanting": 2}']
    assert [workload["subscribers"][0]["count"] for workload in scenarios(steps, "workload")] == [1, 2]


def recording(nodes: int, x: int) -> str:
    """Nodes that stand at the same place."""
    return "time,node,x,y\n" + "".join(f"0,{node},{x},1\n" for node in range(nodes))


def test_an_axis_over_files_has_numbers_and_the_field_gets_names(tmp_path: Path) -> None:
    for speed in (10, 20):
        (tmp_path / f"veh-{speed}.csv").write_text(recording(8, x=speed))
    over = axis("movement.file", 10, 20, label="speed", template="veh-{speed}.csv")
    recorded = scenario_with(nodes=8, movement={"model": "recorded", "file": "none.csv"})
    both = planned(tmp_path, seeds=1, axes=[over], variants=[{"name": "a"}], scenario=recorded)
    assert [json.loads(row["axes"]) for row in both.rows] == [{"speed": 10}, {"speed": 20}]
    assert scenarios(both, "movement", "file") == ["veh-10.csv", "veh-20.csv"]
    assert len({run.run for run in both.distinct}) == 2
    with pytest.raises(RoamcastError, match=r"'veh\.csv': expected \{speed\} in it"):
        planned(tmp_path, axes=[over | {"template": "veh.csv"}], scenario=recorded)


def test_fields_that_are_set_together_get_the_same_value(tmp_path: Path) -> None:
    axes = [{"fields": ["area.width", "area.height"], "label": "side", "values": [300, 500]}]
    squares = planned(tmp_path, seeds=1, axes=axes, variants=[{"name": "a"}])
    assert scenarios(squares, "area") == [{"width": 300.0, "height": 300.0}, {"width": 500.0, "height": 500.0}]


def test_variants_see_the_same_seeds_and_a_fixed_one_is_run_once_a_seed(tmp_path: Path) -> None:
    variants = [{"name": "swept"}, {"name": "level", "fixed": True, "set": {"protocol.name": "gossip"}}]
    plan = planned(tmp_path, seeds=[4, 7], axes=[axis("protocol.parameters.jitter", 0.0, 0.1)], variants=variants)
    assert [(row["variant"], row["point"], row["seed"]) for row in plan.rows] == [
        ("swept", 0, 4),
        ("swept", 0, 7),
        ("swept", 1, 4),
        ("swept", 1, 7),
        ("level", 0, 4),
        ("level", 0, 7),
    ]
    assert scenarios(plan, "seed") == [4, 7, 4, 7, 4, 7]
    assert [row["axes"] for row in plan.rows[-2:]] == ["{}", "{}"]


def test_a_run_that_two_experiments_want_is_simulated_once(tmp_path: Path) -> None:
    # 2 variants and 3 seeds each; the second experiment shares one of its two points with the first.
    one = made(tmp_path)
    other = made(tmp_path, name="other", axes=[axis("radio.range", 120.0, 130.0)])
    both = plan([one, other])
    assert len(both.rows) == 6 + 12
    assert len(both.distinct) == 12
    assert {row["run"] for row in both.rows} == {run.run for run in both.distinct}


def test_longer_runs_start_earlier(tmp_path: Path) -> None:
    plan = planned(tmp_path, seeds=1, axes=[axis("duration", 5, 20, 10)])
    assert [json.loads(run.scenario)["duration"] for run in plan.distinct] == [20, 20, 10, 10, 5, 5]


def test_fewer_and_more_seeds_can_be_asked_for(tmp_path: Path) -> None:
    counted, listed = made(tmp_path), made(tmp_path, seeds=[9, 5])
    assert {row["seed"] for row in plan([counted], 4).rows} == {1, 2, 3, 4}
    assert {row["seed"] for row in plan([listed], 1).rows} == {9}
    with pytest.raises(RoamcastError, match="3 are requested, but the file lists 2"):
        plan([listed], 3)


def test_a_variant_may_take_the_first_seeds_only_unless_they_are_listed(tmp_path: Path) -> None:
    variants = [{"name": "few", "seeds": 2}, {"name": "all"}]
    few = planned(tmp_path, seeds=4, variants=variants)
    assert [(row["variant"], row["seed"]) for row in few.rows if row["point"] == 0] == [
        *(("few", seed) for seed in (1, 2)),
        *(("all", seed) for seed in (1, 2, 3, 4)),
    ]
    listed = planned(tmp_path, seeds=[7, 8, 9], variants=variants)
    assert {row["seed"] for row in listed.rows if row["variant"] == "few"} == {7, 8, 9}
    assert (
        few.experiments[0].hashes
        == planned(tmp_path, seeds=4, variants=[{"name": "few"}, {"name": "all"}]).experiments[0].hashes
    )


def test_without_variants_there_is_one_named_after_the_protocol(tmp_path: Path) -> None:
    assert {row["variant"] for row in planned(tmp_path, variants=[]).rows} == {"flooding"}


def test_a_scenario_may_be_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "s.toml").write_text("nodes = 3\nduration = 1\narea = { width = 9, height = 9 }\n")
    file = tmp_path / "e.toml"
    file.write_text('name = "e"\nscenario = "sub/s.toml"\nseeds = 1\n')
    plan_of_file = plan([load_experiment(file)])
    assert scenarios(plan_of_file, "nodes") == [3]
    assert plan_of_file.rows[0]["folder"] == str(tmp_path / "sub")


def test_the_example_is_planned_without_spark() -> None:
    program = (
        "import sys; from pathlib import Path; from roamcast.campaign.define.plan import load_experiment, plan\n"
        "print(len(plan([load_experiment(Path(sys.argv[1]))]).rows), 'pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program, EXAMPLE], capture_output=True, text=True, check=True)
    assert done.stdout == "27 False\n"


# --- Refusals -------------------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "protocol": (
        {"variants": [{"name": "x", "set": {"protocol.name": "gosip"}}]},
        "tiny.toml: x: protocol.name: no protocol is named 'gosip'; did you mean 'gossip'?",
    ),
    "parameter": (
        {"axes": [axis("protocol.parameters.credit", 1)]},
        "tiny.toml: flooding, credit = 1: protocol.parameters.credit: there is no such field",
    ),
    "value": (
        {"axes": [axis("radio.loss", 0.1, 2)]},
        "tiny.toml: flooding, loss = 2: radio.loss: expected a number of at least 0 and below 1; got 2",
    ),
    "axis": ({"axes": [axis("radio.rnage", 1)]}, "radio.rnage: there is no such field; did you mean 'range'?"),
    "list": ({"axes": [axis("workload.publishers[1].rate", 1)]}, "there is no workload.publishers[1] in the scenario"),
    "path": ({"axes": [axis("radio..range", 1)]}, "axes[0].field: 'radio..range': expected a name"),
    "seed axis": ({"axes": [axis("seed", 1)]}, "axes[0].field: the seed is not an axis"),
    "both": ({"axes": [axis("nodes", 1, fields=["nodes"])]}, "axes[0].field: give either field or fields"),
    "labels": ({"axes": [axis("nodes", 1), axis("duration", 1, label="nodes")]}, "axes: two are named 'nodes'"),
    "no values": ({"axes": [axis("nodes")]}, "axes[0].values: expected a list of one or more values; got []"),
    "lengths": ({"mode": "paired", "axes": [axis("nodes", 1), axis("duration", 1, 2)]}, "but have 1, 2"),
    "no seeds": ({"seeds": 0}, "seeds: 0: at least one seed"),
    "empty seeds": ({"seeds": []}, "seeds: []: at least one seed"),
    "negative seed": ({"seeds": [1, -2]}, "seeds: -2: seeds go from 0"),
    "double seed": ({"seeds": [1, 2, 1]}, "seeds: 1 is listed twice"),
    "seeds": ({"seeds": "many"}, "seeds: expected a whole number, or a list of whole numbers; got the text 'many'"),
    "variants": ({"variants": [{"name": "a"}, {"name": "a"}]}, "variants: two are named 'a'"),
    "baseline": ({"baseline": "flood"}, "baseline: there is no variant 'flood'; did you mean 'flooding'?"),
    "preview's axis": (
        {"quick": {"duration": 9, "values": {"p": [1]}}},
        "quick.values: there is no axis 'p'; known are",
    ),
    "preview's value": (
        {"axes": [axis("nodes", 1, 2)], "quick": {"duration": 9, "values": {"nodes": [3]}}},
        "quick.values.nodes: 3 is not a value of this axis",
    ),
    "preview's values": (
        {"axes": [axis("nodes", 1, 2)], "quick": {"duration": 9, "values": {"nodes": []}}},
        "quick.values.nodes: []: at least one value",
    ),
    "preview's steps": (
        {
            "mode": "paired",
            "axes": [axis("nodes", 1, 2), axis("duration", 1, 2)],
            "quick": {"duration": 9, "values": {"nodes": [1]}},
        },
        "quick.values: paired axes need the same number of values each",
    ),
    "preview's variant": (
        {"variants": [{"name": "near"}], "quick": {"duration": 9, "variants": ["neat"]}},
        "quick.variants: there is no variant 'neat'; did you mean 'near'?",
    ),
    "preview's baseline": (
        {"variants": [{"name": "a"}, {"name": "b"}], "baseline": "a", "quick": {"duration": 9, "variants": ["b"]}},
        "quick.variants: the baseline 'a' must be among them",
    ),
    "preview's duration": ({"quick": {"duration": 0}}, "quick.duration: expected a number above 0; got 0"),
    "preview's field": (
        {"quick": {"duration": 9, "seed": 1}},
        "quick.seed: there is no such field; did you mean 'seeds'?",
    ),
    "figure": ({"figures": [{"id": "1", "x": "p", "y": "delivery"}]}, "figures[0].x: there is no axis 'p'; known are"),
    "against": (
        {"axes": [axis("nodes", 1)], "figures": [{"id": "1", "x": "nodes", "y": "delivery", "against": "flodding"}]},
        "figures[0].against: there is no variant 'flodding'; did you mean 'flooding'?",
    ),
    "against a level": (
        {
            "axes": [axis("nodes", 1)],
            "variants": [{"name": "a"}, {"name": "b"}, {"name": "c", "fixed": True}],
            "figures": [{"id": "1", "x": "nodes", "y": "delivery", "against": "c"}],
        },
        "figures[0].against: 'c' is fixed: it has only one point",
    ),
    "against itself": (
        {
            "axes": [axis("nodes", 1)],
            "variants": [{"name": "a"}, {"name": "c", "fixed": True}],
            "figures": [{"id": "1", "x": "nodes", "y": "delivery", "against": "a"}],
        },
        "figures[0].against: there is no other variant to compare with 'a'",
    ),
    "field": ({"axis": []}, "tiny.toml: axis: there is no such field; did you mean 'axes'?"),
    "inner field": (
        {"variants": [{"name": "a", "fixd": True}]},
        "variants[0].fixd: there is no such field; did you mean 'fixed'?",
    ),
    "name": ({"name": "a/b"}, "name: expected text (letters, digits, - and _); got 'a/b'"),
    "file": ({"variants": [{"name": "x", "set": {"protocol.name": "no.py:P"}}]}, "there is no file"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_by_name(case: str, tmp_path: Path) -> None:
    changes, said = REFUSED[case]
    with pytest.raises(RoamcastError) as refusal:
        planned(tmp_path, **changes)
    assert said in str(refusal.value)


def test_two_experiments_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RoamcastError, match="two experiments are named 'tiny'"):
        plan([made(tmp_path), made(tmp_path)])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"measures": ["delivry"]}, "measures: there is no measure 'delivry'; did you mean 'delivery'?"),
        ({"figures": [{"id": "1", "x": "nodes", "y": "cost"}]}, "figure 1: there is no measure 'cost'"),
        (
            {"measures": ["delivery"], "figures": [{"id": "1", "x": "nodes", "y": "overhead"}]},
            "figure 1: 'overhead' is not among the experiment's measures",
        ),
    ],
)
def test_measures_are_refused_by_name(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    experiment = made(tmp_path, axes=[axis("nodes", 10)], **changes)
    with pytest.raises(RoamcastError) as refusal:
        check_measures([experiment], ["delivery", "overhead"])
    assert said in str(refusal.value)


def test_the_measures_of_a_campaign_are_those_of_all_its_experiments(tmp_path: Path) -> None:
    some, more = made(tmp_path, measures=["a", "b"]), made(tmp_path, measures=["b", "c"])
    assert wanted_measures([some, more]) == ["a", "b", "c"]
    assert wanted_measures([some, made(tmp_path)]) is None


def test_the_verb_refuses_before_spark_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roamcast.pipeline.session.session", None)  # to be called would be a TypeError
    file = tmp_path / "e.toml"
    text = EXAMPLE.read_text()
    for wrong, said in (
        (text.replace('"hint" }', '"hnit" }'), "no protocol is named 'hnit'"),
        (text.replace("delay_p95", "dealy_p95"), "there is no measure 'dealy_p95'; did you mean 'delay_p95'?"),
        (text.replace("radio.range", "radio.reach"), "radio.reach: there is no such field"),
    ):
        file.write_text(wrong)
        result = CliRunner().invoke(main, ["campaign", str(file), "--out", str(tmp_path / "out")])
        assert (result.exit_code, result.output[:7]) == (2, "error: ")
        assert said in result.output
    assert not (tmp_path / "out").exists()


def test_a_plan_lists_the_runs_and_estimates_the_time(tmp_path: Path) -> None:
    verb = ["campaign", str(EXAMPLE), "--out", str(tmp_path / "out"), "--plan"]
    shown = CliRunner().invoke(main, verb)
    assert shown.exit_code == 0
    assert "27 runs planned, 27 of them distinct, 27 to do\nabout " in shown.output
    # By the constants: 0.02 + 30 * (3e-6 * 40 + 1e-5 * 2 * 40) = 0.0476 s a run.
    told = json.loads(CliRunner().invoke(main, [*verb, "--json", "--seeds", "2"]).stdout)
    assert (len(told["runs"]), told["to_do"]) == (18, 18)
    assert 18 * 0.05 < told["cpu_s"] < 18 * 0.1  # a run costs 0.05 s however short, and these are short


def test_a_change_is_in_all_runs_below_axes_and_variants(tmp_path: Path) -> None:
    """`--set`: for every point and variant, but what those set themselves stays."""
    axes, variants = [axis("radio.range", 100, 150)], [{"name": "a"}, {"name": "b", "set": {"duration": 7}}]
    changed = made(tmp_path, seeds=1, axes=axes, variants=variants).changed(["nodes=12", "radio.range=9", "duration=8"])
    rows = plan([changed])
    assert scenarios(rows, "nodes") == [12] * 4
    assert [row["variant"] for row in rows.rows] == ["a", "a", "b", "b"]
    assert scenarios(rows, "radio", "range") == [100.0, 150.0, 100.0, 150.0]
    assert scenarios(rows, "duration") == [8.0, 8.0, 7.0, 7.0]


def test_the_scenario_with_changes_is_explained_and_can_be_run(tmp_path: Path) -> None:
    found = CliRunner().invoke(main, ["campaign", str(EXAMPLE), "--set", "nodes=12", "--explain"])
    assert tomllib.loads(found.stdout)["nodes"] == 12
    (tmp_path / "whole.toml").write_text(found.stdout)
    checked = CliRunner().invoke(main, ["scenario", "--check", str(tmp_path / "whole.toml")])
    assert "12 nodes in 400 m" in checked.stdout, checked.output


def test_every_default_is_explained() -> None:
    general = CliRunner().invoke(main, ["campaign", "--explain"]).output
    assert "seeds: a whole number, or a list of whole numbers; default 10" in general
    full = CliRunner().invoke(main, ["campaign", str(EXAMPLE), "--explain"]).output
    assert "# ranges: flooding at range 80, with all defaults.\n" in full
    assert '#   variant gossip 0.6: protocol.name = "gossip", protocol.parameters.p = 0.6\n' in full
    assert tomllib.loads(full)["mac"]["retries"] == 7


# --- Identity -------------------------------------------------------------------------------------------------------


def ids(folder: Path, **changes: Any) -> list[str]:  # noqa: ANN401
    return [row["run"] for row in planned(folder, **({"seeds": 1, "variants": []} | changes)).rows]


def scenario_with(**changes: Any) -> dict[str, Any]:  # noqa: ANN401
    scenario: dict[str, Any] = raw()["scenario"] | changes
    return scenario


def test_a_name_for_people_changes_no_run_and_neither_does_a_default_written_out(tmp_path: Path) -> None:
    usual = ids(tmp_path)
    assert ids(tmp_path, scenario=scenario_with(name="another")) == usual
    assert ids(tmp_path, name="another") == usual
    written = scenario_with(mac={"rate": 2.0}, protocol={"name": "flooding", "parameters": {"jitter": 0.01}})
    assert ids(tmp_path, scenario=written) == usual


def test_everything_else_changes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        *ids(tmp_path),
        *ids(tmp_path, seeds=[2]),
        *ids(tmp_path, scenario=scenario_with(nodes=21)),
        *ids(tmp_path, scenario=scenario_with(protocol={"name": "gossip"})),
    ]
    monkeypatch.setattr(identity, "VERSIONS", {"python": "4"})
    found += ids(tmp_path)
    assert len(set(found)) == 5


def test_an_edited_protocol_makes_other_runs(tmp_path: Path) -> None:
    before = ids(tmp_path, **odd(tmp_path, "pass"))
    assert ids(tmp_path, **odd(tmp_path, "pass")) == before
    assert ids(tmp_path, **odd(tmp_path, "pass  # edited")) != before


def test_an_edited_recording_of_movement_makes_other_runs(tmp_path: Path) -> None:
    recorded = scenario_with(nodes=8, movement={"model": "recorded", "file": "walk.csv"})
    with pytest.raises(RoamcastError, match=r"movement\.file: .*walk\.csv: cannot be read"):
        ids(tmp_path, scenario=recorded)
    (tmp_path / "walk.csv").write_text(recording(8, x=1))
    before = ids(tmp_path, scenario=recorded)
    (tmp_path / "walk.csv").write_text(recording(8, x=2))
    assert ids(tmp_path, scenario=recorded) != before


def modules(folder: Path, **changes: Any) -> set[str]:  # noqa: ANN401
    (run,) = plan([made(folder, seeds=[1], **{"axes": [], "variants": [], **changes})]).distinct
    scenario = msgspec.json.decode(run.scenario, type=Scenario)
    return set(identity.code(scenario, identity.find_files(scenario, folder)))


def test_a_run_depends_on_the_simulator_and_on_its_own_protocol_alone(tmp_path: Path) -> None:
    hint = modules(tmp_path, scenario=scenario_with(protocol={"name": "hint"}))
    coman = modules(tmp_path, scenario=scenario_with(protocol={"name": "coman"}))
    everybody = ("facts.schema", "sim.core.kernel", "sim.mobility.waypoint", "content.filter", "protocols.api")
    assert {f"roamcast.{name}" for name in everybody} <= hint & coman
    assert "roamcast.protocols.hint" in hint - coman
    assert "roamcast.protocols.tree.coman" in coman - hint
    assert "roamcast.protocols.neighbours" in hint, "what its protocol imports belongs to a run"
    packages = {name.split(".")[1] for name in hint | coman if "." in name}
    assert not packages & {"cli", "report", "papers", "pipeline", "campaign", "analysis", "lab", "live"}


def test_a_protocol_in_a_file_depends_on_what_it_imports(tmp_path: Path) -> None:
    found = modules(tmp_path, **odd(tmp_path, "pass"))
    assert "roamcast.protocols.api" in found
    assert "roamcast.protocols.tree.coman" not in found
