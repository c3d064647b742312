"""A conjunction prepared for comparing and joining with many others.

Why this is sound on attributes with several values: two different values may satisfy two constraints of one
conjunction, so a constraint follows only from **one** other constraint, never from two together: `p >= 5 and p <= 5`
does not imply `p = 5`. For the same reason a join widens each constraint by itself. One constraint may replace two
alternatives (`p < 5 or p = 5` is `p <= 5`), but two may not (`[1, 5] or [4, 9]` is not `[1, 9]`).
"""

import bisect
import difflib
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from roamcast.content.event import TYPE, Scalar
from roamcast.content.filter import Conjunction, Constraint, Filter, Kind, Operator
from roamcast.content.intervals import LEAST, Bound, ValueSet, canonical, from_low, joined, spelt, up_to_high, value_set

MAX_HULLS: Final = 64
"""How many pairs of constraints on one attribute a join looks at. Skipping some makes the join wider, not wrong."""

MAX_NEAR: Final = 32
"""How many constraints on the same attribute one is compared with, to drop those that follow from another. Only an
attacker sends more; a constraint that is not dropped is redundant, not wrong."""

MAX_TEXT: Final = 32
"""Characters of a text that are searched for a common part: the search takes quadratic time."""


_HULL: Final = 3
_TEXT_HULL: Final = 100
"""Units of effort for one hull, and the addition for one that searches for a common text."""


class EffortSpent(Exception):
    """A comparison of filters exceeded its limit."""


class Effort:
    """The limit on comparing filters, in comparisons of two regions (about a microsecond each).

    Filters come from strangers, and simplifying them takes more than linear time: without a limit, one message could
    keep a node busy for hours. Counted, not timed, so that the same filters give the same result everywhere.
    """

    def __init__(self, units: float) -> None:
        self._left = units

    @property
    def left(self) -> float:
        return self._left

    def spend(self, units: int) -> None:
        self._left -= units
        if self._left < 0:
            raise EffortSpent


NO_LIMIT: Final = Effort(math.inf)


class ConstraintTerm(NamedTuple):
    """A constraint and the values it accepts."""

    constraint: Constraint
    region: ValueSet


@dataclass(frozen=True, slots=True, eq=False)
class Clause:
    """A satisfiable conjunction without redundant constraints, except beyond `MAX_NEAR`.

    Compared by identity; `key` orders and equates.
    """

    terms: dict[str, list[ConstraintTerm]]
    """By attribute; attributes, and the terms of each, in canonical order."""
    conjunction: Conjunction
    key: tuple[tuple[str, int, Kind, Scalar], ...]
    size: int
    """Bytes of the conjunction's encoding."""

    @property
    def depth(self) -> int:
        """The most constraints on one attribute."""
        return max(map(len, self.terms.values()), default=0)

    def without(self, dropped: Constraint) -> "Clause":
        """The clause without one of its constraints; still without redundancy."""
        attribute = dropped.attribute
        terms = {name: held for name, held in self.terms.items() if name != attribute or len(held) > 1}
        if attribute in terms:
            terms[attribute] = [term for term in terms[attribute] if term.constraint is not dropped]
        conjunction = tuple(constraint for constraint in self.conjunction if constraint is not dropped)
        key = tuple(constraint.key for constraint in conjunction)
        return Clause(terms, conjunction, key, len(msgspec.msgpack.encode(conjunction)))

    def covers(self, other: "Clause") -> bool:
        """Whether this clause holds for every event that `other` holds for."""
        for attribute, wanted in self.terms.items():
            given = other.terms.get(attribute)
            if given is None:
                return False
            for _, region in wanted:
                for _, narrower in given:
                    if narrower.within(region):
                        break
                else:
                    return False
        return True


def clause_of(constraints: Iterable[Constraint], effort: Effort = NO_LIMIT) -> Clause | None:
    """The clause of a conjunction; None if no event can satisfy it."""
    kept: dict[str, list[ConstraintTerm]] = {}
    for constraint in sorted(map(_canonical, constraints), key=lambda constraint: constraint.key):
        region = value_set(constraint)
        if not region.intervals:
            return None
        if constraint.attribute == TYPE and region.is_all_strings:
            continue  # every event has a type
        terms = kept.setdefault(constraint.attribute, [])
        near = terms[-MAX_NEAR:]
        effort.spend(1 + len(near))
        if not any(other.region.within(region) for other in near):
            terms[-MAX_NEAR:] = [other for other in near if not region.within(other.region)]
            terms.append(ConstraintTerm(constraint, region))
    conjunction = tuple(term.constraint for terms in kept.values() for term in terms)
    key = tuple(constraint.key for constraint in conjunction)
    return Clause(kept, conjunction, key, len(msgspec.msgpack.encode(conjunction)))


