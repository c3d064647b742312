"""Rates of neighbours, and the table of those who were heard."""

from roamcast.live.link.limits import Allowance, Rate
from roamcast.live.link.neighbours import Neighbours

HERE = ("10.0.0.1", 1)
THERE = ("10.0.0.2", 2)


def test_frames_run_out_and_come_back() -> None:
    allowance = Allowance(Rate(frames=10, octets=1e6, burst=0.5), now=0)  # five at once
    passed = 0
    while allowance.ready(0):
        allowance.charge(100)
        passed += 1
    assert passed == 5
    assert not allowance.ready(0.09)
    assert allowance.ready(0.11)
    allowance.charge(100)
    assert not allowance.ready(0.11)


def test_octets_run_out_and_what_was_too_much_is_owed() -> None:
    allowance = Allowance(Rate(frames=1000, octets=1000, burst=1), now=0)
    allowance.charge(900)
    assert allowance.ready(0)
    allowance.charge(1100)  # 1000 owed
    assert not allowance.ready(0.9)
    assert allowance.ready(1.1)


def test_silence_saves_up_a_burst_and_no_more() -> None:
    allowance = Allowance(Rate(frames=2, octets=1e6, burst=1), now=0)
    assert allowance.ready(1000)
    allowance.charge(1)
    assert allowance.ready(1000)
    allowance.charge(1)
    assert not allowance.ready(1000)


def test_a_clock_that_goes_back_gives_nothing() -> None:
    allowance = Allowance(Rate(frames=1, octets=1e6, burst=1), now=10)
    allowance.charge(1)
    assert not allowance.ready(5)
    assert not allowance.ready(10.5)


def test_a_neighbour_is_where_and_when_it_was_heard_last() -> None:
    heard = Neighbours(4, 60, Rate())
    heard.hear(1, 7, HERE, 100)
    heard.hear(2, 3, HERE, 100)
    heard.hear(3, 7, THERE, 100)
    neighbour = heard.get(7)
    assert neighbour is not None
    assert (neighbour.address, heard.times()) == (THERE, {3: 2, 7: 3})
    assert list(heard.times()) == [3, 7]


def test_one_who_is_too_fast_slows_nobody_else() -> None:
    heard = Neighbours(4, 60, Rate(frames=2, octets=1e6, burst=1))
    assert not heard.too_fast(0, 1)
    for _ in range(2):
        heard.hear(0, 1, HERE, 10)
    heard.hear(0, 2, HERE, 10)
    assert (heard.too_fast(0, 1), heard.too_fast(0, 2), heard.too_fast(0, 3)) == (True, False, False)


def test_who_keeps_talking_keeps_his_place() -> None:
    heard = Neighbours(3, 60, Rate())
    heard.hear(0, 1, HERE, 10)
    heard.hear(0, 2, HERE, 10)
    for number in range(1000):  # a node with the key that calls itself something new each time
        heard.hear(1 + number / 100, 100 + number, THERE, 10)
        heard.hear(1 + number / 100, 1, HERE, 10)
        heard.hear(1 + number / 100, 2, HERE, 10)
    assert list(heard.times()) == [1, 2, 100]


def test_the_longest_silent_makes_room_when_he_is_gone() -> None:
    heard = Neighbours(2, 60, Rate())
    heard.hear(0, 1, HERE, 10)
    heard.hear(5, 2, HERE, 10)
    assert heard.hear(60, 3, HERE, 10) is None
    assert heard.hear(60.1, 3, HERE, 10) is not None
    assert (list(heard.times()), len(heard)) == ([2, 3], 2)


def test_hearing_somebody_again_makes_another_the_longest_silent() -> None:
    heard = Neighbours(2, 60, Rate())
    heard.hear(0, 1, HERE, 10)
    heard.hear(5, 2, HERE, 10)
    heard.hear(50, 1, HERE, 10)
    assert heard.hear(65, 3, HERE, 10) is None
    assert heard.hear(65.1, 3, HERE, 10) is not None
    assert list(heard.times()) == [1, 3]


def test_when_the_table_is_full_who_is_vouched_for_goes_before_who_is_not() -> None:
    heard = Neighbours(3, 60, Rate())
    heard.hear(0, 1, HERE, 10, vouched=True)
    heard.hear(0, 2, HERE, 10)
    heard.hear(1, 3, HERE, 10)
    assert heard.hear(2, 4, HERE, 10) is None
    assert heard.hear(2, 5, HERE, 10, vouched=True) is not None
    assert list(heard.times()) == [1, 3, 5]  # not 1, which was silent for as long as 2
    assert heard.hear(3, 6, HERE, 10, vouched=True) is not None
    assert heard.hear(3, 7, HERE, 10, vouched=True) is None  # all have shown one


def test_while_there_is_room_nobody_needs_a_signature() -> None:
    heard = Neighbours(3, 60, Rate())
    assert all(heard.hear(0, node, HERE, 10) for node in (1, 2, 3))
