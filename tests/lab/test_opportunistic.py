"""Store, carry and forward with real processes: A and C never meet, B walks between them."""

from typing import Any

from lab.twins import delivered, linked, live, simulated

A, B, C = range(3)
WALK: dict[str, Any] = {
    "duration": 5.0,
    "change": [{"at": 2.0, "down": [[A, B]]}, {"at": 2.5, "up": [[B, C]]}],
    "parameters": {"interval": 0.25, "patience": 0.5, "pace": 1e8},
    "workload": {
        "subscribers": [{"nodes": [B], "filter": "topic <= 2"}, {"nodes": [C], "filter": "topic >= 2"}],
        "publishers": [
            {"nodes": [A], "rate": 10.0, "stop": 0.6, "attributes": {"topic": {"low": 1, "high": 3}}, "size": 20_000}
        ],
    },
}


async def test_b_carries_what_both_want_from_a_to_c() -> None:
    scenario = linked([[A, B]], "opportunistic", seed=5, **{**WALK, "nodes": 3})
    facts = await live(scenario)
    topics = dict(
        zip(
            facts["event_attribute"].filter(_named(facts, "topic"))["event"].to_pylist(),
            facts["event_attribute"].filter(_named(facts, "topic"))["integer"].to_pylist(),
            strict=True,
        )
    )
    assert set(topics.values()) == {1, 2, 3}
    got = {node: {event for event, who, _ in delivered(facts) if who == node} for node in (A, B, C)}
    assert got[B] == {event for event, topic in topics.items() if topic <= 2}
    # What B does not want it does not carry, and C has no other way to it.
    assert got[C] == {event for event, topic in topics.items() if topic == 2}
    assert delivered(facts) == delivered(simulated(scenario))


def _named(facts: dict[str, Any], name: str) -> Any:  # noqa: ANN401  # a mask of Arrow
    return [attribute == name for attribute in facts["event_attribute"]["attribute"].to_pylist()]
