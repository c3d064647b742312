"""Queries to hosts beyond one hop, for domains that look farther (section 3.1 assumes a service; this is a small one).

A query goes to a circle around the asker by geocast; each host in it answers to the asker's reachability region. After
`query_wait` the domain is decided with the answers that came. The number of queries and of answers to each is bounded.
"""

from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from roamcast.content.context.host import HostView
from roamcast.protocols.api import Node, Time

MAX_QUERIES: Final = 16
MAX_ANSWERS: Final = 256

Decide = Callable[[Time, dict[Node, HostView]], None]


class _Query(NamedTuple):
    question: Hashable
    """What is decided by it."""
    decide: Decide
    answers: dict[Node, HostView]


class Queries:
    """The queries that wait for answers."""

    def __init__(self) -> None:
        self._waiting: dict[int, _Query] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def asks(self, question: Hashable) -> bool:
        """Whether the same question waits already."""
        return any(waiting.question == question for waiting in self._waiting.values())

    def ask(self, number: int, question: Hashable, decide: Decide) -> bool:
        """Adds a query, unless too many wait. `decide` is called by `finish`."""
        if len(self._waiting) >= MAX_QUERIES:
            return False
        self._waiting[number] = _Query(question, decide, {})
        return True

    def answer(self, number: int, node: Node, host: HostView) -> None:
        waiting = self._waiting.get(number)
        if waiting is not None and len(waiting.answers) < MAX_ANSWERS:
            waiting.answers[node] = host

    def finish(self, now: Time, number: int) -> None:
        """The time for answers is over."""
        if number in self._waiting:
            waiting = self._waiting.pop(number)
            waiting.decide(now, waiting.answers)
