"""Subscription forwarding on any tree, with any history."""

from collections.abc import Iterator
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from protocols.tree.network import CODEC, EVENTS, FILTERS, Network, down, figure_1b, reconfigure, up
from roamcast.content.covering import covers
from roamcast.content.event import Event, event_id
from roamcast.protocols.api import Node


def behind(network: Network, via: Node, node: Node) -> set[Node]:
    """The nodes that `via` reaches through its neighbour `node`, that one included."""
    reached = {node}
    for link in network.links:
        if node in link:
            (other,) = link - {node}
            if other != via:
                reached |= behind(network, node, other)
    return reached


def expected(network: Network, publisher: Node, event: Event) -> tuple[set[tuple[Node, Node]], set[Node]]:
    """The obvious model: who has a filter that matches; a link is on the way if such a node is behind it."""
    wanting = {
        node
        for node, member in enumerate(network.members)
        if any(filter.matches(event) for filter in member.local.filters)
    }
    hops = {
        (near, far)
        for link in network.links
        for near, far in (tuple(link), tuple(link)[::-1])
        if publisher not in behind(network, near, far) and wanting & behind(network, near, far)
    }
    return hops, wanting


@st.composite
def histories(draw: st.DrawFn, /, **parameters: Any) -> Network:  # noqa: ANN401
    """A tree with all that may have happened to it, before it comes to rest."""
    size = draw(st.integers(2, 7))
    links = [(draw(st.integers(0, node - 1)), node) for node in range(1, size)]
    network = Network(size, links, **parameters)
    nodes = st.integers(0, size - 1)
    for _ in range(draw(st.integers(1, 12))):
        what = draw(st.sampled_from(["subscribe", "subscribe", "unsubscribe", "swap", "lose", "wait"]))
        if what == "subscribe":
            network.subscribe(draw(nodes), draw(st.sampled_from(FILTERS)), draw(st.integers(1, 3)))
        elif what == "unsubscribe":
            network.unsubscribe(draw(nodes), draw(st.integers(1, 3)))
        elif what == "swap":
            swap(draw, network)
        elif what == "lose" and network.queue:
            network.step(lost=True)
        elif what == "wait":
            network.wait(draw(st.sampled_from([0.5, 3.0, 12.0])))
        some(draw, network)
    return network


def some(draw: st.DrawFn, network: Network) -> None:
    """Lets a few messages arrive."""
    for _ in range(min(draw(st.integers(0, 6)), len(network.queue))):
        network.step()


def swap(draw: st.DrawFn, network: Network) -> None:
    """Replaces a link by one that connects the halves again, perhaps itself; the ends learn of it one by one."""
    old = draw(st.sampled_from(sorted(tuple(sorted(link)) for link in network.links)))
    halves = [sorted(behind(network, old[1 - side], old[side])) for side in (0, 1)]
    new = tuple(draw(st.sampled_from(half)) for half in halves)
    network.links.remove(frozenset(old))
    steps = [(down, old[0], old[1]), (down, old[1], old[0]), (up, new[0], new[1]), (up, new[1], new[0])]
    if set(new) != set(old):  # an end of the new link may be told before one of the old
        steps = draw(st.permutations(steps))
    for change, node, other in steps:
        if change is up:
            network.links.add(frozenset(new))
        change(network[node], network.now, other)
        network.collect()
        some(draw, network)


def publish_everything(network: Network) -> Iterator[tuple[Node, Event]]:
    for number, event in enumerate(EVENTS, start=1):
        for node in range(len(network.members)):
            yield node, msgspec.structs.replace(event, id=event_id(node, number))


@given(st.data(), st.sampled_from([0.0, 5.0]))
def test_events_reach_those_who_want_them_by_the_way_to_them(data: st.DataObject, defer: float) -> None:
    network = data.draw(histories(defer=defer))
    network.wait(60)
    for node, event in publish_everything(network):
        assert network.publish(node, event) == expected(network, node, event)
    for link in network.links:
        for near, far in (tuple(link), tuple(link)[::-1]):
            wanted = network[near].routes(far)
            assert not any(covers(a, b) for a in wanted for b in wanted if a is not b), "none is superfluous"


@given(st.data())
def test_multicast_reaches_every_node_once(data: st.DataObject) -> None:
    network = data.draw(histories(by="messages"))
    for node, event in publish_everything(network):
        hops, got = network.publish(node, event)
        assert got == expected(network, node, event)[1]
        away = {(a, b) for link in network.links for a, b in (tuple(link), tuple(link)[::-1])}
        assert hops == {(near, far) for near, far in away if node not in behind(network, near, far)}


def test_the_same_history_gives_the_same_bytes() -> None:
    def frames() -> list[tuple[Node, Node, bytes]]:
        network = figure_1b(defer=5)
        reconfigure(network)
        return [(sender, to, CODEC.encode(message)) for sender, to, message in network.log]

    assert frames() == frames()
