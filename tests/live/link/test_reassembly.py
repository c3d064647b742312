"""Messages in fragments: put together in any order, within bounds that nobody can use against others."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roamcast.live.link.frame import FrameRefused
from roamcast.live.link.reassembly import CHUNK_COST, MAX_FRAGMENTS, Reassembly, count_fragments, cut_fragment


def reassembly(
    each: int = 4, octets: int = 10**6, lifetime: float = 5.0, longest: int = 10**7
) -> tuple[Reassembly, Counter[str]]:
    counters: Counter[str] = Counter()
    return Reassembly(each, octets, lifetime, counters, longest), counters


def test_a_message_is_dropped_when_it_gets_longer_than_any_may_be() -> None:
    table, _ = reassembly(longest=20)
    assert table.add(0.0, 1, 7, 0, 3, bytes(10)) is None
    assert table.add(0.0, 1, 7, 1, 3, bytes(10)) is None
    with pytest.raises(FrameRefused) as refused:
        table.add(0.0, 1, 7, 2, 3, bytes(1))
    assert (refused.value.reason, table.cost, len(table)) == ("long", 0, 0)


@given(st.binary(max_size=300), st.integers(2, 50), st.randoms(use_true_random=False), st.integers(0, 3))
def test_parts_in_any_order_and_more_than_once_give_the_message(
    payload: bytes, room: int, rng: object, repeats: int
) -> None:
    import random

    assert isinstance(rng, random.Random)
    count = count_fragments(payload, room)
    assert b"".join(cut_fragment(payload, room, index) for index in range(count)) == payload
    assert count == 1 or len(cut_fragment(payload, room, count - 1)) > 0
    if count == 1:
        return
    table, counters = reassembly()
    last, *others = rng.sample(range(count), count)
    arriving = others + rng.choices(others, k=repeats)
    rng.shuffle(arriving)
    for index in arriving:
        assert table.add(0, 1, 7, index, count, cut_fragment(payload, room, index)) is None
    assert table.have(1, 7) == sum(1 << index for index in others)
    assert table.add(0, 1, 7, last, count, cut_fragment(payload, room, last)) == payload
    assert (len(table), table.cost, counters) == (0, 0, Counter())


def test_counting_parts() -> None:
    assert [count_fragments(bytes(length), 10) for length in (0, 1, 10, 11, 20, 21)] == [1, 1, 1, 2, 2, 3]


@pytest.mark.parametrize(
    ("index", "count", "chunk"), [(2, 2, b"x"), (0, 0, b"x"), (-1, 2, b"x"), (0, MAX_FRAGMENTS + 1, b"x"), (0, 2, b"")]
)
def test_parts_that_cannot_be(index: int, count: int, chunk: bytes) -> None:
    table, _ = reassembly()
    with pytest.raises(FrameRefused, match="malformed"):
        table.add(0, 1, 7, index, count, chunk)
    assert (len(table), table.cost) == (0, 0)


def test_another_count_for_the_same_message_is_refused_and_harms_nothing() -> None:
    table, _ = reassembly()
    table.add(0, 1, 7, 0, 2, b"a")
    with pytest.raises(FrameRefused, match="malformed"):
        table.add(0, 1, 7, 1, 3, b"b")
    assert table.add(0, 1, 7, 1, 2, b"b") == b"ab"


def test_senders_and_messages_do_not_mix() -> None:
    table, _ = reassembly()
    table.add(0, 1, 7, 0, 2, b"a")
    table.add(0, 2, 7, 0, 2, b"c")
    table.add(0, 1, 8, 1, 2, b"z")
    assert table.add(0, 1, 7, 1, 2, b"b") == b"ab"
    assert table.add(0, 2, 7, 1, 2, b"d") == b"cd"
    assert len(table) == 1


def test_of_too_many_of_one_sender_the_stalest_goes() -> None:
    table, counters = reassembly(each=2)
    table.add(0, 9, 1, 0, 2, b"other sender")
    for message in (1, 2):
        table.add(message, 1, message, 0, 3, b"x")
    table.add(3, 1, 1, 1, 3, b"x")  # 1 has made progress since 2
    table.add(4, 1, 3, 0, 3, b"x")
    assert [table.have(1, message) for message in (1, 2, 3)] == [0b11, 0, 0b1]
    assert table.have(9, 1) == 1
    assert counters == {"parts-evicted": 1}


def test_when_all_hold_too_much_the_greediest_loses() -> None:
    table, counters = reassembly(each=100, octets=10 * (CHUNK_COST + 100))
    table.add(0, 2, 1, 0, 2, bytes(100))
    for message in range(1000):
        table.add(1, 1, message, 0, 2, bytes(100))
        assert table.cost <= 10 * (CHUNK_COST + 100)
    assert table.add(2, 2, 1, 1, 2, b"!") == bytes(100) + b"!"
    assert counters["parts-evicted"] == 1000 - 9


def test_tiny_parts_cost_more_than_their_octets() -> None:
    table, _ = reassembly()
    for index in range(100):
        table.add(0, 1, 1, index, 255, b"x")
    assert table.cost == 100 * (CHUNK_COST + 1)


def test_what_makes_no_progress_expires() -> None:
    table, counters = reassembly(lifetime=5)
    assert table.next_expiry() is None
    table.add(0, 1, 1, 0, 3, b"a")
    table.add(1, 1, 2, 0, 3, b"a")
    table.add(2, 1, 1, 1, 3, b"b")
    table.add(4, 1, 2, 0, 3, b"a")  # not new: no progress
    assert table.next_expiry() == 6
    table.expire(5.9)
    assert len(table) == 2
    table.expire(6)
    assert (table.have(1, 1), table.have(1, 2), table.next_expiry()) == (0b11, 0, 7)
    table.expire(7)
    assert (len(table), table.cost, counters) == (0, 0, {"parts-expired": 2})


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 2), st.integers(2, 3), st.integers(1, 60)),
        max_size=60,
    )
)
def test_the_bounds_hold_whatever_comes(arriving: list[tuple[int, int, int, int, int]]) -> None:
    bound = 4 * (CHUNK_COST + 40)
    table, _ = reassembly(each=2, octets=bound)
    for now, (sender, message, index, count, length) in enumerate(arriving):
        try:
            table.add(now, sender, message, index, count, bytes(length))
        except FrameRefused:
            continue
        assert table.cost <= bound
        assert len(table) <= 8
    table.expire(10**6)
    assert (len(table), table.cost) == (0, 0)
