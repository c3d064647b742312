"""Queries to hosts beyond one hop, for domains that look farther (section 3.1 assumes a service; this is a small one).

A query goes to a circle around the asker by geocast; each host in it answers to the asker's reachability region. After
`query_wait` the domain is decided with the answers that came. The number of queries and of answers to each is bounded.
"""

from collections.abc import Callable
from typing import Final

from roamcast.content.context.host import HostView
from roamcast.protocols.api import Node, Time

MAX_QUERIES: Final = 16
MAX_ANSWERS: Final = 256

Decide = Callable[[Time, dict[Node, HostView]], None]


class Queries:
    """The queries that wait for answers."""

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[dict[Node, HostView], Decide]] = {}
        self._number = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def ask(self, decide: Decide) -> int | None:
        """The number of a new query; None if too many wait. `decide` is called by `finish`."""
        if len(self._waiting) >= MAX_QUERIES:
            return None
        self._number += 1
        self._waiting[self._number] = {}, decide
        return self._number

    def answer(self, number: int, node: Node, host: HostView) -> None:
        if number in self._waiting:
            answers = self._waiting[number][0]
            if len(answers) < MAX_ANSWERS:
                answers[node] = host

    def finish(self, now: Time, number: int) -> None:
        """The time for answers is over."""
        if number in self._waiting:
            answers, decide = self._waiting.pop(number)
            decide(now, answers)
