"""One event against many filters: the answer that asking each filter in turn would give, for a fraction of the work.

Each conjunction is filed under one of its constraints, its *access*: the one thought to hold for the fewest events.
An event looks up the accesses that it satisfies, and only the conjunctions filed there are verified, constraint by
constraint. A constraint that many conjunctions hold is one entry.

Counting how many constraints of each conjunction hold is the usual alternative. It touches every holder of every
constraint that holds, and half of all `<` and `>` hold for any event; measured, it was several times slower.

What one match costs, none of it for an attribute that the event lacks or no filter names:

* Finding the accesses: a lookup a value (`=`), a bisection (orderings), a lookup for each length in use (prefix,
  suffix), a test for each different text (contains) or value (`!=`) that is an access; and a step for each one found.
* Verifying the conjunctions filed under those found, each constraint once. This is what grows: with the accesses that
  hold, not with the filters held. At worst all hold, and the cost is that of asking one by one.
* Sorting what matched, so that the order is that of adding.

Adding and removing cost some dictionary operations a constraint, and for an ordering an insertion into a sorted list.
"""

import operator
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from roamcast.content.event import TYPE, Event, Scalar
from roamcast.content.filter import Conjunction, Constraint, Filter, Kind, Operator, kind_of

K = TypeVar("K", bound=Hashable)

_Test = Callable[[Any, Any], bool]

_ALWAYS: Final = (Constraint(TYPE, Operator.EXISTS),)
"""What the empty conjunction is held as: every event has a type."""


@dataclass(slots=True, eq=False)
class _Entry:
    """One constraint, however many conjunctions hold it, with those of them that are filed under it.

    These are grouped by a second constraint, so that one look rules out the whole group.
    """

    constraint: Constraint
    value: Any  # the constraint's: of the table's kind, which a type checker cannot know
    table: "_Table"
    holders: int = 0
    groups: dict["_Entry", dict["_Filed", None]] = field(default_factory=dict)  # the inner one is an ordered set
    asked: int = 0  # the match in which it was last verified, and
    held: bool = False  # with what result: many conjunctions ask the same


@dataclass(slots=True, eq=False)
class _Filed:
    """One conjunction of the filter with this serial: where it is filed, and what else must hold."""

    serial: int
    access: _Entry
    group: _Entry
    others: list[_Entry]


class _Table:
    """The constraints with one attribute, one operator and one kind of value.

    `values` are those that an event has for the attribute, of the kind only. This table tries every access, for the
    operators that allow nothing better (`contains`); the tables below look them up.
    """

    def __init__(self, test: _Test) -> None:
        self.holders = 0  # of all its constraints together, accesses or not
        self._test = test
        self._accesses: dict[Any, _Entry] = {}

    def add(self, access: _Entry) -> None:
        self._accesses[access.value] = access

    def remove(self, access: _Entry) -> None:
        del self._accesses[access.value]

    def share(self, entry: _Entry) -> float:
        """The share of events thought to satisfy the entry: they have a value as often as filters ask for it.

        So a type that all filters name is known to say nothing.
        """
        return entry.holders / self.holders

    def holds(self, entry: _Entry, values: Sequence[Any]) -> bool:
        for value in values:  # a match is mostly this, and any() of a generator takes twice as long
            if self._test(value, entry.value):
                return True
        return False

    def satisfied(self, values: Sequence[Any]) -> Sequence[_Entry]:
        """The accesses that hold, each once. There is at least one value."""
        return [access for access in self._accesses.values() if self.holds(access, values)]


class _Unequal(_Table):
    """`!=`: almost every value satisfies it, so that trying each wastes nothing, and it is a bad access."""

    def share(self, entry: _Entry) -> float:
        return 1.0


class _Equal(_Table):
    """`=`; and `exists`, as equality with a None that stands for the attribute's presence."""

    def satisfied(self, values: Sequence[Any]) -> Sequence[_Entry]:
        return [self._accesses[value] for value in dict.fromkeys(values) if value in self._accesses]


