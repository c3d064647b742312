"""A subscription gets an event once, from every protocol that holds events, however many it holds and whatever ends."""

import random
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.content.event import Event, event_id
from roamcast.content.filter import EVERYTHING, Filter
from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.api import Broker
from roamcast.protocols.context import broker as context
from roamcast.protocols.entry import Entry
from roamcast.protocols.opportunistic import broker as opportunistic
from roamcast.protocols.testing import Delivery, Mesh, RecordingPort
from roamcast.units import SECOND

ODD = Filter.where("odd", "=", True)


def publication(number: int, life: int | None = None, node: int = 0) -> Publication:
    return Publication(Event.of("n", {"odd": number % 2 == 1}, id=event_id(node, number)), life)


def twice(delivered: list[Delivery]) -> list[tuple[int, int]]:
    """The events and subscriptions of all deliveries after the first."""
    pairs = Counter((delivery.event.id, number) for delivery in delivered for number in delivery.subscriptions)
    return [pair for pair, count in pairs.items() if count > 1]


def life(entry: Entry, port: RecordingPort, now: int = 0) -> Broker[Any]:
    """A broker with default parameters, started with what a former one had kept."""
    broker = entry.broker(0, entry.parameters(), port, random.Random(1))
    broker.start(now, dict(port.kept))
    return broker


def test_documents_beyond_the_window_are_delivered_once_whoever_subscribes_and_restarts() -> None:
    port = RecordingPort()
    broker = life(opportunistic.ENTRY, port)
    broker.subscribe(0, Subscription(1, EVERYTHING))
    for number in range(1, 1501):
        broker.publish(number, publication(number))
    broker.subscribe(2000, Subscription(2, ODD))
    assert len(port.delivered) == 1500 + 750
    for turn in range(3):
        broker = life(opportunistic.ENTRY, port, 3000 + turn)
        broker.subscribe(3000 + turn, Subscription(1, EVERYTHING))
        broker.subscribe(3000 + turn, Subscription(2, ODD))
    assert len(port.delivered) == 1500 + 750
    broker.subscribe(4000, Subscription(3, ODD))
    assert not twice(port.delivered)
    # 8 bytes for each document and 8 for each subscription that got it, as docs/live.md says.
    assert sum(len(value) for key, value in port.kept.items() if key.startswith("delivered/")) == 1500 * 16 + 750 * 16


def test_what_left_the_cache_is_forgotten_in_the_end() -> None:
    """Of 30,000 documents with a lifetime of 1,000 steps, the cache holds a thousand at a time."""
    port = RecordingPort()
    broker = life(opportunistic.ENTRY, port)
    broker.subscribe(0, Subscription(1, EVERYTHING))
    most = 0
    for number in range(1, 30_001):
        broker.publish(number, publication(number, life=1000))
        broker.timer(number, "expire")
        most = max(most, broker.tables()["delivered"])
    assert len(port.delivered) == 30_000
    assert most <= 1024 + 2 * 1000 + 16
    assert sum(key.startswith("delivered/") for key in port.kept) == broker.tables()["delivered"]


def test_an_event_with_a_long_life_is_delivered_once_among_thousands_of_short_ones() -> None:
    port = RecordingPort(position=(0.0, 0.0))
    broker = life(context.ENTRY, port)
    broker.subscribe(0, Subscription(1, EVERYTHING))
    broker.publish(0, publication(1, life=3600 * SECOND))
    for number in range(2, 2000):
        broker.publish(number, publication(number))
    for second in range(1, 30):  # it is refreshed every 5 s, and matched again each time
        broker.timer(second * SECOND, "check")
    broker.subscribe(30 * SECOND, Subscription(1, EVERYTHING))
    assert len(port.delivered) == 1999
    assert not twice(port.delivered)


STEPS = st.lists(
    st.sampled_from(["publish", "publish", "receive", "receive", "receive for a while"])
    | st.tuples(st.sampled_from(["subscribe", "unsubscribe"]), st.integers(1, 3))
    | st.sampled_from(["restart", "kill"]),
    max_size=25,
)


@settings(deadline=None, max_examples=60)
@given(STEPS, st.integers(1, 3))
def test_nothing_is_delivered_twice_whatever_happens(steps: list[str | tuple[str, int]], window: int) -> None:
    """Node 0 publishes for node 1, which is killed at any moment, with a memory much shorter than what it holds."""
    mesh = Mesh(opportunistic.ENTRY, (0, 1), [(0, 1)], {"interval": 1.0, "delivered": window})
    port = mesh.ports[1]
    in_force: dict[int, Subscription] = {}
    serial = {0: 0, 1: 0}

    def start() -> None:
        mesh.restart(1)
        for subscription in in_force.values():
            mesh[1].subscribe(mesh.now, subscription)

    def publish(node: int, life: int | None = None) -> None:
        serial[node] += 1
        mesh[node].publish(mesh.now, publication(serial[node], life, node))

    for step in steps:
        before = dict(port.kept), len(port.delivered)
        if step == "publish":
            publish(1)
        elif step == "receive":
            publish(0)
        elif step == "receive for a while":
            publish(0, 3 * SECOND)
        elif step == "restart":
            start()
        elif isinstance(step, tuple):
            name, number = step
            if name == "subscribe":
                in_force[number] = Subscription(number, ODD if number == 3 else EVERYTHING)
                mesh[1].subscribe(mesh.now, in_force[number])
            elif in_force.pop(number, None) is not None:
                mesh[1].unsubscribe(mesh.now, number)
        mesh.run(mesh.now + 2 * SECOND)
        if step == "kill":  # nothing since the last step was committed, and so nothing of it was delivered
            port.kept = before[0]
            del port.delivered[before[1] :]
            start()
    assert not twice(port.delivered)
    assert all(delivery.subscriptions for delivery in port.delivered)
