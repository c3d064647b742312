"""What somebody with the key can say, made from the types of the messages: no broker raises, and none takes long."""

import random
from time import process_time

import pytest

from protocols.strangers import SETTINGS, throw
from roamcast.content.filter import Constraint, Filter, Operator
from roamcast.content.subscription import Subscription
from roamcast.content.widening import MAX_IN_FRAME
from roamcast.protocols.catalogue import CATALOGUE
from roamcast.protocols.testing import RecordingPort
from roamcast.protocols.tree.broker import TreeBroker
from roamcast.protocols.tree.forwarding_messages import Routes

BUDGET = 0.2
"""Seconds of CPU for one call, on a machine that is busy with other things. Some took hours."""


def texts(count: int, seed: int = 3) -> Filter:
    rng = random.Random(seed)
    return Filter((tuple(Constraint("p", Operator.CONTAINS, "".join(rng.choices("ab", k=12))) for _ in range(count)),))


@pytest.mark.parametrize("name", CATALOGUE)
def test_valid_messages_with_extreme_contents(name: str) -> None:
    outcome = throw(CATALOGUE[name], random.Random(7), 400)
    assert (outcome.inputs, outcome.messages) == (400, 43)
    assert outcome.slowest < BUDGET, outcome.slowest_payload.hex()


def test_routes_that_take_long_to_summarise() -> None:
    port = RecordingPort()
    entry = CATALOGUE["coman"]
    broker = entry.broker(5, entry.parameters(), port, random.Random(1))
    assert isinstance(broker, TreeBroker)
    broker.start(0, {})
    broker.routing.link_up(0, 1)
    # More than is kept of one neighbour, so that a summary has to stand for them; none covers another.
    for serial in range(1, 6):
        added = tuple(texts(MAX_IN_FRAME, 10 * serial + seed) for seed in range(2))
        message = entry.codec().decode(
            entry.codec().sendable(Routes(1, serial, 0, full=serial == 1, more=False, ask=False, added=added))
        )
        started = process_time()
        broker.receive(1, 1, message)
        assert process_time() - started < BUDGET
    assert port.notes["summarised"] == 1


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_subscription_that_takes_long_to_summarise(name: str) -> None:
    port = RecordingPort(position=(1.0, 1.0))
    entry = CATALOGUE[name]
    broker = entry.broker(5, entry.parameters(), port, random.Random(1))
    broker.start(0, {})
    started = process_time()
    broker.subscribe(0, Subscription(1, texts(200)))
    for at, key in list(port.timers)[:20]:
        port.now = at
        broker.timer(at, key)
    assert process_time() - started < BUDGET


@pytest.mark.parametrize("name", SETTINGS)
def test_other_settings_lead_messages_elsewhere(name: str) -> None:
    for settings in SETTINGS[name]:
        outcome = throw(CATALOGUE[name], random.Random(8), 60, settings)
        assert outcome.slowest < BUDGET, outcome.slowest_payload.hex()
