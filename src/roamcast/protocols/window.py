"""The duplicate window: which of the latest events were seen before.

Bounded: it remembers the `capacity` ids that came last, and forgets the oldest for each new one.
"""

from collections.abc import Callable, Iterator


class DuplicateWindow:
    def __init__(self, capacity: int, forgotten: Callable[[int], None] | None = None) -> None:
        """`forgotten` is told of each id that had to make room for a new one."""
        if capacity < 1:
            raise ValueError(f"a duplicate window remembers at least one event, not {capacity}")
        self._capacity = capacity
        self._forgotten = forgotten
        self._seen: dict[int, None] = {}  # in the order of arrival

    def add(self, event_id: int) -> bool:
        """Adds an event; returns whether it is new."""
        seen = self._seen
        if event_id in seen:
            return False
        seen[event_id] = None
        if len(seen) > self._capacity:
            oldest = next(iter(seen))
            del seen[oldest]
            if self._forgotten is not None:
                self._forgotten(oldest)
        return True

    def __contains__(self, event_id: int) -> bool:
        return event_id in self._seen

    def __len__(self) -> int:
        return len(self._seen)

    def __iter__(self) -> Iterator[int]:
        """Oldest first."""
        return iter(self._seen)
