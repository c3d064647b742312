"""The core in plain Python: the compiled core is tested against it, and here the model can be read and stepped through.

The rules are in `docs/model.md`, not here; the numbers in brackets below are those of its section on medium access.
Whatever could change a bit of the results follows that page exactly: the order of events, of random draws and of
additions. `sum()` is not used for floats: since Python 3.12 it compensates for rounding.
"""

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from roamcast.sim.core.interface import (
    ACK_BYTES,
    ACK_KIND,
    BACKGROUND_KIND,
    EVERYONE,
    METRICS,
    STREAMS,
    Frame,
    Outcome,
    Settings,
    Told,
    Upcall,
    first_state,
)
from roamcast.sim.known import Marks

# The classes of events at one instant, in the order in which they are handled.
_END: Final = 0
_RESPONSE: Final = 1
_RELEASE: Final = 2
_ACCESS: Final = 3

_MASK: Final = (1 << 64) - 1
_PREAMBLE_BITS: Final = 192

_METRIC: Final = {name: place for place, name in enumerate(METRICS)}
_METRIC_OF: Final = {
    Outcome.RECEIVED: "receptions",
    Outcome.HALF_DUPLEX: "half_duplex",
    Outcome.COLLISION: "collision",
    Outcome.RANDOM_LOSS: "random_loss",
}
_EIFS_AFTER: Final = {Outcome.RECEIVED: False, Outcome.COLLISION: True, Outcome.RANDOM_LOSS: True}
"""Whether EIFS applies after a frame whose reception had begun. Half duplex does not change whether it applies."""


