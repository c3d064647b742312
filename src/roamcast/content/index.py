"""Matches one event against many filters: the same answer as asking each filter in turn, for a fraction of the work.

Each conjunction is filed under one of its constraints, its *access*: the one thought to hold for the fewest events.
An event looks up the accesses that it satisfies, and only the conjunctions filed there are verified, constraint by
constraint. A constraint that many conjunctions hold is one entry.

The usual alternative counts how many constraints of each conjunction hold. It visits every conjunction with a
constraint that holds, and half of all `<` and `>` hold for any event; measured, it was several times slower.

The cost of one match (attributes that the event lacks or no filter names cost nothing):

* Finding the accesses: a lookup per value (`=`), a bisection (orderings), a lookup per length in use (prefix, suffix),
  a test per different text (contains) or value (`!=`) that is an access; and a step for each access found.
* Verifying the conjunctions filed under the accesses found, each constraint once. This part grows with the accesses
  that hold, not with the number of filters. At worst all hold, and it costs as much as asking each filter.
* Sorting the matches into the order in which they were added.

Callers that match strangers' events against strangers' filters pass an `Effort`: a test of one value, or of 64
characters of a text, is a unit. If that is not enough, `EffortSpent` is raised, and the caller does what loses nobody.

Adding and removing take a few dictionary operations per constraint, and for orderings an insertion into a sorted list.
"""

import operator
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from roamcast.content.clauses import Effort
from roamcast.content.event import MAX_TEXT, MAX_VALUES, TYPE, Event, Scalar
from roamcast.content.filter import Conjunction, Constraint, Filter, Kind, Operator, kind_of

K = TypeVar("K", bound=Hashable)

_Test = Callable[[Any, Any], bool]

_CHARACTERS: Final = 64
"""Characters of a text that are searched in the time of a test."""
_MOST_TESTS: Final = MAX_VALUES + MAX_TEXT // _CHARACTERS
"""Units of effort for one constraint and one event."""

_ALWAYS: Final = (Constraint(TYPE, Operator.EXISTS),)
"""Stands for the empty conjunction: every event has a type."""


@dataclass(slots=True, eq=False)
class _SharedConstraint:
    """One constraint, shared by all conjunctions that contain it, with those filed under it.

    They are grouped by a second constraint, so that one test rules out a whole group.
    """

    constraint: Constraint
    value: Any  # the constraint's value; it is of the table's kind, which a type checker cannot know
    table: "_ConstraintTable"
    holders: int = 0
    groups: dict["_SharedConstraint", dict["_Filed", None]] = field(
        default_factory=dict
    )  # the inner one is an ordered set
    verified_in: int = 0  # the match in which it was last verified:
    held: bool = False  # the result is reused, since many conjunctions share constraints


@dataclass(slots=True, eq=False)
class _Filed:
    """One conjunction of the filter with this serial: where it is filed, and which other constraints must hold."""

    serial: int
    access: _SharedConstraint
    group: _SharedConstraint
    others: list[_SharedConstraint]


class _ConstraintTable:
    """The constraints with one attribute, one operator and one kind of value.

    `values` are the event's values of the attribute that are of this kind. This class tries every access, for the
    operators that allow nothing better (`contains`); its subclasses look them up.
    """

    def __init__(self, test: _Test) -> None:
        self.holders = 0  # conjunctions with one of the table's constraints, whether it is their access or not
        self._test = test
        self._accesses: dict[Any, _SharedConstraint] = {}

    def add(self, access: _SharedConstraint) -> None:
        self._accesses[access.value] = access

    def remove(self, access: _SharedConstraint) -> None:
        del self._accesses[access.value]

    def share(self, entry: _SharedConstraint) -> float:
        """The estimated share of events that satisfy the entry: as large as the share of constraints that ask for it.

        So a type that all filters name is known to be a bad access.
        """
        return entry.holders / self.holders

    def holds(self, entry: _SharedConstraint, values: Sequence[Any]) -> bool:
        for value in values:  # most of a match is spent here, and any() of a generator takes twice as long
            if self._test(value, entry.value):
                return True
        return False

    def satisfied(self, values: Sequence[Any]) -> Sequence[_SharedConstraint]:
        """The accesses that hold, each once. There is at least one value."""
        return [access for access in self._accesses.values() if self.holds(access, values)]

    def effort(self, values: Sequence[Any]) -> int:
        """The tests that `satisfied` takes, at most."""
        return len(self._accesses) * _tests(values)


