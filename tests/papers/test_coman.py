"""The experiments of the paper on COMAN: Table I, the park, plain multicast, and what all of it takes."""

import json
import tomllib
from collections.abc import Mapping
from typing import Any

import pytest

from roamcast import papers
from roamcast.analysis.measures.catalogue import CATALOGUE
from roamcast.campaign.define.experiment import Experiment, check_measures
from roamcast.campaign.define.plan import Plan, plan
from roamcast.content.event import Event
from roamcast.content.text import parse_filter
from roamcast.sim.scenario.scenario import Scenario

CPU, LIGHT = 0.0135, 0.005
"""Seconds of CPU a simulated second, on average over the experiments, and over those of supposed causes, with little
traffic or none; 0.003 in 2000 m without traffic, 0.04 in 750 m at 10 m/s."""
BUDGET = 11400.0
"""Seconds of CPU: 95 minutes on two cores."""
QUICK_BUDGET = 1000.0
"""8 minutes on two quiet cores; the limit, with Spark and measuring, is 10."""

SHARED = {
    "hearing": "traffic",
    "readopt": False,
    "tie": "first",
    "expanding": True,
    "updates": "broadcast",
    "replies": "better",
}
"""What both protocols do as in the drafts, where the paper is silent."""

Runs = Mapping[tuple[str, str, str], list[str]]


@pytest.fixture(scope="module")
def experiments() -> dict[str, Experiment]:
    return {one.name: one for one in papers.load(["coman"])}


@pytest.fixture(scope="module")
def full(experiments: dict[str, Experiment]) -> Plan:
    """Every scenario is checked on the way."""
    return plan(list(experiments.values()))


