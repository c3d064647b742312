"""The worlds that nothing was tuned on: what is in them, on which seeds, and what they cost."""

import itertools
import json
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from studies.map import EXPERIMENTS, __main__, load_part, with_only

from roamcast.campaign.define.estimate import estimated
from roamcast.campaign.define.experiment import Experiment, load_experiment
from roamcast.campaign.define.plan import plan
from roamcast.content.event import Event
from roamcast.content.text import parse_filter
from roamcast.errors import RoamcastError
from roamcast.sim.scenario.scenario import Scenario
from roamcast.units import SECOND

CORE = load_experiment(EXPERIMENTS / "map-core.toml")
WORLDS = {one.name: one for one in load_part("worlds", "usual")}
SLICE = [(speed, degree) for speed in (1, 20) for degree in (6, 12)]


def points(one: Experiment) -> list[dict[str, Any]]:
    names = [axis.name for axis in one.spec.axes]
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*(a.values for a in one.spec.axes))]


def scenarios(name: str) -> list[Scenario]:
    one = WORLDS[f"map-worlds-{name}"]
    return [one.at(one.variants[0], point) for point in points(one)]


def test_every_world_has_the_core_s_settings_measures_and_seeds() -> None:
    left_out = {"map-worlds-contacts": {"context"}, "map-worlds-thousand": {"maodv", "coman", "context"}}
    core_seeds = {row["seed"] for row in plan(load_part("core", "usual")).rows}
    for name, one in WORLDS.items():
        out = left_out.get(name, set())
        expected = [variant for variant in CORE.variants if variant.set["protocol.name"] not in out]
        assert list(one.variants) == expected, name
        assert one.spec.measures == CORE.spec.measures
        assert {row["seed"] for row in plan([one]).rows} <= core_seeds


@pytest.mark.parametrize("name", ["subscribers", "filters", "rate", "loss"])
def test_variations_stand_in_the_four_slice_cells(name: str) -> None:
    found = {(point["speed"], point["degree"]) for point in points(WORLDS[f"map-worlds-{name}"])}
    assert sorted(found) == SLICE


def test_each_world_differs_from_the_map_in_what_it_says() -> None:
    assert {one.workload.subscribers[0].members for one in scenarios("subscribers")} == {2, 80}
    assert {sum(group.members * group.rate for group in one.workload.publishers) for one in scenarios("rate")} == {5.0}
    assert {one.radio.loss for one in scenarios("loss")} == {0.3}
    assert {one.radio.propagation for one in scenarios("contacts")} == {"links"}
    assert {(one.nodes, one.workload.subscribers[0].members) for one in scenarios("thousand")} == {(1000, 300)}
    for name, filters in (("filters", 10), ("thousand", 40)):
        raw = WORLDS[f"map-worlds-{name}"].scenario["workload"]
        texts = raw["subscribers"][0]["filter"]
        topics = raw["publishers"][0]["attributes"]["topic"]
        assert len(texts) == len(topics) == filters
        for topic in topics:
            event = Event.of("event", {"topic": topic})
            assert [text for text in texts if parse_filter(text).matches(event)] == [f"topic = {topic}"]


def test_the_network_changes_from_dense_and_slow_to_sparse_and_fast() -> None:
    legs = pq.read_table(EXPERIMENTS.parent / "traces" / "changing.trace" / "legs", partitioning=None).to_pydict()
    start, end = (np.array(legs[name]) / SECOND for name in ("start", "end"))
    x0, y0, x1, y1 = (np.array(legs[name]) for name in ("x0", "y0", "x1", "y1"))
    speed = np.hypot(x1 - x0, y1 - y0) / (end - start)
    assert len(set(legs["node"])) == 300
    assert speed[end <= 200].max() == pytest.approx(1.0, abs=0.01)
    trips = (start >= 200) & (end < 460) & (end - start > 0.01)  # between them, a node rests until the next millisecond
    assert speed[trips].min() == pytest.approx(20.0, abs=0.01)
    early, late = start < 200, start > 240
    assert np.ptp(x0[early]) < 656
    assert np.ptp(x0[late]) > 1400


@pytest.mark.parametrize(("level", "minutes"), [("quick", 10), ("usual", 180)])
def test_what_the_part_costs(level: Any, minutes: float) -> None:  # noqa: ANN401  # a level
    experiments = {one.name: one for one in load_part("worlds", level)}
    variants = {name: {variant.name: variant for variant in one.variants} for name, one in experiments.items()}
    rows = plan(list(experiments.values())).rows
    cpu = sum(
        estimated(
            experiments[row["experiment"]].at(variants[row["experiment"]][row["variant"]], json.loads(row["axes"]))
        )
        for row in rows
    )
    assert cpu < minutes * 60


def test_only_some_protocols() -> None:
    worlds = load_part("worlds", "quick")
    assert with_only(worlds, ()) == worlds
    some = with_only(worlds, ("context", "maodv"))
    assert [one.name for one in some] == [one.name for one in worlds if one.name != "map-worlds-thousand"]
    assert {variant.name for one in some for variant in one.variants} == {"context", "maodv"}
    assert all(one.spec.baseline is None for one in some)
    assert all(one.spec.baseline == "flooding" for one in with_only(worlds, ("flooding", "hint")))
    with pytest.raises(RoamcastError, match=r"^rome: not on this part of the map; there are coman, context, counter,"):
        with_only(worlds, ("hint", "rome"))
    told = CliRunner().invoke(__main__.map_networks, ["worlds", "--only", "rome", "--plan"])
    assert told.exit_code == 2
    assert "not on this part of the map" in told.output
