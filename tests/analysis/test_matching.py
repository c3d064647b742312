"""Matching on arrays against `Filter.matches`."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from content.strategies import constraints, events, filters
from pipeline.measured import tables
from roamcast.analysis.matching import matches
from roamcast.content.event import Event, event_id
from roamcast.content.filter import EVERYTHING, NOTHING, Constraint, Filter, Operator
from roamcast.content.rows import event_rows

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


def said_by(said: Sequence[Event]) -> pa.Table:
    return tables(event_attribute=[tuple(row) for event in said for row in event_rows(event)])["event_attribute"]


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


def test_arrays_agree_with_matching(content: dict[str, tuple[list[Filter], list[Event]]]) -> None:
    agreed = 0
    for asked, said in content.values():
        by_text = {
            str(filter): filter for filter in asked
        }  # those with one text are equal, such as `a = 0` and `a = 0.0`
        by_id = {event.id: event for event in said}
        ids = sorted(by_id)
        found = matches(list(by_text), said_by(said), np.array(ids, np.int64))
        assert len(found) == len(by_text)
        for text, places in zip(by_text, found, strict=True):
            expected = [place for place, event in enumerate(ids) if by_text[text].matches(by_id[event])]
            assert (text, places.tolist()) == (text, expected)
            agreed += len(expected)
    assert agreed > 1000


def test_events_that_are_not_asked_about_do_not_match() -> None:
    rows = said_by([Event.of("t", {}, id=number) for number in (3, 5, 9)])
    for asked, places in (([5], [0]), ([3, 9], [0, 1]), ([4], []), ([], [])):
        (found,) = matches(["true"], rows, np.array(asked, np.int64))
        assert found.tolist() == places


def test_without_events_or_filters_nothing_matches() -> None:
    none = np.empty(0, np.int64)
    assert [places.tolist() for places in matches(["true", "false"], said_by([]), none)] == [[], []]
    assert matches([], said_by([Event.of("t", {}, id=3)]), np.array([3])) == []


def test_a_file_in_several_chunks_with_dictionaries_of_their_own() -> None:
    rows = said_by([Event.of("t", {"c": text}, id=1 + n) for n, text in enumerate("yxzx")])
    coded = pa.concat_tables([in_dictionaries(rows.slice(start, 3)) for start in range(0, rows.num_rows, 3)])
    (found,) = matches(['c = "x"'], coded, np.array([1, 2, 3, 4]))
    assert found.tolist() == [1, 3]


def in_dictionaries(rows: pa.Table) -> pa.Table:
    for place, name in enumerate(rows.column_names):
        if name in ("attribute", "kind", "text"):
            rows = rows.set_column(place, name, rows[name].dictionary_encode())
    return rows
