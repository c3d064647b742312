"""The subscriptions of a node: whom an event is handed to, once, also by the node's next life."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from roamcast.content.event import Event
from roamcast.content.filter import EVERYTHING, Filter
from roamcast.content.subscription import Subscription
from roamcast.protocols.local import LocalSubscriptions
from roamcast.protocols.testing import Delivery, RecordingPort

WINDOW = 50

SMALL = Filter.where("n", "<", 10)
LARGE = Filter.where("n", ">", 5)


def event(n: int, id: int = 1) -> Event:
    return Event.of("number", {"n": n}, id=id)


def made(*subscriptions: Subscription, port: RecordingPort | None = None) -> tuple[LocalSubscriptions, RecordingPort]:
    port = port or RecordingPort()
    local = LocalSubscriptions(port, WINDOW)
    local.restore(dict(port.kept))
    for subscription in subscriptions:
        local.add(subscription)
    return local, port


def test_an_event_goes_to_all_that_match_in_one_delivery() -> None:
    local, port = made(Subscription(4, SMALL), Subscription(2, LARGE))
    assert local.deliver(event(7), 3, "data")
    assert port.delivered == [Delivery(event(7), (4, 2), 3, "data")]


def test_what_nobody_wants_leaves_no_trace() -> None:
    local, port = made(Subscription(4, SMALL))
    assert not local.deliver(event(12), 1, "data")
    assert (port.delivered, port.kept) == ([], {})


def test_an_event_that_matches_again_is_wanted_but_not_delivered_again() -> None:
    local, port = made(Subscription(4, SMALL))
    assert local.deliver(event(7), 1, "data")
    assert local.deliver(event(7), 2, "data")
    assert [delivery.hops for delivery in port.delivered] == [1]


def test_adding_replacing_and_removing() -> None:
    local, port = made(Subscription(1, SMALL), Subscription(2, LARGE), Subscription(1, LARGE))
    assert len(local) == 2
    assert local.filters == [LARGE, LARGE]
    local.remove(2)
    local.remove(2)
    local.remove(77)
    assert local.filters == [LARGE]
    local.deliver(event(1, id=1), 1, "data")
    local.deliver(event(9, id=2), 1, "data")
    assert [(delivery.event.id, delivery.subscriptions) for delivery in port.delivered] == [(2, (1,))]


def test_a_later_life_delivers_nothing_that_a_former_one_did() -> None:
    local, port = made(Subscription(1, EVERYTHING))
    for id in (5, -3, 2**62):
        local.deliver(event(0, id), 1, "data")
    again, _ = made(Subscription(1, EVERYTHING), port=port)
    for id in (5, -3, 2**62, 8):
        again.deliver(event(0, id), 1, "data")
    assert [delivery.event.id for delivery in port.delivered] == [5, -3, 2**62, 8]


def test_what_is_kept_is_bounded_and_the_oldest_goes_first_in_every_life() -> None:
    local, port = made(Subscription(1, EVERYTHING))
    for id in range(WINDOW + 10):
        local.deliver(event(0, id), 1, "data")
    assert len(port.kept) == WINDOW
    again, _ = made(Subscription(1, EVERYTHING), port=port)
    port.clear()
    again.deliver(event(0, 5000), 1, "data")
    assert len(port.kept) == WINDOW
    # 10 was the oldest left, and made room for 5000; 11 is still known.
    again.deliver(event(0, 11), 1, "data")
    again.deliver(event(0, 10), 1, "data")
    assert [delivery.event.id for delivery in port.delivered] == [5000, 10]


def test_a_memory_that_was_longer_before_a_restart_shrinks_with_every_delivery() -> None:
    """The broker may have held the surplus, and may get it again from others: it is not forgotten all at once."""
    port = RecordingPort(kept={f"delivered/{id}": struct.pack(">2q", id, 1) for id in range(1, WINDOW + 4)})
    local, _ = made(Subscription(1, EVERYTHING), port=port)
    counts = []
    for id in range(1000, 1005):
        local.deliver(event(0, id), 1, "data")
        counts.append(len(port.kept))
    assert counts == [WINDOW + 2, WINDOW + 1, WINDOW, WINDOW, WINDOW]
    assert [f"delivered/{id}" in port.kept for id in (8, 9, 1000)] == [False, True, True]


def test_what_the_broker_holds_is_not_forgotten() -> None:
    held = {1, 2}
    port = RecordingPort()
    local = LocalSubscriptions(port, 3, held.__contains__)
    local.add(Subscription(1, EVERYTHING))
    for id in range(1, 101):
        local.deliver(event(0, id), 1, "data")
    assert sorted(int(key.removeprefix("delivered/")) for key in port.kept) == [1, 2, 98, 99, 100]
    assert local.remembered == 5
    held |= set(range(98, 130))
    for id in range(101, 130):
        local.deliver(event(0, id), 1, "data")
    held.clear()
    for id in range(130, 200):  # what is no longer held is the newest once that is noticed, and then goes like all
        local.deliver(event(0, id), 1, "data")
        local.deliver_held(event(0, id - 2), 1, "held")
    assert local.remembered <= 3 + 2 * 34 + 16
    assert len(port.delivered) == 199


def test_what_others_kept_is_left_alone() -> None:
    port = RecordingPort(kept={"cache/1": b"document"})
    local, _ = made(Subscription(1, EVERYTHING), port=port)
    local.deliver(event(0), 1, "data")
    assert port.kept["cache/1"] == b"document"


def test_a_subscription_made_later_gets_what_the_broker_holds_and_not_what_comes_again() -> None:
    local, port = made(Subscription(1, SMALL))
    local.deliver(event(7), 1, "data")
    local.add(Subscription(2, LARGE))
    local.deliver(event(7), 2, "data")
    assert [delivery.subscriptions for delivery in port.delivered] == [(1,)], "a copy alone is nothing new"
    local.deliver_held(event(7), 0, "held")
    local.deliver_held(event(7), 0, "held")
    assert [(delivery.subscriptions, delivery.via) for delivery in port.delivered] == [((1,), "data"), ((2,), "held")]
    again, _ = made(Subscription(1, SMALL), Subscription(2, LARGE), Subscription(3, LARGE), port=port)
    again.deliver_held(event(7), 0, "held")
    assert [delivery.subscriptions for delivery in port.delivered] == [(1,), (2,), (3,)]


IDS = st.integers(0, 5)
STEPS = st.lists(
    st.tuples(st.just("subscribe"), IDS)
    | st.tuples(st.just("unsubscribe"), IDS)
    | st.tuples(st.just("arrive"), IDS)
    | st.tuples(st.just("hold"), IDS)
    | st.just(("restart", 0)),
    max_size=40,
)


@given(STEPS)
def test_no_subscription_gets_an_event_twice_whatever_happens(steps: list[tuple[str, int]]) -> None:
    """Fewer events than the window holds: then the rule is without exception, across restarts too."""
    local, port = made()
    for step, number in steps:
        if step == "subscribe":
            local.add(Subscription(number, EVERYTHING))
        elif step == "unsubscribe":
            local.remove(number)
        elif step == "arrive":
            local.deliver(event(0, number), 1, "data")
        elif step == "hold":
            local.deliver_held(event(0, number), 0, "held")
        else:
            local, _ = made(port=port)
    got = [(delivery.event.id, number) for delivery in port.delivered for number in delivery.subscriptions]
    assert len(got) == len(set(got))
    assert set(port.kept) == {f"delivered/{id}" for id, _ in got}
