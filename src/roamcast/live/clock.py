"""A node's clock, which never goes back, and its agenda of timed tasks, which keeps their order.

The rules this file owns:

* `now` is ns since the epoch, a moment of wall-clock time. The wall clock is read once, at the start; after that the
  monotonic clock counts, so that setting the wall clock changes nothing. A restarted node continues no earlier than it
  had got (`not_before`), even if the wall clock was set back meanwhile.
* Tasks that are due at the same instant run in the order in which they were planned, and never early.
"""

import asyncio
import heapq
import time
from collections.abc import Callable
from typing import Final

from roamcast.protocols.api import Time
from roamcast.units import SECOND

_MAX_WAIT: Final = 3600 * SECOND
"""A loop cannot sleep for ever; the agenda wakes up at least this often."""


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
        """The time, but no earlier than `at_least`: a timer may fire slightly before its task is due."""
        now = self._monotonic() + self._offset
        if at_least is not None and at_least > now:
            now = at_least
        self._latest = max(self._latest, now)
        return self._latest

    @property
    def wall(self) -> int:
        """Now, in ns of wall-clock time according to this clock."""
        return self.epoch + self.now()


class Agenda:
    """Tasks for later, on the running loop."""

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
        """Calls `task(now)` at `at` or as soon as possible after; returns a number to cancel it by."""
        self._serial += 1
        self._tasks[self._serial] = task
        heapq.heappush(self._heap, (at, self._serial))
        if self._alarm is None or at < self._alarm_at:
            self._arm()
        return self._serial

    def cancel(self, number: int) -> bool:
        """Removes a task; returns whether it was still pending."""
        if self._tasks.pop(number, None) is None:
            return False
        # Cancelled tasks leave the heap when they are due, or at once when they are most of it.
        if len(self._heap) > 64 and len(self._heap) > 2 * len(self._tasks):
            self._heap = [item for item in self._heap if item[1] in self._tasks]
            heapq.heapify(self._heap)
        return True

    def close(self) -> None:
        """Drops all tasks."""
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
            # A separate call for each, so that one that raises, or cancels another, does not affect the rest.
            loop.call_soon(self._do, *heapq.heappop(self._heap))
        self._arm()

    def _do(self, at: Time, number: int) -> None:
        task = self._tasks.pop(number, None)
        if task is not None:
            task(self._clock.now(at))
