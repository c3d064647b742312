"""Pairs in force and their first deliveries, by hand and against the sweep of the independent summary."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import oracle
from analysis.runs import price, small_runs, typed
from examples import examples
from pipeline.measured import Run, S, tables
from roamcast.analysis.pairs import Expected, expected, expected_throughout, nearest_rank, pairs
from roamcast.units import SECOND


def named(wanted: Expected) -> list[tuple[int, int, int]]:
    """(event, node, subscription)."""
    rows = zip(wanted.events[wanted.event].tolist(), wanted.unit.tolist(), strict=True)
    return [(event, *wanted.units[unit]) for event, unit in rows]


# --- By hand --------------------------------------------------------------------------------------------------------


def offers(subscribe: list[tuple[Any, ...]], deliver: list[tuple[Any, ...]] | None = None) -> Run:
    """Event 7 at 5 s for 10, and event 8 at 15 s for 30; node 0 publishes both."""
    facts = tables(
        subscribe=subscribe,
        publish=[(5 * S, 0, 7, "t", 50), (15 * S, 0, 8, "t", 50)],
        event_attribute=[typed(7, "t"), typed(8, "t"), price(7, 10), price(8, 30)],
        deliver=deliver or [],
    )
    return Run("r", facts, simulated=20.0)


def test_an_id_that_stands_for_two_filters_on_two_nodes_is_right() -> None:
    run = offers([(0, 1, 1, True, "price < 20"), (S, 2, 1, True, "true")])
    assert named(expected(run.in_memory())) == [(7, 1, 1), (7, 2, 1), (8, 2, 1)]


def test_an_id_that_stands_for_two_filters_one_after_the_other_is_right() -> None:
    run = offers([(0, 1, 1, True, "price < 20"), (10 * S, 1, 1, True, "price > 20")])
    assert named(expected(run.in_memory())) == [(7, 1, 1), (8, 1, 1)]
    run = offers([(0, 1, 1, True, "price > 20"), (10 * S, 1, 1, True, "price < 20")])
    assert named(expected(run.in_memory())) == []


def test_pairs_are_columns_in_the_order_of_event_node_and_subscription() -> None:
    run = offers([(0, 2, 9, True, "true"), (0, 0, 4, True, "true"), (0, 2, 3, True, "price < 20")])
    wanted = expected(run.in_memory())
    assert named(wanted) == [(7, 0, 4), (7, 2, 3), (7, 2, 9), (8, 0, 4), (8, 2, 9)]
    assert wanted.node.tolist() == [0, 2, 2, 0, 2]
    assert wanted.own.tolist() == [True, False, False, True, False]
    assert wanted.published.tolist() == [5 * S] * 3 + [15 * S] * 2


def test_the_first_delivery_counts_and_of_two_at_once_the_shorter_way() -> None:
    late = (9 * S, 1, 7, 1, 5 * S, 1, "data")
    at_once = [(8 * S, 1, 7, 1, 5 * S, hops, "data") for hops in (4, 2, 3)]
    astray = [
        (6 * S, 2, 7, 1, 5 * S, 1, "data"),
        (6 * S, 1, 99, 1, 5 * S, 1, "data"),
        (6 * S, 1, 7, 2, 5 * S, 1, "data"),
    ]
    found = pairs(offers([(0, 1, 1, True, "true")], [late, *at_once, *astray]).in_memory())
    assert named(found.expected) == [(7, 1, 1), (8, 1, 1)]
    assert (found.delay.tolist(), found.hops.tolist()) == ([3 * S, -1], [2, -1])
    assert found.reached.tolist() == [True, False]


def test_throughout_are_those_that_do_not_change_after_the_warm_up() -> None:
    """The run ends at 20 s; subscriptions that begin with it, end in it, and begin in it."""
    run = offers(
        [(0, 1, 1, True, "true"), (0, 2, 2, True, "true"), (S, 3, 3, True, "true"), (16 * S, 2, 2, False, None)]
    )
    assert named(expected_throughout(run.in_memory())) == [(7, 1, 1), (8, 1, 1)]


@pytest.mark.parametrize(("percent", "rank"), [(50, 10), (95, 19), (99, 20), (1, 1), (100, 20)])
def test_the_nearest_rank_is_exact(percent: int, rank: int) -> None:
    values = np.array([7 * n % 20 + 1 for n in range(20)])  # 1 to 20, shuffled
    assert nearest_rank(values, percent) == rank
    assert nearest_rank(values[:0], percent) is None


# --- Against a sweep over time --------------------------------------------------------------------------------------


@settings(max_examples=examples(400), deadline=None)
@given(small_runs(), st.booleans())
def test_expected_and_delivered_agree_with_the_sweep(run: Run, coded: bool) -> None:
    found, start = pairs(run.in_memory(coded=coded)), round(run.warmup * SECOND)
    wanted = oracle.expected_pairs(run.facts, start)
    assert named(found.expected) == sorted(wanted)
    first, _, _ = oracle._deliveries(run.facts, start, wanted)
    outcome = zip(named(found.expected), found.delay.tolist(), found.hops.tolist(), strict=True)
    assert {pair: (delay, hops) for pair, delay, hops in outcome if delay >= 0} == first
