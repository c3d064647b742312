"""The simulated world: hosts a broker on every node, and gives each the port it asks for.

The loop knows two sources of events: the core (frames) and its own agenda (movement, links, applications, timers). At
one instant the agenda goes first, in the order of `Priority`; what it does at an instant the core sees from then on.
"""

import enum
import heapq
from array import array
from collections.abc import Callable, Hashable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

from roamcast.content.event import Event, Scalar
from roamcast.content.rows import event_rows, filter_rows
from roamcast.content.subscription import Publication, Subscription
from roamcast.facts.recorder import Recorder
from roamcast.protocols.api import Broker
from roamcast.protocols.messages import Message, kind_of
from roamcast.sim.core import EVERYONE, FIRST_HOST_KIND, METRICS, Core, Outcome, Settings, Upcall
from roamcast.sim.mobility import Leg, position
from roamcast.sim.scenario import Scenario, parameters
from roamcast.sim.workload import Act, acts
from roamcast.units import SECOND

MAX_CHARGES = 10_000
"""Accounts of causes that are held before they are written; rows of the same key add up."""
_NOT_BY_CAUSE = (0,) * (len(METRICS) - 3)
"""Receptions and losses happen elsewhere: they are counted under no cause."""

CoreMaker = Callable[[Settings], Core]
Progress = Callable[[int], None]


class Priority(enum.IntEnum):
    """What goes first at one instant."""

    SECOND = 0
    LINK = 1
    LEG = 2
    ACT = 3
    TIMER = 4


