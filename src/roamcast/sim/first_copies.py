"""Who need not be woken: nodes that get one more copy of an event that their broker only counts.

In a flood nine of ten messages are such copies, and waking a broker for each takes most of its calls. A broker that
has asked for it (`Port.first_copies`) is woken for the first copy alone. It remembers a bounded number of events, so
here is counted how many each broker may have come to know since: when it may have forgotten an event, it is woken.

A core does it, so that a broadcast that is nobody's first copy never leaves it. This is that of the plain core, and the
definition; the compiled core has the same in arrays.
"""

from collections.abc import Sequence
from typing import Final

from roamcast.bounded import put
from roamcast.content.event import EventId

MAX_EVENTS: Final = 256
"""Events that are followed at a time; a flood is over in less than a second. Of older ones the next copy wakes."""
_MIN_EVENTS: Final = 16
_MAX_ENTRIES: Final = 2_000_000
"""Of events and nodes, 8 bytes each: large networks follow fewer events."""


def events_followed(nodes: int) -> int:
    """How many events are followed at a time."""
    return max(_MIN_EVENTS, min(MAX_EVENTS, _MAX_ENTRIES // nodes))


class FirstCopies:
    """Of the kinds of messages that are followed."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self._window: dict[int, int] = {}  # by kind: how many events a broker remembers
        self._learnt: dict[int, list[int]] = {}  # by kind and node: how many events a broker may have come to know
        self._skipped: dict[int, list[int]] = {}  # by kind and node: copies that did not wake it
        # By kind, event and node: how many the broker may know before it has forgotten this one.
        self._known_until: dict[tuple[int, EventId], list[int]] = {}

    def follow(self, kind: int, window: int) -> None:
        self._window[kind] = window
        self._learnt[kind], self._skipped[kind] = [0] * self._nodes, [0] * self._nodes

    def begin_again(self, kind: int, node: int) -> None:
        """Its broker is new, and knows nothing."""
        self._learnt[kind][node] += self._window[kind]

    def learn(self, kind: int, node: int, event: EventId) -> None:
        """The broker is about to be woken for an event, or to publish it."""
        known_until = self._followed(kind, event)
        self._learnt[kind][node] += 1
        known_until[node] = self._learnt[kind][node] + self._window[kind]

    def choose(self, kind: int, event: EventId, receivers: Sequence[int]) -> list[int]:
        """Those of the receivers of a copy that must be woken; the others are counted."""
        woken = []
        for node in receivers:
            if self._learnt[kind][node] >= self._followed(kind, event)[node]:
                self.learn(kind, node, event)
                woken.append(node)
            else:
                self._skipped[kind][node] += 1
        return woken

    def _followed(self, kind: int, event: EventId) -> list[int]:
        """What is known of an event. One that is not followed takes the place of the oldest."""
        known_until = self._known_until.get((kind, event))
        if known_until is None:
            known_until = [0] * self._nodes
            put(self._known_until, (kind, event), known_until, events_followed(self._nodes))
        return known_until

    def skipped(self, kind: int) -> list[int]:
        """Copies that woke nobody, by node."""
        return self._skipped[kind]
