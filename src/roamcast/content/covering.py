"""What can be known about filters without an event: which covers which, and one filter that stands for many.

`covers(a, b)` is sound: if it says so, every event that matches b matches a. Between two conjunctions it is also
complete, but for the type, which has a single value: `type >= "a" and type <= "a"` is not seen to imply `type = "a"`,
nor `type = "a" and type = "b"` to be impossible. (And for one oddity of strings, in `intervals.py`.) What it does not
see is when only several alternatives of a together cover one of b: `p < 5 or p >= 5` covers `p != 7`, and `covers` says
no. `summarise` finds some of those unions and makes them one alternative.

Everything here works on clauses; `clauses.py` explains why that is sound.
"""

import bisect
import functools
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from roamcast.content.clauses import Clause, Effort, EffortSpent, clauses_of, in_order, join, satisfiable, simplified
from roamcast.content.filter import EVERYTHING, MAX_CONSTRAINTS, Conjunction, Constraint, Filter, Kind
from roamcast.content.intervals import LEAST, ValueSet, common
from roamcast.errors import ContentError

MIN_BUDGET: Final = len(msgspec.msgpack.encode(EVERYTHING))

FEW: Final = 40
"""Up to this many clauses, every pair is a candidate for a join; above, only neighbours in some attribute's order."""

ROUND: Final = 8
"""Above `FEW`, one in this many clauses is joined before the candidates are searched again."""

SHARE_OF_KIND: Final = 0.9
"""The assumed share of an attribute's values that are of the kind most filters ask for. It only has to be below 1."""


EFFORT: Final = 100_000
EFFORT_PER_CONSTRAINT: Final = 400
"""The limit on comparing filters, in units of `Effort`."""


def covers(a: Filter, b: Filter) -> bool:
    """Whether bounded effort shows that every event that matches `b` matches `a`."""
    effort = effort_for([a, b])
    try:
        return clauses_cover(clauses_of([a], effort), clauses_of([b], effort), effort)
    except EffortSpent:
        return False


def clauses_cover(wide: Sequence[Clause], narrow: Sequence[Clause], effort: Effort) -> bool:
    """`covers` for filters prepared as clauses, to compare them many times. Raises `EffortSpent`."""
    return all(any(_covers(one, other, effort) for one in wide) for other in narrow)


def _covers(wide: Clause, narrow: Clause, effort: Effort) -> bool:
    effort.spend(1)
    if not wide.terms.keys() <= narrow.terms.keys():
        return False
    effort.spend(len(wide.conjunction) * narrow.depth)
    return wide.covers(narrow)


def effort_for(filters: Iterable[Filter]) -> Effort:
    """The limit on comparing or merging these filters."""
    return Effort(EFFORT + EFFORT_PER_CONSTRAINT * sum(map(len, _conjunctions(filters))))


def _conjunctions(filters: Iterable[Filter]) -> Iterator[Conjunction]:
    return itertools.chain.from_iterable(filter.alternatives for filter in filters)


def summarise(filters: Iterable[Filter], budget: int, effort: int | None = None) -> Filter:
    """One filter that covers them all, whose encoding has at most `budget` bytes.

    It is the exact union if that fits. Otherwise it is widened step by step: each step joins two alternatives or drops
    a constraint, whichever lets through the least additional traffic per byte saved, not counting bytes beyond those
    still to be saved; `_Estimate` estimates the traffic. Leftover bytes are spent on constraints again. The result
    does not depend on the order of the filters.

    The effort is bounded by a multiple of the number of constraints, or by `effort` (about a microsecond each). Filters
    that would take more, which only an attacker writes, are covered by what all their alternatives have in common, or
    by a filter that matches everything.
    """
    if budget < MIN_BUDGET:
        raise ContentError(f"a summary needs a budget of at least {MIN_BUDGET} bytes, not {budget}")
    filters = list(filters)
    try:
        return _summarised(filters, budget, effort_for(filters) if effort is None else Effort(effort))
    except EffortSpent:
        return shared(filters, budget)


def _summarised(filters: list[Filter], budget: int, effort: Effort) -> Filter:
    exact = simplified(clauses_of(filters, effort), effort)
    if _fits(exact, budget):
        return _filter(exact)
    clauses, widening = exact, _Widening(exact, effort)
    while not _fits(clauses, budget):
        clauses = widening.round(clauses, budget)
    return _filter(_tightened(in_order(clauses), exact, budget, effort))


