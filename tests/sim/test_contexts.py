"""Contexts in a workload: placed regions, drawn lifetimes and domains."""

import itertools
from collections import Counter
from pathlib import Path

import pytest

from roamcast.content.context.rules import region_of
from roamcast.content.context.text import parse_context
from roamcast.content.subscription import Publication, Subscription
from roamcast.facts.sinks import MemorySink
from roamcast.sim.core import reference
from roamcast.sim.mobility import ScenarioError, position
from roamcast.sim.places import Places, scenario_acts
from roamcast.sim.run import run
from roamcast.sim.scenario.scenario import Scenario, check

PLACED = {"width": 100, "height": 60}


def scenario(publishers: dict[str, object], subscribers: dict[str, object], protocol: str = "context") -> Scenario:
    raw = {
        "nodes": 20,
        "duration": 200,
        "area": {"width": 1000, "height": 500},
        "workload": {
            "publishers": [{"count": 3, "rate": 0.5, **publishers}],
            "subscribers": [{"count": 2, **subscribers}],
        },
        "protocol": {"name": protocol},
    }
    return check(raw, "test", Path())


def publications(made: Scenario) -> list[tuple[int, int, Publication]]:
    return [(act.time, act.node, act.what) for act in scenario_acts(made, Path()) if isinstance(act.what, Publication)]


def subscriptions(made: Scenario) -> list[tuple[int, int, Subscription]]:
    return [(act.time, act.node, act.what) for act in scenario_acts(made, Path()) if isinstance(act.what, Subscription)]


def test_a_region_is_placed_anywhere_in_the_area_and_wholly_inside() -> None:
    made = publications(scenario({"relevance": PLACED}, {}))
    boxes = [region_of(publication.relevance).box for _, _, publication in made if publication.relevance is not None]  # type: ignore[union-attr]
    assert len(boxes) == len(made) == 300
    assert all(round(box.x1 - box.x0, 6) == 100 and round(box.y1 - box.y0, 6) == 60 for box in boxes)
    assert all(box.x0 >= 0 and box.x1 <= 1000 and box.y0 >= 0 and box.y1 <= 500 for box in boxes)
    assert min(box.x0 for box in boxes) < 50
    assert max(box.x1 for box in boxes) > 950


def test_a_region_around_its_node_is_where_the_node_is_then() -> None:
    around = scenario({"relevance": {**PLACED, "around": "node", "where": "speed > 1"}}, {})
    assert around.area is not None
    walks = around.moving.walks(around.area, around.nodes, around.seed, Path())
    for time, node, publication in publications(around):
        leg = next(leg for leg in around.moving.walks(around.area, 20, around.seed, Path())[node] if leg.end > time)
        x, y = position(leg, time)
        assert publication.relevance == parse_context(
            f"within(rect({x - 50!r}, {y - 30!r}, {x - 50 + 100!r}, {y - 30 + 60!r})) and speed > 1"
        )
        if time > 20_000_000_000:
            break
    assert Places(walks).here(3, 0) == Places(around.moving.walks(around.area, 20, around.seed, Path())).here(3, 0)


def test_lifetimes_and_domains_are_drawn_and_change_nothing_else() -> None:
    plain = publications(scenario({}, {}))
    drawn = publications(
        scenario({"lifetime": [0, 10], "relevance": PLACED, "subscription_domain": ["v < 5", "v >= 5"]}, {})
    )
    assert [(time, node, publication.event) for time, node, publication in plain] == [
        (time, node, publication.event) for time, node, publication in drawn
    ]
    counted = Counter((publication.lifetime, str(publication.subscription_domain)) for _, _, publication in drawn)
    assert set(counted) == {(0, "v < 5"), (0, "v >= 5"), (10**10, "v < 5"), (10**10, "v >= 5")}
    assert min(counted.values()) > 300 / 4 * 0.6


