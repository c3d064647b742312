"""Islands: a line that breaks, by hand; and generated contacts against looking at every nanosecond."""

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from roamcast.analysis import islands as network
from roamcast.analysis.contacts import Contacts, Spans, ordered
from roamcast.analysis.islands import agreement, islands
from roamcast.errors import RoamcastError
from roamcast.units import SECOND

Row = tuple[int, int, int, int]
"""Two nodes, begin and until."""


def made(rows: Iterable[Row], nodes: int, end: int, away: Iterable[tuple[int, int, int]] = ()) -> Contacts:
    """Mutual contacts; nodes are away in the given spans, which are apart, and then have no contacts."""
    on = []
    for node in range(nodes):
        edges = [0, *(edge for who, *span in sorted(away) if who == node for edge in span), end]
        on += [(node, a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]
    a, b, begin, until = np.array(sorted(rows), np.int64).reshape(-1, 4).T
    return ordered(nodes, end, True, a, b, begin, until, Spans(*np.array(on, np.int64).reshape(-1, 3).T))


# --- By hand --------------------------------------------------------------------------------------------------------

# 0 - 1 - 2 - 3, of which 1 - 2 breaks at 6 s; 4 is alone, and away from 2 s to 8 s. Looked at from 1 s to 11 s.
S = SECOND
LINE = made([(0, 1, 0, 11 * S), (1, 2, 3 * S, 6 * S), (2, 3, 0, 11 * S)], 5, 11 * S, [(4, 2 * S, 8 * S)])


def test_a_line_that_breaks() -> None:
    seen = islands(LINE, S, widths=True)
    assert (seen.weight // S).tolist() == [1, 1, 3, 2, 3]
    assert seen.present.tolist() == [5, 4, 4, 4, 5]
    assert seen.number.tolist() == [3, 2, 1, 2, 3]
    assert seen.largest.tolist() == [2, 2, 4, 2, 2]
    assert seen.number_mean() == pytest.approx((3 + 2 + 3 * 1 + 2 * 2 + 3 * 3) / 10)
    assert seen.largest_share() == pytest.approx((2 / 5 + 2 / 4 + 3 + 2 * 2 / 4 + 3 * 2 / 5) / 10)
    assert seen.size() == pytest.approx((5 + 4 + 3 * 4 + 2 * 4 + 3 * 5) / (3 + 2 + 3 + 4 + 9))
    assert seen.size_by_node() == pytest.approx((9 + 8 + 3 * 16 + 2 * 8 + 3 * 9) / (5 + 4 + 12 + 8 + 15))
    # Two islands of one hop and one of none; from 3 s to 6 s one of three hops.
    assert seen.width() == pytest.approx((2 + 2 + 3 * 3 + 2 * 2 + 3 * 2) / (3 + 2 + 3 + 4 + 9))
    assert seen.width_by_node() == pytest.approx((4 + 4 + 3 * 12 + 2 * 4 + 3 * 4) / (5 + 4 + 12 + 8 + 15))
    assert seen.greatest_width() == 3
    # Ordered pairs with a way: 4 of 20 when node 4 is there, 4 of 12 when not, and all 12 of the whole line.
    assert seen.pairs_connected() == pytest.approx((4 / 20 + 4 / 12 + 3 * 1 + 2 * 4 / 12 + 3 * 4 / 20) / 10)
    # Looked at ten times; at three of them the line of four is whole: 1 + 2 + 3 + 1 + 2 + 1 hops each way.
    assert network.path_hops(LINE, S, S) == pytest.approx((3 * 20 + 7 * 4) / (3 * 12 + 7 * 4))


def test_contacts_by_hand() -> None:
    assert network.degree(LINE, S) == pytest.approx(2 * (10 + 3 + 10) / (10 * 4 + 1 + 3))
    assert network.breaks_per_minute(LINE, S) == pytest.approx(6)
    assert network.changes_per_second(LINE, S) == pytest.approx(2 / 10)
    twice = made([(0, 1, 2, 4), (0, 1, 7, 9), (0, 2, 0, 5), (1, 2, 6, 20), (1, 2, 1, 5)], 3, 20)
    assert sorted(network.durations(twice, 1).tolist()) == [2, 2]
    assert sorted(network.gaps(twice, 0).tolist()) == [1, 3]
    assert network.gaps(twice, 4).tolist() == [1]


def test_nothing_is_measured_of_no_time() -> None:
    seen = islands(LINE, 11 * S, widths=True)
    figures = [seen.number_mean(), seen.largest_share(), seen.size(), seen.width(), seen.greatest_width()]
    assert figures == [None] * 5
    assert network.breaks_per_minute(LINE, 11 * S) is None
    assert network.changes_per_second(LINE, 11 * S) is None
    assert network.path_hops(LINE, 11 * S, S) is None
    assert network.degree(LINE, 11 * S) is None
    assert agreement(LINE, LINE, 11 * S) == (None, None, None, None)


def test_widths_are_measured_when_asked_for() -> None:
    seen = islands(LINE, S)
    assert (seen.width(), seen.width_by_node(), seen.greatest_width()) == (None, None, None)


def test_a_tree_over_a_line() -> None:
    """The tree has 1 - 2 until 8 s although it is gone at 6 s, and 4 is never on it."""
    tree = made([(0, 1, 2 * S, 11 * S), (1, 2, 3 * S, 8 * S), (2, 3, 0, 11 * S)], 4, 11 * S)
    line = made([(0, 1, 0, 11 * S), (1, 2, 3 * S, 6 * S), (2, 3, 0, 11 * S)], 4, 11 * S)
    believed = agreement(tree, line, S)
    assert believed == pytest.approx((5 / 10, (3 + 2 + 5 * 1 + 3 * 2) / 10, 7 / 10, (2 / 4 + 9) / 10))
    # By what is there, it falls apart as the network does, and is connected for three seconds only.
    there = agreement(tree.while_in(line), line, S)
    assert there == pytest.approx((3 / 10, (3 + 2 + 3 * 1 + 5 * 2) / 10, 9 / 10, (2 / 4 + 9) / 10))
    assert agreement(tree, None, S) == (*believed[:2], None, None)


def test_islands_need_mutual_contacts() -> None:
    with pytest.raises(RoamcastError, match="mutual contacts"):
        islands(LINE.both_ways(), 0)
    with pytest.raises(RoamcastError, match="mutual contacts"):
        agreement(LINE.both_ways(), LINE, 0)


# --- Against looking at every nanosecond ----------------------------------------------------------------------------

NODES, END = 6, 16


@st.composite
def some_contacts(draw: st.DrawFn) -> list[Row]:
    rows = []
    for a in range(NODES):
        for b in range(a + 1, NODES):
            edges = sorted(draw(st.sets(st.integers(0, END), max_size=4)))
            rows += [(a, b, *span) for span in zip(edges[::2], edges[1::2], strict=False)]
    return rows


def distances(rows: Iterable[Row], t: int) -> list[dict[int, int]]:
    """From each node to those it is connected with, by walking."""
    near = {node: {b for a, b, *_ in both_ways(rows, t) if a == node} for node in range(NODES)}
    found = []
    for source in range(NODES):
        reached, edge, hops = {source: 0}, {source}, 0
        while edge:
            hops += 1
            edge = {other for node in edge for other in near[node]} - set(reached)
            reached |= dict.fromkeys(edge, hops)
        found.append(reached)
    return found


def both_ways(rows: Iterable[Row], t: int) -> list[Row]:
    up = [row for row in rows if row[2] <= t < row[3]]
    return [*up, *((b, a, begin, until) for a, b, begin, until in up)]


def mean(values: Iterable[Fraction]) -> float | None:
    some = list(values)
    return float(sum(some) / len(some)) if some else None


@settings(max_examples=examples(100), deadline=None)  # the first example compiles
@given(some_contacts(), st.integers(0, END - 1), st.booleans())
def test_islands_agree_with_looking_at_every_nanosecond(rows: list[Row], start: int, stepwise: bool) -> None:
    widths, sizes, by_node = [], [], []
    numbers, largest = [], []
    for t in range(start, END):
        reached = distances(rows, t)
        of_now = {frozenset(one): max(max(reached[node].values()) for node in one) for one in reached}
        numbers.append(Fraction(len(of_now)))
        largest.append(Fraction(max(map(len, of_now)), NODES))
        widths += [Fraction(width) for width in of_now.values()]
        by_node += [Fraction(of_now[frozenset(one)]) for one in reached]
        sizes += [Fraction(len(one)) for one in reached]
    seen = islands(made(rows, NODES, END), start, widths=True, step=1 if stepwise else None)
    assert seen.number_mean() == pytest.approx(mean(numbers))
    assert seen.largest_share() == pytest.approx(mean(largest))
    assert seen.size_by_node() == pytest.approx(mean(sizes))
    assert seen.width() == pytest.approx(mean(widths))
    assert seen.width_by_node() == pytest.approx(mean(by_node))
    assert seen.greatest_width() == max(widths)


@settings(max_examples=examples(100), deadline=None)
@given(some_contacts(), some_contacts(), st.integers(0, END - 1))
def test_agreement_is_that_of_every_nanosecond(tree: list[Row], line: list[Row], start: int) -> None:
    connected, parts, matched, reach = [], [], [], []
    for t in range(start, END):
        ours, theirs = ([frozenset(one) for one in distances(rows, t)] for rows in (tree, line))
        pairs = [(a, b) for a in range(NODES) for b in theirs[a] if a != b]
        connected.append(Fraction(len(set(ours)) == 1))
        parts.append(Fraction(len(set(ours))))
        matched.append(Fraction(ours == theirs))
        if pairs:
            reach.append(Fraction(sum(b in ours[a] for a, b in pairs), len(pairs)))
    found = agreement(made(tree, NODES, END), made(line, NODES, END), start)
    assert found == pytest.approx((mean(connected), mean(parts), mean(matched), mean(reach)))


@settings(max_examples=examples(100), deadline=None)
@given(some_contacts(), some_contacts())
def test_while_in_is_what_both_have(ours: list[Row], theirs: list[Row]) -> None:
    shared = made(ours, NODES, END).while_in(made(theirs, NODES, END))
    columns = (shared.sender, shared.receiver, shared.begin, shared.until)
    found = [(a, b, t) for a, b, begin, until in zip(*columns, strict=True) for t in range(begin, until)]
    both = [{(a, b, t) for a, b, begin, until in rows for t in range(begin, until)} for rows in (ours, theirs)]
    assert sorted(found) == sorted(both[0] & both[1])
