"""The cache: what goes first, what never gets in, and that its bounds hold."""

import itertools
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roamcast.content.event import Event, event_id
from roamcast.protocols.opportunistic.cache import COST, POLICIES, Cache, Held, Traits
from roamcast.protocols.opportunistic.documents import Document
from roamcast.protocols.opportunistic.params import Policy


def held(
    id: int,
    published: int = 0,
    arrived: int = 0,
    wanted: bool = True,
    expires: int | None = None,
    size: int = 0,
) -> Held:
    return Held(Document(Event.of("t", payload=bytes(size), id=id)), published, arrived, arrived, wanted, expires, 0)


def ids(documents: Iterable[Held] | None) -> list[int] | None:
    return None if documents is None else [held.document.id for held in documents]


FULL = {  # id: published, arrived, wanted
    1: (30, 100, True),
    2: (10, 300, True),
    3: (20, 200, False),
}


@pytest.mark.parametrize(
    ("policy", "gone"), [("oldest", 2), ("oldest arrival", 1), ("least requested", 2), ("others first", 3)]
)
def test_what_goes_first(policy: Policy, gone: int) -> None:
    cache = Cache(3, 0, policy)
    for id, (published, arrived, wanted) in FULL.items():
        assert cache.put(held(id, published, arrived, wanted)) == []
    for id, when in ((1, 400), (3, 500)):  # 2 was never asked for, and counts from its arrival
        document = cache.get(id)
        assert document is not None
        cache.requested(document, when)
    assert ids(cache.put(held(4, 40, 600))) == [gone]
    assert ids(cache) == [id for id in (1, 2, 3, 4) if id != gone]


def test_what_would_be_dropped_on_arrival_is_not_admitted_and_does_not_get_in() -> None:
    cache = Cache(2, 0, "oldest")
    cache.put(held(1, published=10))
    assert cache.admits(0, Traits(5, 99, 99, True))  # there is room
    cache.put(held(2, published=20))
    assert [cache.admits(0, Traits(published, 99, 99, True)) for published in (9, 10, 11)] == [False, False, True]
    assert cache.put(held(3, published=9)) is None
    assert ids(cache) == [1, 2]


def test_own_interests_come_before_those_of_others() -> None:
    cache = Cache(2, 0, "others first")
    cache.put(held(1, published=10, wanted=False))
    cache.put(held(2, published=20))
    assert cache.admits(0, Traits(1, 99, 99, True))
    assert not cache.admits(0, Traits(9, 99, 99, False))
    first = cache.get(1)
    assert first is not None
    cache.set_wanted(first, True)
    assert not cache.admits(0, Traits(1, 99, 99, True))


def test_bytes_are_bounded_too_and_one_may_drive_out_several() -> None:
    size = 1000 + COST + 8  # a head: the length in 4 bytes, then 4 of the descriptor
    cache = Cache(0, 3 * size, "oldest")
    for id in (1, 2, 3):
        assert cache.put(held(id, published=id, size=1000)) == []
    assert ids(cache.put(held(4, published=4, size=2000))) == [1, 2]
    assert cache.put(held(5, published=5, size=4000)) is None  # more than there is
    assert not cache.admits(4000, Traits(5, 5, 5, True))
    assert ids(cache) == [3, 4]


def test_expired_documents_go_and_are_named_in_the_order_of_time() -> None:
    cache = Cache(0, 0, "oldest")
    for id, expires in ((1, 50), (2, None), (3, 20), (4, 30)):
        cache.put(held(id, expires=expires))
    cache.remove(4)
    assert (cache.next_expiry, ids(cache.expired(19))) == (20, [])
    assert ids(cache.expired(50)) == [3, 1]
    assert ids(cache) == [2]
    assert (cache.next_expiry, cache.octets) == (None, COST + 8)


STEPS = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 9), st.integers(0, 60), st.booleans()), max_size=60)


@given(STEPS, st.integers(0, 5), st.sampled_from((0, 3 * COST)), st.sampled_from(("oldest", "others first")))
def test_the_bounds_hold_and_only_what_ranks_lowest_goes(
    steps: list[tuple[int, int, int, bool]], documents: int, octets: int, policy: Policy
) -> None:
    cache = Cache(documents, octets, policy)
    for now, (id, published, size, wanted) in zip(itertools.count(), steps, strict=False):
        if id in cache:
            continue
        newcomer = held(id, published, now, wanted, size=size)
        admitted = cache.admits(newcomer.document.length, newcomer.traits)
        dropped = cache.put(newcomer)
        assert admitted == (dropped is not None)
        assert not documents or len(cache) <= documents
        assert not octets or cache.octets <= octets
        assert cache.octets == sum(held.octets for held in cache)
        for victim in dropped or ():
            assert (victim.wanted, victim.published) < (wanted, published) or policy == "oldest"
            assert victim.published < published or policy != "oldest"


# --- The part that is reserved for the node's own documents ---------------------------------------------------------


def own(number: int, published: int, size: int = 0) -> Held:
    return held(event_id(1, number), published, size=size)


@pytest.mark.parametrize("policy", POLICIES)
def test_documents_of_others_do_not_displace_own_ones_in_the_reserved_part(policy: Policy) -> None:
    cache = Cache(8, 0, policy, node=1, reserved=0.25)
    for number in (1, 2):
        cache.put(own(number, number))
    for number in range(1, 20):
        cache.put(held(event_id(2, number), 100 + number))
    assert len(cache) == 8
    assert event_id(1, 1) in cache
    assert event_id(1, 2) in cache


def test_beyond_the_reserved_part_the_oldest_own_documents_are_like_any_other() -> None:
    cache = Cache(8, 0, "oldest", node=1, reserved=0.25)
    for number in (1, 2, 3, 4):
        cache.put(own(number, number))
    for number in range(1, 20):
        cache.put(held(event_id(2, number), 100 + number))
    assert [event_id(1, number) in cache for number in (1, 2, 3, 4)] == [False, False, True, True]


def test_an_own_document_finds_room_whatever_its_rank() -> None:
    cache = Cache(4, 0, "others first", node=1, reserved=0.5)
    for number in range(1, 5):
        cache.put(held(event_id(2, number), 100 + number, wanted=True))
    dropped = cache.put(own(1, 1))
    assert dropped is not None
    assert [one.document.id for one in dropped] == [event_id(2, 1)]
    assert cache.put(held(event_id(3, 1), 0)) is None  # of another


def test_a_document_of_another_that_needs_the_reserved_bytes_is_not_admitted() -> None:
    cache = Cache(0, 10_000, "oldest", node=1, reserved=0.5)
    cache.put(own(1, 1, size=4000))
    big = held(event_id(2, 1), 200, size=6000)
    assert not cache.admits(big.document.length, big.traits)
    assert cache.put(big) is None
    assert event_id(1, 1) in cache
    assert cache.put(held(event_id(2, 2), 100, size=5000)) == []
    cache.remove(event_id(1, 1))
    assert cache.put(big) is not None
