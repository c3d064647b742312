"""What is carried and what was received: masks against plain sets, lives, disk."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roamcast.content.event import Event, event_id
from roamcast.protocols.roam.messages import MAX_BEHIND, MAX_PUBLISHERS, Digest, Hello
from roamcast.protocols.roam.store import Held, Store, lacks
from roamcast.protocols.testing import RecordingPort
from roamcast.units import SECOND


def held(id: int, expires: int = 60 * SECOND) -> Held:
    return Held(Event("t", id=id), 1, expires, 0)


def store_of(*ids: int, capacity: int = 1000, window: int = 1000) -> Store:
    store = Store(RecordingPort(), capacity, window)
    for id in ids:
        store.put(held(id))
    return store


def told(store: Store) -> Digest:
    digest = Hello(0, 0, {}, {}, (), store.summary()).digest
    assert digest is not None
    return digest


IDS = st.lists(st.builds(event_id, st.integers(0, 3), st.integers(1, 40) | st.integers(200, 240)), max_size=30)


@given(IDS, IDS)
def test_what_a_neighbour_lacks_is_the_difference_of_two_sets(mine: list[int], theirs: list[int]) -> None:
    lacked = [held.event.id for held in store_of(*mine).missing(told(store_of(*theirs)))]
    assert sorted(lacked) == sorted(set(mine) - set(theirs))


@pytest.mark.parametrize(("theirs", "lacked"), [(300, []), (MAX_BEHIND + 4, [5]), (3, [5, 4]), (2**32 - 1, [])])
def test_serials_too_old_for_a_mask_count_as_received(theirs: int, lacked: list[int]) -> None:
    mine = store_of(event_id(1, 4), event_id(1, 5))
    assert [held.event.id & 0xFFFFFFFF for held in mine.missing(told(store_of(event_id(1, theirs))))] == lacked


def test_a_digest_has_the_publishers_heard_last_and_says_nothing_about_others() -> None:
    full = store_of(*[event_id(node, 1) for node in range(MAX_PUBLISHERS + 1)])
    assert list(full.digest) == list(range(1, MAX_PUBLISHERS + 1))
    assert list(store_of(event_id(0, 1)).missing(told(full))) == []


def test_an_event_leaves_when_its_life_ends_and_is_remembered_a_little_longer() -> None:
    port = RecordingPort()
    store = Store(port, 10, 10)
    store.put(held(event_id(1, 1), 5 * SECOND))
    assert [key for key in port.kept if key.startswith("carried/")] == [f"carried/{event_id(1, 1)}"]
    store.expire(5 * SECOND)
    assert (len(store), port.kept, store.received(event_id(1, 1))) == (0, {}, True)
    store.expire(16 * SECOND)
    assert (store.received(event_id(1, 1)), store.digest) == (False, {})


@given(IDS, IDS)
def test_a_digest_forgets_as_if_it_had_never_received(short: list[int], long: list[int]) -> None:
    store = store_of()
    for id in short:
        store.put(held(id, SECOND))
    for id in long:
        store.put(held(id))
    store.expire(20 * SECOND)
    assert store.digest == store_of(*long).digest


def test_both_are_bounded_and_on_disk_too() -> None:
    port = RecordingPort()
    store = Store(port, 2, 3)
    evicted = [store.put(held(event_id(1, serial))) for serial in range(1, 6)]
    assert evicted == [None, None, *(event_id(1, serial) for serial in (1, 2, 3))]
    assert (len(store), store.remembered, len(port.kept)) == (2, 3, 2)


def test_a_restart_brings_back_what_is_alive() -> None:
    port = RecordingPort()
    before = Store(port, 10, 10)
    before.put(held(event_id(1, 1), 5 * SECOND))
    before.put(held(event_id(1, 2), 9 * SECOND))
    port.keep("carried/3", b"nonsense")
    after = Store(port, 10, 10)
    after.restore(6 * SECOND, dict(port.kept))
    assert [(one.event.id, one.hops, one.expires) for one in after] == [(event_id(1, 2), 1, 9 * SECOND)]
    assert list(port.kept) == [f"carried/{event_id(1, 2)}"]


def test_claims_of_copies_are_merged_to_the_shortest() -> None:
    one = held(1)
    for copy in range(20):
        one.hear(copy, {1: 20 - copy, 2: copy})
    assert (one.claims, one.heard) == ({1: 1, 2: 0}, 19)


@given(st.lists(st.integers(1, 300), unique=True), st.integers(1, 300))
def test_a_digest_lacks_what_was_not_entered(received: list[int], serial: int) -> None:
    store = store_of(*(event_id(1, one) for one in received))
    too_old = bool(received) and max(received) - serial >= MAX_BEHIND
    assert lacks(store.digest, event_id(1, serial)) == (serial not in received and not too_old)
