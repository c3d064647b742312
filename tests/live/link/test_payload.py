"""What is inside the seal: the exact octets, there and back, and what is none of it."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roamcast.live.link.frame import ACK, ASK, BROADCAST, PART, SAY, SKIP, TELL, Frame, FrameRefused, Sealer
from roamcast.live.link.payload import (
    Answer,
    Piece,
    Skip,
    read_answer,
    read_piece,
    read_skip,
    seal_answer,
    seal_piece,
    seal_skip,
)
from roamcast.live.link.replay import Session

SESSION = Session("insecure", 3, bytes(16))


def opened(datagram: bytes) -> Frame:
    return Sealer(None, 5).open(datagram)


def sender() -> Sealer:
    return Sealer(None, 3, counter=0, salt=SESSION.salt)


@pytest.mark.parametrize(
    ("to", "piece", "ask", "kind", "flags", "payload"),
    [
        (BROADCAST, Piece(b"hi"), False, SAY, 0, b"hi"),
        (BROADCAST, Piece(b"hi", 258, 0, 1, 3), False, SAY, PART, bytes.fromhex("0000000000000102 01 03") + b"hi"),
        (5, Piece(b"hi", 258, 7), True, TELL, ASK, bytes.fromhex("0000000000000102 07") + b"hi"),
        (5, Piece(b"hi", 258, 7, 1, 3), False, TELL, PART, bytes.fromhex("0000000000000102 07 01 03") + b"hi"),
    ],
)
def test_the_octets_of_a_piece(to: int, piece: Piece, ask: bool, kind: int, flags: int, payload: bytes) -> None:
    frame = opened(seal_piece(sender(), to, piece, ask=ask))
    assert frame == Frame(kind, flags, 3, to, 0, payload, SESSION)
    assert read_piece(frame) == piece


@pytest.mark.parametrize(("have", "bits"), [(0, b""), (1, b"\x01"), (0b1_0000_0010, b"\x02\x01")])
def test_the_octets_of_an_answer(have: int, bits: bytes) -> None:
    frame = opened(seal_answer(sender(), 5, Answer(258, 7, have)))
    assert frame == Frame(ACK, 0, 3, 5, 0, bytes.fromhex("0000000000000102 07") + bits, SESSION)
    assert read_answer(frame) == Answer(258, 7, have)


def test_the_octets_of_a_skip() -> None:
    frame = opened(seal_skip(sender(), 5, Skip(b"0123456789abcdef", 258)))
    assert frame == Frame(SKIP, 0, 3, 5, 0, b"0123456789abcdef" + bytes.fromhex("0000000000000102"), SESSION)
    assert read_skip(frame) == Skip(b"0123456789abcdef", 258)
    with pytest.raises(FrameRefused, match="malformed"):
        read_skip(frame._replace(payload=frame.payload + b"x"))


@pytest.mark.parametrize(
    ("kind", "flags", "payload"),
    [
        (SAY, PART, bytes(9)),
        (SAY, PART, bytes(8) + b"\x00\x02"),  # no octets
        (SAY, PART, bytes(8) + b"\x02\x02x"),
        (SAY, PART, bytes(8) + b"\x00\x01x"),  # one part is not a part
        (TELL, 0, bytes(8)),
        (TELL, PART, bytes(10)),
        (TELL, PART | ASK, bytes(9) + b"\x03\x02x"),
        (ACK, 0, bytes(8)),
        (ACK, 0, bytes(9 + 33)),
    ],
)
def test_what_says_nothing_sensible(kind: int, flags: int, payload: bytes) -> None:
    frame = Frame(kind, flags, 3, BROADCAST if kind == SAY else 5, 0, payload, SESSION)
    read: Callable[[Frame], object] = read_answer if kind == ACK else read_piece
    with pytest.raises(FrameRefused, match="malformed"):
        read(frame)


@given(st.sampled_from([SAY, TELL]), st.sampled_from([0, PART]), st.binary(max_size=16))
def test_any_octets_are_a_piece_or_refused(kind: int, flags: int, payload: bytes) -> None:
    frame = Frame(kind, flags, 3, 5, 0, payload, SESSION)
    try:
        piece = read_piece(frame)
    except FrameRefused:
        assert flags or kind == TELL
        return
    assert payload.endswith(piece.octets)
    assert 0 <= piece.place < piece.parts <= 255


@given(st.binary(min_size=9, max_size=41))
def test_any_octets_are_an_answer(payload: bytes) -> None:
    answer = read_answer(Frame(ACK, 0, 3, 5, 0, payload, SESSION))
    assert answer.message == int.from_bytes(payload[:8], "big")
    assert 0 <= answer.have < 2**256
