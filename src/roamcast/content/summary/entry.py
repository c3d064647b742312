"""One event type in a summary: its ETN, its elements, and the EAL that says which of them belong together.

The rules this file owns:

* The EAL is an array of bits: a column for each element that a subscription names, a row for each different set of
  elements that one conjunction names. An event passes if it passes all elements of **some row**: subscriptions name
  different elements, so nothing need pass all rows.
* An entry without elements passes every event of its type. An entry with elements and without rows (the EAL is switched
  off, or there were too many rows) passes what passes one element: every conjunction has one.
* Rows recombine: `category = "jazz" and composer = "Evans"` and `category = "classic" and composer = "Bach"` share a
  row, which passes jazz by Bach. The *association*, an option, is a Bloom vector of what a conjunction asks for
  together (`association.py`). A row then has a second mask, of the elements that it looks up, and a step for each.
* What does not fit is widened: of more than `MAX_ELEMENTS`, those that the fewest rows name are dropped, and a row with
  nothing left passes everything; if there are more than `MAX_ROWS` rows, all rows are dropped.
"""

import functools
import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from roamcast.content.summary.association import Wanted, known, wanted
from roamcast.content.summary.bloom import VectorBuilder, check_vector, contains
from roamcast.content.summary.digest import MAX_ELEMENTS, DigestValues
from roamcast.content.summary.element import PRESENT, Element, ElementBuilder, ElementCondition, ElementId
from roamcast.content.summary.hashing import joint_hash
from roamcast.errors import ContentError

MAX_ROWS: Final = 256

MAX_JOINT: Final = 8
"""Elements of a row whose values are looked up together."""

MAX_COMBINATIONS: Final = 16
"""Combinations of an event's values to look up in an association for one row; with more, the row passes. And of what
one conjunction puts into it; with more, fewer elements are looked up."""


class EntryRow(NamedTuple):
    """A row of the EAL, as bits of an entry's elements."""

    mask: int
    joint: int = 0
    """The elements that are looked up in the association."""
    steps: bytes = b""
    """For each of them, how: see `association.py`."""


