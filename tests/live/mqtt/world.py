"""A world for MQTT sessions without sockets, disks or clocks: a test says when something is on disk, and kills it."""

import itertools
from collections.abc import Callable
from typing import Any

from roamcast.content.subscription import Subscription
from roamcast.content.text import parse_filter
from roamcast.errors import ContentError, RoamcastError
from roamcast.live.control_messages import DeliveredEvent, EventForm, SubscribeRequest, SubscriberMessage
from roamcast.live.mailbox import Mailbox, Pool, QueuedDelivery
from roamcast.live.mqtt.packets import V5, Connack, Connect, Packet, PacketError, Publish
from roamcast.live.mqtt.server import MqttConnection
from roamcast.live.mqtt.session import MqttSession
from roamcast.live.mqtt.sessions import Sessions
from roamcast.live.mqtt.wire import Parser
from roamcast.live.mqtt.world import MqttWorld
from roamcast.live.store import Store


class Shelf(Store):
    def __init__(self) -> None: ...
    def add_delivery(self, number: int, packed: bytes, subscriptions: Any) -> None: ...  # noqa: ANN401
    def remove_delivery(self, number: int) -> None: ...
    def remove_waiting(self, subscription: int, number: int) -> None: ...
    async def delivery(self, number: int) -> bytes | None: ...


class Later:
    def __init__(self, at: float, call: Callable[[], None]) -> None:
        self.at, self.call = at, call
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeWorld(MqttWorld):
    """Everything asynchronous happens in `settle`."""

    takes_lifetimes = False

    def __init__(self, disk: dict[str, bytes] | None = None, events: list[EventForm] | None = None) -> None:
        self.disk = disk if disk is not None else {}
        self.events = events if events is not None else []
        """Published and on disk."""
        self.time = 1000.0
        self.refuses: RoamcastError | None = None
        self.pool = Pool(Shelf())
        self.mailboxes: dict[int, Mailbox] = {}
        self._calls: list[Callable[[], None]] = []
        self._writes: list[Callable[[], None]] = []
        self._when_written: list[Callable[[], None]] = []
        self.timers: list[Later] = []
        self._numbers = itertools.count(1)
        self._ids = itertools.count((7 << 32) + 1 + len(self.events))

    def publish(self, form: EventForm, told: Callable[[int, BaseException | None], None], along: Any) -> None:  # noqa: ANN401
        if self.refuses is not None:
            raise self.refuses
        form.event()
        number = next(self._ids)
        stored = DeliveredEvent.of(form.event(number))
        self._writes.append(lambda: self.events.append(form))
        along()
        self.then(lambda: self._deliver(stored))
        self.then(lambda: told(number, None))

    def _deliver(self, form: DeliveredEvent) -> None:
        for mailbox in list(self.mailboxes.values()):
            if mailbox.subscription.filter.matches(form.event):
                self.put(mailbox, SubscriberMessage(event=form, hops=0, via="local", published=self.time))

    def subscribe(self, request: SubscribeRequest, done: Callable[[Mailbox | RoamcastError], None]) -> None:
        def subscribe() -> None:
            number = request.id if request.id is not None else next(self._numbers)
            mailbox = self.mailboxes.get(number)
            if mailbox is None:
                mailbox = Mailbox(Subscription(number, parse_filter(request.filter)), request.durable, self.pool)
                self.mailboxes[number] = mailbox
            if mailbox.listening:
                done(ContentError("it has a listener"))
                return
            mailbox.listening = True
            done(mailbox)

        self.soon(subscribe)

    def unsubscribe(self, number: int) -> None:
        mailbox = self.mailboxes.pop(number, None)
        if mailbox is not None:
            mailbox.end()

    def leave(self, mailbox: Mailbox) -> None:
        mailbox.listening = False
        if not mailbox.durable:
            self.unsubscribe(mailbox.subscription.id)

    def number_of(self, client_id: str, topic_filter: str) -> int:
        return hash((client_id, topic_filter)) & (2**62 - 1)

    def put(self, mailbox: Mailbox, message: SubscriberMessage) -> None:
        mailbox.put(self.pool.new(message, (mailbox.subscription.id,) if mailbox.durable else ()))

    def fetch(self, delivery: QueuedDelivery, done: Callable[[bytes | None], None]) -> None:
        raise AssertionError("everything is in memory here")

    @property
    def latest(self) -> int:
        return self.pool.last

    def keep(self, key: str, value: bytes) -> None:
        self._writes.append(lambda: self.disk.__setitem__(key, value))

    def forget(self, key: str) -> None:
        def forget() -> None:
            self.disk.pop(key, None)

        self._writes.append(forget)

    def then(self, call: Callable[[], None]) -> None:
        self._when_written.append(call)

    def soon(self, call: Callable[[], None]) -> None:
        self._calls.append(call)

    def later(self, seconds: float, call: Callable[[], None]) -> Later:
        timer = Later(self.time + seconds, call)
        self.timers.append(timer)
        return timer

    def now(self) -> float:
        return self.time

    # --- For tests --------------------------------------------------------------------------------------------------

    def write_disk(self) -> None:
        """Commits, and tells nobody: a node that is killed right then has done so."""
        writes, self._writes = self._writes, []
        for write_one in writes:
            write_one()

    def settle(self, *, disk: bool = True) -> None:
        """Does everything that can be done, with a disk that works or stands still."""
        while self._calls or (disk and (self._writes or self._when_written)):
            calls, self._calls = self._calls, []
            for call in calls:
                call()
            if disk:
                self.write_disk()
                waiting, self._when_written = self._when_written, []
                for call in waiting:
                    call()

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        for timer in sorted(self.timers, key=lambda timer: timer.at):
            if not timer.cancelled and timer.at <= self.time:
                timer.cancelled = True
                timer.call()
        self.settle()

    def killed(self) -> "FakeWorld":
        """Another world, after `kill -9`: it has what was on disk. (Mailboxes too are on disk.)"""
        after = FakeWorld(self.disk, self.events)
        after.time, after.mailboxes, after.pool = self.time, self.mailboxes, self.pool
        for mailbox in after.mailboxes.values():
            mailbox.listening = False
        return after


