"""The soft-state table: what was heard last counts, until it is too long ago or there is no room."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roamcast.protocols.neighbours import Heard, NeighbourTable


def test_what_was_heard_last_of_a_node_counts() -> None:
    table: NeighbourTable[str] = NeighbourTable(lifetime=10, capacity=3)
    assert table.hear(1, 7, "jazz") is None
    assert table.hear(4, 7, "blues") is None
    assert table.get(7) == Heard(4, "blues")
    assert len(table) == 1


def test_of_a_stranger_nothing_is_known() -> None:
    table: NeighbourTable[str] = NeighbourTable(lifetime=10, capacity=3)
    table.hear(1, 7, "jazz")
    assert table.get(8) is None
    assert 7 in table
    assert 8 not in table


def test_a_node_goes_when_its_lifetime_is_exceeded_not_when_it_is_reached() -> None:
    table: NeighbourTable[str] = NeighbourTable(lifetime=10, capacity=3)
    table.hear(1, 7, "jazz")
    assert table.expire(11) == []
    assert table.expire(12) == [7]
    assert table.expire(12) == []
    assert list(table) == []


def test_those_that_go_are_named_longest_ago_first_and_the_refreshed_stay() -> None:
    table: NeighbourTable[str] = NeighbourTable(lifetime=10, capacity=9)
    for now, node in enumerate((5, 3, 8, 4)):
        table.hear(now, node, "jazz")
    table.hear(9, 3, "jazz")
    assert list(table) == [5, 8, 4, 3]
    assert table.expire(14) == [5, 8, 4]
    assert list(table) == [3]


def test_a_renewed_node_keeps_its_value_and_a_stranger_stays_one() -> None:
    table: NeighbourTable[str] = NeighbourTable(lifetime=10, capacity=3)
    table.hear(1, 7, "jazz")
    table.hear(2, 8, "blues")
    assert table.renew(5, 7) == Heard(5, "jazz")
    assert list(table) == [8, 7]
    assert table.renew(5, 9) is None
    assert 9 not in table


def test_in_a_full_table_the_one_not_heard_of_for_longest_makes_room() -> None:
    table: NeighbourTable[str] = NeighbourTable(lifetime=10, capacity=2)
    table.hear(1, 7, "jazz")
    table.hear(2, 8, "jazz")
    assert table.hear(3, 7, "jazz") is None, "it is in the table already"
    assert table.hear(4, 9, "jazz") == 8
    assert list(table) == [7, 9]


@pytest.mark.parametrize(("lifetime", "capacity"), [(-1, 1), (0, 0)])
def test_a_table_that_could_hold_nothing_is_refused(lifetime: int, capacity: int) -> None:
    with pytest.raises(ValueError, match=f"not {lifetime} and {capacity}"):
        NeighbourTable(lifetime, capacity)


@given(
    st.integers(0, 6),
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 4), st.none() | st.integers(0, 5)), max_size=40),
)
def test_it_does_what_a_list_searched_from_end_to_end_would(
    lifetime: int, capacity: int, steps: list[tuple[int, int | None]]
) -> None:
    """A step is the time that passes, and who is heard of then; None: who is too long ago goes."""
    table: NeighbourTable[int] = NeighbourTable(lifetime, capacity)
    model: list[tuple[int, int]] = []  # (last, node), longest ago first
    now = 0
    for wait, node in steps:
        now += wait
        if node is None:
            assert table.expire(now) == [old for last, old in model if last + lifetime < now]
            model = [(last, old) for last, old in model if last + lifetime >= now]
            continue
        model = [(last, old) for last, old in model if old != node]
        evicted = model.pop(0)[1] if len(model) == capacity else None
        model.append((now, node))
        assert table.hear(now, node, now) == evicted
        assert [(heard.last, node) for node in table if (heard := table.get(node))] == model
