"""A broker's subscriptions in a few hundred bytes: an array of entries, one for each event type.

The rules this file owns:

* A digest passes if the entry of its type passes it, or the entry of any type. A conjunction without `type = ...`
  belongs to the latter; other constraints on the type are not kept.
* The union of summaries passes everything that one of them passes. As long as nothing was widened to fit, it equals
  the summary of all their filters together, in any order.
* A summary has at most `MAX_TYPES` entries and a budget of bytes. To keep within it, the largest entries lose their
  elements first, so that all events of these types pass; if that is not enough, all events pass.
* A summary without elements fits any columns. Two with different columns have no common keys: their union keeps the
  types alone.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

import msgspec

from roamcast.content.event import TYPE
from roamcast.content.filter import Conjunction, Constraint, Filter, Operator
from roamcast.content.summary.bloom import MAX_BITS, MAX_HASHES
from roamcast.content.summary.columns import BY_NAME, Columns
from roamcast.content.summary.digest import Affixes, EventDigest
from roamcast.content.summary.element import ElementCondition, condition_of
from roamcast.content.summary.entry import EntryBuilder, TypeEntry
from roamcast.content.summary.hashing import type_hash
from roamcast.content.summary.params import DEFAULTS, SummaryParams, check_budget
from roamcast.errors import ContentError

MAX_TYPES: Final = 256


class Summary(msgspec.Struct, frozen=True, array_like=True):
    """What a broker wants, or what a forwarder knows is wanted downstream. `Summary()` wants nothing."""

    entries: tuple[TypeEntry, ...] = ()
    """The entry of any type first, then by the type's hash."""
    hashes: int = DEFAULTS.hashes
    columns: int = 0
    """The fingerprint of the columns that the elements' keys refer to."""

    def __post_init__(self) -> None:
        if not (1 <= self.hashes <= MAX_HASHES and 0 <= self.columns < 1 << 64):
            raise ContentError("a summary's number of hashes or fingerprint of columns is out of range")
        if len(self.entries) > MAX_TYPES:
            raise ContentError(f"a summary has at most {MAX_TYPES} types, not {len(self.entries)}")
        types = [_order(entry.type) for entry in self.entries]
        if sorted(set(types)) != types:
            raise ContentError("the types of a summary must ascend")

    @classmethod
    def of(cls, filters: Iterable[Filter], params: SummaryParams = DEFAULTS, columns: Columns = BY_NAME) -> "Summary":
        """The summary of filters, in any order."""
        conjunctions = [conjunction for filter in filters for conjunction in filter.alternatives]
        names = {constraint.attribute for conjunction in conjunctions for constraint in conjunction}
        keys = {name: columns.key(name) for name in names}
        builder = _Builder(params.bits, params.hashes, use_eal=params.use_eal, association=params.association)
        for conjunction in conjunctions:
            types = [constraint for constraint in conjunction if constraint.attribute == TYPE]
            if _is_possible(types):
                name = next((str(one.value) for one in types if one.operator is Operator.EQ), None)
                builder.entry(None if name is None else type_hash(name)).add(_conditions(conjunction, keys, params))
        return builder.build(columns.fingerprint, params.budget)

    @property
    def size(self) -> int:
        """Bytes that the summary adds to a message."""
        return len(msgspec.msgpack.encode(self))

    @property
    def affixes(self) -> Affixes:
        """The elements whose prefixes and suffixes the summary asks for: what a digest should carry."""
        asked = [(element.key, element.sec) for entry in self.entries for element in entry.elements if element.sec]
        return Affixes(
            frozenset(key for key, sec in asked if sec.prefix), frozenset(key for key, sec in asked if sec.suffix)
        )

    def union(self, *others: "Summary", budget: int = DEFAULTS.budget) -> "Summary":
        """A summary of all that this one and the others want."""
        check_budget(budget)
        united = [summary for summary in (self, *others) if summary.entries]
        fingerprints = {summary.columns for summary in united if any(entry.elements for entry in summary.entries)}
        hashes = min((summary.hashes for summary in united), default=DEFAULTS.hashes)
        builder = _Builder(MAX_BITS, hashes, use_eal=True, association=True)
        for summary in united:
            for entry in summary.entries:
                builder.entry(entry.type).unite(entry if len(fingerprints) < 2 else TypeEntry(entry.type))
        return builder.build(fingerprints.pop() if len(fingerprints) == 1 else 0, budget)

    def passes(self, digest: EventDigest) -> bool:
        """Whether somebody may want the event. False means that nobody does."""
        entries = [entry for entry in self.entries if entry.type is None or entry.type == digest.type]
        if not entries or self.columns != digest.columns:
            return bool(entries)
        values = digest.elements
        return any(entry.passes(values, digest.more, self.hashes) for entry in entries)


