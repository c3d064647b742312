"""Subscription forwarding: what covering hides, and what comes to light again."""

import random

from protocols.tree.network import CHAIN, NARROW, S1, S2, WIDE, Network, told
from roamcast.content.covering import covers
from roamcast.content.filter import NOTHING
from roamcast.content.subscription import Subscription
from roamcast.content.text import parse_filter
from roamcast.protocols.local import LocalSubscriptions
from roamcast.protocols.testing import RecordingPort
from roamcast.protocols.tree.forwarding import (
    Forwarding,
    SubscriptionForwarding,
)
from roamcast.protocols.tree.forwarding_messages import Routes


def test_what_is_covered_is_not_told_and_comes_to_light_when_the_cover_goes() -> None:
    network = Network(3, CHAIN)
    network.subscribe(0, WIDE)
    network.run()
    assert told(network) == [(0, 1, (WIDE,), ()), (1, 2, (WIDE,), ())]
    network.subscribe(1, NARROW)
    network.run()
    assert told(network) == [(1, 0, (NARROW,), ())], "node 2 was told the wider one"
    network.unsubscribe(0)
    network.run()
    assert told(network) == [(0, 1, (), (WIDE,)), (1, 2, (NARROW,), (WIDE,))]
    assert network[2].routes(1) == [NARROW]
    network.unsubscribe(1)
    network.run()
    assert told(network) == [(1, 0, (), (NARROW,)), (1, 2, (), (NARROW,))]
    assert [member.routes(other) for member in network.members for other in range(3)] == [[]] * 9


def test_a_wider_filter_takes_the_place_of_narrower_ones() -> None:
    network = Network(2, [(0, 1)])
    lower = parse_filter("price < 5")
    for number, filter in enumerate((NARROW, lower, S1, WIDE), start=1):
        network.subscribe(0, filter, number)
    network.run()
    assert told(network) == [(0, 1, (NARROW,), ()), (0, 1, (S1,), ()), (0, 1, (WIDE,), (NARROW,))]
    network.unsubscribe(0, 1)
    network.run()
    assert told(network) == [], "hidden by the widest"
    network.unsubscribe(0, 4)
    network.run()
    assert told(network) == [(0, 1, (lower,), (WIDE,))], "what the first had hidden"


def test_what_comes_to_light_only_to_be_covered_again_is_not_told() -> None:
    network = Network(2, [(0, 1)])
    for number, filter in enumerate((WIDE, parse_filter("price < 5"), NARROW), start=1):
        network.subscribe(0, filter, number)
    network.unsubscribe(0, 1)
    network.run()
    assert told(network) == [(0, 1, (WIDE,), ()), (0, 1, (NARROW,), (WIDE,))]


def test_of_equivalent_filters_one_is_told() -> None:
    network = Network(2, [(0, 1)])
    same = parse_filter("price < 10 or price = 10"), parse_filter("price < 10 or price = 10 or price = 3")
    assert covers(*same)
    assert covers(*reversed(same))
    network.subscribe(0, same[0], 1)
    network.subscribe(0, same[1], 2)
    network.unsubscribe(0, 1)
    network.run()
    assert told(network) == [(0, 1, (same[0],), ()), (0, 1, (same[1],), (same[0],))]


def test_subscriptions_with_one_filter_count() -> None:
    network = Network(2, [(0, 1)])
    network.subscribe(0, S1, 1)
    network.subscribe(0, S1, 2)
    network.unsubscribe(0, 1)
    network.run()
    assert told(network) == [(0, 1, (S1,), ())]
    network.subscribe(0, S2, 2)
    network.run()
    assert told(network) == [(0, 1, (S2,), (S1,))], "a replaced subscription is one message"
    network.unsubscribe(0, 99)
    network.run()
    assert told(network) == []


def test_what_no_event_can_match_is_not_told() -> None:
    network = Network(2, [(0, 1)])
    network.subscribe(0, NOTHING, 1)
    network.subscribe(0, S1, 2)
    network.subscribe(0, NOTHING, 3)
    network.unsubscribe(0, 1)
    network.unsubscribe(0, 3)
    network.unsubscribe(0, 2)
    network.run()
    assert told(network) == [(0, 1, (S1,), ()), (0, 1, (), (S1,))]


def test_nobody_is_told_what_it_asked_for() -> None:
    """Two neighbours want the same: each is told for the other's sake, until one no longer wants it."""
    network = Network(3, CHAIN)
    network.subscribe(0, S1)
    network.run()
    network.subscribe(2, S1)
    network.run()
    assert told(network)[2:] == [(2, 1, (S1,), ()), (1, 0, (S1,), ())]
    network.unsubscribe(0)
    network.run()
    assert told(network) == [(0, 1, (), (S1,)), (1, 2, (), (S1,))]
    assert network.routes_to(S1) == {0: [1], 1: [2]}


def test_a_subscription_before_any_link() -> None:
    port = RecordingPort()
    local = LocalSubscriptions(port, 1024)
    local.add(Subscription(1, S1))
    broker = SubscriptionForwarding(0, Forwarding(), port, random.Random(0), local)
    broker.link_up(0, 1)
    (message,) = port.messages
    assert isinstance(message, Routes)
    assert (message.full, message.added, message.heard) == (True, (S1,), 0)
