"""Flooding, followed step by step."""

import random

import msgspec
import pytest

from roamcast.content.event import Event
from roamcast.content.filter import EVERYTHING
from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.catalogue import find
from roamcast.protocols.flooding import Data, Flooding, FloodingBroker
from roamcast.protocols.testing import Mesh, RecordingPort
from roamcast.units import SECOND

ENTRY = find("flooding")
EVENT = Event("alarm", id=7)


def alone(**parameters: float) -> tuple[FloodingBroker, RecordingPort]:
    port = RecordingPort()
    broker = FloodingBroker(0, msgspec.convert(parameters, Flooding), port, random.Random(1))
    broker.start(0, {})
    return broker, port


def test_along_a_line_everyone_sends_once_and_hears_what_comes_back() -> None:
    mesh = Mesh(ENTRY, range(4), [(0, 1), (1, 2), (2, 3)])
    for node in (0, 3):
        mesh[node].subscribe(0, Subscription(1, EVERYTHING))
    mesh[0].publish(0, Publication(EVENT))
    mesh.run(SECOND)
    assert [(node, message) for _, node, message in mesh.log] == [(hops, Data(EVENT, hops)) for hops in range(4)]
    assert [(got.hops, got.via) for got in mesh.ports[0].delivered] == [(0, "local")]
    assert [(got.hops, got.via) for got in mesh.ports[3].delivered] == [(3, "data")]
    assert [port.notes["duplicate"] for port in mesh.ports.values()] == [1, 1, 1, 0]


def test_a_publisher_sends_at_once_and_others_after_a_wait_of_at_most_the_jitter() -> None:
    broker, port = alone(jitter=0.5)
    broker.publish(0, Publication(EVENT))
    assert [sent.at for sent in port.sent.values()] == [0]
    port.clear()
    for id in range(100, 300):
        broker.receive(0, 1, Data(Event("alarm", id=id), 0))
    waits = [sent.at for sent in port.sent.values()]
    assert len(waits) == len(set(waits)) == 200
    assert 0 <= min(waits) < SECOND // 20
    assert 9 * SECOND // 20 < max(waits) <= SECOND // 2


def test_an_event_is_new_again_when_as_many_others_as_the_window_holds_have_come() -> None:
    broker, port = alone(window=2)
    for id in (1, 2, 1, 3, 1):
        broker.receive(0, 1, Data(Event("alarm", id=id), 0))
    assert [message.event.id for message in port.messages if isinstance(message, Data)] == [1, 2, 3, 1]
    assert port.notes == {"duplicate": 1}


@pytest.mark.parametrize("claimed", [2**31 - 1, 2**63 - 1, 2**64 - 1])
def test_hops_that_a_stranger_made_up_can_still_be_sent(claimed: int) -> None:
    broker, port = alone()
    broker.receive(0, 1, Data(EVENT, claimed))
    codec = ENTRY.codec()
    (message,) = port.messages
    assert codec.decode(codec.encode(message)) == message


@pytest.mark.parametrize(
    "parameters", [{"jitter": -0.1}, {"jitter": float("inf")}, {"jitter": float("nan")}, {"window": 0}, {"wait": 1}]
)
def test_parameters_that_make_no_sense_are_refused(parameters: dict[str, float]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(parameters, Flooding)
