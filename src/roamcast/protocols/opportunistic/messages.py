"""What the brokers say: announces, requests, and documents in pieces.

Ages and lives are in milliseconds from the moment of sending: clocks differ, and so a document carries how long it has
been and will be, not since when and until when. The time that a message waits to be sent is not counted.

A number in a message may be any number; what uses one says what it takes it for (`Header.valid`, `clipped`).
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from roamcast.content.event import INT_MAX, INT_MIN, EventId
from roamcast.content.filter import Filter
from roamcast.protocols.messages import MAX_PIECES, Bulk, Message, Role
from roamcast.protocols.opportunistic.documents import Descriptor, Document
from roamcast.protocols.pieces import Cut
from roamcast.protocols.relays import MAX_CLAIMED, Claim
from roamcast.protocols.source_route import Path, Route, plausible

MILLISECOND: Final = 1_000_000
MAX_SCOPE: Final = 8
MAX_LISTED: Final = 4096
"""Descriptors in one announce, and documents in one request."""
_SHORT_ARRAY: Final = 16
"""MessagePack: from so many elements on, the head of an array takes 3 bytes and not 1."""
MAX_CHUNKS: Final = 64
"""Bulks that a document may take: 3968 pieces."""

Id = Annotated[int, Meta(ge=INT_MIN, le=INT_MAX)]
Number = Annotated[int, Meta(ge=0)]
Span = Annotated[int, Meta(ge=0)]
"""Milliseconds."""
MAX_SPAN: Final = 10**12
"""31 years: longer ones are taken for this."""
Mask = Annotated[int, Meta(ge=0)]
"""Of pieces in one bulk."""
Nodes = Annotated[tuple[Number, ...], Meta(max_length=MAX_CLAIMED)]


def clipped(span: int) -> int:
    """A duration that can be reckoned with."""
    return min(max(0, span), MAX_SPAN)


class Listing:
    """What a catalog lists, by content. Not on the air: it follows from the catalog."""

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
        """That of any of these documents."""
        return self.catalog[self.places[next(iter(ids))]]

    @cached_property
    def places(self) -> dict[EventId, int]:
        """Where in the catalog a document stands."""
        return {descriptor.event.id: place for place, descriptor in enumerate(self.catalog)}


class Announce(Message, frozen=True, tag="announce", dict=True):
    """A node's profile and what it can offer its neighbours: section 2.1, "Announcing".

    What follows from it (`listing`, `claim`, `plausible`) is found out once for all who hear it, if they share it.
    """

    role: ClassVar[Role] = "beacon"

    serial: Number
    """Of the announce: what its origin says next has a greater one."""
    part: Number
    """Of an announce that is longer than a frame; the first part has the profile and the neighbours."""
    scope: Number
    """Hops that it may still go, the one to its receiver included."""
    path: Path
    relays: Nodes
    """Which of its neighbours the sender of this copy has pass it on."""
    profile: Filter | None
    """What its origin wants or carries for others; None in further parts."""
    confirmed: Nodes
    """The sender's neighbours, for those who hear it directly."""
    heard: Nodes
    """Nodes that the sender hears and does not know to hear it."""
    catalog: Annotated[tuple[Descriptor, ...], Meta(max_length=MAX_LISTED)]
    ages: Annotated[tuple[Span, ...], Meta(max_length=MAX_LISTED)]
    """Of the documents in the catalog: how long ago each was published, ms."""
    lives: Annotated[tuple[Span | None, ...], Meta(max_length=MAX_LISTED)]
    """How long each may still be delivered, ms; none: as long as somebody has it. Empty if no document has a limit."""

    def encoded_size(self, encode: Callable[[object], bytes]) -> int:
        bare, listed = msgspec.structs.replace(self, catalog=()), len(self.catalog)
        longer = 0 if listed < _SHORT_ARRAY else 2
        return len(encode(bare)) + longer + self.listing.size

    @cached_property
    def listing(self) -> Listing:
        """Its catalog by content."""
        return Listing.of(self.catalog)

    @cached_property
    def claim(self) -> Claim:
        """What its sender says of its neighbours."""
        return Claim(self.confirmed, self.heard)

    @cached_property
    def plausible(self) -> bool:
        """Whether its path can be one."""
        return plausible(self.path)

    def with_listing(self, listing: Listing) -> "Announce":
        """This announce, whose catalog need not be looked through again."""
        assert listing.catalog is self.catalog
        self.__dict__["listing"] = listing
        return self


