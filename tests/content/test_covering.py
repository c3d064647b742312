import math
import random
from collections.abc import Callable
from time import process_time

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from content.strategies import constraints, events, filters
from examples import examples
from roamcast.content.covering import EFFORT, EFFORT_PER_CONSTRAINT, covers, summarise
from roamcast.content.event import TYPE, Event, Scalar
from roamcast.content.filter import (
    EVERYTHING,
    MAX_CONSTRAINTS,
    NOTHING,
    ORDERING,
    STRING_ONLY,
    Constraint,
    Filter,
    Operator,
)
from roamcast.errors import ContentError

where = Filter.where


def between(low: Scalar, high: Scalar, attribute: str = "p") -> Filter:
    return where(attribute, ">=", low) & where(attribute, "<=", high)


# --- covers: by hand

COVERED: dict[str, tuple[Filter, Filter]] = {
    "everything": (EVERYTHING, where("p", "=", 1)),
    "nothing": (NOTHING, NOTHING),
    "nothing, by another name": (NOTHING, where("p", ">", math.inf) | where("q", "=", 1) & where("p", "<", "")),
    "fewer constraints": (where("p", "<", 5), where("p", "<", 3) & where("q", "=", 1)),
    "more constraints": (between(1, 9), where("p", "=", 5)),
    "an interval": (between(1, 9), between(2, 8)),
    "each by an alternative": (
        where("p", "<", 5) | where("q", "exists"),
        where("p", "=", 1) | where("q", "=", 1) | where("p", "<", 5) & where("r", "=", 1),
    ),
    "the type": (where(TYPE, "^=", "al"), where(TYPE, "=", "alarm")),
    "the type is always there": (where(TYPE, "exists"), EVERYTHING),
}
NOT_COVERED: dict[str, tuple[Filter, Filter]] = {
    "everything": (where("p", "exists"), EVERYTHING),
    "another attribute": (where("p", "<", 5), where("q", "<", 5)),
    "wider": (between(2, 8), between(1, 9)),
    "one alternative only": (where("p", "=", 1), where("p", "=", 1) | where("p", "=", 2)),
    # 4 and 6 together satisfy both bounds
    "several values make no equality": (where("p", "=", 5), between(5, 5)),
    "several values satisfy both": (NOTHING, where("p", ">", 10) & where("p", "<", 5)),
    "several values fill no gap": (where("p", ">=", 1), where("p", "<=", 9) & where("p", "!=", 0)),
}
UNSEEN: dict[str, tuple[Filter, Filter]] = {
    "alternatives only together": (where("p", "<", 5) | where("p", ">=", 5), where("p", "!=", 7)),
    "the type's single value": (where(TYPE, "=", "a"), between("a", "a", TYPE)),
    "the type's impossible pair": (NOTHING, where(TYPE, "=", "a") & where(TYPE, "=", "b")),
}


@pytest.mark.parametrize("name", COVERED)
def test_covered(name: str) -> None:
    assert covers(*COVERED[name])


@pytest.mark.parametrize("name", NOT_COVERED)
def test_not_covered(name: str) -> None:
    assert not covers(*NOT_COVERED[name])


@pytest.mark.parametrize("name", UNSEEN)
def test_what_the_module_says_it_does_not_see(name: str) -> None:
    assert not covers(*UNSEEN[name])


# --- small worlds, in which filters meet events and each other

SMALL: tuple[Scalar, ...] = (0, 1, 2, 3, 0.5, 1.0, 2.5, math.inf, "", "a", "b", "ab", "ba", "\0", True, False)


@st.composite
def small_constraints(draw: st.DrawFn) -> Constraint:
    operator = draw(st.sampled_from(Operator))
    allowed = [
        value
        for value in SMALL
        if (isinstance(value, str) or operator not in STRING_ONLY)
        and (not isinstance(value, bool) or operator not in ORDERING)
    ]
    value = None if operator is Operator.EXISTS else draw(st.sampled_from(allowed))
    return Constraint(draw(st.sampled_from(("p", "p", "q", TYPE))), operator, value)


