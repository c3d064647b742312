"""Context-aware publish/subscribe on one host.

Frey and Roman, "Context-Aware Publish Subscribe in Mobile Ad Hoc Networks" (2007), section 3. Events are held by the
hosts in their region of relevance, subscriptions by those in their region of interest. A host in both finds that they
match and sends the event to the subscriber, or, where the subscription has a publication domain, a request to the
publisher, which sends it. The subscriber decides the subscription domain. `docs/protocols/context.md` has the choices
that the paper leaves open.

What has no context is relevant or wanted everywhere: it is flooded. Where neither has one, the subscriber itself is a
host in both contexts and does the matching; nobody else need send it anything. An event without a lifetime is
instantaneous (section 2.3: "those available in traditional publish-subscribe middleware").
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from random import Random
from typing import Any, Final

from roamcast.bounded import put
from roamcast.content.context.evaluate import evaluate, holds
from roamcast.content.context.expression import Context
from roamcast.content.context.host import HostView, Situation
from roamcast.content.context.rules import (
    PUBLICATION_DOMAIN,
    SUBSCRIPTION_DOMAIN,
    check_domain,
    check_interest,
    check_relevance,
    query_distance,
)
from roamcast.content.event import Event, EventId
from roamcast.content.index import FilterIndex
from roamcast.content.region import Circle, Rectangle
from roamcast.content.subscription import Publication, Subscription
from roamcast.errors import ContentError
from roamcast.protocols.api import Broker, Node, Port, Time
from roamcast.protocols.context.facts import Holding, Match
from roamcast.protocols.context.geocast import Geocast, Heard, LocalMinimum, Routed
from roamcast.protocols.context.messages import (
    MAX_DIGEST,
    MESSAGES,
    Answer,
    Beacon,
    Digest,
    EventItem,
    EventRefresh,
    Matched,
    Published,
    Query,
    Request,
    Subscribed,
    SubscriptionItem,
    SubscriptionRefresh,
)
from roamcast.protocols.context.neighbours import BEACON, BeaconClock, Surroundings
from roamcast.protocols.context.own import Own
from roamcast.protocols.context.params import ContextParams
from roamcast.protocols.context.presence import Presence, Whereabouts
from roamcast.protocols.context.query import Queries
from roamcast.protocols.context.reachability import is_safe, reachability
from roamcast.protocols.context.tables import Held, ItemTable, target
from roamcast.protocols.entry import Entry
from roamcast.protocols.messages import MAX_HOPS, Message
from roamcast.units import seconds

_CHECK: Final = "check"
_HELD_REFRESHES: Final = 3
"""Refreshes that may be missed before others let go of a subscription without end."""


class ContextBroker(Broker[ContextParams]):
    def __init__(self, node: Node, params: ContextParams, port: Port, rng: Random) -> None:
        super().__init__(node, params, port, rng)
        interval = seconds(params.interval)
        self._refresh = seconds(params.refresh)
        self._check_interval = seconds(params.check)
        self._grace = seconds(params.grace)
        self._whereabouts = Whereabouts(port, interval, params.key_attributes)
        self._around = Surroundings(
            self._whereabouts, seconds(params.interval * params.lifetime), params.neighbours, 2 * seconds(params.check)
        )
        self._geocast = Geocast(port, rng, params.geocast, self._whereabouts.presence, self._whereabouts.here)
        self._clock = BeaconClock(interval, self._geocast, 0)
        self._events: ItemTable[EventItem] = ItemTable(params.store, params.margin, params.table)
        self._subscriptions: ItemTable[SubscriptionItem] = ItemTable(params.store, params.margin, params.table)
        self._wanted: FilterIndex[Hashable] = FilterIndex()  # of the subscriptions held, by their key
        self._own_events: dict[EventId, Own[Publication]] = {}
        self._own_subscriptions: dict[int, Own[Subscription]] = {}
        self._queries = Queries()
        self._digested: dict[Hashable, Time] = {}  # by neighbour and item: when it last entered
        self._owed: dict[Node, dict[Hashable, None]] = {}  # by neighbour: the items that a digest is to tell
        self._checking = False

    def start(self, now: Time, kept: Mapping[str, bytes]) -> None:
        super().start(now, kept)
        self._clock = BeaconClock(seconds(self.params.interval), self._geocast, now)
        self.port.set_timer(now + round(self.rng.random() * seconds(self.params.interval)), BEACON)

    # --- Own events and subscriptions -------------------------------------------------------------------------------

    def publish(self, now: Time, publication: Publication) -> None:
        own = Own(publication, now, publication.lifetime or 0)
        put(self._own_events, publication.event.id, own, self.params.table)
        item = self._issue_event(now, own)
        self._take_event(now, item, 0, "local")
        self._check_soon(now)

    def subscribe(self, now: Time, subscription: Subscription) -> None:
        super().subscribe(now, subscription)
        former = self._own_subscriptions.get(subscription.id)
        own = Own(subscription, now, subscription.lifetime)
        own.version = 0 if former is None else former.version
        put(self._own_subscriptions, subscription.id, own, self.params.table)
        self._take_subscription(now, self._issue_subscription(now, own))
        self._check_soon(now)

    def unsubscribe(self, now: Time, subscription_id: int) -> None:
        super().unsubscribe(now, subscription_id)
        if self._own_subscriptions.pop(subscription_id, None) is not None:
            self._forget(subscription_id)

    def _forget(self, subscription_id: int) -> None:
        """An own subscription is over: this host matches it no more."""
        key = self.node, subscription_id
        if self._subscriptions.remove(key):
            self._let_go(key)

    def _reach(self, now: Time) -> Rectangle | None:
        """Where this host can be reached from now on."""
        here = self._whereabouts.here(now)
        if here is None:
            return None
        velocity = self._whereabouts.velocity(now, here)
        return reachability(here, velocity, self.params.reachability, self.params.safe, self._refresh)

    def _margin(self, first: bool) -> float:
        return self.params.margin if self.params.margin_first or not first else 0.0

    def _issue_event(self, now: Time, own: Own[Publication]) -> EventItem:
        first = own.issue(now, self._reach(now))
        what, left = own.what, own.left(now, 0)
        item = EventItem(self.node, what.event, left, what.relevance, what.subscription_domain, own.version, own.reach)
        kind = Published if first else EventRefresh
        region = target(what.relevance, self._margin(first))
        self.port.decide(what.event.id, "forwarded")
        self._geocast.send(now, kind(presence=self._whereabouts.presence(now), region=region, item=item))
        return item

    def _issue_subscription(self, now: Time, own: Own[Subscription]) -> SubscriptionItem:
        first = own.issue(now, self._reach(now))
        what, left = own.what, own.left(now, _HELD_REFRESHES * self._refresh)
        item = SubscriptionItem(
            self.node, what.id, what.filter, left, what.interest, what.publication_domain, own.version, own.reach
        )
        kind = Subscribed if first else SubscriptionRefresh
        region = target(what.interest, self._margin(first))
        self._geocast.send(now, kind(presence=self._whereabouts.presence(now), region=region, item=item))
        return item

    # --- From the air -----------------------------------------------------------------------------------------------

    def receive(self, now: Time, sender: Node, message: Message) -> None:
        # Most of a run's time goes through here, so that what is heard again must cost next to nothing.
        kind = type(message)
        if kind in _ACTIONS:
            assert isinstance(message, Routed)
            heard = self._geocast.hear(now, message)
            if self._around.hear(now, sender, message.presence):
                self._watch(now, sender, message.presence)
            if heard is not Heard.COPY:
                _ACTIONS[kind](self, now, message, heard is Heard.INSIDE)
        elif isinstance(message, Beacon | Digest):
            if self._around.hear(now, sender, message.presence):
                self._watch(now, sender, message.presence)
            if isinstance(message, Digest):
                self._hear_digest(now, message)

    # Whom a message names takes it wherever it is heard; the others, if they are in its region.

    def _hear_published(self, now: Time, message: Published, inside: bool) -> None:
        if inside and message.item.publisher != self.node:
            self._take_event(now, message.item, _hops(message), "event")

    def _hear_subscribed(self, now: Time, message: Subscribed, inside: bool) -> None:
        if inside and message.item.subscriber != self.node:
            self._take_subscription(now, message.item)

    def _hear_matched(self, now: Time, message: Matched, inside: bool) -> None:
        if message.subscriber == self.node:
            self._hear_match(now, message, _hops(message))

    def _hear_requested(self, now: Time, message: Request, inside: bool) -> None:
        if message.publisher == self.node:
            self._hear_request(now, message)

    def _hear_query(self, now: Time, message: Query, inside: bool) -> None:
        if inside:
            self._answer(now, message)

    def _hear_answer(self, now: Time, message: Answer, inside: bool) -> None:
        if message.asker == self.node:
            self._queries.answer(message.number, message.node, message.host)

    # --- Matching (conditions 1 to 3) -------------------------------------------------------------------------------

    def _take_event(self, now: Time, item: EventItem, hops: int, via: str) -> None:
        """An event is known here: holds it, and matches it against the subscriptions that are."""
        held = self._hold_event(now, item, hops)
        if held is None and item.left:
            return  # outside of its region
        if not self._is_in(now, item.relevance):
            return
        if held is not None:
            held.inside = True
        ready = []
        for key in self._wanted.match(item.event) if len(self._wanted) else ():
            wanting = self._subscriptions.get(key)
            if wanting is None or wanting.expires < now or self._is_left_to_subscriber(item, wanting.item):
                continue
            if not self._is_in(now, wanting.item.interest):
                continue
            if self._match(now, item, wanting.item, hops, via):
                ready.append(wanting.item.id)
        if ready:
            self.local.hand(item.event, tuple(ready), hops, via)

    def _take_subscription(self, now: Time, item: SubscriptionItem) -> None:
        """A subscription is known here: holds it, and matches it against the events that are."""
        held = self._hold_subscription(now, item)
        if held is None and item.left:
            return  # outside of its region
        if not len(self._events) or not self._is_in(now, item.interest):
            return
        if held is not None:
            held.inside = True
        for event in self._events:
            if event.expires < now or self._is_left_to_subscriber(event.item, item):
                continue
            if not item.filter.matches(event.item.event) or not self._is_in(now, event.item.relevance):
                continue
            if self._match(now, event.item, item, event.hops, "event"):
                self.local.hand(event.item.event, (item.id,), event.hops, "event")

    def _hold_event(self, now: Time, item: EventItem, hops: int) -> Held[EventItem] | None:
        known = self._events.get(item.key)
        held, evicted = self._events.put(now, item, self._whereabouts.here(now), hops)
        if held is not None and known is None:
            self.port.record(Holding(item.key, None, None, True))
            self._check_soon(now)
        if isinstance(evicted, int):
            self.port.record(Holding(evicted, None, None, False))
        return held

    def _hold_subscription(self, now: Time, item: SubscriptionItem) -> Held[SubscriptionItem] | None:
        known = self._subscriptions.get(item.key)
        held, evicted = self._subscriptions.put(now, item, self._whereabouts.here(now), 0)
        if held is not None and held.item is item:
            if known is None or known.item.filter != item.filter:
                self._wanted.add(item.key, item.filter)
            if known is None:
                self.port.record(Holding(None, item.subscriber, item.id, True))
            self._check_soon(now)
        if evicted is not None:
            self._let_go(evicted)
        return held

    def _let_go(self, key: Hashable) -> None:
        self._wanted.remove(key)
        assert isinstance(key, tuple)
        self.port.record(Holding(None, key[0], key[1], False))

    def _is_left_to_subscriber(self, event: EventItem, subscription: SubscriptionItem) -> bool:
        """Whether both are everywhere, so that the subscriber is in both contexts itself."""
        return event.relevance is None and subscription.interest is None and subscription.subscriber != self.node

    def _match(self, now: Time, event: EventItem, subscription: SubscriptionItem, hops: int, via: str) -> bool:
        """This host is in both contexts, and they match: the subscriber, or first the publisher, is told.

        If this host is the subscriber, and nobody need be asked, the answer is whether to deliver.
        """
        if subscription.publication_domain is not None:
            self._ask_publisher(now, event, subscription)
            return False
        if subscription.subscriber == self.node:
            if self.local.has(event.key, subscription.id):
                return False
            truth = evaluate_domain(event.subscription_domain, self._around.situation(now))
            return self._decide(now, event, subscription.id, truth, hops, via)
        message = self._matched(
            now, event.event, event.subscription_domain, event.version, subscription, subscription.reach
        )
        if not self._geocast.knows(message.key):
            self.port.record(Match(event.key, subscription.subscriber, subscription.id, "overlap", True))
            self._geocast.send(now, message, self._random_wait())
        return False

    def _matched(
        self,
        now: Time,
        event: Event,
        domain: Context | None,
        version: int,
        subscription: SubscriptionItem,
        reach: Rectangle | None,
    ) -> Matched:
        return Matched(
            presence=self._whereabouts.presence(now),
            region=reach,
            event=event,
            subscription_domain=domain,
            subscriber=subscription.subscriber,
            subscription=subscription.id,
            event_version=version if self.params.resend else 0,
            subscription_version=subscription.version if self.params.resend else 0,
        )

    def _random_wait(self) -> Time:
        return round(self.rng.random() * seconds(self.params.match_wait))

    # --- Publication domains (condition 4) --------------------------------------------------------------------------

    def _ask_publisher(self, now: Time, event: EventItem, subscription: SubscriptionItem) -> None:
        assert subscription.publication_domain is not None
        request = Request(
            presence=self._whereabouts.presence(now),
            region=event.reach,
            event=event.key,
            publisher=event.publisher,
            publication_domain=subscription.publication_domain,
            subscriber=subscription.subscriber,
            subscription=subscription.id,
            subscriber_reach=subscription.reach,
            event_version=event.version if self.params.resend else 0,
            subscription_version=subscription.version if self.params.resend else 0,
        )
        if self._geocast.knows(request.key):
            return
        self.port.record(Match(event.key, subscription.subscriber, subscription.id, "overlap", True))
        if event.publisher == self.node:
            self._hear_request(now, request)
        else:
            self._geocast.send(now, request, self._random_wait())

    def _hear_request(self, now: Time, request: Request) -> None:
        own = self._own_events.get(request.event)
        if own is None or own.expires + self._grace < now:
            self.port.note("request too late")
            return
        truth = evaluate(request.publication_domain, self._around.situation(now))
        if truth is None:
            self._ask_around(now, request.publication_domain, partial(self._answered_request, request))
        else:
            self._decided_request(now, request, truth)

    def _answered_request(self, request: Request, now: Time, answers: dict[Node, HostView]) -> None:
        situation = self._around.with_answers(now, answers)
        self._decided_request(now, request, holds(request.publication_domain, situation))

    def _decided_request(self, now: Time, request: Request, truth: bool) -> None:
        own = self._own_events.get(request.event)
        if own is None:
            return
        step = Match(request.event, request.subscriber, request.subscription, "publication domain", truth)
        self.port.record(step)
        if not truth:
            return
        message = Matched(
            presence=self._whereabouts.presence(now),
            region=request.subscriber_reach,
            event=own.what.event,
            subscription_domain=own.what.subscription_domain,
            subscriber=request.subscriber,
            subscription=request.subscription,
            event_version=request.event_version,
            subscription_version=request.subscription_version,
        )
        if request.subscriber == self.node:
            self._hear_match(now, message, 0)
        else:
            self._geocast.send(now, message)

    # --- Subscription domains (condition 5) and delivery ------------------------------------------------------------

    def _hear_match(self, now: Time, message: Matched, hops: int) -> None:
        own = self._own_subscriptions.get(message.subscription)
        if own is None or own.expires + self._grace < now:
            self.port.note("match too late")
            return
        if not own.what.filter.matches(message.event):  # whoever says so is mistaken, or the filter has changed
            return
        item = EventItem(0, message.event, 0, None, message.subscription_domain, 0, None)
        truth = evaluate_domain(message.subscription_domain, self._around.situation(now))
        if self._decide(now, item, own.what.id, truth, hops, "matched-event"):
            self.local.hand(message.event, (own.what.id,), hops, "matched-event")

    def _decide(self, now: Time, item: EventItem, subscription: int, truth: bool | None, hops: int, via: str) -> bool:
        """Whether to deliver now. Where hosts beyond one hop must be asked first, the answers decide later."""
        if truth is None:
            assert item.subscription_domain is not None
            decide = partial(self._answered_domain, item, subscription, hops, via)
            self._ask_around(now, item.subscription_domain, decide)
            return False
        if item.subscription_domain is not None:
            self.port.record(Match(item.key, self.node, subscription, "subscription domain", truth))
        return truth

    def _answered_domain(
        self, item: EventItem, subscription: int, hops: int, via: str, now: Time, answers: dict[Node, HostView]
    ) -> None:
        assert item.subscription_domain is not None
        truth = holds(item.subscription_domain, self._around.with_answers(now, answers))
        self.port.record(Match(item.key, self.node, subscription, "subscription domain", truth))
        if truth and subscription in self._own_subscriptions:
            self.local.hand(item.event, (subscription,), hops, via)

    # --- Queries ----------------------------------------------------------------------------------------------------

    def _ask_around(self, now: Time, context: Context, decide: "partial[None]") -> None:
        here, distance = self._whereabouts.here(now), query_distance(context)
        if here is None or not 0 < distance <= self.params.query_distance:
            self.port.note("not asked")
            return
        number = self._queries.ask(decide)
        if number is None:
            self.port.note("too many queries")
            return
        region = Circle(*here, distance)
        presence = self._whereabouts.presence(now)
        query = Query(presence=presence, region=region, asker=self.node, number=number, reach=self._reach(now))
        self._geocast.send(now, query)
        self.port.set_timer(now + seconds(self.params.query_wait), ("query", number))

    def _answer(self, now: Time, query: Query) -> None:
        if query.asker == self.node:
            return
        answer = Answer(
            presence=self._whereabouts.presence(now),
            region=query.reach,
            asker=query.asker,
            number=query.number,
            node=self.node,
            host=self._whereabouts.view(now),
        )
        self._geocast.send(now, answer, self._random_wait())

    # --- Hosts that come into a region ------------------------------------------------------------------------------

    def _watch(self, now: Time, node: Node, presence: Presence) -> None:
        """Has a digest sent if the neighbour came into the region of something held here."""
        if not (self._events.held or self._subscriptions.held) or presence.before is None or not self.params.digests:
            return
        for key in (*self._events.entered(now, presence), *self._subscriptions.entered(now, presence)):
            last = self._digested.get((node, key))
            if last is not None and now - last < self._refresh:
                continue
            put(self._digested, (node, key), now, self.params.window)
            if node not in self._owed:
                put(self._owed, node, {}, self.params.neighbours)
                self.port.set_timer(now + self._random_wait(), ("digest", node))
            self._owed[node][key] = None

    def _send_digest(self, now: Time, node: Node) -> None:
        """Tells what nobody else has told meanwhile."""
        owed = self._owed.pop(node, {})
        events = [held for held in map(self._events.get, owed) if held is not None and held.expires > now]
        wanted = [held for held in map(self._subscriptions.get, owed) if held is not None and held.expires > now]
        if not events and not wanted:
            self.port.note("digest suppressed")
            return
        digest = Digest(
            self._whereabouts.presence(now),
            tuple(held.item.older(held.item.left - (held.expires - now)) for held in events[:MAX_DIGEST]),
            tuple(held.item.older(held.item.left - (held.expires - now)) for held in wanted[:MAX_DIGEST]),
        )
        self._clock.spoke(now)
        self.port.broadcast(digest)

    def _hear_digest(self, now: Time, digest: Digest) -> None:
        told: list[Hashable] = [event.key for event in digest.events]
        told += [item.key for item in digest.subscriptions]
        for owed in self._owed.values():
            for key in told:
                owed.pop(key, None)
        for event in digest.events:
            if event.publisher != self.node and self._is_new(self._events.get(event.key), event.version):
                self._take_event(now, event, 1, "digest")
        for item in digest.subscriptions:
            if item.subscriber != self.node and self._is_new(self._subscriptions.get(item.key), item.version):
                self._take_subscription(now, item)

    @staticmethod
    def _is_new(known: Held[EventItem] | Held[SubscriptionItem] | None, version: int) -> bool:
        return known is None or known.item.version < version

    # --- Timers -----------------------------------------------------------------------------------------------------

    def timer(self, now: Time, key: Hashable) -> None:
        if self._geocast.timer(now, key):
            return
        if key == BEACON:
            self._beacon(now)
        elif key == _CHECK:
            self._check(now)
        elif isinstance(key, tuple) and len(key) == 2 and key[0] == "digest":
            self._send_digest(now, key[1])
        elif isinstance(key, tuple) and len(key) == 2 and key[0] == "query":
            self._queries.finish(now, key[1])

    def _beacon(self, now: Time) -> None:
        self._around.expire(now)
        due = self._clock.due(now)
        if due <= now:
            self.port.broadcast(Beacon(self._whereabouts.presence(now)))
            self._clock.spoke(now)
            due = now + seconds(self.params.interval)
        self.port.set_timer(due, BEACON)

    def _check_soon(self, now: Time) -> None:
        if not self._checking:
            self._checking = True
            self.port.set_timer(now + self._check_interval, _CHECK)

    def _check(self, now: Time) -> None:
        """Lets go of what is over or left behind, refreshes what is due, and matches what this host has moved into."""
        if not self._checking:
            return
        here = self._whereabouts.here(now)
        for key in self._events.drop(now, here):
            assert isinstance(key, int)
            self.port.record(Holding(key, None, None, False))
        for key in self._subscriptions.drop(now, here):
            self._let_go(key)
        self._refresh_own(now)
        self._match_again(now)
        busy = (self._own_events, self._own_subscriptions, self._events, self._subscriptions)
        self._checking = any(len(table) for table in busy)
        if self._checking:
            issuing = self._own_events or self._own_subscriptions
            self.port.set_timer(now + self._check_interval * (1 if issuing else 2), _CHECK)

    def _refresh_own(self, now: Time) -> None:
        here = self._whereabouts.here(now)
        for event in list(self._own_events.values()):
            if event.expires + self._grace < now:
                del self._own_events[event.what.event.id]
            elif self._is_due(now, here, event) and event.expires > now:
                self._take_event(now, self._issue_event(now, event), 0, "local")
        for wanted in list(self._own_subscriptions.values()):
            if wanted.expires + self._grace < now:
                del self._own_subscriptions[wanted.what.id]
                self.local.remove(wanted.what.id)
                self._forget(wanted.what.id)
            elif self._is_due(now, here, wanted) and wanted.expires > now:
                self._take_subscription(now, self._issue_subscription(now, wanted))

    def _is_due(self, now: Time, here: tuple[float, float] | None, own: Own[Publication] | Own[Subscription]) -> bool:
        if now - own.issued >= self._refresh:
            return True
        return here is not None and (own.reach is None or not is_safe(here, own.reach, self.params.safe))

    def _match_again(self, now: Time) -> None:
        """Matches what this host has come into the context of, by moving or by a change of attributes or neighbours."""
        if not len(self._events):
            return
        entered = [event for event in self._events if self._enters(now, event, event.item.relevance)]
        for event in entered:
            self._take_event(now, event.item, event.hops, "event")
        for wanted in self._subscriptions:
            if self._enters(now, wanted, wanted.item.interest):
                self._take_subscription(now, wanted.item)

    def _is_in(self, now: Time, context: Context | None) -> bool:
        return context is None or holds(context, self._around.situation(now))

    def _enters(self, now: Time, held: Held[EventItem] | Held[SubscriptionItem], context: Context | None) -> bool:
        """Whether the host is in the context, and was not when it last looked."""
        inside = self._is_in(now, context)
        entered = inside and not held.inside
        held.inside = inside
        return entered

    def tables(self) -> dict[str, int]:
        return {
            **super().tables(),
            "events": len(self._events),
            "subscriptions held": len(self._subscriptions),
            "own events": len(self._own_events),
            "neighbours": len(self._around),
            "seen": self._geocast.remembered,
            "pending": len(self._geocast),
            "queries": len(self._queries),
            "digested": len(self._digested),
            "owed": len(self._owed),
        }


_ACTIONS: Final[dict[type[Message], Callable[[ContextBroker, Time, Any, bool], None]]] = {
    Published: ContextBroker._hear_published,
    EventRefresh: ContextBroker._hear_published,
    Subscribed: ContextBroker._hear_subscribed,
    SubscriptionRefresh: ContextBroker._hear_subscribed,
    Matched: ContextBroker._hear_matched,
    Request: ContextBroker._hear_requested,
    Query: ContextBroker._hear_query,
    Answer: ContextBroker._hear_answer,
}
"""What a host does with a message that is new to it."""


def _hops(message: Routed) -> int:
    return min(message.hops + 1, MAX_HOPS)


def evaluate_domain(context: Context | None, situation: Situation) -> bool | None:
    """Whether a host is in the domain; None if hosts beyond one hop must be asked."""
    return True if context is None else evaluate(context, situation)


def rules(params: ContextParams, asked: Publication | Subscription) -> Iterator[str]:
    """Why a publication or subscription cannot be used: section 3.1."""
    try:
        if isinstance(asked, Publication):
            if asked.relevance is not None:
                check_relevance(asked.relevance, params.key_attributes)
            if asked.subscription_domain is not None:
                check_domain(asked.subscription_domain, SUBSCRIPTION_DOMAIN, params.query_distance)
        else:
            if asked.interest is not None:
                check_interest(asked.interest, params.key_attributes)
            if asked.publication_domain is not None:
                check_domain(asked.publication_domain, PUBLICATION_DOMAIN, params.query_distance)
    except ContentError as problem:
        yield str(problem)


ENTRY: Final = Entry(
    "context",
    "events and subscriptions held in the regions they concern, matched there (Frey and Roman 2007)",
    ContextParams,
    ContextBroker,
    MESSAGES,
    facts=(LocalMinimum, Match, Holding),
    understands=frozenset({"lifetimes", "contexts", "domains"}),
    needs=frozenset({"positions"}),
    rules=rules,
)
