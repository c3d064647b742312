"""Partial documents: something long that arrives in numbered pieces, from one or several senders, until complete.

The rules this file owns:

* A document is `length` bytes cut into pieces of `size`; the last has the rest. Pieces of the same document cut in
  another way cannot be combined with those here: the newest cut counts.
* A bit mask says which pieces are here. In a simulator, which shares objects, pieces refer to the one whole document,
  and no byte is copied; on a device, the pieces' own bytes are held.
* Bounded in documents and in bytes: the document longest without progress is dropped first.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, Generic, TypeVar

K = TypeVar("K")
W = TypeVar("W")

PIECE_COST: Final = 64
"""Bytes of memory that a piece takes beyond its own."""


@dataclass(frozen=True)
class Cut:
    """How a document is cut."""

    length: int
    size: int

    @cached_property
    def pieces(self) -> int:
        """The number of pieces; an empty document is one empty piece."""
        return max(1, -(-self.length // self.size))

    @cached_property
    def all(self) -> int:
        """The mask of all pieces."""
        return (1 << self.pieces) - 1

    @property
    def cost(self) -> int:
        """Bytes of memory that a piece takes."""
        return self.size + PIECE_COST

    def span(self, number: int) -> tuple[int, int]:
        """The first byte of a piece, and the byte after its last."""
        return number * self.size, min(self.length, (number + 1) * self.size)

    def overlapping(self, start: int, end: int) -> int:
        """The mask of the pieces with bytes from `start` to `end`."""
        first, last = start // self.size, -(-end // self.size)
        return ((1 << last) - 1) & ~((1 << first) - 1) & self.all


@lru_cache(maxsize=1024)
def cut_of(length: int, size: int) -> Cut:
    """The same for all pieces of a document and all who hear them: what follows from it is computed once."""
    return Cut(length, size)


class Partial(Generic[W]):
    """The pieces of one document that are here."""

    __slots__ = ("cut", "have", "octets", "period", "whole")

    def __init__(self, cut: Cut) -> None:
        self.cut = cut
        self.have = 0
        """Bit n: piece n is here."""
        self.octets: dict[int, bytes] = {}
        """Pieces that came as bytes."""
        self.whole: W | None = None
        """The whole document that the other pieces belong to."""
        self.period = 0
        """In which period, between two calls of `drop_idle`, a piece last came."""

    @property
    def complete(self) -> bool:
        return self.have == self.cut.all

    @property
    def missing(self) -> int:
        return self.cut.all & ~self.have

    def beginning(self, length: int) -> bytes | None:
        """The first bytes, `length` or more, if they came as bytes and are complete; a document may be shorter."""
        pieces = min(self.cut.pieces, -(-length // self.cut.size))
        wanted = (1 << pieces) - 1
        if self.have & wanted != wanted or self.whole is not None:
            return None
        return b"".join(self.octets[number] for number in range(pieces))

    def prefix(self) -> bytes:
        """The bytes of the first pieces, up to the first one that is missing or did not come as bytes."""
        pieces: list[bytes] = []
        while len(pieces) in self.octets:
            pieces.append(self.octets[len(pieces)])
        return b"".join(pieces)

    def part(self, start: int, end: int) -> bytes:
        """The bytes from `start` to `end`, whose pieces are here and came as bytes."""
        size = self.cut.size
        first = start // size
        joined = b"".join(self.octets[number] for number in range(first, -(-end // size)))
        return joined[start - first * size : end - first * size]

    @property
    def cost(self) -> int:
        """Bytes that it takes; shared pieces count as much as on a device."""
        return self.have.bit_count() * self.cut.cost


class Partials(Generic[K, W]):
    """Documents of which only some pieces are here."""

    def __init__(self, documents: int, octets: int) -> None:
        """At most so many documents, and so many bytes in all."""
        if documents < 1 or octets < 0:
            raise ValueError(f"partial documents need room for one, not for {documents} of {octets} bytes")
        self._documents = documents
        self._octets = octets
        self._partials: dict[K, Partial[W]] = {}  # longest without progress first
        self._period = 0
        self.cost = 0

    def get(self, key: K) -> Partial[W] | None:
        return self._partials.get(key)

    def add(self, key: K, cut: Cut, number: int, octets: bytes) -> Partial[W] | None:
        """Adds a piece that came as bytes; returns its partial document, or None if the piece does not fit it."""
        if not 0 <= number < cut.pieces or len(octets) != cut.span(number)[1] - cut.span(number)[0]:
            return None
        partial = self._touched(key, cut)
        if not partial.have >> number & 1:
            partial.octets[number] = octets
            self._set(partial, 1 << number)
        return self._within_bounds(key, partial)

    def add_shared(self, key: K, cut: Cut, pieces: int, whole: W) -> Partial[W] | None:
        """Adds pieces of a shared whole document."""
        partial = self._touched(key, cut)
        partial.whole = whole
        self._set(partial, pieces & cut.all)
        return self._within_bounds(key, partial)

    def would_take(self, key: K, cut: Cut) -> bool:
        """Whether a new document, added at once, would push out no other: then it need not be stored here first."""
        room = len(self._partials) < self._documents and self.cost + cut.pieces * cut.cost <= self._octets
        return room and key not in self._partials

    def drop(self, key: K, pieces: int) -> None:
        """Removes pieces of a document that came as bytes: they were not what they should be."""
        partial = self._partials[key]
        self.cost -= partial.cost
        partial.have &= ~pieces
        partial.octets = {number: octets for number, octets in partial.octets.items() if not pieces >> number & 1}
        self.cost += partial.cost
        if not partial.have:
            self.pop(key)

    def pop(self, key: K) -> Partial[W] | None:
        """Removes and returns a document."""
        partial = self._partials.pop(key, None)
        if partial is not None:
            self.cost -= partial.cost
        return partial

    def drop_idle(self) -> None:
        """Removes the documents of which no piece came since the last call."""
        for key in [key for key, partial in self._partials.items() if partial.period < self._period]:
            self.pop(key)
        self._period += 1

    def _touched(self, key: K, cut: Cut) -> Partial[W]:
        partial = self._partials.pop(key, None)
        if partial is not None and partial.cut != cut:
            self.cost -= partial.cost
            partial = None
        if partial is None:
            partial = Partial(cut)
        partial.period = self._period
        self._partials[key] = partial
        return partial

    def _set(self, partial: Partial[W], pieces: int) -> None:
        self.cost += (pieces & ~partial.have).bit_count() * partial.cut.cost
        partial.have |= pieces

    def _within_bounds(self, key: K, partial: Partial[W]) -> Partial[W]:
        """Drops others to make room; a document that is too long for the bound stays until another comes."""
        while len(self._partials) > 1 and (len(self._partials) > self._documents or self.cost > self._octets):
            oldest = next(iter(self._partials))
            self.pop(oldest)
        return partial

    def __contains__(self, key: K) -> bool:
        return key in self._partials

    def __len__(self) -> int:
        return len(self._partials)