small_filters = st.lists(st.lists(small_constraints(), min_size=1, max_size=3).map(tuple), max_size=3).map(
    lambda alternatives: Filter(tuple(alternatives))
)
small_values = st.lists(st.sampled_from(SMALL), min_size=1, max_size=3)
small_events = st.builds(
    Event.of, st.sampled_from(("", "a", "ab")), st.dictionaries(st.sampled_from(("p", "q")), small_values)
)


@st.composite
def related_filters(draw: st.DrawFn) -> tuple[Filter, Filter]:
    """A filter, and the same with each constraint kept, dropped or exchanged: often one covers the other."""
    narrow = draw(small_filters)
    wide = []
    for conjunction in narrow.alternatives:
        kept: list[Constraint] = []
        for constraint in conjunction:
            other = draw(st.sampled_from((constraint, None)) | small_constraints())
            kept += [other] if other else []
        wide.append(tuple(kept))
    return Filter(tuple(wide)), narrow


def meetings(pairs: st.SearchStrategy[tuple[Filter, Filter]]) -> tuple[int, int]:
    """Among 400 drawn pairs whose second matches the drawn event: in how many the first covers it; in how many not."""
    counts = {True: 0, False: 0}

    @settings(max_examples=400, derandomize=True, database=None)
    @given(pairs, small_events)
    def count(pair: tuple[Filter, Filter], event: Event) -> None:
        counts[covers(*pair)] += pair[1].matches(event)

    count()
    return counts[True], counts[False]


def test_the_related_filters_do_meet_events() -> None:
    covered, uncovered = meetings(related_filters())
    assert covered >= 25
    assert uncovered >= 15


@settings(max_examples=examples(600))
@given(related_filters(), st.lists(small_events, min_size=1, max_size=6))
def test_what_covers_matches_whatever_the_covered_matches(pair: tuple[Filter, Filter], some: list[Event]) -> None:
    wide, narrow = pair
    if covers(wide, narrow):
        for event in some:
            assert wide.matches(event) or not narrow.matches(event)


@settings(max_examples=examples(300))
@given(constraints, constraints, events)
def test_covering_is_sound_at_the_extremes(one: Constraint, other: Constraint, event: Event) -> None:
    # Both constraints on every attribute of the event, so that they meet.
    for attribute in (TYPE, *event.attributes):
        wide, narrow = (where(attribute, constraint.operator, constraint.value) for constraint in (one, other))
        if covers(wide, narrow):
            assert wide.matches(event) or not narrow.matches(event)


@settings(max_examples=examples(200))
@given(filters, filters)
def test_a_filter_covers_its_narrowings_and_is_covered_by_its_widenings(one: Filter, other: Filter) -> None:
    assert covers(one, one & other)
    assert covers(one | other, one)


# --- Exact unions


def merge(one: Filter, other: Filter) -> Filter:
    """With room for everything, a summary is the exact union."""
    return summarise([one, other], 1 << 20)


MERGED: dict[str, tuple[Filter, Filter, Filter]] = {
    "covered": (where("p", "<", 5), where("p", "<", 9), where("p", "<", 9)),
    "covered, with more": (where("p", "<", 5) & where("q", "=", 1), where("p", "<", 5), where("p", "<", 5)),
    "equal": (where("p", "!=", True), where("p", "=", False), where("p", "=", False)),
    "covered, though its strings lie all over": (where("p", "$=", "a"), where("p", "!=", ""), where("p", "!=", "")),
    "touching": (where("p", "<", 5), where("p", "=", 5.0), where("p", "<=", 5)),
    "two halves": (where("p", "<", 7), where("p", ">", 7), where("p", "!=", 7)),
    "all numbers": (where("p", "<=", 7), where("p", ">", 3), where("p", ">=", -math.inf)),
    "strings": (where("p", "^=", "a"), where("p", "<", "a"), where("p", "<", "b")),
    "beside the same": (
        where("q", "=", 1) & where("p", "<", 5),
        where("q", "=", 1) & where("p", ">=", 5),
        where("q", "=", 1) & where("p", ">=", -math.inf),
    ),
    "in a chain": (where("p", "=", 7) | where("p", "<", 7), where("p", ">", 7), where("p", ">=", -math.inf)),
    "impossible": (where("p", ">", math.inf), where("q", "=", 1), where("q", "=", 1)),
    # 0 and 10 lie in neither interval but within both bounds of their hull
    "intervals": (between(1, 5), between(4, 9), between(1, 5) | between(4, 9)),
    "beside another": (
        where("q", "=", 1) & where("p", "<", 5),
        where("q", "=", 2) & where("p", ">=", 5),
        where("q", "=", 1) & where("p", "<", 5) | where("q", "=", 2) & where("p", ">=", 5),
    ),
    "bools": (where("p", "=", True), where("p", "=", False), where("p", "=", True) | where("p", "=", False)),
}


