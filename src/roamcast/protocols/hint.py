"""Hint-driven routing: no structure at all, only an estimate of who has been near whom.

Baldoni, Beraldi, Cugola, Migliavacca, Querzoni, "Structure-less Content-Based Routing in Mobile Ad Hoc Networks"
(2005), sections 3 and 4. Brokers send beacons with what they want. The *hint* for a broker is a tenth of the number of
its beacons missed since the last one heard: 0 next to it, 1 after ten, infinite if it was never met. An event travels
by broadcast. A broker that hears it for the first time passes it on if it knows an interested broker that is not on the
event's list of destinations, or has a lower hint for one that is; the lower that hint, the sooner. It cancels that if
it hears the event again before. `docs/protocols/hint.md` has the choices that the paper leaves open, and their effect.
"""

from collections.abc import Hashable, Mapping
from random import Random
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta

from roamcast.bounded import put
from roamcast.content.covering import MIN_BUDGET, summarise
from roamcast.content.event import INT_MAX, INT_MIN, Event
from roamcast.content.filter import NOTHING, Filter
from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.api import Broker, Handle, Node, Parameters, Port, Time
from roamcast.protocols.entry import Entry
from roamcast.protocols.interests import Interests
from roamcast.protocols.messages import MAX_HOPS, Message, Role
from roamcast.protocols.neighbours import NeighbourTable
from roamcast.protocols.window import DuplicateWindow
from roamcast.units import SECOND, seconds

MAX_DESTINATIONS: Final = 1024
MAX_MISSED: Final = 10
"""The most beacons missed in a row before a node is forgotten."""
_BEACON: Final = "beacon"
_STEP: Final = SECOND // (3 * MAX_MISSED)
"""The delay added per missed beacon: the paper waits a third of the hint in seconds."""


class Beacon(Message, frozen=True, tag="beacon"):
    """What a node's applications want, broadcast to its neighbours."""

    role: ClassVar[Role] = "beacon"
    longest: ClassVar[int | None] = 2**16 + 64  # the largest summary

    filter: Filter


class Hinted(Message, frozen=True, tag="hinted"):
    """An event, with the nodes known to want it and the best estimate of how near they are."""

    role: ClassVar[Role] = "data"

    event: Event
    hops: Annotated[int, Meta(ge=0, le=MAX_HOPS)]
    credit: Annotated[int, Meta(ge=0, le=255)]
    """How many more times a broker may pass it on without a reason."""
    destinations: Annotated[dict[int, Annotated[int, Meta(ge=0, le=MAX_MISSED)]], Meta(max_length=MAX_DESTINATIONS)]
    """By node: the fewest of its beacons that any broker on the way has missed. The paper's hint is a tenth of it."""


class Hint(Parameters, frozen=True, kw_only=True):
    """Parameters of hint-driven routing; the defaults are the paper's, where it gives one."""

    interval: Annotated[float, Meta(ge=0.01, le=86400, description="between two beacons of a node, s")] = 5.0
    beaconing: Annotated[
        Literal["subscribers", "all"], Meta(description="who beacons: nodes with a subscription, or every node")
    ] = "subscribers"
    jitter: Annotated[
        float, Meta(ge=0, lt=1, description="by what share of the interval a beacon is moved at random, either way")
    ] = 0.0
    life: Annotated[
        int, Meta(ge=1, le=MAX_MISSED, description="beacons of a node that may be missed before its entry goes")
    ] = MAX_MISSED
    tolerance: Annotated[
        float, Meta(ge=0, lt=1, description="how late a beacon may be before it counts as missed, in intervals")
    ] = 0.1
    credits: Annotated[int, Meta(ge=0, le=255, description="times an event may be passed on without a reason")] = 0
    spread: Annotated[float, Meta(ge=0, le=60, description="longest random part of a delay, s")] = 0.03
    suppression: Annotated[
        Literal["any", "covered"],
        Meta(description="a copy heard cancels passing on: any copy; or one that leaves nothing to improve"),
    ] = "any"
    summary: Annotated[int, Meta(ge=MIN_BUDGET, le=65536, description="most bytes of the filter in a beacon")] = 256
    table: Annotated[int, Meta(ge=1, description="most nodes in the hint table")] = 1024
    window: Annotated[int, Meta(ge=1, description="how many events a node remembers having seen")] = 4096