def satisfiable(constraints: Iterable[Constraint], effort: Effort = NO_LIMIT) -> Clause:
    """The clause of a conjunction that is no narrower than a satisfiable one."""
    clause = clause_of(constraints, effort)
    assert clause is not None, "what follows from a satisfiable conjunction is satisfiable"
    return clause


def _canonical(constraint: Constraint) -> Constraint:
    if isinstance(constraint.value, float):
        return Constraint(constraint.attribute, constraint.operator, canonical(constraint.value))
    return constraint


def clauses_of(filters: Iterable[Filter], effort: Effort = NO_LIMIT) -> list[Clause]:
    """The satisfiable conjunctions of all the filters, each once, in canonical order."""
    clauses = {
        clause.key: clause
        for filter in filters
        for conjunction in filter.alternatives
        if (clause := clause_of(conjunction, effort)) is not None
    }
    return in_order(clauses.values())


def in_order(clauses: Iterable[Clause]) -> list[Clause]:
    return sorted(clauses, key=lambda clause: clause.key)


def simplified(clauses: list[Clause], effort: Effort = NO_LIMIT) -> list[Clause]:
    """The same union with fewer clauses: drops covered ones, and unites pairs whose union is exactly one clause."""
    while True:
        kept = _uncovered(in_order(clauses), effort)
        clauses = _united(kept, effort)
        if len(clauses) == len(kept):
            return clauses


def _uncovered(clauses: list[Clause], effort: Effort) -> list[Clause]:
    """The clauses that no other covers; of those that cover each other, the first."""
    lows = _Lows(clauses)
    gone: set[int] = set()
    for position, clause in enumerate(clauses):
        if position not in gone:
            candidates = lows.candidates(clause)
            effort.spend(len(candidates) * (1 + len(clause.conjunction)))
            for other in candidates:
                if other != position and other not in gone and clause.covers(clauses[other]):
                    gone.add(other)
    return [clause for position, clause in enumerate(clauses) if position not in gone]


class _Lows:
    """Finds the clauses that one clause may cover, by the low ends of their regions.

    A region that lies in an interval begins in it. Without this, a thousand clauses need a million comparisons.
    """

    def __init__(self, clauses: list[Clause]) -> None:
        self._everyone = range(len(clauses))
        entries: dict[tuple[str, Kind], list[tuple[Bound, int]]] = defaultdict(list)
        for position, clause in enumerate(clauses):
            for attribute, terms in clause.terms.items():
                for _, region in terms:
                    # Of all strings with a certain suffix or part, bounds can exclude only that text itself.
                    low = region.has if region.text_operator else region.intervals[0][0]
                    entries[attribute, region.kind].append((low, position))
        self._lows: dict[tuple[str, Kind], list[Bound]] = {}
        self._positions: dict[tuple[str, Kind], list[int]] = {}
        for place, pairs in entries.items():
            if place[1] is not Kind.NOTHING:
                pairs.sort()
                self._lows[place] = [low for low, _ in pairs]
                self._positions[place] = [position for _, position in pairs]

    def candidates(self, clause: Clause) -> Sequence[int]:
        """The positions of all clauses that `clause` covers, and of some others; some may come twice."""
        best: Sequence[int] = self._everyone
        for attribute, terms in clause.terms.items():
            for _, region in terms:
                if region.kind is not Kind.NOTHING:
                    low, high = region.intervals[0][0], region.intervals[-1][1]
                    lows = self._lows[attribute, region.kind]
                    start = bisect.bisect_left(lows, low)
                    end = len(lows) if high is None else bisect.bisect_left(lows, high)
                    if end - start < len(best):
                        best = self._positions[attribute, region.kind][start:end]
        return best