class _Affixes(_Equal):
    """Prefix or suffix: equality with a part of the text, for each length in use."""

    def __init__(self, test: _Test, part: Callable[[str, int], str]) -> None:
        super().__init__(test)
        self._part = part
        self._lengths: Counter[int] = Counter()

    def add(self, access: _Entry) -> None:
        super().add(access)
        self._lengths[len(access.value)] += 1

    def remove(self, access: _Entry) -> None:
        super().remove(access)
        self._lengths[len(access.value)] -= 1
        if not self._lengths[len(access.value)]:
            del self._lengths[len(access.value)]

    def satisfied(self, values: Sequence[Any]) -> Sequence[_Entry]:
        return super().satisfied(
            [self._part(text, length) for text in values for length in self._lengths if length <= len(text)]
        )


class _Bounds(_Table):
    """One ordering: bounds are sorted, so that those satisfied are all after (upper) or all before a place."""

    def __init__(self, test: _Test, place: Callable[[list[Any], Any], int], *, upper: bool) -> None:
        super().__init__(test)
        self._place = place
        self._upper = upper
        self._bounds: list[Any] = []
        self._sorted: list[_Entry] = []  # in step with the bounds

    def add(self, access: _Entry) -> None:
        place = bisect_left(self._bounds, access.value)
        self._bounds.insert(place, access.value)
        self._sorted.insert(place, access)

    def remove(self, access: _Entry) -> None:
        place = bisect_left(self._bounds, access.value)
        del self._bounds[place], self._sorted[place]

    def share(self, entry: _Entry) -> float:
        """Values are thought to lie where bounds do; a half as long as nothing is known."""
        below = (bisect_left(self._bounds, entry.value) + 1) / (len(self._bounds) + 2)
        return below if self._upper else 1 - below

    def satisfied(self, values: Sequence[Any]) -> Sequence[_Entry]:
        # An upper bound that any value satisfies is satisfied by the smallest; a lower one by the largest.
        if self._upper:
            return self._sorted[self._place(self._bounds, min(values)) :]
        return self._sorted[: self._place(self._bounds, max(values))]


_TABLES: Final[dict[Operator, Callable[[], _Table]]] = {
    Operator.EQ: lambda: _Equal(operator.eq),
    Operator.NE: lambda: _Unequal(operator.ne),
    Operator.LT: lambda: _Bounds(operator.lt, bisect_right, upper=True),
    Operator.LE: lambda: _Bounds(operator.le, bisect_left, upper=True),
    Operator.GT: lambda: _Bounds(operator.gt, bisect_left, upper=False),
    Operator.GE: lambda: _Bounds(operator.ge, bisect_right, upper=False),
    Operator.PREFIX: lambda: _Affixes(str.startswith, lambda text, length: text[:length]),
    Operator.SUFFIX: lambda: _Affixes(str.endswith, lambda text, length: text[len(text) - length :]),
    Operator.CONTAINS: lambda: _Table(operator.contains),
    Operator.EXISTS: lambda: _Equal(operator.eq),
}


def _by_kind(values: tuple[Scalar, ...]) -> dict[Kind, list[Any]]:
    """What the tables of each kind are to look at. `exists`, of no kind, looks at a None."""
    kinds: dict[Kind, list[Any]] = {Kind.NOTHING: [None]}
    for value in values:
        kinds.setdefault(kind_of(value), []).append(value)
    return kinds