class Request(Message, frozen=True, tag="request"):
    """Documents that somebody wants of an announcer; sent back along the path that the announce took."""

    route: Route
    documents: Annotated[tuple[Id, ...], Meta(max_length=MAX_LISTED)]
    size: Annotated[int, Meta(ge=1)]
    """Of the pieces that `missing` speaks of."""
    missing: Annotated[dict[Id, Annotated[tuple[Mask, ...], Meta(max_length=MAX_CHUNKS)]], Meta(max_length=MAX_LISTED)]
    """Of documents of which some pieces are there already: those that are not, a mask for each bulk. The others are
    wanted whole."""


class Header(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """What the pieces of one bulk have in common."""

    source: Number
    """Who answers a request with it."""
    serial: Number
    """Of the source's answer: relays know by it what they have passed on."""
    scope: Number
    relays: Nodes
    document: Id
    length: Number
    """Of the document, bytes."""
    size: Annotated[int, Meta(ge=1)]
    """Of all its pieces but the last, bytes."""
    chunk: Number
    """Which bulk of the document: its first piece is number `chunk * MAX_PIECES`."""
    sent: Mask
    """Which pieces of this chunk are being sent."""
    age: Span
    life: Span | None
    hops: Number
    """How often the document was transmitted before, since it was published."""

    @cached_property
    def cut(self) -> Cut:
        return Cut(self.length, self.size)

    @property
    def first(self) -> int:
        """The number of the chunk's first piece."""
        return self.chunk * MAX_PIECES

    @property
    def valid(self) -> bool:
        """Whether it speaks of pieces that the document has."""
        pieces, last = self.cut.pieces, self.sent.bit_length()
        return pieces <= MAX_CHUNKS * MAX_PIECES and 0 < last <= MAX_PIECES and self.first + last <= pieces


class Piece(Message, frozen=True, tag="piece"):
    """One piece of a document."""

    role: ClassVar[Role] = "data"

    header: Header
    number: Number
    """In its chunk."""
    octets: bytes

    @property
    def event_id(self) -> EventId | None:
        return self.header.document


class Chunk(Bulk):
    """Pieces of a document that are sent together. They come from the document, or are those that a relay has."""

    piece: ClassVar[type[Message]] = Piece
    __slots__ = ("_octets", "_places", "document", "header")

    def __init__(self, header: Header, document: Document | None, octets: Mapping[int, bytes] | None = None) -> None:
        """`octets` has the pieces' bytes by their number in the document, where there is no document."""
        self.header = header
        self.document = document
        self._octets = {} if octets is None else octets
        self._places: list[int] | None = None  # in the chunk, of the pieces that are sent

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

    @property
    def event_id(self) -> EventId | None:
        return self.header.document

    @property
    def cause(self) -> int:
        return 0

    def pieces(self, received: int) -> int:
        """Which pieces of the document those are that have arrived of this bulk."""
        sent = self.header.sent
        if received.bit_count() == sent.bit_count():
            return sent << self.header.first
        mask = 0
        for number in range(len(self)):
            if received >> number & 1:
                mask |= 1 << self._place(number)
        return mask << self.header.first


def chunks(pieces: int) -> list[tuple[int, int]]:
    """A mask of a document's pieces as (chunk, mask in the chunk), empty ones left out."""
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
    """A mask of a document's pieces as one mask for each chunk, as a request has it."""
    found = []
    while pieces:
        found.append(pieces & ((1 << MAX_PIECES) - 1))
        pieces >>= MAX_PIECES
    return tuple(found)


def joined(masks: tuple[int, ...]) -> int:
    """The reverse of `masks`."""
    return sum(mask << number * MAX_PIECES for number, mask in enumerate(masks))
