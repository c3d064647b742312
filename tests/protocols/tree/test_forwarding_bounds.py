"""Subscription forwarding: bounds, and messages that nobody should send."""

from collections.abc import Hashable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.tree.network import CHAIN, CODEC, EVENTS, FILTERS, JAZZ, S1, S2, Member, Network, alone, told
from roamcast.content.covering import covers
from roamcast.content.event import Event
from roamcast.content.filter import Filter
from roamcast.content.subscription import Publication
from roamcast.protocols.api import Time
from roamcast.protocols.codec import FrameError
from roamcast.protocols.flooding import Data
from roamcast.protocols.messages import MAX_HOPS, Message
from roamcast.protocols.tree.forwarding import (
    MAX_SUMMARY,
    Forwarding,
    SubscriptionForwarding,
)
from roamcast.protocols.tree.forwarding_messages import MAX_FILTERS, MAX_SERIAL, MAX_SESSION, Routed, Routes
from roamcast.units import SECOND


def test_a_long_list_goes_in_several_messages_and_replaces_at_the_end() -> None:
    """Until the last part is there, the old routes stand beside the new ones: nothing is withdrawn and told again."""
    network = Network(3, CHAIN, defer=100)
    filters = [Filter.where("key", "=", f"{number:04}" * 10) for number in range(100)]
    for number, filter in enumerate(filters, start=1):
        network.subscribe(0, filter, number)
    network.run()
    network.down(0, 1)
    network.unsubscribe(0, 1)
    network.run()
    network.log.clear()
    network.up(0, 1)
    network.run()
    parts = [message for a, b, message in network.log if (a, b) == (0, 1) and isinstance(message, Routes)]
    lists = [message for message in parts if message.added]
    assert len(lists) > 3
    assert all(CODEC.size(message) <= 1472 for message in lists)
    assert [message.full for message in lists] == [True] + [False] * (len(lists) - 1)
    assert [message.more for message in lists] == [True] * (len(lists) - 1) + [False]
    assert network[1].routes(0) == filters[1:]
    assert [entry[2:] for entry in told(network) if entry[:2] == (1, 2)] == [((), (filters[0],))]


def test_a_lost_part_has_the_list_told_again() -> None:
    network = Network(2)
    for number in range(100):
        network.subscribe(0, Filter.where("key", "=", f"{number:04}" * 10), number)
    network.up(0, 1)
    parts = [frame for sender, _, frame in network.queue if sender == 0]
    network.queue.remove((0, 1, parts[1]))
    network.run()
    assert len(network[1].routes(0)) == 100


def test_many_small_filters_fit_the_bounds_of_a_message() -> None:
    network = Network(2)
    for number in range(500):
        network.subscribe(0, Filter.where("k", "=", number), number)
    network.up(0, 1)
    network.run()
    assert len(network[1].routes(0)) == 500
    assert max(len(message.added) for _, _, message in network.log if isinstance(message, Routes)) <= MAX_FILTERS


def test_what_one_neighbour_wants_is_bounded() -> None:
    network = Network(2, [(0, 1)], routes=256)
    filters = [Filter.where(f"k{number % 7}", "=", number) for number in range(257)]
    for number, filter in enumerate(filters[:256], start=1):
        network.subscribe(0, filter, number)
    network.run()
    assert network[1].routes(0) == filters[:256]
    network.subscribe(0, filters[256], 257)
    network.run()
    (summary,) = network[1].routes(0)
    assert len(msgspec.msgpack.encode(summary)) <= MAX_SUMMARY
    assert all(covers(summary, filter) for filter in filters)
    assert network[1].port.notes["summarised"] == 1

    event = Event.of("e", {"k3": 3}, id=1)
    assert network.publish(1, event)[0] == {(1, 0)}
    for number in range(1, 258):
        network.unsubscribe(0, number)
    network.run()
    assert network[1].routes(0) == [summary], "too much rather than too little"
    network.down(0, 1)
    network.up(0, 1)
    network.wait(5)  # it says nothing, for it wants nothing; what it wanted is forgotten with the lost link
    assert network[1].routes(0) == []


def test_old_and_new_routes_side_by_side_are_not_too_many() -> None:
    network = Network(2, [(0, 1)], routes=256)
    for wanted in ("old", "new"):
        for number in range(200):
            network.subscribe(0, Filter.where(wanted, "=", number), number)
        network.run()
        network.down(0, 1)
    network.up(0, 1)
    network.run()
    assert network[1].routes(0) == [Filter.where("new", "=", number) for number in range(200)]
    assert network[1].port.notes["summarised"] == 0


def test_endless_lists_are_bounded() -> None:
    """A neighbour that always promises more."""
    node, port = alone(routes=256)
    assert isinstance(node, SubscriptionForwarding)
    node.link_up(0, 1)
    for serial in range(1, 12):
        added = tuple(Filter.where("k", "=", 1000 * serial + number) for number in range(100))
        node.receive(0, 1, Routes(5, serial, 0, serial % 3 == 1, True, False, added))
        weight = sum(max(1, sum(map(len, filter.alternatives))) for filter in node.routes(1))
        assert weight <= 2 * 256
    assert port.notes["summarised"]


