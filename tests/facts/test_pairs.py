"""Ground truth: joined rows against `Filter.matches`, and pairs in force against the sweep of the summary."""

from typing import TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from content.strategies import constraints, events, filters
from examples import examples
from pipeline.measured import S, tables
from roamcast.content.event import Event, event_id
from roamcast.content.filter import EVERYTHING, NOTHING, Constraint, Filter, Operator
from roamcast.content.rows import event_rows, filter_rows
from roamcast.facts.matching import Ints, filter_ids, matches
from roamcast.facts.pairs import follow, terms_of
from roamcast.facts.summary import summarise

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


def test_rows_agree_with_matching(content: dict[str, tuple[list[Filter], list[Event]]]) -> None:
    found = [
        (run, event, filter_id)
        for run, (asked, said) in content.items()
        for event, filter_id in rows_that_match(facts_of(asked, said))
    ]
    expected = {
        (run, event.id, texts.index(str(filter)))  # the first with this text: `a = 0` and `a = 0.0` are equal
        for run, (asked, said) in content.items()
        for texts in [list(map(str, asked))]
        for filter in asked
        for event in said
        if filter.matches(event)
    }
    named = {event.id: event for _, said in content.values() for event in said}
    wrong = [
        (str(content[run][0][number]), named[event]) for run, event, number in set(found).symmetric_difference(expected)
    ]
    assert wrong == []
    assert len(found) == len(expected) > 1000


def rows_that_match(facts: dict[str, pa.Table]) -> list[tuple[int, int]]:
    events = np.unique(facts["publish"]["event"].to_numpy())
    ids = set(filter_ids(facts["subscribe"]).values())
    matching = matches(facts["filter_constraint"], facts["event_attribute"], ids, events)
    return [(int(events[place]), filter_id) for filter_id, places in matching.items() for place in places]


def test_events_that_are_not_asked_about_do_not_match() -> None:
    facts = facts_of([EVERYTHING], [Event.of("t", {}, id=number) for number in (3, 5, 9)])
    for asked, places in (([5], [0]), ([3, 9], [0, 1]), ([4], []), ([], [])):
        found = matches(facts["filter_constraint"], facts["event_attribute"], {0}, np.array(asked, np.int64))
        assert found[0].tolist() == places


def test_a_file_in_several_chunks_with_dictionaries_of_their_own() -> None:
    facts = facts_of(
        [Filter.where("c", "=", "x")], [Event.of("t", {"c": text}, id=1 + n) for n, text in enumerate("yxzx")]
    )
    rows = facts["event_attribute"]
    coded = pa.concat_tables(
        [
            rows.slice(start, 3).set_column(
                rows.schema.get_field_index("text"), "text", rows.slice(start, 3)["text"].dictionary_encode()
            )
            for start in range(0, rows.num_rows, 3)
        ]
    )
    found = matches(facts["filter_constraint"], coded, {0}, np.array([1, 2, 3, 4]))
    assert found[0].tolist() == [1, 3]


# --- Pairs ----------------------------------------------------------------------------------------------------------

FILTERS: dict[str, int] = {"true": 100, 'type = "t"': 101}
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


def matching(facts: dict[str, pa.Table]) -> tuple[Ints, Ints, dict[int, Ints]]:
    """Events, their times, and which of them each filter matches, by looking."""
    rows = sorted((row["event"], row["time"], row["type"]) for row in facts["publish"].to_pylist())
    events, times = (np.array([row[place] for row in rows], np.int64) for place in (0, 1))
    every, some = range(len(rows)), [place for place, row in enumerate(rows) if row[2] == "t"]
    return events, times, {100: np.array(every, np.int64), 101: np.array(some, np.int64)}


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
