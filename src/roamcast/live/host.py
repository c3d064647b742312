"""The host of one broker: calls it, one call at a time, for everything that happens.

The rules this file owns:

* The broker is never re-entered: what arrives during a call waits for the next turn of the loop.
* `now` never goes back from one call to the next.
* **A broker that raises does not end the node.** The exception is logged, counted (`raised`) and shown in the status.
  Otherwise a stranger's frame that triggers a bug could switch devices off remotely; brokers rely on soft state, which
  recovers. Only a broker that cannot `start` ends the node.
* **A publication that was acknowledged is stored and will be sent.** It is in the store, with everything that its
  broker kept for it, before its publisher gets its id and before any message about it is sent. The messages that the
  broker sends when it publishes are promised: a full queue does not drop them. A publication is handed over once they
  have been sent; one that was not is published again after a restart, under the same id.
* So few publications are under way at a time; `under_way.py` has the others wait.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from random import Random
from typing import Any, Final

import msgspec

from roamcast.bounded import put
from roamcast.content.context.expression import Context
from roamcast.content.context.text import parse_context
from roamcast.content.event import Event, event_id
from roamcast.content.filter import Filter
from roamcast.content.structure import Decoder, Limits, check
from roamcast.content.subscription import Publication, Subscription
from roamcast.content.text import parse_filter
from roamcast.content.widening import widened
from roamcast.errors import ContentError
from roamcast.live import log
from roamcast.live.admission import Admission, NotCertified
from roamcast.live.authors import Authors
from roamcast.live.clock import Clock
from roamcast.live.control_messages import MAX_EVENT, EventForm, SubscribeRequest
from roamcast.live.facts import Facts
from roamcast.live.filters import FramedFilters
from roamcast.live.introductions import Introduction
from roamcast.live.mailbox import Mailbox, Pool, QueuedDelivery
from roamcast.live.port import LivePort, Promise
from roamcast.live.senses import Senses
from roamcast.live.store import NOTHING_RECORDED, Store, StoredPublication, called
from roamcast.live.subscribers import Subscribers
from roamcast.live.under_way import Busy, Told, UnderWay
from roamcast.protocols.api import Broker, Node, Time
from roamcast.protocols.codec import Codec, FrameError
from roamcast.protocols.entry import Entry
from roamcast.protocols.messages import Bulk, Message, kind_of
from roamcast.units import seconds

_MAX_REMEMBERED: Final = 10_000
"""Own events whose time of publication is remembered, for the facts of their local delivery."""

MAX_LIFETIME: Final = 1e9
"""Seconds, for events and subscriptions: 30 years."""


_LIMITS: Final = Limits(MAX_EVENT)
_PUBLICATION: Final = Decoder[Publication](Publication, _LIMITS)


def _nothing() -> None:
    pass


class Host:
    def __init__(
        self,
        node: Node,
        entry: Entry,
        params: msgspec.Struct,
        rng: Random,
        clock: Clock,
        store: Store,
        facts: Facts,
        senses: Senses,
        authors: Authors | None = None,
    ) -> None:
        """Without `authors`, events are neither signed nor checked."""
        self.node = node
        self.protocol = entry.name
        self._entry = entry
        self.counters: Counter[str] = Counter()
        self.subscribers = Subscribers(node, store.numbers["subscriptions"], Pool(store, store.numbers["deliveries"]))
        self._clock = clock
        self._store = store
        self._facts = facts
        self._codec = Codec((*entry.messages, Introduction))
        self._framed = FramedFilters(entry.messages)
        self._serial = store.numbers["serial"]
        self.under_way = UnderWay(self._accept, self.counters)
        self._published: dict[int, Time] = {}
        self._handed: list[int] = []
        self._inside = False
        self._ended = False
        self.port = LivePort(self, entry.name, clock, store, facts, senses)
        self.admission = Admission(
            authors, entry.messages, self.port.agenda, Random(), self.counters, send=self._introduce, admit=self._admit
        )
        facts.on_recorded = lambda event: store.set_number("recorded", event - event_id(node, 1) + 1)
        self.broker: Broker[Any] = entry.broker(node, params, self.port, rng)

    def start(self) -> None:
        """Starts the broker with what it kept, the durable subscriptions, and the publications not handed over."""
        kept = self._store.kept(self.protocol)
        self.port.now = self._clock.now()
        self.broker.start(self.port.now, kept)
        self.port.release()
        for number, text, until, *contexts in self._store.subscriptions():
            left = None if until is None else until - self._clock.epoch - self._clock.now()
            if left is not None and left <= 0:
                self._store.remove_subscription(number)
                continue
            stored_subscription = Subscription(number, parse_filter(text), left, *map(self._context, contexts))
            mailbox = self.subscribers.add(stored_subscription, durable=True)
            self._begin(mailbox.subscription)
        self.subscribers.restore(self._store.waiting())
        self._record_the_rest()
        self.admission.greet(self._clock.now())
        for stored, publication in _readable(self._store.unhanded()):
            log.info("published again: the broker had not got it", id=publication.event.id)
            try:
                signed = self.admission.signed(publication, stored.time, self.broker.block)
            except NotCertified as problem:
                log.warn("a publication waits for the node's certificate", reason=str(problem))
                continue
            size, published = len(stored.publication), stored.time - self._clock.epoch
            self._hand_over(stored.serial, signed, size, published)

    def _record_the_rest(self) -> None:
        """Records publications whose facts were lost when the node was killed: the store still has them."""
        if not self._facts.recording:
            self._store.set_number("recorded", NOTHING_RECORDED)
            return
        recorded = self._store.numbers["recorded"]
        if recorded == NOTHING_RECORDED:
            recorded = self._serial
            self._store.set_number("recorded", recorded)
        # The node may have been killed after writing a part and before the mark; then the folder knows.
        written = self._facts.last_published - event_id(self.node, 1) + 1
        if written <= self._serial:  # otherwise the part belongs to another store
            recorded = max(recorded, written)
        missing = (stored for stored in self._store.publications() if stored.serial > recorded)
        for stored, publication in _readable(missing):
            self._facts.published(stored.time - self._clock.epoch, publication)

    async def stop(self) -> None:
        """Stops calling the broker."""
        self._ended = self.under_way.ended = self.port.ending = True
        self.port.agenda.close()

    def before_commit(self) -> None:
        """Queues what goes with the next commit and needs none of its own."""
        for serial in self._handed:
            self._store.hand(serial)
        self._handed.clear()
        self.subscribers.pool.before_commit()

    @property
    def uncommitted(self) -> bool:
        """Whether something waits to go with a commit."""
        return bool(self._handed) or self.subscribers.pool.uncommitted

    # --- From the air -----------------------------------------------------------------------------------------------

    def receive(self, sender: Node, payload: bytes) -> None:
        try:
            message = self._codec.decode(payload)
        except FrameError:
            self.counters["not a message"] += 1
            return
        if not self._framed.acceptable(message):
            self.counters["too long a filter"] += 1
            return
        now = self._clock.now()
        self._facts.count(now, kind_of(type(message)), receptions=1)
        self.admission.hear(now, sender, message, len(payload))

    def vouches(self, sender: Node, payload: bytes) -> bool:
        """Whether a message of a stranger shows who the stranger is: for a link whose table is full."""
        try:
            return self.admission.vouches(sender, self._codec.decode(payload))
        except FrameError:
            return False

    def _admit(self, sender: Node, message: Message) -> None:
        self._call(self.broker.receive, sender, message)

    def _introduce(self, to: Node | None, message: Introduction) -> None:
        if to is None:
            self.port.broadcast(message)
        else:
            self.port.unicast(to, message)
        if not self._inside:
            self.port.release()

    # --- From applications ------------------------------------------------------------------------------------------

    async def publish(self, form: EventForm) -> int:
        """Publishes an event; returns its id when it is on disk and will be sent."""
        return await called(lambda told: self.publish_then(form, told))

    def publish_then(self, form: EventForm, told: Told, along: Callable[[], None] = _nothing) -> None:
        """Publishes an event, or waits until it can, and calls back; raises if it is refused at once. What `along`
        queues for the store goes with the commit that has the publication."""
        self.under_way.add(form, told, along)

    def _accept(self, form: EventForm, told: Told, along: Callable[[], None]) -> None:
        event = form.event(event_id(self.node, self._serial + 1))
        publication = Publication(
            event, _lifetime(form.lifetime), self._context(form.relevance), self._context(form.subscription_domain)
        )
        self._refuse_unsupported(publication)
        now = self._clock.now()
        publication = self.admission.signed(publication, self._clock.epoch + now, self.broker.block)
        encoded = msgspec.msgpack.encode(publication)
        if len(encoded) > MAX_EVENT:
            raise ContentError(f"an event of {len(encoded)} bytes: the longest has {MAX_EVENT}")
        check(encoded, _LIMITS)
        self._serial += 1
        self._store.add_publication(self._serial, encoded, self._clock.epoch + now)
        along()
        self._facts.published(now, publication)
        self.counters["published"] += 1
        self._hand_over(self._serial, publication, len(encoded), now)
        self._store.then(lambda problem: told(event.id, problem))

    @property
    def takes_lifetimes(self) -> bool:
        return "lifetimes" in self._entry.understands

    def _context(self, text: str | None) -> Context | None:
        return None if text is None else parse_context(text, self.port.here(self._clock.now()))

    def _refuse_unsupported(self, wanted: Publication | Subscription) -> None:
        for refusal in self._entry.refusals(wanted, self.broker.params):
            raise ContentError(f"{refusal}: this node runs {self.protocol}")

    def _hand_over(self, serial: int, publication: Publication, size: int, published: Time) -> None:
        """`published` is the time of publication: before a restart, part of the lifetime may have passed already."""
        put(self._published, publication.event.id, published, _MAX_REMEMBERED)
        if publication.lifetime is not None:
            left = publication.lifetime - max(0, self._clock.now() - published)
            publication = msgspec.structs.replace(publication, lifetime=max(0, left))
        self.under_way.begin(serial, size)
        promise = Promise(lambda: self._handed_over(serial))

        def publish(now: Time, publication: Publication) -> None:
            self.port.promise = promise
            try:
                self.broker.publish(now, publication)
            finally:
                self.port.promise = None
                # After the commit with the publication: the mark goes with a later commit.
                self._store.then(lambda problem: promise.done() if problem is None else None)

        self._call(publish, publication)

    def _handed_over(self, serial: int) -> None:
        self._handed.append(serial)
        self.under_way.end(serial)

    async def subscribe(self, request: SubscribeRequest) -> Mailbox:
        """As `begin_subscription`, and on disk."""
        mailbox = self.begin_subscription(request)
        try:
            await self._store.committed()
        except BaseException:  # the caller has gone meanwhile
            self.leave(mailbox)
            raise
        return mailbox

    def begin_subscription(self, request: SubscribeRequest) -> Mailbox:
        """A mailbox that fills from now on. An existing durable subscription continues, with the events that wait."""
        wanted, number, durable = parse_filter(request.filter), request.id, request.durable
        contexts = self._context(request.interest), self._context(request.publication_domain)
        if durable and number is None:
            raise ContentError("a durable subscription needs an id, so that it can be resumed")
        if number is not None and not 0 <= number < 2**63:
            raise ContentError(f"a subscription's id is from 0 to 2^63 - 1, not {number}")
        former = self.subscribers.get(number) if number is not None else None
        if former is not None and former.listening:
            raise Busy(f"subscription {number} has a listener already")
        if former is not None and former.durable and durable and _wants(former.subscription) == (wanted, *contexts):
            former.listening = True
            if request.after is not None:
                former.forget(request.after)
            return former
        given = self.subscribers.next_number if number is None else number
        subscription = Subscription(given, wanted, _lifetime(request.lifetime), *contexts)
        self._refuse_unsupported(subscription)
        return self._subscribe_anew(subscription, number, durable)

    def _subscribe_anew(self, subscription: Subscription, number: int | None, durable: bool) -> Mailbox:
        mailbox = self.subscribers.add(subscription, durable)
        mailbox.listening = True
        if number is None:
            self._store.set_number("subscriptions", self.subscribers.made)
        elif durable:
            life, wall = subscription.lifetime, self._clock.epoch + self._clock.now()
            texts = (None if part is None else str(part) for part in _wants(subscription)[1:])
            self._store.add_subscription(
                number, str(subscription.filter), life if life is None else wall + life, *texts
            )
        else:
            self._store.remove_subscription(number)
        self._begin(mailbox.subscription)
        return mailbox

    def leave(self, mailbox: Mailbox) -> None:
        """A listener is gone, and so is its subscription, unless it is durable."""
        mailbox.listening = False
        if mailbox.ended:
            mailbox.clear()
        elif not mailbox.durable:
            self.unsubscribe(mailbox.subscription.id)

    def unsubscribe(self, number: int) -> bool:
        """Ends a subscription; returns whether there was one."""
        mailbox = self.subscribers.get(number)
        if mailbox is None:
            return False
        self.subscribers.remove(number)
        if mailbox.durable:
            self._store.remove_subscription(number)
        self._facts.unsubscribed(self._clock.now(), number)
        self._call(self.broker.unsubscribe, number)
        return True

    def _begin(self, subscription: Subscription) -> None:
        self._facts.subscribed(self._clock.now(), subscription)
        # The filter is sent to other nodes: one that is too long for a frame is widened, and `_deliver` uses the exact
        # one.
        shown = msgspec.structs.replace(subscription, filter=widened(subscription.filter))
        self._call(self.broker.subscribe, shown)
        if subscription.lifetime is not None:
            end = self._clock.now() + subscription.lifetime + self.broker.linger
            self.port.agenda.plan(end, lambda now: self._expire(subscription))

    def _expire(self, subscription: Subscription) -> None:
        """Ends a subscription whose lifetime is over, unless another has taken its place."""
        mailbox = self.subscribers.get(subscription.id)
        if mailbox is not None and mailbox.subscription is subscription:
            self.unsubscribe(subscription.id)

    # --- For the port -----------------------------------------------------------------------------------------------

    def encode(self, message: Message) -> bytes:
        return self._codec.sendable(self._framed.sendable(message))

    def unreachable(self, to: Node, message: Message) -> None:
        if not isinstance(message, Introduction):
            self._later(self.broker.unreachable, to, message)

    def left(self, message: Message | Bulk) -> None:
        self._later(self.broker.left, message)

    def dropped(self, message: Message | Bulk) -> None:
        self._later(self.broker.dropped, message)

    def ring(self, now: Time, key: Hashable) -> None:
        self._call(self.broker.timer, key, due=now)

    def prepare(
        self, event: Event, subscriptions: tuple[int, ...], hops: int, via: str
    ) -> tuple[tuple[int, ...], list[QueuedDelivery]]:
        """The subscriptions that get an event, and its deliveries."""
        wanted = self.subscribers.wanted(event, subscriptions)
        authorship = self.admission.authorship(event)
        if authorship is None:
            return (), []
        return wanted, self.subscribers.prepare(event, wanted, hops, via, authorship)

    def deliver(
        self, event: Event, subscriptions: tuple[int, ...], hops: int, via: str, prepared: list[QueuedDelivery]
    ) -> None:
        if not subscriptions:
            return
        self.counters["delivered"] += 1
        self._facts.delivered(self._clock.now(), event.id, subscriptions, self._published.get(event.id), hops, via)
        self.subscribers.deliver(prepared, subscriptions)

    # --- The broker -------------------------------------------------------------------------------------------------

    def _call(
        self, method: Callable[..., None], *arguments: Hashable | Message | Bulk, due: Time | None = None
    ) -> None:
        if self._ended:
            return
        if self._inside:
            self._later(method, *arguments)
            return
        self._inside = True
        self.port.now = now = self._clock.now(due)
        try:
            method(now, *arguments)
        except Exception as problem:
            self.counters["raised"] += 1
            self._facts.note("raised")
            log.error("the broker raised", problem, call=method.__name__)
        finally:
            self._inside = False
        self.port.release()

    def _later(self, method: Callable[..., None], *arguments: Hashable | Message | Bulk) -> None:
        asyncio.get_running_loop().call_soon(self._call, method, *arguments)

    @property
    def tables(self) -> dict[str, int]:
        """The number of entries in the tables of the broker, of the port and of publications."""
        return self.broker.tables() | self.port.tables | self.admission.tables | self.under_way.tables


def _readable(publications: Iterable[StoredPublication]) -> Iterator[tuple[StoredPublication, Publication]]:
    """Stored publications, decoded; those that this version refuses are told by name."""
    for stored in publications:
        try:
            yield stored, _PUBLICATION.decode(stored.publication)
        except ContentError as problem:
            log.error("a stored publication cannot be used", serial=stored.serial, reason=str(problem))


def _wants(subscription: Subscription) -> tuple[Filter, Context | None, Context | None]:
    """What makes two subscriptions the same, apart from their ids and lifetimes."""
    return subscription.filter, subscription.interest, subscription.publication_domain


def _lifetime(amount: float | None) -> Time | None:
    """A lifetime in ns, from an application's seconds."""
    if amount is not None and not 0 <= amount <= MAX_LIFETIME:
        raise ContentError(f"a lifetime is from 0 to {MAX_LIFETIME:g} s, not {amount:g}")
    return None if amount is None else seconds(amount)
