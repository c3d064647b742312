"""The papers' experiments: that they load, plan, share runs, and stay within what a laptop can do."""

import json
import math
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from roamcast import papers
from roamcast.analysis.measures.catalogue import CATALOGUE
from roamcast.campaign.define.experiment import Experiment, check_measures
from roamcast.campaign.define.plan import Plan, plan
from roamcast.errors import RoamcastError

NAMES = [
    *("hint-6", "hint-causes-6", "hint-7", "hint-causes-7", "hint-8", "hint-9", "hint-causes-9"),
    *("hint-10", "hint-11", "hint-12", "hint-causes-12"),
]
ODMRP_NAMES = [
    "odmrp-6",
    "odmrp-7",
    "odmrp-8",
    "odmrp-10",
    "odmrp-11",
    "odmrp-12",
    "odmrp-moving",
    "odmrp-switches",
    "odmrp-switches-moving",
]
CONTEXT_NAMES = ["context-3a", "context-3b", "context-4a", "context-4b", "context-choices"]
COMAN_NAMES = [
    *("coman-9", "coman-9d", "coman-9-250", "coman-9d-250"),
    *("coman-11", "coman-11-side", "coman-11-250", "coman-11-side-250"),
    *("coman-12", "coman-12b", "coman-causes-12", "coman-13", "coman-13-250"),
    *("coman-causes", "coman-links", "coman-parts", "coman-parts-traffic"),
]

# Seconds of CPU of a run of the reference scenario, as bench/hint_reference.py measures it, rounded up.
HINT, FLOODING = 1.1, 1.4
BUDGET = 3300.0
"""Seconds of CPU: 27.5 minutes on two cores; the limit, with Spark and measuring, is 30."""


@pytest.fixture(scope="module")
def experiments() -> dict[str, Experiment]:
    return {one.name: one for one in papers.load(["hint"])}


@pytest.fixture(scope="module")
def full(experiments: dict[str, Experiment]) -> Plan:
    """Every scenario is checked on the way."""
    return plan(list(experiments.values()))


def test_figures_6_to_13_are_there_in_order(experiments: dict[str, Experiment]) -> None:
    assert [file.stem for file in papers.experiment_files("hint")] == list(experiments) == NAMES
    figures = [figure.id.partition("-")[0] for one in experiments.values() for figure in one.spec.figures]
    assert list(dict.fromkeys(figures)) == ["6", "7", "8", "9", "10", "11", "12", "13"]
    assert {one.spec.paper for one in experiments.values()} == {"hint"}
    assert {tuple(one.seeds()) for one in experiments.values()} == {tuple(range(1, 11))}


def test_every_measure_exists(experiments: dict[str, Experiment]) -> None:
    check_measures(list(experiments.values()), CATALOGUE)


def _scenarios(planned: Plan) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for row in planned.rows:
        yield row, json.loads(row["scenario"])


def test_the_reference_scenario_is_the_papers(full: Plan) -> None:
    """Its Figure 5, and what we chose where it is silent."""
    (scenario,) = (
        scenario
        for row, scenario in _scenarios(full)
        if (row["experiment"], row["variant"], row["axes"], row["seed"]) == ("hint-7", "hint", '{"credits": 0}', 3)
    )
    assert (scenario["nodes"], scenario["seed"]) == (100, 3)
    assert (scenario["area"]["width"], scenario["area"]["height"]) == (1000, 1000)
    assert scenario["movement"]["speed"] == [10, 20]
    assert scenario["movement"]["pause"] == [0, 0]
    assert (scenario["duration"], scenario["warmup"]) == (1060, 60)
    assert scenario["radio"]["propagation"] == "two-ray"
    assert (scenario["radio"]["range"], scenario["radio"]["drawn"]) == ([100, 200], "frame")
    assert scenario["mac"]["rate"] == 2
    (subscribers,), (publishers,) = scenario["workload"]["subscribers"], scenario["workload"]["publishers"]
    assert (subscribers["count"], subscribers["filter"]) == (10, "true")
    assert (publishers["count"], publishers["rate"], publishers["size"]) == (2, 0.5, 256)
    assert scenario["workload"]["disjoint"] is True
    assert scenario["protocol"]["name"] == "hint"
    chosen = {name: scenario["protocol"]["parameters"][name] for name in ("interval", "credits", "beaconing")}
    assert chosen == {"interval": 5, "credits": 0, "beaconing": "subscribers"}


