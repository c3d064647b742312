"""Caches, by hand."""

import dataclasses

import pytest

from analysis.runs import values_of
from pipeline.measured import Run, S, tables
from roamcast.analysis.measures.caches import caches


def run(warmup: float, simulated: float) -> Run:
    changes = [
        (0, 0, 1, "published"),
        (10, 0, 2, "received"),
        (20, 1, 1, "received"),
        (30, 0, 1, "full"),
        (90, 0, 0, "expired"),
    ]
    rows = [(time * S, node, 7, True, change, documents, 50) for time, node, documents, change in changes]
    return Run("r", tables(cache=rows), simulated=simulated, warmup=warmup, nodes=3, protocol="opportunistic")


def test_caches_by_hand() -> None:
    # From 20 to 100: node 0 has 2 for 10, 1 for 60 and none for 10; node 1 has 1 for 80; node 2 has nothing.
    assert values_of(run(20, 100), caches) == {
        "cache_mean": pytest.approx((2 * 10 + 60 + 80) / (3 * 80)),
        "cache_peak": 2,
        "cache_drops": pytest.approx(1 / 3),
    }
    assert values_of(run(40, 80), caches) == {"cache_mean": 2 / 3, "cache_peak": 1, "cache_drops": 0}


def test_a_run_without_caches_has_no_value() -> None:
    assert set(values_of(dataclasses.replace(run(0, 1), facts={}), caches).values()) == {None}
