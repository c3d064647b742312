"""Geocast alone: the rules at the top of `geocast.py`, on ports that a test moves by hand."""

import heapq
import itertools
import math
import random
from collections.abc import Hashable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.content.context.host import HostView
from roamcast.content.region import Circle, Rectangle, Region
from roamcast.protocols.context.geocast import Geocast, Heard, LocalMinimum, Routed, Settings
from roamcast.protocols.context.presence import Presence
from roamcast.protocols.testing import RecordingPort
from roamcast.units import SECOND

REACH = 200.0
Place = tuple[float, float]


class Parcel(Routed, frozen=True, kw_only=True, tag="parcel"):
    name: str

    @property
    def key(self) -> Hashable:
        return self.name


class Plane:
    """Hosts on a plane, a geocast each; frames take no time and collide with nothing."""

    def __init__(self, places: dict[int, Place], **changed: float) -> None:
        self.places = places
        self.ports = {node: RecordingPort(position=place) for node, place in places.items()}
        self.now = 0
        self.heard: list[tuple[int, Heard]] = []
        self.sent: list[tuple[int, int, Routed]] = []
        self._queue: list[tuple[int, int, int]] = []
        self._timers: dict[tuple[int, int], list[Hashable]] = {}
        self._serial = itertools.count()
        options = Settings(reach=REACH)._replace(**changed)  # type: ignore[arg-type]
        self.casts = {
            node: Geocast(port, random.Random(node), options, lambda now, node=node: self.presence(node))  # type: ignore[misc]
            for node, port in self.ports.items()
        }

    def presence(self, node: int) -> Presence:
        return Presence(HostView(self.ports[node].position))

    def send(self, node: int, region: Region | None, name: str = "a", delay: int = 0) -> None:
        self.casts[node].send(self.now, Parcel(presence=self.presence(node), region=region, name=name), delay)
        self._after(node)

    def _after(self, node: int) -> None:
        """Carries out what a host has asked its port for."""
        port = self.ports[node]
        for at, _ in port.timers:
            heapq.heappush(self._queue, (at, next(self._serial), node))
        for at, key in port.timers:
            self._timers.setdefault((at, node), []).append(key)
        port.timers.clear()
        messages = [message for message in port.messages if isinstance(message, Routed)]
        port.sent.clear()
        for message in messages:
            self.sent.append((self.now, node, message))
            for other, place in self.places.items():
                if other != node and math.dist(place, self.places[node]) <= REACH:
                    self.heard.append((other, self.casts[other].hear(self.now, message)))
                    self._after(other)

    def run(self, until: int = 60 * SECOND) -> None:
        while self._queue and self._queue[0][0] <= until:
            at, _, node = heapq.heappop(self._queue)
            self.now = self.ports[node].now = at
            for key in self._timers.pop((at, node), ()):
                self.casts[node].timer(at, key)
            self._after(node)

    @property
    def inside(self) -> list[int]:
        """Who got it as one of those it is for."""
        return sorted(node for node, heard in self.heard if heard == "inside")

    @property
    def senders(self) -> list[int]:
        return [node for _, node, _ in self.sent]

    @property
    def minima(self) -> list[tuple[int, float]]:
        return [
            (node, fact.distance)
            for node, port in self.ports.items()
            for _, fact in port.facts
            if isinstance(fact, LocalMinimum)
        ]


FAR = Rectangle(900, -50, 1000, 50)


def test_along_a_line_everyone_in_turn_passes_it_on_and_the_region_gets_it() -> None:
    line = Plane({node: (150.0 * node, 0.0) for node in range(8)})
    line.send(0, FAR)
    line.run()
    assert line.senders == [0, 1, 2, 3, 4, 5, 6]
    assert line.inside == [6]
    assert [message.hops for _, _, message in line.sent] == [0, 1, 2, 3, 4, 5, 6]
    assert line.minima == []


def test_the_nearest_to_the_region_goes_first_and_the_others_keep_quiet() -> None:
    fan = Plane({0: (0.0, 0.0), 1: (60.0, 0.0), 2: (110.0, 0.0), 3: (190.0, 0.0), 4: (380.0, 0.0)})
    fan.send(0, Circle(400, 0, 50))
    fan.run()
    assert fan.senders == [0, 3, 4]
    assert fan.ports[1].notes["suppressed"] == fan.ports[2].notes["suppressed"] == 1


def test_who_is_farther_from_the_region_than_the_sender_does_nothing() -> None:
    plane = Plane({0: (0.0, 0.0), 1: (-50.0, 0.0), 2: (150.0, 0.0)})
    plane.send(0, Circle(150, 0, 10))
    plane.run()
    assert plane.senders == [0, 2]
    assert (1, "outside") in plane.heard


