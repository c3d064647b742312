"""What goes over the air: three bytes for a subscriber, and what a stranger may send instead."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roamcast.content.event import Event
from roamcast.protocols.catalogue import find
from roamcast.protocols.roam.messages import Claim, Data, Hello, Received, pack, unpack


def test_three_bytes_by_hand() -> None:
    # 2.5 hops are 20 eighths; the highest bit says whose distance it is.
    assert pack([Claim(0x0102, 2.5), Claim(0xFFFF, 1, own=False)]) == b"\x01\x02\x94\xff\xff\x08"
    assert unpack(b"\x01\x02\x94\xff\xff\x08") == [Claim(0x0102, 2.5), Claim(0xFFFF, 1.0, own=False)]


@pytest.mark.parametrize(("distance", "told"), [(-3.0, 0.0), (1.06, 1.0), (1.07, 1.125), (15.9, 15.875), (400, 15.875)])
def test_distances_are_rounded_and_clipped(distance: float, told: float) -> None:
    assert unpack(pack([Claim(1, distance)])) == [Claim(1, told)]


def test_a_rest_of_an_entry_is_ignored() -> None:
    assert unpack(b"\x01\x02\x94\xff") == [Claim(0x0102, 2.5)]


@given(st.binary(max_size=192))
def test_any_bytes_are_some_distances(entries: bytes) -> None:
    assert pack(unpack(entries)) == entries[: len(entries) // 3 * 3]


def test_a_digest_by_hand() -> None:
    hello = Hello(0, 1000, {}, {}, (Received(3, 9, b"\x05"), Received(4, 1, b"\x01")))
    assert hello.digest == {3: (9, 0b101), 4: (1, 1)}


def test_twenty_subscribers_take_sixty_bytes_of_a_frame() -> None:
    codec = find("roam").codec()
    bare, full = (Data(Event("t", id=7), 0, 60_000, pack([Claim(n, 1) for n in range(count)])) for count in (0, 20))
    assert codec.size(full) - codec.size(bare) == 60
