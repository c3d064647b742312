"""Partial documents: put together from pieces in any order, within bounds."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roamcast.protocols.pieces import PIECE_COST, Cut, Partials


def cut_up(document: bytes, size: int) -> list[bytes]:
    return [document[start : start + size] for start in range(0, len(document), size)] or [b""]


def test_ten_bytes_in_pieces_of_four() -> None:
    cut = Cut(10, 4)
    assert (cut.pieces, cut.all, [cut.span(number) for number in range(3)]) == (3, 0b111, [(0, 4), (4, 8), (8, 10)])
    assert (Cut(8, 4).pieces, Cut(0, 4).pieces, Cut(0, 4).span(0)) == (2, 1, (0, 0))


@given(st.binary(max_size=40), st.integers(1, 9), st.randoms(use_true_random=False))
def test_pieces_in_any_order_and_more_than_once_make_the_document(document: bytes, size: int, rng: Random) -> None:
    pieces = list(enumerate(cut_up(document, size)))
    order = pieces * 2
    rng.shuffle(order)
    partials: Partials[str, None] = Partials(4, 10_000)
    cut, here = Cut(len(document), size), set()
    for number, octets in order:
        partial = partials.add("d", cut, number, octets)
        here.add(number)
        assert partial is not None
        assert partial.have == sum(1 << number for number in here)
        assert partial.complete == (len(here) == len(pieces))
        assert partial.missing == cut.all - partial.have
    assert partials.get("d").prefix() == document  # type: ignore[union-attr]


def test_the_prefix_ends_where_a_piece_is_missing() -> None:
    partials: Partials[str, None] = Partials(4, 1000)
    cut = Cut(10, 4)
    partials.add("d", cut, 2, b"ij")
    partial = partials.add("d", cut, 0, b"abcd")
    assert partial is not None
    assert (partial.prefix(), partial.have) == (b"abcd", 0b101)


def test_shared_pieces_are_marked_and_not_copied() -> None:
    partials: Partials[str, object] = Partials(4, 1000)
    whole = object()
    partial = partials.add_shared("d", Cut(10, 4), 0b101, whole)
    assert partial is not None
    assert (partial.whole is whole, partial.octets, partial.have) == (True, {}, 0b101)
    partial = partials.add_shared("d", Cut(10, 4), 0b1111010, whole)  # bits beyond the document mean nothing
    assert partial is not None
    assert partial.complete


@pytest.mark.parametrize(("number", "octets"), [(-1, b"abcd"), (3, b""), (0, b"abc"), (0, b"abcde"), (2, b"ijk")])
def test_what_is_not_a_piece_of_the_document_is_refused(number: int, octets: bytes) -> None:
    partials: Partials[str, None] = Partials(4, 1000)
    assert partials.add("d", Cut(10, 4), number, octets) is None
    assert len(partials) == 0


def test_another_cut_of_the_same_document_begins_anew() -> None:
    partials: Partials[str, None] = Partials(4, 1000)
    partials.add("d", Cut(10, 4), 0, b"abcd")
    partial = partials.add("d", Cut(10, 5), 1, b"fghij")
    assert partial is not None
    assert (partial.have, partials.cost) == (0b10, 5 + PIECE_COST)


def test_what_made_no_progress_for_longest_makes_room() -> None:
    partials: Partials[str, None] = Partials(2, 1000)
    for key in "abac":
        partials.add(key, Cut(10, 4), 0, b"abcd")
    assert ["a" in partials, "b" in partials, "c" in partials] == [True, False, True]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=40))
def test_the_bounds_hold_whatever_comes(pieces: list[tuple[int, int]]) -> None:
    partials: Partials[int, None] = Partials(3, 4 * (4 + PIECE_COST))
    for key, number in pieces:
        partials.add(key, Cut(16, 4), number, b"abcd")
        assert len(partials) <= 3
        assert partials.cost <= 4 * (4 + PIECE_COST)
    for key in range(6):
        partials.pop(key)
    assert (len(partials), partials.cost) == (0, 0)


def test_a_store_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="room for one, not for 0"):
        Partials(0, 100)


def test_idle_documents_had_no_progress_since_the_last_time() -> None:
    partials: Partials[str, None] = Partials(4, 1000)
    cut = Cut(10, 4)
    partials.add("a", cut, 0, b"abcd")
    partials.add("b", cut, 0, b"abcd")
    partials.drop_idle()
    assert len(partials) == 2
    partials.add("a", cut, 1, b"efgh")
    partials.add("c", cut, 0, b"abcd")
    partials.drop_idle()
    assert [key for key in "abc" if key in partials] == ["a", "c"]
    assert partials.cost == 3 * cut.cost
    partials.drop_idle()
    assert (len(partials), partials.cost) == (0, 0)


def test_the_pieces_that_overlap_a_span() -> None:
    cut = Cut(95, 10)
    assert cut.overlapping(0, 10) == 0b1
    assert cut.overlapping(9, 11) == 0b11
    assert cut.overlapping(20, 21) == 0b100
    assert cut.overlapping(85, 200) == 0b11_0000_0000


def test_dropped_pieces_are_missing_and_a_document_without_pieces_is_gone() -> None:
    partials: Partials[int, object] = Partials(2, 10_000)
    cut = Cut(30, 10)
    for number in range(3):
        partials.add(1, cut, number, bytes(10))
    full = partials.cost
    partials.drop(1, 0b010)
    partial = partials.get(1)
    assert partial is not None
    assert (partial.have, partial.missing, sorted(partial.octets)) == (0b101, 0b010, [0, 2])
    assert partials.cost == full * 2 // 3
    partials.drop(1, 0b111)
    assert (len(partials), partials.cost) == (0, 0)
