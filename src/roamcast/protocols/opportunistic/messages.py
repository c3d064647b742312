"""The messages between brokers: announces, requests, and documents in pieces.

Ages and lives are in milliseconds relative to the moment of sending: clocks differ, so a document carries how old it is
and how long it will live, not when it was published and when it expires. The time that a message waits to be sent is
not counted.

A number in a message may be any number; the code that uses it checks or limits it (`Header.valid`, `clipped`).
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import count
from operator import attrgetter
from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from roamcast.content.event import INT_MAX, INT_MIN, EventId
from roamcast.content.filter import Filter
from roamcast.protocols.messages import LONGEST, MAX_PIECES, Bulk, Message, Role
from roamcast.protocols.opportunistic.documents import Descriptor, Document
from roamcast.protocols.pieces import Cut, cut_of
from roamcast.protocols.relays import MAX_CLAIMED, Claim
from roamcast.protocols.source_route import Path, Route, origin, plausible

MILLISECOND: Final = 1_000_000
MAX_SCOPE: Final = 8
MAX_LISTED: Final = 4096
"""Most descriptors in one announce, and most documents in one request."""
_ID: Final = attrgetter("event.id")
_SHORT_ARRAY: Final = 16
"""MessagePack: from this many elements on, the head of an array takes 3 bytes instead of 1."""
MAX_CHUNKS: Final = 64
"""Most bulks per document: 3968 pieces."""

Id = Annotated[int, Meta(ge=INT_MIN, le=INT_MAX)]
Number = Annotated[int, Meta(ge=0)]
Span = Annotated[int, Meta(ge=0)]
"""Milliseconds."""
MAX_SPAN: Final = 10**12
"""31 years: longer durations are clipped to this."""
Mask = Annotated[int, Meta(ge=0)]
"""A bit mask of pieces in one bulk."""
Nodes = Annotated[tuple[Number, ...], Meta(max_length=MAX_CLAIMED)]


def clipped(span: int) -> int:
    """A duration limited to `MAX_SPAN`, safe to calculate with."""
    return min(max(0, span), MAX_SPAN)


class Listing:
    """The documents of a catalog, by content. Never sent: every receiver derives it from the catalog."""

    def __init__(self, catalog: tuple[Descriptor, ...], contents: dict[bytes, frozenset[EventId]], size: int) -> None:
        self.catalog = catalog
        self.contents = contents
        """The documents of each content."""
        self.size = size
        """Bytes of the encoded descriptors."""

    @staticmethod
    def of(catalog: tuple[Descriptor, ...]) -> "Listing":
        found: defaultdict[bytes, list[EventId]] = defaultdict(list)
        for descriptor in catalog:
            found[descriptor.content].append(descriptor.event.id)
        contents = {content: frozenset(ids) for content, ids in found.items()}
        return Listing(catalog, contents, sum([descriptor.size for descriptor in catalog]))

    def one_of(self, ids: frozenset[EventId]) -> Descriptor:
        """The descriptor of any one of these documents."""
        return self.catalog[self.places[next(iter(ids))]]

    @cached_property
    def places(self) -> dict[EventId, int]:
        """Each document's position in the catalog."""
        return dict(zip(map(_ID, self.catalog), count(), strict=False))


