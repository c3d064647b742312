"""Columns: the elements that a network agreed on, so that a small number can replace each name.

The paper takes them from the XML schema, an ordered set of elements and attributes. `Columns(schema.names("CD"))` does
that; the names of several schemas make one list. An element outside the list, and every element if there is no list,
goes by the hash of its name. So one summary can have both kinds of key, and an event may have more elements than its
schema.

Keys mean something only under the same list. Summaries and digests carry its fingerprint; if two differ, only the type
is compared: that lets more through, never less.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

import msgspec

from roamcast.content.event import check_name
from roamcast.content.summary.hashing import name_key
from roamcast.errors import ContentError

MAX_COLUMNS: Final = 1024


class Columns:
    """An ordered list of element names; repetitions count once."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(dict.fromkeys(names))
        if len(self.names) > MAX_COLUMNS:
            raise ContentError(f"at most {MAX_COLUMNS} columns can be agreed on, not {len(self.names)}")
        for name in self.names:
            check_name(name, "a column's name")
        self._positions = {name: position for position, name in enumerate(self.names)}
        encoded = msgspec.msgpack.encode(self.names)
        self.fingerprint = int.from_bytes(blake2b(encoded, digest_size=8).digest(), "big") if self.names else 0

    def key(self, name: str) -> int:
        """The key of an element: its position in the list, or the hash of its name."""
        position = self._positions.get(name)
        return name_key(name) if position is None else position


BY_NAME: Final = Columns(())
"""Nothing is agreed on: every element goes by the hash of its name."""
