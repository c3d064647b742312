"""A broker alone among strangers: messages of `stranger_messages.Maker`, timers, and now and then a publication.

No message may raise. What one costs is the CPU time of everything that happens before the next: decoding, the broker's
work, encoding what it sends, and the timers that ring; and that of publishing among what it has left behind.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any, Final

import msgspec

from protocols.stranger_messages import NODE, Maker
from roamcast.content.event import Event, event_id
from roamcast.content.subscription import Publication, Subscription
from roamcast.content.text import parse_filter
from roamcast.protocols.api import Broker
from roamcast.protocols.entry import Entry
from roamcast.protocols.testing import RecordingPort
from roamcast.protocols.tree.broker import TreeBroker
from roamcast.units import SECOND

TIMES: Final = 20
"""Inputs for each message that is made: it comes from other senders, at other moments, after other messages."""
POOL: Final = 500
"""Messages that may come again."""
PUBLISHED: Final = 200
"""Inputs between two publications of the node itself."""
RINGING: Final = 500
"""Timers that are remembered, and"""
RINGING_AT_ONCE: Final = 50
"""how many of them may ring after one input."""

ASKED: Final = 16
"""Inputs between two questions for the CPU time."""

SETTINGS: Final[dict[str, tuple[Mapping[str, Any], ...]]] = {
    "maodv": ({}, {"routing": {"cast": "broadcast"}}),
    "coman": ({}, {"routing": {"cast": "broadcast"}}),
    "opportunistic": ({}, {"whole": True, "scope": 3}),
    "odmrp": (
        {},
        {"grouping": "subscription", "forwarding": "summary", "merge": True},
        {"grouping": "source", "forwarding": "summary", "merge": True, "upstream": "all"},
        {"grouping": "digest", "unknown": "data"},
    ),
}
"""Parameters of a protocol that lead messages elsewhere; the others have their defaults."""


@dataclass
class Outcome:
    inputs: int = 0
    messages: int = 0
    """Different ones."""
    octets: int = 0
    slowest: float = 0.0
    """Seconds of CPU that the input which took longest took at most."""
    slowest_payload: bytes = b""


class Watch:
    """CPU time of one input after another, from above: to ask for it costs more than most inputs do.

    An input takes no more CPU time than wall-clock time, and no more than has gone by since the last question.
    """

    def __init__(self) -> None:
        self._asked = process_time()
        self._started = perf_counter()
        self._inputs = 0

    def start(self) -> None:
        self._started = perf_counter()

    def at_most(self, interesting: float) -> float:
        """Seconds of CPU since the start, at most; a rough figure if they are less than `interesting`."""
        wall = perf_counter() - self._started
        self._inputs += 1
        if wall <= interesting and self._inputs % ASKED:
            return wall
        now = process_time()
        spent, self._asked = min(wall, now - self._asked), now
        return spent


class Target:
    """A broker, its port, and the timers that it has set."""

    def __init__(self, entry: Entry, settings: Mapping[str, Any]) -> None:
        self.port = RecordingPort(position=(10.0, 10.0))
        params = msgspec.convert(dict(settings), entry.parameters)
        self._broker: Broker[Any] = entry.broker(NODE, params, self.port, random.Random(1))
        self._codec = entry.codec()
        self._timers: dict[Any, None] = {}
        self._published = 0
        self._broker.start(0, {})
        for number, text in enumerate(('a0 > 5 and type = "t"', 'a0 *= "a"', "true")):
            self._broker.subscribe(0, Subscription(number + 1, parse_filter(text)))

    def receive(self, sender: int, payload: bytes) -> None:
        broker, port = self._broker, self.port
        if isinstance(broker, TreeBroker):
            broker.routing.link_up(port.now, 1)  # routes of strangers are not read, and a link takes a conversation
        broker.receive(port.now, sender, self._codec.decode(payload))
        self._go_on()

    def publish(self, event: Event) -> None:
        self._published += 1
        own = Event(event.type, event.attributes, event.payload, event_id(NODE, self._published))
        self._broker.publish(self.port.now, Publication(own))
        self._go_on()

    def _go_on(self) -> None:
        """Sends what there is, and lets timers ring that are due."""
        port = self.port
        for sent in port.messages:
            self._codec.encode(sent)
        for timer in port.timers[:RINGING_AT_ONCE]:
            self._timers[timer] = None
        due = sorted([timer for timer in self._timers if timer[0] <= port.now], key=lambda timer: timer[0])
        for timer in due[:RINGING_AT_ONCE]:
            self._broker.timer(port.now, timer[1])
        for timer in due:
            del self._timers[timer]
        for timer in list(self._timers)[:-RINGING]:
            del self._timers[timer]


def throw(entry: Entry, rng: random.Random, count: int, settings: Mapping[str, Any] | None = None) -> Outcome:
    """Gives a broker so many inputs; lets through whatever it raises."""
    target, maker, outcome = Target(entry, settings or {}), Maker(entry, rng), Outcome()
    port, pool, watch = target.port, list[bytes](), Watch()
    # What is known of others lasts for many inputs, or for few.
    pace = rng.choice((SECOND // 1000, SECOND // 100, SECOND // 10))
    while outcome.inputs < count:
        if outcome.inputs % TIMES == 0 or len(pool) < POOL // TIMES:
            payload = maker.payload()
            outcome.messages += 1
            if len(pool) < POOL:
                pool.append(payload)
            else:
                pool[rng.randrange(POOL)] = payload
        else:
            payload = pool[int(rng.random() * len(pool))]
        port.now += rng.choice((0, pace // 10, pace))
        sender = rng.choice((1, 2, 3, rng.randrange(6, 2000)))
        event = maker.event() if outcome.inputs % PUBLISHED == PUBLISHED - 1 else None
        watch.start()
        target.receive(sender, payload)
        if event is not None:
            target.publish(event)
        spent = watch.at_most(outcome.slowest)
        if spent > outcome.slowest:
            outcome.slowest, outcome.slowest_payload = spent, payload
        outcome.inputs += 1
        outcome.octets += len(payload)
        for sent in port.messages[:1]:
            maker.learn(sent)
        port.clear()
    return outcome