class FilterIndex(Generic[K]):
    """Filters under keys, and the keys of those that match an event."""

    def __init__(self) -> None:
        self._filters: dict[K, tuple[int, list[_Filed]]] = {}
        self._keys: dict[int, K] = {}
        self._next_serial = 0
        self._match = 0
        self._entries: dict[Constraint, _Entry] = {}
        self._tables: dict[str, dict[tuple[Operator, Kind], _Table]] = {}

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, key: object) -> bool:
        return key in self._filters

    @property
    def constraints(self) -> int:
        """How many different constraints are held; the empty conjunction counts as one."""
        return len(self._entries)

    def add(self, key: K, filter: Filter) -> None:
        """Holds the filter under the key. A key that is held already gets the new filter and keeps its place."""
        if key in self._filters:
            serial, replaced = self._filters[key]
            self._unfile(replaced)
        else:
            serial = self._next_serial
            self._next_serial += 1
            self._keys[serial] = key
        self._filters[key] = serial, [self._file(serial, conjunction) for conjunction in filter.alternatives]

    def remove(self, key: K) -> None:
        """Forgets the key and its filter; `KeyError` if the key is not held."""
        serial, conjunctions = self._filters.pop(key)
        del self._keys[serial]
        self._unfile(conjunctions)

    def match(self, event: Event) -> list[K]:
        """The keys whose filters match, each once, in the order in which the keys were added."""
        present = self._present(event)
        self._match = match = self._match + 1

        found: set[int] = set()
        for table, values in present.items():
            for access in table.satisfied(values):
                for second, group in access.groups.items():
                    if second.asked != match:
                        second.asked = match
                        second.held = second.table.holds(second, present.get(second.table, ()))
                    if not second.held:
                        continue
                    for filed in group:
                        for entry in filed.others:
                            if entry.asked != match:
                                entry.asked = match
                                entry.held = entry.table.holds(entry, present.get(entry.table, ()))
                            if not entry.held:
                                break
                        else:
                            found.add(filed.serial)
        return [self._keys[serial] for serial in sorted(found)]

    def _present(self, event: Event) -> dict[_Table, list[Any]]:
        """The tables that the event has values for, with these values."""
        present = {}
        for attribute in (TYPE, *event.attributes):
            if attribute in self._tables:
                kinds = _by_kind(event.values(attribute))
                for (_, kind), table in self._tables[attribute].items():
                    if kind in kinds:
                        present[table] = kinds[kind]
        return present

    def _file(self, serial: int, conjunction: Conjunction) -> _Filed:
        entries = [self._hold(constraint) for constraint in conjunction or _ALWAYS]
        entries.sort(key=lambda entry: entry.table.share(entry))  # the others too: verifying is to fail early
        access, *others = entries
        # Of the rest, the one that most conjunctions hold makes the largest groups. Alone, the access is its own group.
        second = max(others, key=lambda entry: entry.holders, default=access)
        if not access.groups:
            access.table.add(access)
        filed = _Filed(serial, access, second, [entry for entry in others if entry is not second])
        access.groups.setdefault(second, {})[filed] = None
        return filed

    def _unfile(self, conjunctions: list[_Filed]) -> None:
        for filed in conjunctions:
            access, second = filed.access, filed.group
            del access.groups[second][filed]
            if not access.groups[second]:
                del access.groups[second]
            if not access.groups:
                access.table.remove(access)
            for entry in dict.fromkeys((access, second, *filed.others)):  # alone, the access is its own group
                self._release(entry)

    def _hold(self, constraint: Constraint) -> _Entry:
        entry = self._entries.get(constraint)
        if entry is None:
            tables = self._tables.setdefault(constraint.attribute, {})
            family = constraint.operator, kind_of(constraint.value)
            if family not in tables:
                tables[family] = _TABLES[constraint.operator]()
            entry = self._entries[constraint] = _Entry(constraint, constraint.value, tables[family])
        entry.holders += 1
        entry.table.holders += 1
        return entry

    def _release(self, entry: _Entry) -> None:
        entry.holders -= 1
        entry.table.holders -= 1
        constraint = entry.constraint
        if not entry.holders:
            del self._entries[constraint]
        if not entry.table.holders:
            del self._tables[constraint.attribute][constraint.operator, kind_of(constraint.value)]
            if not self._tables[constraint.attribute]:
                del self._tables[constraint.attribute]