@pytest.mark.parametrize("name", MERGED)
def test_merged(name: str) -> None:
    one, other, expected = MERGED[name]
    assert merge(one, other) == expected
    assert merge(other, one) == expected


@settings(max_examples=examples(300))
@given(related_filters(), st.lists(small_events, min_size=1, max_size=6))
def test_a_merger_is_exactly_the_union(pair: tuple[Filter, Filter], some: list[Event]) -> None:
    one, other = pair
    merged = merge(one, other)
    for event in some:
        assert merged.matches(event) == (one.matches(event) or other.matches(event))


# --- summarise


def size(filter: Filter) -> int:
    return len(msgspec.msgpack.encode(filter))


def test_a_budget_too_small_for_any_summary_is_refused() -> None:
    assert summarise([where("p", "=", 1)], 3) == EVERYTHING
    with pytest.raises(ContentError, match="at least 3 bytes, not 2"):
        summarise([], 2)


def test_the_exact_union_if_it_fits() -> None:
    some = [where("p", "=", 1), where("p", "=", 4), where("p", "<", 3)]
    exact = where("p", "<", 3) | where("p", "=", 4)
    assert summarise(some, size(exact)) == exact
    assert summarise(some, size(exact) - 1) == where("p", "<=", 4)
    assert summarise([], 3) == NOTHING


def test_the_size_of_long_arrays_is_counted() -> None:
    some = [where("p", "=", number) for number in range(0, 40, 2)]
    exact = Filter(tuple(filter.alternatives[0] for filter in some))
    assert summarise(some, size(exact)) == exact
    assert size(summarise(some, size(exact) - 1)) < size(exact)


def test_what_is_alike_is_joined_first() -> None:
    some = [where("name", "=", name) for name in ("java", "javascript", "rust", "ruby")]
    assert summarise(some, 30) == where("name", "^=", "java") | where("name", "^=", "ru")
    near = [where("q", "=", "x") & where("p", "<", bound) for bound in (10, 11)]
    far = [where("q", "=", "z") & where("p", ">", 1000)]
    assert summarise([*near, *far, where("q", "=", "x") & where("p", "<", 9)], 60) == near[1] | far[0]


