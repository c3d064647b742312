"""Routing on a tree: the paper's Figures 1 and 2 with its node names, the rules one by one, and random trees.

The figures are drawn, and the text gives what is needed of them: Figure 4 has A and G below H, and H below the leader
L; the reconfiguration path of Figure 2 is G, B, D, E, A, H, with the new link D-E in its middle; S1 from F reaches A
first. Of C it is only said that it is not on that path: here it is below B. The tree is then

    L - H - A - E        and G-H is replaced by D-E.
        |    \\
        |     F
        G - B - D
             \\
              C
"""

import heapq
import random
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roamcast.content.covering import covers
from roamcast.content.event import Event, event_id
from roamcast.content.filter import EVERYTHING, NOTHING, Filter
from roamcast.content.subscription import Publication, Subscription
from roamcast.content.text import parse_filter
from roamcast.protocols.api import Node, Time
from roamcast.protocols.codec import Codec, FrameError
from roamcast.protocols.flooding import Data
from roamcast.protocols.local import LocalSubscriptions
from roamcast.protocols.messages import MAX_HOPS, Message
from roamcast.protocols.testing import Delivery, RecordingPort, Sent
from roamcast.protocols.tree.forwarding import (
    MAX_LOST,
    SUMMARY,
    Forwarding,
    MessageForwarding,
    Routing,
    SubscriptionForwarding,
    routing,
)
from roamcast.protocols.tree.forwarding_messages import MAX_FILTERS, MAX_NAMED, MAX_SERIAL, MAX_SESSION, Routed, Routes
from roamcast.units import SECOND

CODEC = Codec((Routed, Routes))
S1 = Filter.where("category", "=", "jazz")
S2 = Filter.where("category", "=", "blues")
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


# --- The paper's figures ----------------------------------------------------------------------------------------------

A, B, C, D, E, F, G, H, L = range(9)
FIGURE_1 = [(L, H), (H, A), (H, G), (A, E), (A, F), (G, B), (B, C), (B, D)]
ON_THE_PATH = {G, B, D, E, A, H}


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


def test_figure_1a() -> None:
    """Subscription S1 of E propagates to the entire tree."""
    network = Network(9, FIGURE_1)
    network.subscribe(E, S1)
    network.run()
    assert network.routes_to(S1) == {A: [E], F: [A], H: [A], L: [H], G: [H], B: [G], C: [B], D: [B]}
    assert len(network.log) == 8, "once over each link"
    assert network.publish(D, JAZZ) == ({(D, B), (B, G), (G, H), (H, A), (A, E)}, {E})
    assert network[E].port.delivered == [Delivery(JAZZ, (1,), 5, "routed")]


def test_figure_1b() -> None:
    """S1 of F goes to A and on towards E only; S2 of C, which is new, everywhere."""
    network = Network(9, FIGURE_1)
    network.subscribe(E, S1)
    network.run()
    network.log.clear()
    network.subscribe(F, S1)
    network.run()
    assert [(sender, to) for sender, to, _ in network.log] == [(F, A), (A, E)]
    network.log.clear()
    network.subscribe(C, S2)
    network.run()
    assert len(network.log) == 8
    assert network.routes_to(S1) == {A: [E, F], E: [A], F: [A], H: [A], L: [H], G: [H], B: [G], C: [B], D: [B]}
    assert network.routes_to(S2) == {B: [C], D: [B], G: [B], H: [G], L: [H], A: [H], E: [A], F: [A]}
    assert network.publish(L, JAZZ) == ({(L, H), (H, A), (A, E), (A, F)}, {E, F})


def reconfigure(network: Network) -> None:
    network.down(G, H)
    network.run()
    network.wait(1)
    network.up(D, E)
    network.wait(4.5)  # past the 5 s of the lost link, not as far as the first check of the new one


def off_the_path(network: Network) -> list[tuple[Node, tuple[Filter, ...], tuple[Filter, ...]]]:
    """What nodes off the reconfiguration path were told."""
    return [entry[1:] for entry in told(network) if entry[1] not in ON_THE_PATH]


