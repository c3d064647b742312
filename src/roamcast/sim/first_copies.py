"""Who need not be woken: nodes that get one more copy of an event that their broker only counts.

In a flood nine of ten messages are such copies, and waking a broker for each takes most of its calls. A broker that
has asked for it (`Port.first_copies`) is woken for the first copy alone. It remembers a bounded number of events, so
here is counted how many each broker may have come to know since: when it may have forgotten an event, it is woken.
"""

from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Final

from roamcast.bounded import put
from roamcast.content.event import EventId

MAX_EVENTS: Final = 256
"""Events that are followed at a time; a flood is over in less than a second. Of older ones every copy wakes."""
_MIN_EVENTS: Final = 16
_MAX_ENTRIES: Final = 2_000_000
"""Of events and nodes, 8 bytes each: large networks follow fewer events."""
_MAX_HELD: Final = 10_000


class FirstCopies:
    """Of one kind of message."""

    def __init__(self, nodes: int, window: int, note: str) -> None:
        """A broker remembers the `window` latest events, and counts another copy as `note`."""
        self.note = note
        self._window = window
        self._max_events = max(_MIN_EVENTS, min(MAX_EVENTS, _MAX_ENTRIES // nodes))
        self._learnt = array("q", bytes(8 * nodes))  # how many events each broker may have come to know
        self._known_until: dict[
            EventId, array[int]
        ] = {}  # by event and node: how many it may learn before forgetting it
        self._came: list[int] = []  # nodes, one entry for each copy of an event that is followed
        self._counts: Counter[int] = Counter()  # such copies by node, without those that woke it

    def begin_again(self, node: int) -> None:
        """Its broker is new, and knows nothing."""
        self._learnt[node] += self._window

    def learn(self, node: int, event: EventId) -> None:
        """The broker is about to be woken for an event, or to publish it."""
        known_until = self._known_until.get(event)
        if known_until is None:
            known_until = array("q", bytes(8 * len(self._learnt)))
            put(self._known_until, event, known_until, self._max_events)
        self._learnt[node] += 1
        known_until[node] = self._learnt[node] + self._window

    def choose(self, event: EventId, receivers: Sequence[int]) -> Sequence[int]:
        """Those of the receivers of a copy that must be woken; the others are counted."""
        known_until, learnt = self._known_until.get(event), self._learnt
        if known_until is None:
            for node in receivers:
                self.learn(node, event)
            return receivers
        came, window = self._came, self._window
        came.extend(receivers)
        if len(came) > _MAX_HELD:
            self._count()
        woken = [node for node in receivers if learnt[node] >= known_until[node]]
        for node in woken:
            self._counts[node] -= 1
            learnt[node] = count = learnt[node] + 1
            known_until[node] = count + window
        return woken

    def _count(self) -> None:
        self._counts.update(self._came)
        self._came.clear()

    def skipped(self) -> Counter[int]:
        """Copies that woke nobody, by node."""
        self._count()
        return +self._counts  # without those of which no copy was skipped