class TypeEntry(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """Which events of one type, or of any type, pass."""

    type: int | None
    """The hash of the type; None if the type is not asked for."""
    elements: tuple[Element, ...] = ()
    rows: bytes = b""
    """The masks of the rows, one after the other, each in as many bytes as there are elements in bits."""
    association: bytes | None = None
    """If it is there, each row's mask is followed by the mask of the elements that are looked up here, and their steps:
    a byte for each bit."""

    def __post_init__(self) -> None:
        if self.type is not None and not 0 <= self.type < 1 << 32:
            raise ContentError(f"the hash of a type has 32 bits: {self.type}")
        if len(self.elements) > MAX_ELEMENTS:
            raise ContentError(f"a type has at most {MAX_ELEMENTS} elements, not {len(self.elements)}")
        ids = [element.id for element in self.elements]
        if sorted(set(ids)) != ids:
            raise ContentError("the elements of a type must ascend")
        check_vector(self.association or b"", "an association")
        if len(self.unpacked) > MAX_ROWS:
            raise ContentError(f"a type has at most {MAX_ROWS} rows")
        for mask, joint, _ in self.unpacked:
            if not mask or mask >> len(ids) or joint & ~mask or joint.bit_count() > MAX_JOINT:
                raise ContentError("a row names no element, one that is not there, or too many to look up")

    @functools.cached_property
    def unpacked(self) -> list[EntryRow]:
        """The rows, of which no more than one too many."""
        found: list[EntryRow] = []
        at, width = 0, (len(self.elements) + 7) // 8
        while at < len(self.rows) and len(found) <= MAX_ROWS:
            middle = at + (width or len(self.rows))
            mask, joint, steps = int.from_bytes(self.rows[at:middle], "little"), 0, b""
            at = middle
            if self.association is not None:
                joint = int.from_bytes(self.rows[at : at + width], "little")
                steps = self.rows[at + width : at + width + joint.bit_count()]
                at += width + joint.bit_count()
            if at > len(self.rows):
                raise ContentError("the rows of a type are cut short")
            found.append(EntryRow(mask, joint, steps))
        return found

    def passes(self, values: Mapping[int, DigestValues], more: bool, hashes: int) -> bool:
        """Whether an event with these values may be wanted; `more` if it may have other elements, too."""
        if not self.elements:
            return True
        failing = 0
        for position, element in enumerate(self.elements):
            found = values.get(element.key)
            if not (more if found is None else element.accepts(found, hashes)):
                failing |= 1 << position
        if not self.rows:
            return failing != (1 << len(self.elements)) - 1
        return any(not row.mask & failing and self._associated(row, values, hashes) for row in self.unpacked)

    def _associated(self, row: EntryRow, values: Mapping[int, DigestValues], hashes: int) -> bool:
        if not self.association or not row.joint:
            return True
        keys = [element.key for position, element in enumerate(self.elements) if row.joint >> position & 1]
        tokens = [known(values.get(key, ()), step) or () for key, step in zip(keys, row.steps, strict=True)]
        if not 0 < math.prod(map(len, tokens)) <= MAX_COMBINATIONS:  # 0: one of them is unknown
            return True
        return any(
            contains(self.association, joint_hash(list(zip(keys, chosen, strict=True))), hashes)
            for chosen in itertools.product(*tokens)
        )


class ElementRow(NamedTuple):
    """A row before the elements have their columns. Both ascend."""

    ids: tuple[ElementId, ...]
    joint: tuple[ElementId, ...] = ()
    steps: bytes = b""


class EntryBuilder:
    """An entry in the making. The order in which conjunctions and entries are added does not matter."""

    def __init__(self, type: int | None, bits: int, hashes: int, *, use_eal: bool, association: bool) -> None:
        self._type = type
        self._bits = bits
        self._hashes = hashes
        self._elements: dict[ElementId, ElementBuilder] = {}
        self._rows: set[ElementRow] | None = set() if use_eal else None
        self._association = VectorBuilder(bits, hashes) if use_eal and association else None
        self._everything = False

    def add(self, conditions: Mapping[int, list[ElementCondition]]) -> None:
        """Adds a conjunction, as conditions per element. A key has several if the hashes of names collide."""
        ids: set[ElementId] = set()
        asked: dict[ElementId, Wanted] = {}
        for key, kept in conditions.items():
            for condition in kept:
                id = key, condition != PRESENT
                ids.add(id)
                self._element(id).add(condition)
                if self._association is not None and (found := wanted(condition)) is not None:
                    asked.setdefault(id, found)
        joint = _together(asked)
        if self._association is not None:
            for tokens in itertools.product(*(asked[id].tokens for id in joint)) if joint else ():
                self._association.add(joint_hash([(id[0], each) for id, each in zip(joint, tokens, strict=True)]))
        self._add_row(ElementRow(tuple(sorted(ids)), joint, bytes(asked[id].step for id in joint)))

    def unite(self, entry: TypeEntry) -> None:
        """Adds what another entry of this type passes."""
        if entry.association is None:
            self._association = None
        elif self._association is not None:
            self._association.unite(entry.association)
        ids = [element.id for element in entry.elements]
        for element in entry.elements:
            self._element(element.id).unite(element)
        for mask, joint, steps in entry.unpacked:
            self._add_row(ElementRow(_chosen(ids, mask), _chosen(ids, joint), steps))
        self._everything |= not ids
        if not entry.rows:
            self._rows = None

    def build(self) -> TypeEntry:
        ids = sorted(self._elements)
        rows = self._rows
        if len(ids) > MAX_ELEMENTS and rows is not None:
            ids = _in_most(rows)
            rows = _without_others(rows, ids)
        if self._everything or len(ids) > MAX_ELEMENTS or (rows is not None and ElementRow(()) in rows):
            return TypeEntry(self._type)
        association = None if self._association is None else self._association.build()
        if rows is not None and (association is None or len(rows) > MAX_ROWS):
            rows, association = {ElementRow(row.ids) for row in rows}, None
        if rows is None or len(rows) > MAX_ROWS:
            rows, association = set(), None
        elements = tuple(self._elements[id].build() for id in ids)
        return TypeEntry(self._type, elements, _array(rows, ids, association is not None), association)

    def _element(self, id: ElementId) -> ElementBuilder:
        if id not in self._elements:
            self._elements[id] = ElementBuilder(id[0], self._bits, self._hashes)
        return self._elements[id]

    def _add_row(self, row: ElementRow) -> None:
        self._everything |= not row.ids
        if self._rows is not None:
            self._rows.add(row)


def _together(asked: Mapping[ElementId, Wanted]) -> tuple[ElementId, ...]:
    """The elements of a conjunction that are looked up together; none if there are no two."""
    joint: list[ElementId] = []
    combinations = 1
    for id in sorted(asked):
        if len(joint) < MAX_JOINT and combinations * len(asked[id].tokens) <= MAX_COMBINATIONS:
            joint.append(id)
            combinations *= len(asked[id].tokens)
    return tuple(joint) if len(joint) > 1 else ()


def _chosen(ids: Sequence[ElementId], mask: int) -> tuple[ElementId, ...]:
    return tuple(id for position, id in enumerate(ids) if mask >> position & 1)


def _in_most(rows: set[ElementRow]) -> list[ElementId]:
    """The elements that most rows name, as many as an entry may have."""
    count = Counter(id for row in rows for id in row.ids)
    return sorted(sorted(count, key=lambda id: (-count[id], id))[:MAX_ELEMENTS])


def _without_others(rows: set[ElementRow], ids: list[ElementId]) -> set[ElementRow]:
    """The rows without the elements that are not in `ids`. Values are no longer looked up where one is missing."""
    kept = set(ids)
    return {
        ElementRow(tuple(id for id in row.ids if id in kept), *(row[1:] if kept.issuperset(row.joint) else ()))
        for row in rows
    }


def _array(rows: set[ElementRow], ids: list[ElementId], association: bool) -> bytes:
    """The rows as `TypeEntry.rows` has them, ascending."""
    bit = {id: 1 << position for position, id in enumerate(ids)}
    width = (len(ids) + 7) // 8
    packed = sorted(
        EntryRow(sum(map(bit.__getitem__, row.ids)), sum(map(bit.__getitem__, row.joint)), row.steps) for row in rows
    )
    return b"".join(
        row.mask.to_bytes(width, "little") + (row.joint.to_bytes(width, "little") + row.steps if association else b"")
        for row in packed
    )
