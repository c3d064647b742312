"""The experiments of the paper on contexts: its figures, its numbers, and that flooding floods the same events."""

import json
from pathlib import Path

import pytest

from roamcast import papers
from roamcast.analysis.measures.catalogue import CATALOGUE
from roamcast.campaign.define.experiment import Experiment, check_measures
from roamcast.campaign.define.plan import Plan, plan
from roamcast.content.context.rules import region_of
from roamcast.content.subscription import Publication, Subscription
from roamcast.papers import EXPERIMENTS
from roamcast.sim.places import scenario_acts
from roamcast.sim.scenario.scenario import Scenario, check
from roamcast.units import SECOND


@pytest.fixture(scope="module")
def experiments() -> dict[str, Experiment]:
    return {one.name: one for one in papers.load(["context"])}


@pytest.fixture(scope="module")
def full(experiments: dict[str, Experiment]) -> Plan:
    """Every scenario is checked on the way."""
    return plan(list(experiments.values()))


def scenario(full: Plan, experiment: str, variant: str, **axes: float) -> Scenario:
    """The scenario of one point, with its first seed."""
    for row in full.rows:
        if (row["experiment"], row["variant"], row["seed"]) == (experiment, variant, 1):
            said = json.loads(row["axes"]) if isinstance(row["axes"], str) else dict(row["axes"])
            if all(float(said[name]) == value for name, value in axes.items()):
                return check(json.loads(row["scenario"]), "test", EXPERIMENTS)
    raise AssertionError(f"no point {axes} of {variant} in {experiment}")


def test_figures_3_and_4_are_there(experiments: dict[str, Experiment]) -> None:
    figures = {figure.id.partition("-")[0] for one in experiments.values() for figure in one.spec.figures}
    assert figures == {"3a", "3b", "4a", "4b", "choices"}
    check_measures(list(experiments.values()), CATALOGUE)
    assert {tuple(one.seeds()) for one in experiments.values()} == {tuple(range(1, 11))}


def test_the_reference_scenario_is_the_papers(full: Plan) -> None:
    """Section 4.1, number by number."""
    reference = scenario(full, "context-3a", "context", speed=10.0)
    acts = list(scenario_acts(reference, Path()))
    published = [act for act in acts if isinstance(act.what, Publication)]
    subscribed = [act for act in acts if isinstance(act.what, Subscription)]
    assert (reference.nodes, reference.stop / SECOND, reference.cooldown) == (100, 450, 10)
    assert len({act.node for act in published}) == len({act.node for act in subscribed}) == 20
    assert (len(published), len(subscribed)) == (20 * 45, 20 * 9)
    assert {act.what.lifetime for act in published} == {0, 10 * 10**9}  # type: ignore[union-attr]
    assert {act.what.lifetime for act in subscribed} == {0, 50 * 10**9}  # type: ignore[union-attr]
    for act in (*published, *subscribed):
        place = act.what.relevance if isinstance(act.what, Publication) else act.what.interest  # type: ignore[union-attr]
        assert place is not None
        region = region_of(place)
        assert region is not None
        assert round(region.area) == 10_000
    with_domain = sum(act.what.publication_domain is not None for act in subscribed)  # type: ignore[union-attr]
    assert 0.35 < with_domain / len(subscribed) < 0.65


def test_flooding_floods_the_same_events_at_the_same_times(full: Plan) -> None:
    def events(variant: str) -> list[tuple[int, int, object]]:
        made = scenario_acts(scenario(full, "context-3a", variant, speed=10.0), Path())
        return [(act.time, act.node, act.what.event) for act in made if isinstance(act.what, Publication)]

    assert events("context") == events("flooding")


def test_density_stays_while_the_side_grows_and_a_fifth_publish(full: Plan) -> None:
    for side, nodes in ((500.0, 25), (750.0, 56), (1500.0, 225)):
        point = scenario(full, "context-3b", "context", side=side)
        assert point.nodes == nodes
        assert point.area is not None
        assert nodes / (point.area.width * point.area.height / 1e6) == pytest.approx(100, rel=0.01)
        assert point.workload.publishers[0].members == point.workload.subscribers[0].members == nodes // 5
