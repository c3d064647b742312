"""Candidates of a race: from text, fit or not, and as commands."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from roamcast.campaign.define.around_trace import moved
from roamcast.campaign.define.candidates import (
    able,
    as_node,
    as_scenario,
    candidate,
    distinct,
    own,
    race_experiment,
    usual,
)
from roamcast.config.toml_file import toml_file
from roamcast.errors import ConfigError
from roamcast.protocols.catalogue import CATALOGUE
from roamcast.sim.scenario.scenario import check, load

SCENARIO: dict[str, Any] = {"nodes": 4, "duration": 10, "area": {"width": 100, "height": 100}}


def test_a_protocol_with_parameters() -> None:
    one = candidate("hint credits=2 beaconing=all")
    assert one.name == "hint credits=2 beaconing=all"
    assert one.set == {"protocol.name": "hint", "protocol.parameters": {"credits": 2, "beaconing": "all"}}
    assert as_node(one) == "roamcast node --id 1 --key network.key --protocol hint --set credits=2 --set beaconing=all"


@pytest.mark.parametrize("text", ["gossip 0.7", "gossip p='0.7"])
def test_what_is_no_parameter(text: str) -> None:
    with pytest.raises(ConfigError, match="expected NAME or NAME PARAMETER=VALUE"):
        candidate(text)


def test_who_cannot_run_the_scenario_is_left_out_with_the_reason() -> None:
    made = race_experiment(SCENARIO, "net.toml", Path())
    fit, refused = able(made, [candidate("flooding"), candidate("gossip p=2"), candidate("gosip")])
    assert [one.name for one in fit] == ["flooding"]
    assert "p" in refused["gossip p=2"]
    assert "did you mean 'gossip'" in refused["gosip"]


def test_the_scenarios_own_protocol_takes_part_once() -> None:
    made = race_experiment({**SCENARIO, "protocol": {"name": "gossip", "parameters": {"p": 0.7}}}, "net.toml", Path())
    both = distinct([own(made), candidate("gossip p=0.7"), candidate("flooding")])
    assert [one.name for one in both] == ["gossip p=0.7", "flooding"]
    assert own(race_experiment(SCENARIO, "net.toml", Path())) is None


def test_the_usual_candidates_are_all_protocols_with_parameters_that_exist() -> None:
    names = [one.name for one in usual()]
    assert {name.partition(" ")[0] for name in names} == set(CATALOGUE)
    assert {"flooding", "gossip p=0.7", "hint credits=2", "odmrp mode=one-channel"} <= set(names)
    made = race_experiment(SCENARIO, "net.toml", Path())
    assert able(made, usual())[1] == {}


def test_a_candidate_as_a_scenario(tmp_path: Path) -> None:
    """The same network with that protocol; files are found from the new folder."""
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "in" / "walk.csv").write_text("time,node,x,y\n0,0,1,1\n")
    raw = {**SCENARIO, "nodes": 1, "movement": {"model": "recorded", "file": "walk.csv"}, "protocol": {"name": "hint"}}
    made = race_experiment(raw, "net.toml", tmp_path / "in")
    (tmp_path / "out" / "winner.toml").write_text(as_scenario(made, candidate("gossip p=0.7"), tmp_path / "out"))
    again = load(tmp_path / "out" / "winner.toml")
    assert (again.protocol.name, again.protocol.parameters, again.nodes) == ("gossip", {"p": 0.7}, 1)
    assert again.area == check(raw, "net.toml", tmp_path / "in").area
    walks = again.moving.walks(again.area, 1, 1, tmp_path / "out")  # type: ignore[arg-type]
    assert (next(walks[0]).x0, raw["movement"]["file"]) == (1, "walk.csv")


def test_documents_and_protocols_move_along(tmp_path: Path) -> None:
    (tmp_path / "cd.xml").write_text("<CD/>")
    raw = {
        "protocol": {"name": "mine.py:FAST"},
        "workload": {"publishers": [{"documents": ["cd.xml", "<CD/>"]}]},
    }
    found = moved(raw, tmp_path, tmp_path / "out")
    assert found["protocol"]["name"] == "../mine.py:FAST"
    assert found["workload"]["publishers"][0]["documents"] == ["../cd.xml", "<CD/>"]


def test_toml_comes_back() -> None:
    values = {
        "name": 'a "name" — ünïcode',
        "nodes": 3,
        "share": 0.25,
        "on": True,
        "list": [1, [2.0, 3.5], {"a b": 1}],
        "none": [],
        "table": {"x": 1, "inner": {"y": [1, 2]}, "many": [{"z": 1}, {"z": {"deep": "q"}}]},
    }
    assert tomllib.loads(toml_file(values)) == values