def _united(clauses: list[Clause], effort: Effort) -> list[Clause]:
    """Unites clauses that differ in a single constraint on the same attribute, in one pass.

    One constraint says the union of two regions of one attribute exactly: some value lies in one of them if and only
    if some value lies in their union.
    """
    alike: dict[tuple[str, Conjunction], list[tuple[Clause, ConstraintTerm]]] = defaultdict(list)
    for clause in clauses:
        effort.spend(len(clause.conjunction) ** 2)
        for attribute, terms in clause.terms.items():
            for term in terms:
                rest = tuple(constraint for constraint in clause.conjunction if constraint is not term.constraint)
                alike[attribute, rest].append((clause, term))
    gone: set[Clause] = set()
    made: list[Clause] = []
    for (_, rest), members in alike.items():
        free = [(clause, term) for clause, term in members if clause not in gone]
        # Only regions that touch can become one interval, so only neighbours in the order of their low ends are tried.
        free.sort(key=lambda member: (member[1].region.kind, member[1].region.intervals[0][0]))
        for (first, one), (second, other) in itertools.pairwise(free):
            union = None if first in gone else _union(one, other)
            if union is not None:
                gone |= {first, second}
                made.append(satisfiable((*rest, union), effort))
    return [clause for clause in clauses if clause not in gone] + made


def _union(one: ConstraintTerm, other: ConstraintTerm) -> Constraint | None:
    """The constraint that accepts exactly the values that one of the two accepts; None if there is none."""
    first, second = one.region, other.region
    if first.kind is not second.kind or first.kind is Kind.NOTHING or first.text_operator or second.text_operator:
        return None
    return spelt(one.constraint.attribute, joined(first.intervals, second.intervals), _values(one, other))


def _values(*terms: ConstraintTerm) -> list[Scalar]:
    return [term.constraint.value for term in terms if term.constraint.value is not None]


def join(one: Clause, other: Clause, effort: Effort = NO_LIMIT) -> Clause:
    """A clause that covers both, as tight as single constraints allow. Drops what only one of them constrains."""
    return satisfiable(
        (
            constraint
            for attribute, terms in one.terms.items()
            for first, second in itertools.islice(itertools.product(terms, other.terms.get(attribute, ())), MAX_HULLS)
            for constraint in _hull(first, second, effort)
        ),
        effort,
    )


def _hull(one: ConstraintTerm, other: ConstraintTerm, effort: Effort) -> Iterator[Constraint]:
    """Constraints that both imply: the tightest of each kind."""
    effort.spend(
        _HULL + (_TEXT_HULL if Operator.CONTAINS in (one.region.text_operator, other.region.text_operator) else 0)
    )
    first, second = one.region, other.region
    if first.within(second):
        yield other.constraint
    elif second.within(first):
        yield one.constraint
    elif (union := _union(one, other)) is not None:
        yield union
    else:
        yield from _widened(one, other)


def _widened(one: ConstraintTerm, other: ConstraintTerm) -> Iterator[Constraint]:
    attribute, kind = one.constraint.attribute, one.region.kind
    if kind is not other.region.kind or kind is Kind.BOOL:
        yield Constraint(attribute, Operator.EXISTS)
        return
    begins = _common_beginning(one.region.begins, other.region.begins)
    ends = _common_beginning(one.region.ends[::-1], other.region.ends[::-1])[::-1]
    has = "" if begins or ends else _common_text(one.region, other.region)
    texts = (Operator.PREFIX, begins), (Operator.SUFFIX, ends), (Operator.CONTAINS, has)
    yield from (Constraint(attribute, operator, text) for operator, text in texts if text)
    # A common beginning bounds both ends in one constraint.
    bounds = [] if begins else list(_bounds(one, other))
    yield from bounds
    if not (begins or ends or has or bounds):
        yield Constraint(attribute, Operator.GE, LEAST[kind])


def _bounds(one: ConstraintTerm, other: ConstraintTerm) -> Iterator[Constraint]:
    """The lower of the low ends and the higher of the high ends, where there are such ends."""
    low = min(one.region.intervals[0][0], other.region.intervals[0][0])
    if low != LEAST[one.region.kind]:
        yield from_low(one.constraint.attribute, low, _values(one, other))
    first, second = one.region.intervals[-1][1], other.region.intervals[-1][1]
    if first is not None and second is not None:
        yield up_to_high(one.constraint.attribute, max(first, second), _values(one, other))


def _common_beginning(one: str, other: str) -> str:
    length = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        length += 1
    return one[:length]


def _common_text(one: ValueSet, other: ValueSet) -> str:
    """The longest text that the strings of both contain; searched for only if one of them is a `contains`."""
    if Operator.CONTAINS not in (one.text_operator, other.text_operator):
        return ""
    first, second = one.has[:MAX_TEXT], other.has[:MAX_TEXT]
    match = difflib.SequenceMatcher(None, first, second, autojunk=False).find_longest_match()
    return first[match.a : match.a + match.size]
