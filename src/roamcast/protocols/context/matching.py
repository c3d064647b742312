"""Conditions 1 to 3 on a host that holds events and subscriptions: whether they match, and it is in both contexts.

An event is matched when it is first known here, each time it is refreshed, and when this host enters its context, by
moving or by a change of attributes or neighbours; a subscription likewise. A match is sent to the subscriber, or first
to the publisher (`domains.py`).
"""

from collections.abc import Callable, Hashable

from roamcast.content.context.evaluate import holds
from roamcast.content.context.expression import Context
from roamcast.content.event import EventId
from roamcast.content.index import FilterIndex
from roamcast.protocols.api import Time
from roamcast.protocols.context.domains import Domains
from roamcast.protocols.context.facts import Holding, Match
from roamcast.protocols.context.host import Host
from roamcast.protocols.context.messages import EventItem, Matched, SubscriptionItem
from roamcast.protocols.context.tables import Held, ItemTable


class Matching:
    def __init__(self, host: Host, domains: Domains, wake: Callable[[Time], None]) -> None:
        """`wake` is called when an item is held that must be checked again later."""
        params = host.params
        self._host = host
        self._domains = domains
        self._wake = wake
        self.events: ItemTable[EventItem] = ItemTable(host.node, params.store, params.margin, params.table)
        self.subscriptions: ItemTable[SubscriptionItem] = ItemTable(
            host.node, params.store, params.margin, params.table
        )
        self._wanted: FilterIndex[Hashable] = FilterIndex()  # filters of the subscriptions held, by key

    def forget(self, key: Hashable) -> None:
        """A subscription is over."""
        if self.subscriptions.remove(key):
            self._let_go(key)

    def push_out(self, key: EventId) -> None:
        """An event makes room for another."""
        if self.events.remove(key):
            self._host.port.record(Holding(key, None, None, False))
            self._host.port.decide(key, "cache full")

    def withdraw(self, key: Hashable, version: int) -> None:
        """A subscription of another host has ended before its time, or has another region from this version on."""
        held = self.subscriptions.get(key)
        if held is not None and held.item.version < version:
            self.forget(key)

    def drop(self, now: Time) -> None:
        """Drops what has expired, and what this host has left behind."""
        here = self._host.whereabouts.here(now)
        for key, expired in self.events.drop(now, here).items():
            assert isinstance(key, int)
            self._host.port.record(Holding(key, None, None, False))
            if expired:
                self._host.port.decide(key, "expired")
        for key in self.subscriptions.drop(now, here):
            self._let_go(key)

    def take_event(self, now: Time, item: EventItem, hops: int, via: str) -> None:
        """Holds an event, and matches it against the subscriptions held."""
        held = self._hold_event(now, item, hops)
        if held is None and item.left:
            return  # outside of its region
        if not self._is_in(now, item.relevance):
            return
        if held is not None:
            held.inside = True
        ready = []
        for key in self._wanted.match(item.event) if len(self._wanted) else ():
            wanting = self.subscriptions.get(key)
            if wanting is None or wanting.expires < now or self._is_left_to_subscriber(item, wanting.item):
                continue
            if not self._is_in(now, wanting.item.interest):
                continue
            if self._match(now, item, wanting.item, hops, via):
                ready.append(wanting.item.id)
        if ready:
            self._host.local.hand(item.event, tuple(ready), hops, via)

    def take_subscription(self, now: Time, item: SubscriptionItem) -> None:
        """Holds a subscription, and matches it against the events held."""
        held = self._hold_subscription(now, item)
        if held is None and item.left:
            return  # outside of its region
        if not len(self.events) or not self._is_in(now, item.interest):
            return
        if held is not None:
            held.inside = True
        for event in self.events:
            if event.expires < now or self._is_left_to_subscriber(event.item, item):
                continue
            if not item.filter.matches(event.item.event) or not self._is_in(now, event.item.relevance):
                continue
            if self._match(now, event.item, item, event.hops, "event"):
                self._host.local.hand(event.item.event, (item.id,), event.hops, "event")

    def _hold_event(self, now: Time, item: EventItem, hops: int) -> Held[EventItem] | None:
        known = self.events.get(item.key)
        held, evicted = self.events.put(now, item, self._host.whereabouts.here(now), hops)
        if held is not None and known is None:
            self._host.port.record(Holding(item.key, None, None, True))
            self._wake(now)
        if isinstance(evicted, int):
            self._host.port.record(Holding(evicted, None, None, False))
            self._host.port.decide(evicted, "cache full")
        return held

    def _hold_subscription(self, now: Time, item: SubscriptionItem) -> Held[SubscriptionItem] | None:
        known = self.subscriptions.get(item.key)
        held, evicted = self.subscriptions.put(now, item, self._host.whereabouts.here(now), 0)
        if held is not None and held.item is item:
            if known is None or known.item.filter != item.filter:
                self._wanted.add(item.key, item.filter)
            if known is None:
                self._host.port.record(Holding(None, item.subscriber, item.id, True))
            self._wake(now)
        if evicted is not None:
            self._let_go(evicted)
        return held

    def _let_go(self, key: Hashable) -> None:
        self._wanted.remove(key)
        assert isinstance(key, tuple)
        self._host.port.record(Holding(None, key[0], key[1], False))

    def _is_left_to_subscriber(self, event: EventItem, subscription: SubscriptionItem) -> bool:
        """Whether both are everywhere, so that the subscriber is in both contexts itself."""
        return event.relevance is None and subscription.interest is None and subscription.subscriber != self._host.node

    def _match(self, now: Time, event: EventItem, subscription: SubscriptionItem, hops: int, via: str) -> bool:
        """This host is in both contexts, and they match: tells the subscriber, or first the publisher.

        If this host is the subscriber and no query is needed, returns whether to deliver.
        """
        own = subscription.subscriber == self._host.node
        if own and self._host.local.has(event.key, subscription.id):
            return False
        if subscription.publication_domain is not None:
            self._domains.ask_publisher(now, event, subscription)
            return False
        if own:
            return self._domains.decide(now, event.event, event.subscription_domain, subscription.id, hops, via)
        message = Matched(
            presence=self._host.whereabouts.presence(now),
            region=subscription.reach,
            event=event.event,
            subscription_domain=event.subscription_domain,
            subscriber=subscription.subscriber,
            subscription=subscription.id,
            event_version=event.version if self._host.params.resend else 0,
            subscription_version=subscription.version if self._host.params.resend else 0,
        )
        if not self._host.geocast.knows(message.key):
            self._host.port.record(Match(event.key, subscription.subscriber, subscription.id, "overlap", True))
            self._host.geocast.send(now, message, self._host.random_wait())
        return False

    def again(self, now: Time) -> None:
        """Matches items whose context this host has entered, by moving or by a change of attributes or neighbours."""
        if not len(self.events):
            return
        entered = [event for event in self.events if self._enters(now, event, event.item.relevance)]
        for event in entered:
            self.take_event(now, event.item, event.hops, "event")
        for wanted in self.subscriptions:
            if self._enters(now, wanted, wanted.item.interest):
                self.take_subscription(now, wanted.item)

    def _is_in(self, now: Time, context: Context | None) -> bool:
        return context is None or holds(context, self._host.around.situation(now))

    def _enters(self, now: Time, held: Held[EventItem] | Held[SubscriptionItem], context: Context | None) -> bool:
        """Whether the host is in the context, and was not at the last check."""
        inside = self._is_in(now, context)
        entered = inside and not held.inside
        held.inside = inside
        return entered
