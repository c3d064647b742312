"""Frames: the exact octets, every reason to refuse one, and that no nonce is used twice."""

import struct

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from live.link.disk import Disk
from roamcast.content.event import MAX_NODE
from roamcast.live.key import NetworkKey
from roamcast.live.link.frame import (
    ACK,
    ACK_REQUEST,
    BROADCAST,
    BROADCAST_DATA,
    BUNDLE,
    FRAGMENT,
    HEADER_SIZE,
    REASONS,
    SKIP,
    TAG_SIZE,
    UNICAST_DATA,
    FrameBehind,
    FrameForeign,
    FrameRefused,
    OpenedFrame,
    Sealer,
    protocol_number,
)
from roamcast.live.link.replay import BLOCK, FrameSession, Replay

KEY = NetworkKey(bytes(range(32)))


SALT = bytes(range(100, 116))
NO_PROTOCOL = 0xE3B0C442
"""The beginning of the SHA-256 of nothing."""


def sealer(
    node: int,
    key: NetworkKey | None = KEY,
    counter: int = 100,
    replay: Replay | None = None,
    salt: bytes | None = None,
    protocol: str = "",
) -> Sealer:
    return Sealer(key, node, counter=counter, replay=replay, salt=salt, protocol=protocol)


def reason(receiver: Sealer, datagram: bytes) -> str:
    with pytest.raises(FrameRefused) as refused:
        receiver.open(datagram)
    assert refused.value.reason in REASONS
    return refused.value.reason


def header(version: int, kind: int, flags: int, sender: int, receiver: int, counter: int) -> bytes:
    return struct.pack(">BBBIII16sQ", version, kind, flags, sender, receiver, NO_PROTOCOL, SALT, counter)


def test_the_octets_of_a_sealed_frame() -> None:
    datagram = sealer(3, salt=SALT, protocol="flooding").seal(UNICAST_DATA, 5, b"hello", flags=ACK_REQUEST)
    # 36fe61e3 begins the SHA-256 of "flooding".
    head = bytes.fromhex(f"03 02 02 00000003 00000005 36fe61e3 {SALT.hex()} 0000000000000064")
    secret = HKDF(SHA256(), 32, salt=SALT, info=b"roamcast frame 3 of node 3").derive(bytes(range(32)))
    sealed = ChaCha20Poly1305(secret).encrypt(bytes.fromhex("00000000 0000000000000064"), b"hello", head)
    assert datagram == head + sealed
    assert len(datagram) == HEADER_SIZE + 5 + TAG_SIZE


def test_the_octets_of_an_open_frame() -> None:
    datagram = sealer(3, key=None, salt=SALT, protocol="flooding").seal(BROADCAST_DATA, BROADCAST, b"hello")
    assert datagram == bytes.fromhex(f"83 01 00 00000003 ffffffff 36fe61e3 {SALT.hex()} 0000000000000064") + b"hello"


@pytest.mark.parametrize("key", [KEY, None])
@given(
    kind=st.sampled_from(
        [
            (BROADCAST_DATA, 0),
            (BROADCAST_DATA, FRAGMENT),
            (UNICAST_DATA, 0),
            (UNICAST_DATA, ACK_REQUEST),
            (UNICAST_DATA, ACK_REQUEST | FRAGMENT),
            (ACK, 0),
        ]
    ),
    sender=st.integers(0, MAX_NODE - 1),
    counter=st.integers(0, 2**63 - 1),
    payload=st.binary(max_size=200),
)
def test_what_is_sealed_opens(
    key: NetworkKey | None, kind: tuple[int, int], sender: int, counter: int, payload: bytes
) -> None:
    to = BROADCAST if kind[0] == BROADCAST_DATA else MAX_NODE
    datagram = sealer(sender, key, counter, salt=SALT).seal(kind[0], to, payload, flags=kind[1])
    session = FrameSession("insecure" if key is None else key.fingerprint, sender, SALT)
    assert sealer(MAX_NODE, key).open(datagram) == OpenedFrame(*kind, sender, to, counter, payload, session)


