"""Candidates of a race: from text, fit or not, and as commands."""

from pathlib import Path
from typing import Any

import pytest

from roamcast.campaign.candidates import able, as_node, as_run, candidate, distinct, own, race_experiment
from roamcast.errors import ConfigError

SCENARIO: dict[str, Any] = {"nodes": 4, "duration": 10, "area": {"width": 100, "height": 100}}


def test_a_protocol_with_parameters() -> None:
    one = candidate("hint credits=2 beaconing=all")
    assert one.name == "hint credits=2 beaconing=all"
    assert one.set == {"protocol.name": "hint", "protocol.parameters": {"credits": 2, "beaconing": "all"}}
    assert as_run(one, "my net.toml") == (
        "roamcast run 'my net.toml' --set protocol.name=hint --set protocol.parameters.credits=2 "
        "--set protocol.parameters.beaconing=all"
    )
    assert as_node(one) == "roamcast node --id 1 --key network.key --protocol hint --set credits=2 --set beaconing=all"


def test_what_is_no_parameter() -> None:
    with pytest.raises(ConfigError, match="expected NAME or NAME PARAMETER=VALUE"):
        candidate("gossip 0.7")


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