class World:
    """One run of a scenario. `through_codec` sends every message through its encoding and back, as a device would."""

    def __init__(
        self,
        scenario: Scenario,
        recorder: Recorder,
        make_core: CoreMaker,
        folder: Path,
        *,
        through_codec: bool = False,
    ) -> None:
        entry = scenario.entry(folder)
        self._scenario = scenario
        self._facts = recorder
        self._codec = entry.codec()
        self._through_codec = through_codec
        self._kinds = {message: FIRST_HOST_KIND + number for number, message in enumerate(entry.messages)}
        self.kind_names = ["ack", "background", *map(kind_of, entry.messages)]
        self.core = make_core(scenario.settings(len(entry.messages)))
        self.now = 0
        self._agenda: list[tuple[int, Priority, int, int, Any]] = []
        self._serial = 0

        self._messages: list[Message | None] = []  # by handle of the core
        self._generation: list[int] = []
        self._release: list[int] = []
        self._to: list[int] = []
        self._free: list[int] = []

        self._legs: dict[int, Leg] = {}  # the one that each node is on; none with links
        self._published: dict[int, array[int]] = {}  # times by node, in the order of its events
        self._frames = 0
        # What messages with a cause took: by node, kind and cause since it was last written; by node and kind in all
        self._charged: dict[tuple[int, int, int], list[int]] = {}
        self._charged_in_all: dict[tuple[int, int], list[int]] = {}

        params = parameters(scenario, scenario.name, folder)
        self._ports = [_Port(self, node) for node in range(scenario.nodes)]
        self.brokers: list[Broker[Any]] = [
            entry.broker(node, params, port, Random(f"{scenario.seed}/broker/{node}"))
            for node, port in enumerate(self._ports)
        ]
        self._acts: Iterator[Act] = acts(scenario.workload, scenario.nodes, scenario.seed, scenario.end)
        self._prepare_air(folder)

    # --- The agenda -------------------------------------------------------------------------------------------------

    def _plan(self, time: int, priority: Priority, node: int, data: Any = None) -> None:  # noqa: ANN401  # as the priority says
        self._serial += 1
        heapq.heappush(self._agenda, (time, priority, self._serial, node, data))

    def _prepare_air(self, folder: Path) -> None:
        scenario = self._scenario
        if scenario.links is not None:
            for time, sender, receiver, loss in scenario.links.flips():
                self._plan(time, Priority.LINK, sender, (receiver, loss))
            return
        reach = scenario.radio.range
        for node in range(scenario.nodes):
            if isinstance(reach, tuple):
                self.core.set_range(node, Random(f"{scenario.seed}/range/{node}").uniform(*reach))
            else:
                self.core.set_range(node, reach)
        assert scenario.area is not None
        walks = scenario.moving.walks(scenario.area, scenario.nodes, scenario.seed, folder)
        for node, walk in enumerate(walks):
            self._next_leg(node, walk)  # at once: a broker may ask where it is when it starts

    def run(self, progress: Progress | None = None) -> None:
        """Everything, from the start to the end."""
        end = self._scenario.end
        self._plan(SECOND, Priority.SECOND, 0, progress)
        self._plan_next_act()
        for broker in self.brokers:
            broker.start(0, {})
        advance, agenda = self.core.advance, self._agenda
        while True:
            upcall = advance(min(agenda[0][0], end))
            self.now = self.core.now
            if upcall is Upcall.BROADCAST:
                self._arrived_everywhere()
            elif upcall is Upcall.REACHED:
                if self.now >= end:
                    break
                self._work()
            else:
                self._other(upcall)
        self._count_second()
        self._count_totals()

    def _work(self) -> None:
        """What the agenda has for this instant."""
        agenda, now = self._agenda, self.now
        while agenda[0][0] <= now:
            _, priority, _, node, data = heapq.heappop(agenda)
            if priority is Priority.TIMER:
                self.brokers[node].timer(now, data)
            elif priority is Priority.LEG:
                self._next_leg(node, data)
            elif priority is Priority.ACT:
                self._act(node, data)
                self._plan_next_act()
            elif priority is Priority.LINK:
                receiver, loss = data
                self.core.set_link(node, receiver, loss)
                self._facts.add("link", now, node, receiver, loss)
            else:
                self._count_second()
                self._plan(now + SECOND, Priority.SECOND, 0, data)
                if data is not None:
                    data(now)

    def _next_leg(self, node: int, walk: Iterator[Leg]) -> None:
        leg = next(walk)
        self._legs[node] = leg
        span = leg.end - leg.start
        self.core.set_leg(node, leg.start, leg.x0, leg.y0, (leg.x1 - leg.x0) / span, (leg.y1 - leg.y0) / span)
        indoor_range, reach = self._scenario.radio.indoor_range, self._scenario.radio.range
        if indoor_range is not None and not isinstance(reach, tuple):
            self.core.set_range(node, indoor_range if leg.indoor else reach)
        if self._scenario.record.movement:
            self._facts.add("leg", node, *leg)
        if leg.end < self._scenario.end:
            self._plan(leg.end, Priority.LEG, node, walk)

    def _plan_next_act(self) -> None:
        act = next(self._acts, None)
        if act is not None:
            self._plan(act.time, Priority.ACT, act.node, act.what)

    def _act(self, node: int, what: Subscription | Publication | int) -> None:
        if isinstance(what, Publication):
            event = what.event
            self._published.setdefault(node, array("q")).append(self.now)
            self._facts.add("publish", self.now, node, event.id, event.type, event.size)
            for row in event_rows(event):
                self._facts.add("event_attribute", *row)
            self.brokers[node].publish(self.now, what)
        elif isinstance(what, Subscription):
            self._facts.add("subscribe", self.now, node, what.id, True, str(what.filter))
            for asked in filter_rows(what.id, what.filter):
                self._facts.add("filter_constraint", *asked)
            self.brokers[node].subscribe(self.now, what)
        else:
            self._facts.add("subscribe", self.now, node, what, False, None)
            self.brokers[node].unsubscribe(self.now, what)

    # --- Messages ---------------------------------------------------------------------------------------------------

    def send(self, node: int, to: int, message: Message, delay: int) -> int:
        if self._free:
            handle = self._free.pop()
        else:
            handle = len(self._messages)
            self._messages.append(None)
            self._generation.append(0)
            self._release.append(0)
            self._to.append(EVERYONE)
        release = self.now + delay
        self._messages[handle] = message
        self._release[handle] = release
        self._to[handle] = to
        kind = self._kinds[type(message)]
        self.core.send(node, handle, to, self._codec.size(message), kind, release, message.urgent)
        return self._generation[handle] << 32 | handle

    def withdraw(self, port_handle: int) -> None:
        handle = port_handle & 0xFFFFFFFF
        if port_handle >> 32 == self._generation[handle] and self._release[handle] > self.now:
            self.core.withdraw(handle)
            self._over(handle)

    def _over(self, handle: int) -> Message:
        """Nothing more will be heard of a message: its handle is free, and those who still hold it hold nothing."""
        message = self._messages[handle]
        assert message is not None
        self._messages[handle] = None
        self._generation[handle] += 1
        self._free.append(handle)
        return message

    def _received(self, message: Message) -> Message:
        return self._codec.decode(self._codec.encode(message)) if self._through_codec else message

    def _arrived_everywhere(self) -> None:
        core, now, brokers = self.core, self.now, self.brokers
        sender, sent = core.sender, self._over(core.handle)
        if sent.cause:
            self._charge(sender, sent)
        message = self._received(sent)
        for node in core.receivers:
            brokers[node].receive(now, sender, message)

    def _other(self, upcall: Upcall) -> None:
        sender, handle = self.core.sender, self.core.handle
        if upcall is Upcall.DELIVERED:
            message = self._messages[handle]
            assert message is not None
            self.brokers[self.core.receivers[0]].receive(self.now, sender, self._received(message))
        elif upcall is Upcall.UNREACHABLE:
            message = self._over(handle)
            self._charge(sender, message)
            self.brokers[sender].unreachable(self.now, self._to[handle], message)
        elif upcall is Upcall.FINISHED:
            self._charge(sender, self._over(handle))
        elif upcall is Upcall.FRAME:
            self._record_frame()
        else:
            self._over(handle)

    # --- Facts ------------------------------------------------------------------------------------------------------

    def deliver(self, node: int, event: Event, subscriptions: tuple[int, ...], hops: int, via: str) -> None:
        publisher, serial = event.id >> 32, event.id & 0xFFFFFFFF
        published = self._published[publisher][serial - 1]
        for subscription in subscriptions:
            self._facts.add("deliver", self.now, node, event.id, subscription, published, hops, via)

    def place(
        self,
        node: int,
        change: str,
        cause: int,
        parent: int | None,
        children: tuple[int, ...],
        leader: int | None,
    ) -> None:
        self._facts.add("tree", self.now, node, change, cause, parent, children, leader)

    def here(self, node: int, now: int) -> tuple[float, float] | None:
        """Where the core has the node: it computes the same from the same leg."""
        leg = self._legs.get(node)
        return None if leg is None else position(leg, now)

    def set_timer(self, node: int, at: int, key: Hashable) -> None:
        self._plan(max(at, self.now), Priority.TIMER, node, key)

    def _record_frame(self) -> None:
        frame = self.core.frame
        assert frame is not None
        message = self._messages[frame.handle] if frame.handle >= 0 else None
        cause = message.cause if message is not None else 0
        to = None if frame.to == EVERYONE else frame.to
        kind = self.kind_names[frame.kind]
        number = self._frames
        self._frames += 1
        self._facts.add(
            "frame", number, frame.start, self.now, frame.sender, to, kind, cause, frame.packets, frame.size
        )
        for node, outcome in frame.outcomes:
            self._facts.add("reception", number, node, Outcome(outcome).name.lower())

    def _count_second(self) -> None:
        second = (self.now - 1) // SECOND
        for kind, counted in zip(self.kind_names, self.core.take_series(), strict=True):
            if any(counted):
                self._facts.add("series", second, kind, *counted)
        if len(self._charged) > MAX_CHARGES:
            self._write_charges()

    def _charge(self, node: int, message: Message) -> None:
        """Puts what a message took to its cause."""
        if message.cause:
            kind = self._kinds[type(message)]
            spent = self.core.spent
            for account in (
                self._charged.setdefault((node, kind, message.cause), [0, 0, 0]),
                self._charged_in_all.setdefault((node, kind), [0, 0, 0]),
            ):
                for place, amount in enumerate(spent):
                    account[place] += amount

    def _write_charges(self) -> None:
        for (node, kind, cause), spent in self._charged.items():
            self._facts.add("transmit", node, self.kind_names[kind], cause, *spent, *_NOT_BY_CAUSE)
        self._charged.clear()

    def _count_totals(self) -> None:
        self._write_charges()
        for node, kinds in enumerate(self.core.totals()):
            for kind, counted in enumerate(kinds):
                for place, amount in enumerate(self._charged_in_all.get((node, kind), ())):
                    counted[place] -= amount
                if any(counted):
                    self._facts.add("transmit", node, self.kind_names[kind], 0, *counted)
        for node, port in enumerate(self._ports):
            for fact, count in sorted(port.notes.items()):
                self._facts.add("note", node, fact, count)