def test_a_subscriber_subscribes_again_and_again_and_some_have_a_domain() -> None:
    wanted = {"every": 5, "lifetime": [0, 5], "publication_domain": "v < 5", "domain_share": 0.25}
    made = subscriptions(scenario({}, wanted))
    assert len({subscription.id for _, _, subscription in made}) == len(made) == 80
    mine = [time for time, node, _ in made if node == made[0][1]]
    assert {later - time for time, later in itertools.pairwise(mine)} == {5_000_000_000}
    assert 8 <= sum(subscription.publication_domain is not None for _, _, subscription in made) <= 32
    ended = [act for act in scenario_acts(scenario({}, wanted), Path()) if isinstance(act.what, int)]
    assert ended == []


@pytest.mark.parametrize(
    ("publishers", "subscribers", "said"),
    [
        (
            {"relevance": "within(rect(0, 0, 1))"},
            {},
            "workload.publishers[0].relevance: at position 19: expected a ',' and y1",
        ),
        ({"relevance": {"width": 2000, "height": 5}}, {}, "relevance: 2000 m × 5 m does not fit into the area"),
        ({"subscription_domain": []}, {}, "subscription_domain: an empty list"),
        ({"lifetime": [3, -1]}, {}, "lifetime: -1 s: 0 or more"),
        ({"lifetime": []}, {}, "lifetime: an empty list"),
        ({"relevance": "v < 5"}, {}, "relevance: the context of relevance has no region"),
        ({}, {"interest": "v < 5"}, "interest: the context of interest has no region"),
        ({}, {"every": 5}, "every: needs a lifetime"),
        ({}, {"every": 0, "lifetime": 5}, "every: 0 s: at least 0.001 s"),
        (
            {},
            {"every": 5, "lifetime": 5, "change": 5, "filter": ["a < 1", "a < 2"]},
            "change: cannot be combined with every",
        ),
        (
            {"relevance": "within(rect(0, 0, 9, 9)) and mean(neighbours.fuel) < 5"},
            {},
            "may look at key attributes of neighbours only (none); mean(neighbours.fuel) looks at 'fuel'",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    publishers: dict[str, object], subscribers: dict[str, object], said: str
) -> None:
    with pytest.raises(ScenarioError) as refused:
        scenario(publishers, subscribers)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("publishers", "subscribers", "said"),
    [
        (
            {"relevance": PLACED},
            {},
            "publishers[0].relevance: flooding does not understand contexts, such as a context",
        ),
        ({"subscription_domain": "v < 5"}, {}, "flooding does not understand domains, such as a subscription domain"),
        ({}, {"interest": PLACED}, "interest: flooding does not understand contexts, such as a context of interest"),
        ({}, {"publication_domain": "v < 5"}, "domains, such as a publication domain"),
    ],
)
def test_a_protocol_without_contexts_refuses_them_by_name(
    publishers: dict[str, object], subscribers: dict[str, object], said: str
) -> None:
    with pytest.raises(ScenarioError) as refused:
        scenario(publishers, subscribers, "flooding")
    assert said in str(refused.value)


def test_an_instantaneous_subscription_gets_in_the_simulator_what_matched_in_time() -> None:
    """A persistent event is held half-way; the match comes back when the subscription is over."""
    line = {"nodes": 3, "movement": {"model": "static", "positions": [[0, 0], [150, 0], [300, 0]]}}
    middle = "within(circle(150, 0, 10))"
    workload = {
        "subscribers": [{"nodes": [0], "start": 5, "lifetime": 0, "interest": middle}],
        "publishers": [{"nodes": [2], "start": 1, "stop": 2, "rate": 1.0, "lifetime": 20, "relevance": middle}],
    }
    common = {"name": "test", "duration": 10, "area": {"width": 400, "height": 400}, "radio": {"range": 200}}
    got = {}
    for grace in (0.0, 1.0):
        protocol = {"name": "context", "parameters": {"grace": grace}}
        facts = MemorySink()
        run(
            check({**common, **line, "workload": workload, "protocol": protocol}, "test", Path()),
            facts,
            make_core=reference.Core,
        )
        got[grace] = facts.table("deliver")["node"].to_pylist()
    assert got == {0.0: [], 1.0: [0]}
