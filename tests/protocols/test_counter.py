"""Counter-based broadcast: what is counted, until when, and that it is flooding in everything else."""

import random

import msgspec
import pytest

from roamcast.content.event import Event
from roamcast.content.filter import EVERYTHING
from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.catalogue import find
from roamcast.protocols.counter import Counter, CounterBroker
from roamcast.protocols.facts import Decision
from roamcast.protocols.flooding import Data
from roamcast.protocols.testing import Delivery, Mesh, RecordingPort, Sent
from roamcast.units import SECOND

EVENT = Event("alarm", id=7)
ENTRY = find("counter")


class Scripted(random.Random):
    """Draws what the test says, and no more."""

    def __init__(self, *draws: float) -> None:
        super().__init__(0)
        self.draws = list(draws)

    def random(self) -> float:
        return self.draws.pop(0)


def waiting(copies: int) -> tuple[CounterBroker, RecordingPort]:
    """A broker that heard an event at 0 and will forward it after half of 0.1 s."""
    port = RecordingPort()
    broker = CounterBroker(0, Counter(copies=copies), port, Scripted(0.5))
    broker.start(0, {})
    broker.subscribe(0, Subscription(1, EVERYTHING))
    broker.receive(0, 1, Data(EVENT, 4))
    return broker, port


def decisions(port: RecordingPort) -> list[str]:
    return [fact.decision for _, fact in port.facts if isinstance(fact, Decision)]


def test_a_first_copy_is_delivered_at_once_and_forwarded_after_a_wait() -> None:
    _, port = waiting(copies=2)
    assert list(port.sent.values()) == [Sent(SECOND // 20, None, Data(EVENT, 5))]
    assert port.delivered == [Delivery(EVENT, (1,), 5, "data")]
    assert decisions(port) == ["forwarded"]


@pytest.mark.parametrize("copies", [2, 3, 4])
def test_the_first_copy_counts_and_the_last_one_needed_keeps_it_silent(copies: int) -> None:
    broker, port = waiting(copies)
    for heard in range(2, copies):
        broker.receive(heard, heard, Data(EVENT, 4))
        assert len(port.messages) == 1, "one copy fewer than it takes"
    broker.receive(SECOND // 20 - 1, copies, Data(EVENT, 9))
    assert port.messages == []
    assert decisions(port) == ["forwarded", "suppressed"]
    assert port.notes == {"duplicate": copies - 1}
    assert len(port.delivered) == 1


def test_copies_heard_when_it_has_left_change_nothing() -> None:
    broker, port = waiting(copies=2)
    for now in (SECOND // 20, SECOND):
        broker.receive(now, 2, Data(EVENT, 4))
    assert len(port.messages) == 1
    assert decisions(port) == ["forwarded"]


def test_each_event_has_a_count_of_its_own() -> None:
    port = RecordingPort()
    broker = CounterBroker(0, Counter(copies=3), port, random.Random(1))
    broker.start(0, {})
    for id in (1, 2, 1, 2, 2):
        broker.receive(0, 1, Data(Event("alarm", id=id), 0))
    assert [message.event.id for message in port.messages if isinstance(message, Data)] == [1]


def test_the_publisher_sends_at_once_and_its_echoes_stop_nothing() -> None:
    port = RecordingPort()
    broker = CounterBroker(0, Counter(copies=2), port, Scripted())
    broker.start(0, {})
    broker.publish(0, Publication(EVENT))
    for neighbour in (1, 2, 3):
        broker.receive(0, neighbour, Data(EVENT, 1))
    assert list(port.sent.values()) == [Sent(0, None, Data(EVENT, 0))]


def test_on_a_line_everyone_forwards_since_nobody_hears_two_copies_before_it_sends() -> None:
    mesh = Mesh(ENTRY, range(5), [(0, 1), (1, 2), (2, 3), (3, 4)], {"copies": 2})
    mesh[0].publish(0, Publication(EVENT))
    mesh.run(SECOND)
    assert [node for _, node, _ in mesh.log] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("copies", [2, 3, 5])
def test_where_all_hear_each_other_as_many_forward_as_it_takes_to_silence_the_rest(copies: int) -> None:
    """Everyone has the publisher's copy: one fewer than `copies` others send before the rest has heard enough."""
    nodes = range(30)
    mesh = Mesh(ENTRY, nodes, [(one, other) for one in nodes for other in nodes if one < other], {"copies": copies})
    for node in nodes:
        mesh[node].subscribe(0, Subscription(1, EVERYTHING))
    mesh[0].publish(0, Publication(EVENT))
    mesh.run(SECOND)
    assert len(mesh.log) == copies
    assert all(len(port.delivered) == 1 for port in mesh.ports.values())


def test_what_others_can_fill_is_bounded() -> None:
    broker = CounterBroker(0, Counter(window=10), RecordingPort(), random.Random(1))
    broker.start(0, {})
    for id in range(100):
        broker.receive(0, 1, Data(Event("alarm", id=id), 0))
    assert broker.tables()["waiting"] == broker.tables()["seen"] == 10


def test_parameters() -> None:
    assert msgspec.convert({}, Counter) == Counter(copies=3, jitter=0.1, window=4096)
    for wrong in ({"copies": 1}, {"copies": 2.5}, {"jitter": -1}, {"window": 0}, {"p": 0.5}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(wrong, Counter)