class _Port:
    """A node's port: see `protocols.api.Port`."""

    __slots__ = ("_kept", "_node", "_world", "notes")

    def __init__(self, world: World, node: int) -> None:
        self._world = world
        self._node = node
        self._kept: dict[str, bytes] = {}
        self.notes: dict[str, int] = {}

    def broadcast(self, message: Message, delay: int = 0) -> int:
        return self._world.send(self._node, EVERYONE, message, delay)

    def unicast(self, to: int, message: Message, delay: int = 0) -> int:
        return self._world.send(self._node, to, message, delay)

    def withdraw(self, handle: int) -> None:
        self._world.withdraw(handle)

    def set_timer(self, at: int, key: Hashable) -> None:
        self._world.set_timer(self._node, at, key)

    def deliver(self, event: Event, subscriptions: tuple[int, ...], hops: int, via: str) -> None:
        self._world.deliver(self._node, event, subscriptions, hops, via)

    def note(self, fact: str) -> None:
        self.notes[fact] = self.notes.get(fact, 0) + 1

    def tree(self, change: str, cause: int, parent: int | None, children: tuple[int, ...], leader: int | None) -> None:
        self._world.place(self._node, change, cause, parent, children, leader)

    def keep(self, key: str, value: bytes) -> None:
        self._kept[key] = value

    def forget(self, key: str) -> None:
        self._kept.pop(key, None)

    def here(self, now: int) -> tuple[float, float] | None:
        return self._world.here(self._node, now)

    def attributes(self, now: int) -> Mapping[str, Scalar]:
        return {}
