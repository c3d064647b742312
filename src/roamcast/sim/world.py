"""The simulated world: hosts a broker on every node, and gives each its port.

The loop has two sources of events: the core (frames) and its own agenda (movement, links, applications, timers). At the
same instant the agenda goes first, in the order of `Priority`; the core sees the effects from that instant on.
"""

import heapq
from array import array
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

from msgspec.structs import astuple

from roamcast.content.event import Event, Scalar
from roamcast.content.rows import event_rows, filter_rows, typed
from roamcast.content.subscription import Publication, Subscription
from roamcast.facts.recorder import Recorder
from roamcast.facts.rows import publish_row, subscribe_row, unsubscribe_row
from roamcast.facts.schema import ACK_ROLE, BACKGROUND_ROLE
from roamcast.protocols.api import Broker
from roamcast.protocols.facts import Fact
from roamcast.protocols.messages import MAX_PIECES, Bulk, Message, kind_of
from roamcast.sim import collector
from roamcast.sim.absences import Absences
from roamcast.sim.core.interface import EVERYONE, FIRST_HOST_KIND, Core, Outcome, Settings, Told, Upcall
from roamcast.sim.costs import Costs
from roamcast.sim.inflight import MessagesInFlight
from roamcast.sim.known import Subjects, subjects_followed
from roamcast.sim.mobility import Leg, position
from roamcast.sim.places import scenario_acts
from roamcast.sim.port import DecidingPort, SimulatedPort
from roamcast.sim.scenario.attributes import Changed, attribute_changes
from roamcast.sim.scenario.away import switches
from roamcast.sim.scenario.draw import own_range
from roamcast.sim.scenario.scenario import Scenario, parameters
from roamcast.sim.scenario.workload import Act
from roamcast.sim.schedule import Priority, Schedule
from roamcast.sim.service import Cpus
from roamcast.units import SECOND

# By their own names: looking a member up in its enumeration takes longer than most of what is done with it.
_NEW, _SILENT = Told.NEW, Told.SILENT
_ACT, _TIMER = Priority.ACT, Priority.TIMER
_BROADCAST, _REACHED, _DELIVERED, _FINISHED = Upcall.BROADCAST, Upcall.REACHED, Upcall.DELIVERED, Upcall.FINISHED

_WALL: Final = 1_700_000_000_000
"""Time 0 in ms since 1970, for signatures: they take as many bytes as on a device."""
MOST_AT_ONCE: Final = 1_000_000
"""Timers set for now or earlier at one instant; at the start each of 100,000 nodes may set some."""

