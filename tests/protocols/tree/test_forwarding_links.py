"""Subscription forwarding: links that come and go, and two ends that must agree."""

import heapq
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from protocols.tree.network import CHAIN, CODEC, JAZZ, NARROW, S1, S2, Member, Network, down, told, up
from roamcast.content.filter import Filter
from roamcast.protocols.api import Node, Time
from roamcast.protocols.testing import Delivery
from roamcast.protocols.tree.forwarding import (
    MAX_LOST,
    Forwarding,
)
from roamcast.protocols.tree.forwarding_messages import Routed, Routes
from roamcast.units import SECOND


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


def test_where_nobody_subscribes_nothing_is_said() -> None:
    """Not when a link comes up, not to check it; the first to want something tells, and is not answered."""
    network = Network(2)
    network.up(0, 1)
    network.wait(60)
    assert network.log == []
    network.subscribe(0, S1)
    network.run()
    ((a, b, first),) = network.log
    assert isinstance(first, Routes)
    assert (a, b, first.full, first.added) == (0, 1, True, (S1,))
    network.wait(30)
    assert {(a, b) for a, b, _ in network.log} == {(0, 1)}, "only who has something to tell checks that it was heard"
    assert network.publish(1, JAZZ)[1] == {0}


def test_what_the_usual_link_costs() -> None:
    """Both lists cross, and each end says once that there is nothing more."""
    network = Network(2)
    for node in (0, 1):
        network.subscribe(node, S1)
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


def test_what_was_told_before_the_link_came_up_here_is_asked_for() -> None:
    """The one end tells as soon as the link is up on its side; the other, which wants nothing itself, has to ask."""
    network = Network(2)
    network.subscribe(0, S1)
    network.links.add(frozenset((0, 1)))
    network.members[0].routing.link_up(network.now, 1)
    network.run()
    assert network[1].routes(0) == []
    network.members[1].routing.link_up(network.now, 0)
    network.run()
    assert network[1].routes(0) == [S1]
