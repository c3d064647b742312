"""Measures of real runs: against an independent summary of the same facts, and within what can be."""

import json

import pytest

from analysis.oracle import summarise
from analysis.runs import LINKS, real, values_of
from pipeline.measured import Run
from roamcast.analysis.measures.topology import graph, widths
from roamcast.analysis.summary import RunSummary

SAME = {
    "delivery": "delivery",
    "events": "events",
    "pairs_expected": "pairs_expected",
    "pairs_delivered": "pairs_delivered",
    "hops_mean": "hops_mean",
    "delay_mean": "delay_mean",
    "delay_p50": "delay_p50",
    "delay_p95": "delay_p95",
    "delay_p99": "delay_p99",
    "overhead": "packets_per_pair",
    "overhead_data": "carrier_packets_per_pair",
    "bits_per_delivery": "bits_per_pair",
}


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    every = [
        *(real(f"{name}{seed}", seed, name) for name in ("flooding", "gossip") for seed in (1, 2)),
        real("linked", 3, "flooding", **LINKS),
        # Unicast, beacons and background traffic, which is no cost; and subscribers served from what nodes hold.
        real("loaded", 4, "coman", background={"rate": 0.2, "size": 100}),
        real("carried", 5, "opportunistic", lifetime=4.0),
        real("cooled", 6, "opportunistic", cooldown=8.5),
    ]
    return {run.name: run for run in every}


def shares(summary: RunSummary) -> dict[str, float]:
    meant = summary.receptions + sum(summary.losses.values())
    names = {"collision": "lost_collision", "half_duplex": "lost_half_duplex", "random_loss": "lost_random"}
    return {names.get(reason, reason): count / meant for reason, count in summary.losses.items()}


def test_real_runs_have_the_numbers_of_their_summary(runs: dict[str, Run]) -> None:
    for run in runs.values():
        cooldown = json.loads(run.scenario)["cooldown"]
        summary = summarise(run.facts, run.warmup, duration=run.simulated, cooldown=cooldown)
        expected = {name: getattr(summary, theirs) for name, theirs in SAME.items()} | shares(summary)
        expected["duplicates"] = summary.notes.get("duplicate", 0) / summary.pairs_delivered
        measured = values_of(run, coded=True)
        assert {name: measured[name] for name in expected} == pytest.approx(expected, rel=1e-12)
        assert summary.pairs_delivered > 50


def test_the_topology_of_a_real_run_is_within_what_it_can_be(runs: dict[str, Run]) -> None:
    moving, linked = values_of(runs["gossip1"], graph), values_of(runs["linked"], graph, widths)
    # 30 nodes in 500 x 500 m see those within 150 m: 8 of 29 if they were spread evenly and there were no edges.
    assert moving["degree_mean"] is not None
    assert 4 < moving["degree_mean"] < 16
    assert moving == values_of(runs["flooding1"], graph)
    assert [linked[name] for name in ("degree_mean", "partitions_mean", "largest_partition")] == [58 / 30, 1, 1]
    assert [linked[name] for name in ("island_hops", "contact_time", "contact_breaks")] == [29, None, 0]