CoreMaker = Callable[[Settings], Core]
OnTime = Callable[[int], None]


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
        self._entry = entry
        self._codec = entry.codec()
        self._through_codec = through_codec
        self._kinds = {message: FIRST_HOST_KIND + number for number, message in enumerate(entry.messages)}
        self._kind_roles = [
            ("ack", ACK_ROLE),
            ("background", BACKGROUND_ROLE),
            *((kind_of(message), message.role) for message in entry.messages),
        ]
        self._params = parameters(scenario, scenario.name, folder)
        settings = scenario.settings(len(entry.messages), overhears=self._params.overhears)
        self._overhears = settings.overhear
        self.core = make_core(settings)
        self.now = 0
        self._agenda = Schedule()
        self._plan = self._agenda.plan
        self._at_once = 0, 0  # an instant, and how many timers were set at it for it or earlier

        self._messages = MessagesInFlight()
        self._costs = Costs(recorder, self._kind_roles)
        self._followed: dict[int, Subjects] = {}  # by kind: those of which messages may be withheld
        self._legs: dict[int, Leg] = {}  # each node's current leg; empty with links
        self._attributes: list[dict[str, Scalar]] = [{} for _ in range(scenario.nodes)]
        self._published: dict[int, array[int]] = {}  # times by node, in the order of the serials of its events
        self._frames = 0
        self._records_frames = scenario.record.frames
        # By node and id: what its applications have subscribed to.
        self._wanted: dict[int, dict[int, Subscription]] = {}

        make_port = DecidingPort if scenario.record.decisions else SimulatedPort
        self._ports = [make_port(self, node) for node in range(scenario.nodes)]
        service = scenario.service
        self._cpus = None if service is None else Cpus(service, scenario.nodes, self._plan_computing)
        self.brokers: list[Broker[Any]] = [self._make_broker(node) for node in range(scenario.nodes)]
        self._absences = Absences(scenario, recorder, self._agenda, self.core, self._restart)
        self._acts: Iterator[Act] = scenario_acts(scenario, folder)
        self._prepare_air(folder)
        for change in attribute_changes(scenario.attributes, scenario.nodes, scenario.seed, scenario.end):
            if change.time == 0:
                self._change_attributes(change.node, change)  # now, since a broker may ask for them when it starts
            else:
                self._plan(change.time, Priority.ATTRIBUTES, change.node, change)
        for switch in switches(scenario.away, scenario.nodes, scenario.seed, scenario.end):
            self._plan(switch.time, Priority.AWAY, switch.node, switch)
        self._doing: dict[Priority, Callable[[int, Any], None]] = {
            Priority.SECOND: self._second,
            Priority.COOLDOWN: self._cool_down,
            Priority.LINK: self._flip,
            Priority.LEG: self._next_leg,
            Priority.ATTRIBUTES: self._change_attributes,
            Priority.AWAY: self._absences.switch,
            Priority.ACT: self._act,
            Priority.END: self._expire,
            Priority.TIMER: self._timer,
            Priority.CPU: self._compute,
        }

    def _make_broker(self, node: int) -> Broker[Any]:
        rng, port = Random(f"{self._scenario.seed}/broker/{node}"), self._ports[node]
        if self._cpus is None:
            return self._entry.broker(node, self._params, port, rng)
        return self._cpus.broker(node, port, lambda port: self._entry.broker(node, self._params, port, rng))

    def _plan_computing(self, time: int, what: Callable[[int], None]) -> None:
        self._plan(time, Priority.CPU, 0, what)

    def _compute(self, _node: int, what: Callable[[int], None]) -> None:
        what(self.now)

    # --- The agenda -------------------------------------------------------------------------------------------------

    def _prepare_air(self, folder: Path) -> None:
        scenario = self._scenario
        if scenario.links is not None:
            self._flips = scenario.links.flips(scenario.seed, scenario.end, scenario.nodes, folder)
            self._plan_next_flip()
            return
        reach = scenario.radio.range
        for node in range(scenario.nodes):
            if isinstance(reach, tuple):
                self.core.set_range(node, own_range(reach, scenario.seed, node))
            else:
                self.core.set_range(node, reach)
        assert scenario.area is not None
        walks = scenario.moving.walks(scenario.area, scenario.nodes, scenario.seed, folder)
        for node, walk in enumerate(walks):
            self._next_leg(node, walk)  # now, since a broker may ask for its position when it starts

    def _plan_next_flip(self) -> None:
        """Plans one change at a time: recorded contacts of thousands of nodes have millions."""
        flip = next(self._flips, None)
        if flip is not None:
            time, sender, receiver, loss = flip
            self._plan(time, Priority.LINK, sender, (receiver, loss))

    def _flip(self, sender: int, flip: tuple[int, float | None]) -> None:
        receiver, loss = flip
        self.core.set_link(sender, receiver, loss)
        self._facts.add("link", self.now, sender, receiver, loss)
        self._plan_next_flip()

    def run(self, progress: OnTime | None = None) -> None:
        """Runs the scenario from start to end."""
        end = self._scenario.end
        self._plan(SECOND, Priority.SECOND, 0, progress)
        if self._scenario.cooldown:
            self._plan(self._scenario.stop, Priority.COOLDOWN, 0)
        self._plan_next_act()
        for broker in self.brokers:
            broker.start(0, {})
        core, agenda = self.core, self._agenda.items
        while True:
            until = agenda[0][0]
            upcall = core.advance(until if until < end else end)
            self.now = core.now
            if core.over:
                self._messages.finish_all(core.over)
            if upcall is _BROADCAST:
                self._arrived_everywhere()
            elif upcall is _REACHED:
                if self.now >= end:
                    break
                self._work()
            else:
                self._other(upcall)
        with collector.paused():
            self._count_second()
            self._count_totals()

    def _work(self) -> None:
        """Does what the agenda has for this instant."""
        agenda, now, doing, away = self._agenda.items, self.now, self._doing, self._absences.away
        while agenda[0][0] <= now:
            _, priority, _, node, data = heapq.heappop(agenda)
            if away and node in away and priority >= _ACT:
                self._absences.put_off(node, priority, doing[priority], data)
            else:
                doing[priority](node, data)
            if priority is _ACT:
                self._plan_next_act()

    def _second(self, _node: int, on_time: OnTime | None) -> None:
        self._count_second()
        self._plan(self.now + SECOND, Priority.SECOND, 0, on_time)
        if on_time is not None:
            on_time(self.now)

    def _cool_down(self, _node: int, _data: None) -> None:
        self._costs.cool_down(self.core.totals())

    def _timer(self, node: int, key: Hashable) -> None:
        self.brokers[node].timer(self.now, key)

    def _next_leg(self, node: int, walk: Iterator[Leg]) -> None:
        leg = next(walk)
        self._legs[node] = leg
        span = leg.end - leg.start
        self.core.set_leg(node, leg.start, leg.x0, leg.y0, (leg.x1 - leg.x0) / span, (leg.y1 - leg.y0) / span)
        indoor_range, reach = self._scenario.radio.indoor_range, self._scenario.radio.range
        if indoor_range is not None and not isinstance(reach, tuple):
            self.core.set_range(node, indoor_range if leg.indoor else reach)
        if self._scenario.radio.walls == "opaque":
            self.core.set_room(node, leg.room)
        if self._scenario.record.movement:
            self._facts.add("leg", node, *leg.recorded)
        if leg.end < self._scenario.end:
            self._plan(leg.end, Priority.LEG, node, walk)
        self._absences.follow(node, leg)

    def _change_attributes(self, node: int, change: Changed) -> None:
        self._attributes[node] = {**self._attributes[node], **change.values}
        for name, value in change.values.items():
            self._facts.add("attribute", change.time, node, name, *typed(value))

    def _restart(self, node: int) -> None:
        """Begins again with a broker that knows what it kept; its applications subscribe again."""
        for kind in self._followed:
            self.core.begin_again(kind, node)
        self.brokers[node] = broker = self._make_broker(node)
        broker.start(self.now, dict(self._ports[node].kept))
        for subscription in self._wanted.get(node, {}).values():
            broker.subscribe(self.now, subscription)

    # --- Applications -----------------------------------------------------------------------------------------------

    def _plan_next_act(self) -> None:
        act = next(self._acts, None)
        if act is not None:
            self._plan(act.time, Priority.ACT, act.node, act.what)

    def _act(self, node: int, what: Subscription | Publication | int) -> None:
        if isinstance(what, Publication):
            if self.now >= self._scenario.stop:
                return  # it was deferred by a node that was away until the cooldown
            event = what.event
            times = self._published.setdefault(node, array("q"))
            times.extend([-1] * ((event.id & 0xFFFFFFFF) - 1 - len(times)))  # for events that were never published
            times.append(self.now)
            self._facts.add("publish", *publish_row(self.now, node, what))
            for row in event_rows(event):
                self._facts.add("event_attribute", *row)
            if self._scenario.workload.signed:
                what = what.to_be_signed(_WALL + self.now // 1_000_000, self.brokers[node].block)
            self.brokers[node].publish(self.now, what)
        elif isinstance(what, Subscription):
            self._facts.add("subscribe", *subscribe_row(self.now, node, what))
            for constraint in filter_rows(what.id, what.filter):
                self._facts.add("filter_constraint", *constraint)
            self._wanted.setdefault(node, {})[what.id] = what
            self.brokers[node].subscribe(self.now, what)
            if what.lifetime is not None:
                self._plan(self.now + what.lifetime + self.brokers[node].linger, Priority.END, node, what)
        else:
            self._facts.add("subscribe", *unsubscribe_row(self.now, node, what))
            self._wanted.get(node, {}).pop(what, None)
            self.brokers[node].unsubscribe(self.now, what)

    def _expire(self, node: int, subscription: Subscription) -> None:
        """Ends a subscription whose lifetime is over, unless it was replaced or has ended before."""
        if self._wanted[node].get(subscription.id) is subscription:
            self._act(node, subscription.id)

    # --- Messages ---------------------------------------------------------------------------------------------------

    def send(self, node: int, to: int, message: Message, delay: int) -> int:
        release = self.now + delay
        handle = self._messages.add(message, to, release)
        kind, size = self._kinds[type(message)], self._codec.size(message)
        subjects = self._followed.get(kind) if to == EVERYONE else None
        subject = None if subjects is None else message.subject(node)
        if subjects is None or subject is None:
            self.core.send(node, handle, to, size, kind, release, message.urgent)
        else:
            told = _NEW if message.tracked or message.cause or self._records_frames else _SILENT
            number = subjects.number(subject)
            self.core.send(node, handle, to, size, kind, release, message.urgent, told, number)
        return self._messages.port_handle(handle)

    def send_bulk(self, node: int, bulk: Bulk) -> None:
        pieces = len(bulk)
        assert 0 < pieces <= MAX_PIECES, f"{pieces} pieces: a bulk has 1 to {MAX_PIECES}"
        size, last = bulk.sizes(self._codec.size)
        kind = self._kinds[bulk.piece]
        handle = self._messages.add(bulk, EVERYONE, self.now)
        self.core.send_bulk(node, handle, pieces, size, last, kind, self.now, bulk.piece.urgent)

    def withdraw(self, port_handle: int) -> None:
        handle = self._messages.withdrawable(port_handle, self.now)
        if handle is not None:
            self.core.withdraw(handle)
            self._messages.finish(handle)

    def _received(self, message: Message) -> Message:
        return self._codec.decode(self._codec.encode(message)) if self._through_codec else message

    def _arrived_everywhere(self) -> None:
        core = self.core
        sender, sent = core.sender, self._messages.finish(core.handle)
        if not isinstance(sent, Message):
            self._bulk_arrived(sender, sent)
            return
        self._charge(sender, sent)
        if core.receivers:
            now, brokers = self.now, self.brokers
            message = self._received(sent) if self._through_codec else sent
            for node in core.receivers:
                brokers[node].receive(now, sender, message)
        if sent.tracked:
            self._tell_left(sender, sent)

    def withhold(self, message: type[Message], note: str | None, once: bool) -> None:
        kind = self._kinds[message]
        if kind not in self._followed:
            self.core.follow(kind, once)
            begin = partial(self._nobody_knows, kind)
            self._followed[kind] = Subjects(note, subjects_followed(self._scenario.nodes), begin)

    def _nobody_knows(self, kind: int, number: int) -> None:
        self.core.know(kind, 0, number, False)

    def know(self, node: int, message: type[Message], subject: Hashable, known: bool) -> None:
        kind = self._kinds.get(message)  # None: a broker from outside has messages of its own instead
        subjects = None if kind is None else self._followed.get(kind)
        if kind is not None and subjects is not None:
            number = subjects.number(subject) if known else subjects.find(subject)
            if number is not None:
                self.core.know(kind, node, number, known)

    def _bulk_arrived(self, sender: int, bulk: Bulk) -> None:
        core, now, brokers = self.core, self.now, self.brokers
        if bulk.cause:
            self._charge(sender, bulk, core.spent[0])  # if it broke off, not all of its pieces were sent
        for node, mask in zip(core.receivers, core.masks, strict=True):
            if not self._through_codec:
                brokers[node].receive_bulk(now, sender, bulk, mask)
                continue
            for number in range(len(bulk)):
                if mask >> number & 1:
                    brokers[node].receive(now, sender, self._received(bulk[number]))
        self._tell_left(sender, bulk)

    def _tell_left(self, sender: int, sent: Message | Bulk) -> None:
        """Tells a broker that its message has left, unless it has restarted since and does not know it."""
        if self._absences.knows(sender, self._messages.release(self.core.handle)):
            self._absences.when_there(sender, self._left, sender, sent)

    def _other(self, upcall: Upcall) -> None:
        sender, handle = self.core.sender, self.core.handle
        if upcall is _DELIVERED:
            message = self._messages.message(handle)
            assert isinstance(message, Message)
            self.brokers[self.core.receivers[0]].receive(self.now, sender, self._received(message))
        elif upcall is _FINISHED:
            self._charge(sender, self._messages.finish(handle))
        elif upcall is Upcall.UNREACHABLE:
            message = self._messages.finish(handle)
            assert isinstance(message, Message)
            self._charge(sender, message)
            self._absences.when_there(sender, self._unreachable, sender, self._messages.addressee(handle), message)
        elif upcall is Upcall.GONE:
            sent = self._messages.finish(handle)
            if self.core.spent[0]:
                self._charge(sender, sent)
        elif upcall is Upcall.FRAME:
            self._record_frame()
        else:
            sent = self._messages.finish(handle)
            broadcast = self._messages.addressee(handle) == EVERYONE
            if not isinstance(sent, Message) or (sent.tracked and broadcast):
                self.brokers[sender].dropped(self.now, sent)

    def _left(self, node: int, sent: Message | Bulk) -> None:
        self.brokers[node].left(self.now, sent)

    def _unreachable(self, node: int, to: int, message: Message) -> None:
        self.brokers[node].unreachable(self.now, to, message)

    # --- Facts ------------------------------------------------------------------------------------------------------

    def deliver(self, node: int, event: Event, subscriptions: tuple[int, ...], hops: int, via: str) -> None:
        publisher, serial = event.id >> 32, event.id & 0xFFFFFFFF
        published = self._published[publisher][serial - 1]
        for subscription in subscriptions:
            self._facts.add("deliver", self.now, node, event.id, subscription, published, hops, via)

    def record(self, node: int, fact: Fact) -> None:
        self._facts.add(fact.table, self.now, node, *astuple(fact))

    def here(self, node: int, now: int) -> tuple[float, float] | None:
        """The node's position, the same as in the core, which computes it from the same leg."""
        leg = self._legs.get(node)
        return None if leg is None else position(leg, now)

    def attributes(self, node: int) -> Mapping[str, Scalar]:
        return self._attributes[node]

    def overheard(self, node: int, sender: int) -> int | None:
        return self.core.overheard(node, sender) if self._overhears else None

    def set_timer(self, node: int, at: int, key: Hashable) -> None:
        if at <= self.now:
            self._count_at_once()
            at = self.now
        self._plan(at, _TIMER, node, key)

    def _count_at_once(self) -> None:
        """Refuses a protocol that sets timers for now or earlier without end: the run would never go on."""
        instant, count = self._at_once
        self._at_once = self.now, count + 1 if instant == self.now else 1
        if self._at_once[1] > MOST_AT_ONCE:
            raise RuntimeError("timers are set for now or earlier again and again: set them for later than `now`")

    def _record_frame(self) -> None:
        frame = self.core.frame
        assert frame is not None
        sent = self._messages.message(frame.handle) if frame.handle >= 0 else None
        cause, event = (0, None) if sent is None else (sent.cause, sent.event_id)
        to = None if frame.to == EVERYONE else frame.to
        kind, _ = self._kind_roles[frame.kind]
        number = self._frames
        self._frames += 1
        self._facts.add(
            "frame", number, frame.start, self.now, frame.sender, to, kind, cause, event, frame.packets, frame.size
        )
        for node, outcome in frame.outcomes:
            self._facts.add("reception", number, node, Outcome(outcome).name.lower())

    def _count_second(self) -> None:
        second = (self.now - 1) // SECOND
        for kind, (*frames, messages) in zip(self._kind_roles, self.core.take_series(), strict=True):
            if messages or any(frames):
                self._facts.add("series", second, *kind, messages, *frames)
        self._costs.write_if_many()

    def _charge(self, node: int, sent: Message | Bulk, messages: int = 1) -> None:
        """Charges the cost of a message to its cause, if it has one."""
        cause = sent.cause
        if cause:
            kind = self._kinds[type(sent) if isinstance(sent, Message) else sent.piece]
            self._costs.charge(node, kind, cause, messages, self.core.spent)

    def _count_totals(self) -> None:
        self._costs.write_totals(self.core.totals())
        for kind, subjects in self._followed.items():
            if subjects.note is None:
                continue
            for node, count in enumerate(self.core.skipped(kind)):
                if count:
                    self._ports[node].note(subjects.note, count)
        for node, port in enumerate(self._ports):
            for fact, count in sorted(port.notes.items()):
                self._facts.add("note", node, fact, count)
