"""Ground truth: joined rows against `Filter.matches`, and pairs in force against the sweep of the summary."""

from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from content.strategies import constraints, events, filters
from examples import examples
from pipeline.measured import Run, S, tables, write_campaign
from roamcast.content.event import Event, event_id
from roamcast.content.filter import EVERYTHING, NOTHING, Constraint, Filter, Operator
from roamcast.content.rows import event_rows, filter_rows
from roamcast.facts.summary import summarise
from roamcast.pipeline.measures import read
from roamcast.pipeline.measures.pairs import Ints, follow, terms_of
from roamcast.pipeline.measures.truth import matched

T = TypeVar("T")
RUNS = 12
EACH = 25


def generated(strategy: st.SearchStrategy[T], count: int) -> list[T]:
    """Many examples at once, for a job that is too dear to be run for each."""
    found: list[T] = []

    @settings(max_examples=count, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(strategy)
    def collect(example: T) -> None:
        found.append(example)

    collect()
    return found


def near(filter: Filter, event: Event, constraint: Constraint) -> Filter:
    """A filter that asks about an attribute which the event has: most of the purely generated ones miss."""
    attribute = next(iter(event.attributes), "")
    return filter | Filter.where(attribute, constraint.operator, constraint.value)


def facts_of(asked: list[Filter], said: list[Event]) -> dict[str, pa.Table]:
    return tables(
        subscribe=[(0, 1, number, True, str(filter)) for number, filter in enumerate(asked)],
        filter_constraint=[tuple(row) for number, filter in enumerate(asked) for row in filter_rows(number, filter)],
        publish=[(S, 0, event.id, event.type, 10) for event in said],
        event_attribute=[tuple(row) for event in said for row in event_rows(event)],
    )


@pytest.fixture(scope="module")
def content() -> dict[str, tuple[list[Filter], list[Event]]]:
    """By run: filters, some of them shared, and events."""
    drawn = generated(st.tuples(filters, events, constraints), RUNS * EACH)
    named = [
        (filter, msgspec.structs.replace(event, id=event_id(number % 7, number + 1)), constraint)
        for number, (filter, event, constraint) in enumerate(drawn)
    ]
    batches = {}
    for number in range(RUNS):
        batch = named[number::RUNS]
        asked = [filter for filter, _, _ in batch] + [near(*both) for both in batch] + [EVERYTHING, NOTHING]
        batches[f"run{number:02}"] = asked + asked[:3], [event for _, event, _ in batch]
    # More constraints than a word has bits; with two values each of them holds for one.
    long = Filter((tuple(Constraint("price", Operator.NE, number) for number in range(150)),))
    prices = [(5,), (149,), (150,), (5, 6), (150, 151)]
    batches["long"] = [long], [Event.of("t", {"price": both}, id=900 + place) for place, both in enumerate(prices)]
    assert [long.matches(event) for event in batches["long"][1]] == [False, False, True, True, True]
    return batches


def test_the_join_agrees_with_matching(
    spark: SparkSession, tmp_path: Path, content: dict[str, tuple[list[Filter], list[Event]]]
) -> None:
    write_campaign(tmp_path, [Run(run, facts_of(asked, said)) for run, (asked, said) in content.items()])
    rows = matched(read(spark, tmp_path)).collect()
    found = [(row.run, row.event, row.filter_id) for row in rows]
    expected = {
        (run, event.id, asked.index(filter))  # the first of those that share a filter
        for run, (asked, said) in content.items()
        for filter in asked
        for event in said
        if filter.matches(event)
    }
    texts = {event.id: event for _, said in content.values() for event in said}
    wrong = [
        (str(content[run][0][number]), texts[event]) for run, event, number in set(found).symmetric_difference(expected)
    ]
    assert wrong == []
    assert len(found) == len(expected) > 1000


# --- Pairs ----------------------------------------------------------------------------------------------------------

FILTERS: dict[str | None, int] = {"true": 100, 'type = "t"': 101}
TIMES = st.integers(0, 6)
NODES, IDS = st.integers(0, 2), st.integers(1, 2)
ACTS = st.lists(st.tuples(TIMES, NODES, IDS, st.sampled_from([*FILTERS, None])), max_size=12)
EVENTS = st.lists(st.tuples(TIMES, st.sampled_from("tu")), max_size=5)


@st.composite
def small_runs(draw: st.DrawFn) -> dict[str, pa.Table]:
    published = draw(EVENTS)
    delivered = []
    if published:
        which = st.integers(0, len(published) - 1)
        delivered = draw(st.lists(st.tuples(which, TIMES, NODES, IDS, st.integers(0, 3)), max_size=12))
    acts = [(time, node, number, text is not None, text) for time, node, number, text in draw(ACTS)]
    late = [
        (published[e][0] + time, node, e + 1, i, published[e][0], hops, "d") for e, time, node, i, hops in delivered
    ]
    return tables(
        subscribe=acts,
        publish=[(time, 0, number, type_, 1) for number, (time, type_) in enumerate(published, 1)],
        event_attribute=[
            (number, "", "str", None, None, type_, None) for number, (_, type_) in enumerate(published, 1)
        ],
        deliver=late,
    )


def matching(facts: dict[str, pa.Table]) -> tuple[Ints, Ints, Ints]:
    """Events, times and filters of all matches, by looking."""
    rows = [
        (row["event"], row["time"], number)
        for row in facts["publish"].to_pylist()
        for text, number in FILTERS.items()
        if text == "true" or row["type"] == "t"
    ]
    event, time, number = np.array(rows, np.int64).reshape(-1, 3).T
    return event, time, number


@settings(max_examples=examples(400))
@given(small_runs())
def test_pairs_in_force_agree_with_the_summary(facts: dict[str, pa.Table]) -> None:
    summary = summarise(facts, 0)
    terms = terms_of("run", facts["subscribe"], FILTERS)
    figures = follow(*matching(facts), terms, facts["deliver"]).figures(0)
    assert figures["expected"] == summary.pairs_expected
    assert figures["delivered"] == summary.pairs_delivered
    for name in ("delivery", "delay_mean", "delay_p50", "delay_p95", "delay_p99", "hops_mean"):
        assert figures[name] == pytest.approx(getattr(summary, name))
