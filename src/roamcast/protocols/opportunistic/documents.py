"""Documents: an event as it is stored, announced and sent in pieces.

Haillot and Guidec, section 2.1: a document is its descriptor, by which it is announced and matched, and its content.
Here the event's type and attributes are the descriptor, its payload is the content, and its id is the identifier.

On the air a document is its *head* (the length of the descriptor, then the descriptor) and the payload, split into
pieces of equal size. So the first piece, or the first few if the descriptor is long, tell what the document is about.
Bytes of a payload are copied only for pieces that are really sent.
"""

from functools import cached_property
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from roamcast.content.event import Event, EventId
from roamcast.errors import ContentError
from roamcast.protocols.pieces import Cut, Partial

_WORD: Final = 4
"""Bytes that encode the descriptor's length, at the start of a document."""
_TIMES: Final = 12
"""Most bytes that a document's age and life take in an announce."""

_decode_head: Final = msgspec.msgpack.Decoder(tuple[str, dict[str, tuple[str | int | float | bool, ...]]]).decode


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


def described(id: EventId, prefix: bytes, length: int) -> Descriptor | None:
    """The descriptor in the first bytes of a document; None if it is incomplete or not a descriptor."""
    head = _head_of(id, prefix)
    return None if head is None else Descriptor(head[0], length)


def assembled(id: EventId, partial: Partial[Document]) -> Document | None:
    """The document whose pieces are all here; None if together they are not a document."""
    if partial.whole is not None:
        return partial.whole
    octets = partial.prefix()
    head = _head_of(id, octets)
    if head is None:
        return None
    bare, length = head
    return Document(Event(bare.type, bare.attributes, octets[length:], id))


def _head_of(id: EventId, octets: bytes) -> tuple[Event, int] | None:
    """The event without its payload, and the length of the head."""
    length = _WORD + int.from_bytes(octets[:_WORD], "big")
    if len(octets) < max(_WORD, length):
        return None
    try:
        type, attributes = _decode_head(octets[_WORD:length])
        named: dict[str, Any] = attributes
        return Event(type, named, b"", id), length
    except (msgspec.MsgspecError, ContentError, UnicodeDecodeError, RecursionError):
        return None