@pytest.fixture(scope="module")
def runs(full: Plan) -> Runs:
    """Names of runs by experiment, variant and point, in the order of seeds."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for row in full.rows:
        found.setdefault((row["experiment"], row["variant"], row["axes"]), []).append(row["run"])
    return found


def scenario(one: Experiment, variant: str, **point: Any) -> Scenario:  # noqa: ANN401  # any value of TOML
    (named,) = (each for each in one.variants if each.name == variant)
    assert point in one.points(named)
    return one.at(named, point)


# --- What is run ----------------------------------------------------------------------------------------------------


def test_every_measure_exists(experiments: dict[str, Experiment]) -> None:
    check_measures(list(experiments.values()), CATALOGUE)


def test_the_default_is_table_1(experiments: dict[str, Experiment]) -> None:
    default = scenario(experiments["coman-9"], "0.5 msg/s", side=1250)
    assert (default.nodes, default.duration, default.warmup) == (75, 980, 60)
    assert default.area is not None
    assert (default.area.width, default.area.height) == (1250, 1250)
    assert (default.radio.propagation, default.radio.range, default.mac.rate) == ("two-ray", 150, 2)
    assert experiments["coman-9"].scenario["movement"] == {"model": "random-waypoint", "speed": [5.0, 5.0]}
    assert default.background is not None
    assert (default.background.rate, default.background.size, default.background.reach) == (0.5, 256, "network")
    assert default.protocol.name == "coman"


def test_without_traffic_there_is_no_background(experiments: dict[str, Experiment]) -> None:
    assert scenario(experiments["coman-9"], "no traffic", side=750).background is None
    most = scenario(experiments["coman-9"], "1 msg/s", side=2000).background
    assert most is not None
    assert most.rate == 1


@pytest.mark.parametrize("near", ["coman", "coman-multicast"])
def test_at_250_m_only_the_range_and_the_length_of_a_run_are_different(near: str) -> None:
    folder = papers.EXPERIMENTS.parent / "scenarios"
    one, other = (tomllib.loads((folder / f"{name}.toml").read_text()) for name in (near, f"{near}-250"))
    assert {part for part in one if one[part] != other[part]} == {"name", "duration", "radio"}
    assert {**one["radio"], "range": 250.0} == other["radio"]
    assert one.keys() == other.keys()


def test_multicast_is_table_1_with_other_traffic(experiments: dict[str, Experiment]) -> None:
    table, multicast = experiments["coman-9"].scenario, experiments["coman-13"].scenario
    assert {part for part in table if table[part] != multicast[part]} == {"name", "protocol"}
    assert multicast.keys() - table.keys() == {"workload"}
    for variant in ("coman", "maodv"):
        made = scenario(experiments["coman-13"], variant, side=1250, speed=10.0)
        assert made.protocol.name == variant
        plain = {"members": "clients", "routing": {"by": "messages", "cast": "broadcast"}}
        assert made.protocol.parameters == {**SHARED, **plain}
        assert made.background is None
        (receivers,), (senders,) = made.workload.subscribers, made.workload.publishers
        assert (senders.rate, senders.size, receivers.filter) == (1, 256, "true")
        assert made.workload.disjoint
        assert senders.members + receivers.members < made.nodes


def test_in_the_park_a_message_matches_a_subscription_with_a_probability_of_a_tenth(
    experiments: dict[str, Experiment],
) -> None:
    park = scenario(experiments["coman-12"], "coman", rate=24.0)
    (publishers,) = park.workload.publishers
    assert (park.nodes, publishers.members, publishers.rate) == (8, 8, 24)
    stable, changing = park.workload.subscribers
    assert stable.texts == changing.texts
    assert (stable.change, changing.change) == (None, 30)
    kind = publishers.attributes["kind"]
    assert (getattr(kind, "low", None), getattr(kind, "high", None)) == (0, 9)
    for text in stable.texts:
        matched = [n for n in range(10) if parse_filter(text).matches(Event.of("event", {"kind": n}))]
        assert len(matched) == 1
    assert len({parse_filter(text) for text in stable.texts}) == 10


def test_the_park_is_the_papers(experiments: dict[str, Experiment]) -> None:
    raw = experiments["coman-12"].scenario
    assert raw["area"] == {"width": 60, "height": 150}
    assert raw["movement"]["pause"] == [20.0, 60.0]
    assert (raw["radio"]["range"], raw["duration"], raw["warmup"]) == (35.0, 660, 60)


def test_the_parts_are_changed_one_by_one(experiments: dict[str, Experiment]) -> None:
    parts = experiments["coman-parts"]
    lead = "protocol.parameters."
    changed = {
        variant.name: {
            field.removeprefix(lead): value for field, value in variant.set.items() if field.startswith(lead)
        }
        for variant in parts.variants
    }
    together = {"without A and D": {"ancestors", "election"}, "B and E as MAODV": {"rreq", "merging"}}
    for name, values in changed.items():
        if name in ("all", "maodv"):
            assert values == {}
        else:
            assert set(values) == together.get(name, set(values))
            assert len(values) == (2 if name in together else 1)
    of_coman = [values for name, values in changed.items() if not name.startswith("maodv")]
    of_maodv = [values for name, values in changed.items() if name.startswith("maodv")]
    assert all(values in of_coman for values in of_maodv if "outdated" not in values), "what both share"
    assert len({json.dumps(values) for values in of_coman}) == len(of_coman)


def test_both_protocols_get_the_same_links_everywhere(experiments: dict[str, Experiment]) -> None:
    """Wherever MAODV is compared with, both are COMAN's; coman-links has every combination."""
    for name, experiment in experiments.items():
        if not name.startswith(("coman-links", "coman-parts")):
            touched = {field for variant in experiment.variants for field in variant.set}
            assert not touched & {"protocol.parameters.hearing", "protocol.parameters.readopt"}, name
    links = [variant.set for variant in experiments["coman-links"].variants]
    fields = ("protocol.name", "protocol.parameters.hearing", "protocol.parameters.readopt")
    assert {tuple(each[field] for field in fields) for each in links} == {
        (protocol, hearing, readopt)
        for protocol in ("coman", "maodv")
        for hearing in ("traffic", "any", "beacons")
        for readopt in (False, True)
    }


