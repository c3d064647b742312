"""For tests of brokers: a port that records all calls, and a small network driven by hand.

No simulator: messages in a `Mesh` take almost no time, arrive in order and never collide, so that an example of a paper
can be followed step by step. Each message is encoded and decoded, so that a test sees what a device would.
"""

import heapq
import random
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from roamcast.content.event import Event, EventId, Scalar
from roamcast.protocols.api import Broker, Handle, Node, Time, Work
from roamcast.protocols.entry import Entry
from roamcast.protocols.facts import Decided, Decision, Fact
from roamcast.protocols.messages import Bulk, Message


@dataclass(frozen=True)
class Sent:
    """A message given to a port. `to` is None for a broadcast; `at` is when its delay elapses."""

    at: Time
    to: Node | None
    message: Message


@dataclass(frozen=True)
class Delivery:
    event: Event
    subscriptions: tuple[int, ...]
    hops: int
    via: str


@dataclass
class RecordingPort:
    """A port for a single broker: the test sets `now`, calls the broker, and looks at the recorded calls."""

    now: Time = 0
    sent: dict[Handle, Sent] = field(default_factory=dict)
    """Messages sent and not withdrawn, by handle, in order."""
    bulks: list[tuple[Time, Bulk]] = field(default_factory=list)
    """Bulks sent, with their times."""
    timers: list[tuple[Time, Hashable]] = field(default_factory=list)
    delivered: list[Delivery] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    facts: list[tuple[Time, Fact]] = field(default_factory=list)
    """Facts recorded, decisions included, with their times."""
    work: Counter[Work] = field(default_factory=Counter)
    """Calls of `spend`."""
    kept: dict[str, bytes] = field(default_factory=dict)
    position: tuple[float, float] | None = None
    """What `here` returns."""
    properties: dict[str, Scalar] = field(default_factory=dict)
    """What `attributes` returns."""
    other_traffic: dict[Node, Time] = field(default_factory=dict)
    """What `overheard` returns, by neighbour."""
    withheld: dict[type[Message], tuple[str | None, bool]] = field(default_factory=dict)
    """Calls of `withhold`. Here the broker gets every message all the same."""
    known: set[tuple[type[Message], Hashable]] = field(default_factory=set)
    """What the broker has said that it knows: kinds and subjects."""
    forged: set[EventId] = field(default_factory=set)
    """Events that `authentic` refuses."""
    _serial: int = 0

    def broadcast(self, message: Message, delay: Time = 0) -> Handle:
        return self._send(Sent(self.now + delay, None, message))

    def unicast(self, to: Node, message: Message, delay: Time = 0) -> Handle:
        return self._send(Sent(self.now + delay, to, message))

    def broadcast_bulk(self, bulk: Bulk) -> None:
        self.bulks.append((self.now, bulk))

    def _send(self, sent: Sent) -> Handle:
        self._serial += 1
        self.sent[self._serial] = sent
        return self._serial

    def withdraw(self, handle: Handle) -> None:
        if handle in self.sent and self.sent[handle].at > self.now:
            del self.sent[handle]

    def set_timer(self, at: Time, key: Hashable) -> None:
        self.timers.append((at, key))

    def deliver(self, event: Event, subscriptions: tuple[int, ...], hops: int, via: str) -> None:
        self.delivered.append(Delivery(event, subscriptions, hops, via))

    def note(self, what: str) -> None:
        self.notes[what] += 1

    def record(self, fact: Fact) -> None:
        self.facts.append((self.now, fact))

    def decide(self, event: EventId, decision: Decided, to: Node | None = None) -> None:
        self.facts.append((self.now, Decision(event, decision, to)))

    def spend(self, work: Work) -> None:
        self.work[work] += 1

    def keep(self, key: str, value: bytes) -> None:
        self.kept[key] = value

    def forget(self, key: str) -> None:
        self.kept.pop(key, None)

    def here(self, now: Time) -> tuple[float, float] | None:
        return self.position

    def attributes(self, now: Time) -> Mapping[str, Scalar]:
        return self.properties

    def authentic(self, event: Event) -> bool:
        return event.id not in self.forged

    def withhold(self, kind: type[Message], note: str | None = None, once: bool = False) -> None:
        self.withheld[kind] = note, once
        self.known.clear()  # a new broker has been made

    def know(self, kind: type[Message], subject: Hashable, known: bool = True) -> None:
        (self.known.add if known else self.known.discard)((kind, subject))

    def overheard(self, neighbour: Node) -> Time | None:
        return self.other_traffic.get(neighbour)

    @property
    def messages(self) -> list[Message]:
        """The messages sent, in order."""
        return [sent.message for sent in self.sent.values()]

    def clear(self) -> None:
        """Forgets all recorded calls, but not what was kept."""
        self.sent.clear()
        self.bulks.clear()
        self.timers.clear()
        self.delivered.clear()
        self.notes.clear()
        self.facts.clear()


