"""What was possible: a ferry by hand, and generated contacts against carrying an event through every nanosecond."""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from roamcast.analysis.contacts import Contacts, Spans, ordered
from roamcast.analysis.possible import NEVER, earliest, relayed
from roamcast.errors import RoamcastError

Row = tuple[int, int, int, int]
"""Sender, receiver, begin and until."""


def made(rows: Iterable[Row], nodes: int, end: int, *, mutual: bool) -> Contacts:
    a, b, begin, until = np.array(sorted(rows), np.int64).reshape(-1, 4).T
    everywhere = Spans(np.arange(nodes), np.zeros(nodes, np.int64), np.full(nodes, end))
    return ordered(nodes, end, mutual, a, b, begin, until, everywhere)


def times(found: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> list[list[int | None]]:
    return [[None if time == NEVER else time for time in event] for event in found.tolist()]


# --- By hand --------------------------------------------------------------------------------------------------------

# A meets B from 10 to 20, B meets C from 30 to 40: they never form a path. C and D are together all the time.
FERRY = made([(0, 1, 10, 20), (1, 2, 30, 40), (2, 3, 0, 100)], 4, 100, mutual=True)


def test_a_ferry() -> None:
    found = earliest(FERRY, np.array([0, 0, 0, 2]), np.array([5, 15, 20, 35]))
    assert times(found) == [[5, 10, 30, 30], [15, 15, 30, 30], [20, None, None, None], [None, 35, 35, 35]]


def test_a_transfer_must_end_within_the_contact() -> None:
    zero = np.array([0, 0, 0])
    assert times(earliest(FERRY, zero, np.array([0, 12, 13]), transfer=8)) == [
        [0, 18, 38, 46],
        [12, 20, 38, 46],
        [13, None, None, None],
    ]
    # Nobody meets for 11 but the last two.
    assert times(earliest(FERRY, np.array([0, 2]), np.array([0, 0]), transfer=11)) == [
        [0, None, None, None],
        [None, None, 0, 11],
    ]


def test_who_does_not_carry_passes_nothing_on() -> None:
    carriers = np.array([[False, False, False, True], [False, True, False, False]])
    found = earliest(FERRY, np.array([0, 0]), np.array([0, 0]), carriers=carriers)
    assert times(found) == [[0, 10, None, None], [0, 10, 30, None]]


def test_relays_bridge_what_is_connected_now() -> None:
    """A and C carry, B between them only relays; B and C meet when A and B have parted: then it is no use."""
    carriers = np.array([[True, False, True, True]])
    start = np.array([0]), np.array([0])
    later = made([(0, 1, 10, 20), (1, 2, 15, 40), (2, 3, 50, 60)], 4, 100, mutual=True)
    assert times(earliest(later, *start, carriers=carriers)) == [[0, 10, None, None]]
    assert times(earliest(relayed(later, 2), *start, carriers=carriers)) == [[0, 10, 15, 50]]
    assert times(earliest(relayed(FERRY, 3), *start, carriers=carriers)) == [[0, 10, None, None]]


def test_nothing_published_or_nobody_met() -> None:
    none = np.empty(0, np.int64)
    assert earliest(FERRY, none, none).shape == (0, 4)
    alone = made([], 2, 9, mutual=True)
    assert times(earliest(alone, np.array([1]), np.array([3]))) == [[None, 3]]
    assert len(relayed(alone, 2)) == 0


def test_nonsense_is_refused() -> None:
    one = np.array([0]), np.array([0])
    with pytest.raises(RoamcastError, match="a transfer of -1 ns"):
        earliest(FERRY, *one, transfer=-1)
    with pytest.raises(RoamcastError, match="publishers are numbered from 0 to 3"):
        earliest(FERRY, np.array([4]), np.array([0]))
    with pytest.raises(RoamcastError, match=r"carriers: \(2, 4\) instead of 1 events by 4 nodes"):
        earliest(FERRY, *one, carriers=np.ones((2, 4), np.bool_))
    with pytest.raises(RoamcastError, match="0 hops"):
        relayed(FERRY, 0)


# --- Against carrying it through every nanosecond -------------------------------------------------------------------

NODES, END = 5, 12


@st.composite
def some_contacts(draw: st.DrawFn) -> tuple[list[Row], bool]:
    """Few enough that paths need time; and whether they are mutual."""
    rows: list[Row] = []
    mutual = draw(st.booleans())
    for a in range(NODES):
        for b in range(a + 1 if mutual else 0, NODES):
            if a != b and draw(st.booleans()):
                edges = sorted(draw(st.sets(st.integers(0, END), max_size=4)))
                rows += [(a, b, *span) for span in zip(edges[::2], edges[1::2], strict=False)]
    return rows, mutual


def heard(rows: Iterable[Row], mutual: bool) -> set[tuple[int, int, int]]:
    """(sender, receiver, instant)."""
    there = {(a, b, t) for a, b, begin, until in rows for t in range(begin, until)}
    return there | {(b, a, t) for a, b, t in there} if mutual else there


def near(up: set[tuple[int, int, int]], hops: int) -> set[tuple[int, int, int]]:
    """Within so many hops at one instant."""
    found = up
    for _ in range(hops - 1):
        steps = {(a, c, t) for a, b, t in found for b2, c, t2 in up if b == b2 and t == t2 and a != c}
        found = found | steps
    return found


def carried(
    up: set[tuple[int, int, int]], publisher: int, published: int, carriers: set[int], transfer: int
) -> list[int | None]:
    """Instant by instant: who has it begins to send to all that hear it, which works if they stay in touch."""
    has: dict[int, int] = {publisher: published}
    for now in range(published, END):
        more = True
        while more:  # at once, as long as somebody new has it
            more = False
            for node in sorted(carriers | {publisher}):
                if has.get(node, END) > now:
                    continue
                for other in range(NODES):
                    lasts = all((node, other, t) in up for t in range(now, now + max(transfer, 1)))
                    if lasts and has.get(other, END + transfer + 1) > now + transfer:
                        has[other] = now + transfer
                        more = True
    return [has.get(node) for node in range(NODES)]


@settings(max_examples=examples(200), deadline=None)  # the first example compiles
@given(
    some_contacts(),
    st.integers(0, NODES - 1),
    st.integers(0, END - 1),
    st.sets(st.integers(0, NODES - 1)),
    st.integers(0, 4),
)
def test_earliest_is_what_carrying_it_through_time_gives(
    some: tuple[list[Row], bool], publisher: int, published: int, carriers: set[int], transfer: int
) -> None:
    rows, mutual = some
    contacts = made(rows, NODES, END, mutual=mutual)
    up = heard(rows, mutual)
    event = np.array([publisher]), np.array([published])
    everybody = set(range(NODES))
    found = times(earliest(contacts, *event, transfer=transfer))
    assert found == [carried(up, publisher, published, everybody, transfer)]
    mask = np.array([[node in carriers for node in range(NODES)]])
    found = times(earliest(contacts, *event, carriers=mask, transfer=transfer))
    assert found == [carried(up, publisher, published, carriers, transfer)]


@settings(max_examples=examples(100), deadline=None)
@given(some_contacts(), st.integers(1, 4))
def test_relayed_is_within_so_many_hops_at_every_instant(some: tuple[list[Row], bool], hops: int) -> None:
    rows, mutual = some
    found = relayed(made(rows, NODES, END, mutual=mutual), hops)
    columns = (column.tolist() for column in (found.sender, found.receiver, found.begin, found.until))
    assert heard(zip(*columns, strict=True), mutual=False) == near(heard(rows, mutual), hops)