class Announce(Message, frozen=True, tag="announce", dict=True):
    """A node's profile and what it can offer its neighbours: section 2.1, "Announcing".

    What derives from it (`listing`, `claim`, `plausible`) is computed once for all receivers that share the object.
    """

    role: ClassVar[Role] = "beacon"
    longest: ClassVar[int | None] = LONGEST
    elements: ClassVar[int] = 2**16  # some thousand descriptors

    serial: Number
    """The announce's number; its origin's next announce has a greater one."""
    part: Number
    """Which part this is, if the announce is longer than a frame; the first has the profile and the neighbours."""
    scope: Number
    """Hops that it may still travel, including the one to its receiver."""
    path: Path
    relays: Nodes
    """The neighbours that the sender of this copy chose to pass it on."""
    profile: Filter | None
    """What its origin wants or carries for others; None in all parts but the first."""
    confirmed: Nodes
    """The sender's neighbours, for those who hear it directly."""
    heard: Nodes
    """Nodes that the sender hears, without knowing whether they hear it."""
    catalog: Annotated[tuple[Descriptor, ...], Meta(max_length=MAX_LISTED)]
    ages: Annotated[tuple[Span, ...], Meta(max_length=MAX_LISTED)]
    """How long ago each document in the catalog was published, ms."""
    lives: Annotated[tuple[Span | None, ...], Meta(max_length=MAX_LISTED)]
    """How long each may still be delivered, ms; None: as long as a node has it. Empty if no document has a limit."""

    def subject(self, sender: int) -> tuple[int, int, int] | None:
        """An announce that is not passed on comes once."""
        return (origin(self.path, sender), self.serial, self.part) if self.path or self.scope > 1 else None

    def encoded_size(self, encode: Callable[[object], bytes]) -> int:
        bare, listed = msgspec.structs.replace(self, catalog=()), len(self.catalog)
        longer = 0 if listed < _SHORT_ARRAY else 2
        return len(encode(bare)) + longer + self.listing.size

    def without(self, refused: frozenset[EventId]) -> "Announce":
        places = [place for place, listed in enumerate(self.catalog) if listed.event.id not in refused]
        return msgspec.structs.replace(
            self,
            catalog=tuple([self.catalog[place] for place in places]),
            ages=tuple([self.ages[place] for place in places if place < len(self.ages)]),
            lives=tuple([self.lives[place] for place in places if place < len(self.lives)]),
        )

    @cached_property
    def listing(self) -> Listing:
        """Its catalog by content."""
        return Listing.of(self.catalog)

    @cached_property
    def claim(self) -> Claim:
        """What its sender announces about its neighbours."""
        return Claim(self.confirmed, self.heard)

    @cached_property
    def plausible(self) -> bool:
        """Whether its path is possible."""
        return plausible(self.path)

    def with_listing(self, listing: Listing) -> "Announce":
        """This announce with its listing already computed."""
        assert listing.catalog is self.catalog
        self.__dict__["listing"] = listing
        return self


class Request(Message, frozen=True, tag="request"):
    """Documents that a node requests from an announcer; sent back along the path that the announce took."""

    longest: ClassVar[int | None] = 2**17
    elements: ClassVar[int] = 2**14  # a document in part has 64 masks

    route: Route
    documents: Annotated[tuple[Id, ...], Meta(max_length=MAX_LISTED)]
    size: Annotated[int, Meta(ge=1)]
    """The size of the pieces in `missing`."""
    missing: Annotated[dict[Id, Annotated[tuple[Mask, ...], Meta(max_length=MAX_CHUNKS)]], Meta(max_length=MAX_LISTED)]
    """For documents that the requester has in part: the missing pieces, one mask per bulk. All other documents are
    requested whole."""


class Header(msgspec.Struct, frozen=True, array_like=True):
    """What the pieces of one bulk have in common."""

    source: Number
    """The node that answers a request with it."""
    serial: Number
    """The number of the source's answer, by which relays recognise what they have passed on."""
    scope: Number
    relays: Nodes
    document: Id
    length: Number
    """The document's length in bytes."""
    size: Annotated[int, Meta(ge=1)]
    """The size of each piece but the last, in bytes."""
    chunk: Number
    """Which bulk of the document this is: its first piece is number `chunk * MAX_PIECES`."""
    sent: Mask
    """Which pieces of this chunk are being sent."""
    age: Span
    life: Span | None
    hops: Number
    """How often the document was transmitted on its way, before this transmission."""

    @property
    def cut(self) -> Cut:
        return cut_of(self.length, self.size)

    @property
    def first(self) -> int:
        """The number of the chunk's first piece."""
        return self.chunk * MAX_PIECES

    @property
    def valid(self) -> bool:
        """Whether the document can have these pieces."""
        pieces, last = self.cut.pieces, self.sent.bit_length()
        return pieces <= MAX_CHUNKS * MAX_PIECES and 0 < last <= MAX_PIECES and self.first + last <= pieces