@pytest.mark.parametrize(
    ("same", "as_in"),
    [
        (("hint-7", "gossip", "{}"), ("hint-6", "gossip", '{"p": 0.5}')),
        (("hint-8", "gossip", '{"subscribers": 10}'), ("hint-6", "gossip", '{"p": 0.5}')),
        (("hint-8", "hint, 2 credits", '{"subscribers": 10}'), ("hint-7", "hint", '{"credits": 2}')),
        (("hint-9", "hint", '{"rate": 0.5}'), ("hint-7", "hint", '{"credits": 0}')),
        (("hint-9", "flooding", '{"rate": 0.5}'), ("hint-7", "flooding", "{}")),
        (("hint-12", "gossip, p = 0.9", '{"nodes": 100}'), ("hint-6", "gossip", '{"p": 0.9}')),
        (
            ("hint-11", "hint", '{"nodes": 100, "side": 1000.0, "subscribers": 10, "publishers": 2}'),
            ("hint-7", "hint", '{"credits": 0}'),
        ),
    ],
)
def test_a_run_of_several_figures_is_simulated_once(full: Plan, same: tuple[str, ...], as_in: tuple[str, ...]) -> None:
    runs: dict[tuple[str, ...], list[str]] = {}
    for row in full.rows:
        runs.setdefault((row["experiment"], row["variant"], row["axes"]), []).append(row["run"])
    assert len(runs[same]) == 10
    assert runs[same] == runs[as_in]


def test_density_and_shares_stay_as_the_network_grows(full: Plan) -> None:
    sizes = set()
    for row, scenario in _scenarios(full):
        if row["experiment"] == "hint-11":
            nodes, area, workload = scenario["nodes"], scenario["area"], scenario["workload"]
            sizes.add(nodes)
            assert area["width"] * area["height"] / 1e4 == pytest.approx(nodes, rel=1e-3)
            assert workload["subscribers"][0]["count"] == nodes / 10
            assert workload["publishers"][0]["count"] == nodes / 50
    assert sizes == {50, 100, 150, 200}


def _cpu(scenario: dict[str, Any]) -> float:
    """Rough and on the safe side: frames go with nodes and messages, and who hears each with the density."""
    (subscribers,), (publishers,) = scenario["workload"]["subscribers"], scenario["workload"]["publishers"]
    area = scenario["area"]["width"] * scenario["area"]["height"]
    frames: float = scenario["nodes"] / 100 * publishers["count"] * publishers["rate"]
    heard: float = scenario["nodes"] / 100 / (area / 1e6)
    parameters, name = scenario["protocol"]["parameters"], scenario["protocol"]["name"]
    if name == "flooding":
        return FLOODING * frames * heard
    if name == "gossip":
        return FLOODING * math.sqrt(parameters["p"]) * frames * heard
    passed_on: float = 1 + 0.1 * parameters["credits"]
    beaconing = subscribers["count"] if parameters["beaconing"] == "subscribers" else scenario["nodes"]
    beacons: float = beaconing / parameters["interval"] * 0.025
    destinations: float = 1 + subscribers["count"] / 40
    return HINT * heard * (frames * passed_on * destinations + beacons)


def test_all_points_with_ten_seeds_fit_the_time(full: Plan) -> None:
    assert len(full.rows) == 1510
    assert len(full.distinct) == 1360
    assert sum(_cpu(json.loads(run.scenario)) for run in full.distinct) < BUDGET


# --- The preview ----------------------------------------------------------------------------------------------------


def test_a_preview_has_every_second_point_few_seeds_and_short_runs(experiments: dict[str, Experiment]) -> None:
    quick = {name: papers.quick(one) for name, one in experiments.items()}
    values = {name: one.spec.axes[0].values for name, one in quick.items()}
    assert values["hint-6"] == (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
    assert values["hint-7"] == (0, 2, 4, 5)
    assert values["hint-10"] == (1.0, 10.0, 30.0)
    assert [axis.values for axis in quick["hint-11"].spec.axes] == [
        (50, 150, 200),
        (707.1, 1224.7, 1414.2),
        (5, 15, 20),
        (1, 3, 4),
    ]
    planned = plan(list(quick.values()))
    assert {row["seed"] for row in planned.rows} == {1, 2, 3}
    assert {(scenario["warmup"], scenario["duration"]) for _, scenario in _scenarios(planned)} == {(60, 260)}
    assert sum(_cpu(json.loads(run.scenario)) for run in planned.distinct) * 260 / 1060 < 240


# --- Finding them ---------------------------------------------------------------------------------------------------


def test_without_names_all_papers_that_have_experiments_are_meant() -> None:
    ours = [one.name for one in papers.load()]
    assert ours[: len(NAMES)] == NAMES
    assert {name.partition("-")[0] for name in ours} == set(papers.PAPERS)
    assert set(ours) >= {*ODMRP_NAMES, *COMAN_NAMES}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("hnit", "no paper is named 'hnit'; known are hint, odmrp, coman, opportunistic, context"),
    ],
)
def test_a_paper_that_cannot_be_run(name: str, words: str) -> None:
    with pytest.raises(RoamcastError) as refusal:
        papers.load(["hint", name])
    assert str(refusal.value) == words


@pytest.mark.parametrize("paper", ["hint", "coman"])
def test_every_experiment_says_in_its_file_what_it_is(paper: str) -> None:
    for file in papers.experiment_files(paper):
        text = file.read_text()
        assert text.startswith(("# Figure", "# No figure of the paper", "# Supposed cause", "# What gives")), file.name
        assert tomllib.loads(text)["name"] == file.stem
