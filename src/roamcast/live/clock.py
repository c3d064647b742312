"""A node's time and what it has to do when: the clock that never goes back, and the agenda that keeps its order.

The rules this file owns:

* `now` is ns since the epoch, a moment of wall-clock time. The wall clock is read once, at the start; from then on the
  monotonic clock counts, so that setting the wall clock moves nothing. A node that was here before goes on no earlier
  than it had got (`not_before`), even if the wall clock was set back meanwhile.
* What is due at one instant happens in the order in which it was planned, and never before its time.
"""

import asyncio
import heapq
import time
from collections.abc import Callable
from typing import Final

from roamcast.protocols.api import Time
from roamcast.units import SECOND

_MAX_WAIT: Final = 3600 * SECOND
"""A loop cannot sleep for ever; the agenda looks up at least this often."""


class Clock:
    def __init__(
        self,
        epoch: int | None = None,
        not_before: int = 0,
        *,
        wall: Callable[[], int] = time.time_ns,
        monotonic: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """`epoch` and `not_before` in ns of wall-clock time; without an epoch, time begins now."""
        begin = max(wall(), not_before)
        self.epoch = begin if epoch is None else epoch
        self._monotonic = monotonic
        self._offset = begin - self.epoch - monotonic()
        self._latest = begin - self.epoch

    def now(self, at_least: Time | None = None) -> Time:
        """The time; `at_least` is when something that happens now was due, should a timer have come a bit early."""
        now = self._monotonic() + self._offset
        if at_least is not None and at_least > now:
            now = at_least
        self._latest = max(self._latest, now)
        return self._latest

    @property
    def wall(self) -> int:
        """Now, in ns of wall-clock time as this clock has it."""
        return self.epoch + self.now()


class Agenda:
    """What is to be done later, on the running loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[Time, int]] = []
        self._tasks: dict[int, Callable[[Time], None]] = {}
        self._serial = 0
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at: Time = 0

    def __len__(self) -> int:
        return len(self._tasks)

    def plan(self, at: Time, task: Callable[[Time], None]) -> int:
        """Has `task(now)` called at `at` or as soon as possible after; gives a number to cancel it by."""
        self._serial += 1
        self._tasks[self._serial] = task
        heapq.heappush(self._heap, (at, self._serial))
        if self._alarm is None or at < self._alarm_at:
            self._arm()
        return self._serial

    def cancel(self, number: int) -> bool:
        """Takes something off; whether it was still to come."""
        if self._tasks.pop(number, None) is None:
            return False
        # What was cancelled makes room when its time comes; when it is most of the heap, at once.
        if len(self._heap) > 64 and len(self._heap) > 2 * len(self._tasks):
            self._heap = [item for item in self._heap if item[1] in self._tasks]
            heapq.heapify(self._heap)
        return True

    def close(self) -> None:
        """Nothing is done any more."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._heap.clear()
        self._tasks.clear()
        self._alarm = None

    def _arm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._heap:
            self._alarm_at = self._heap[0][0]
            wait = min(max(0, self._alarm_at - self._clock.now()), _MAX_WAIT)
            self._alarm = asyncio.get_running_loop().call_later(wait / SECOND, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        loop, now = asyncio.get_running_loop(), self._clock.now()
        while self._heap and self._heap[0][0] <= now:
            # Each as a call of its own: what one of them raises, or cancels, leaves the others alone.
            loop.call_soon(self._do, *heapq.heappop(self._heap))
        self._arm()

    def _do(self, at: Time, number: int) -> None:
        task = self._tasks.pop(number, None)
        if task is not None:
            task(self._clock.now(at))