def test_figure_2() -> None:
    """Only the nodes on the reconfiguration path change their tables.

    One node beside it hears something. E cannot know that it wanted S2 for C's sake alone, over the link that is lost,
    and tells D; so C learns that its own subscription is wanted elsewhere, and unlearns it when the time is over.
    """
    network = figure_1b(defer=5)
    before = network.routes_to(S1), network.routes_to(S2)
    network.down(G, H)
    network.run()
    assert (network.routes_to(S1), network.routes_to(S2)) == before, "deferred"
    assert network.log == []
    network.up(G, H)
    network.run()
    network.log.clear()

    reconfigure(network)
    after = network.routes_to(S1), network.routes_to(S2)
    assert after == (
        {A: [E, F], E: [A], F: [A], H: [A], L: [H], D: [E], B: [D], G: [B], C: [B]},
        {B: [C], G: [B], D: [B], E: [D], A: [E], F: [A], H: [A], L: [H]},
    )
    changed = {node for node in range(9) if any(b.get(node) != a.get(node) for b, a in zip(before, after, strict=True))}
    assert changed == ON_THE_PATH
    assert off_the_path(network) == [(C, (S2,), ()), (C, (), (S2,))]
    assert network.publish(L, JAZZ) == ({(L, H), (H, A), (A, E), (A, F)}, {E, F})
    assert network.publish(C, msgspec.structs.replace(JAZZ, id=8))[1] == {E, F}


@pytest.mark.parametrize("leaves", [0, 10])
def test_figure_2_without_deferring(leaves: int) -> None:
    """Routes are withdrawn at once, everywhere behind the lost link, and told again when the new one is there."""
    deferring, at_once = figure_1b(leaves, defer=5), figure_1b(leaves, defer=0)
    for network in (deferring, at_once):
        reconfigure(network)
    assert at_once.routes_to(S1) == deferring.routes_to(S1)
    assert at_once.routes_to(S2) == deferring.routes_to(S2)
    # S1 leaves B, C, D (3 messages) and S2 leaves L, A, E, F and each more leaf (4 and more). The link D-E comes up (2
    # lists, 2 answers). Then S1 goes to B, G, C (3), and S2 to A, H, F, L and each more leaf (4 and more).
    assert len(at_once.log) == 18 + 2 * leaves
    # The link (4); S1 to B and G, S2 to A, H (4), and, with S1 to B, to C (1). When the time is over, S1 is withdrawn
    # by G, B, D (3), and S2 by H, A, E, D, B (5).
    assert len(deferring.log) == 17
    heard = off_the_path(at_once)
    for node in (C, F, L, *range(9, 9 + leaves)):
        filter = S1 if node == C else S2
        assert [entry[1:] for entry in heard if entry[0] == node] == [((), (filter,)), ((filter,), ())]


def test_an_event_does_not_go_over_a_lost_link() -> None:
    network = figure_1b(defer=5)
    network.down(G, H)
    assert network.publish(D, JAZZ) == ({(D, B), (B, G)}, set())


# --- Covering and unsubscription --------------------------------------------------------------------------------------

WIDE, NARROW = parse_filter("price < 20"), parse_filter("price < 10")
CHAIN = [(0, 1), (1, 2)]


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


# --- Links that come and go -------------------------------------------------------------------------------------------


def test_a_neighbour_that_comes_back_tells_all_anew() -> None:
    network = Network(3, CHAIN, defer=5)
    network.subscribe(0, S1)
    network.run()
    network.down(0, 1)
    network.unsubscribe(0)
    network.subscribe(0, S2)
    network.run()
    network.log.clear()
    network.wait(1)
    network.up(0, 1)
    network.run()
    assert network[1].routes(0) == [S2]
    assert [entry for entry in told(network) if entry[:2] == (1, 2)] == [(1, 2, (S2,), (S1,))]
    network.wait(30)
    assert (network[1].routes(0), network[2].routes(1)) == ([S2], [S2]), "the first loss is out of date"


def test_a_second_loss_starts_the_time_again() -> None:
    network = Network(2, [(0, 1)], defer=5)
    network.subscribe(0, S1)
    network.run()
    network.down(0, 1)
    network.wait(4)
    network[1].routing.link_up(network.now, 0)  # the other end is not there, and tells nothing
    network[1].routing.link_down(network.now, 0)
    network.wait(4)
    assert network[1].routes(0) == [S1]
    network.wait(1)
    assert network[1].routes(0) == []


def test_doubts_end_though_the_neighbour_that_is_back_says_nothing() -> None:
    network = Network(2, [(0, 1)], defer=5)
    network.subscribe(0, S1)
    network.run()
    network.down(0, 1)
    network[1].routing.link_up(network.now, 0)
    assert network.publish(1, JAZZ)[0] == {(1, 0)}, "the link is up and nothing else is known"
    network.wait(5)
    assert network[1].routes(0) == []