class _Unequal(_ConstraintTable):
    """`!=`: almost every value satisfies it, so trying each wastes nothing, and it is a bad access."""

    def share(self, entry: _SharedConstraint) -> float:
        return 1.0


class _Equal(_ConstraintTable):
    """`=`; and `exists`, as equality with a None that stands for the attribute's presence."""

    def satisfied(self, values: Sequence[Any]) -> Sequence[_SharedConstraint]:
        return [self._accesses[value] for value in dict.fromkeys(values) if value in self._accesses]

    def effort(self, values: Sequence[Any]) -> int:
        return _tests(values)


class _AffixConstraints(_Equal):
    """Prefix or suffix: equality with a part of the text, for each length in use."""

    def __init__(self, test: _Test, part: Callable[[str, int], str]) -> None:
        super().__init__(test)
        self._part = part
        self._lengths: Counter[int] = Counter()

    def add(self, access: _SharedConstraint) -> None:
        super().add(access)
        self._lengths[len(access.value)] += 1

    def remove(self, access: _SharedConstraint) -> None:
        super().remove(access)
        self._lengths[len(access.value)] -= 1
        if not self._lengths[len(access.value)]:
            del self._lengths[len(access.value)]

    def satisfied(self, values: Sequence[Any]) -> Sequence[_SharedConstraint]:
        return super().satisfied(
            [self._part(text, length) for text in values for length in self._lengths if length <= len(text)]
        )

    def effort(self, values: Sequence[Any]) -> int:
        return len(self._lengths) * _tests(values)


class _BoundConstraints(_ConstraintTable):
    """One ordering: bounds are sorted, so that the satisfied ones are all after (upper) or all before one place."""

    def __init__(self, test: _Test, place: Callable[[list[Any], Any], int], *, upper: bool) -> None:
        super().__init__(test)
        self._place = place
        self._upper = upper
        self._bounds: list[Any] = []
        self._sorted: list[_SharedConstraint] = []  # in step with the bounds

    def add(self, access: _SharedConstraint) -> None:
        place = bisect_left(self._bounds, access.value)
        self._bounds.insert(place, access.value)
        self._sorted.insert(place, access)

    def remove(self, access: _SharedConstraint) -> None:
        place = bisect_left(self._bounds, access.value)
        del self._bounds[place], self._sorted[place]

    def share(self, entry: _SharedConstraint) -> float:
        """Assumes that values lie where bounds do; a half while nothing is known."""
        below = (bisect_left(self._bounds, entry.value) + 1) / (len(self._bounds) + 2)
        return below if self._upper else 1 - below

    def satisfied(self, values: Sequence[Any]) -> Sequence[_SharedConstraint]:
        # An upper bound that any value satisfies is satisfied by the smallest; a lower one by the largest.
        if self._upper:
            return self._sorted[self._place(self._bounds, min(values)) :]
        return self._sorted[: self._place(self._bounds, max(values))]

    def effort(self, values: Sequence[Any]) -> int:
        return _tests(values)