@dataclass(slots=True)
class Stream:
    """Splitmix64."""

    state: int

    def bits(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & _MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def uniform(self) -> float:
        return (self.bits() >> 11) * 2.0**-53


@dataclass(slots=True)
class Event:
    time: int
    action: Callable[[], None]
    cancelled: bool = False


@dataclass(slots=True, eq=False)
class Message:
    """A message to send: the host's, or background traffic (`handle` -1, with origin and number)."""

    node: "Node"
    handle: int
    to: int
    fragments: int
    full: int
    last: int
    """Bytes of the last fragment; each of the others has `full`."""
    kind: int
    urgent: bool = False
    bulk: bool = False
    told: Told = Told.ALL
    subject: int = 0
    origin: int = -1
    number: int = 0
    fragment: int = 0
    """The fragment to send next, or to repeat."""
    reassembly: dict[int, int] = field(default_factory=dict)
    """The fragments of a broadcast that each node has, by the node's number: bit n is fragment n."""
    arrived: bool = False
    withdrawn: bool = False
    discarded: bool = False
    """Its node was switched off and has forgotten it."""
    spent: tuple[int, int, int] = (0, 0, 0)
    """Packets, bits and airtime so far."""

    @property
    def ended(self) -> bool:
        return self.fragment == self.fragments

    @property
    def size(self) -> int:
        return (self.fragments - 1) * self.full + self.last

    def receivers(self) -> list[int]:
        """The nodes that have all of it; of a bulk, those that have a part."""
        return [n for n, mask in sorted(self.reassembly.items()) if self.bulk or mask == (1 << self.fragments) - 1]


@dataclass(slots=True, eq=False)
class Node:
    number: int
    chance: dict[str, Stream]
    window: int

    start: int = 0
    x: float = 0.0
    y: float = 0.0
    vx: float = 0.0
    vy: float = 0.0
    range: float = 0.0
    room: int = -1

    served: Message | None = None
    urgent: deque[Message] = field(default_factory=deque)
    ordinary: deque[Message] = field(default_factory=deque)
    backoff: int | None = None
    """Slots left when the medium last became idle. 0 still is a backoff; None: there is none."""
    access: Event | None = None
    present: list["Reception"] = field(default_factory=list)
    """Other nodes' frames that arrive here now, in the order of their starts."""
    transmitting: bool = False
    awaiting: bool = False
    """Waits for an acknowledgement, or for the SIFS between it and the next fragment."""
    timeout: Event | None = None
    """When the wait for the acknowledgement ends."""
    following: Event | None = None
    """The next fragment of a unicast, SIFS after the acknowledgement of the one before."""
    idle_from: int = 0
    busy_from: int = 0
    """When the medium is or was sensed busy with the frames in `present`."""
    nav: int = 0
    eifs: bool = False
    retry: int = 0

    on: bool = True
    held: list[Message] = field(default_factory=list)
    """Messages released while the node was off."""

    made: int = 0
    """Background messages made here so far."""
    seen: dict[int, int] = field(default_factory=dict)
    """The highest number of a background message known here, by origin."""
    overheard: dict[int, int] = field(default_factory=dict)
    """When a background message last came from each node."""

    @property
    def quiet(self) -> bool:
        """Whether no frame is on the air here, not even one that is not sensed yet."""
        return not self.transmitting and not self.present

    def busy(self, now: int) -> bool:
        return self.transmitting or (bool(self.present) and now >= self.busy_from)

    @property
    def contending(self) -> bool:
        wants = self.served is not None or self.backoff is not None
        return wants and self.on and not self.transmitting and not self.awaiting

    def position(self, now: int) -> tuple[float, float]:
        return self.x + self.vx * (now - self.start), self.y + self.vy * (now - self.start)


@dataclass(slots=True, eq=False)
class Reception:
    """One transmission at one node that senses it. Range, power and the link's loss are those at its start."""

    node: Node
    receivable: bool
    power: float
    loss: float
    begun: bool = False
    """The receiver locked on to it."""
    half_duplex: bool = False
    collided: bool = False
    lost: bool = False

    @property
    def outcome(self) -> Outcome:
        if self.half_duplex:
            return Outcome.HALF_DUPLEX
        if self.collided:
            return Outcome.COLLISION
        return Outcome.RANDOM_LOSS if self.lost else Outcome.RECEIVED


@dataclass(slots=True, eq=False)
class Transmission:
    """A frame on the air; with the ideal MAC, a whole unicast message."""

    sender: Node
    to: int
    message: Message | None
    """None for an acknowledgement."""
    size: int
    packets: int
    bits: int
    airtime: int
    start: int
    receptions: list[Reception] = field(default_factory=list)
    cut: bool = False
    """Its sender has been switched off since it started."""

    @property
    def kind(self) -> int:
        return ACK_KIND if self.message is None else self.message.kind

    @property
    def handle(self) -> int:
        return -1 if self.message is None else self.message.handle

    def meant(self) -> list[Reception]:
        """The receptions that count: in range, and addressed."""
        return [r for r in self.receptions if r.receivable and self.to in (EVERYONE, r.node.number)]

    def received(self) -> list[Node]:
        return [r.node for r in self.meant() if r.outcome is Outcome.RECEIVED]


class Report(NamedTuple):
    """An upcall on its way to the host."""

    upcall: Upcall
    sender: int
    handle: int
    receivers: list[int]
    frame: Frame | None = None
    spent: tuple[int, int, int] = (0, 0, 0)
    masks: list[int] = []  # noqa: RUF012  # never changed


class Core:
    """See `roamcast.sim.core.interface.Core`."""

    def __init__(self, settings: Settings) -> None:
        self.now = 0
        self.sender = -1
        self.handle = -1
        self.receivers: list[int] = []
        self.over: list[int] = []
        self.frame: Frame | None = None
        self.spent = (0, 0, 0)
        self.masks: list[int] = []
        self._settings = settings
        self._nodes = [
            Node(
                n,
                {purpose: Stream(first_state(settings.seed, purpose, n)) for purpose in STREAMS},
                settings.cw_min,
                idle_from=-settings.eifs,  # the medium has been idle for ever
            )
            for n in range(settings.nodes)
        ]
        self._links: list[dict[int, float]] = [{} for _ in self._nodes]
        self._ack_airtime = settings.airtime(ACK_BYTES, settings.basic_kbps)
        self._heap: list[tuple[int, int, int, Event]] = []
        self._serial = 0
        self._commands: list[Callable[[], None]] = []
        self._messages: dict[int, Message] = {}  # the host's, by handle, until they are over
        self._passing: list[Message] = []  # the background's that wait for their release
        self._on_air: list[Transmission] = []
        self._reports: deque[Report] = deque()
        self._marks = Marks(settings.nodes)
        self.follow = self._marks.follow
        self.begin_again = self._marks.begin_again
        self.know = self._marks.know
        self.skipped = self._marks.skipped
        self._totals = [self._zeros() for _ in self._nodes]
        self._series = self._zeros()
        if settings.background_interval:
            for node in self._nodes:
                phase = int(node.chance["background"].uniform() * settings.background_interval)
                self._push(phase, _RELEASE, partial(self._background_due, node))

    # The host's side

    def set_leg(self, node: int, start: int, x: float, y: float, vx: float, vy: float) -> None:
        mover = self._nodes[node]
        mover.start, mover.x, mover.y, mover.vx, mover.vy = start, x, y, vx, vy

    def set_range(self, node: int, reach: float) -> None:
        self._nodes[node].range = reach

    def set_room(self, node: int, room: int) -> None:
        self._nodes[node].room = room

    def set_on(self, node: int, on: bool, keep_queue: bool) -> None:
        self._take_commands()
        if not on:
            self._switch_off(self._nodes[node], keep_queue)
        elif not self._nodes[node].on:
            self._switch_on(self._nodes[node])

    def set_link(self, sender: int, receiver: int, loss: float | None) -> None:
        if loss is None:
            self._links[sender].pop(receiver, None)
        else:
            self._links[sender][receiver] = loss

    def send(
        self,
        node: int,
        handle: int,
        to: int,
        size: int,
        kind: int,
        release: int,
        urgent: bool,
        told: Told = Told.ALL,
        subject: int = 0,
    ) -> None:
        message = Message(self._nodes[node], handle, to, 1, 0, size, kind, urgent, told=told, subject=subject)
        self._cut(message)
        self._commands.append(partial(self._accept, message, release))

    def send_bulk(
        self, node: int, handle: int, pieces: int, size: int, last: int, kind: int, release: int, urgent: bool
    ) -> None:
        message = Message(self._nodes[node], handle, EVERYONE, pieces, size, last, kind, urgent, bulk=True)
        self._commands.append(partial(self._accept, message, release))

    def withdraw(self, handle: int) -> None:
        self._commands.append(partial(self._withdraw, handle))

    def advance(self, until: int) -> Upcall:
        self.over = []
        self._take_commands()
        while not self._reports and self._heap and self._heap[0][0] < until:
            event = heapq.heappop(self._heap)[-1]
            if not event.cancelled:
                self.now = event.time
                event.action()
        if not self._reports:
            self.now = until
            return Upcall.REACHED
        upcall, self.sender, self.handle, self.receivers, self.frame, self.spent, self.masks = self._reports.popleft()
        return upcall

    def overheard(self, node: int, sender: int) -> int | None:
        return self._nodes[node].overheard.get(sender)

    def take_series(self) -> list[list[int]]:
        series, self._series = self._series, self._zeros()
        return series

    def totals(self) -> list[list[list[int]]]:
        return [[list(metrics) for metrics in kinds] for kinds in self._totals]

    # Book-keeping

    def _take_commands(self) -> None:
        commands, self._commands = self._commands, []
        for command in commands:
            command()

    def _zeros(self) -> list[list[int]]:
        return [[0] * len(METRICS) for _ in range(self._settings.kinds)]

    def _count(self, node: Node, kind: int, metric: str, amount: int = 1) -> None:
        self._totals[node.number][kind][_METRIC[metric]] += amount
        self._series[kind][_METRIC[metric]] += amount

    def _report(self, upcall: Upcall, message: Message, receivers: list[int]) -> None:
        masks = [message.reassembly[n] for n in receivers] if message.bulk else []
        self._reports.append(Report(upcall, message.node.number, message.handle, receivers, None, message.spent, masks))

    def _over(self, upcall: Upcall, message: Message, receivers: list[int] | None = None) -> None:
        """A message is done with: tells the host, unless it was background traffic."""
        if message.kind == BACKGROUND_KIND:
            return
        packets, _, _ = message.spent
        self._count(message.node, message.kind, "messages", packets if message.bulk else min(packets, 1))
        del self._messages[message.handle]
        if upcall is Upcall.BROADCAST and message.told is Told.SILENT and not receivers:
            self.over.append(message.handle)
        else:
            self._report(upcall, message, receivers or [])

    def _push(self, time: int, rank: int, action: Callable[[], None]) -> Event:
        event = Event(time, action)
        heapq.heappush(self._heap, (time, rank, self._serial, event))
        self._serial += 1
        return event

    # Messages before they reach the air

    def _cut(self, message: Message) -> Message:
        """Splits a message that is longer than a frame into fragments."""
        size, mtu = message.size, self._settings.mtu
        message.fragments, message.full = self._settings.fragments(size), mtu
        message.last = size - (message.fragments - 1) * mtu
        return message

    def _accept(self, message: Message, release: int) -> None:
        self._messages[message.handle] = message
        self._push(max(release, self.now), _RELEASE, partial(self._release, message))

    def _withdraw(self, handle: int) -> None:
        self._messages.pop(handle).withdrawn = True

    def _release(self, message: Message) -> None:
        """Releases a message (3), unless it was withdrawn."""
        node = message.node
        if message in self._passing:
            self._passing.remove(message)
        if message.withdrawn or message.discarded:
            return
        if not node.on:
            node.held.append(message)
            return
        if self._settings.ideal:
            if message.to == EVERYONE:
                self._transmit_fragment(node, message)
            else:
                self._transmit_whole(node, message)
            return
        if len(node.urgent) + len(node.ordinary) >= self._settings.queue:
            self._count(node, message.kind, "queue_full")
            self._over(Upcall.DROPPED, message)
            return
        (node.urgent if message.urgent else node.ordinary).append(message)
        if node.served is None:
            self._serve_next(node)
            if node.busy(self.now) and node.backoff is None:
                self._draw_backoff(node)
            self._schedule(node)

    def _background_due(self, node: Node) -> None:
        """Sends a new background message, and plans the next."""
        if node.on:
            node.made += 1
            node.seen[node.number] = node.made
            self._release(self._new_background(node, node.number, node.made))
        self._push(self.now + self._settings.background_interval, _RELEASE, partial(self._background_due, node))

    def _new_background(self, node: Node, origin: int, number: int) -> Message:
        size = self._settings.background_size
        return self._cut(Message(node, -1, EVERYONE, 1, 0, size, BACKGROUND_KIND, origin=origin, number=number))

    def _pass_on(self, node: Node, message: Message) -> None:
        """A background message was received: passes it on if it is part of a flood and new here."""
        if not self._settings.background_flood or message.number <= node.seen.get(message.origin, 0):
            return
        node.seen[message.origin] = message.number
        delay = int(node.chance["background"].uniform() * self._settings.background_jitter)
        copy = self._new_background(node, message.origin, message.number)
        self._passing.append(copy)
        self._push(self.now + delay, _RELEASE, partial(self._release, copy))

    # Nodes that are switched off and on

    def _switch_off(self, node: Node, keep_queue: bool) -> None:
        node.on = False
        for transmission in self._on_air:
            transmission.receptions = [r for r in transmission.receptions if r.node is not node]
            transmission.cut |= transmission.sender is node
        node.present.clear()
        for message in self._underway():
            message.reassembly.pop(node.number, None)
        if keep_queue:
            self._cancel_access(node, self.now)
        for event in (node.access, node.timeout, node.following):
            if event is not None:
                event.cancelled = True
        node.access = node.timeout = node.following = None
        node.awaiting = False
        if not keep_queue:
            self._forget(node)

    def _underway(self) -> Iterator[Message]:
        """All messages that may have been sent in part."""
        yield from self._messages.values()
        for node in self._nodes:
            yield from node.held
            if node.served is not None:
                yield node.served
        for transmission in self._on_air:
            if transmission.message is not None:
                yield transmission.message

    def _forget(self, node: Node) -> None:
        """Drops all messages of a node. One that has a frame on the air ends with that frame."""
        node.served = node.backoff = None
        node.urgent.clear()
        node.ordinary.clear()
        node.held.clear()
        node.window = self._settings.cw_min
        node.retry = 0
        for message in self._passing:
            message.discarded |= message.node is node
        for transmission in self._on_air:
            if transmission.sender is node and transmission.message is not None:
                transmission.message.discarded = True
        for _, message in sorted(self._messages.items()):
            if message.node is node and not message.discarded:
                message.discarded = True
                self._push(self.now, _RELEASE, partial(self._discard, message))

    def _discard(self, message: Message) -> None:
        if message.to == EVERYONE and message.fragment > 0:
            self._broadcast_ended(message)
        else:
            self._over(Upcall.GONE, message)

    def _switch_on(self, node: Node) -> None:
        node.on = True
        node.idle_from = self.now
        node.nav = 0
        node.eifs = False
        for message in node.held:
            self._push(self.now, _RELEASE, partial(self._release, message))
        node.held.clear()
        self._schedule(node)

    # Contention

    def _draw_backoff(self, node: Node) -> None:
        node.backoff = node.chance["backoff"].bits() & node.window

    def _countdown_start(self, node: Node) -> int:
        return node.idle_from + (self._settings.eifs if node.eifs else self._settings.difs)

    def _schedule(self, node: Node) -> None:
        """Schedules an access (2). One that is scheduled already stays: nothing that leads here would move it."""
        if node.busy(self.now) or not node.contending or node.access is not None:
            return
        due = max(self.now, self._countdown_start(node) + (node.backoff or 0) * self._settings.slot)
        if node.present and due >= node.busy_from:
            self._stop_countdown(node, node.busy_from)
            node.busy_from = self.now
        else:
            node.access = self._push(due, _ACCESS, partial(self._access, node))

    def _cancel_access(self, node: Node, at: int) -> None:
        """Cancels the scheduled access, if there is one, since the medium is busy from `at` on (4)."""
        if node.access is not None:
            node.access.cancelled = True
            node.access = None
            self._stop_countdown(node, at)

    def _stop_countdown(self, node: Node, at: int) -> None:
        if node.backoff is not None:
            passed = (at - self._countdown_start(node)) // self._settings.slot
            node.backoff -= min(node.backoff, max(0, passed))
        elif node.served is not None:
            self._draw_backoff(node)

    def _fall_idle(self, node: Node) -> None:
        """Notes that the medium has become idle, if it has (5)."""
        if node.quiet:
            node.idle_from = max(self.now, node.nav)
            self._schedule(node)

    def _access(self, node: Node) -> None:
        """Channel access (6)."""
        node.access = None
        node.backoff = None
        if node.served is not None:
            self._transmit_fragment(node, node.served)

    def _done(self, node: Node) -> None:
        """Is done with the message (9); the caller does the scheduling."""
        self._contend_anew(node)
        self._serve_next(node)

    def _serve_next(self, node: Node) -> None:
        queue = node.urgent or node.ordinary
        node.served = queue.popleft() if queue else None

    def _contend_anew(self, node: Node) -> None:
        """Every transmission is followed by a backoff."""
        node.window = self._settings.cw_min
        node.retry = 0
        self._draw_backoff(node)

    # On the air

    def _transmit_fragment(self, node: Node, message: Message) -> None:
        """Transmits the next fragment of a message."""
        settings = self._settings
        size = message.last if message.fragment == message.fragments - 1 else message.full
        kbps = settings.basic_kbps if message.to == EVERYONE else settings.kbps
        bits = _PREAMBLE_BITS + 8 * (settings.header + size)
        airtime = settings.airtime(size + settings.header, kbps)
        self._transmit(Transmission(node, message.to, message, size, 1, bits, airtime, self.now))

    def _transmit_whole(self, node: Node, message: Message) -> None:
        """Transmits a unicast of the ideal MAC."""
        size, packets = message.size, message.fragments
        bits = packets * (_PREAMBLE_BITS + 8 * self._settings.header) + 8 * size
        airtime = self._settings.burst_airtime(size, self._settings.kbps)
        self._transmit(Transmission(node, message.to, message, size, packets, bits, airtime, self.now))

    def _transmit(self, transmission: Transmission) -> None:
        """The start of a transmission (6)."""
        node = transmission.sender
        reach = self._draw_range(node)
        for metric, amount in (
            ("packets", transmission.packets),
            ("bits", transmission.bits),
            ("airtime", transmission.airtime),
        ):
            self._count(node, transmission.kind, metric, amount)
        if transmission.message is not None:
            packets, bits, airtime = transmission.message.spent
            transmission.message.spent = (
                packets + transmission.packets,
                bits + transmission.bits,
                airtime + transmission.airtime,
            )
        transmission.receptions = list(self._find_sensing(node, reach))
        self._on_air.append(transmission)
        if not self._settings.ideal:
            for reception in node.present:
                reception.half_duplex = True
            node.transmitting = True
            node.eifs = False
            for reception in transmission.receptions:
                self._frame_starts(reception)
        self._push(self.now + transmission.airtime, _END, partial(self._end_transmission, transmission))

    def _draw_range(self, node: Node) -> float:
        low, high = self._settings.range_low, self._settings.range_high
        if not high:
            return node.range
        return low + (high - low) * node.chance["range"].uniform()

    def _find_sensing(self, sender: Node, sender_reach: float) -> Iterator[Reception]:
        """The nodes that sense a frame that starts now, in the order of their numbers."""
        if self._settings.links:
            for number, loss in sorted(self._links[sender.number].items()):
                if self._nodes[number].on:
                    yield Reception(self._nodes[number], receivable=True, power=0.0, loss=loss)
            return
        x, y = sender.position(self.now)
        for node in self._nodes:
            if node is sender or not node.on or node.room != sender.room:
                continue
            reach = min(sender_reach, node.range) if self._settings.surroundings else sender_reach
            sensed = self._settings.sense * reach
            node_x, node_y = node.position(self.now)
            dx, dy = node_x - x, node_y - y
            d2 = dx * dx + dy * dy
            if d2 <= sensed * sensed:
                q = (reach * reach) / max(d2, 1.0)
                yield Reception(node, receivable=d2 <= reach * reach, power=q * q, loss=self._settings.loss)

    def _frame_starts(self, reception: Reception) -> None:
        """Another node's frame starts at a node that senses it (4)."""
        node = reception.node
        was_quiet = node.quiet
        reception.half_duplex = node.transmitting
        node.present.append(reception)
        self._collide(node.present)
        reception.begun = reception.receivable and not reception.half_duplex and not reception.collided
        if was_quiet:
            node.busy_from = self.now + self._settings.cca
            # An access due at this very instant, or before the frame is sensed, stands: the two collide.
            if node.access is not None and node.access.time != self.now and node.access.time >= node.busy_from:
                self._cancel_access(node, node.busy_from)
                node.busy_from = self.now

    def _collide(self, present: list[Reception]) -> None:
        capture = self._settings.capture and not self._settings.links
        for reception in present:
            if not capture:
                reception.collided |= len(present) > 1
                continue
            interference = 0.0
            for other in present:
                if other is not reception:
                    interference += other.power
            reception.collided |= reception.power < self._settings.threshold * interference

    # The end of a transmission (7)

    def _end_transmission(self, transmission: Transmission) -> None:
        self._on_air.remove(transmission)
        self._draw_losses(transmission)
        self._count_receptions(transmission)
        if transmission.message is not None and transmission.to == EVERYONE:
            self._fragment_sent(transmission, transmission.message)
        if self._settings.ideal:
            self._after_ideal(transmission)
            return
        for reception in transmission.receptions:
            self._frame_ends(transmission, reception)
        self._stop_transmitting(transmission)
        self._respond(transmission)

    def _fragment_sent(self, transmission: Transmission, message: Message) -> None:
        """A fragment of a broadcast has been sent."""
        for node in transmission.received():
            message.reassembly[node.number] = message.reassembly.get(node.number, 0) | 1 << message.fragment
        message.fragment += 1

    def _draw_losses(self, transmission: Transmission) -> None:
        stream = transmission.sender.chance["loss"]
        for reception in transmission.meant():
            if reception.outcome is Outcome.RECEIVED and reception.loss > 0:
                reception.lost = stream.uniform() < reception.loss

    def _count_receptions(self, transmission: Transmission) -> None:
        meant = transmission.meant()
        for reception in meant:
            self._count(reception.node, transmission.kind, _METRIC_OF[reception.outcome])
        if self._settings.record:
            self._record(transmission, meant)

    def _record(self, transmission: Transmission, meant: list[Reception]) -> None:
        sender, handle = transmission.sender.number, transmission.handle
        outcomes = tuple((r.node.number, r.outcome) for r in meant)
        frame = Frame(
            transmission.start,
            sender,
            transmission.to,
            transmission.kind,
            handle,
            transmission.packets,
            transmission.size,
            outcomes,
        )
        self._reports.append(Report(Upcall.FRAME, sender, handle, [], frame))

    def _frame_ends(self, transmission: Transmission, reception: Reception) -> None:
        """A frame ends at a node that sensed it."""
        node = reception.node
        node.present.remove(reception)
        if not reception.receivable:
            node.eifs = False
        elif reception.begun:
            node.eifs = _EIFS_AFTER.get(reception.outcome, node.eifs)
            third_party = transmission.to not in (EVERYONE, node.number) and reception.outcome is Outcome.RECEIVED
            if third_party and transmission.message is not None:
                node.nav = max(node.nav, self.now + self._settings.sifs + self._ack_airtime)
        self._fall_idle(node)

    def _stop_transmitting(self, transmission: Transmission) -> None:
        """The sender no longer transmits."""
        node, message = transmission.sender, transmission.message
        node.transmitting = False
        if message is not None and not message.discarded:
            if transmission.to == EVERYONE and message.ended:
                self._done(node)
            elif transmission.to == EVERYONE:
                self._contend_anew(node)
            elif not transmission.cut:
                node.awaiting = True
                node.timeout = self._push(
                    self.now + self._settings.ack_wait, _RESPONSE, partial(self._timed_out, node, message)
                )
        self._fall_idle(node)

    def _respond(self, transmission: Transmission) -> None:
        """What a transmission leads to at the nodes that received it."""
        received = transmission.received()
        if transmission.message is None:
            for node in received:
                self._acknowledged(node, transmission.sender)
        elif transmission.to == EVERYONE:
            if transmission.message.ended or transmission.message.discarded:
                self._broadcast_ended(transmission.message)
        else:
            for node in received:
                self._push(self.now + self._settings.sifs, _RESPONSE, partial(self._ack_due, node, transmission.sender))
                self._arrived(transmission.message, node)
            if transmission.message.discarded:
                self._over(Upcall.GONE, transmission.message)

    def _broadcast_ended(self, message: Message) -> None:
        """A broadcast has ended."""
        receivers = message.receivers()
        if message.kind == BACKGROUND_KIND:
            for number in receivers:
                if self._settings.overhear:
                    self._nodes[number].overheard[message.node.number] = self.now
                self._pass_on(self._nodes[number], message)
        elif message.told is not Told.ALL:
            receivers = self._marks.choose(message.kind, message.subject, receivers)
        self._over(Upcall.BROADCAST, message, receivers)

    def _arrived(self, message: Message, node: Node) -> None:
        """A unicast arrives with its last fragment, once."""
        if message.fragment == message.fragments - 1 and not message.arrived:
            message.arrived = True
            self._report(Upcall.DELIVERED, message, [node.number])

    # Acknowledgements (8)

    def _ack_due(self, node: Node, to: Node) -> None:
        if node.on and not node.transmitting:
            bits = _PREAMBLE_BITS + 8 * ACK_BYTES
            ack = Transmission(node, to.number, None, ACK_BYTES, 1, bits, self._ack_airtime, self.now)
            self._cancel_access(node, self.now)
            self._transmit(ack)

    def _acknowledged(self, node: Node, by: Node) -> None:
        message = node.served
        if node.timeout is None or message is None or message.to != by.number:
            return
        node.timeout.cancelled = True
        node.timeout = None
        message.fragment += 1
        if not message.ended:
            node.window = self._settings.cw_min
            node.retry = 0
            node.following = self._push(
                self.now + self._settings.sifs, _RESPONSE, partial(self._next_fragment, node, message)
            )
            return
        node.awaiting = False
        self._done(node)
        self._over(Upcall.FINISHED, message)
        self._schedule(node)

    def _next_fragment(self, node: Node, message: Message) -> None:
        node.following = None
        if node.transmitting:
            self._timed_out(node, message)
            return
        node.awaiting = False
        self._cancel_access(node, self.now)
        self._transmit_fragment(node, message)

    def _timed_out(self, node: Node, message: Message) -> None:
        """The wait for an acknowledgement times out, or the next fragment cannot go."""
        node.timeout = None
        node.awaiting = False
        node.idle_from = max(node.idle_from, self.now)
        node.eifs = False
        node.retry += 1
        if node.retry > self._settings.retries:
            self._done(node)
            self._give_up(message)
        else:
            node.window = min(2 * node.window + 1, self._settings.cw_max)
            self._draw_backoff(node)
        self._schedule(node)

    def _give_up(self, message: Message) -> None:
        self._count(message.node, message.kind, "unreachable")
        self._over(Upcall.UNREACHABLE, message)

    # The ideal MAC

    def _after_ideal(self, transmission: Transmission) -> None:
        message, received = transmission.message, transmission.received()
        assert message is not None, "the ideal MAC acknowledges nothing"
        if transmission.to == EVERYONE:
            if message.ended or message.discarded:
                self._broadcast_ended(message)
            else:
                self._release(message)
            return
        if received:
            self._report(Upcall.DELIVERED, message, [transmission.to])
        if message.discarded:
            self._over(Upcall.GONE, message)
        elif received:
            self._over(Upcall.FINISHED, message)
        else:
            self._give_up(message)
