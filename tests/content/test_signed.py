"""Signed payloads: their hashes, and what they add to an event."""

from hashlib import sha256

import msgspec
import pytest

from roamcast.content.context.text import parse_context
from roamcast.content.event import Event, event_id
from roamcast.content.signed import Signed, leaves_of, root_of
from roamcast.content.subscription import Publication
from roamcast.errors import ContentError


def leaf(block: bytes) -> bytes:
    return sha256(block).digest()[:16]


@pytest.mark.parametrize(
    ("payload", "block", "blocks"),
    [
        (b"", 0, [b""]),
        (b"abc", 0, [b"abc"]),
        (b"abc", 3, [b"abc"]),
        (b"abcdefgh", 3, [b"abc", b"def", b"gh"]),
        (b"abcdef", 3, [b"abc", b"def"]),
        (b"", 3, [b""]),
    ],
)
def test_a_payload_is_hashed_in_blocks(payload: bytes, block: int, blocks: list[bytes]) -> None:
    assert leaves_of(payload, block) == b"".join(map(leaf, blocks))


def test_the_root_covers_the_length_and_the_leaves() -> None:
    assert root_of(3, leaf(b"abc")) == sha256(bytes(7) + b"\3" + leaf(b"abc")).digest()


def test_an_event_without_a_signature_is_encoded_as_ever() -> None:
    assert msgspec.msgpack.encode(Event("t", {"a": (1,)}, b"xy", 7)) == b"\x94\xa1t\x81\xa1a\x91\x01\xc4\x02xy\x07"


def test_a_signature_changes_neither_payload_nor_what_matches_and_survives_encoding() -> None:
    plain = Event.of("t", {"a": 1}, b"xy", event_id(3, 4))
    signed = msgspec.structs.replace(plain, body=Signed(b"xy", bytes(64), 1_700_000_000_000))
    assert signed.payload == plain.payload == b"xy"
    assert (plain.signed, signed.author, plain.author) == (None, 3, 3)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(signed), type=Event) == signed
    assert signed.size == plain.size + 82
    with pytest.raises(ContentError, match="payload must be bytes"):
        Event("t", {}, "text")  # type: ignore[arg-type]


def test_what_is_to_be_signed() -> None:
    here, there = parse_context("x > 3"), parse_context("y > 3")
    event = Event.of("t", {}, b"abcd", 1)
    plain = Publication(event).to_be_signed(5, 0).event.signed
    assert plain == Signed(b"abcd", bytes(64), 5, None, b"", 0, b"")
    whole = Publication(event, 77, here, None).to_be_signed(5, 3).event.signed
    assert whole == Signed(b"abcd", bytes(64), 5, 77, leaf(str(here).encode()) + bytes(16), 3)
    both = Publication(event, None, here, there).to_be_signed(5, 4).event.signed
    assert both == Signed(b"abcd", bytes(64), 5, None, leaf(str(here).encode()) + leaf(str(there).encode()), 0)
