"""What messages cost, by the repair or refresh that they belong to: the rows of `transmit`.

The core counts frames and messages by node and kind. What belongs to a cause is also counted here, and subtracted from
the core's totals at the end, so that all rows add up to what was sent: until the cooldown, and in it only messages that
carry events.
"""

from collections.abc import Sequence
from typing import Final

from roamcast.facts.recorder import Recorder
from roamcast.facts.schema import COUNTERS, DATA_ROLE

MAX_HELD: Final = 10_000
"""Most causes that are held before they are written; rows with the same key add up."""
_SPENT: Final = 3
"""Packets, bits and airtime: what a sender knows. Receptions and losses happen elsewhere, under no cause."""
_ACCOUNT: Final = 1 + _SPENT
"""Messages, and what was spent on them."""


class Costs:
    def __init__(self, facts: Recorder, kinds: Sequence[tuple[str, str]]) -> None:
        """`kinds` are the names and roles of the kinds of frames, by their numbers."""
        self._facts = facts
        self._kinds = kinds
        self._by_cause: dict[tuple[int, int, int], list[int]] = {}  # node, kind, cause; since last written
        self._in_all: dict[tuple[int, int], list[int]] = {}  # node, kind; what was written
        self._before_cooldown: Sequence[Sequence[list[int]]] | None = None

    def charge(self, node: int, kind: int, cause: int, messages: int, spent: Sequence[int]) -> None:
        """Charges `messages` messages, and what was spent on them, to their cause."""
        if self._before_cooldown is not None and self._kinds[kind][1] != DATA_ROLE:
            return
        account = self._by_cause.get((node, kind, cause))
        if account is None:
            self._by_cause[node, kind, cause] = [messages, *spent]
            return
        account[0] += messages
        for place, amount in enumerate(spent, 1):
            account[place] += amount

    def cool_down(self, totals: Sequence[Sequence[list[int]]]) -> None:
        """From now on, only messages that carry events count; `totals` are the core's until now."""
        self._before_cooldown = totals

    def write_if_many(self) -> None:
        if len(self._by_cause) > MAX_HELD:
            self._write_causes()

    def _write_causes(self) -> None:
        """Writes them as columns: long runs of trees have tens of thousands."""
        if not self._by_cause:
            return
        for (node, kind, _), account in self._by_cause.items():
            in_all = self._in_all.setdefault((node, kind), [0] * _ACCOUNT)
            for place, amount in enumerate(account):
                in_all[place] += amount
        nodes, kinds, causes = zip(*self._by_cause, strict=True)
        names, roles = zip(*(self._kinds[kind] for kind in kinds), strict=True)
        accounts = zip(*self._by_cause.values(), strict=True)
        not_by_cause = [[0] * len(nodes)] * (len(COUNTERS) - _SPENT)
        self._facts.add_columns("transmit", nodes, names, roles, causes, *accounts, *not_by_cause)
        self._by_cause.clear()

    def write_totals(self, totals: Sequence[Sequence[list[int]]]) -> None:
        """Writes the rest: the core's totals by node and kind, without what was charged to a cause."""
        self._write_causes()
        until = totals if self._before_cooldown is None else self._before_cooldown
        for node, kinds in enumerate(totals):
            for kind, (_, role) in enumerate(self._kinds):
                *frames, messages = (kinds if role == DATA_ROLE else until[node])[kind]
                if not messages and not any(frames):
                    continue
                counted = [messages, *frames]
                for place, amount in enumerate(self._in_all.get((node, kind), ())):
                    counted[place] -= amount
                if any(counted):
                    self._facts.add("transmit", node, *self._kinds[kind], 0, *counted)
