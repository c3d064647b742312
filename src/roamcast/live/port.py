"""A broker's port on a device: the laws of `protocols.api` on an event loop.

The rules this file owns:

* A port call only queues. The messages and deliveries of one broker call are released, in order, when that call has
  returned.
* **Nothing is released before what was kept is on disk.** A message or a delivery after a `keep` waits for its commit:
  a neighbour is told "I have it" only when that survives a crash, and an application does not get an event twice
  because its node has forgotten. If nothing was kept, nothing waits.
* **A bulk is sent piece by piece.** The link gets the next piece when the one before has been sent, so that a long
  document neither fills the queue nor delays other messages. If the first piece finds the queue full, the whole bulk is
  dropped; if a later one does, the rest is.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from roamcast.content.event import Event, EventId, Scalar
from roamcast.live import log
from roamcast.live.clock import Agenda, Clock
from roamcast.live.facts import Facts
from roamcast.live.senses import Senses
from roamcast.live.store import Store
from roamcast.protocols.api import Handle, Node, Time, Work
from roamcast.protocols.facts import Decided, Decision, Fact
from roamcast.protocols.messages import Bulk, Message, kind_of

if TYPE_CHECKING:
    from roamcast.live.host import Host


class Air(Protocol):
    """The part of a link that a port needs."""

    def broadcast(self, payload: bytes, *, token: Hashable, urgent: bool = False, promised: bool = False) -> None: ...
    def unicast(
        self, to: int, payload: bytes, *, token: Hashable, urgent: bool = False, promised: bool = False
    ) -> None: ...


@dataclass(slots=True, eq=False)
class _BulkFlight:
    """A bulk being sent."""

    bulk: Bulk
    number: int = 0
    """The index of the piece being sent."""


class Promise:
    """That the messages a broker sends in one call are sent: none of them is dropped because the queue is full."""

    def __init__(self, kept: Callable[[], None]) -> None:
        """`kept` is called when the last message has been sent and the promise's maker has called `done`."""
        self._kept = kept
        self._open = 1

    def add(self) -> None:
        self._open += 1

    def done(self) -> None:
        self._open -= 1
        if self._open == 0:
            self._kept()


