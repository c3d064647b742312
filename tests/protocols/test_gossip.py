"""Gossip: the toss, and that it is flooding in everything else."""

import random

import msgspec
import pytest

from roamcast.content.event import Event
from roamcast.content.filter import EVERYTHING
from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.catalogue import find
from roamcast.protocols.flooding import Data
from roamcast.protocols.gossip import Gossip, GossipBroker
from roamcast.protocols.testing import Delivery, Mesh, RecordingPort, Sent
from roamcast.units import SECOND

EVENT = Event("alarm", id=7)


class Scripted(random.Random):
    """Draws what the test says, and no more."""

    def __init__(self, *draws: float) -> None:
        super().__init__(0)
        self.draws = list(draws)

    def random(self) -> float:
        return self.draws.pop(0)


def alone(rng: random.Random, p: float) -> tuple[GossipBroker, RecordingPort]:
    port = RecordingPort()
    broker = GossipBroker(0, Gossip(p=p), port, rng)
    broker.start(0, {})
    broker.subscribe(0, Subscription(1, EVERYTHING))
    return broker, port


def test_a_first_hearing_that_wins_the_toss_is_passed_on_after_a_wait() -> None:
    broker, port = alone(Scripted(0.29, 0.5), p=0.3)
    broker.receive(0, 1, Data(EVENT, 4))
    assert list(port.sent.values()) == [Sent(SECOND // 200, None, Data(EVENT, 5))]
    assert port.delivered == [Delivery(EVENT, (1,), 5, "data")]


def test_one_that_loses_the_toss_is_delivered_all_the_same_and_gets_no_second_toss() -> None:
    broker, port = alone(Scripted(0.3), p=0.3)
    broker.receive(0, 1, Data(EVENT, 4))
    broker.receive(0, 2, Data(EVENT, 1))
    assert port.messages == []
    assert port.delivered == [Delivery(EVENT, (1,), 5, "data")]
    assert port.notes == {"duplicate": 1}


def test_the_publisher_always_sends_and_draws_nothing() -> None:
    broker, port = alone(Scripted(), p=1e-9)
    broker.publish(0, Publication(EVENT))
    broker.receive(0, 1, Data(EVENT, 1))
    assert list(port.sent.values()) == [Sent(0, None, Data(EVENT, 0))]
    assert port.delivered == [Delivery(EVENT, (1,), 0, "local")]


def test_with_p_1_everyone_passes_on() -> None:
    ring = [(node, (node + 1) % 50) for node in range(50)]
    mesh = Mesh(find("gossip"), range(50), ring, {"p": 1})
    mesh[0].publish(0, Publication(EVENT))
    mesh.run(SECOND)
    assert sorted(node for _, node, _ in mesh.log) == list(range(50))


@pytest.mark.parametrize(("p", "least", "most"), [(0.1, 60, 140), (0.5, 430, 570), (0.9, 860, 940)])
def test_about_the_share_p_passes_on(p: float, least: int, most: int) -> None:
    """Of 1000 around a publisher: within four standard deviations of 1000 p."""
    mesh = Mesh(find("gossip"), range(1001), [(0, node) for node in range(1, 1001)], {"p": p})
    mesh[0].publish(0, Publication(EVENT))
    mesh.run(SECOND)
    assert least <= len(mesh.log) - 1 <= most


def test_parameters() -> None:
    assert msgspec.convert({}, Gossip) == Gossip(p=0.5, jitter=0.01, window=4096)
    for wrong in ({"p": 0}, {"p": 1.01}, {"p": float("nan")}, {"window": 0}, {"q": 0.5}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(wrong, Gossip)