def _tests(values: Sequence[Any]) -> int:
    """Units of effort for testing each of the values once."""
    return len(values) + sum([len(value) // _CHARACTERS for value in values if type(value) is str])


_TABLES: Final[dict[Operator, Callable[[], _ConstraintTable]]] = {
    Operator.EQ: lambda: _Equal(operator.eq),
    Operator.NE: lambda: _Unequal(operator.ne),
    Operator.LT: lambda: _BoundConstraints(operator.lt, bisect_right, upper=True),
    Operator.LE: lambda: _BoundConstraints(operator.le, bisect_left, upper=True),
    Operator.GT: lambda: _BoundConstraints(operator.gt, bisect_left, upper=False),
    Operator.GE: lambda: _BoundConstraints(operator.ge, bisect_right, upper=False),
    Operator.PREFIX: lambda: _AffixConstraints(str.startswith, lambda text, length: text[:length]),
    Operator.SUFFIX: lambda: _AffixConstraints(str.endswith, lambda text, length: text[len(text) - length :]),
    Operator.CONTAINS: lambda: _ConstraintTable(operator.contains),
    Operator.EXISTS: lambda: _Equal(operator.eq),
}


def _by_kind(values: tuple[Scalar, ...]) -> dict[Kind, list[Any]]:
    """The values for the tables of each kind. `exists`, which has no kind, gets a None."""
    kinds: dict[Kind, list[Any]] = {Kind.NOTHING: [None]}
    for value in values:
        kinds.setdefault(kind_of(value), []).append(value)
    return kinds


class FilterIndex(Generic[K]):
    """Holds filters under keys, and finds the keys of those that match an event."""

    def __init__(self) -> None:
        self._filters: dict[K, tuple[int, list[_Filed]]] = {}
        self._keys: dict[int, K] = {}
        self._next_serial = 0
        self._match = 0
        self._entries: dict[Constraint, _SharedConstraint] = {}
        self._holders = 0  # constraints of all conjunctions
        self._tables: dict[str, dict[tuple[Operator, Kind], _ConstraintTable]] = {}

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, key: object) -> bool:
        return key in self._filters

    @property
    def constraints(self) -> int:
        """The number of different constraints; the empty conjunction counts as one."""
        return len(self._entries)

    def add(self, key: K, filter: Filter) -> None:
        """Adds the filter under the key. A key that is already there gets the new filter and keeps its place."""
        if key in self._filters:
            serial, replaced = self._filters[key]
            self._unfile(replaced)
        else:
            serial = self._next_serial
            self._next_serial += 1
            self._keys[serial] = key
        self._filters[key] = serial, [self._file(serial, conjunction) for conjunction in filter.alternatives]

    def remove(self, key: K) -> None:
        """Removes the key and its filter; `KeyError` if the key is not there."""
        serial, conjunctions = self._filters.pop(key)
        del self._keys[serial]
        self._unfile(conjunctions)

    def match(self, event: Event, effort: Effort | None = None) -> list[K]:
        """The keys whose filters match, each once, in the order in which the keys were added. Raises `EffortSpent` if
        that takes more than the effort."""
        present = self._present(event)
        self._match = match = self._match + 1
        if effort is not None and not self._may_exceed(effort, present):
            effort = None
        found: set[int] = set()
        for table, values in present.items():
            if effort is not None:
                effort.spend(table.effort(values))
            for access in table.satisfied(values):
                for second, group in access.groups.items():
                    if effort is not None:
                        effort.spend(1 + len(group))
                    if second.verified_in != match:
                        own = present.get(second.table, ())
                        if effort is not None:
                            effort.spend(_tests(own) or 1)
                        second.verified_in = match
                        second.held = second.table.holds(second, own)
                    if not second.held:
                        continue
                    for filed in group:
                        for entry in filed.others:
                            if entry.verified_in != match:
                                own = present.get(entry.table, ())
                                if effort is not None:
                                    effort.spend(_tests(own) or 1)
                                entry.verified_in = match
                                entry.held = entry.table.holds(entry, own)
                            if not entry.held:
                                break
                        else:
                            found.add(filed.serial)
        return [self._keys[serial] for serial in sorted(found)]

    def _may_exceed(self, effort: Effort, present: dict[_ConstraintTable, list[Any]]) -> bool:
        """Whether a match may take more than the effort; mostly not, and then nothing needs to be counted."""
        if len(self._entries) * _MOST_TESTS + self._holders < effort.left:
            return False
        tests = sum([table.holders * _tests(values) for table, values in present.items()])
        return tests + self._holders >= effort.left

    def _present(self, event: Event) -> dict[_ConstraintTable, list[Any]]:
        """The tables that the event has values for, with those values."""
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
        entries.sort(key=lambda entry: entry.table.share(entry))  # all of them: verification should fail early
        access, *others = entries
        # Of the rest, the constraint that most conjunctions share makes the largest groups. A single constraint is
        # both access and group.
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
            for entry in dict.fromkeys((access, second, *filed.others)):  # one constraint: access and group
                self._release(entry)

    def _hold(self, constraint: Constraint) -> _SharedConstraint:
        entry = self._entries.get(constraint)
        if entry is None:
            tables = self._tables.setdefault(constraint.attribute, {})
            family = constraint.operator, kind_of(constraint.value)
            if family not in tables:
                tables[family] = _TABLES[constraint.operator]()
            entry = self._entries[constraint] = _SharedConstraint(constraint, constraint.value, tables[family])
        self._holders += 1
        entry.holders += 1
        entry.table.holders += 1
        return entry

    def _release(self, entry: _SharedConstraint) -> None:
        self._holders -= 1
        entry.holders -= 1
        entry.table.holders -= 1
        constraint = entry.constraint
        if not entry.holders:
            del self._entries[constraint]
        if not entry.table.holders:
            del self._tables[constraint.attribute][constraint.operator, kind_of(constraint.value)]
            if not self._tables[constraint.attribute]:
                del self._tables[constraint.attribute]
