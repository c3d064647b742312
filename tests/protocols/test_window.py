"""The duplicate window: what it remembers, and what it forgets first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roamcast.protocols.window import DuplicateWindow


def test_what_was_added_is_no_longer_new() -> None:
    window = DuplicateWindow(3)
    assert [window.add(id) for id in (7, 8, 7, 8)] == [True, True, False, False]
    assert (7 in window, 9 in window, len(window), list(window)) == (True, False, 2, [7, 8])


def test_the_oldest_goes_first_and_is_named() -> None:
    forgotten: list[int] = []
    window = DuplicateWindow(2, forgotten.append)
    assert [window.add(id) for id in (1, 2, 3, 4)] == [True] * 4
    assert forgotten == [1, 2]
    assert list(window) == [3, 4]


def test_hearing_it_again_does_not_make_an_event_younger() -> None:
    window = DuplicateWindow(2)
    assert [window.add(id) for id in (1, 2, 1, 3, 1)] == [True, True, False, True, True]


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_window_that_remembers_nothing_is_refused(capacity: int) -> None:
    with pytest.raises(ValueError, match=f"at least one event, not {capacity}"):
        DuplicateWindow(capacity)


@given(st.integers(1, 5), st.lists(st.integers(-4, 4)))
def test_it_is_a_list_of_the_last_that_were_new(capacity: int, ids: list[int]) -> None:
    forgotten, model = list[int](), list[int]()
    window = DuplicateWindow(capacity, forgotten.append)
    for id in ids:
        new = id not in model
        pushed_out = [model.pop(0)] if new and len(model) == capacity else []
        model += [id] if new else []
        assert (window.add(id), list(window)) == (new, model)
        assert forgotten == pushed_out
        forgotten.clear()