def test_lost_links_are_bounded() -> None:
    most = MAX_LOST + 1
    network = Network(most + 2, [(0, node) for node in range(1, most + 2)], defer=100)
    for node in range(1, most + 2):
        network.subscribe(node, Filter.where("node", "=", node))
    network.run()
    for node in range(1, most + 1):
        network.down(0, node)
    assert [bool(network[0].routes(node)) for node in range(1, most + 2)] == [False] + [True] * most


def test_links_are_told_twice_or_in_vain() -> None:
    network = Network(2, [(0, 1)])
    network.up(0, 1)
    network[0].routing.link_down(0, 1)
    network[0].routing.link_down(0, 1)
    network.run()
    assert network.log == []


def test_changes_of_a_stranger_are_ignored_and_its_events_are_passed_on() -> None:
    """Node 9 takes node 1 for its neighbour, and counts on it: those behind it want the event."""
    network = Network(3, CHAIN)
    for node in (0, 1):
        network.subscribe(node, S1)
    network.run()
    receive = network[1].routing.receive
    receive(0, 9, Routes(5, 1, 0, True, False, False, (S2,)))
    receive(0, 9, Routed(JAZZ, 3))
    network.collect()
    assert list(network.queue) == [(1, 0, CODEC.encode(Routed(JAZZ, 4)))]
    assert network[1].routes(9) == []
    assert network[1].port.delivered == [Delivery(JAZZ, (1,), 4, "routed")]
    receive(0, 2, Routed(JAZZ, 1))
    assert network[1].port.notes == {"stranger": 2, "duplicate": 1}


@dataclass
class Pair:
    """Two nodes in range of each other, whose messages and calls a schedule puts into order."""

    scripts: tuple[tuple[Callable[[Member, Time, Node], None], ...], ...]
    losses: int

    def __post_init__(self) -> None:
        params = Forwarding(defer=5)
        self.members = [Member(node, params) for node in (0, 1)]
        self.members[0].subscribe(0, 1, S1)
        self.members[1].subscribe(0, 1, S2)
        self.left = [list(script) for script in self.scripts]
        self.air: tuple[deque[bytes], deque[bytes]] = (deque(), deque())
        self.timers: list[tuple[Time, int, int, Hashable]] = []
        self._serial = 0

    def choices(self) -> list[tuple[str, int]]:
        able = [("call", node) for node in (0, 1) if self.left[node]]
        able += [("arrive", node) for node in (0, 1) if self.air[node]]
        if self.losses:
            able += [(how, node) for how in ("vanish", "fail", "fail yet arrive") for node in (0, 1) if self.air[node]]
        return able

    def do(self, what: str, node: int, now: Time = 0) -> None:
        """`node` is who is called, or who has sent."""
        member, other = self.members[node], self.members[1 - node]
        if what == "call":
            self.left[node].pop(0)(member, now, 1 - node)
        else:
            self.losses -= what != "arrive"
            message = CODEC.decode(self.air[node].popleft())
            if what in ("arrive", "fail yet arrive"):
                other.routing.receive(now, node, message)
            if what in ("fail", "fail yet arrive"):
                member.routing.unreachable(now, 1 - node, message)
        self.collect()

    def collect(self) -> None:
        for node, member in enumerate(self.members):
            sent, timers = member.drain()
            self.air[node].extend(CODEC.encode(item.message) for item in sent)
            for at, key in timers:
                self._serial += 1
                heapq.heappush(self.timers, (at, self._serial, node, key))

    def wait(self, until: Time) -> None:
        while self.timers and self.timers[0][0] <= until:
            now, _, node, key = heapq.heappop(self.timers)
            self.members[node].routing.timer(now, key)
            self.collect()
            while any(self.air):
                self.do("arrive", 0 if self.air[0] else 1, now)

    def agrees(self) -> bool:
        return all(self.members[node].routes(1 - node) == self.members[1 - node].local.filters for node in (0, 1))


def interleavings(make: Callable[[], Pair]) -> Iterator[Pair]:
    """Every order in which everything can happen, each played to its end."""
    schedule: list[int] = []
    while True:
        pair, widths = make(), []
        for depth in range(1000):
            choices = pair.choices()
            if not choices:
                break
            if depth == len(schedule):
                schedule.append(0)
            widths.append(len(choices))
            pair.do(*choices[schedule[depth]])
        yield pair
        del schedule[len(widths) :]
        while schedule and schedule[-1] + 1 == widths[len(schedule) - 1]:
            schedule.pop()
        if not schedule:
            return
        schedule[-1] += 1


