"""The replay window, beside a set that forgets nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from live.link.disk import Disk
from roamcast.live.link.replay import BLOCK, WINDOW, FrameSession, Novelty, Replay


def session(sender: int, life: int = 0, key: str = "k") -> FrameSession:
    return FrameSession(key, sender, bytes([life]) * 16)


ONE, TWO, THREE = (session(sender) for sender in (1, 2, 3))


def test_each_counter_is_taken_once_in_any_order() -> None:
    replay = Replay()
    assert [replay.accept(ONE, counter) for counter in (5, 5, 3, 4, 3, 9, 5, 8)] == [
        True, False, True, True, False, True, False, True,
    ]  # fmt: skip


def test_what_is_older_than_the_window_is_refused() -> None:
    replay = Replay()
    assert replay.accept(ONE, 5000)
    assert replay.accept(ONE, 5000 - WINDOW + 1)
    assert not replay.accept(ONE, 5000 - WINDOW)


def test_counter_0_is_a_counter_and_a_long_jump_forgets_nothing_wrongly() -> None:
    replay = Replay()
    assert replay.accept(ONE, 0)
    assert not replay.accept(ONE, 0)
    assert replay.accept(ONE, 2**63 - 1)
    assert not replay.accept(ONE, 2**63 - 1)
    assert not replay.accept(ONE, 0)


def test_senders_their_lives_and_their_keys_do_not_concern_each_other() -> None:
    """A frame with the last counter silences the session that it is in, and no other."""
    replay = Replay()
    assert replay.accept(ONE, 2**63 - 1)
    assert all(replay.accept(other, 7) for other in (TWO, session(1, life=1), session(1, key="new")))


counters = st.one_of(st.integers(0, 40), st.integers(WINDOW - 5, 2 * WINDOW + 5), st.integers(0, 2**63 - 1))
frames = st.lists(st.tuples(st.sampled_from([ONE, TWO, session(1, life=1)]), counters))


@given(frames)
def test_it_is_a_set_with_a_window(arriving: list[tuple[FrameSession, int]]) -> None:
    replay, taken = Replay(), set[tuple[FrameSession, int]]()
    for sender, counter in arriving:
        highest = max((c for s, c in taken if s == sender), default=-1)
        new = (sender, counter) not in taken and counter > highest - WINDOW
        assert replay.judge(sender, counter) is (Novelty.NEW if new else Novelty.SEEN)
        assert replay.accept(sender, counter) == new
        taken |= {(sender, counter)} if new else set()


near = st.lists(st.tuples(st.sampled_from([ONE, TWO, session(1, life=1)]), st.integers(0, 4 * BLOCK)))


@given(st.lists(near, min_size=1, max_size=4), st.booleans())
def test_nothing_handed_up_is_handed_up_by_a_later_life(
    lives: list[list[tuple[FrameSession, int]]], slow: bool
) -> None:
    """Whatever is safe may be handed up. A life ends at any moment, also before its disk was done."""
    disk, handed_up = Disk(), set[tuple[FrameSession, int]]()
    for arriving in lives:
        replay = disk.replay()
        disk.slow = slow
        waiting: list[tuple[FrameSession, int]] = []
        for sender, counter in arriving:
            if replay.accept(sender, counter):
                waiting.append((sender, counter))
            replay.secure(lambda problem: None)
            for item in [item for item in waiting if replay.safe(item[0])]:
                assert item not in handed_up
                handed_up.add(item)
                waiting.remove(item)
        disk._waiting.clear()


def test_the_disk_is_written_once_a_block() -> None:
    disk = Disk()
    replay = disk.replay()
    for counter in range(0, 3 * BLOCK, 100):
        replay.accept(ONE, counter)
        if not replay.safe(ONE):
            replay.secure(lambda problem: None)
        assert replay.safe(ONE)
    assert (disk.writes, disk.blocks) == (3, {ONE: 2})


def test_nothing_is_safe_before_the_disk_says_so() -> None:
    disk = Disk()
    replay, told = disk.replay(), list[BaseException | None]()
    disk.slow = True
    replay.accept(ONE, 5)
    replay.secure(told.append)
    assert (replay.safe(ONE), told) == (False, [])
    disk.write()
    assert (replay.safe(ONE), told) == (True, [None])
    disk.problem = OSError("disk full")
    replay.accept(ONE, BLOCK)
    replay.secure(told.append)
    disk.write()
    assert (replay.safe(ONE), told[1:]) == (False, [disk.problem])


def test_after_a_restart_the_rest_of_the_block_is_refused_and_what_follows_is_taken() -> None:
    disk = Disk()
    before = disk.replay()
    before.accept(ONE, BLOCK + 7)
    before.secure(lambda problem: None)
    after = disk.replay()
    assert after.upto(ONE) == 2 * BLOCK - 1
    assert after.judge(ONE, BLOCK + 7) is Novelty.BEHIND
    assert after.judge(ONE, 2 * BLOCK - 1) is Novelty.BEHIND
    assert not after.accept(ONE, 2 * BLOCK - 1)
    assert after.accept(ONE, 2 * BLOCK)
    assert after.judge(ONE, 2 * BLOCK - 1) is Novelty.SEEN
    assert after.accept(session(1, life=1), 0)


def test_the_next_block_of_a_session_from_an_earlier_life_is_written_down_too() -> None:
    replay = Replay()
    replay.restore({ONE: 3})
    assert replay.accept(ONE, 4 * BLOCK)
    assert not replay.safe(ONE)
    replay.secure(lambda problem: None)
    assert replay.safe(ONE)
    assert replay.accept(ONE, 5 * BLOCK)
    assert not replay.safe(ONE)


def test_a_full_table_gives_room_back() -> None:
    """Invented senders lock nobody out, and who keeps talking keeps his place."""
    disk = Disk()
    replay = Replay(capacity=10, persist=disk.persist)
    for number in range(100):
        assert replay.accept(session(1000 + number), 1)
        assert replay.accept(ONE, number)
        replay.secure(lambda problem: None)
    assert len(replay) == 10
    assert replay.accept(TWO, 1)
    assert not replay.accept(ONE, 99)
    replay.secure(lambda problem: None)
    assert len(disk.blocks) == 10


def test_of_too_many_on_disk_those_heard_last_stay() -> None:
    replay = Replay(capacity=2)
    replay.restore({ONE: 0, TWO: 0, THREE: 0})
    assert [replay.knows(each) for each in (ONE, TWO, THREE)] == [False, True, True]


def test_restoring_after_hearing_is_a_mistake() -> None:
    replay = Replay()
    replay.accept(ONE, 1)
    with pytest.raises(ValueError, match="has been heard already"):
        replay.restore({ONE: 5})


def test_a_window_does_not_grow() -> None:
    replay = Replay()
    for counter in range(3 * WINDOW):
        replay.accept(ONE, counter)
    assert replay._seen[ONE].window.bit_length() == WINDOW


def test_a_table_for_one_has_room_for_one() -> None:
    replay = Replay(capacity=1)
    assert replay.accept(ONE, 1)
    assert replay.accept(TWO, 1)
    assert [replay.knows(each) for each in (ONE, TWO)] == [False, True]


def test_a_table_for_nobody_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one session, not 0"):
        Replay(capacity=0)