class LivePort:
    """See `protocols.api.Port`. The host sets `now` before it calls the broker and calls `release` afterwards."""

    def __init__(self, host: "Host", protocol: str, clock: Clock, store: Store, facts: Facts, senses: Senses) -> None:
        self.now: Time = clock.now()
        self.air: Air | None = None
        """None while the node is starting: messages are lost then."""
        self.promise: Promise | None = None
        """What the host promises about messages that are sent now."""
        self.ending = False
        """Whether messages that could not be sent have failed because the node ends."""
        self.agenda = Agenda(clock)
        self._host = host
        self._protocol = protocol
        self._clock = clock
        self._store = store
        self._facts = facts
        self._senses = senses
        self._serial = 0
        self._delayed: dict[Handle, tuple[int, Promise | None]] = {}
        self._flying: dict[Hashable, tuple[Node | None, Message, Promise | None]] = {}
        self._bulks: dict[Hashable, _BulkFlight] = {}  # by the handle of the piece being sent
        self._queued: list[Callable[[], None]] = []

    # --- Sending ----------------------------------------------------------------------------------------------------

    def broadcast(self, message: Message, delay: Time = 0) -> Handle:
        return self._send(None, message, delay)

    def broadcast_bulk(self, bulk: Bulk) -> None:
        flight = _BulkFlight(bulk)
        self._queued.append(lambda: self._transmit_piece(flight))

    def _transmit_piece(self, flight: _BulkFlight) -> None:
        if self.air is None:
            self._host.dropped(flight.bulk)
            return
        self._serial += 1
        self._bulks[self._serial] = flight
        self._transmit(self._serial, None, flight.bulk[flight.number])

    def _piece_done(self, flight: _BulkFlight, sent: bool) -> None:
        if not sent and flight.number == 0:
            self._host.dropped(flight.bulk)
            return
        flight.number += 1
        if sent and flight.number < len(flight.bulk):
            self._transmit_piece(flight)
        else:
            self._host.left(flight.bulk)

    def unicast(self, to: Node, message: Message, delay: Time = 0) -> Handle:
        return self._send(to, message, delay)

    def _send(self, to: Node | None, message: Message, delay: Time) -> Handle:
        self._serial += 1
        handle, promise = self._serial, self.promise
        if promise is not None:
            promise.add()
        if delay > 0:
            planned = self.agenda.plan(self.now + delay, lambda now: self._elapsed(handle, to, message))
            self._delayed[handle] = planned, promise
        else:
            self._queued.append(lambda: self._transmit(handle, to, message, promise))
        return handle

    def withdraw(self, handle: Handle) -> None:
        planned, promise = self._delayed.pop(handle, (None, None))
        if planned is not None:
            self.agenda.cancel(planned)
        if promise is not None:
            promise.done()

    def _elapsed(self, handle: Handle, to: Node | None, message: Message) -> None:
        _, promise = self._delayed.pop(handle)
        self._queued.append(lambda: self._transmit(handle, to, message, promise))
        self.release()

    def _transmit(self, handle: Handle, to: Node | None, message: Message, promise: Promise | None = None) -> None:
        if self.air is None:
            return
        for first in self._host.admission.ahead_of(message):
            self._serial += 1
            self._transmit(self._serial, None, first)
        self._flying[handle] = (to, message, promise)
        promised = promise is not None
        try:
            payload = self._host.encode(message)
            if to is None:
                self.air.broadcast(payload, token=handle, urgent=message.urgent, promised=promised)
            else:
                self.air.unicast(to, payload, token=handle, urgent=message.urgent, promised=promised)
        except Exception as problem:  # such as a number from a stranger's message that no frame can hold
            log.warn("a message could not be sent", kind=kind_of(type(message)), to=to, reason=str(problem))
            self._facts.note("unsendable")
            self.done(handle, False, 0, 0)

    def done(self, token: Hashable, delivered: bool, datagrams: int, octets: int) -> None:
        """The link is done with a message."""
        flown = self._flying.pop(token, None)
        if flown is None:
            return
        to, message, promise = flown
        kind, now = kind_of(type(message)), self._clock.now()
        if octets:
            self._facts.count(now, kind, message.cause, messages=1, packets=datagrams, bits=8 * octets)
        if not delivered:
            # Without octets, a message found the queue full. Losses are counted under no cause, as in the simulator.
            self._facts.count(now, kind, 0, **{"unreachable" if to is not None and octets else "queue_full": 1})
            if to is not None:
                self._host.unreachable(to, message)
        if promise is not None and (octets or not self.ending):
            promise.done()
        flight = self._bulks.pop(token, None)
        if flight is not None:
            self._piece_done(flight, delivered)
        elif to is None and message.tracked:
            (self._host.left if delivered else self._host.dropped)(message)

    # --- Deliveries, facts and timers -------------------------------------------------------------------------------

    def deliver(self, event: Event, subscriptions: tuple[int, ...], hops: int, via: str) -> None:
        # Prepared now, so that one commit has both the event for the application and what the broker keeps about it.
        wanted, prepared = self._host.prepare(event, subscriptions, hops, via)
        self._queued.append(lambda: self._host.deliver(event, wanted, hops, via, prepared))

    def note(self, what: str) -> None:
        self._facts.note(what)

    def record(self, fact: Fact) -> None:
        self._facts.record(self.now, fact)

    def decide(self, event: EventId, decision: Decided, to: Node | None = None) -> None:
        if self._facts.decisions:
            self._facts.record(self.now, Decision(event, decision, to))

    def spend(self, work: Work) -> None:
        pass

    def set_timer(self, at: Time, key: Hashable) -> None:
        self.agenda.plan(at, lambda now: self._host.ring(now, key))

    # --- Keeping and sensing ----------------------------------------------------------------------------------------

    def keep(self, key: str, value: bytes) -> None:
        self._store.keep(self._protocol, key, value)

    def forget(self, key: str) -> None:
        self._store.forget(self._protocol, key)

    def here(self, now: Time) -> tuple[float, float] | None:
        return self._senses.here

    def attributes(self, now: Time) -> Mapping[str, Scalar]:
        return self._senses.attributes

    def authentic(self, event: Event) -> bool:
        return self._host.admission.is_authentic(event)

    def withhold(self, kind: type[Message], note: str | None = None, once: bool = False) -> None:
        """Ignored: the broker gets every message."""

    def know(self, kind: type[Message], subject: Hashable, known: bool = True) -> None:
        """Ignored, too."""

    def overheard(self, neighbour: Node) -> Time | None:
        return None  # the link receives only nodes' own frames

    # --- Release ----------------------------------------------------------------------------------------------------

    def release(self) -> None:
        """Releases what was queued, now or when what was kept is on disk."""
        if not self._queued:
            return
        queued, self._queued = self._queued, []
        self._store.then(lambda problem: None if problem is not None else _do_all(queued))

    @property
    def tables(self) -> dict[str, int]:
        return {
            "agenda": len(self.agenda),
            "delayed": len(self._delayed),
            "flying": len(self._flying),
            "bulks": len(self._bulks),
        }


def _do_all(queued: list[Callable[[], None]]) -> None:
    for action in queued:
        try:
            action()
        except Exception as problem:  # one message that cannot be sent does not stop the others
            log.error("a queued action failed", problem)