class Piece(Message, frozen=True, tag="piece"):
    """One piece of a document."""

    role: ClassVar[Role] = "data"
    longest: ClassVar[int | None] = 2**16

    header: Header
    number: Number
    """The piece's number in its chunk."""
    octets: bytes

    @property
    def event_id(self) -> EventId | None:
        return self.header.document


class Chunk(Bulk):
    """Pieces of a document that are sent together: taken from the document, or those that a relay has."""

    piece: ClassVar[type[Message]] = Piece
    __slots__ = ("_octets", "_places", "document", "header")

    def __init__(self, header: Header, document: Document | None, octets: Mapping[int, bytes] | None = None) -> None:
        """`octets` has the pieces' bytes by their number in the document, for a sender without the whole document."""
        self.header = header
        self.document = document
        self._octets = {} if octets is None else octets
        self._places: list[int] | None = None  # the numbers in the chunk of the pieces that are sent

    def __len__(self) -> int:
        return self.header.sent.bit_count()

    def _place(self, number: int) -> int:
        sent = self.header.sent
        if sent & (sent + 1) == 0 and 0 <= number < sent.bit_length():  # no gaps
            return number
        if self._places is None:
            self._places = [place for place in range(sent.bit_length()) if sent >> place & 1]
        return self._places[number]

    def __getitem__(self, number: int) -> Piece:
        place = self._place(number)
        whole = self.header.first + place
        if whole in self._octets:
            return Piece(self.header, place, self._octets[whole])
        assert self.document is not None
        return Piece(self.header, place, self.document.octets(*self.header.cut.span(whole)))

    def sizes(self, size: Callable[[Message], int]) -> tuple[int, int]:
        header, cut = self.header, self.header.cut
        empty = size(Piece(header, 0, b""))
        last = header.first + header.sent.bit_length() - 1
        first = header.first + (header.sent & -header.sent).bit_length() - 1
        return empty + _added(cut, first), empty + _added(cut, last)

    @property
    def event_id(self) -> EventId | None:
        return self.header.document

    @property
    def cause(self) -> int:
        return 0

    def pieces(self, received: int) -> int:
        """The mask, in the whole document, of the pieces that arrived of this bulk."""
        sent = self.header.sent
        if received.bit_count() == sent.bit_count():
            return sent << self.header.first
        mask = 0
        for number in range(len(self)):
            if received >> number & 1:
                mask |= 1 << self._place(number)
        return mask << self.header.first


def _added(cut: Cut, number: int) -> int:
    """Bytes that a piece's own bytes add to the encoding of an empty piece, with the word for their number."""
    start, end = cut.span(number)
    octets = end - start
    return octets if octets < 2**8 else octets + 1 if octets < 2**16 else octets + 3


def chunks(pieces: int) -> list[tuple[int, int]]:
    """A mask of a document's pieces as (chunk, mask in the chunk), without empty chunks."""
    found = []
    chunk = 0
    while pieces:
        part = pieces & ((1 << MAX_PIECES) - 1)
        if part:
            found.append((chunk, part))
        pieces >>= MAX_PIECES
        chunk += 1
    return found


def masks(pieces: int) -> tuple[int, ...]:
    """A mask of a document's pieces as one mask per chunk, as requests encode it."""
    found = []
    while pieces:
        found.append(pieces & ((1 << MAX_PIECES) - 1))
        pieces >>= MAX_PIECES
    return tuple(found)


def joined(masks: tuple[int, ...]) -> int:
    """The reverse of `masks`."""
    return sum(mask << number * MAX_PIECES for number, mask in enumerate(masks))