def test_a_frame_of_another_protocol_is_refused_with_its_sender_and_protocol_once_it_is_authentic() -> None:
    receiver = sealer(5, protocol="hint")
    datagram = sealer(3, protocol="flooding").seal(BROADCAST_DATA, BROADCAST, b"hello")
    with pytest.raises(FrameForeign) as refused:
        receiver.open(datagram)
    assert (refused.value.reason, refused.value.sender) == ("protocol", 3)
    assert refused.value.protocol == protocol_number("flooding") == 0x36FE61E3
    assert reason(receiver, datagram) == "replay", "it can be shown once"
    forged = sealer(3, NetworkKey(bytes(32)), protocol="flooding").seal(BROADCAST_DATA, BROADCAST, b"hello")
    assert reason(receiver, forged) == "key"
    assert sealer(5, protocol="flooding").open(datagram).payload == b"hello"


def test_a_frame_of_another_protocol_is_named_also_if_it_may_have_been_heard_before_a_restart() -> None:
    disk, other = Disk(), sealer(3, protocol="flooding")
    receiver = sealer(5, protocol="hint", replay=disk.replay())
    assert reason(receiver, other.seal(BROADCAST_DATA, BROADCAST, b"x")) == "protocol"
    receiver.replay.secure(lambda problem: None)
    assert reason(sealer(5, protocol="hint", replay=disk.replay()), other.seal(BROADCAST_DATA, BROADCAST, b"y")) == (
        "protocol"
    )


