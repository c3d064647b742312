"""The summary against small tables and numbers worked out by hand, for it and its independent twin, the oracle; and the
two against each other."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import oracle
from analysis.runs import LINKS, price, real, small_runs, typed
from examples import examples
from pipeline.measured import MS, Run, S, tables
from roamcast.analysis import summary as production
from roamcast.analysis.summary import RunSummary, SentTotals
from roamcast.facts.schema import TABLES

Summarise = Callable[..., RunSummary]
Facts = Mapping[str, pa.Table]


def by_measures(facts: Facts, warmup: float = 0.0, duration: float = 30.0) -> RunSummary:
    return production.summarise(Run("r", facts, simulated=duration, warmup=warmup).in_memory())


def by_sweep(facts: Facts, warmup: float = 0.0, duration: float = 30.0) -> RunSummary:
    found = oracle.summarise(facts, warmup, duration=duration)
    sent = tuple(SentTotals(**dataclasses.asdict(one)) for one in found.sent)
    return RunSummary(
        **{field.name: getattr(found, field.name) for field in dataclasses.fields(found)} | {"sent": sent}
    )


@pytest.fixture(params=[by_measures, by_sweep], ids=["production", "oracle"])
def summarise(request: pytest.FixtureRequest) -> Summarise:
    chosen: Summarise = request.param
    return chosen


def series(second: int, kind: str, packets: int = 0, bits: int = 0, airtime: int = 0, *heard: int) -> tuple[Any, ...]:
    return second, kind, packets, bits, airtime, *heard, *[0] * (6 - len(heard))


def of_events(
    summarise: Summarise, subscribe: list[tuple[Any, ...]], published: dict[int, int], **more: list[tuple[Any, ...]]
) -> RunSummary:
    """Events without attributes, by id, published by node 0 at those times."""
    publish = [(time, 0, event, "t", 50) for event, time in published.items()]
    said = [typed(event, "t") for event in published]
    return summarise(tables(subscribe=subscribe, publish=publish, event_attribute=said, **more))


def test_everything_of_a_small_run(summarise: Summarise) -> None:
    facts = tables(
        subscribe=[(0, 1, 1, True, "price < 20"), (0, 2, 2, True, "true")],
        publish=[(1 * S, 0, 10, "t", 50), (5 * S, 0, 11, "t", 50), (6 * S, 0, 12, "t", 50), (7 * S, 0, 13, "t", 50)],
        event_attribute=[typed(event, "t") for event in (10, 11, 12, 13)]
        + [price(10, 5), price(11, 10), price(12, 20), price(13, 19)],
        deliver=[
            (2 * S, 1, 10, 1, 1 * S, 9, "data"),  # published in the warm-up: counts for nothing
            (5 * S + 10 * MS, 1, 11, 1, 5 * S, 1, "data"),
            (5 * S + 20 * MS, 2, 11, 2, 5 * S, 2, "data"),
            (5 * S + 30 * MS, 2, 11, 2, 5 * S, 3, "data"),  # once more
            (6 * S + 60 * MS, 2, 12, 2, 6 * S, 3, "data"),
            (6 * S + 70 * MS, 1, 12, 1, 6 * S, 3, "data"),  # does not match
        ],
        series=[
            series(4, "data", 100, 100, 100, 100, 100, 100, 100, 100, 100),  # in the warm-up
            series(5, "data", 4, 4000, 2 * MS, 8, 1, 2, 3, 4, 5),
            series(5, "beacon", 5, 500, 1 * MS, 10),
            series(6, "data", 2, 2000, 1 * MS, 4, 1),
        ],
        note=[(0, "duplicate", 2), (1, "duplicate", 3), (1, "dropped", 1)],
    )
    assert summarise(facts, 4.5, 9) == RunSummary(
        events=3,
        events_wanted=3,
        pairs_expected=5,  # 11: both; 12: one, at 20; 13: both
        pairs_delivered=3,
        delivery=2 / 3,  # of 11 all, of 12 all, of 13 none
        deliveries_unexpected=1,
        deliveries_repeated=1,
        delay_mean=0.03,
        delay_p50=0.02,
        delay_p95=0.06,
        delay_p99=0.06,
        hops_mean=2.0,
        packets=11,
        bits=6500,
        packets_per_pair=11 / 3,
        bits_per_pair=6500 / 3,
        carrier_packets_per_pair=2.0,
        carrier_bits_per_pair=2000.0,
        airtime_share=0.004 / 4,  # from second 5, the first after the warm-up, to 9
        receptions=22,
        losses={"collision": 2, "half_duplex": 2, "random_loss": 3, "queue_full": 4, "unreachable": 5},
        notes={"dropped": 1, "duplicate": 5},
        sent=(
            SentTotals("beacon", 5, 500, 0.001, False, False),
            SentTotals("data", 6, 6000, 0.003, False, True),
        ),
    )


def test_delivery_is_a_mean_over_events_not_over_pairs(summarise: Summarise) -> None:
    begun = [(0, node, node, True, "true") for node in (1, 2, 3)]
    ended = [(15 * S, node, node, False, None) for node in (2, 3)]
    deliver = [(11 * S, 1, 10, 1, 10 * S, 1, "data"), (21 * S, 1, 11, 1, 20 * S, 1, "data")]
    summary = of_events(summarise, [*begun, *ended], {10: 10 * S, 11: 20 * S}, deliver=deliver)
    assert (summary.pairs_expected, summary.pairs_delivered) == (4, 2)
    assert summary.delivery == pytest.approx((1 / 3 + 1) / 2)


@pytest.mark.parametrize(
    ("published", "expected"),
    [(9, 0), (10, 1), (15, 1), (20, 1), (21, 0)],
    ids=["before", "as it is made", "in force", "as it ends", "after"],
)
def test_a_subscription_is_in_force_from_the_instant_it_is_made_to_the_instant_it_ends(
    summarise: Summarise, published: int, expected: int
) -> None:
    subscribe = [(10, 1, 1, True, "true"), (20, 1, 1, False, None)]
    assert of_events(summarise, subscribe, {7: published}).pairs_expected == expected


def test_a_subscription_made_anew_under_its_id_has_the_new_filter(summarise: Summarise) -> None:
    subscribe = [(0, 1, 1, True, 'type = "t"'), (10, 1, 1, True, 'type = "other"')]
    assert of_events(summarise, subscribe, {7: 5, 8: 15}).pairs_expected == 1


def test_one_that_ends_and_begins_again_at_one_instant_counts_once(summarise: Summarise) -> None:
    subscribe = [(0, 1, 1, True, "true"), (10, 1, 1, False, None), (10, 1, 1, True, "true")]
    assert of_events(summarise, subscribe, {7: 10, 8: 11}).pairs_expected == 2


def test_an_end_without_a_beginning_changes_nothing(summarise: Summarise) -> None:
    assert of_events(summarise, [(0, 1, 1, False, None)], {7: 5}).pairs_expected == 0


def test_the_publishers_own_subscription_is_expected_and_its_local_delivery_counts(summarise: Summarise) -> None:
    deliver = [(5, 0, 7, 1, 5, 0, "local")]
    summary = of_events(summarise, [(0, 0, 1, True, "true")], {7: 5}, deliver=deliver)
    assert (summary.delivery, summary.delay_mean, summary.hops_mean) == (1.0, 0.0, 0.0)


def test_one_subscription_id_on_two_nodes_is_two_subscriptions(summarise: Summarise) -> None:
    deliver = [(6, 1, 7, 1, 5, 1, "data"), (8, 1, 7, 1, 5, 1, "data")]
    summary = of_events(summarise, [(0, 1, 1, True, "true"), (0, 2, 1, True, "true")], {7: 5}, deliver=deliver)
    assert (summary.pairs_expected, summary.pairs_delivered, summary.delivery) == (2, 1, 0.5)


def test_percentiles_are_by_the_nearest_rank(summarise: Summarise) -> None:
    # Delays of 1 to 20 ms, given backwards: ranks ceil(0.5 * 20) = 10, ceil(0.95 * 20) = 19, ceil(0.99 * 20) = 20.
    events = {event: event * S for event in range(1, 21)}
    deliver = [(event * S + (21 - event) * MS, 1, event, 1, event * S, 1, "data") for event in events]
    summary = of_events(summarise, [(0, 1, 1, True, "true")], events, deliver=deliver)
    assert (summary.delay_p50, summary.delay_p95, summary.delay_p99) == (0.010, 0.019, 0.020)


def test_every_type_of_value_and_several_values_are_rebuilt(summarise: Summarise) -> None:
    said = [
        (7, "", "str", None, None, "t", None),
        (7, "i", "int", 2**53 + 1, None, None, None),
        (7, "f", "float", None, 2.5, None, None),
        (7, "b", "bool", None, None, None, True),
        (7, "s", "str", None, None, "x", None),
        (7, "s", "str", None, None, "y", None),
    ]
    filters = ["i = 9007199254740993", "f < 3", "b = true", 's = "y"', "i = 9007199254740992", "b = false", "exists g"]
    subscribe = [(0, node, node, True, text) for node, text in enumerate(filters)]
    facts = tables(subscribe=subscribe, publish=[(5, 0, 7, "t", 50)], event_attribute=said)
    assert summarise(facts).pairs_expected == 4


def test_a_run_in_which_nothing_happened_has_no_means(summarise: Summarise) -> None:
    for facts in ({}, {name: schema.empty_table() for name, schema in TABLES.items()}):
        summary = summarise(facts, 1.0, 1.0)
        undefined = {name for name, value in summary.as_dict().items() if value is None}
        assert undefined == {
            "delivery",
            "delay_mean",
            "delay_p50",
            "delay_p95",
            "delay_p99",
            "hops_mean",
            "packets_per_pair",
            "bits_per_pair",
            "carrier_packets_per_pair",
            "carrier_bits_per_pair",
            "airtime_share",
        }
        assert (summary.events, summary.pairs_expected, summary.packets, summary.sent) == (0, 0, 0, ())


def test_events_that_nobody_wants_do_not_count_for_delivery(summarise: Summarise) -> None:
    summary = of_events(summarise, [], {7: 5})
    assert (summary.events, summary.events_wanted, summary.delivery) == (1, 0, None)


def test_as_dict_is_plain(summarise: Summarise) -> None:
    record = of_events(summarise, [(0, 1, 1, True, "true")], {7: 5}, series=[series(0, "data", 1, 2, S)]).as_dict()
    counted = {"packets": 1, "bits": 2, "airtime": 1.0}
    assert record["sent"] == ({"kind": "data", **counted, "background": False, "carrier": False},)


# --- Against an obvious model ---------------------------------------------------------------------------------------

times = st.integers(0, 12)
terms = st.lists(st.tuples(times, st.none() | times, st.integers(0, 4)), max_size=5)
"""Subscriptions, one a node: from when, until when if it ends, and the price that it asks to be below."""
offers = st.lists(st.tuples(times, st.integers(0, 4)), max_size=6)
"""Events: when, and at what price."""


@given(terms=terms, offers=offers, warmup=times, reached=st.sets(st.tuples(st.integers(0, 5), st.integers(0, 4))))
@settings(max_examples=examples(150), deadline=None)
def test_expected_delivered_and_delivery_are_those_of_a_slow_model(
    terms: list[tuple[int, int | None, int]],
    offers: list[tuple[int, int]],
    warmup: int,
    reached: set[tuple[int, int]],
) -> None:
    subscribe: list[tuple[Any, ...]] = []
    for node, (start, end, below) in enumerate(terms):
        subscribe.append((start, node, node, True, f"price < {below}"))
        if end is not None and end > start:
            subscribe.append((end, node, node, False, None))
    deliver = [
        (offers[event][0] + 1, node, event, node, offers[event][0], 1, "data")
        for event, node in sorted(reached)
        if event < len(offers)
    ]
    facts = tables(
        subscribe=subscribe,
        publish=[(time, 99, event, "t", 50) for event, (time, _) in enumerate(offers)],
        event_attribute=[
            row for event, (_, cost) in enumerate(offers) for row in (typed(event, "t"), price(event, cost))
        ],
        deliver=deliver,
    )

    wanted: dict[int, set[int]] = {}
    for event, (time, cost) in enumerate(offers):
        for node, (start, end, below) in enumerate(terms):
            lasts = end is None or end <= start or time <= end
            if time >= warmup and start <= time and lasts and cost < below:
                wanted.setdefault(event, set()).add(node)
    shares = [len([node for node in nodes if (event, node) in reached]) / len(nodes) for event, nodes in wanted.items()]
    measured = [row for row in deliver if row[4] >= warmup]
    met = [row for row in measured if row[1] in wanted.get(row[2], ())]

    for summary in (by_measures(facts, warmup / S), by_sweep(facts, warmup / S)):
        assert summary.pairs_expected == sum(map(len, wanted.values()))
        assert summary.pairs_delivered == len(met)
        assert summary.deliveries_unexpected == len(measured) - len(met)
        assert summary.delivery == (pytest.approx(sum(shares) / len(shares)) if shares else None)


# --- Against each other -----------------------------------------------------------------------------------------------

counters = st.integers(0, 9)
sent = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from(["data", "beacon", "ack", "background"]), *[counters] * 9)
)
noted = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["duplicate", "dropped"]), counters))


def assert_same(run: Run) -> None:
    mine, theirs = (how(run.facts, run.warmup, run.simulated).as_dict() for how in (by_measures, by_sweep))
    kinds, their_kinds = mine.pop("sent"), theirs.pop("sent")
    exact = {name: mine.pop(name) for name in ("losses", "notes")}
    assert exact == {name: theirs.pop(name) for name in exact}
    assert mine == {name: value if value is None else pytest.approx(value, rel=1e-12) for name, value in theirs.items()}
    assert list(kinds) == [kind | {"airtime": pytest.approx(kind["airtime"])} for kind in their_kinds]


@settings(max_examples=examples(400), deadline=None)
@given(small_runs(), sent, noted)
def test_of_small_runs_both_say_the_same(run: Run, sent: list[tuple[Any, ...]], noted: list[tuple[Any, ...]]) -> None:
    more = tables(series=sent, note=noted)
    assert_same(dataclasses.replace(run, facts={**run.facts, "series": more["series"], "note": more["note"]}))


@pytest.mark.parametrize(
    ("protocol", "changes"),
    [("flooding", LINKS), ("coman", {"background": {"rate": 0.2, "size": 100}}), ("opportunistic", {"lifetime": 4.0})],
    ids=["on links", "beside other traffic", "carried"],
)
def test_of_real_runs_both_say_the_same(protocol: str, changes: dict[str, Any]) -> None:
    run = real("real", 3, protocol, **changes)
    assert run.facts["deliver"].num_rows > 50
    assert_same(run)