def test_inside_the_region_everybody_passes_it_on_once() -> None:
    inside = {node: (float(node), 0.0) for node in range(5)}
    crowd = Plane({**inside, 9: (500.0, 0.0)})
    crowd.send(2, Rectangle(-10, -10, 10, 10))
    crowd.run()
    assert sorted(crowd.senders) == [0, 1, 2, 3, 4]
    assert crowd.inside == [0, 1, 3, 4]


def test_without_a_region_it_is_for_everybody() -> None:
    line = Plane({node: (150.0 * node, 0.0) for node in range(5)})
    line.send(2, None)
    line.run()
    assert line.inside == [0, 1, 3, 4]
    assert sorted(line.senders) == [0, 1, 2, 3, 4]


def test_a_local_minimum_is_repeated_given_up_and_told() -> None:
    gap = Plane({0: (0.0, 0.0), 1: (150.0, 0.0), 2: (600.0, 0.0)}, repeats=2)
    gap.send(0, Circle(600, 0, 50))
    gap.run()
    assert gap.senders == [0, 1, 1, 1]
    assert gap.minima == [(1, 400.0)]
    assert len(gap.casts[1]) == 0
    assert [message.hops for _, node, message in gap.sent if node == 1] == [1, 1, 1]


def test_with_carry_it_gets_across_when_somebody_comes_near() -> None:
    gap = Plane({0: (0.0, 0.0), 2: (600.0, 0.0), 3: (350.0, 900.0)}, carry=20 * SECOND)
    gap.send(0, Circle(600, 0, 250))
    gap.run(5 * SECOND)
    assert gap.inside == []
    gap.places[0] = (250.0, 0.0)
    gap.ports[0].position = gap.places[0]
    gap.places[3] = (400.0, 0.0)
    gap.ports[3].position = gap.places[3]
    gap.run(30 * SECOND)
    assert gap.inside == [2, 3]


def test_without_carry_it_does_not() -> None:
    gap = Plane({0: (0.0, 0.0), 2: (600.0, 0.0)})
    gap.send(0, Circle(600, 0, 250))
    gap.run(5 * SECOND)
    gap.places[0] = gap.ports[0].position = (450.0, 0.0)
    gap.run(30 * SECOND)
    assert gap.inside == []


def test_the_same_message_made_by_two_hosts_travels_once() -> None:
    plane = Plane({0: (0.0, 0.0), 1: (40.0, 0.0), 2: (190.0, 0.0), 3: (380.0, 0.0)})
    plane.send(0, Circle(400, 0, 50), delay=SECOND // 50)
    plane.send(1, Circle(400, 0, 50), delay=SECOND // 100)
    plane.run()
    assert plane.senders == [1, 2, 3]
    assert plane.casts[0].knows("a")
    plane.send(0, Circle(400, 0, 50))
    plane.run(120 * SECOND)
    assert plane.senders == [1, 2, 3]


def test_a_host_that_knows_not_where_it_is_passes_on_only_what_is_for_all() -> None:
    plane = Plane({0: (0.0, 0.0), 1: (100.0, 0.0)})
    plane.ports[1].position = None
    plane.send(0, Circle(120, 0, 50), "near")
    plane.send(0, None, "all")
    plane.run()
    assert [(node, message.key) for _, node, message in plane.sent] == [
        (0, "near"),
        (0, "all"),
        (1, "all"),
        (0, "near"),
    ]


@pytest.mark.parametrize("key", [None, 3, "geocast", ("geocast",), ("geocast", "nothing", 0), ("other", "a", 0)])
def test_a_timer_that_means_nothing_does_nothing(key: object) -> None:
    plane = Plane({0: (0.0, 0.0)})
    plane.send(0, FAR)
    plane.ports[0].sent.clear()
    plane.casts[0].timer(1, key)
    assert not plane.ports[0].sent


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1000), st.floats(0, 1000)), min_size=2, max_size=25, unique=True),
    st.floats(100, 900),
    st.floats(100, 900),
)
def test_nobody_gets_it_twice_or_from_outside_and_the_connected_part_of_the_region_gets_it_whole(
    places: list[Place], x: float, y: float
) -> None:
    plane = Plane(dict(enumerate(places)), repeats=0)
    region = Circle(x, y, 150)
    plane.send(0, region)
    plane.run()
    assert len(plane.inside) == len(set(plane.inside))
    assert all(region.contains(*places[node]) for node in plane.inside)
    assert len(plane.senders) == len(set(plane.senders))
    # If one in the region has it, so has everyone it is connected with inside the region.
    has = {*plane.inside, *([0] if region.contains(*places[0]) else [])}
    for node in has:
        for other, place in enumerate(places):
            if region.contains(*place) and math.dist(place, places[node]) <= REACH:
                assert other in has
