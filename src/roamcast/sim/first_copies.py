"""Which nodes need not be woken: those that get one more copy of an event, which their broker would only count.

In a flood nine of ten messages are such copies, and most calls to a broker would be for them. A broker that has asked
for it (`Port.first_copies`) is woken only for the first copy. It remembers a bounded number of events, so this file
counts how many each broker may have learnt since: a broker that may have forgotten an event is woken.

A core does this itself, so that a broadcast that is nobody's first copy never leaves it. This is the version of the
plain core, and the definition; the compiled core does the same with arrays.
"""

from collections.abc import Sequence
from typing import Final

from roamcast.bounded import put
from roamcast.content.event import EventId

MAX_EVENTS: Final = 256
"""Most events followed at a time; a flood is over in less than a second. The next copy of an older one wakes."""
_MIN_EVENTS: Final = 16
_MAX_ENTRIES: Final = 2_000_000
"""Most entries, one per event and node, of 8 bytes each: large networks follow fewer events."""


def events_followed(nodes: int) -> int:
    """How many events are followed at a time."""
    return max(_MIN_EVENTS, min(MAX_EVENTS, _MAX_ENTRIES // nodes))


class FirstCopies:
    """Follows the first copies of some kinds of messages."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self._window: dict[int, int] = {}  # by kind: how many events a broker remembers
        self._learnt: dict[int, list[int]] = {}  # by kind and node: how many events a broker may have come to know
        self._skipped: dict[int, list[int]] = {}  # by kind and node: copies that did not wake it
        # By kind, event and node: how many events the broker may have learnt before it has forgotten this one.
        self._known_until: dict[tuple[int, EventId], list[int]] = {}

    def follow(self, kind: int, window: int) -> None:
        self._window[kind] = window
        self._learnt[kind], self._skipped[kind] = [0] * self._nodes, [0] * self._nodes

    def begin_again(self, kind: int, node: int) -> None:
        """Notes that the node's broker has restarted and knows no events."""
        self._learnt[kind][node] += self._window[kind]

    def learn(self, kind: int, node: int, event: EventId) -> None:
        """Notes that the broker is about to be woken for an event, or to publish it."""
        known_until = self._followed(kind, event)
        self._learnt[kind][node] += 1
        known_until[node] = self._learnt[kind][node] + self._window[kind]

    def choose(self, kind: int, event: EventId, receivers: Sequence[int]) -> list[int]:
        """The receivers of a copy that must be woken; the others are only counted."""
        woken = []
        for node in receivers:
            if self._learnt[kind][node] >= self._followed(kind, event)[node]:
                self.learn(kind, node, event)
                woken.append(node)
            else:
                self._skipped[kind][node] += 1
        return woken

    def _followed(self, kind: int, event: EventId) -> list[int]:
        """The entries of an event. An event that is not followed yet replaces the oldest."""
        known_until = self._known_until.get((kind, event))
        if known_until is None:
            known_until = [0] * self._nodes
            put(self._known_until, (kind, event), known_until, events_followed(self._nodes))
        return known_until

    def skipped(self, kind: int) -> list[int]:
        """The number of copies that did not wake the broker, by node."""
        return self._skipped[kind]
