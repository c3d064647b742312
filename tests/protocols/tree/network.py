"""Brokers' routing on a tree that the test draws: the harness of the tests of forwarding."""

import heapq
import random
from collections import deque
from collections.abc import Hashable, Iterable
from typing import Any

import msgspec

from roamcast.content.event import Event
from roamcast.content.filter import EVERYTHING, NOTHING, Filter
from roamcast.content.subscription import Publication, Subscription
from roamcast.content.text import parse_filter
from roamcast.protocols.api import Node, Time
from roamcast.protocols.codec import Codec
from roamcast.protocols.local import LocalSubscriptions
from roamcast.protocols.messages import Message
from roamcast.protocols.testing import RecordingPort, Sent
from roamcast.protocols.tree.forwarding import (
    Forwarding,
    Routing,
    SubscriptionForwarding,
    routing,
)
from roamcast.protocols.tree.forwarding_messages import Routed, Routes
from roamcast.units import SECOND

CODEC = Codec((Routed, Routes))
S1 = Filter.where("category", "=", "jazz")
S2 = Filter.where("category", "=", "blues")
WIDE, NARROW = parse_filter("price < 20"), parse_filter("price < 10")
JAZZ = Event.of("CD", {"category": "jazz"}, id=7)


class Member:
    """A node of a network: what a broker has beside its tree."""

    def __init__(self, node: Node, params: Forwarding) -> None:
        self.port = RecordingPort()
        self.local = LocalSubscriptions(self.port, 1024)
        self.routing: Routing = routing(node, params, self.port, random.Random(node), self.local)

    def subscribe(self, now: Time, number: int, filter: Filter) -> None:
        subscription = Subscription(number, filter)
        self.local.add(subscription)
        self.routing.subscribe(now, subscription)

    def unsubscribe(self, now: Time, number: int) -> None:
        self.local.remove(number)
        self.routing.unsubscribe(now, number)

    def routes(self, neighbour: Node) -> list[Filter]:
        assert isinstance(self.routing, SubscriptionForwarding)
        return self.routing.routes(neighbour)

    def drain(self) -> tuple[list[Sent], list[tuple[Time, Hashable]]]:
        sent, timers = list(self.port.sent.values()), self.port.timers.copy()
        self.port.sent.clear()
        self.port.timers.clear()
        return sent, timers


