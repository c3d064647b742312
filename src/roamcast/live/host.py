"""The host of one broker: everything that happens to it comes through here, one call at a time.

The rules this file owns:

* The broker is never re-entered: what arrives during a call of it waits for the next turn of the loop.
* `now` never goes back from one call to the next.
* **A broker that raises does not end the node.** It is logged, counted (`raised`) and told by the status. A frame from
  a stranger that trips a defect would otherwise be a way to switch devices off from afar; brokers live on soft state,
  which heals. Only a broker that cannot `start` ends the node: there is nothing to go on with.
* A publication is in the store, with all that its broker kept for it, before its publisher gets its id and before
  anything of it leaves; it counts as handed over when what the broker said to it was let out. One that was not is
  published again when the node comes back, under the same id.
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
from roamcast.live.control_messages import MAX_EVENT, Ask, EventForm
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
"""Own events whose time of publication is remembered, for the facts of their delivery here."""
MAX_UNSTORED: Final = 4096
"""Publications that may wait for the disk at a time."""


MAX_LIFETIME: Final = 1e9
"""Seconds, of an event or a subscription: 30 years."""


class Busy(RoamcastError):
    """Asked for more than the node can do now; later it may."""


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
        """Begins, or begins again: what was kept, the durable subscriptions, the publications not handed over."""
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
        """Publications whose facts went down with a former life are in the log still."""
        if not self._facts.recording:
            self._store.set_number("recorded", NOTHING_RECORDED)
            return
        recorded = self._store.recorded
        if recorded == NOTHING_RECORDED:
            recorded = self._serial
            self._store.set_number("recorded", recorded)
        # A life may have ended between the writing of a part and of the mark; the folder knows then.
        written = self._facts.last_published - event_id(self.node, 1) + 1
        if written <= self._serial:  # else another store's: this one began elsewhere
            recorded = max(recorded, written)
        for stored in self._store.publications():
            if stored.serial > recorded:
                publication = msgspec.msgpack.decode(stored.publication, type=Publication)
                self._facts.published(stored.time - self._clock.epoch, publication)

    async def stop(self) -> None:
        """From now on the broker is left alone."""
        self._ended = True
        self.port.agenda.close()

    def before_commit(self) -> None:
        """What goes with the next commit and does not need one of its own."""
        for serial in self._handed:
            self._store.hand(serial)
        self._handed.clear()
        self.subscribers.pool.before_commit()

    @property
    def uncommitted(self) -> bool:
        """Whether a commit has something to take along."""
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
        """Publishes an event, and gives its id when it is on disk."""
        number = self._accept(form)
        try:
            await self._store.committed()
        finally:
            self._unstored -= 1
        return number

    def publish_then(self, form: EventForm, stored: Callable[[BaseException | None], None]) -> int:
        """Publishes an event, gives its id at once, and calls back when it is on disk."""

        def told(problem: BaseException | None) -> None:
            self._unstored -= 1
            stored(problem)

        number = self._accept(form)
        self._store.then(told)
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

    def _refuse_unsupported(self, asked: Publication | Subscription) -> None:
        for refusal in self._entry.refusals(asked, self.broker.params):
            raise ContentError(f"{refusal}: this node runs {self.protocol}")

    def _hand_over(self, serial: int, publication: Publication, published: Time) -> None:
        """`published` is when: of one that a former life has not handed over, some of its life has passed."""
        put(self._published, publication.event.id, published, _MAX_REMEMBERED)
        if publication.lifetime is not None:
            left = publication.lifetime - max(0, self._clock.now() - published)
            publication = msgspec.structs.replace(publication, lifetime=max(0, left))
        self._call(self.broker.publish, publication)
        # After the commit that has the publication, so that the mark goes with a later one.
        self._store.then(lambda problem: self._handed.append(serial))

    async def subscribe(self, asked: Ask) -> Mailbox:
        """A mailbox that fills from now on; a durable one that is there is taken up again with what waits in it."""
        wanted, number, durable = parse_filter(asked.filter), asked.id, asked.durable
        contexts = _context(asked.interest), _context(asked.publication_domain)
        if durable and number is None:
            raise ContentError("a durable subscription needs an id, to be found by again")
        if number is not None and not 0 <= number < 2**63:
            raise ContentError(f"a subscription's id is from 0 to 2^63 - 1, not {number}")
        former = self.subscribers.get(number) if number is not None else None
        if former is not None and former.listening:
            raise Busy(f"subscription {number} has a listener already")
        if former is not None and former.durable and durable and _wants(former.subscription) == (wanted, *contexts):
            former.listening = True
            if asked.after is not None:
                former.forget(asked.after)
            return former
        given = self.subscribers.next_number if number is None else number
        subscription = Subscription(given, wanted, _lifetime(asked.lifetime), *contexts)
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
        except BaseException:  # whoever asked has gone meanwhile
            self.leave(mailbox)
            raise
        return mailbox

    def leave(self, mailbox: Mailbox) -> None:
        """A listener is gone; with it its subscription, unless that is durable."""
        mailbox.listening = False
        if mailbox.ended:
            mailbox.clear()
        elif not mailbox.durable:
            self.unsubscribe(mailbox.subscription.id)

    def unsubscribe(self, number: int) -> bool:
        """Ends a subscription; whether there was one."""
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
        # Others hear of it: what is too long for a frame is widened here, and `_deliver` looks at it as it is.
        shown = msgspec.structs.replace(subscription, filter=widened(subscription.filter))
        self._call(self.broker.subscribe, shown)
        if subscription.lifetime is not None:
            end = self._clock.now() + subscription.lifetime + self.broker.linger
            self.port.agenda.plan(end, lambda now: self._expire(subscription))

    def _expire(self, subscription: Subscription) -> None:
        """A subscription's lifetime is over, unless another has taken its place."""
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
        """How full the tables are: the broker's own, and the port's."""
        return self.broker.tables() | self.port.tables


def _context(text: str | None) -> Context | None:
    return None if text is None else parse_context(text)


def _wants(subscription: Subscription) -> tuple[Filter, Context | None, Context | None]:
    """What makes it the same subscription, but for its id and its end."""
    return subscription.filter, subscription.interest, subscription.publication_domain


def _lifetime(amount: float | None) -> Time | None:
    """A lifetime in seconds, as an application gives it."""
    if amount is not None and not 0 <= amount <= MAX_LIFETIME:
        raise ContentError(f"a lifetime is from 0 to {MAX_LIFETIME:g} s, not {amount:g}")
    return None if amount is None else seconds(amount)
