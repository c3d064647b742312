"""Signatures: whatever an author said cannot be changed, and what was checked is not checked again."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from content.strategies import events
from live.memory_store import authors
from roamcast.content.event import Event, event_id
from roamcast.content.signed import Signed, leaves_of, root_of
from roamcast.content.subscription import Publication
from roamcast.live.authors import Authors
from roamcast.live.identity import Identity
from roamcast.live.signatures import REMEMBERED, Authenticity, Signatures

WALL = 1_700_000_000_123_456_789
SIGNER = authors(2)


def reader(*known: Authors) -> Signatures:
    mine = authors(1)
    for other in known:
        assert other.own is not None
        mine.take(other.own)
    return Signatures(mine)


def signed(event: Event, block: int = 0, lifetime: int | None = None) -> Event:
    return Signatures(SIGNER).signed(Publication(event, lifetime), WALL, block).event


EVENT = signed(Event.of("t", {"a": 1, "b": ["x", 2.0]}, b"payload", event_id(2, 5)), 3, 60)
BODY = EVENT.signed
assert BODY is not None


def test_a_true_event_is_genuine_with_and_without_its_payload() -> None:
    assert BODY is not None
    check = reader(SIGNER).check
    assert check(EVENT) is Authenticity.GENUINE
    root = root_of(7, leaves_of(b"payload", 3))
    bare = msgspec.structs.replace(EVENT, body=msgspec.structs.replace(BODY, payload=b"", root=root))
    assert check(bare) is Authenticity.GENUINE
    assert BODY.time == 1_700_000_000_123


@pytest.mark.parametrize(
    "change",
    [
        {"type": "u"},
        {"id": event_id(2, 6)},
        {"attributes": {"a": (2,), "b": ("x", 2.0)}},
        {"attributes": {"a": (True,), "b": ("x", 2.0)}},
        {"attributes": {"a": (1.0,), "b": ("x", 2.0)}},
        {"attributes": {"a": (1,), "b": (2.0, "x")}},
        {"attributes": {"a": (1,)}},
        {"attributes": {"a": (1,), "b": ("x", 2.0), "c": (0,)}},
        {"body": b"payload"},
        {"body": msgspec.structs.replace(BODY, payload=b"paylord")},
        {"body": msgspec.structs.replace(BODY, payload=b"payload!")},
        {"body": msgspec.structs.replace(BODY, payload=b"")},
        {"body": msgspec.structs.replace(BODY, time=BODY.time + 1)},
        {"body": msgspec.structs.replace(BODY, lifetime=61)},
        {"body": msgspec.structs.replace(BODY, lifetime=None)},
        {"body": msgspec.structs.replace(BODY, contexts=bytes(32))},
        {"body": msgspec.structs.replace(BODY, block=0)},
        {"body": msgspec.structs.replace(BODY, signature=b"")},
        {"body": msgspec.structs.replace(BODY, signature=bytes(64))},
        {"body": msgspec.structs.replace(BODY, root=root_of(7, leaves_of(b"payload", 3)), payload=b"paylord")},
    ],
)
def test_one_change_makes_it_a_forgery(change: dict[str, Any]) -> None:
    check = reader(SIGNER).check
    assert check(EVENT) is Authenticity.GENUINE  # what is remembered does not help the forger
    assert check(msgspec.structs.replace(EVENT, **change)) is Authenticity.FORGED


@given(events, st.integers(0, 4), st.integers(0, 63), st.integers(1, 255))
def test_any_event_can_be_signed_and_no_bit_of_the_signature_be_changed(
    event: Event, block: int, place: int, change: int
) -> None:
    mine = msgspec.structs.replace(event, id=event_id(2, 9))
    true = signed(mine, block)
    read = msgspec.msgpack.decode(msgspec.msgpack.encode(true), type=Event)
    assert read.payload == mine.payload
    check = reader(SIGNER).check
    assert check(read) is Authenticity.GENUINE
    assert true.signed is not None
    broken = bytearray(true.signed.signature)
    broken[place] ^= change
    body = msgspec.structs.replace(true.signed, signature=bytes(broken))
    assert check(msgspec.structs.replace(true, body=body)) is Authenticity.FORGED


def test_an_event_in_anothers_name_is_forged_or_its_author_unknown() -> None:
    other = authors(3)
    stolen = msgspec.structs.replace(EVENT, id=event_id(3, 5))
    assert reader(SIGNER).check(stolen) is Authenticity.UNKNOWN
    assert reader(SIGNER, other).check(stolen) is Authenticity.FORGED


def test_what_was_checked_is_remembered_and_failures_are_not() -> None:
    signatures = reader(SIGNER)
    forged = msgspec.structs.replace(EVENT, type="u")
    for _ in range(3):
        signatures.check(EVENT)
        signatures.check(forged)
    assert signatures.computed == 1 + 3
    assert len(signatures) == 1


def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roamcast.live.signatures.REMEMBERED", 10)
    signatures = reader(SIGNER)
    for number in range(1, 20):
        assert signatures.check(signed(Event("t", id=event_id(2, number)))) is Authenticity.GENUINE
    assert len(signatures) == 10
    assert REMEMBERED * 200 < 8 * 2**20  # bytes


def test_with_an_owner_a_signature_is_for_one_network() -> None:
    owner, other = Identity.new(), Identity.new()
    mine = authors(2, owner)
    event = Signatures(mine).signed(Publication(Event("t", id=event_id(2, 1))), WALL, 0).event
    theirs = authors(2, other)
    theirs.identity = mine.identity
    from roamcast.live.certificates import Certificate

    for known, by, verdict in ((mine, owner, Authenticity.GENUINE), (theirs, other, Authenticity.FORGED)):
        assert known.take(Certificate(2, mine.identity.public, 1).signed(by))
        assert Signatures(known).check(event) is verdict


def test_a_body_has_bounds() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode(Signed(b"", bytes(65), 1)), type=Signed)
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode(Signed(b"", bytes(64), 1, root=bytes(33))), type=Signed)
