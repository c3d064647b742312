"""Events that carry the XML document they were made from, as in the odmrp paper (section III.A).

The document is the event's payload, "in byte stream or compressed format". Filters match the event's attributes, so an
event needs no document if no subscriber reads it. The rules this file owns:

* A compressed document is a zlib stream (RFC 1950), whose first byte is 0x78. No XML document begins with that, so the
  first byte tells the two apart.
* Unpacking stops at `MAX_DOCUMENT` bytes: documents come from strangers.
"""

import codecs
import zlib
from typing import Final, Literal

import msgspec

from roamcast.content.event import Event
from roamcast.content.xml import MAX_DOCUMENT, Schema, event_from_xml
from roamcast.errors import ContentError

Carry = Literal["plain", "compressed", "none"]
"""Whether the event carries the document as it is, compressed, or not at all."""

_ZLIB: Final = b"\x78"
_STARTS: Final = (b"<", codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def event_of_document(document: bytes | str, carry: Carry = "plain", schema: Schema | None = None) -> Event:
    """The event that a document describes, with the document in its payload. `ContentError` says what is wrong."""
    encoded = document.encode() if isinstance(document, str) else document
    event = event_from_xml(document, schema)  # first: it refuses what is too long
    if carry == "none":
        return event
    return msgspec.structs.replace(event, body=zlib.compress(encoded, 9) if carry == "compressed" else encoded)


def document_of(event: Event) -> bytes | None:
    """The document that an event carries; None if its payload is not a document."""
    payload = event.payload
    if payload.startswith(_ZLIB):
        return _unpacked(payload, event.id)
    return payload if payload.removeprefix(codecs.BOM_UTF8).lstrip().startswith(_STARTS) else None


def _unpacked(payload: bytes, number: int) -> bytes | None:
    stream = zlib.decompressobj()
    try:
        document = stream.decompress(payload, MAX_DOCUMENT)
    except zlib.error:
        return None
    if stream.unconsumed_tail:
        raise ContentError(f"event {number}: its document is longer than {MAX_DOCUMENT} bytes")
    return document if stream.eof else None
