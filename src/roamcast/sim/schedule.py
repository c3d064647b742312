"""What a world has to do besides the core's frames: movement, links, applications, timers, in the order of time."""

import enum
import heapq
from collections.abc import Hashable
from typing import Any

Item = tuple[int, "Priority", int, int, Any]
"""A time, a priority, a serial number, a node, and whatever goes with that priority."""


class Priority(enum.IntEnum):
    """The order of things at the same instant."""

    SECOND = 0
    COOLDOWN = 1  # begins
    LINK = 2
    LEG = 3
    ATTRIBUTES = 4
    AWAY = 5
    ACT = 6
    END = 7  # of a subscription's lifetime
    TIMER = 8
    CPU = 9  # is done with something


class Schedule:
    """A heap by time, priority and the order of planning."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self._serial = 0

    def plan(self, time: int, priority: Priority, node: int, data: Any = None) -> None:  # noqa: ANN401  # as the priority says
        self._serial += 1
        heapq.heappush(self.items, (time, priority, self._serial, node, data))

    def take_timers(self, node: int, now: int) -> list[tuple[int, Hashable]]:
        """Removes a node's timers: how much time each had left, and its key, in the order of time."""
        taken = sorted(item[:3] + item[4:] for item in self.items if item[1] is Priority.TIMER and item[3] == node)
        self.items[:] = [item for item in self.items if item[1] is not Priority.TIMER or item[3] != node]
        heapq.heapify(self.items)
        return [(time - now, key) for time, _, _, key in taken]
