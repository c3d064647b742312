"""Contacts: crossings worked out by hand, and whole small runs against looking at every nanosecond."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from facts.rows import complete
from roamcast.analysis.contacts import Contacts, DrawnRange, Reach, contacts
from roamcast.errors import RoamcastError
from roamcast.facts.recorder import batch_of
from roamcast.facts.schema import TABLES
from roamcast.sim.mobility.base import Leg, position

S = 1_000_000_000


def facts(**rows: Sequence[tuple[Any, ...]]) -> dict[str, pa.Table]:
    return {
        name: pa.Table.from_batches([batch_of([complete(name, row) for row in some], TABLES[name])])
        for name, some in rows.items()
        if some
    }


def rows(found: Contacts | None) -> list[tuple[int, int, int, int]]:
    assert found is not None
    columns = (found.sender, found.receiver, found.begin, found.until)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def still(node: int, x: float, *, room: int = -1, start: int = 0, end: int = 100 * S) -> tuple[Any, ...]:
    return node, start, end, x, 0.0, x, 0.0, room >= 0, room


def going(node: int, x0: float, x1: float, y: float = 0.0, end: int = 100 * S) -> tuple[Any, ...]:
    return node, 0, end, x0, y, x1, y, False, -1


# --- By hand --------------------------------------------------------------------------------------------------------


def test_a_node_that_passes_is_heard_from_the_edge_of_the_range_to_the_other() -> None:
    """At 1 m/s along y = 30, past a node at (50, 0) with a range of 50 m: 40 m to either side; both edges belong."""
    passing = facts(leg=[still(0, 50), going(1, 0, 100, 30.0)])
    assert rows(contacts(passing, 2, 100 * S, Reach(50.0))) == [(0, 1, 10 * S, 90 * S + 1)]


def test_a_contact_goes_on_over_the_end_of_a_leg() -> None:
    turning = [(1, 0, 10 * S, 0.0, 0.0, 10.0, 0.0, False, -1), (1, 10 * S, 20 * S, 10.0, 0.0, 0.0, 0.0, False, -1)]
    found = contacts(facts(leg=[still(0, 20), *turning]), 2, 20 * S, Reach(15.0))
    assert rows(found) == [(0, 1, 5 * S, 15 * S + 1)]


def test_a_touch_is_a_contact() -> None:
    """At 50 s it is exactly 30 m away; 240 ns earlier or later it still is, in doubles, for the core as for us."""
    touching = facts(leg=[still(0, 50), going(1, 0, 100, 30.0)])
    ((_, _, begin, until),) = rows(contacts(touching, 2, 100 * S, Reach(30.0)))
    assert 50 * S - 250 < begin <= 50 * S < until < 50 * S + 250
    assert rows(contacts(touching, 2, 100 * S, Reach(29.999999))) == []


def test_the_end_of_the_run_ends_contacts() -> None:
    found = contacts(facts(leg=[still(0, 0), still(1, 10)]), 2, 7, Reach(10.0))
    assert rows(found) == [(0, 1, 0, 7)]


@pytest.mark.parametrize(("drawn", "near"), [("certain", 1), ("mean", 2), ("possible", 3)])
def test_what_a_range_drawn_for_every_frame_reaches(drawn: DrawnRange, near: int) -> None:
    line = facts(leg=[still(0, 0), still(1, 10), still(2, 15), still(3, 20)])
    found = contacts(line, 4, S, Reach((10.0, 20.0)), drawn=drawn)
    assert [other for node, other, *_ in rows(found) if node == 0] == list(range(1, near + 1))


def test_a_range_of_its_own_for_each_node_is_heard_one_way() -> None:
    own = Reach(np.array([30.0, 10.0]))
    two = facts(leg=[still(0, 0), still(1, 20)])
    assert rows(contacts(two, 2, S, own, directed=True)) == [(0, 1, 0, S)]
    assert rows(contacts(two, 2, S, own)) == []


def test_where_both_ends_must_be_in_range_the_lesser_range_counts() -> None:
    own = Reach(np.array([30.0, 10.0, 25.0]), both_ends=True)
    three = facts(leg=[still(0, 0), still(1, 20), still(2, 24)])
    assert rows(contacts(three, 3, S, own)) == [(0, 2, 0, S), (1, 2, 0, S)]
    both = [(0, 2, 0, S), (1, 2, 0, S), (2, 0, 0, S), (2, 1, 0, S)]
    assert rows(contacts(three, 3, S, own, directed=True)) == both


def test_indoors_the_lesser_range_counts_in_both_directions() -> None:
    """Node 1 goes out after 3 s: from then on both have the range of outdoors."""
    legs = [still(0, 0), still(1, 20, room=4, end=3 * S), still(1, 20, start=3 * S)]
    assert rows(contacts(facts(leg=legs), 2, 9 * S, Reach(30.0, indoors=10.0))) == [(0, 1, 3 * S, 9 * S)]
    both = [(0, 1, 3 * S, 9 * S), (1, 0, 3 * S, 9 * S)]
    assert rows(contacts(facts(leg=legs), 2, 9 * S, Reach(30.0, indoors=10.0), directed=True)) == both


def test_walls_let_nothing_through() -> None:
    legs = [still(0, 0), still(1, 1), still(2, 2, room=0), still(3, 3, room=0), still(4, 4, room=1)]
    found = contacts(facts(leg=legs), 5, S, Reach(30.0, walls=True))
    assert [row[:2] for row in rows(found)] == [(0, 1), (2, 3)]
    assert len(rows(contacts(facts(leg=legs), 5, S, Reach(30.0)))) == 10


def test_who_is_away_is_in_no_contact() -> None:
    away = [(2 * S, 0, True, False), (3 * S, 1, True, False), (4 * S, 0, False, False), (5 * S, 1, False, False)]
    found = contacts(facts(leg=[still(0, 0), still(1, 1)], away=away), 2, 9 * S, Reach(5.0))
    assert rows(found) == [(0, 1, 0, 2 * S), (0, 1, 5 * S, 9 * S)]
    assert found is not None
    assert [column.tolist() for column in found.present] == [
        [0, 0, 1, 1],
        [0, 4 * S, 0, 5 * S],
        [2 * S, 9 * S, 3 * S, 9 * S],
    ]


def test_who_is_back_in_the_same_instant_was_not_away() -> None:
    away = [(2, 0, True, True), (2, 0, False, True), (3, 0, True, True), (20, 0, False, True)]
    found = contacts(facts(leg=[still(0, 0), still(1, 1)], away=away), 2, 9, Reach(5.0))
    assert rows(found) == [(0, 1, 0, 3)]


def test_links_last_until_they_are_taken_away() -> None:
    link = [(0, 0, 1, 0.0), (2, 1, 0, 0.5), (4, 0, 1, 0.3), (6, 0, 1, None), (8, 0, 1, 0.0), (8, 1, 2, 0.0)]
    one_way = contacts(facts(link=link), 3, 10, None, directed=True)
    assert rows(one_way) == [(0, 1, 0, 6), (0, 1, 8, 10), (1, 0, 2, 10), (1, 2, 8, 10)]
    assert rows(contacts(facts(link=link), 3, 10, None)) == [(0, 1, 2, 6), (0, 1, 8, 10)]


def test_both_ways_tells_each_direction() -> None:
    found = contacts(facts(leg=[still(0, 0), still(1, 1)]), 2, 9, Reach(5.0))
    assert found is not None
    assert rows(found.both_ways()) == [(0, 1, 0, 9), (1, 0, 0, 9)]
    assert found.both_ways().both_ways() is not found.both_ways()
    assert rows(found.both_ways().both_ways()) == [(0, 1, 0, 9), (1, 0, 0, 9)]


# --- What cannot be -------------------------------------------------------------------------------------------------


def test_a_node_whose_movement_was_not_recorded_leaves_contacts_unknown() -> None:
    assert contacts(facts(leg=[still(0, 0), still(2, 5)]), 3, S, Reach(9.0)) is None


@pytest.mark.parametrize(
    ("table", "row", "odd"),
    [("leg", still(5, 0), 5), ("link", (0, 0, 7, 0.0), 7), ("away", (0, -1, True, False), -1)],
)
def test_a_node_that_is_not_there_is_refused(table: str, row: tuple[Any, ...], odd: int) -> None:
    with pytest.raises(RoamcastError, match=rf"the table `{table}` names node {odd}, but the run has 5 nodes"):
        contacts(facts(**{table: [row]}), 5, S, Reach(9.0) if table == "leg" else None)


def test_other_nonsense_is_refused() -> None:
    with pytest.raises(RoamcastError, match="2 ranges for 3 nodes"):
        contacts(facts(leg=[still(node, 0) for node in range(3)]), 3, S, Reach(np.array([1.0, 2.0])))
    with pytest.raises(RoamcastError, match="0 nodes"):
        contacts({}, 0, S, None)
    with pytest.raises(RoamcastError, match="and 0 ns"):
        contacts({}, 3, 0, None)


# --- Against looking at every nanosecond ----------------------------------------------------------------------------

NODES, END = 3, 24
COORDINATE = st.integers(0, 12).map(float) | st.floats(0, 12)


@st.composite
def walks(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    """Three nodes that turn now and then, in and out of two rooms."""
    legs: list[tuple[Any, ...]] = []
    for node in range(NODES):
        turns = [0, *sorted(draw(st.sets(st.integers(1, END - 1), max_size=3))), END + draw(st.integers(0, 5))]
        places = [(draw(COORDINATE), draw(COORDINATE)) for _ in turns]
        for number in range(len(turns) - 1):
            room = draw(st.integers(-1, 1))
            ways = (*places[number], *places[number + 1])
            legs.append((node, turns[number], turns[number + 1], *ways, room >= 0, room))
    return draw(st.permutations(legs))


AWAY = st.lists(
    st.tuples(st.integers(0, END), st.integers(0, NODES - 1), st.booleans(), st.just(False)), max_size=5
).map(lambda some: sorted(some, key=lambda row: row[0]))
REACH = st.builds(
    Reach,
    st.integers(1, 9).map(float) | st.lists(st.floats(1, 9), min_size=NODES, max_size=NODES).map(np.array),
    st.none() | st.just(3.0),
    st.booleans(),
)


def hears(legs: list[tuple[Any, ...]], reach: Reach, sender: int, receiver: int, t: int) -> bool:
    """The model, as docs/model.md says it."""
    places, ranges, rooms = [], [], []
    for node in (sender, receiver):
        (leg,) = (row for row in legs if row[0] == node and row[1] <= t < row[2])
        places.append(position(Leg(*leg[1:]), t))
        own = float(np.broadcast_to(np.asarray(reach.outdoors), NODES)[node])
        ranges.append(reach.indoors if reach.indoors is not None and leg[7] else own)
        rooms.append(leg[8])
    (x, y), (x2, y2) = places
    bound = min(ranges) if reach.indoors is not None else ranges[0]
    dx, dy = x2 - x, y2 - y
    return dx * dx + dy * dy <= bound * bound and (not reach.walls or rooms[0] == rooms[1])


def on(away: list[tuple[int, int, bool, bool]], node: int, t: int) -> bool:
    return not [False, *(gone for time, who, gone, _ in away if who == node and time <= t)][-1]


def instants(found: Contacts | None) -> set[tuple[int, int, int]]:
    return {(a, b, t) for a, b, begin, until in rows(found) for t in range(begin, until)}


@settings(max_examples=examples(200), deadline=None)  # the first example compiles
@given(walks(), AWAY, REACH)
def test_movement_agrees_with_looking_at_every_nanosecond(
    legs: list[tuple[Any, ...]], away: list[tuple[int, int, bool, bool]], reach: Reach
) -> None:
    heard = {
        (a, b, t)
        for t in range(END)
        for a in range(NODES)
        for b in range(NODES)
        if a != b and on(away, a, t) and on(away, b, t) and hears(legs, reach, a, b, t)
    }
    recorded = facts(leg=legs, away=away)
    one_way = contacts(recorded, NODES, END, reach, directed=True)
    assert instants(one_way) == heard
    mutual = contacts(recorded, NODES, END, reach)
    assert instants(mutual) == {(a, b, t) for a, b, t in heard if a < b and (b, a, t) in heard}
    for found in (one_way, mutual):
        ordered = rows(found)
        assert ordered == sorted(ordered)
        # No contact is told in two pieces.
        assert all(one[:2] != other[:2] or one[3] < other[2] for one, other in pairwise(ordered))


LINKS = st.lists(
    st.tuples(
        st.integers(0, END + 3), st.integers(0, NODES - 1), st.integers(0, NODES - 1), st.none() | st.just(0.3)
    ).filter(lambda row: row[1] != row[2]),
    max_size=25,
).map(lambda some: sorted(some, key=lambda row: row[0]))


@settings(max_examples=examples(150), deadline=None)
@given(LINKS, AWAY)
def test_links_agree_with_looking_at_every_nanosecond(
    link: list[tuple[int, int, int, float | None]], away: list[tuple[int, int, bool, bool]]
) -> None:
    heard = set()
    for t in range(END):
        state = {(a, b): loss for time, a, b, loss in link if time <= t}
        up = (pair for pair, loss in state.items() if loss is not None)
        heard |= {(a, b, t) for a, b in up if on(away, a, t) and on(away, b, t)}
    recorded = facts(link=link, away=away)
    assert instants(contacts(recorded, NODES, END, None, directed=True)) == heard
    mutual = {(a, b, t) for a, b, t in heard if a < b and (b, a, t) in heard}
    assert instants(contacts(recorded, NODES, END, None)) == mutual


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**32))
def test_at_real_speeds_the_edges_are_exact_to_the_nanosecond(seed: int) -> None:
    """Kilometres and minutes: one nanosecond earlier and one later it is as the core would decide."""
    rng = np.random.default_rng(seed)
    legs = []
    for node in range(2):
        turn, end = int(rng.integers(1, 200 * S)), 400 * S
        a, b, c = (tuple(rng.uniform(0, 1000, 2)) for _ in range(3))
        legs += [(node, 0, turn, *a, *b, False, -1), (node, turn, end, *b, *c, False, -1)]
    reach = Reach(float(rng.uniform(50, 300)))
    edges = {
        t: came
        for _, _, begin, until in rows(contacts(facts(leg=legs), 2, 400 * S, reach))
        for t, came in ((begin, True), (until, False))
    }
    for t, came in edges.items():
        if 0 < t < 400 * S:
            assert hears_of_two(legs, reach, t - 1) is not came
            assert hears_of_two(legs, reach, t) is came
    # Far from the edges, whoever looks now and then sees the same.
    for t in range(0, 400 * S, 7 * S):
        crossed = sum(1 if came else -1 for at, came in edges.items() if at <= t)
        assert hears_of_two(legs, reach, t) is bool(crossed)


def hears_of_two(legs: list[tuple[Any, ...]], reach: Reach, t: int) -> bool:
    places = [position(Leg(*leg[1:]), t) for leg in legs if leg[1] <= t < leg[2]]
    assert isinstance(reach.outdoors, float)
    return math.dist(*places) <= reach.outdoors