def shared(filters: Iterable[Filter], budget: int) -> Filter:
    """One alternative with the constraints that all alternatives share, as many as fit: wide, but made in one pass."""
    first, *others = _conjunctions(filters)
    common_to_all = set(first).intersection(*others)
    chosen: list[Constraint] = []
    left = budget - MIN_BUDGET - 4  # for the lengths of longer arrays
    for constraint in sorted(common_to_all, key=lambda constraint: constraint.key):
        left -= len(msgspec.msgpack.encode(constraint))
        if left >= 0:
            chosen.append(constraint)
    return Filter((tuple(chosen),))


def _filter(clauses: list[Clause]) -> Filter:
    return Filter(tuple(clause.conjunction for clause in clauses))


def _size(clauses: list[Clause]) -> int:
    """Bytes of their filter's encoding."""
    count = len(clauses)
    # MessagePack: one byte before up to 15 elements of an array, three before up to 65,535, five before more.
    header = 1 if count < 16 else 3 if count < 65536 else 5
    return 1 + header + sum(clause.size for clause in clauses)


def _fits(clauses: list[Clause], budget: int) -> bool:
    return _size(clauses) <= budget and sum(len(clause.conjunction) for clause in clauses) <= MAX_CONSTRAINTS


def _tightened(clauses: list[Clause], exact: list[Clause], budget: int, effort: Effort) -> list[Clause]:
    """The clauses with constraints added back as far as they fit: those shared by all clauses that each one replaces.

    A step may drop a constraint to save bytes that a later step saves anyway; this repairs that.
    """
    members: dict[Clause, list[Clause]] = {clause: [] for clause in clauses}
    for narrow in exact:
        members[next(clause for clause in clauses if _covers(clause, narrow, effort))].append(narrow)
    # A clause that replaces nothing, since others cover all of it, is not needed.
    result = [clause for clause in clauses if members[clause]]
    for position, clause in enumerate(tuple(result)):
        for constraint in functools.reduce(lambda one, other: join(one, other, effort), members[clause]).conjunction:
            tighter = result.copy()
            effort.spend(1 + len(result) // 16)
            tighter[position] = satisfiable((*result[position].conjunction, constraint), effort)
            if _fits(tighter, budget):
                result = tighter
    return result


class _Selectivity:
    """Estimates how much of the traffic a clause lets through, from 0 to 1.

    Nothing is known about the events. The estimate assumes that an attribute has one value, independent of the others,
    and that values fall evenly between the bounds that the filters themselves name: where subscribers make
    distinctions, events differ. The share of an interval is then the share of the bounds that lie in it, whatever the
    unit. The share of a suffix or a contained text falls with its length.
    """

    def __init__(self, clauses: list[Clause]) -> None:
        marks: dict[tuple[str, Kind], set[Any]] = defaultdict(set)
        for clause in clauses:
            for attribute, terms in clause.terms.items():
                for term in terms:
                    ends = itertools.chain.from_iterable(term.region.intervals)
                    marks[attribute, term.region.kind].update(end for end in ends if end is not None)
        for (_, kind), values in marks.items():
            if kind is not Kind.NOTHING:
                values.add(LEAST[kind])
        self._marks = {place: sorted(values) for place, values in marks.items()}

    def share(self, *clauses: Clause) -> float:
        """The share of events for which all these clauses hold."""
        regions: dict[str, list[ValueSet]] = defaultdict(list)
        for clause in clauses:
            for attribute, terms in clause.terms.items():
                regions[attribute] += [term.region for term in terms]
        share = 1.0
        for attribute in sorted(regions):
            share *= self._attribute_share(attribute, regions[attribute])
        return share

    def _attribute_share(self, attribute: str, regions: list[ValueSet]) -> float:
        typed = [region for region in regions if region.kind is not Kind.NOTHING]
        if not typed:
            return 1.0
        kind, intervals = typed[0].kind, typed[0].intervals
        if any(region.kind is not kind for region in typed):
            return 0.0
        for region in typed[1:]:
            intervals = common(intervals, region.intervals)
        marks = self._marks[attribute, kind]
        inside = 0
        for low, high in intervals:
            end = len(marks) if high is None else bisect.bisect_left(marks, high)
            inside += end - bisect.bisect_left(marks, low)
        share = SHARE_OF_KIND * inside / len(marks)
        for text in sorted({region.has for region in typed if region.text_operator}):
            share /= 1 + len(text)
        return share


class _Step(NamedTuple):
    """Some clauses replaced by one that covers them."""

    loss: float
    """The share of the traffic that it additionally lets through."""
    saved: int
    """Bytes; never 0, so the steps come to an end."""
    replaced: tuple[Clause, ...]
    result: Clause


class _Widening:
    """The steps from one set of clauses to a smaller one, remembered between rounds."""

    def __init__(self, clauses: list[Clause], effort: Effort) -> None:
        self._effort = effort
        self._estimate = _Selectivity(clauses)
        self._shares: dict[Clause, float] = {}
        self._steps: dict[tuple[Clause, ...], tuple[_Step, ...]] = {}

    def round(self, clauses: list[Clause], budget: int) -> list[Clause]:
        """The clauses after the best step, or, if there are many clauses, after the best several disjoint steps."""
        clauses = in_order(clauses)
        number = {clause: position for position, clause in enumerate(clauses)}
        self._effort.spend(len(clauses))
        candidates = [step for group in _groups(clauses) for step in self._known_steps(group)]
        excess = max(1, _size(clauses) - budget)
        candidates.sort(
            key=lambda step: (
                step.loss / min(step.saved, excess),
                -step.saved,
                [number[clause] for clause in step.replaced],
            )
        )
        left = 1 if len(clauses) <= FEW else len(clauses) // ROUND
        untouched = set(clauses)
        for step in candidates:
            self._effort.spend(1)
            if not left or _fits(clauses, budget):
                break
            if untouched.issuperset(step.replaced):
                untouched.difference_update(step.replaced)
                self._effort.spend(len(clauses) * (1 + len(step.result.conjunction)))
                # No other clause covers the result: it would cover the replaced clauses, and those were not covered.
                clauses = [clause for clause in clauses if not step.result.covers(clause)]
                clauses.append(step.result)
                untouched.intersection_update(clauses)
                left -= 1
        return clauses

    def _known_steps(self, group: tuple[Clause, ...]) -> tuple[_Step, ...]:
        steps = self._steps.get(group)
        if steps is None:
            results = _dropped(*group) if len(group) == 1 else [join(group[0], group[1], self._effort)]
            steps = tuple(step for result in results if (step := self._step(group, result)).saved > 0)
            self._steps[group] = steps
        return steps

    def _step(self, replaced: tuple[Clause, ...], result: Clause) -> _Step:
        self._effort.spend(sum(len(clause.conjunction) * (1 + clause.depth) for clause in (result, *replaced)))
        saved = sum(clause.size for clause in replaced) - result.size
        before = sum(map(self._share, replaced))
        if len(replaced) == 2:
            before -= self._estimate.share(*replaced)  # what both let through was counted twice
        return _Step(max(0.0, self._share(result) - before), saved, replaced, result)

    def _share(self, clause: Clause) -> float:
        if clause not in self._shares:
            self._shares[clause] = self._estimate.share(clause)
        return self._shares[clause]


def _dropped(clause: Clause) -> Iterator[Clause]:
    """The clause without each of its constraints in turn."""
    for constraint in clause.conjunction:
        yield clause.without(constraint)


def _groups(clauses: list[Clause]) -> Iterator[tuple[Clause, ...]]:
    """Each clause alone, and the pairs that are worth a look."""
    yield from ((clause,) for clause in clauses)
    if len(clauses) <= FEW:
        yield from itertools.combinations(clauses, 2)
        return
    attributes: dict[str, list[Clause]] = defaultdict(list)
    for clause in clauses:
        for attribute in clause.terms:
            attributes[attribute].append(clause)
    # Two clauses may be neighbours in the order of several attributes; a dict keeps each pair once, in order.
    pairs: dict[tuple[Clause, Clause], None] = {}
    for attribute, members in attributes.items():
        members.sort(key=lambda clause: _place(clause.terms[attribute][0].region))
        pairs.update(dict.fromkeys(itertools.pairwise(members)))
    yield from pairs


def _place(region: ValueSet) -> tuple[Any, ...]:
    """An order in which regions that have much in common are neighbours."""
    return region.kind, region.intervals[0][0] if region.kind is not Kind.NOTHING else 0, region.ends[::-1], region.has
