"""Documents: an event as it is stored, announced and sent in pieces.

Haillot and Guidec, section 2.1: a document is its descriptor, by which it is announced and matched, and its content.
Here the event's type and attributes are the descriptor, its payload is the content, and its id is the identifier.

On the air a document is its *head* (the length of the descriptor, then the descriptor) and the payload, split into
pieces of equal size. So the first piece, or the first few if the descriptor is long, tell what the document is about.
Bytes of a payload are copied only for pieces that are really sent.

If the event is signed, its descriptor has the signature and the root of its payload, and its head has the leaves
(`content/signed.py`): a node can check the head before the payload is here, and find out which pieces are false.
"""

from functools import cached_property
from typing import Annotated, ClassVar, Final, NamedTuple

import msgspec
from msgspec import Meta

from roamcast.content.event import Event, EventId, Scalar
from roamcast.content.signed import LEAF, Signed, leaves_of, root_of
from roamcast.content.structure import Decoder, Limits
from roamcast.errors import ContentError
from roamcast.protocols.pieces import Cut, Partial

_WORD: Final = 4
"""Bytes that encode the descriptor's length, at the start of a document."""
_TIMES: Final = 12
"""Most bytes that a document's age and life take in an announce."""


class _Head(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Without a signature, only the first two are on the air."""

    type: str
    attributes: dict[str, tuple[Scalar, ...]]
    signed: Signed | None = None
    """With neither the payload nor its root."""
    leaves: bytes = b""


MAX_HEAD: Final = 160 * 1024
"""Bytes of a head: as many as the type, the attributes and the leaves of an event can have, or more."""
_HEAD: Final = Decoder[_Head](_Head, Limits(MAX_HEAD))


class Descriptor(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """What a catalog says about a document."""

    bare: ClassVar[bool] = True
    """Its event stands there without its payload."""

    event: Event
    """Without its payload; if it is signed, with the payload's root."""
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
        payload, signed = event.payload, event.signed
        if signed is None:
            described = msgspec.msgpack.encode((event.type, event.attributes))
            bare = Event(event.type, event.attributes, b"", event.id) if payload else event
        else:
            leaves = leaves_of(payload, signed.block)
            empty = msgspec.structs.replace(signed, payload=b"")
            described = msgspec.msgpack.encode(_Head(event.type, event.attributes, empty, leaves))
            bare = _bare(event, empty, len(payload), leaves)
        self._head = len(described).to_bytes(_WORD, "big") + described
        self.length = len(self._head) + len(payload)
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


class _Opened(NamedTuple):
    """The head of a document."""

    bare: Event
    """Without its payload."""
    length: int
    """Bytes of the head."""
    leaves: bytes

    def whole(self, payload: bytes) -> Event:
        signed = self.bare.signed
        body = payload if signed is None else msgspec.structs.replace(signed, payload=payload, root=b"")
        return msgspec.structs.replace(self.bare, body=body)


def described(id: EventId, partial: Partial[Document]) -> Descriptor | None:
    """The descriptor in the first pieces of a document that came as bytes; None while one of these is missing. Raises
    `ContentError` if it is not a descriptor: that is found out once, when the last of them has come."""
    beginning = partial.beginning(_WORD)
    octets = None if beginning is None else partial.beginning(_end_of_head(beginning, partial.cut))
    return None if octets is None else Descriptor(_head_of(id, octets, partial.cut.length).bare, partial.cut.length)


def assembled(id: EventId, partial: Partial[Document]) -> Document | None:
    """The document whose pieces are all here; None if together they are not a document."""
    if partial.whole is not None:
        return partial.whole
    octets = partial.prefix()
    try:
        head = _head_of(id, octets, len(octets))
    except ContentError:
        return None
    return Document(head.whole(octets[head.length :]))


def pieces_of_head(partial: Partial[Document]) -> int:
    """The mask of the pieces that contain the head, by the length that it claims."""
    return partial.cut.overlapping(0, _end_of_head(partial.prefix(), partial.cut))


def _end_of_head(octets: bytes, cut: Cut) -> int:
    return min(cut.length, _WORD + min(int.from_bytes(octets[:_WORD], "big"), MAX_HEAD))


def false_pieces(id: EventId, partial: Partial[Document]) -> int:
    """The mask of the pieces that contain a byte of a block that is not as the head of the document says, of the blocks
    that are here. A false piece costs its neighbours too, since blocks begin with the payload and pieces with the
    document."""
    cut = partial.cut
    head = _head_of(id, partial.prefix(), cut.length)
    if head.bare.signed is None:
        return cut.all
    block = head.bare.signed.block or cut.length
    mask = 0
    for number, start in enumerate(range(head.length, max(cut.length, head.length + 1), block)):
        end = min(start + block, cut.length)
        pieces = cut.overlapping(start, end)
        leaf = head.leaves[number * LEAF : (number + 1) * LEAF]
        if partial.have & pieces == pieces and leaves_of(partial.part(start, end), 0) != leaf:
            mask |= pieces
    return mask


def _bare(event: Event, signed: Signed, length: int, leaves: bytes) -> Event:
    """An event with the root of its payload instead of it."""
    return msgspec.structs.replace(event, body=msgspec.structs.replace(signed, root=root_of(length, leaves)))


def _head_of(id: EventId, octets: bytes, whole: int) -> _Opened:
    """The head in the first bytes of a document of `whole` bytes. Raises `ContentError` if there is none."""
    length = _WORD + int.from_bytes(octets[:_WORD], "big")
    if len(octets) < max(_WORD, length):
        raise ContentError("a document ends before its descriptor does")
    head = _HEAD.decode(octets[_WORD:length])
    event = Event(head.type, head.attributes, b"", id)
    if head.signed is not None:
        if head.signed.payload or head.signed.root:
            raise ContentError("a head has the payload, or what stands for it, twice")
        event = _bare(event, head.signed, max(0, whole - length), head.leaves)
    return _Opened(event, length, head.leaves)
