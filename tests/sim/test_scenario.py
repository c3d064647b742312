"""Scenarios: what a file comes to, and what is refused with which words."""

from pathlib import Path
from typing import Any

import pytest

from roamcast.config.explain import Field, as_text, explain
from roamcast.sim.core.interface import Settings
from roamcast.sim.mobility import RandomWaypoint, ScenarioError
from roamcast.sim.scenario.scenario import Scenario, check, load

SMALL: dict[str, Any] = {"nodes": 3, "duration": 10, "area": {"width": 500, "height": 100}}


def refusal(raw: dict[str, Any]) -> str:
    with pytest.raises(ScenarioError) as caught:
        check(raw, "file", Path())
    return str(caught.value)


def test_the_least_scenario_has_the_documented_defaults() -> None:
    scenario = check(SMALL, "file", Path())
    assert (scenario.name, scenario.seed, scenario.warmup) == ("unnamed", 1, 0.0)
    assert scenario.end == 10_000_000_000
    assert isinstance(scenario.moving, RandomWaypoint)
    assert scenario.settings(kinds=1) == Settings(
        nodes=3, seed=1, kinds=3, width=500.0, height=100.0, sense=2.2, capture=True, threshold=10.0
    )


def test_settings_of_everything_set() -> None:
    raw = SMALL | {
        "seed": 7,
        "radio": {
            "propagation": "unit-disk",
            "range": [100, 200],
            "collisions": "overlap",
            "threshold": 20,
            "loss": 0.5,
        },
        "mac": {"model": "ideal", "rate": 5.5, "header": 10, "mtu": 100, "queue": 3, "retries": 2},
        "background": {"rate": 4, "size": 99, "jitter": 0.5},
        "record": {"frames": True},
    }
    assert check(raw, "file", Path()).settings() == Settings(
        nodes=3,
        seed=7,
        kinds=2,
        record=True,
        width=500.0,
        height=100.0,
        sense=1.0,
        range_low=100.0,
        range_high=200.0,
        threshold=100.0,
        loss=0.5,
        ideal=True,
        kbps=5500,
        basic_kbps=2000,
        header=10,
        mtu=100,
        queue=3,
        retries=2,
        background_interval=250_000_000,
        background_size=99,
        background_flood=True,
        background_jitter=500_000_000,
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"nodes": 0}, "file: nodes: expected a whole number from 1 to 100000; got 0"),
        ({"nodes": "three"}, "file: nodes: expected a whole number from 1 to 100000; got the text 'three'"),
        ({"duration": -1}, "file: duration: expected a number above 0 and at most 10000000; got -1"),
        ({"seed": -1}, "file: seed: expected a whole number from 0 to 9223372036854775807; got -1"),
        ({"warmup": 10}, "file: warmup: 10 s of a run of 10 s leave nothing to measure"),
        ({"nods": 3}, "file: nods: there is no such field; did you mean 'nodes'?"),
        ({"radio": {"rnage": 3}}, "file: radio.rnage: there is no such field; did you mean 'range'?"),
        ({"radio": {"range": 0}}, "file: radio.range: 0 m: it must be above 0"),
        (
            {"radio": {"range": [200, 100]}},
            "file: radio.range: [200.0, 100.0]: the least must be above 0 and not above the greatest",
        ),
        ({"mac": {"rate": 3}}, "file: mac.rate: 3 Mb/s: 802.11b has 1, 2, 5.5 and 11"),
        (
            {"movement": {"model": "static", "positions": [[0, 0], [1, 1], [501, 0]]}},
            "file: movement.positions: node 2 at (501, 0): it must lie in the area of 500 m × 100 m",
        ),
        (
            {"radio": {"walls": "opaque"}},
            'file: radio.walls: opaque walls need movement.model = "buildings"',
        ),
        (
            {"radio": {"propagation": "links", "walls": "opaque"}, "links": {"up": [[0, 1]]}},
            'file: radio.walls: opaque walls need movement.model = "buildings"',
        ),
        ({"mac": {"cca": -1}}, "file: mac.cca: expected a number from 0 to 100; got -1"),
        ({"links": {"up": [[0, 1]]}}, "file: links: needs radio.propagation = \"links\", not 'two-ray'"),
        (
            {"radio": {"propagation": "links"}},
            'file: links: radio.propagation is "links", but there is no table [links]',
        ),
        (
            {"workload": {"publishers": [{"count": 4, "rate": 1}]}},
            "file: workload.publishers: 4 of them, but there are only 3 nodes",
        ),
        (
            {"workload": {"subscribers": [{"count": 1, "filter": "price <"}]}},
            "file: workload.subscribers[0].filter: at position 7: expected a value: a number, a quoted string, true or "
            "false; found the end of the text\n  price <\n         ^",
        ),
        (
            {"protocol": {"parameters": {"jitter": -1}}},
            "file: protocol.parameters.jitter: expected a number from 0 to 60; got -1",
        ),
        (
            {"protocol": {"parameters": {"jiter": 1}}},
            "file: protocol.parameters.jiter: there is no such field; did you mean 'jitter'?",
        ),
    ],
)
def test_what_is_wrong_is_refused_with_the_field_the_value_and_the_rule(change: dict[str, Any], words: str) -> None:
    assert refusal(SMALL | change) == words


