"""The tables of subscription forwarding: who wants what, and what was advertised to each neighbour.

`Interests` knows the *origins* of each filter: the node's own applications, and the neighbours that advertised it.
`Advertised` has what was advertised to one neighbour, and owns the rule of covering: a filter that applies to the
neighbour is either advertised, or *hidden* by an advertised one that covers it. When that one is withdrawn, those it
hid are advertised.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import msgspec

from roamcast.content.clauses import NO_LIMIT, Clause, Effort, EffortSpent, clauses_of
from roamcast.content.event import Event
from roamcast.content.filter import Filter
from roamcast.content.index import FilterIndex
from roamcast.content.intervals import ValueSet
from roamcast.protocols.api import Node
from roamcast.protocols.tree.forwarding_messages import MAX_FILTERS

Origin = Node | None
"""A neighbour; None for the node's own applications."""

MATCH_EFFORT: Final = 80_000
"""Tests for one event: some 20 ms. Only an attacker's filters and events need more."""
_AT_ONCE: Final = 8
"""Constraints that are compared in the time that it takes to begin a comparison of two filters."""

MESSAGE_BYTES: Final = 1200
"""Bytes of filters in one message: with its header it fits into one frame without fragments."""


@dataclass(slots=True, eq=False)
class Interest:
    """A filter that somebody wants. There is one object for each filter, so identity is equality."""

    filter: Filter
    clauses: list[Clause]
    """Made once: `covering.covers` would make them for each comparison, and take ten times as long."""
    bytes: int
    """The length of the filter's encoding."""
    weight: int
    """How many constraints it has; an empty alternative or filter counts as one."""
    compared: int
    """How many of its constraints one constraint may have to be compared with, to tell whether it is covered."""
    alone: tuple[str, ValueSet] | None
    """Its only constraint, if it has but one: such filters are compared most often, and in half the time."""
    origins: dict[Origin, None] = field(default_factory=dict)

    @classmethod
    def of(cls, filter: Filter) -> "Interest":
        weight = max(1, sum(max(1, len(conjunction)) for conjunction in filter.alternatives))
        clauses = clauses_of([filter])
        compared = sum(max(1, clause.depth) for clause in clauses)
        terms = [(name, term.region) for clause in clauses for name, held in clause.terms.items() for term in held]
        alone = terms[0] if len(clauses) == len(terms) == 1 else None
        return cls(filter, clauses, len(msgspec.msgpack.encode(filter)), weight, compared, alone)

    def covers(self, other: "Interest") -> bool:
        """Like `covering.covers`: whether this visibly matches everything that the other matches."""
        if self.alone is not None and other.alone is not None:
            return self.alone[0] == other.alone[0] and other.alone[1].within(self.alone[1])
        for narrow in other.clauses:
            for wide in self.clauses:
                if wide.covers(narrow):
                    break
            else:
                return False
        return True

    def covers_within(self, other: "Interest", effort: Effort) -> bool:
        """The same. Raises `EffortSpent` if it takes more than the effort."""
        effort.spend(1 + self.weight * other.compared // _AT_ONCE)
        return self.covers(other)

    def applies_to(self, neighbour: Node) -> bool:
        """Whether somebody other than the neighbour wants it: it is not advertised back to its only origin."""
        return len(self.origins) > (neighbour in self.origins)


class Interests:
    """Who wants what. What an origin wants is *doubted* from when its link is lost until it is advertised again."""

    def __init__(self) -> None:
        self._interests: dict[Filter, Interest] = {}
        self._index: FilterIndex[Interest] = FilterIndex()  # the filters that a neighbour wants
        self._wanted: dict[Origin, dict[Interest, bool]] = {}  # by origin: whether it is sure
        self._weights: dict[Origin, int] = {}

    def __iter__(self) -> Iterator[Interest]:
        return iter(self._interests.values())

    def __len__(self) -> int:
        return len(self._interests)

    def add(self, filter: Filter, origin: Origin) -> Interest | None:
        """Adds an interest of an origin; returns it if it is new. If it was doubted, it is sure now."""
        interest = self._interests.get(filter)
        if interest is not None and origin in interest.origins:
            self._wanted[origin][interest] = True
            return None
        if interest is None:
            interest = self._interests[filter] = Interest.of(filter)
        interest.origins[origin] = None
        self._wanted.setdefault(origin, {})[interest] = True
        self._weights[origin] = self.weight(origin) + interest.weight
        if origin is not None and interest not in self._index:
            self._index.add(interest, filter)
        return interest

    def remove(self, filter: Filter, origin: Origin) -> Interest | None:
        """Removes an interest of an origin; returns it if the origin wanted it. One without origins is forgotten."""
        interest = self._interests.get(filter)
        if interest is None or origin not in interest.origins:
            return None
        del interest.origins[origin], self._wanted[origin][interest]
        self._weights[origin] -= interest.weight
        if not self._wanted[origin]:
            del self._wanted[origin], self._weights[origin]
        if not interest.origins:
            del self._interests[filter]
        if origin is not None and not any(other is not None for other in interest.origins):
            self._index.remove(interest)
        return interest

    def wanted(self, origin: Origin) -> list[Filter]:
        """The filters of an origin, in the order in which they came."""
        return [interest.filter for interest in self._wanted.get(origin, ())]

    def weight(self, origin: Origin) -> int:
        """How many constraints the table holds for an origin."""
        return self._weights.get(origin, 0)

    def doubt(self, origin: Origin) -> None:
        wanted = self._wanted.get(origin, {})
        wanted.update(dict.fromkeys(wanted, False))

    def doubted(self, origin: Origin) -> list[Filter]:
        return [interest.filter for interest, sure in self._wanted.get(origin, {}).items() if not sure]

    @property
    def total(self) -> int:
        """How many constraints the table holds for all origins."""
        return sum(self._weights.values())

    def match(self, event: Event) -> list[Interest]:
        """The interests of neighbours, present or lost, that match an event; or all, if it takes too long to tell."""
        try:
            return self._index.match(event, Effort(MATCH_EFFORT))
        except EffortSpent:
            return [interest for interest in self._interests.values() if interest in self._index]


class Advertised:
    """What was advertised to one neighbour, and the changes since they were last taken.

    Comparing filters is bounded: each change has an `Effort`. When that is spent, a filter counts as not covered; it is
    then advertised although another covers it, which costs some bytes and loses nothing.
    """

    def __init__(self) -> None:
        self._visible: dict[Interest, None] = {}
        self._hidden: dict[Interest, Interest | None] = {}  # with what covers it; None: no event can match it
        self._under: dict[Interest, dict[Interest, int]] = {}  # by what covers them: those hidden, with their numbers
        self._hidings = 0
        self._changes: dict[Interest, bool] = {}  # advertised (true) or withdrawn

    def add(self, interest: Interest, effort: Effort = NO_LIMIT) -> None:
        """An interest applies to the neighbour from now on."""
        cover = self._cover(interest, effort)
        if cover is not None or not interest.clauses:
            self._hide(interest, cover)
            return
        for other in self._narrower(interest, effort):
            for hidden, number in self._under.pop(other, {}).items():
                self._hidden[hidden] = interest
                self._under.setdefault(interest, {})[hidden] = number
            self._withdraw(other)
            self._hide(other, interest)
        self._visible[interest] = None
        self._change(interest, added=True)

    def remove(self, interest: Interest, effort: Effort = NO_LIMIT) -> None:
        """An interest no longer applies to the neighbour."""
        if interest in self._hidden:
            cover = self._hidden.pop(interest)
            if cover is not None:
                del self._under[cover][interest]
            return
        self._withdraw(interest)
        under = self._under.pop(interest, {})
        orphans = sorted(under, key=under.__getitem__)  # those hidden first come first
        for orphan in orphans:
            del self._hidden[orphan]
        for orphan in orphans:
            self.add(orphan, effort)

    def _hide(self, interest: Interest, cover: Interest | None) -> None:
        self._hidden[interest] = cover
        if cover is not None:
            self._hidings += 1
            self._under.setdefault(cover, {})[interest] = self._hidings

    def _cover(self, interest: Interest, effort: Effort) -> Interest | None:
        if effort.left > 0:
            with suppress(EffortSpent):
                for other in self._visible:
                    if other.covers_within(interest, effort):
                        return other
        return None

    def _narrower(self, interest: Interest, effort: Effort) -> list[Interest]:
        """What is advertised and covered by an interest, as far as the effort tells."""
        found: list[Interest] = []
        if effort.left > 0:
            with suppress(EffortSpent):
                for other in self._visible:
                    if interest.covers_within(other, effort):
                        found.append(other)
        return found

    def _withdraw(self, interest: Interest) -> None:
        del self._visible[interest]
        self._change(interest, added=False)

    def _change(self, interest: Interest, *, added: bool) -> None:
        """Notes a change; two opposite changes cancel out."""
        if self._changes.pop(interest, None) is None:
            self._changes[interest] = added

    def take_changes(self) -> tuple[list[Interest], list[Interest]]:
        """The interests to advertise and to withdraw since the last time."""
        if not self._changes:  # true for most neighbours
            return [], []
        added = [interest for interest, is_added in self._changes.items() if is_added]
        removed = [interest for interest, is_added in self._changes.items() if not is_added]
        self._changes.clear()
        return added, removed

    def take_all(self) -> list[Interest]:
        """Everything to advertise; no changes are left after this."""
        self._changes.clear()
        return list(self._visible)


Part = tuple[tuple[Filter, ...], tuple[Filter, ...]]


def split(added: Sequence[Interest], removed: Sequence[Interest]) -> list[Part]:
    """What to add and remove in each of the messages needed; one message if there is nothing.

    All additions come before all removals, so that a covering filter is there before a covered one is removed.
    """
    result: list[tuple[list[Filter], list[Filter]]] = [([], [])]
    room = MESSAGE_BYTES
    for place, interests in enumerate((added, removed)):
        for interest in interests:
            lists = result[-1]
            if (any(lists) and interest.bytes > room) or len(lists[place]) == MAX_FILTERS:
                lists, room = ([], []), MESSAGE_BYTES
                result.append(lists)
            lists[place].append(interest.filter)
            room -= interest.bytes
    return [(tuple(add), tuple(remove)) for add, remove in result]
