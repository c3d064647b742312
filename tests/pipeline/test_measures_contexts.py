"""Delivery against the ideal, pooled over seeds, and cost, against numbers worked out by hand."""

import json

import pytest
from pyspark.sql import SparkSession

from pipeline.measured import Run, S, tables, write_campaign
from roamcast.content.rows import typed
from roamcast.facts.schema import COUNTERS
from roamcast.pipeline.measures import MEASURES, read, run_measures

NAMES = ("delivery_context", "context_pairs", "context_beyond", "mbit", "mbit_per_cube", "requests_share")
HERE = "within(rect(0, 0, 10, 10))"


def counts(bits: int) -> list[int]:
    """What is counted of frames, of which only the bits matter here."""
    return [bits if name == "bits" else 1 for name in COUNTERS]


def seed(name: str, number: int, events: int, delivered: int, contexts: str | None = HERE) -> Run:
    """Host 0, in the region, publishes so many events for host 1, who wants them all and gets some."""
    facts = tables(
        leg=[(0, 0, 10 * S, 5.0, 5.0, 5.0, 5.0, False), (1, 0, 10 * S, 90.0, 90.0, 90.0, 90.0, False)],
        publish=[(S, 0, event, "t", 20, 0, contexts, None) for event in range(1, events + 1)],
        event_attribute=[(event, "", *typed("t")) for event in range(1, events + 1)],
        subscribe=[(0, 1, 7, True, "true", None, contexts, None)],
        series=[(1, "event", *counts(12_000_000)), (2, "matching-request", *counts(4_000_000))],
        deliver=[(2 * S, 1, event, 7, S, 1, "matched-event") for event in range(1, delivered + 1)],
    )
    scenario = {"seed": number, "area": {"width": 2000, "height": 2000}, "radio": {"range": 100.0}}
    return Run(name, facts, seed=number, scenario=json.dumps(scenario), protocol="context", nodes=2)


@pytest.fixture(scope="module")
def measured(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], float | None]:
    runs = [seed("one", 1, 3, 3), seed("two", 2, 1, 0), seed("plain", 3, 2, 2, None)]
    out = write_campaign(tmp_path_factory.mktemp("contexts"), runs)
    table = run_measures(read(spark, out), [MEASURES[name] for name in NAMES])
    rows = zip(*(table[name].to_pylist() for name in ("run", "measure", "value")), strict=True)
    return {(run, measure): value for run, measure, value in rows}


def test_delivery_is_pooled_and_each_seed_has_its_part_in_it(measured: dict[tuple[str, str], float | None]) -> None:
    # 3 of 3 and 0 of 1: 3 of 4 in all, where the mean of the two ratios would be a half. Two ideal pairs are usual.
    assert measured["one", "delivery_context"] == pytest.approx(0.75 + (3 - 0.75 * 3) / 2)
    assert measured["two", "delivery_context"] == pytest.approx(0.75 + (0 - 0.75 * 1) / 2)


def test_pairs_are_those_of_the_ideal(measured: dict[tuple[str, str], float | None]) -> None:
    assert [measured[run, "context_pairs"] for run in ("one", "two")] == [3, 1]
    assert [measured[run, "context_beyond"] for run in ("one", "two")] == [0, 0]


def test_a_run_without_contexts_has_none_of_it(measured: dict[tuple[str, str], float | None]) -> None:
    assert measured["plain", "delivery_context"] is None
    assert measured["plain", "context_pairs"] is None


def test_cost_is_all_that_was_on_the_air(measured: dict[tuple[str, str], float | None]) -> None:
    assert measured["plain", "mbit"] == pytest.approx(16)
    assert measured["one", "mbit_per_cube"] == pytest.approx(16 / 8)
    assert measured["two", "requests_share"] == pytest.approx(0.25)
