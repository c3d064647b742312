"""A broker alone among strangers: messages of `stranger_messages.Maker`, timers, and now and then a publication.

No message may raise. What a call costs is its CPU time: decoding and the broker's work on a message, what it does when
a timer rings or its node publishes among all that strangers have left behind; and encoding what it sends.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import process_time
from typing import Any, Final

import msgspec

from protocols.stranger_messages import NODE, Maker
from roamcast.content.event import Event, event_id
from roamcast.content.subscription import Publication, Subscription
from roamcast.content.text import parse_filter
from roamcast.live.filters import FramedFilters
from roamcast.protocols.api import Broker
from roamcast.protocols.codec import FrameError
from roamcast.protocols.entry import Entry
from roamcast.protocols.messages import Message
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
    spent: float = 0.0
    """Seconds of CPU of all calls."""
    slowest: float = 0.0
    """Seconds of CPU of the call that took longest."""
    slowest_call: str = ""
    slowest_payload: bytes = b""
    """The message that it was given, or the last before it."""


class Target:
    """A broker, its port, and the timers that it has set."""

    def __init__(self, entry: Entry, settings: Mapping[str, Any], outcome: Outcome) -> None:
        self._outcome = outcome
        self._payload = b""
        self.port = RecordingPort(position=(10.0, 10.0))
        params = msgspec.convert(dict(settings), entry.parameters)
        self._broker: Broker[Any] = entry.broker(NODE, params, self.port, random.Random(1))
        self._codec = entry.codec()
        self._framed = FramedFilters(entry.messages)
        self._timers: dict[Any, None] = {}
        self._published = 0
        self.said: list[Message] = []
        """The first message of the last call, for those who listen."""
        self._broker.start(0, {})
        for number, text in enumerate(('a0 > 5 and type = "t"', 'a0 *= "a"', "true")):
            self._broker.subscribe(0, Subscription(number + 1, parse_filter(text)))

    def receive(self, sender: int, payload: bytes) -> None:
        broker, port = self._broker, self.port
        self._payload = payload
        if isinstance(broker, TreeBroker):
            broker.routing.link_up(port.now, 1)  # routes of strangers are not read, and a link takes a conversation
        self._timed("receive", lambda: self._take(sender, payload))
        self._ring()

    def _take(self, sender: int, payload: bytes) -> None:
        try:
            message = self._codec.decode(payload)
        except FrameError:
            return
        if self._framed.acceptable(message):
            self._broker.receive(self.port.now, sender, message)

    def publish(self, event: Event) -> None:
        self._published += 1
        own = Event(event.type, event.attributes, event.payload, event_id(NODE, self._published))
        self._timed("publish", lambda: self._broker.publish(self.port.now, Publication(own)))
        self._ring()

    def _timed(self, name: str, call: Callable[[], None]) -> None:
        """Makes one call, and sends what there is to send."""
        started, outcome = process_time(), self._outcome
        call()
        for sent in self.port.messages:
            self._codec.encode(sent)
        spent = process_time() - started
        outcome.spent += spent
        if spent > outcome.slowest:
            outcome.slowest, outcome.slowest_call, outcome.slowest_payload = spent, name, self._payload

    def _ring(self) -> None:
        """Lets timers ring that are due."""
        port = self.port
        first = port.messages[:1]
        for timer in port.timers[:RINGING_AT_ONCE]:
            self._timers[timer] = None
        port.clear()
        due = sorted([timer for timer in self._timers if timer[0] <= port.now], key=lambda timer: timer[0])
        for timer in due[:RINGING_AT_ONCE]:
            self._timed(f"timer {timer[1]!r:.60}", lambda key=timer[1]: self._broker.timer(port.now, key))  # type: ignore[misc]
            first = first or port.messages[:1]
            for new in port.timers[:RINGING_AT_ONCE]:
                self._timers[new] = None
            port.clear()
        for timer in due:
            self._timers.pop(timer, None)
        for timer in list(self._timers)[:-RINGING]:
            del self._timers[timer]
        self.said = first


def throw(entry: Entry, rng: random.Random, count: int, settings: Mapping[str, Any] | None = None) -> Outcome:
    """Gives a broker so many inputs; lets through whatever it raises."""
    outcome = Outcome()
    target, maker = Target(entry, settings or {}, outcome), Maker(entry, rng)
    port, pool = target.port, list[bytes]()
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
        target.receive(rng.choice((1, 2, 3, rng.randrange(6, 2000))), payload)
        if outcome.inputs % PUBLISHED == PUBLISHED - 1:
            target.publish(maker.event())
        outcome.inputs += 1
        outcome.octets += len(payload)
        for sent in target.said:
            maker.learn(sent)
    return outcome