def up(member: Member, now: Time, other: Node) -> None:
    member.routing.link_up(now, other)


def down(member: Member, now: Time, other: Node) -> None:
    member.routing.link_down(now, other)


def more(member: Member, now: Time, other: Node) -> None:
    member.subscribe(now, 2, NARROW)


def fewer(member: Member, now: Time, other: Node) -> None:
    member.unsubscribe(now, 1)


@pytest.mark.parametrize(
    ("scripts", "at_least"),
    [
        (((up,), (up,)), 10),
        (((up, more), (up,)), 100),
        (((up, fewer), (up, more)), 1000),
        (((up, down, up), (up,)), 300),
    ],
    ids=["up-up", "more-up", "fewer-more", "flap-up"],
)
def test_both_ends_agree_whatever_comes_first(scripts: Any, at_least: int) -> None:  # noqa: ANN401
    """Without losses, the messages alone bring it about: no timer is needed."""
    count = 0
    for pair in interleavings(lambda: Pair(scripts, 0)):
        assert pair.agrees()
        count += 1
    assert count >= at_least


@pytest.mark.parametrize("scripts", [((up,), (up,)), ((up, fewer), (up,))], ids=["up-up", "fewer-up"])
def test_both_ends_agree_after_any_loss(scripts: Any) -> None:  # noqa: ANN401
    """One message vanishes, is given up, or is given up though it has arrived."""
    count = 0
    for pair in interleavings(lambda: Pair(scripts, 1)):
        pair.wait(40 * SECOND)
        assert pair.agrees()
        count += 1
    assert count >= 100


def test_what_the_usual_link_costs() -> None:
    """Both lists cross, and each end says once that there is nothing more."""
    network = Network(2)
    network.up(0, 1)
    network.run()
    assert [(a, b, m.full) for a, b, m in network.log if isinstance(m, Routes)] == [
        (0, 1, True),
        (1, 0, True),
        (1, 0, False),
        (0, 1, False),
    ]
    network.log.clear()
    network.wait(29.9)
    assert len(network.log) == 2, "a link on which nothing happens is checked every 10 s, the first time after 20"


# --- Any tree ---------------------------------------------------------------------------------------------------------

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
    network = data.draw(histories(routing="messages"))
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


# --- How events are cast ----------------------------------------------------------------------------------------------


def alone(**parameters: Any) -> tuple[Routing, RecordingPort]:  # noqa: ANN401
    """Node 0 by itself."""
    port = RecordingPort()
    params = msgspec.convert(parameters, Forwarding)
    return routing(0, params, port, random.Random(0), LocalSubscriptions(port, 1024)), port


def test_the_parameters_name_the_routing() -> None:
    assert isinstance(alone()[0], SubscriptionForwarding)
    assert isinstance(alone(routing="messages")[0], MessageForwarding)
    with pytest.raises(msgspec.ValidationError, match="routing"):
        alone(routing="flooding")


def test_unicast_goes_to_each_in_order() -> None:
    node, port = alone(routing="messages")
    for neighbour in (5, 3, 4):
        node.link_up(0, neighbour)
    node.receive(0, 3, Routed(JAZZ, MAX_HOPS))
    assert list(port.sent.values()) == [Sent(0, to, Routed(JAZZ, MAX_HOPS)) for to in (4, 5)]


def test_broadcast_names_those_it_is_for() -> None:
    node, port = alone(routing="messages", cast="broadcast", cast_jitter=0.5)
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
    node, port = alone(routing="messages", cast="broadcast")
    for neighbour in range(1, MAX_NAMED + 3):
        node.link_up(0, neighbour)
    node.publish(0, Publication(JAZZ))
    first, second = port.messages
    assert (first, second) == (
        Routed(JAZZ, 0, tuple(range(1, MAX_NAMED + 1))),
        Routed(JAZZ, 0, (MAX_NAMED + 1, MAX_NAMED + 2)),
    )
    assert [CODEC.decode(CODEC.encode(message)) for message in (first, second)] == [first, second]


# --- Bounds and bad input ---------------------------------------------------------------------------------------------


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
    assert len(msgspec.msgpack.encode(summary)) <= SUMMARY
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
    network.run()
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
    node, port = alone()
    node.link_up(0, 1)
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
        node, port = alone(routing=kind)
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
