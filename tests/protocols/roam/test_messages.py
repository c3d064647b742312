"""What goes over the air: three bytes for a subscriber in hellos, two in claims, and what a stranger may send."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roamcast.content.event import Event
from roamcast.protocols.catalogue import find
from roamcast.protocols.roam.messages import Data, Hello, Received, names, pack, pack_claims, unpack, unpack_claims


def test_three_bytes_by_hand() -> None:
    # 2.5 hops are 20 eighths.
    assert pack([(0x0102, 2.5), (0xFFFF, 1)]) == b"\x01\x02\x14\xff\xff\x08"
    assert unpack(b"\x01\x02\x14\xff\xff\x08") == {0x0102: 2.5, 0xFFFF: 1.0}


def test_two_bytes_by_hand() -> None:
    # A name of 11 bits, then the level: 10 quarters of a hop; 4 hops are the 16th level.
    assert pack_claims({0x7FF: 2.5, 0x001: 4.0}) == b"\xff\xea\x00\x30"
    assert unpack_claims(b"\xff\xea\x00\x30") == [(0x7FF, 2.5), (0x001, 4.0)]


@pytest.mark.parametrize(("distance", "told"), [(-3.0, 0.0), (1.06, 1.0), (1.07, 1.125), (15.9, 15.875), (400, 31.875)])
def test_distances_are_rounded_and_clipped(distance: float, told: float) -> None:
    assert unpack(pack([(1, distance)])) == {1: told}


@pytest.mark.parametrize(
    ("distance", "told"), [(-3.0, 0.0), (1.12, 1.0), (1.13, 1.25), (3.9, 4.0), (6.4, 6.5), (8.3, 8.0), (400, 15.0)]
)
def test_claims_are_the_coarser_the_farther(distance: float, told: float) -> None:
    assert unpack_claims(pack_claims({1: distance})) == [(1, told)]


def test_a_rest_of_an_entry_is_ignored() -> None:
    assert unpack(b"\x01\x02\x14\xff") == {0x0102: 2.5}
    assert unpack_claims(b"\xff\xea\x00") == [(0x7FF, 2.5)]


@given(st.binary(max_size=192))
def test_any_bytes_are_some_distances(entries: bytes) -> None:
    found = unpack(entries)
    keys = {entries[at : at + 2] for at in range(0, len(entries) - 2, 3)}
    assert len(found) == len(keys)
    assert unpack(pack(found.items())) == found
    if len(keys) == len(entries) // 3:  # no subscriber is listed twice
        assert pack(found.items()) == entries[: len(entries) // 3 * 3]
    claims = unpack_claims(entries)
    assert len(claims) == len(entries) // 2
    assert all(0 <= name < 2048 and 0 <= distance <= 15 for name, distance in claims)


def test_two_subscribers_that_share_a_name_have_others_with_the_next_event() -> None:
    pairs = [(one, other) for other in range(300) for one in range(other)]
    shared = [
        {pair for pair, two in zip(pairs, _named(pairs, event), strict=True) if two[0] == two[1]} for event in (7, 8)
    ]
    assert all(0 < len(some) < 3 * len(pairs) / 2048 for some in shared)
    assert len(shared[0] & shared[1]) < len(shared[0]) / 2


def _named(pairs: list[tuple[int, int]], event: int) -> list[list[int]]:
    return [[names((3 << 32) + event)[one * 211] for one in pair] for pair in pairs]


def test_a_digest_by_hand() -> None:
    hello = Hello(0, 1000, {}, {}, (), (Received(3, 9, b"\x05"), Received(4, 1, b"\x01")))
    assert hello.digest == {3: (9, 0b101), 4: (1, 1)}


def test_twenty_subscribers_take_forty_bytes_of_a_frame() -> None:
    codec = find("roam").codec()
    claims = (pack_claims(dict.fromkeys(range(count), 1.0)) for count in (0, 20))
    bare, full = (Data(Event("t", id=7), 0, 60_000, False, one) for one in claims)
    assert codec.size(full) - codec.size(bare) == 40