def test_a_message_given_up_is_repaired_after_a_while_and_once() -> None:
    member = Member(0, Forwarding())
    node, port = member.routing, member.port
    node.link_up(0, 1)
    member.subscribe(0, 1, S1)
    (message,) = port.messages
    port.clear()
    node.unreachable(0, 1, message)
    node.unreachable(0, 1, message)
    node.unreachable(0, 2, message)
    node.unreachable(0, 1, Routed(JAZZ, 0))
    assert port.sent == {}
    ((at, key),) = port.timers
    assert at == SECOND
    node.timer(at, key)
    (again,) = port.messages
    assert isinstance(again, Routes)
    assert again.full
    port.clear()
    node.link_down(at, 1)
    node.timer(at, key)
    node.link_up(at, 1)
    port.clear()
    node.timer(at, key)
    node.unreachable(at, 1, message)
    assert (port.sent, port.timers) == ({}, []), "of a session that is over"


def test_a_question_is_asked_again_until_it_is_answered() -> None:
    node, port = alone()
    node.link_up(0, 1)
    node.receive(0, 1, Routes(3, 1, 0, True, False, False))
    port.clear()
    for serial in (5, 6):
        node.receive(0, 1, Routes(3, serial, 0, False, False, False, (S1,)))
    (message,) = port.messages
    assert isinstance(message, Routes)
    assert message.ask
    assert not message.full
    ((at, key),) = port.timers
    port.clear()
    node.timer(at, key)
    assert [message.ask for message in port.messages if isinstance(message, Routes)] == [True]
    ((at, key),) = port.timers
    port.clear()
    node.receive(at, 1, Routes(3, 7, 0, True, False, False, (S2,)))
    port.clear()
    node.timer(at, key)
    assert (port.sent, port.timers) == ({}, [])
    assert isinstance(node, SubscriptionForwarding)
    assert node.routes(1) == [S2]


def test_old_messages_change_nothing() -> None:
    node, port = alone()
    assert isinstance(node, SubscriptionForwarding)
    node.link_up(0, 1)
    full = Routes(3, 1, 0, True, False, False, (S1,))
    change = Routes(3, 2, 0, False, False, False, (S2,), (S1,))
    for message in (full, change, full, change):
        node.receive(0, 1, message)
        assert port.notes["stranger"] == 0
    assert node.routes(1) == [S2]
    assert port.notes["routes told again"] == 2


def test_what_belongs_to_others_is_ignored() -> None:
    for kind in ("subscriptions", "messages"):
        node, port = alone(by=kind)
        node.link_up(0, 1)
        port.clear()
        node.receive(0, 1, Data(JAZZ, 0))
        node.unreachable(0, 1, Data(JAZZ, 0))
        for key in ("hello", ("resync", 1, 1), None, 5):
            node.timer(0, key)
        assert (port.sent, port.timers, port.notes) == ({}, [], {})


numbers = st.sampled_from([0, 1, 2, 3])
lists = st.lists(st.sampled_from(FILTERS), max_size=4).map(tuple)
hostile = st.builds(
    Routes,
    st.sampled_from([1, 2, MAX_SESSION]),
    st.sampled_from([1, 2, 3, 4, MAX_SERIAL]),
    st.sampled_from([0, 1, MAX_SESSION]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    lists,
    lists,
) | st.builds(
    Routed,
    st.sampled_from(EVENTS),
    st.sampled_from([0, MAX_HOPS]),
    st.lists(st.sampled_from([0, 1, -1, 2**63 - 1]), max_size=3).map(tuple),
)


@given(st.lists(st.tuples(st.sampled_from(["receive", "up", "down", "timers", "fail"]), numbers, hostile), max_size=30))
def test_no_message_does_harm(calls: list[tuple[str, int, Message]]) -> None:
    """Whatever comes, nothing raises, what is sent can be sent, and an honest neighbour gets its way in the end."""
    node, port = alone()
    assert isinstance(node, SubscriptionForwarding)
    timers: list[tuple[Time, Hashable]] = []
    for now, (what, other, message) in enumerate(calls):
        if what == "receive":
            node.receive(now, other, CODEC.decode(CODEC.encode(message)))
        elif what == "up":
            node.link_up(now, other)
        elif what == "down":
            node.link_down(now, other)
        elif what == "timers":
            for _, key in timers:
                node.timer(now, key)
        else:
            for sent in list(port.sent.values()):
                if sent.to is not None:
                    node.unreachable(now, sent.to, sent.message)
        timers = port.timers.copy()
        for sent in port.sent.values():
            assert CODEC.decode(CODEC.encode(sent.message)) == sent.message
    node.link_up(100, 9)
    node.receive(100, 9, Routes(8, 1, 0, True, False, False, (S1,)))
    port.clear()
    node.publish(100, Publication(JAZZ))
    assert 9 in [sent.to for sent in port.sent.values()]


@pytest.mark.parametrize(
    "fields",
    [
        {"session": 0},
        {"session": MAX_SESSION + 1},
        {"serial": 0},
        {"serial": -1},
        {"heard": -1},
        {"added": (S1,) * (MAX_FILTERS + 1)},
        {"removed": (S1,) * (MAX_FILTERS + 1)},
    ],
)
def test_what_is_out_of_bounds_is_no_message(fields: dict[str, Any]) -> None:
    message = msgspec.structs.replace(Routes(1, 1, 0, False, False, False), **fields)
    with pytest.raises(FrameError):
        CODEC.decode(CODEC.encode(message))
