"""The mesh and the recording port, on which the tests of all brokers stand."""

from collections.abc import Hashable, Mapping
from typing import Any

import pytest

from roamcast.content.event import Event
from roamcast.content.subscription import Publication
from roamcast.protocols.api import Broker, Node, Time
from roamcast.protocols.entry import Entry
from roamcast.protocols.flooding import Data, Flooding
from roamcast.protocols.messages import Message
from roamcast.protocols.testing import Mesh, RecordingPort, Sent


class Diary(Broker[Flooding]):
    """Does nothing by itself, and writes down what happens to it."""

    def __init__(self, *args: Any) -> None:  # noqa: ANN401  # a broker's
        super().__init__(*args)
        self.pages: list[tuple[Any, ...]] = []

    def start(self, now: Time, kept: Mapping[str, bytes]) -> None:
        self.pages.append((now, "start", dict(kept)))

    def publish(self, now: Time, publication: Publication) -> None:
        self.pages.append((now, "publish"))

    def receive(self, now: Time, sender: Node, message: Message) -> None:
        assert isinstance(message, Data)
        self.pages.append((now, sender, message.hops))

    def unreachable(self, now: Time, to: Node, message: Message) -> None:
        assert isinstance(message, Data)
        self.pages.append((now, "unreachable", to, message.hops))

    def timer(self, now: Time, key: Hashable) -> None:
        self.pages.append((now, "timer", key))


ENTRY = Entry("diary", "for tests of tests", Flooding, Diary, (Data,))


def data(number: int) -> Data:
    return Data(Event("e"), number)


def line() -> Mesh:
    """0 - 1 - 2."""
    return Mesh(ENTRY, (0, 1, 2), [(0, 1), (1, 2)])


def diary(mesh: Mesh, node: Node) -> list[tuple[Any, ...]]:
    """What happened to a node after it had started."""
    broker = mesh[node]
    assert isinstance(broker, Diary)
    return broker.pages[1:]


def test_a_broadcast_reaches_neighbours_both_ways_and_nobody_else() -> None:
    mesh = line()
    mesh.ports[0].broadcast(data(1))
    mesh.ports[1].broadcast(data(2))
    mesh.run(until=10)
    assert [diary(mesh, node) for node in range(3)] == [[(0, 1, 2)], [(0, 0, 1)], [(0, 1, 2)]]
    assert mesh.log == [(0, 0, data(1)), (0, 1, data(2))]


def test_links_come_and_go() -> None:
    mesh = line()
    mesh.cut(1, 0)
    mesh.link(0, 2)
    mesh.ports[0].broadcast(data(1))
    mesh.run(until=10)
    assert (diary(mesh, 1), diary(mesh, 2)) == ([], [(0, 0, 1)])


def test_who_hears_is_decided_when_the_delay_has_elapsed() -> None:
    mesh = line()
    mesh.ports[0].broadcast(data(1), delay=5)
    mesh.run(until=4)
    mesh.cut(0, 1)
    mesh.run(until=5)
    assert diary(mesh, 1) == []
    assert mesh.log == [(5, 0, data(1))]


def test_unicast_reaches_one_or_is_given_up() -> None:
    mesh = line()
    mesh.ports[1].unicast(2, data(1))
    mesh.ports[0].unicast(2, data(2))
    mesh.ports[0].unicast(77, data(3))
    mesh.run(until=0)
    assert diary(mesh, 2) == [(0, 1, 1)]
    assert diary(mesh, 0) == [(0, "unreachable", 2, 2), (0, "unreachable", 77, 3)]


def test_delays_and_timers_come_in_the_order_of_time_then_of_asking() -> None:
    mesh = line()
    mesh.run(until=100)
    mesh.ports[0].broadcast(data(1), delay=20)
    mesh.ports[0].broadcast(data(2), delay=10)
    mesh.ports[1].set_timer(110, "same time, asked later")
    mesh.ports[1].set_timer(5, "long past")
    mesh.run(until=119)
    expected = [(100, "timer", "long past"), (110, 0, 2), (110, "timer", "same time, asked later")]
    assert diary(mesh, 1) == expected
    mesh.run(until=120)
    assert diary(mesh, 1) == [*expected, (120, 0, 1)]
    assert mesh.now == 120


def test_a_message_can_be_withdrawn_until_its_delay_has_elapsed() -> None:
    mesh = line()
    port = mesh.ports[0]
    early, late = port.broadcast(data(1), delay=10), port.broadcast(data(2), delay=5)
    mesh.run(until=5)
    port.withdraw(early)
    port.withdraw(late)
    port.withdraw(999)
    mesh.run(until=20)
    assert diary(mesh, 1) == [(5, 0, 2)]


def test_a_restart_leaves_what_was_kept_and_nothing_that_was_planned() -> None:
    mesh = line()
    mesh.ports[1].keep("a", b"1")
    mesh.ports[1].keep("b", b"2")
    mesh.ports[1].forget("a")
    mesh.ports[1].forget("c")
    mesh.ports[1].broadcast(data(1), delay=10)
    mesh.ports[1].set_timer(10, "gone")
    mesh.ports[0].broadcast(data(2), delay=10)
    former = mesh[1]
    mesh.run(until=3)
    mesh.restart(1)
    mesh.run(until=20)
    reborn = mesh[1]
    assert isinstance(reborn, Diary)
    assert reborn is not former
    assert reborn.pages == [(3, "start", {"b": b"2"}), (10, 0, 2)]
    assert mesh.log == [(10, 0, data(2))]


def test_messages_pass_through_the_codec() -> None:
    class Unlisted(Message, frozen=True, tag="unlisted"):
        pass

    mesh = line()
    mesh.ports[0].broadcast(Unlisted())
    with pytest.raises(Exception, match="not a message"):
        mesh.run(until=0)


def test_parameters_are_decoded() -> None:
    assert Mesh(ENTRY, (0,), parameters={"window": 3})[0].params == Flooding(window=3)
    with pytest.raises(ValueError, match="window"):
        Mesh(ENTRY, (0,), parameters={"window": 0})


def test_brokers_draw_from_streams_of_their_own_that_the_seed_gives() -> None:
    def draws(seed: int) -> list[float]:
        return [broker.rng.random() for broker in Mesh(ENTRY, range(3), seed=seed).brokers.values()]

    assert draws(1) == draws(1)
    assert len({*draws(1), *draws(2)}) == 6


def test_a_port_alone_records_and_forgets() -> None:
    port = RecordingPort(now=100)
    first = port.broadcast(data(1))
    second = port.unicast(3, data(2), delay=7)
    port.set_timer(120, "later")
    port.note("duplicate")
    port.keep("k", b"v")
    assert port.sent == {first: Sent(100, None, data(1)), second: Sent(107, 3, data(2))}
    port.withdraw(first)
    port.withdraw(second)
    assert port.messages == [data(1)]
    assert (port.timers, port.notes) == ([(120, "later")], {"duplicate": 1})
    port.clear()
    assert (port.messages, port.timers, port.notes, port.kept) == ([], [], {}, {"k": b"v"})