class _MeshPort(RecordingPort):
    """A node's port in a mesh: calls are recorded and carried out."""

    def __init__(self, mesh: "Mesh", node: Node) -> None:
        super().__init__()
        self._mesh = mesh
        self._node = node

    def _send(self, sent: Sent) -> Handle:
        handle = super()._send(sent)
        self._mesh._at(sent.at, self._node, handle)
        return handle

    def broadcast_bulk(self, bulk: Bulk) -> None:
        super().broadcast_bulk(bulk)
        self._mesh._at(self.now, self._node, bulk)

    def set_timer(self, at: Time, key: Hashable) -> None:
        super().set_timer(at, key)
        self._mesh._at(max(at, self.now), self._node, _Timer(key))


@dataclass(frozen=True)
class _Timer:
    key: Hashable


class Mesh:
    """Several brokers, links between them that the test sets, and a clock that it moves."""

    def __init__(
        self,
        entry: Entry,
        nodes: Iterable[Node],
        links: Iterable[tuple[Node, Node]] = (),
        parameters: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        self.entry = entry
        self.now: Time = 0
        self.params = msgspec.convert(dict(parameters or {}), entry.parameters)
        self.ports = {node: _MeshPort(self, node) for node in nodes}
        self.links: set[tuple[Node, Node]] = set()
        for a, b in links:
            self.link(a, b)
        self.log: list[tuple[Time, Node, Message]] = []
        """Every message sent, with its time and sender."""
        self._codec = entry.codec()
        self._queue: list[tuple[Time, int, Node, Handle | Bulk | _Timer]] = []
        self._serial = 0
        self._seed = seed
        self.brokers: dict[Node, Broker[Any]] = {}
        for node in self.ports:
            self.restart(node)

    def link(self, a: Node, b: Node) -> None:
        self.links |= {(a, b), (b, a)}

    def cut(self, a: Node, b: Node) -> None:
        self.links -= {(a, b), (b, a)}

    def restart(self, node: Node) -> None:
        """Makes a new broker for the node, with only what the former one had kept."""
        port = self.ports[node]
        self._queue = [item for item in self._queue if item[2] != node]
        heapq.heapify(self._queue)
        rng = random.Random(f"{self._seed}/broker/{node}")
        self.brokers[node] = self.entry.broker(node, self.params, port, rng)
        self.brokers[node].start(self.now, dict(port.kept))

    def __getitem__(self, node: Node) -> Broker[Any]:
        return self.brokers[node]

    def _at(self, time: Time, node: Node, what: Handle | Bulk | _Timer) -> None:
        self._serial += 1
        heapq.heappush(self._queue, (time, self._serial, node, what))

    def run(self, until: Time) -> None:
        """Runs everything up to and including `until`."""
        assert until >= self.now, f"time does not go back from {self.now} to {until}"
        while self._queue and self._queue[0][0] <= until:
            time, _, node, what = heapq.heappop(self._queue)
            self._set_clock(time)
            self._happen(node, what)
        self._set_clock(until)

    def _happen(self, node: Node, what: Handle | Bulk | _Timer) -> None:
        if isinstance(what, _Timer):
            self.brokers[node].timer(self.now, what.key)
        elif isinstance(what, Bulk):
            self._transmit_bulk(node, what)
        else:
            self._transmit(node, what)

    def _set_clock(self, now: Time) -> None:
        self.now = now
        for port in self.ports.values():
            port.now = now

    def _transmit(self, node: Node, handle: Handle) -> None:
        sent = self.ports[node].sent.get(handle)
        if sent is None:  # withdrawn
            return
        self._log(node, sent.message)
        frame = self._codec.encode(sent.message)
        if sent.to is not None:
            if (node, sent.to) in self.links:
                self.brokers[sent.to].receive(self.now, node, self._codec.decode(frame))
            else:
                self.brokers[node].unreachable(self.now, sent.to, sent.message)
            return
        self._spread(node, frame)
        if sent.message.tracked:
            self.brokers[node].left(self.now, sent.message)

    def _transmit_bulk(self, node: Node, bulk: Bulk) -> None:
        for number in range(len(bulk)):
            self._log(node, bulk[number])
            self._spread(node, self._codec.encode(bulk[number]))
        self.brokers[node].left(self.now, bulk)

    def _log(self, node: Node, message: Message) -> None:
        self.log.append((self.now, node, message))

    def _spread(self, node: Node, frame: bytes) -> None:
        for other in self.ports:
            if (node, other) in self.links:
                self.brokers[other].receive(self.now, node, self._codec.decode(frame))