def test_every_single_flipped_bit_is_noticed() -> None:
    datagram = sealer(3).seal(UNICAST_DATA, 5, b"hello")
    receiver = sealer(5)
    for bit in range(8 * len(datagram)):
        changed = bytearray(datagram)
        changed[bit // 8] ^= 1 << bit % 8
        assert reason(receiver, bytes(changed)) in ("version", "malformed", "key", "others")
    assert receiver.open(datagram).payload == b"hello"


def test_nothing_shorter_is_accepted() -> None:
    datagram = sealer(3).seal(BROADCAST_DATA, BROADCAST, b"hello")
    reasons = [reason(sealer(5), datagram[:length]) for length in range(len(datagram))]
    assert reasons == ["short"] * (HEADER_SIZE + TAG_SIZE) + ["key"] * 5
    empty = sealer(3, None).seal(BROADCAST_DATA, BROADCAST, b"")
    assert [reason(sealer(5, None), empty[:length]) for length in range(HEADER_SIZE)] == ["short"] * HEADER_SIZE
    assert sealer(5, None).open(empty).payload == b""


@pytest.mark.parametrize(
    ("datagram", "expected"),
    [
        (b"", "short"),
        (bytes(HEADER_SIZE + TAG_SIZE - 1), "short"),
        (bytes([3]) * (9000 + 1), "long"),
        (header(2, BROADCAST_DATA, 0, 3, BROADCAST, 1) + bytes(16), "version"),
        (header(0x83, BROADCAST_DATA, 0, 3, BROADCAST, 1) + bytes(16), "version"),
        (header(3, 0, 0, 3, BROADCAST, 1) + bytes(16), "malformed"),
        (header(3, 5, 0, 3, 5, 1) + bytes(16), "malformed"),
        (header(3, BROADCAST_DATA, ACK_REQUEST, 3, BROADCAST, 1) + bytes(16), "malformed"),
        (header(3, ACK, FRAGMENT, 3, 5, 1) + bytes(16), "malformed"),
        (header(3, SKIP, FRAGMENT, 3, 5, 1) + bytes(16), "malformed"),
        (header(3, UNICAST_DATA, 4, 3, 5, 1) + bytes(16), "malformed"),
        (header(3, BROADCAST_DATA, 0, 3, 5, 1) + bytes(16), "malformed"),
        (header(3, UNICAST_DATA, 0, 3, BROADCAST, 1) + bytes(16), "malformed"),
        (header(3, BROADCAST_DATA, 0, MAX_NODE + 1, BROADCAST, 1) + bytes(16), "malformed"),
        (header(3, BROADCAST_DATA, 0, 3, BROADCAST, 2**63) + bytes(16), "malformed"),
        (header(3, BROADCAST_DATA, 0, 3, BROADCAST, 1) + bytes(16), "key"),
        (header(3, UNICAST_DATA, 0, 3, 6, 1) + bytes(16), "others"),
        (header(3, BROADCAST_DATA, 0, 5, BROADCAST, 99) + bytes(16), "key"),
    ],
)
def test_reasons(datagram: bytes, expected: str) -> None:
    assert reason(sealer(5), datagram) == expected


def test_another_key_and_none_at_all() -> None:
    assert reason(sealer(5, NetworkKey(bytes(32))), sealer(3).seal(BROADCAST_DATA, BROADCAST, b"x")) == "key"
    assert reason(sealer(5, None), sealer(3).seal(BROADCAST_DATA, BROADCAST, b"x")) == "version"
    assert reason(sealer(5), sealer(3, None).seal(BROADCAST_DATA, BROADCAST, bytes(20))) == "version"


def test_a_frame_is_taken_once_also_by_a_receiver_that_restarts() -> None:
    disk = Disk()
    receiver = sealer(5, replay=disk.replay())
    three = sealer(3)
    datagram = three.seal(BROADCAST_DATA, BROADCAST, b"x")
    assert receiver.open(datagram).payload == b"x"
    receiver.replay.secure(lambda problem: None)
    assert reason(receiver, datagram) == "replay"
    reborn = sealer(5, replay=disk.replay())
    assert reason(reborn, datagram) == "behind"
    with pytest.raises(FrameBehind) as behind:
        reborn.open(three.seal(BROADCAST_DATA, BROADCAST, b"y"))
    assert three.skip(behind.value.session.salt, behind.value.upto)
    assert reborn.open(three.seal(BROADCAST_DATA, BROADCAST, b"z")).payload == b"z"
    assert reason(reborn, datagram) == "replay"


def test_looking_at_a_copy_twice_before_opening_either_takes_it_once() -> None:
    receiver, datagram = sealer(5), sealer(3).seal(BROADCAST_DATA, BROADCAST, b"x")
    looked = [receiver.look(datagram), receiver.look(datagram)]
    assert receiver.unseal(looked[0], datagram).payload == b"x"
    with pytest.raises(FrameRefused, match="replay"):
        receiver.unseal(looked[1], datagram)


def test_a_forged_frame_uses_up_no_counter() -> None:
    receiver = sealer(5)
    datagram = sealer(3).seal(BROADCAST_DATA, BROADCAST, b"x")
    assert reason(receiver, datagram[:-1] + bytes([datagram[-1] ^ 1])) == "key"
    assert len(receiver.replay) == 0
    assert receiver.open(datagram).payload == b"x"


def test_own_frames_those_of_former_lives_and_those_of_a_twin() -> None:
    disk = Disk()
    former = sealer(5)
    disk.blocks[former.session] = 0
    node = sealer(5, replay=disk.replay())
    assert reason(node, node.seal(BROADCAST_DATA, BROADCAST, b"x")) == "self"
    assert reason(node, former.seal(BROADCAST_DATA, BROADCAST, b"x")) == "self"
    twin = sealer(5, replay=disk.replay())
    assert reason(node, twin.seal(BROADCAST_DATA, BROADCAST, b"x")) == "twin"
    assert reason(twin, node.seal(BROADCAST_DATA, BROADCAST, b"x")) == "twin", "both notice"
    stranger = sealer(5, NetworkKey(bytes(32)))
    assert reason(node, stranger.seal(BROADCAST_DATA, BROADCAST, b"x")) == "key"


@given(st.binary(max_size=80) | st.binary(min_size=34, max_size=34).map(lambda b: b"\x02" + b + bytes(20)))
def test_octets_from_anywhere_are_refused_by_name(datagram: bytes) -> None:
    assert reason(sealer(5), datagram) in ("short", "version", "malformed", "others", "key", "self")


def outcome(receiver: Sealer, datagram: bytes) -> str | OpenedFrame:
    try:
        return receiver.open(datagram)
    except FrameRefused as refused:
        return refused.reason


kinds = st.tuples(st.sampled_from([BROADCAST_DATA, UNICAST_DATA, ACK, SKIP, 9]), st.integers(0, 8), st.integers(0, 6))
places = st.tuples(st.sampled_from([5, 6, BROADCAST]), st.sampled_from([0, 99, 100, 2**63 - 1, 2**63]))


@given(kinds, places, st.binary(max_size=30))
def test_an_open_frame_is_read_or_refused_by_name(
    kind: tuple[int, int, int], place: tuple[int, int], payload: bytes
) -> None:
    result = outcome(sealer(5, None), header(0x83, *kind, *place) + payload)
    (what, flags, sender), (to, counter) = kind, place
    fitting = {
        BROADCAST_DATA: (0, FRAGMENT, BUNDLE),
        UNICAST_DATA: (0, FRAGMENT, ACK_REQUEST, FRAGMENT | ACK_REQUEST),
        ACK: (0,),
        SKIP: (0,),
    }.get(what, ())
    if flags not in fitting or (what == BROADCAST_DATA) != (to == BROADCAST) or counter == 2**63:
        assert result == "malformed"
    elif sender == 5:
        assert result == "twin"
    elif to == 6:
        assert result == "others"
    else:
        assert result == OpenedFrame(what, flags, sender, to, counter, payload, FrameSession("insecure", sender, SALT))


def test_two_lives_of_a_node_share_no_nonce_whatever_was_lost() -> None:
    """Neither a store nor a clock is asked: the same number, the same counter, the same words, and another key."""
    frames = [
        Sealer(KEY, 1, counter=0, clock=lambda: 0).seal(BROADCAST_DATA, BROADCAST, b"the same words") for _ in range(50)
    ]
    assert len({frame[11:27] for frame in frames}) == 50, "50 salts"
    assert len({frame[HEADER_SIZE:] for frame in frames}) == 50
    receiver = sealer(2)
    assert [receiver.open(frame).payload for frame in frames] == [b"the same words"] * 50


def test_counters_only_rise_and_follow_the_minutes() -> None:
    now = [0]
    node = Sealer(KEY, 1, counter=5, clock=lambda: now[0])
    assert [node.take(), node.take()] == [5, 6]
    now[0] = 60 * 10**9 - 1
    assert node.take() == 7, "the first minute is not over"
    now[0] = 180 * 10**9 + 1  # three minutes
    assert [node.take(), node.take()] == [3 * BLOCK, 3 * BLOCK + 1]
    now[0] = 0
    assert node.take() == 3 * BLOCK + 2


def test_a_skip_goes_forward_by_two_blocks_at_most_and_for_this_session_only() -> None:
    node = Sealer(KEY, 1, counter=5, salt=SALT, clock=lambda: 0)
    assert not node.skip(bytes(16), BLOCK)
    assert not node.skip(SALT, 4)
    assert not node.skip(SALT, 5 + 2 * BLOCK + 1)
    assert node.skip(SALT, BLOCK - 1)
    assert node.take() == BLOCK
    assert node.skip(SALT, BLOCK + 1), "the very next"
    assert node.take() == BLOCK + 2
    assert node.skip(SALT, BLOCK + 3 + 2 * BLOCK), "the farthest"
    assert node.take() == 3 * BLOCK + 4


def test_a_life_begins_anywhere_in_the_first_half_of_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.randbelow", lambda bound: bound - 1)
    assert Sealer(KEY, 1).take() == BLOCK // 2 - 1


def test_nodes_count_in_blocks_of_one_size() -> None:
    """A receiver writes blocks to its disk that are the sender's."""
    assert BLOCK == 65536


def test_the_highest_number_is_a_nodes() -> None:
    assert sealer(5).open(sealer(MAX_NODE).seal(BROADCAST_DATA, BROADCAST, b"x")).sender == MAX_NODE


def test_a_frame_with_the_last_counter_silences_one_life_only() -> None:
    receiver = sealer(5)
    assert receiver.open(sealer(3, counter=2**63 - 1, salt=SALT).seal(BROADCAST_DATA, BROADCAST, b"poison"))
    assert reason(receiver, sealer(3, counter=7, salt=SALT).seal(BROADCAST_DATA, BROADCAST, b"x")) == "replay"
    assert (
        receiver.open(sealer(3, counter=7).seal(BROADCAST_DATA, BROADCAST, b"the next life")).payload
        == b"the next life"
    )
    new = NetworkKey(bytes(32))
    other = Sealer((new, KEY), 5, replay=receiver.replay)
    assert (
        other.open(sealer(3, new, counter=7, salt=SALT).seal(BROADCAST_DATA, BROADCAST, b"a new key")).payload
        == b"a new key"
    )


def test_a_node_with_a_key_seals_and_one_without_does_not() -> None:
    assert b"hello" not in sealer(1).seal(BROADCAST_DATA, BROADCAST, b"hello")
    assert sealer(1, None).seal(BROADCAST_DATA, BROADCAST, b"hello").endswith(b"hello")


def test_two_keys_are_opened_and_the_first_seals() -> None:
    new = NetworkKey(bytes(32))
    changing = Sealer((new, KEY), 5)
    assert changing.open(sealer(3).seal(BROADCAST_DATA, BROADCAST, b"old")).payload == b"old"
    assert changing.open(sealer(4, new).seal(BROADCAST_DATA, BROADCAST, b"new")).payload == b"new"
    assert sealer(6, new).open(changing.seal(BROADCAST_DATA, BROADCAST, b"x")).payload == b"x"
    assert reason(sealer(6), changing.seal(BROADCAST_DATA, BROADCAST, b"x")) == "key"


@pytest.mark.parametrize(("node", "counter"), [(-1, 0), (2**31, 0), (1, -1), (1, 2**63)])
def test_a_sealer_that_cannot_be(node: int, counter: int) -> None:
    with pytest.raises(ValueError, match=r"not|cannot"):
        Sealer(KEY, node, counter=counter)


def test_a_payload_that_does_not_fit() -> None:
    node = sealer(1)
    longest = node.seal(BROADCAST_DATA, BROADCAST, bytes(9000 - node.overhead))
    assert len(longest) == 9000
    assert sealer(5).open(longest).payload == bytes(9000 - node.overhead)
    with pytest.raises(ValueError, match="do not fit"):
        node.seal(BROADCAST_DATA, BROADCAST, bytes(9000 - node.overhead + 1))


def test_other_keys_begin_another_session_and_the_counter_goes_on() -> None:
    other = NetworkKey(bytes(range(1, 33)))
    node, old, new = Sealer(KEY, 1, counter=7), Sealer(KEY, 2), Sealer(other, 2)
    before, heard_back = node.session, node.seal(BROADCAST_DATA, BROADCAST, b"my own")
    assert not node.change_keys([KEY, other]), "it seals with the same key"
    assert node.session == before
    assert node.open(new.seal(BROADCAST_DATA, BROADCAST, b"new")).payload == b"new"
    assert node.change_keys([other, KEY])
    assert reason(node, heard_back) == "self", "no twin"
    assert not node.change_keys([other])
    assert node.session.key == other.fingerprint
    assert node.session.salt != before.salt
    frame = new.open(node.seal(BROADCAST_DATA, BROADCAST, b"from now on"))
    assert (frame.payload, frame.counter) == (b"from now on", 8)
    with pytest.raises(FrameRefused, match="key"):
        node.open(old.seal(BROADCAST_DATA, BROADCAST, b"old"))
    with pytest.raises(ValueError, match="all its life"):
        node.change_keys([])
    with pytest.raises(ValueError, match="all its life"):
        Sealer(None, 1).change_keys([KEY])