def test_figure_12b_is_one_walk_minute_by_minute(experiments: dict[str, Experiment]) -> None:
    one = experiments["coman-12b"]
    (variant,) = one.variants
    scenarios = [one.at(variant, point) for point in one.points(variant)]
    assert [(made.warmup, made.duration) for made in scenarios] == [(60 * n, 60 * n + 60) for n in range(1, 11)]
    for made in scenarios:
        stable = [group for group in made.workload.subscribers if group.change is None]
        assert len(stable) == 1, "one subscriber is the core"
        wanted = parse_filter(str(stable[0].filter))
        pair, others = made.workload.publishers
        assert (pair.members, others.members, pair.rate, others.rate) == (1, 7, 8, 8)
        assert wanted.matches(Event.of("event", {"kind": 0, "pair": 1}))
        assert not wanted.matches(Event.of("event", {"kind": 0, "pair": 0}))


def test_what_a_variant_does_not_change_is_as_in_the_scenario(experiments: dict[str, Experiment]) -> None:
    """A variant names single parameters: a whole table of them would drop those that the scenario sets."""
    for name, experiment in experiments.items():
        assert SHARED.items() <= experiment.scenario["protocol"]["parameters"].items(), name
        assert all("protocol.parameters" not in variant.set for variant in experiment.variants), name


# --- Runs that several need -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tail", ["", "-250"])
@pytest.mark.parametrize(
    ("same", "as_in"),
    [
        (("coman-9d", "5 m/s", '{"nodes": 75}'), ("coman-9", "0.5 msg/s", '{"side": 1250}')),
        (("coman-11", "coman", '{"nodes": 100, "speed": 10.0}'), ("coman-9d", "10 m/s", '{"nodes": 100}')),
        (("coman-11-side", "coman", '{"side": 2000}'), ("coman-9", "0.5 msg/s", '{"side": 2000}')),
        (("coman-11-side", "maodv", '{"side": 1250}'), ("coman-11", "maodv", '{"nodes": 75, "speed": 5.0}')),
    ],
)
def test_a_run_of_several_figures_is_simulated_once(
    runs: Runs, same: tuple[str, str, str], as_in: tuple[str, str, str], tail: str
) -> None:
    first, second = ((name + tail, variant, axes) for name, variant, axes in (same, as_in))
    assert len(runs[first]) == 5
    assert runs[first] == runs[second]


# --- How long it takes ----------------------------------------------------------------------------------------------


def _cpu(planned: Plan) -> float:
    causes = {row["run"] for row in planned.rows if "causes" in row["experiment"]}
    durations: list[tuple[str, float]] = [(run.run, json.loads(run.scenario)["duration"]) for run in planned.distinct]
    return sum((LIGHT if run in causes else CPU) * duration for run, duration in durations)


def test_all_of_it_fits_the_time(full: Plan) -> None:
    assert (len(full.rows), len(full.distinct)) == (1740, 1495)
    assert _cpu(full) < BUDGET


def test_a_preview_fits_the_time_and_leaves_out_what_no_claim_is_judged_and_no_cause_tested_by() -> None:
    quick = {one.name: one for one in papers.preview(["coman"])}
    assert list(quick) == [
        *("coman-9", "coman-9d", "coman-11", "coman-11-side"),
        *("coman-12", "coman-causes-12", "coman-13", "coman-causes"),
    ]
    assert quick["coman-9"].spec.axes[0].values == (750, 1250, 1750, 2000)
    assert [axis.values for axis in quick["coman-11"].spec.axes] == [(50, 75, 100), (1.0, 5.0, 10.0)]
    planned = plan(list(quick.values()))
    assert {row["seed"] for row in planned.rows} == {1, 2, 3}
    assert (len(planned.rows), len(planned.distinct)) == (348, 303)
    assert _cpu(planned) < QUICK_BUDGET
