"""Ranks: the arithmetic that keeps parent pointers from forming a cycle, and what becomes of it at its bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roamcast.protocols.tree.rank import (
    MAX_RANK,
    MAX_SEQUENCE,
    STEP,
    between,
    leader_rank,
    sequence_above,
)

ranks = st.integers(0, MAX_RANK)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 0, None),
        (0, 1, None),
        (5, 4, None),
        (0, 2, 1),
        (0, 16, 14),
        (100, 180, 170),
        (0, leader_rank(1), leader_rank(1) // 8 * 7),
    ],
)
def test_between_is_near_the_upper_end(low: int, high: int, expected: int | None) -> None:
    assert between(low, high) == expected


@given(ranks, ranks)
def test_between_is_between_or_there_is_no_room(low: int, high: int) -> None:
    rank = between(low, high)
    if rank is None:
        assert high - low < 2
    else:
        assert low < rank < high


@given(st.integers(0, MAX_RANK - 1))
def test_a_leader_can_rise_above_any_rank_but_the_last(rank: int) -> None:
    sequence = sequence_above(rank)
    assert leader_rank(sequence) > rank
    assert leader_rank(sequence - 1) <= rank, "the least that will do"


def test_the_last_sequence_number_is_the_last() -> None:
    assert leader_rank(MAX_SEQUENCE) == leader_rank(MAX_SEQUENCE + 1) == MAX_RANK
    assert sequence_above(MAX_RANK) > MAX_SEQUENCE


def test_a_deep_tree_fits_below_a_leader() -> None:
    """As many levels as a tree may have, each a step below the one above, stay above the number before."""
    assert leader_rank(8) - 255 * STEP > leader_rank(7)


def test_a_long_path_fits_between_two_numbers() -> None:
    """Each node of a path takes its place below the one before, from the top: with ranks far apart, 150 do."""
    rank, low = leader_rank(2), leader_rank(1)
    for _ in range(150):
        next_rank = between(low, rank)
        assert next_rank is not None
        rank = next_rank
    assert rank > low
