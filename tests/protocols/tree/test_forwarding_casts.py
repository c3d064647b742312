"""How events are sent on a tree: to each neighbour, or to all in one broadcast."""

import msgspec
import pytest

from protocols.tree.network import CODEC, JAZZ, alone
from roamcast.content.subscription import Publication
from roamcast.protocols.messages import MAX_HOPS
from roamcast.protocols.testing import Sent
from roamcast.protocols.tree.forwarding import (
    MessageForwarding,
    SubscriptionForwarding,
)
from roamcast.protocols.tree.forwarding_messages import MAX_NAMED, Routed
from roamcast.units import SECOND


def test_the_parameters_name_the_routing() -> None:
    assert isinstance(alone()[0], SubscriptionForwarding)
    assert isinstance(alone(by="messages")[0], MessageForwarding)
    with pytest.raises(msgspec.ValidationError, match="by"):
        alone(by="flooding")


def test_unicast_goes_to_each_in_order() -> None:
    node, port = alone(by="messages")
    for neighbour in (5, 3, 4):
        node.link_up(0, neighbour)
    node.receive(0, 3, Routed(JAZZ, MAX_HOPS))
    assert list(port.sent.values()) == [Sent(0, to, Routed(JAZZ, MAX_HOPS)) for to in (4, 5)]


def test_broadcast_names_those_it_is_for() -> None:
    node, port = alone(by="messages", cast="broadcast", cast_jitter=0.5)
    for neighbour in (5, 3, 4):
        node.link_up(0, neighbour)
    node.publish(0, Publication(JAZZ))
    assert list(port.sent.values()) == [Sent(0, None, Routed(JAZZ, 0, (3, 4, 5)))], "the publisher does not wait"
    port.clear()
    other = msgspec.structs.replace(JAZZ, id=8)
    node.receive(0, 3, Routed(other, 0, (1, 2)))
    assert (port.sent, port.notes) == ({}, {}), "for others"
    node.receive(0, 3, Routed(other, 0, (1, 0)))
    (sent,) = port.sent.values()
    assert (sent.to, sent.message) == (None, Routed(other, 1, (4, 5)))
    assert 0 < sent.at <= SECOND // 2
    port.clear()
    node.link_down(0, 4)
    node.link_down(0, 5)
    node.receive(0, 3, Routed(msgspec.structs.replace(JAZZ, id=9), 0, (0,)))
    assert port.sent == {}, "nobody is left"


def test_a_broadcast_for_very_many_is_several() -> None:
    node, port = alone(by="messages", cast="broadcast")
    for neighbour in range(1, MAX_NAMED + 3):
        node.link_up(0, neighbour)
    node.publish(0, Publication(JAZZ))
    first, second = port.messages
    assert (first, second) == (
        Routed(JAZZ, 0, tuple(range(1, MAX_NAMED + 1))),
        Routed(JAZZ, 0, (MAX_NAMED + 1, MAX_NAMED + 2)),
    )
    assert [CODEC.decode(CODEC.encode(message)) for message in (first, second)] == [first, second]