def test_a_missing_area() -> None:
    assert refusal({"nodes": 3, "duration": 10}) == (
        "file: area: is missing: two-ray needs positions ([area] with width and height in m)"
    )


def test_all_broken_rules_are_told_at_once() -> None:
    assert refusal(SMALL | {"warmup": 11, "mac": {"rate": 3}}).splitlines() == [
        "file: warmup: 11 s of a run of 10 s leave nothing to measure",
        "file: mac.rate: 3 Mb/s: 802.11b has 1, 2, 5.5 and 11",
    ]


def test_an_unknown_protocol() -> None:
    words = refusal(SMALL | {"protocol": {"name": "floding"}})
    assert words.startswith("file: protocol.name: no protocol is named 'floding'; did you mean 'flooding'? known are ")


def test_load_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text("nodes = 3\nduration = 10\n[area\n")
    with pytest.raises(ScenarioError) as caught:
        load(file)
    assert str(caught.value).startswith(f"{file}: is not TOML: ")
    assert "line 3" in str(caught.value)


# --- The explanation of it all --------------------------------------------------------------------------------------


def explained() -> dict[str, Field]:
    return {field.path: field for section in explain(Scenario) for field in section.fields}


def test_fields_of_every_shape_are_explained() -> None:
    fields = explained()
    assert fields["nodes"] == Field(
        "nodes", "a whole number from 1 to 100000", None, "number of nodes; they are numbered from 0"
    )
    assert fields["radio.loss"] == Field(
        "radio.loss",
        "a number of at least 0 and below 1",
        "0",
        "probability that a received frame is lost all the same",
    )
    assert fields["mac.model"].values == "one of 'dcf', 'ideal'"
    assert fields["mac.model"].default == '"dcf"'
    assert fields["workload.publishers[].rate"].default is None
    assert fields["workload.subscribers[].nodes"].values == "a list of whole numbers"
    assert fields["workload.subscribers[].nodes"].default == "none"
    assert fields["links.change[].up"].values == "a list of lists of 2 whole numbers"
    assert fields["workload.publishers[].attributes.NAME.low"].values == "a number"
    assert fields["record.movement"].default == "true"
    assert fields["radio.range"].values.startswith("a number")
    assert fields["radio.range"].default == "250"


def test_every_movement_model_has_its_section() -> None:
    headings = [section.heading for section in explain(Scenario)]
    models = ("random-waypoint", "hot-spots", "groups", "streets", "column", "static", "buildings", "recorded")
    assert [heading for heading in headings if heading.startswith("[movement]")] == [
        f'[movement] with model = "{model}"' for model in models
    ]
    assert headings[0] == ""
    assert {"[area]", "[links]", "[[links.change]]", "[radio]", "[mac]", "[background]"} <= set(headings)
    assert {"[workload]", "[[workload.subscribers]]", "[workload.publishers.attributes.NAME]"} <= set(headings)


@pytest.mark.parametrize("width", [80, 120])
def test_the_text_fits_the_screen_and_has_every_field(width: int) -> None:
    text = as_text(explain(Scenario), width)
    assert max(map(len, text.splitlines())) <= width
    for path in explained():
        assert f"    {path}: " in text
