"""Which published events the subscribers' filters match: the content part of ground truth, for one run.

`roamcast.content.rows` says how rows of a filter and of an event (`event_attribute`) are matched; this file does it on
arrays. The rules this file owns:

* Subscriptions that share a filter share the work: each different filter of a run is matched once.
* A comparison that several filters share (`category = "c1"`) is made once, and equal texts are compared once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from roamcast.content.filter import Operator
from roamcast.content.rows import ANY, BOOL, FLOAT, INT, STR, filter_rows
from roamcast.content.text import parse_filter
from roamcast.facts.rows import VALUE_COLUMNS

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_KEPT: Final = 2**28
"""Bytes of results of comparisons to cache for later filters."""

_ORDERED: Final[dict[str, Callable[[Any, Any], Any]]] = {
    Operator.EQ.value: pc.equal,
    Operator.NE.value: pc.not_equal,
    Operator.LT.value: pc.less,
    Operator.LE.value: pc.less_equal,
    Operator.GT.value: pc.greater,
    Operator.GE.value: pc.greater_equal,
}
_OF_TEXT: Final[dict[str, Callable[[Any, Any], Any]]] = {
    Operator.PREFIX.value: lambda values, bound: pc.starts_with(values, bound.as_py()),
    Operator.SUFFIX.value: lambda values, bound: pc.ends_with(values, bound.as_py()),
    Operator.CONTAINS.value: lambda values, bound: pc.match_substring(values, bound.as_py()),
}
_TYPES: Final = {INT: pa.int64(), FLOAT: pa.float64(), STR: pa.string(), BOOL: pa.bool_()}


def matches(filters: Sequence[str], attributes: pa.Table, events: Ints) -> list[Ints]:
    """For each of these different filters, the events that match it, as indices into `events`, which are ascending and
    unique."""
    values = _EventValues(attributes, events)
    found = []
    for text in filters:
        matching = np.zeros(len(events), np.bool_)
        for needed, constraints in _conjunctions(text):
            matching |= values.satisfying(needed, constraints)
        found.append(np.flatnonzero(matching))
    return found


Comparison = tuple[str, str, str, Any]
"""Attribute, operator, kind, bound."""
ComparedConjunction = tuple[int, dict[int, set[Comparison]]]
"""How many constraints it has, and the comparisons of each constraint by its number, of which one must hold."""


def _conjunctions(text: str) -> list[ComparedConjunction]:
    found: dict[int, ComparedConjunction] = {}
    for row in filter_rows(0, parse_filter(text)):
        bound = next((value for value in row[7:] if value is not None), None)
        _, by_number = found.setdefault(row.conjunction, (row.needed, {}))
        by_number.setdefault(row.constraint, set()).add((row.attribute, row.operator, row.kind, bound))
    return list(found.values())


class _EventValues:
    """The events' values, by attribute and kind."""

    def __init__(self, attributes: pa.Table, events: Ints) -> None:
        self._count = len(events)
        self._groups = dict(_groups(attributes, events))
        self._known: dict[Comparison, Mask] = {}

    def satisfying(self, needed: int, constraints: Mapping[int, set[Comparison]]) -> Mask:
        """The events that satisfy all constraints of a conjunction. A constraint that nothing satisfies has no rows."""
        if len(constraints) < needed:
            return np.zeros(self._count, np.bool_)
        every = np.ones(self._count, np.bool_)
        for comparisons in constraints.values():
            every &= np.logical_or.reduce([self._holding(one) for one in comparisons])
        return every

    def _holding(self, comparison: Comparison) -> Mask:
        if comparison not in self._known:
            if len(self._known) * self._count > _KEPT:
                self._known.clear()
            self._known[comparison] = self._compare(*comparison)
        return self._known[comparison]

    def _compare(self, attribute: str, operator: str, kind: str, bound: Any) -> Mask:  # noqa: ANN401  # a value
        holding = np.zeros(self._count, np.bool_)
        for each in VALUE_COLUMNS if kind == ANY else (kind,):
            group = self._groups.get((attribute, each))
            if group is not None:
                holding[group.satisfying(operator, bound)] = True
        return holding


class _ValueGroup:
    """The values of one attribute and kind; `event` has the index of each value's event."""

    def __init__(self, kind: str, event: Ints, values: pa.Array) -> None:
        self._event = event
        self._kind = kind
        self._codes: Ints | None = None
        self._values = values
        if kind == STR:
            values = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
            self._codes, self._values = values.indices.to_numpy(), values.dictionary

    def satisfying(self, operator: str, bound: Any) -> Ints:  # noqa: ANN401  # a value of an attribute
        if operator == Operator.EXISTS.value:
            return self._event
        test = _ORDERED.get(operator) or _OF_TEXT[operator]
        holds = test(self._values, pa.scalar(bound, _TYPES[self._kind])).to_numpy(zero_copy_only=False)
        satisfying: Ints = self._event[holds if self._codes is None else holds[self._codes]]
        return satisfying


def _groups(attributes: pa.Table, events: Ints) -> Iterator[tuple[tuple[str, str], _ValueGroup]]:
    place = np.minimum(np.searchsorted(events, attributes["event"].to_numpy()), max(0, len(events) - 1))
    ours = events[place] == attributes["event"].to_numpy() if len(events) else np.zeros(len(place), np.bool_)
    names, kinds = _coded(attributes["attribute"]), _coded(attributes["kind"])
    code = names.indices.to_numpy().astype(np.int64) * len(kinds.dictionary) + kinds.indices.to_numpy()
    rows = np.flatnonzero(ours)
    rows = rows[np.argsort(code[rows], kind="stable")]
    whole = {column: _one(attributes[column]) for column in VALUE_COLUMNS.values()}
    for part in np.split(rows, np.flatnonzero(np.diff(code[rows])) + 1):
        if len(part):
            name, kind = divmod(int(code[part[0]]), len(kinds.dictionary))
            kind_name = kinds.dictionary[kind].as_py()
            values = whole[VALUE_COLUMNS[kind_name]].take(pa.array(part))
            yield (names.dictionary[name].as_py(), kind_name), _ValueGroup(kind_name, place[part], values)


def _coded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    return _one(column if pa.types.is_dictionary(column.type) else column.dictionary_encode())


def _one(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array: chunks may have different dictionaries."""
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    whole = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) and whole.chunks else whole
