"""What is inside the seal: the exact octets, there and back, and what is none of it."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roamcast.live.link.frame import (
    ACK,
    ACK_REQUEST,
    BROADCAST,
    BROADCAST_DATA,
    BUNDLE,
    FRAGMENT,
    SKIP,
    UNICAST_DATA,
    FrameRefused,
    OpenedFrame,
    Sealer,
)
from roamcast.live.link.payload import (
    MAX_BUNDLE,
    Ack,
    Fragment,
    Skip,
    read_ack,
    read_bundle,
    read_fragment,
    read_skip,
    seal_ack,
    seal_bundle,
    seal_fragment,
    seal_skip,
)
from roamcast.live.link.replay import FrameSession

SESSION = FrameSession("insecure", 3, bytes(16))


def opened(datagram: bytes) -> OpenedFrame:
    return Sealer(None, 5).open(datagram)


def sender() -> Sealer:
    return Sealer(None, 3, counter=0, salt=SESSION.salt)


@pytest.mark.parametrize(
    ("to", "fragment", "ask", "kind", "flags", "payload"),
    [
        (BROADCAST, Fragment(b"hi"), False, BROADCAST_DATA, 0, b"hi"),
        (
            BROADCAST,
            Fragment(b"hi", 258, 0, 1, 3),
            False,
            BROADCAST_DATA,
            FRAGMENT,
            bytes.fromhex("0000000000000102 01 03") + b"hi",
        ),
        (5, Fragment(b"hi", 258, 7), True, UNICAST_DATA, ACK_REQUEST, bytes.fromhex("0000000000000102 07") + b"hi"),
        (
            5,
            Fragment(b"hi", 258, 7, 1, 3),
            False,
            UNICAST_DATA,
            FRAGMENT,
            bytes.fromhex("0000000000000102 07 01 03") + b"hi",
        ),
    ],
)
def test_the_octets_of_a_piece(to: int, fragment: Fragment, ask: bool, kind: int, flags: int, payload: bytes) -> None:
    frame = opened(seal_fragment(sender(), to, fragment, ask=ask))
    assert frame == OpenedFrame(kind, flags, 3, to, 0, payload, SESSION)
    assert read_fragment(frame) == fragment


@pytest.mark.parametrize(("have", "bits"), [(0, b""), (1, b"\x01"), (0b1_0000_0010, b"\x02\x01")])
def test_the_octets_of_an_answer(have: int, bits: bytes) -> None:
    frame = opened(seal_ack(sender(), 5, Ack(258, 7, have)))
    assert frame == OpenedFrame(ACK, 0, 3, 5, 0, bytes.fromhex("0000000000000102 07") + bits, SESSION)
    assert read_ack(frame) == Ack(258, 7, have)


def test_the_octets_of_a_skip() -> None:
    frame = opened(seal_skip(sender(), 5, Skip(b"0123456789abcdef", 258)))
    assert frame == OpenedFrame(SKIP, 0, 3, 5, 0, b"0123456789abcdef" + bytes.fromhex("0000000000000102"), SESSION)
    assert read_skip(frame) == Skip(b"0123456789abcdef", 258)
    with pytest.raises(FrameRefused, match="malformed"):
        read_skip(frame._replace(payload=frame.payload + b"x"))


@pytest.mark.parametrize(
    ("kind", "flags", "payload"),
    [
        (BROADCAST_DATA, FRAGMENT, bytes(9)),
        (BROADCAST_DATA, FRAGMENT, bytes(8) + b"\x00\x02"),  # no octets
        (BROADCAST_DATA, FRAGMENT, bytes(8) + b"\x02\x02x"),
        (BROADCAST_DATA, FRAGMENT, bytes(8) + b"\x00\x01x"),  # one fragment is not a fragment
        (UNICAST_DATA, 0, bytes(8)),
        (UNICAST_DATA, FRAGMENT, bytes(10)),
        (UNICAST_DATA, FRAGMENT | ACK_REQUEST, bytes(9) + b"\x03\x02x"),
        (ACK, 0, bytes(8)),
        (ACK, 0, bytes(9 + 33)),
    ],
)
def test_what_says_nothing_sensible(kind: int, flags: int, payload: bytes) -> None:
    frame = OpenedFrame(kind, flags, 3, BROADCAST if kind == BROADCAST_DATA else 5, 0, payload, SESSION)
    read: Callable[[OpenedFrame], object] = read_ack if kind == ACK else read_fragment
    with pytest.raises(FrameRefused, match="malformed"):
        read(frame)


@given(st.sampled_from([BROADCAST_DATA, UNICAST_DATA]), st.sampled_from([0, FRAGMENT]), st.binary(max_size=16))
def test_any_octets_are_a_piece_or_refused(kind: int, flags: int, payload: bytes) -> None:
    frame = OpenedFrame(kind, flags, 3, 5, 0, payload, SESSION)
    try:
        fragment = read_fragment(frame)
    except FrameRefused:
        assert flags or kind == UNICAST_DATA
        return
    assert payload.endswith(fragment.octets)
    assert 0 <= fragment.place < fragment.total <= 255


@given(st.binary(min_size=9, max_size=41))
def test_any_octets_are_an_answer(payload: bytes) -> None:
    answer = read_ack(OpenedFrame(ACK, 0, 3, 5, 0, payload, SESSION))
    assert answer.message == int.from_bytes(payload[:8], "big")
    assert 0 <= answer.have < 2**256


def test_a_bundle_by_hand() -> None:
    frame = opened(seal_bundle(sender(), [b"one", b"", b"two!"]))
    assert (frame.kind, frame.flags, frame.receiver) == (BROADCAST_DATA, BUNDLE, BROADCAST)
    assert frame.payload == bytes.fromhex("0003") + b"one" + bytes.fromhex("0000 0004") + b"two!"
    assert read_bundle(frame) == [b"one", b"", b"two!"]


@given(st.lists(st.binary(max_size=400), min_size=2, max_size=MAX_BUNDLE))
def test_a_bundle_there_and_back(messages: list[bytes]) -> None:
    assert read_bundle(opened(seal_bundle(sender(), messages))) == messages


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        bytes.fromhex("0001 61"),  # one message is not a bundle
        bytes.fromhex("0001 61 00"),
        bytes.fromhex("0001 61 0002 62"),
        bytes.fromhex("0001 61") * (MAX_BUNDLE + 1),
    ],
)
def test_what_is_no_bundle(payload: bytes) -> None:
    frame = OpenedFrame(BROADCAST_DATA, BUNDLE, 3, BROADCAST, 0, payload, SESSION)
    with pytest.raises(FrameRefused, match="malformed"):
        read_bundle(frame)
