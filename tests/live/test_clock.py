"""The clock that never goes back, and the agenda."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from live.nodes import run, until
from roamcast.live.clock import Agenda, Clock
from roamcast.units import SECOND


class Hands:
    """Clocks that a test moves."""

    def __init__(self, wall: int, monotonic: int) -> None:
        self.wall, self.monotonic = wall, monotonic

    def clock(self, epoch: int | None = None, not_before: int = 0) -> Clock:
        return Clock(epoch, not_before, wall=lambda: self.wall, monotonic=lambda: self.monotonic)


def test_time_is_counted_from_the_epoch_by_the_monotonic_clock() -> None:
    hands = Hands(wall=1000, monotonic=70)
    clock = hands.clock(epoch=400)
    assert clock.now() == 600
    hands.monotonic, hands.wall = 75, 0  # somebody sets the wall clock
    assert (clock.now(), clock.wall) == (605, 1005)


def test_without_an_epoch_time_begins_now_and_before_the_epoch_it_is_negative() -> None:
    assert Hands(1000, 70).clock().now() == 0
    assert Hands(1000, 70).clock(epoch=1300).now() == -300


def test_time_does_not_begin_before_it_had_got() -> None:
    assert Hands(1000, 70).clock(epoch=400, not_before=1200).now() == 800


@given(st.lists(st.tuples(st.integers(-5, 20), st.integers(0, 100) | st.none())))
def test_time_never_goes_back_and_nothing_is_early(steps: list[tuple[int, int | None]]) -> None:
    hands = Hands(0, 0)
    clock = hands.clock(epoch=0)
    before = clock.now()
    for step, due in steps:
        hands.monotonic += step
        now = clock.now(due)
        assert now >= before
        assert due is None or now >= due
        before = now


def test_the_agenda_keeps_the_order_and_forgets_what_was_cancelled() -> None:
    async def test() -> None:
        clock = Clock()
        agenda = Agenda(clock)
        done: list[str] = []
        at = clock.now() + SECOND // 50
        for name in "abc":
            agenda.plan(at, lambda now, name=name: done.append(name))  # type: ignore[misc]
        cancelled = agenda.plan(at, lambda now: done.append("never"))
        agenda.plan(at - SECOND // 100, lambda now: done.append("first"))
        assert agenda.cancel(cancelled)
        assert not agenda.cancel(cancelled)
        await until(lambda: not len(agenda))
        assert done == ["first", "a", "b", "c"]

    run(test)


def test_one_that_raises_does_not_stop_the_others() -> None:
    async def test() -> None:
        told: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context["exception"]))
        agenda = Agenda(Clock())
        done: list[int] = []

        def fail(now: int) -> None:
            raise RuntimeError("on purpose")

        agenda.plan(0, fail)
        agenda.plan(0, done.append)
        await until(lambda: done)
        assert [type(problem) for problem in told] == [RuntimeError]

    run(test)


def test_cancelling_many_frees_their_room() -> None:
    async def test() -> None:
        agenda = Agenda(Clock())
        numbers = [agenda.plan(10**15, lambda now: None) for _ in range(10_000)]
        for number in numbers:
            agenda.cancel(number)
        assert len(agenda._heap) <= 64
        agenda.plan(10**15, lambda now: None)
        agenda.close()
        assert len(agenda) == 0

    run(test)