def test_more_constraints_than_a_filter_may_have_are_widened_whatever_the_budget() -> None:
    half = [where(f"p{number}", "=", number) & where("q", "=", number) for number in range(MAX_CONSTRAINTS // 2)]
    some = [*half, where("r", "=", 1)]
    summary = summarise(some, 10**9)
    assert summary != EVERYTHING
    for number in (0, 77, MAX_CONSTRAINTS // 2 - 1):
        assert summary.matches(Event.of("t", {f"p{number}": number, "q": number}))


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(small_filters, max_size=6), st.integers(3, 90), st.lists(small_events, max_size=8), st.randoms())
def test_a_summary_lets_through_all_that_it_must(
    some: list[Filter], budget: int, published: list[Event], rng: random.Random
) -> None:
    summary = summarise(some, budget)
    assert size(summary) <= budget
    for event in published:
        if any(filter.matches(event) for filter in some):
            assert summary.matches(event)
    shuffled = rng.sample(some, len(some))
    assert msgspec.msgpack.encode(summarise(shuffled, budget)) == msgspec.msgpack.encode(summary)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(filters, max_size=4), st.integers(3, 300), st.lists(events, max_size=4))
def test_a_summary_is_sound_at_the_extremes(some: list[Filter], budget: int, published: list[Event]) -> None:
    summary = summarise(some, budget)
    assert size(summary) <= budget
    for event in published:
        if any(filter.matches(event) for filter in some):
            assert summary.matches(event)


def ranges(rng: random.Random) -> Filter:
    low = rng.randrange(1000)
    return between(low, low + rng.randrange(40)) & where("q", "^=", rng.choice("abc") + rng.choice("xyz"))


def texts(rng: random.Random) -> Filter:
    ending = "".join(rng.choices("abcd", k=2))
    return where("q", "$=", ending) & where("p", rng.choice(("<", ">", "=")), rng.randrange(1000))


@pytest.mark.parametrize("draw", [ranges, texts])
@pytest.mark.parametrize("budget", [30, 200, 1000])
def test_many_filters(draw: Callable[[random.Random], Filter], budget: int) -> None:
    rng = random.Random(11)
    some = [draw(rng) for _ in range(150)]
    summary = summarise(some, budget)
    assert budget / 2 < size(summary) <= budget
    matched = 0
    for _ in range(1500):
        text = rng.choice("abc") + rng.choice("xyz") + "".join(rng.choices("abcd", k=2))
        event = Event.of("t", {"p": rng.choices(range(1040), k=rng.randint(1, 3)), "q": text})
        if any(filter.matches(event) for filter in some):
            matched += 1
            assert summary.matches(event)
    assert matched > 300
    assert msgspec.msgpack.encode(summarise(some[::-1], budget)) == msgspec.msgpack.encode(summary)


# --- Filters that nobody writes but an attacker ---------------------------------------------------------------------


def hostile(name: str) -> list[Filter]:
    rng = random.Random(5)

    def text() -> str:
        return "".join(rng.choices("abc", k=9))

    most = MAX_CONSTRAINTS // 2
    return {
        "many texts in one": [Filter((tuple(Constraint("p", Operator.CONTAINS, text()) for _ in range(most)),))],
        "many exceptions": [Filter((tuple(Constraint("p", Operator.NE, 3 * n) for n in range(most)),))],
        "many attributes": [Filter((tuple(Constraint(f"p{n}", Operator.GT, n) for n in range(most)),))],
        "many alternatives": [Filter(tuple((Constraint("p", Operator.SUFFIX, text()),) for _ in range(most)))],
        "alternatives of many": [
            Filter(tuple(tuple(Constraint("p", Operator.CONTAINS, text()) for _ in range(32)) for _ in range(32)))
        ],
        "long texts": [
            Filter(
                tuple(tuple(Constraint("p", Operator.CONTAINS, "a" * 3000 + text()) for _ in range(6)) for _ in "ab")
            )
        ],
        "many filters of many": [
            Filter((tuple(Constraint("p", Operator.NE, rng.randrange(10**6)) for _ in range(64)),)) for _ in range(64)
        ],
    }[name]


@pytest.mark.parametrize(
    "name",
    [
        "many texts in one",
        "many exceptions",
        "many attributes",
        "many alternatives",
        "alternatives of many",
        "long texts",
        "many filters of many",
    ],
)
def test_the_work_is_bounded_by_the_length_of_the_filters(name: str) -> None:
    some = hostile(name)
    asked = sum(len(conjunction) for filter in some for conjunction in filter.alternatives)
    started = process_time()
    summary = summarise(some, 256)
    covers(some[0], some[-1])
    spent = process_time() - started
    assert size(summary) <= 256
    # Without a bound these took from minutes to days. A unit of effort is a few microseconds on a slow machine.
    assert spent < 4e-6 * 2 * (EFFORT + EFFORT_PER_CONSTRAINT * asked)


def test_a_filter_that_is_too_much_work_leaves_what_all_its_alternatives_have_in_common() -> None:
    (many,) = hostile("many texts in one")
    summary = summarise([many], 60)
    assert summary.alternatives[0]
    assert set(summary.alternatives[0]) <= set(many.alternatives[0])
    assert size(summary) <= 60
