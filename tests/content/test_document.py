"""Events that carry their XML document, plain or compressed."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roamcast.content.document import Carry, document_of, event_of_document
from roamcast.content.event import Event
from roamcast.content.xml import MAX_DOCUMENT, Schema
from roamcast.errors import ContentError

CD = b'<?xml version="1.0"?>\n<CD id="001"><category>jazz</category><price>18.00</price></CD>\n'
ATTRIBUTES = {"@id": ("001",), "category": ("jazz",), "price": (18.0,)}


@pytest.mark.parametrize("document", [CD, CD.decode()])
@pytest.mark.parametrize("carry", ["plain", "compressed"])
def test_a_document_comes_out_as_it_went_in(carry: Carry, document: bytes | str) -> None:
    event = event_of_document(document, carry)
    assert (event.type, event.attributes) == ("CD", ATTRIBUTES)
    assert document_of(event) == CD


def test_a_plain_document_is_the_payload_and_a_compressed_one_a_zlib_stream() -> None:
    assert event_of_document(CD).payload == CD
    packed = event_of_document(CD + b"<!--" + b"a" * 1000 + b"-->", "compressed").payload
    assert len(packed) < 200
    assert zlib.decompress(packed).startswith(CD)


def test_a_document_that_stays_at_home() -> None:
    event = event_of_document(CD, "none")
    assert (event.payload, document_of(event)) == (b"", None)


def test_types_by_a_schema() -> None:
    schema = Schema.from_xsd(
        '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="price" type="xs:string"/></xs:schema>'
    )
    assert event_of_document("<price>18.00</price>", schema=schema).attributes == {".": ("18.00",)}
    with pytest.raises(ContentError, match="does not fit its schema"):
        event_of_document("<cost>18.00</cost>", schema=schema)


def test_what_is_no_document_is_refused() -> None:
    with pytest.raises(ContentError, match="not well-formed"):
        event_of_document(b"price=18", "compressed")


def test_a_document_that_unpacks_to_too_much_is_refused() -> None:
    bomb = Event.of("CD", payload=zlib.compress(b"<a>" + b" " * MAX_DOCUMENT, 9), id=7)
    with pytest.raises(ContentError, match="event 7: its document is longer than 1048576 bytes"):
        document_of(bomb)


@given(st.binary() | st.binary().map(lambda end: b"\x78" + end) | st.binary().map(lambda end: b"\x78\x9c" + end))
def test_any_other_payload_is_no_document_and_harms_nobody(payload: bytes) -> None:
    found = document_of(Event.of("CD", payload=payload))
    assert found is None or found == payload or zlib.decompress(payload) == found


def test_utf_16_is_a_document_too() -> None:
    document = '<?xml version="1.0" encoding="UTF-16"?><CD>é</CD>'.encode("utf-16")
    assert document_of(event_of_document(document)) == document