class HintBroker(Broker[Hint]):
    def __init__(self, node: Node, params: Hint, port: Port, rng: Random) -> None:
        super().__init__(node, params, port, rng)
        self._interval = seconds(params.interval)
        self._tolerance = seconds(params.interval * params.tolerance)
        # The entry is removed when more than ten beacons were missed, that is when the eleventh is late.
        lifetime = (params.life + 1) * self._interval + self._tolerance - 1
        self._table: NeighbourTable[Filter] = NeighbourTable(lifetime, params.table)
        self._interests = Interests()  # of the nodes in the table
        self._seen = DuplicateWindow(params.window)
        self._scheduled: dict[int, tuple[Handle, Time]] = {}  # by event, with the time of sending; newest last
        self._beacon: Beacon | None = None  # None after subscriptions changed
        self._advertised = False  # whether others may still believe that something is wanted here

    def start(self, now: Time, kept: Mapping[str, bytes]) -> None:
        super().start(now, kept)
        self.port.set_timer(now + round(self.rng.random() * self._interval), _BEACON)

    # --- Beacons ----------------------------------------------------------------------------------------------------

    def subscribe(self, now: Time, subscription: Subscription) -> None:
        super().subscribe(now, subscription)
        self._beacon = None

    def unsubscribe(self, now: Time, subscription_id: int) -> None:
        super().unsubscribe(now, subscription_id)
        self._beacon = None

    def timer(self, now: Time, key: Hashable) -> None:
        if key != _BEACON:
            return
        self.port.set_timer(now + self._next_beacon(), _BEACON)
        for node in self._table.expire(now):
            self._interests.remove(node)
        # With the last subscription gone, one more beacon says so.
        if len(self.local) or self._advertised or self.params.beaconing == "all":
            if self._beacon is None:
                filters = self.local.filters
                self._beacon = Beacon(summarise(filters, self.params.summary) if filters else NOTHING)
            self._advertised = bool(len(self.local))
            self.port.broadcast(self._beacon)

    def _next_beacon(self) -> Time:
        if not self.params.jitter:
            return self._interval
        return round(self._interval * (1 + self.params.jitter * (2 * self.rng.random() - 1)))

    def _hear_beacon(self, now: Time, sender: Node, wanted: Filter) -> None:
        if not INT_MIN <= sender <= INT_MAX:  # no list of destinations could name it
            return
        self._interests.put(sender, wanted)
        evicted = self._table.hear(now, sender, wanted)
        if evicted is not None:
            self._interests.remove(evicted)

    def missed(self, now: Time, node: Node) -> int | None:
        """How many beacons of a node were missed, 0 to 10; None if it is not in the table: an infinite hint."""
        known = self._table.get(node)
        if known is None:
            return None
        missed = max(0, now - known.last - self._tolerance) // self._interval
        return missed if missed <= self.params.life else None

    # --- Events -----------------------------------------------------------------------------------------------------

    def publish(self, now: Time, publication: Publication) -> None:
        """The publisher always sends, at once, with all destinations it knows."""
        event = publication.event
        self._seen.add(event.id)
        destinations: dict[Node, int] = {}
        if self.local.deliver(event, 0, "local"):
            destinations[self.node] = 0
        self._improve(now, event, destinations)
        self.port.decide(event.id, "forwarded")
        self.port.broadcast(Hinted(event, 0, self.params.credits, destinations))

    def receive(self, now: Time, sender: Node, message: Message) -> None:
        if isinstance(message, Beacon):
            self._hear_beacon(now, sender, message.filter)
        elif isinstance(message, Hinted):
            if self._seen.add(message.event.id):
                self._forward(now, message)
            else:
                self.port.note("duplicate")
                self._hear_copy(now, message)

    def _forward(self, now: Time, message: Hinted) -> None:
        """`forward(m)` of the paper's Figure 3, after the first reception."""
        event, credit = message.event, message.credit
        hops = min(message.hops + 1, MAX_HOPS)
        destinations = dict(message.destinations)
        if self.local.deliver(event, hops, "hinted") and _has_place(self.node, destinations):
            destinations[self.node] = 0
        least = self._improve(now, event, destinations)
        if least is None:
            if credit == 0:
                self.port.decide(event.id, "no route")
                return
            credit, least = credit - 1, MAX_MISSED
        self.port.decide(event.id, "forwarded")
        delay = least * _STEP + round(self.rng.random() * self.params.spread * SECOND)
        self._schedule(event.id, self.port.broadcast(Hinted(event, hops, credit, destinations), delay), now + delay)

    def _improve(self, now: Time, event: Event, destinations: dict[Node, int]) -> int | None:
        """Improves the list with what this broker knows; returns the lowest hint it entered, None if none is better.

        The condition of Figure 3 has no brackets; section 4 says where they belong: the predicate must match, and the
        node must be new on the list or its hint lower.
        """
        least = None
        for node in self._interests.match(event):
            listed = destinations.get(node)
            if listed == 0 or node == self.node:  # no hint is lower
                continue
            missed = self.missed(now, node)
            if missed is None or not _has_place(node, destinations):
                continue
            if listed is None or missed < listed:
                destinations[node] = missed
                least = missed if least is None else min(least, missed)
        return least

    def _schedule(self, event_id: int, handle: Handle, leaves: Time) -> None:
        """Remembers how to cancel it; the oldest entries make room."""
        put(self._scheduled, event_id, (handle, leaves), self.params.window)

    def _hear_copy(self, now: Time, message: Hinted) -> None:
        """Somebody else has passed it on, so this node need not."""
        if message.event.id not in self._scheduled:
            return
        if (
            self.params.suppression == "covered"
            and self._improve(now, message.event, dict(message.destinations)) is not None
        ):
            return
        handle, leaves = self._scheduled.pop(message.event.id)
        if leaves > now:
            self.port.decide(message.event.id, "suppressed")
        self.port.withdraw(handle)

    def tables(self) -> dict[str, int]:
        return {
            **super().tables(),
            "hints": len(self._table),
            "interests": len(self._interests),
            "seen": len(self._seen),
            "scheduled": len(self._scheduled),
        }


def _has_place(node: Node, destinations: Mapping[Node, int]) -> bool:
    """Whether a node is on the list, or can be added: strangers may have filled it up to the limit of a frame."""
    return node in destinations or len(destinations) < MAX_DESTINATIONS


ENTRY: Final = Entry(
    "hint",
    "broadcast, forwarded by nodes that met a subscriber recently (Baldoni et al. 2005)",
    Hint,
    HintBroker,
    (Beacon, Hinted),
    compared=({"credits": 0}, {"credits": 2}, {"credits": 5}),
)
