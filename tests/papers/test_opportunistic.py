"""The experiments of the paper on documents that people carry: what is run, and that it is the paper's scenario."""

import dataclasses
import json
from collections import Counter
from itertools import combinations

import msgspec
import pytest

from analysis.runs import slow, values_of
from papers.known import load_checked
from roamcast import papers
from roamcast.campaign.define.experiment import Experiment
from roamcast.campaign.define.identity import canonical_hash
from roamcast.campaign.define.plan import plan
from roamcast.content.event import Event
from roamcast.content.text import parse_filter
from roamcast.facts.sinks import MemorySink
from roamcast.papers.age_curves import age_curves
from roamcast.papers.claims import load_claims
from roamcast.sim.run import run
from roamcast.sim.scenario.scenario import Scenario
from roamcast.units import SECOND

NAMES = [
    "opportunistic-3",
    "opportunistic-3-far",
    "opportunistic-4",
    "opportunistic-4-fifo",
    "opportunistic-5",
    "opportunistic-6",
    "opportunistic-radio",
]
READINGS = ("literal", "suspended", "suspended, long stays")


@pytest.fixture(scope="module")
def experiments() -> dict[str, Experiment]:
    return load_checked("opportunistic")


def scenario(one: Experiment, variant: str, **point: float) -> Scenario:
    (named,) = (each for each in one.variants if each.name == variant)
    assert point in one.points(named)
    return one.at(named, point)


def test_figures_3_to_6_are_there_with_20_layouts_but_two_where_nearly_all_arrives(
    experiments: dict[str, Experiment],
) -> None:
    assert list(experiments) == NAMES
    for name in NAMES[:3]:
        assert [each.name for each in experiments[name].variants] == list(READINGS)
    layouts: dict[str, dict[str, int]] = {}
    cells = set()
    for row in plan(list(experiments.values())).rows:  # every scenario is checked on the way
        of = layouts.setdefault(row["experiment"], {})
        of[row["variant"]] = max(of.get(row["variant"], 0), row["seed"])
        cells.add(canonical_hash(json.loads(row["scenario"]) | {"seed": 0, "name": ""}))
    assert len(cells) == 9 + 6 + 36 + 3 + 2 + 14 + 12
    for name in NAMES[:3]:
        assert layouts[name] == {"literal": 2, "suspended": 20, "suspended, long stays": 20}
    assert layouts["opportunistic-5"] == {"literal": 2, "suspended": 20}
    assert [layouts["opportunistic-6"][name] for name in ("relays", "flooding", "relays, suspended")] == [20, 20, 20]


def test_the_scenario_is_the_papers(experiments: dict[str, Experiment]) -> None:
    """Section 3, word by word."""
    one = scenario(experiments["opportunistic-3"], "literal", hops=2)
    assert (one.nodes, one.stop / SECOND, one.area.width, one.area.height) == (120, 14000, 1000, 1000)  # type: ignore[union-attr]
    assert (one.radio.range, one.radio.indoor_range) == (100, 40)
    (publishers,) = one.workload.publishers
    assert publishers.members * publishers.rate == pytest.approx(1 / 2.5)
    assert (publishers.size, publishers.lifetime) == (50_000, None)
    assert one.protocol.parameters["interval"] == 15
    assert (one.protocol.parameters["scope"], one.protocol.parameters["capacity"]) == (2, 0)


def test_every_pair_of_topics_is_the_interest_of_one_host(experiments: dict[str, Experiment]) -> None:
    workload = scenario(experiments["opportunistic-3"], "literal", hops=1).workload
    interests = []
    for group in workload.subscribers:
        wanted = parse_filter(group.texts[0])
        interests += [tuple(t for t in range(16) if wanted.matches(Event.of("document", {"topic": t})))] * group.members
    assert sorted(interests) == sorted(combinations(range(16), 2))
    assert sorted(node for group in workload.subscribers for node in group.nodes or ()) == list(range(120))


def test_the_readings_differ_in_what_their_names_say(experiments: dict[str, Experiment]) -> None:
    literal, suspended, long = (scenario(experiments["opportunistic-3"], name, hops=1) for name in READINGS)
    assert (literal.away, literal.radio.walls) == (
        (),
        scenario(experiments["opportunistic-6"], "relays", hops=2).radio.walls,
    )
    for one in (suspended, long):
        named = ("travelling", "suspended", "deferred", "fire")
        assert [(away.where, away.mode, away.events, away.timers) for away in one.away] == [named]
        assert one.radio.walls == "opaque"
    assert [getattr(one.moving, "stay", None) for one in (suspended, long)] == [(30, 180), (30, 600)]


