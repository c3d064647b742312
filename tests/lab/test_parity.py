"""The same scenario in both worlds: real nodes on a lossless ether, and the simulator without contention.

With one seed both have the same workload and every broker the same chance, so where a protocol's outcome does not hang
on the order of events within milliseconds, it is the same to the pair.
"""

from typing import Any

import pytest
from bench.lab_parity import agree

from lab.twins import GRID, LINE, RING, Links, delivered, linked, live, live_all, simulated, summary
from roamcast.sim.scenario.scenario import Scenario
from roamcast.sim.scenario.workload import acts
from roamcast.statistics.intervals import interval
from roamcast.units import SECOND

pytestmark = pytest.mark.slow

TREES = ["coman"]
"""Protocols that first settle into a tree: they get time for it, and timers so short that it does not take long."""
FAST: dict[str, dict[str, Any]] = {
    "coman": {"hello": 0.1, "group_hello": 0.4, "retry_wait": 0.1, "routing": {"defer": 1.0}},
    "odmrp": {"refresh": 0.7, "timeout": 3.0},  # every second event of one content goes in a Join Request
    "opportunistic": {"interval": 0.25, "patience": 0.5, "pace": 1e8},
}
CARRYING = 3.0
"""Seconds for documents to be announced, asked for and passed on, from carrier to carrier: twelve announces."""
SETTLING = 4.0
SEEDS = (1, 2, 3, 4, 5)


def busy(start: float = 0.3, length: float = 2.0, rate: float = 3.0, rest: float = 1.0) -> dict[str, Any]:
    """Two who publish, three others want a part of it; time at the end for the last to arrive."""
    return {
        "duration": start + length + rest,
        "workload": {
            "subscribers": [{"count": 2, "filter": "price < 30"}, {"count": 1, "filter": "true"}],
            "publishers": [
                {
                    "count": 2,
                    "rate": rate,
                    "start": start,
                    "stop": start + length,
                    "attributes": {"price": {"low": 1, "high": 40}},
                }
            ],
        },
    }


@pytest.mark.parametrize("links", [LINE, RING, GRID], ids=["line", "ring", "grid"])
@pytest.mark.parametrize("protocol", ["flooding", "odmrp", "coman", "opportunistic"])
async def test_on_a_static_topology_the_same_pairs_are_delivered(protocol: str, links: Links) -> None:
    start = SETTLING if protocol in TREES else 0.3
    rest = CARRYING if protocol == "opportunistic" else 1.0
    scenario = linked(links, protocol, parameters=FAST.get(protocol, {}), **busy(start, rest=rest))
    expected = delivered(simulated(scenario))
    assert len(expected) >= 12
    assert delivered(await live(scenario)) == expected


AFTER = 0.1
"""Seconds from an event to the change of links after it: it has arrived by then, and the next one is far."""


def changing(protocol: str, period: float) -> Scenario:
    """Six events on a line that breaks after the second, and is closed to a ring at another place after the fourth."""
    tree = protocol in TREES
    start = SETTLING if tree else 0.5
    publishers = [{"nodes": [0], "rate": 1 / period, "start": start, "stop": start + 6 * period}]
    workload = {"subscribers": [{"nodes": [2]}, {"nodes": [4]}], "publishers": publishers}
    common: dict[str, Any] = {"duration": start + 6 * period + 0.5, "workload": workload}
    common["parameters"] = FAST.get(protocol, {})
    still = linked(LINE, protocol, **common)
    times = [act.time / SECOND for act in acts(still.workload, 5, still.seed, still.end) if act.time]
    assert len(times) == 6
    broken, closed = {"at": times[1] + AFTER, "down": [[1, 2]]}, {"at": times[3] + AFTER, "up": [[0, 4]]}
    return linked(LINE, protocol, change=[broken, closed], **common)


@pytest.mark.parametrize("protocol", ["flooding", "odmrp", "coman"])
async def test_on_links_that_change_slowly_the_same_pairs_are_delivered(protocol: str) -> None:
    """A tree gets two seconds to merge: five of its group hellos."""
    scenario = changing(protocol, 2.0 if protocol in TREES else 0.5)
    expected = delivered(simulated(scenario))
    # While the line is broken, nobody beyond the break hears of the two events.
    assert [sum(one == node for _, one, _ in expected) for node in (2, 4)] == [4, 4]
    assert delivered(await live(scenario)) == expected


async def test_xml_documents_reach_whoever_asks_for_them_by_xpath_over_a_mesh() -> None:
    """Two hops of `odmrp`; every second document is jazz."""
    documents = [f'<CD id="{kind}"><category>{kind}</category><price>18.00</price></CD>' for kind in ("jazz", "pop")]
    publishers = [{"nodes": [0], "rate": 4.0, "start": 0.5, "stop": 2.5, "documents": documents, "carry": "compressed"}]
    workload = {"subscribers": [{"nodes": [2], "xpath": '/CD[category="jazz"]'}], "publishers": publishers}
    scenario = linked([[0, 1], [1, 2]], "odmrp", duration=3.5, parameters=FAST["odmrp"], workload=workload)
    facts = await live(scenario)
    kinds = facts["event_attribute"]
    jazz = [
        event
        for event, attribute, value in zip(
            *(kinds[name].to_pylist() for name in ("event", "attribute", "text")), strict=True
        )
        if (attribute, value) == ("category", "jazz")
    ]
    assert len(jazz) == 4
    assert {(event, node) for event, node, _ in delivered(facts)} == {(event, 2) for event in jazz}
    assert delivered(facts) == delivered(simulated(scenario))


@pytest.mark.parametrize(
    ("protocol", "parameters"),
    [("gossip", {"p": 0.6}), ("hint", {"interval": 0.3, "credits": 1})],
)
async def test_over_repeated_runs_delivery_and_cost_agree(protocol: str, parameters: dict[str, Any]) -> None:
    scenarios = [linked(GRID, protocol, seed=seed, parameters=parameters, **busy(1.0)) for seed in SEEDS]
    simulations = [summary(simulated(scenario)) for scenario in scenarios]
    lives = [summary(facts) for facts in await live_all(scenarios)]
    for measure in ("delivery", "carrier_packets_per_pair"):
        samples = [[getattr(one, measure) for one in world] for world in (lives, simulations)]
        assert agree(*samples), f"{measure}: live {samples[0]}, simulated {samples[1]}"


async def test_a_lossy_ether_loses_as_the_simulator_does() -> None:
    """One hop, a thousand frames: both lose a quarter, within four standard deviations (0.014) of each other."""
    publishers = [{"nodes": [0], "rate": 250.0, "start": 0.5, "stop": 4.5}]
    workload = {"subscribers": [{"nodes": [1]}], "publishers": publishers}
    scenario = linked([[0, 1]], "flooding", duration=5.0, workload=workload, loss=0.25)
    shares = [summary(facts).delivery for facts in (await live(scenario), simulated(scenario))]
    assert all(share is not None and abs(share - 0.75) < 4 * 0.0137 for share in shares), shares


def test_agreement_is_of_means_in_each_others_intervals() -> None:
    assert interval([1.0, 3.0]).half == pytest.approx(12.706, abs=0.001)  # deviation √2, over √2 runs
    assert agree([1.0, 3.0], [4.0, 6.0])
    assert agree([1.0, 1.0], [1.0, 1.0])
    assert not agree([1.0, 1.0], [1.0, 1.1])
    assert not agree([1.0, 1.1, 0.9], [5.0, 1.0, 9.0])  # 1 is in the second's interval, 5 not in the first's
    with pytest.raises(ValueError, match="two runs or more are needed"):
        agree([1.0], [1.0, 2.0])
