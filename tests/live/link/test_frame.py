"""Frames: the exact octets, every reason to refuse one, and that no counter is used twice."""

import struct

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from hypothesis import given
from hypothesis import strategies as st

from roamcast.content.event import MAX_NODE
from roamcast.live.key import NetworkKey
from roamcast.live.link.frame import (
    ACK,
    ASK,
    BROADCAST,
    HEADER_SIZE,
    MAX_COUNTER,
    MAX_DATAGRAM,
    PART,
    REASONS,
    SAY,
    TAG_SIZE,
    TELL,
    Frame,
    FrameRefused,
    NoCounter,
    Sealer,
    first_counter,
)
from roamcast.live.link.replay import Replay

KEY = NetworkKey(bytes(range(32)))


def sealer(node: int, key: NetworkKey | None = KEY, counter: int = 100, replay: Replay | None = None) -> Sealer:
    return Sealer(key, node, counter, lambda upto: None, replay=replay)


def reason(receiver: Sealer, datagram: bytes) -> str:
    with pytest.raises(FrameRefused) as refused:
        receiver.open(datagram)
    assert refused.value.reason in REASONS
    return refused.value.reason


def header(version: int, kind: int, flags: int, sender: int, receiver: int, counter: int) -> bytes:
    return struct.pack(">BBBIIQ", version, kind, flags, sender, receiver, counter)


def test_the_octets_of_a_sealed_frame() -> None:
    datagram = sealer(3).seal(TELL, 5, b"hello", flags=ASK)
    head = bytes.fromhex("01 02 02 00000003 00000005 0000000000000064")
    cipher = ChaCha20Poly1305(KEY.derive("frame 1"))
    assert datagram == head + cipher.encrypt(bytes.fromhex("00000003 0000000000000064"), b"hello", head)
    assert len(datagram) == HEADER_SIZE + 5 + TAG_SIZE


def test_the_octets_of_an_open_frame() -> None:
    datagram = sealer(3, key=None).seal(SAY, BROADCAST, b"hello")
    assert datagram == bytes.fromhex("81 01 00 00000003 ffffffff 0000000000000064") + b"hello"


@pytest.mark.parametrize("key", [KEY, None])
@given(
    kind=st.sampled_from([(SAY, 0), (SAY, PART), (TELL, 0), (TELL, ASK), (TELL, ASK | PART), (ACK, 0)]),
    sender=st.integers(0, MAX_NODE - 1),
    counter=st.integers(0, MAX_COUNTER),
    payload=st.binary(max_size=200),
)
def test_what_is_sealed_opens(
    key: NetworkKey | None, kind: tuple[int, int], sender: int, counter: int, payload: bytes
) -> None:
    to = BROADCAST if kind[0] == SAY else MAX_NODE
    datagram = sealer(sender, key, counter).seal(kind[0], to, payload, flags=kind[1])
    assert sealer(MAX_NODE, key).open(datagram) == Frame(*kind, sender, to, counter, payload)