class _Builder:
    """A summary in the making: an entry in the making for each type."""

    def __init__(self, bits: int, hashes: int, *, use_eal: bool, association: bool) -> None:
        self._bits = bits
        self._hashes = hashes
        self._use_eal = use_eal
        self._association = association
        self._entries: dict[int | None, EntryBuilder] = {}

    def entry(self, type: int | None) -> EntryBuilder:
        if type not in self._entries:
            self._entries[type] = EntryBuilder(
                type, self._bits, self._hashes, use_eal=self._use_eal, association=self._association
            )
        return self._entries[type]

    def build(self, columns: int, budget: int) -> Summary:
        entries = _fitting([self._entries[type].build() for type in sorted(self._entries, key=_order)], budget)
        if _EVERYTHING in entries:
            entries = [_EVERYTHING]
        if not entries:
            return Summary()
        has_elements = any(entry.elements for entry in entries)
        return Summary(tuple(entries), self._hashes, columns if has_elements else 0)


_EVERYTHING: Final = TypeEntry(None)

_HEADER: Final = 14
"""Bytes of a summary without its entries, at most: two arrays' headers, the number of hashes and the fingerprint."""


def _order(type: int | None) -> int:
    return -1 if type is None else type


def _is_possible(types: list[Constraint]) -> bool:
    """Whether an event's type, which is one string, may satisfy these constraints. Not all contradictions are found."""
    if any(one.operator is not Operator.EXISTS and not isinstance(one.value, str) for one in types):
        return False
    name = next((one.value for one in types if one.operator is Operator.EQ), None)
    return name is None or all(one.accepts(name) for one in types)


def _conditions(
    conjunction: Conjunction, keys: dict[str, int], params: SummaryParams
) -> dict[int, list[ElementCondition]]:
    """What is kept of a conjunction, by element."""
    attributes: dict[str, list[Constraint]] = defaultdict(list)
    for constraint in conjunction:
        if constraint.attribute != TYPE:
            attributes[constraint.attribute].append(constraint)
    conditions: dict[int, list[ElementCondition]] = defaultdict(list)
    for attribute, constraints in attributes.items():
        conditions[keys[attribute]].append(condition_of(constraints, params.use_aec, params.use_sec))
    return conditions


def _fitting(entries: list[TypeEntry], budget: int) -> list[TypeEntry]:
    """The entries; if they are too long, without the elements of the largest."""
    sizes = [len(msgspec.msgpack.encode(entry)) for entry in entries]
    excess = _HEADER + sum(sizes) - budget
    # The entry of any type comes last: without elements it lets everything through.
    for position in sorted(
        range(len(entries)), key=lambda position: (entries[position].type is None, -sizes[position])
    ):
        if excess <= 0:
            break
        bare = TypeEntry(entries[position].type)
        excess -= sizes[position] - len(msgspec.msgpack.encode(bare))
        entries[position] = bare
    return entries if excess <= 0 and len(entries) <= MAX_TYPES else [_EVERYTHING]
