"""The replay window, beside a set that forgets nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roamcast.live.link.replay import WINDOW, Replay, Verdict


def test_each_counter_is_taken_once_in_any_order() -> None:
    replay = Replay()
    assert [replay.accept(1, counter) for counter in (5, 5, 3, 4, 3, 9, 5, 8)] == [
        True, False, True, True, False, True, False, True,
    ]  # fmt: skip
    assert replay.export() == {1: 9}


def test_what_is_older_than_the_window_is_refused() -> None:
    replay = Replay()
    assert replay.accept(1, 5000)
    assert replay.accept(1, 5000 - WINDOW + 1)
    assert not replay.accept(1, 5000 - WINDOW)


def test_counter_0_is_a_counter_and_a_long_jump_forgets_nothing_wrongly() -> None:
    replay = Replay()
    assert replay.accept(1, 0)
    assert not replay.accept(1, 0)
    assert replay.accept(1, 2**63 - 1)
    assert not replay.accept(1, 2**63 - 1)
    assert not replay.accept(1, 0)


def test_senders_do_not_concern_each_other() -> None:
    replay = Replay()
    assert all(replay.accept(sender, 7) for sender in (1, 2, 3))


counters = st.one_of(st.integers(0, 40), st.integers(WINDOW - 5, 2 * WINDOW + 5), st.integers(0, 2**63 - 1))


@given(st.lists(st.tuples(st.integers(0, 2), counters)))
def test_it_is_a_set_with_a_window(frames: list[tuple[int, int]]) -> None:
    replay, taken = Replay(), set[tuple[int, int]]()
    for sender, counter in frames:
        highest = max((c for s, c in taken if s == sender), default=-1)
        new = (sender, counter) not in taken and counter > highest - WINDOW
        assert replay.judge(sender, counter) is (Verdict.NEW if new else Verdict.SEEN)
        assert replay.accept(sender, counter) == new
        taken |= {(sender, counter)} if new else set()


@given(st.lists(st.tuples(st.integers(0, 2), counters), min_size=1), st.lists(st.tuples(st.integers(0, 2), counters)))
def test_nothing_taken_before_a_restart_is_taken_after_it(
    before: list[tuple[int, int]], after: list[tuple[int, int]]
) -> None:
    stored: dict[int, int] = {}
    first = Replay(persist=stored.update)
    taken = set()
    for sender, counter in before:
        if first.accept(sender, counter):
            first.commit()  # a kill may follow at any time
            taken.add((sender, counter))
    assert stored == first.export()
    second = Replay()
    second.restore(stored)
    for sender, counter in before + after:
        expected = counter > stored.get(sender, -1)
        if (sender, counter) in taken:
            assert not expected
        assert second.judge(sender, counter) is (Verdict.NEW if expected else Verdict.SEEN)


def test_marks_are_persisted_once_and_again_if_it_failed() -> None:
    told: list[dict[int, int]] = []

    def persist(marks: object) -> None:
        assert isinstance(marks, dict)
        told.append(marks)
        if len(told) == 1:
            raise OSError("disk full")

    replay = Replay(persist=persist)
    replay.accept(3, 10)
    replay.accept(3, 8)
    replay.accept(4, 1)
    with pytest.raises(OSError, match="disk full"):
        replay.commit()
    replay.commit()
    replay.commit()
    replay.accept(3, 9)  # below the mark: nothing to persist
    replay.commit()
    assert told == [{3: 10, 4: 1}, {3: 10, 4: 1}]


def test_a_full_table_takes_nobody_new_and_loses_nobody_heard() -> None:
    replay = Replay(capacity=2)
    assert [replay.accept(sender, 1) for sender in (1, 2, 3)] == [True, True, False]
    assert replay.judge(3, 1) is Verdict.FULL
    assert not replay.accept(1, 1)
    assert replay.accept(2, 2)
    assert len(replay) == 2


def test_senders_of_an_earlier_run_make_room_until_they_are_heard() -> None:
    replay = Replay(capacity=3)
    replay.restore({1: 10, 2: 20, 3: 30})
    assert replay.accept(1, 11)
    assert replay.accept(4, 1)  # takes the place of 2, the first that is silent
    assert replay.export() == {3: 30, 1: 11, 4: 1}
    assert replay.accept(5, 1)
    assert replay.judge(6, 1) is Verdict.FULL
    assert replay.export() == {1: 11, 4: 1, 5: 1}


def test_restoring_too_many_keeps_the_last() -> None:
    replay = Replay(capacity=2)
    replay.restore({1: 1, 2: 2, 3: 3})
    assert replay.export() == {2: 2, 3: 3}


def test_restoring_after_hearing_is_a_mistake() -> None:
    replay = Replay()
    replay.accept(1, 1)
    with pytest.raises(ValueError, match="sender 1 has been heard already"):
        replay.restore({1: 5})


def test_a_table_for_nobody_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one sender, not 0"):
        Replay(capacity=0)