class Network:
    """Nodes and a tree that the test changes. Messages go in order, through the codec, over links that exist."""

    def __init__(self, nodes: int, links: Iterable[tuple[Node, Node]] = (), **parameters: Any) -> None:  # noqa: ANN401
        self.now: Time = 0
        params = msgspec.convert(parameters, Forwarding)
        self.members = [Member(node, params) for node in range(nodes)]
        self.links: set[frozenset[Node]] = set()
        self.queue: deque[tuple[Node, Node, bytes]] = deque()
        self.log: list[tuple[Node, Node, Message]] = []
        self._timers: list[tuple[Time, int, Node, Hashable]] = []
        self._serial = 0
        for a, b in links:
            self.up(a, b)
        self.run()
        self.log.clear()

    def __getitem__(self, node: Node) -> Member:
        return self.members[node]

    def collect(self) -> None:
        """Takes what the ports were told into the queues."""
        for node, member in enumerate(self.members):
            sent, timers = member.drain()
            for item in sent:
                assert item.to is not None
                self.queue.append((node, item.to, CODEC.encode(item.message)))
            for at, key in timers:
                self._serial += 1
                heapq.heappush(self._timers, (at, self._serial, node, key))

    def up(self, a: Node, b: Node) -> None:
        self.links.add(frozenset((a, b)))
        for node, other in ((a, b), (b, a)):
            self[node].routing.link_up(self.now, other)
        self.collect()

    def down(self, a: Node, b: Node) -> None:
        self.links.discard(frozenset((a, b)))
        for node, other in ((a, b), (b, a)):
            self[node].routing.link_down(self.now, other)
        self.collect()

    def subscribe(self, node: Node, filter: Filter, number: int = 1) -> None:
        self[node].subscribe(self.now, number, filter)
        self.collect()

    def unsubscribe(self, node: Node, number: int = 1) -> None:
        self[node].unsubscribe(self.now, number)
        self.collect()

    def step(self, *, lost: bool = False) -> None:
        """Lets the first message in the queue arrive, or get lost without a word."""
        sender, to, frame = self.queue.popleft()
        message = CODEC.decode(frame)
        if lost:
            return
        self.log.append((sender, to, message))
        if frozenset((sender, to)) in self.links:
            self[to].routing.receive(self.now, sender, message)
        else:
            self[sender].routing.unreachable(self.now, to, message)
        self.collect()

    def run(self) -> None:
        self.collect()
        while self.queue:
            self.step()

    def wait(self, duration: float) -> None:
        until = self.now + round(duration * SECOND)
        self.run()
        while self._timers and self._timers[0][0] <= until:
            at, _, node, key = heapq.heappop(self._timers)
            self.now = max(self.now, at)
            self[node].routing.timer(self.now, key)
            self.run()
        self.now = until

    def publish(self, node: Node, event: Event) -> tuple[set[tuple[Node, Node]], set[Node]]:
        """The links that an event travels, and the nodes that it is delivered to; nothing may happen twice."""
        before = [len(member.port.delivered) for member in self.members]
        self.log.clear()
        self[node].routing.publish(self.now, Publication(event))
        self.run()
        hops = [(sender, to) for sender, to, message in self.log if isinstance(message, Routed)]
        assert len(set(hops)) == len(hops)
        got = [
            node
            for node, (member, count) in enumerate(zip(self.members, before, strict=True))
            for _ in member.port.delivered[count:]
        ]
        assert len(set(got)) == len(got)
        return set(hops), set(got)

    def routes_to(self, filter: Filter) -> dict[Node, list[Node]]:
        """The arrows of the paper's figures: by node, the neighbours that a message goes to."""
        every = range(len(self.members))
        arrows = {node: [other for other in every if filter in self[node].routes(other)] for node in every}
        return {node: others for node, others in arrows.items() if others}


def told(network: Network) -> list[tuple[Node, Node, tuple[Filter, ...], tuple[Filter, ...]]]:
    """What went over the links since the last time."""
    log = [(a, b, message.added, message.removed) for a, b, message in network.log if isinstance(message, Routes)]
    network.log.clear()
    return log


A, B, C, D, E, F, G, H, L = range(9)
FIGURE_1 = [(L, H), (H, A), (H, G), (A, E), (A, F), (G, B), (B, C), (B, D)]
CHAIN = [(0, 1), (1, 2)]
FILTERS = [
    parse_filter(text)
    for text in (
        "p < 5",
        "p < 10",
        "p = 3",
        "p >= 7",
        'c = "a"',
        'c = "a" and p < 5',
        "p < 5 or p >= 7",
        "p <= 3",
        "p < 3 or p = 3",
    )
] + [EVERYTHING, NOTHING]
EVENTS = [Event.of("e", {"p": p, "c": c}) for p in (3, 6, 8) for c in "ab"] + [Event.of("f")]


def figure_1b(leaves: int = 0, **parameters: float) -> Network:
    """The figure, perhaps with more leaves below A."""
    network = Network(9 + leaves, [*FIGURE_1, *((A, 9 + leaf) for leaf in range(leaves))], **parameters)
    network.subscribe(E, S1)
    network.run()
    network.subscribe(F, S1)
    network.run()
    network.subscribe(C, S2)
    network.run()
    network.log.clear()
    return network


def reconfigure(network: Network) -> None:
    network.down(G, H)
    network.run()
    network.wait(1)
    network.up(D, E)
    network.wait(4.5)  # past the 5 s of the lost link, not as far as the first check of the new one


def up(member: Member, now: Time, other: Node) -> None:
    member.routing.link_up(now, other)


def down(member: Member, now: Time, other: Node) -> None:
    member.routing.link_down(now, other)


def alone(**parameters: Any) -> tuple[Routing, RecordingPort]:  # noqa: ANN401
    """Node 0 by itself."""
    port = RecordingPort()
    params = msgspec.convert(parameters, Forwarding)
    return routing(0, params, port, random.Random(0), LocalSubscriptions(port, 1024)), port
