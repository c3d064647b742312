"""Documents: an event as it is stored, announced and sent in pieces.

Haillot and Guidec, section 2.1: a document is its descriptor, by which it is announced and matched, and its content.
Here the event's type and attributes are the descriptor, its payload is the content, and its id is the identifier.

On the air a document is its *head* (the length of the descriptor, then the descriptor) and the payload, split into
pieces of equal size. So the first piece, or the first few if the descriptor is long, tell what the document is about.
Bytes of a payload are copied only for pieces that are really sent.
"""

from functools import cached_property
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from roamcast.content.event import Event, EventId, Scalar
from roamcast.content.structure import Decoder, Limits
from roamcast.errors import ContentError
from roamcast.protocols.pieces import Cut, Partial

_WORD: Final = 4
"""Bytes that encode the descriptor's length, at the start of a document."""
_TIMES: Final = 12
"""Most bytes that a document's age and life take in an announce."""

MAX_HEAD: Final = 80 * 1024
"""Bytes of a descriptor: as many as the type and attributes of an event can have, or more."""
_HEAD: Final = Decoder[tuple[str, dict[str, tuple[Scalar, ...]]]](
    tuple[str, dict[str, tuple[Scalar, ...]]], Limits(MAX_HEAD)
)


class Descriptor(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """What a catalog says about a document."""

    event: Event
    """Without its payload."""
    length: Annotated[int, Meta(ge=0)]
    """Bytes of the document, head and payload."""

    @cached_property
    def content(self) -> bytes:
        """The encoded type and attributes. A filter matches all documents of equal content, or none of them."""
        return msgspec.msgpack.encode((self.event.type, self.event.attributes))

    @cached_property
    def size(self) -> int:
        """The size of its encoding in bytes."""
        return len(msgspec.msgpack.encode(self))


class Document:
    """An event that can be sent in pieces. In a simulator one object serves all the nodes that have it."""

    __slots__ = ("_head", "descriptor", "event", "id", "length", "listed")

    def __init__(self, event: Event) -> None:
        self.event = event
        self.id = event.id
        described = msgspec.msgpack.encode((event.type, event.attributes))
        self._head = len(described).to_bytes(_WORD, "big") + described
        bare = Event(event.type, event.attributes, b"", event.id) if event.payload else event
        self.length = len(self._head) + len(event.payload)
        self.descriptor = Descriptor(bare, self.length)
        self.listed = self.descriptor.size + _TIMES
        """Most bytes that it takes in an announce."""

    def head_pieces(self, cut: Cut) -> int:
        """The mask of the pieces that contain the descriptor."""
        return (1 << -(-len(self._head) // cut.size)) - 1

    def octets(self, start: int, end: int) -> bytes:
        """The bytes of the document from `start` to `end`."""
        head, payload = self._head, self.event.payload
        if start >= len(head):
            return payload[start - len(head) : end - len(head)]
        return head[start:end] + payload[: max(0, end - len(head))]


def described(id: EventId, partial: Partial[Document]) -> Descriptor | None:
    """The descriptor in the first pieces of a document that came as bytes; None while one of these is missing. Raises
    `ContentError` if it is not a descriptor: that is found out once, when the last of them has come."""
    cut, beginning = partial.cut, partial.beginning(_WORD)
    if beginning is None:
        return None
    octets = partial.beginning(min(cut.length, _WORD + min(int.from_bytes(beginning[:_WORD], "big"), MAX_HEAD)))
    return None if octets is None else Descriptor(_head_of(id, octets)[0], cut.length)


def assembled(id: EventId, partial: Partial[Document]) -> Document | None:
    """The document whose pieces are all here; None if together they are not a document."""
    if partial.whole is not None:
        return partial.whole
    octets = partial.prefix()
    try:
        bare, length = _head_of(id, octets)
    except ContentError:
        return None
    return Document(Event(bare.type, bare.attributes, octets[length:], id))


def _head_of(id: EventId, octets: bytes) -> tuple[Event, int]:
    """The event without its payload, and the length of the head. Raises `ContentError` if there is none."""
    length = _WORD + int.from_bytes(octets[:_WORD], "big")
    if len(octets) < max(_WORD, length):
        raise ContentError("a document ends before its descriptor does")
    type, attributes = _HEAD.decode(octets[_WORD:length])
    return Event(type, attributes, b"", id), length
