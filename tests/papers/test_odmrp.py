"""The experiments of the paper on extended ODMRP: its figures, its example, and what all of it takes."""

import json

import pytest

from analysis.runs import by_hand, nothing, values_of
from papers.known import load_checked
from roamcast import papers
from roamcast.campaign.define.experiment import Experiment
from roamcast.campaign.define.plan import Plan, plan
from roamcast.content.event import Event
from roamcast.content.text import parse_filter
from roamcast.papers.routes import longer_route

UNJUDGED = ("odmrp-moving", "odmrp-switches", "odmrp-switches-moving")
CPU = 0.08
"""Seconds of CPU a run, at most, of those that judge; 0.04 measured with ten nodes."""


@pytest.fixture(scope="module")
def experiments() -> dict[str, Experiment]:
    return load_checked("odmrp")


@pytest.fixture(scope="module")
def full(experiments: dict[str, Experiment]) -> Plan:
    """Every scenario is checked on the way."""
    return plan(list(experiments.values()))


def test_figures_6_to_12_are_there(experiments: dict[str, Experiment]) -> None:
    figures = {figure.id.partition("-")[0] for one in experiments.values() for figure in one.spec.figures}
    assert figures == {"6", "7", "8", "10", "11", "12", "moving"}
    assert {one.spec.paper for one in experiments.values()} == {"odmrp"}
    judging = [one for name, one in experiments.items() if name not in UNJUDGED]
    assert {tuple(one.seeds()) for one in judging} == {tuple(range(1, 21))}


def test_three_of_five_receivers_match_and_a_hundred_messages_are_sent(full: Plan) -> None:
    for row in full.rows:
        scenario = json.loads(row["scenario"])
        if row["experiment"] not in ("odmrp-6", "odmrp-7"):
            continue
        (publisher,) = scenario["workload"]["publishers"]
        assert publisher["rate"] * publisher["stop"] == 100
        events = [Event.of("CD", content) for content in publisher["contents"]]
        wishes = [parse_filter(group["filter"]) for group in scenario["workload"]["subscribers"]]
        assert [any(wish.matches(event) for event in events) for wish in wishes] == [True, True, False, True, False]


def test_the_papers_times(full: Plan) -> None:
    for row in full.rows:
        parameters = json.loads(row["scenario"])["protocol"]["parameters"]
        others = ("flags for 5 s", "refresh and flags of 1 s")
        if json.loads(row["scenario"])["protocol"]["name"] == "odmrp" and row["variant"] not in others:
            assert (parameters["refresh"], parameters["timeout"]) == (5.0, 25.0)


def test_what_is_judged_takes_a_few_minutes(experiments: dict[str, Experiment]) -> None:
    judging = [one for name, one in experiments.items() if name not in UNJUDGED]
    assert len(plan(judging).distinct) * CPU < 300
    assert len(plan(papers.preview(["odmrp"])).distinct) * CPU < 150


def test_the_share_of_longer_routes_worked_out_by_hand() -> None:
    """Node 1 is reached once, over one hop; node 2 over two hops, and over three."""
    assert values_of(by_hand(), longer_route) == {"longer_route": pytest.approx(1 / 3)}
    assert values_of(nothing(), longer_route) == {"longer_route": None}
