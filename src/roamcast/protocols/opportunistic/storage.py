"""Documents on disk: what a node carries survives a crash, including events whose storage a publisher was promised.

A document is two records: its payload as it is, and a small one about it. So a simulator, whose store is a dictionary,
copies no payload.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from roamcast.content.event import Event, EventId, Scalar
from roamcast.content.signed import Signed
from roamcast.content.structure import Decoder, Limits
from roamcast.errors import ContentError
from roamcast.protocols.api import Port
from roamcast.protocols.opportunistic.cache import Held
from roamcast.protocols.opportunistic.documents import MAX_HEAD, Document

_ABOUT: Final = "document/"
_PAYLOAD: Final = "payload/"


class _About(msgspec.Struct, frozen=True, array_like=True):
    type: str
    attributes: dict[str, tuple[Scalar, ...]]
    published: int
    arrived: int
    expires: int | None
    hops: int
    signed: Signed | None = None
    """Its author's signature, without the payload."""

    def event(self, payload: bytes, id: EventId) -> Event:
        body = payload if self.signed is None else msgspec.structs.replace(self.signed, payload=payload)
        return Event(self.type, self.attributes, body, id)


_encode: Final = msgspec.msgpack.Encoder().encode
_DECODER: Final = Decoder[_About](_About, Limits(MAX_HEAD + 64))


def keep(port: Port, held: Held) -> None:
    event = held.document.event
    signed = None if event.signed is None else msgspec.structs.replace(event.signed, payload=b"")
    about = _About(event.type, event.attributes, held.published, held.arrived, held.expires, held.hops, signed)
    port.keep(f"{_ABOUT}{event.id}", _encode(about))
    port.keep(f"{_PAYLOAD}{event.id}", event.payload)


def forget(port: Port, held: Held) -> None:
    port.forget(f"{_ABOUT}{held.document.id}")
    port.forget(f"{_PAYLOAD}{held.document.id}")


def restored(kept: Mapping[str, bytes]) -> Iterator[Held]:
    """The documents from before a restart, in order of arrival. Leaves out records that can no longer be read."""
    found = []
    for key, value in kept.items():
        id = key.removeprefix(_ABOUT)
        payload = kept.get(f"{_PAYLOAD}{id}")
        if id == key or payload is None:
            continue
        try:
            about = _DECODER.decode(value)
            document = Document(about.event(payload, int(id)))
        except (ContentError, ValueError):
            continue
        found.append(Held(document, about.published, about.arrived, about.arrived, False, about.expires, about.hops))
    yield from sorted(found, key=lambda held: (held.arrived, held.document.id))