@pytest.mark.parametrize(
    ("name", "variant", "again"),
    [("opportunistic-4", "literal", False), ("opportunistic-4-fifo", "first in, first out", True)],
)
def test_first_in_first_out_fetches_again_what_was_dropped(
    experiments: dict[str, Experiment], name: str, variant: str, again: bool
) -> None:
    """A host's cache drops what came first, so the document is news to it when it is offered again."""
    one = scenario(experiments[name], variant, capacity=100, hops=1)
    protocol = msgspec.structs.replace(one.protocol, parameters=one.protocol.parameters | {"capacity": 4})
    facts = MemorySink()
    run(msgspec.structs.replace(one, duration=240.0, cooldown=0.0, protocol=protocol), facts)
    entered = Counter((row["node"], row["event"]) for row in facts.table("cache").to_pylist() if row["entered"])
    assert (max(entered.values()) > 1) is again


def test_figure_6_is_about_an_hour_of_life_and_four_hours(experiments: dict[str, Experiment]) -> None:
    one = scenario(experiments["opportunistic-6"], "flooding", hops=3)
    assert (one.stop / SECOND, one.workload.publishers[0].lifetime, one.cooldown) == (14400, 3600, 3600)
    assert one.protocol.parameters["relaying"] == "flooding"


def test_every_check_names_a_measure_and_a_point_that_is_run(experiments: dict[str, Experiment]) -> None:
    checks = [check for claim in load_claims(papers.CLAIMS) if claim.paper == "opportunistic" for check in claim.checks]
    assert len(checks) > 40
    for check in checks:
        for term, measure in check.measures:
            one = experiments[term.experiment]
            assert measure in (one.spec.measures or ())
            (variant,) = (each for each in one.variants if each.name == term.variant)
            assert isinstance(term.at, dict)
            assert any(term.at.items() <= point.items() for point in one.points(variant)), check.says


def test_previews_are_long_enough_for_the_ages_they_are_judged_by(experiments: dict[str, Experiment]) -> None:
    previews = {one.name: one for one in papers.preview(["opportunistic"])}
    assert list(previews) == [name for name in NAMES[:6] if name != "opportunistic-4-fifo"]
    for claim in load_claims(papers.CLAIMS):
        for check in claim.checks if claim.paper == "opportunistic" else ():
            for term, measure in check.measures if check.judged else ():
                one = previews[term.experiment]
                _, _, age = measure.partition("satisfaction_")
                assert one.scenario["duration"] >= int(7200 if measure == "age_peak" else age or 0) + 900
                (variant,) = (each for each in one.variants if each.name == term.variant)
                assert isinstance(term.at, dict)
                assert any(term.at.items() <= point.items() for point in one.points(variant)), check.says
    assert len(previews["opportunistic-3"].seeds()) == 2
    assert previews["opportunistic-4"].spec.axes[0].values == (50, 100)
    assert experiments["opportunistic-4"].spec.axes[0].values == (50, 100, 150, 200)
    assert len(plan(list(previews.values())).rows) == 38


def test_the_curves_over_age_of_a_run_worked_out_by_hand() -> None:
    """Six pairs, of which four arrive: after a second, twice after half an hour, and after an hour."""
    young = values_of(slow(), age_curves)  # the same as satisfaction within that time: see test_by_hand.py
    assert [young[f"by_age_{age}"] for age in (30, 60, 90, 120)] == [pytest.approx(2 / 6), 3 / 4, 1, None]
    assert young["arriving_32.5"] is None
    old = values_of(dataclasses.replace(slow(), simulated=20_000.0), age_curves)
    assert [old[f"by_age_{age}"] for age in (5, 30, 35, 60, 65)] == pytest.approx([1 / 6, 2 / 6, 3 / 6, 4 / 6, 4 / 6])
    # A quarter, a half and a quarter of the deliveries, each spread over three spans; the first over two.
    arriving = [old[f"arriving_{middle}"] for middle in (2.5, 7.5, 12.5, 27.5, 32.5, 37.5, 57.5, 62.5, 67.5)]
    assert arriving == pytest.approx([1 / 8, 1 / 12, 0, 1 / 6, 1 / 6, 1 / 6, 1 / 12, 1 / 12, 1 / 12])