class FakeClient(MqttConnection):
    """A client at the other end of a link."""

    def __init__(self, sessions: Sessions, world: FakeWorld, version: int = V5) -> None:
        self.version = version
        self.clogged = False
        self.ended: int | None = None
        self.session: MqttSession | None = None
        self._sessions, self._world = sessions, world
        self._parser = Parser(10**6, version)
        self._got: list[Packet] = []

    def write(self, data: bytes) -> None:
        assert self.ended is None, "nothing is sent after the end"
        self._parser.feed(data)
        while (packet := self._parser.next()) is not None:
            self._got.append(packet)

    def end(self, reason: int, words: str = "") -> None:
        self.ended = reason
        if self.session is not None:
            self._sessions.disconnected(self.session, self)

    def resume(self) -> None: ...

    def connect(self, client_id: str = "c", **options: Any) -> Connack:  # noqa: ANN401  # of Connect
        packet = Connect(client_id, self.version, **options)
        self.session = self._sessions.connect(self, packet, lambda: None)
        self._world.settle()
        answer = self._got.pop(0)
        assert isinstance(answer, Connack)
        return answer

    def send(self, *packets: Packet, disk: bool = True) -> list[Packet]:
        """Sends packets; gives what comes back."""
        assert self.session is not None
        for packet in packets:
            try:
                self.session.receive(packet)
            except PacketError as problem:
                self.end(problem.reason)
                break
            self._world.settle(disk=disk)
        return self.got()

    def got(self) -> list[Packet]:
        self._world.settle()
        found, self._got = self._got, []
        return found

    def messages(self) -> list[Publish]:
        return [packet for packet in self.got() if isinstance(packet, Publish)]

    def lose(self) -> None:
        assert self.session is not None
        self._sessions.disconnected(self.session, self)
        self._world.settle()
