"""The host of one broker: calls it, one call at a time, for everything that happens.

The rules this file owns:

* The broker is never re-entered: what arrives during a call waits for the next turn of the loop.
* `now` never goes back from one call to the next.
* **A broker that raises does not end the node.** The exception is logged, counted (`raised`) and shown in the status.
  Otherwise a stranger's frame that triggers a bug could switch devices off remotely; brokers rely on soft state, which
  recovers. Only a broker that cannot `start` ends the node.
* A publication is in the store, with everything that its broker kept for it, before its publisher gets its id and
  before any message about it is sent. It counts as handed over once the broker's messages were released. One that was
  not handed over is published again after a restart, under the same id.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable
from random import Random
from typing import Any, Final

import msgspec

from roamcast.bounded import put
from roamcast.content.context.expression import Context
from roamcast.content.context.text import parse_context
from roamcast.content.event import Event, event_id
from roamcast.content.filter import Filter
from roamcast.content.subscription import Publication, Subscription
from roamcast.content.text import parse_filter
from roamcast.content.widening import widened
from roamcast.errors import ContentError, RoamcastError
from roamcast.live import log
from roamcast.live.clock import Clock
from roamcast.live.control_messages import MAX_EVENT, EventForm, SubscribeRequest
from roamcast.live.facts import Facts
from roamcast.live.filters import FramedFilters
from roamcast.live.mailbox import Delivery, Mailbox, Pool
from roamcast.live.port import LivePort
from roamcast.live.senses import Senses
from roamcast.live.store import NOTHING_RECORDED, Store
from roamcast.live.subscribers import Subscribers
from roamcast.protocols.api import Broker, Node, Time
from roamcast.protocols.codec import FrameError
from roamcast.protocols.entry import Entry
from roamcast.protocols.messages import Bulk, Message, kind_of
from roamcast.units import seconds

_MAX_REMEMBERED: Final = 10_000
"""Own events whose time of publication is remembered, for the facts of their local delivery."""
MAX_UNSTORED: Final = 4096
"""Publications that may wait for the disk at a time."""


MAX_LIFETIME: Final = 1e9
"""Seconds, for events and subscriptions: 30 years."""


class Busy(RoamcastError):
    """The node cannot do this now; it may later."""


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
    ) -> None:
        self.node = node
        self.protocol = entry.name
        self._entry = entry
        self.counters: Counter[str] = Counter()
        self.subscribers = Subscribers(node, store.subscriptions_made, Pool(store, store.last_delivery))
        self._clock = clock
        self._store = store
        self._facts = facts
        self._codec = entry.codec()
        self._framed = FramedFilters(entry.messages)
        self._serial = store.serial
        self._unstored = 0
        self._published: dict[int, Time] = {}
        self._handed: list[int] = []
        self._inside = False
        self._ended = False
        self.port = LivePort(
            entry.name,
            lambda message: self._codec.encode(self._framed.sendable(message)),
            clock,
            store,
            facts,
            senses,
            wanted=self.subscribers.wanted,
            prepare=self.subscribers.prepare,
            deliver=self._deliver,
            unreachable=lambda to, message: self._later(self.broker.unreachable, to, message),
            left=lambda message: self._later(self.broker.left, message),
            dropped=lambda message: self._later(self.broker.dropped, message),
            ring=lambda now, key: self._call(self.broker.timer, key, due=now),
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
            stored_subscription = Subscription(number, parse_filter(text), left, *map(_context, contexts))
            mailbox = self.subscribers.add(stored_subscription, durable=True)
            self._begin(mailbox.subscription)
        self.subscribers.restore(self._store.waiting())
        self._record_the_rest()
        for stored in self._store.unhanded():
            publication = msgspec.msgpack.decode(stored.publication, type=Publication)
            log.info("published again: the broker had not got it", id=publication.event.id)
            self._hand_over(stored.serial, publication, stored.time - self._clock.epoch)

    def _record_the_rest(self) -> None:
        """Records publications whose facts were lost when the node was killed: the store still has them."""
        if not self._facts.recording:
            self._store.set_number("recorded", NOTHING_RECORDED)
            return
        recorded = self._store.recorded
        if recorded == NOTHING_RECORDED:
            recorded = self._serial
            self._store.set_number("recorded", recorded)
        # The node may have been killed after writing a part and before the mark; then the folder knows.
        written = self._facts.last_published - event_id(self.node, 1) + 1
        if written <= self._serial:  # otherwise the part belongs to another store
            recorded = max(recorded, written)
        for stored in self._store.publications():
            if stored.serial > recorded:
                publication = msgspec.msgpack.decode(stored.publication, type=Publication)
                self._facts.published(stored.time - self._clock.epoch, publication)

    async def stop(self) -> None:
        """Stops calling the broker."""
        self._ended = True
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
        self._facts.count(self._clock.now(), kind_of(type(message)), receptions=1)
        self._call(self.broker.receive, sender, message)

    # --- From applications ------------------------------------------------------------------------------------------

    async def publish(self, form: EventForm) -> int:
        """Publishes an event; returns its id when it is on disk."""
        number = self._accept(form)
        try:
            await self._store.committed()
        finally:
            self._unstored -= 1
        return number

    def publish_then(self, form: EventForm, stored: Callable[[BaseException | None], None]) -> int:
        """Publishes an event, returns its id at once, and calls back when it is on disk."""

        def written(problem: BaseException | None) -> None:
            self._unstored -= 1
            stored(problem)

        number = self._accept(form)
        self._store.then(written)
        return number

    def _accept(self, form: EventForm) -> int:
        if form.id:
            raise ContentError("an event gets its id from its node: publish it without one")
        event = form.event(event_id(self.node, self._serial + 1))
        publication = Publication(
            event, _lifetime(form.lifetime), _context(form.relevance), _context(form.subscription_domain)
        )
        self._refuse_unsupported(publication)
        encoded = msgspec.msgpack.encode(publication)
        if len(encoded) > MAX_EVENT:
            raise ContentError(f"an event of {len(encoded)} bytes: the longest has {MAX_EVENT}")
        if self._unstored >= MAX_UNSTORED:
            raise Busy(f"{self._unstored} publications wait for the disk: try again later")
        self._serial += 1
        now = self._clock.now()
        self._store.add_publication(self._serial, encoded, self._clock.epoch + now)
        self._facts.published(now, publication)
        self.counters["published"] += 1
        self._hand_over(self._serial, publication, now)
        self._unstored += 1
        return event.id

    def _refuse_unsupported(self, wanted: Publication | Subscription) -> None:
        for refusal in self._entry.refusals(wanted, self.broker.params):
            raise ContentError(f"{refusal}: this node runs {self.protocol}")

    def _hand_over(self, serial: int, publication: Publication, published: Time) -> None:
        """`published` is the time of publication: before a restart, part of the lifetime may have passed already."""
        put(self._published, publication.event.id, published, _MAX_REMEMBERED)
        if publication.lifetime is not None:
            left = publication.lifetime - max(0, self._clock.now() - published)
            publication = msgspec.structs.replace(publication, lifetime=max(0, left))
        self._call(self.broker.publish, publication)
        # After the commit with the publication: the mark goes with a later commit.
        self._store.then(lambda problem: self._handed.append(serial))

    async def subscribe(self, request: SubscribeRequest) -> Mailbox:
        """A mailbox that fills from now on. An existing durable subscription continues, with the events that wait."""
        wanted, number, durable = parse_filter(request.filter), request.id, request.durable
        contexts = _context(request.interest), _context(request.publication_domain)
        if durable and number is None:
            raise ContentError("a durable subscription needs an id, to be found by again")
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
        return await self._subscribe_anew(subscription, number, durable)

    async def _subscribe_anew(self, subscription: Subscription, number: int | None, durable: bool) -> Mailbox:
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
        try:
            await self._store.committed()
        except BaseException:  # the caller has gone meanwhile
            self.leave(mailbox)
            raise
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

    def _deliver(
        self, event: Event, subscriptions: tuple[int, ...], hops: int, via: str, prepared: list[Delivery]
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
        """The number of entries in the tables of the broker and of the port."""
        return self.broker.tables() | self.port.tables


def _context(text: str | None) -> Context | None:
    return None if text is None else parse_context(text)


def _wants(subscription: Subscription) -> tuple[Filter, Context | None, Context | None]:
    """What makes two subscriptions the same, apart from their ids and lifetimes."""
    return subscription.filter, subscription.interest, subscription.publication_domain


def _lifetime(amount: float | None) -> Time | None:
    """A lifetime in ns, from an application's seconds."""
    if amount is not None and not 0 <= amount <= MAX_LIFETIME:
        raise ContentError(f"a lifetime is from 0 to {MAX_LIFETIME:g} s, not {amount:g}")
    return None if amount is None else seconds(amount)