def test_every_single_flipped_bit_is_noticed() -> None:
    datagram = sealer(3).seal(TELL, 5, b"hello")
    receiver = sealer(5)
    for bit in range(8 * len(datagram)):
        changed = bytearray(datagram)
        changed[bit // 8] ^= 1 << bit % 8
        assert reason(receiver, bytes(changed)) in ("version", "malformed", "key", "others")
    assert receiver.open(datagram).payload == b"hello"


def test_nothing_shorter_is_accepted() -> None:
    datagram = sealer(3).seal(SAY, BROADCAST, b"hello")
    reasons = [reason(sealer(5), datagram[:length]) for length in range(len(datagram))]
    assert reasons == ["short"] * (HEADER_SIZE + TAG_SIZE) + ["key"] * 5


@pytest.mark.parametrize(
    ("datagram", "expected"),
    [
        (b"", "short"),
        (bytes(HEADER_SIZE + TAG_SIZE - 1), "short"),
        (bytes([1]) * (MAX_DATAGRAM + 1), "long"),
        (header(2, SAY, 0, 3, BROADCAST, 1) + bytes(16), "version"),
        (header(0x81, SAY, 0, 3, BROADCAST, 1) + bytes(16), "version"),
        (header(1, 0, 0, 3, BROADCAST, 1) + bytes(16), "malformed"),
        (header(1, 4, 0, 3, 5, 1) + bytes(16), "malformed"),
        (header(1, SAY, ASK, 3, BROADCAST, 1) + bytes(16), "malformed"),
        (header(1, ACK, PART, 3, 5, 1) + bytes(16), "malformed"),
        (header(1, TELL, 4, 3, 5, 1) + bytes(16), "malformed"),
        (header(1, SAY, 0, 3, 5, 1) + bytes(16), "malformed"),
        (header(1, TELL, 0, 3, BROADCAST, 1) + bytes(16), "malformed"),
        (header(1, SAY, 0, MAX_NODE + 1, BROADCAST, 1) + bytes(16), "malformed"),
        (header(1, SAY, 0, 3, BROADCAST, MAX_COUNTER + 1) + bytes(16), "malformed"),
        (header(1, SAY, 0, 3, BROADCAST, 1) + bytes(16), "key"),
        (header(1, TELL, 0, 3, 6, 1) + bytes(16), "others"),
        (header(1, SAY, 0, 5, BROADCAST, 99) + bytes(16), "self"),
        (header(1, SAY, 0, 5, BROADCAST, 100) + bytes(16), "key"),
    ],
)
def test_reasons(datagram: bytes, expected: str) -> None:
    assert reason(sealer(5), datagram) == expected


def test_another_key_and_none_at_all() -> None:
    assert reason(sealer(5, NetworkKey(bytes(32))), sealer(3).seal(SAY, BROADCAST, b"x")) == "key"
    assert reason(sealer(5, None), sealer(3).seal(SAY, BROADCAST, b"x")) == "version"
    assert reason(sealer(5), sealer(3, None).seal(SAY, BROADCAST, bytes(20))) == "version"


def test_a_frame_is_taken_once_also_by_a_receiver_that_restarts() -> None:
    stored: dict[int, int] = {}
    receiver = sealer(5, replay=Replay(persist=stored.update))
    datagram = sealer(3).seal(SAY, BROADCAST, b"x")
    assert receiver.open(datagram).payload == b"x"
    receiver.replay.commit()
    assert reason(receiver, datagram) == "replay"
    replay = Replay()
    replay.restore(stored)
    assert reason(sealer(5, replay=replay), datagram) == "replay"


def test_looking_at_a_copy_twice_before_opening_either_takes_it_once() -> None:
    receiver, datagram = sealer(5), sealer(3).seal(SAY, BROADCAST, b"x")
    looked = [receiver.look(datagram), receiver.look(datagram)]
    assert receiver.unseal(looked[0], datagram).payload == b"x"
    with pytest.raises(FrameRefused, match="replay"):
        receiver.unseal(looked[1], datagram)


def test_a_forged_frame_uses_up_no_counter() -> None:
    receiver = sealer(5)
    datagram = sealer(3).seal(SAY, BROADCAST, b"x")
    assert reason(receiver, datagram[:-1] + bytes([datagram[-1] ^ 1])) == "key"
    assert len(receiver.replay) == 0
    assert receiver.open(datagram).payload == b"x"


def test_a_full_table_of_senders() -> None:
    receiver = sealer(5, replay=Replay(capacity=1))
    receiver.open(sealer(3).seal(SAY, BROADCAST, b"x"))
    assert reason(receiver, sealer(4).seal(SAY, BROADCAST, b"x")) == "crowded"


def test_own_frames_and_those_of_a_twin() -> None:
    node = sealer(5, counter=100)
    own = node.seal(SAY, BROADCAST, b"x")
    assert reason(node, own) == "self"
    assert reason(node, sealer(5, counter=101).seal(SAY, BROADCAST, b"x")) == "twin"


@given(st.binary(max_size=80) | st.binary(min_size=19, max_size=19).map(lambda b: b"\x01" + b + bytes(20)))
def test_octets_from_anywhere_are_refused_by_name(datagram: bytes) -> None:
    assert reason(sealer(5), datagram) in ("short", "version", "malformed", "others", "key", "self")


def outcome(receiver: Sealer, datagram: bytes) -> str | Frame:
    try:
        return receiver.open(datagram)
    except FrameRefused as refused:
        return refused.reason


kinds = st.tuples(st.sampled_from([SAY, TELL, ACK, 9]), st.integers(0, 4), st.integers(0, 6))
places = st.tuples(st.sampled_from([5, 6, BROADCAST]), st.sampled_from([0, 99, 100, MAX_COUNTER, 2**63]))


@given(kinds, places, st.binary(max_size=30))
def test_an_open_frame_is_read_or_refused_by_name(
    kind: tuple[int, int, int], place: tuple[int, int], payload: bytes
) -> None:
    result = outcome(sealer(5, None), header(0x81, *kind, *place) + payload)
    (what, flags, sender), (to, counter) = kind, place
    fitting = {SAY: (0, PART), TELL: (0, PART, ASK, PART | ASK), ACK: (0,)}.get(what, ())
    if flags not in fitting or (what == SAY) != (to == BROADCAST) or counter == 2**63:
        assert result == "malformed"
    elif sender == 5:
        assert result == ("self" if counter < 100 else "twin")
    elif to == 6:
        assert result == "others"
    else:
        assert result == Frame(what, flags, sender, to, counter, payload)


@given(st.integers(1, 7), st.lists(st.integers(0, 20), min_size=1, max_size=6))
def test_no_counter_is_used_twice_whenever_the_node_is_killed(block: int, lives: list[int]) -> None:
    stored = [0]
    used: list[int] = []
    for frames in lives:  # each life begins with what is stored, and ends without a farewell
        node = Sealer(KEY, 1, stored[0], lambda upto: stored.__setitem__(0, upto), block=block)
        for _ in range(frames):
            counter = node.take()
            assert counter < stored[0]
            used.append(counter)
    assert sorted(set(used)) == used


def test_nothing_is_sealed_when_counters_cannot_be_reserved() -> None:
    broken = [True]

    def reserve(upto: int) -> None:
        if broken[0]:
            raise OSError("disk full")

    node = Sealer(KEY, 1, 7, reserve)
    with pytest.raises(NoCounter, match="disk full"):
        node.seal(SAY, BROADCAST, b"x")
    broken[0] = False
    assert sealer(2).open(node.seal(SAY, BROADCAST, b"x")).counter == 7


def test_the_last_counter_is_the_last() -> None:
    node = sealer(1, counter=MAX_COUNTER)
    assert node.take() == MAX_COUNTER
    with pytest.raises(NoCounter, match="needs a new key"):
        node.take()


def test_a_restarted_sender_is_not_locked_out() -> None:
    stored = [0]
    receiver = sealer(5)
    for life in (b"first", b"second", b"third"):
        node = Sealer(KEY, 1, stored[0], lambda upto: stored.__setitem__(0, upto))
        assert receiver.open(node.seal(SAY, BROADCAST, life)).payload == life


def test_a_new_store_begins_at_the_microseconds_of_the_clock() -> None:
    assert first_counter(1_700_000_000_123_456_789) == 1_700_000_000_123_456
    assert first_counter(-5) == 0
    assert 1_700_000_000_000_000 < first_counter() < MAX_COUNTER


@pytest.mark.parametrize(
    ("node", "counter", "block"), [(-1, 0, 1), (2**31, 0, 1), (1, -1, 1), (1, 2**63, 1), (1, 0, 0)]
)
def test_a_sealer_that_cannot_be(node: int, counter: int, block: int) -> None:
    with pytest.raises(ValueError, match=r"not|cannot"):
        Sealer(KEY, node, counter, lambda upto: None, block=block)


def test_a_payload_that_does_not_fit() -> None:
    node = sealer(1)
    assert len(node.seal(SAY, BROADCAST, bytes(MAX_DATAGRAM - node.overhead))) == MAX_DATAGRAM
    with pytest.raises(ValueError, match="do not fit"):
        node.seal(SAY, BROADCAST, bytes(MAX_DATAGRAM - node.overhead + 1))
