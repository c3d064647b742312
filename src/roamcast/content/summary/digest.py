"""The digest of an event: enough of it to test against a summary whether somebody may want it.

A digest has the type's hash and, for each element, its values: numbers and booleans as they are, since ranges cannot be
tested on hashes, and strings as hashes. A publisher makes it and chooses which prefixes and suffixes to include: those
of all strings, or those of the elements that the summaries it received ask for (`Affixes`). What is not included
passes, so a publisher that knows too little floods more, but loses no subscriber.

What does not fit passes as well: an element with more than `MAX_VALUES` values is present with its values unknown, and
an event with more than `MAX_ELEMENTS` elements says that there are others. So does a digest for which only some of an
event's elements were asked.
"""

from collections.abc import Container, Sequence
from typing import Final, NamedTuple

import msgspec

from roamcast.content.event import Event, Scalar, check_scalar
from roamcast.content.intervals import canonical
from roamcast.content.summary.columns import BY_NAME, MAX_COLUMNS, Columns
from roamcast.content.summary.hashing import NAMED, WHOLE, prefix_hashes, string_hash, suffix_hashes, type_hash
from roamcast.content.summary.strings import Text
from roamcast.errors import ContentError

MAX_ELEMENTS: Final = 256
"""Elements of a digest, and of one type in a summary."""

MAX_VALUES: Final = 16
"""Different values of one element."""

Value = int | float | bool | bytes | Text
"""A number, a boolean, the hash of a string, or a hash with the hashes of its affixes."""

DigestValues = tuple[Value, ...]
"""The values of one element; none if they are unknown."""


class Affixes(NamedTuple):
    """The keys of the elements whose prefixes and suffixes somebody asks for."""

    prefix: frozenset[int] = frozenset()
    suffix: frozenset[int] = frozenset()


class EventDigest(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """What a Join Request says about an event."""

    type: int
    columns: int = 0
    """The fingerprint of the columns that `present` refers to."""
    present: bytes = b""
    """Bit i, the lowest first: the event has the element of column i."""
    names: bytes = b""
    """The hashes of the names of all other elements, 4 bytes each, ascending."""
    values: tuple[DigestValues, ...] = ()
    """The values of the elements in `present`, then of those in `names`."""
    more: bool = False
    """Whether the event has elements that are not listed."""

    def __post_init__(self) -> None:
        if not (0 <= self.type < 1 << 32 and 0 <= self.columns < 1 << 64):
            raise ContentError("a digest's type has 32 bits, and the fingerprint of its columns 64")
        if len(self.present) * 8 > MAX_COLUMNS or len(self.names) % WHOLE:
            raise ContentError("a digest's elements are not a mask of columns and hashes of names")
        keys = _keys(self.present, self.names)
        if len(keys) > MAX_ELEMENTS or len(keys) != len(self.values):
            raise ContentError(f"a digest has {len(self.values)} values for {len(keys)} of {MAX_ELEMENTS} elements")
        named = keys[len(keys) - len(self.names) // WHOLE :]
        if any(key < NAMED for key in named) or sorted(set(named)) != named:
            raise ContentError("the hashes of a digest's names must ascend")
        for values in self.values:
            _check_values(values)
        self.__dict__["elements"] = dict(zip(keys, self.values, strict=True))

    @classmethod
    def of(
        cls,
        event: Event,
        columns: Columns = BY_NAME,
        affixes: Affixes | None = None,
        elements: Container[int] | None = None,
    ) -> "EventDigest":
        """The digest of an event, with all prefixes and suffixes, or only with those of some elements.

        If `elements` is given, only those with these keys are listed.
        """
        found: dict[int, list[Scalar]] = {}
        for name, values in event.attributes.items():
            found.setdefault(columns.key(name), []).extend(values)  # names whose hashes collide are one element
        keys = sorted(key for key in found if elements is None or key in elements)[:MAX_ELEMENTS]
        present = sum(1 << key for key in keys if key < NAMED)
        return cls(
            type_hash(event.type),
            columns.fingerprint,
            present.to_bytes((present.bit_length() + 7) // 8, "little"),
            b"".join(key.to_bytes(WHOLE, "big") for key in keys if key >= NAMED),
            tuple(
                _values(found[key], affixes is None or key in affixes.prefix, affixes is None or key in affixes.suffix)
                for key in keys
            ),
            len(keys) < len(found),
        )

    @property
    def size(self) -> int:
        """Bytes that the digest adds to a message."""
        return len(msgspec.msgpack.encode(self))

    @property
    def elements(self) -> dict[int, DigestValues]:
        """The values of each element, by its key. Computed once, since a digest is tested against many summaries."""
        elements: dict[int, DigestValues] = self.__dict__["elements"]
        return elements


def _keys(present: bytes, names: bytes) -> list[int]:
    columns = [at * 8 + bit for at, byte in enumerate(present) if byte for bit in range(8) if byte >> bit & 1]
    return columns + [int.from_bytes(names[at : at + WHOLE], "big") for at in range(0, len(names), WHOLE)]


def _check_values(values: DigestValues) -> None:
    if len(values) > MAX_VALUES:
        raise ContentError(f"an element of a digest has at most {MAX_VALUES} values, not {len(values)}")
    for value in values:
        if isinstance(value, bytes):
            if len(value) != WHOLE:
                raise ContentError(f"the hash of a string has {WHOLE} bytes, not {len(value)}")
        elif not isinstance(value, Text):
            check_scalar(value, "a value of a digest")


def _values(values: Sequence[Scalar], prefix: bool, suffix: bool) -> DigestValues:
    different = dict.fromkeys((isinstance(value, bool), value) for value in values)  # Python takes True for 1
    if len(different) > MAX_VALUES:
        return ()
    return tuple(_value(value, prefix, suffix) for _, value in different)


def _value(value: Scalar, prefix: bool, suffix: bool) -> Value:
    if isinstance(value, str):
        whole = string_hash(value)
        if not (prefix or suffix):
            return whole
        return Text(whole, prefix_hashes(value) if prefix else None, suffix_hashes(value) if suffix else None)
    spelt = canonical(value)
    assert not isinstance(spelt, str)
    return spelt
