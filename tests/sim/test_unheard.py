"""What is said of a scenario before it runs: filters that nothing matches, parameters that change nothing."""

from pathlib import Path
from typing import Any

from roamcast.sim.scenario.scenario import Scenario, check
from roamcast.sim.scenario.unheard import unheard
from roamcast.sim.trial import without_effect


def scenario(subscribers: list[dict[str, Any]], duration: float = 20, **protocol: Any) -> Scenario:  # noqa: ANN401
    publisher = {"count": 1, "rate": 1, "start": 5, "stop": 15, "attributes": {"price": {"low": 1, "high": 9}}}
    raw = {
        "name": "test",
        "nodes": 8,
        "duration": duration,
        "area": {"width": 300, "height": 300},
        "protocol": {"name": protocol.pop("name", "flooding"), "parameters": protocol},
        "workload": {"publishers": [publisher], "subscribers": [{"count": 1, **one} for one in subscribers]},
    }
    return check(raw, "test", Path())


ALONE: dict[str, Any] = {
    "name": "alone",
    "nodes": 2,
    "duration": 30,
    "area": {"width": 50, "height": 50},
    "workload": {"publishers": [{"nodes": [0], "rate": 1}], "subscribers": [{"nodes": [1]}]},
}


def test_a_filter_that_no_event_matches_is_named() -> None:
    found = list(unheard(scenario([{"filter": ["price > 8", "price > 9"]}, {"filter": "prise > 1"}, {}])))
    assert found == [
        "workload.subscribers[0].filter: 'price > 9' matches none of 500 events drawn from the publishers",
        "workload.subscribers[1].filter: 'prise > 1' matches none of 500 events drawn from the publishers",
    ]


def test_a_group_that_is_gone_before_anybody_publishes_gets_nothing() -> None:
    nothing = "workload.subscribers[0]: gets nothing: nobody publishes while it is subscribed"
    assert list(unheard(scenario([{"stop": 5}]))) == [nothing]
    assert list(unheard(scenario([{"start": 15}]))) == [nothing]
    assert list(unheard(scenario([{"stop": 6}]))) == []


def test_a_parameter_without_effect_is_found_by_a_trial() -> None:
    """Two nodes hear at most two copies, so that neither 3, the default, nor 5 keeps one silent."""
    gossip = scenario([{"count": 7}], name="gossip", p=0.1)
    assert without_effect(gossip, "test", Path()) == []
    counter = {"name": "counter", "parameters": {"copies": 5}}
    assert without_effect(check({**ALONE, "protocol": counter}, "test", Path()), "test", Path()) == ["copies"]
