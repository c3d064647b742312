"""Conditions 1 to 3 on a host that holds events and subscriptions: whether they match, and it is in both contexts.

An event is matched when it is first known here, each time it is refreshed, and when this host enters its context, by
moving or by a change of attributes or neighbours; a subscription likewise. A match is sent to the subscriber, or first
to the publisher (`domains.py`).

One call makes at most `EFFORT` comparisons, since items and neighbours come from strangers. What is left then goes on
at the next check; of an instantaneous event, it is lost.
"""

from collections.abc import Callable, Hashable
from typing import Final

from roamcast.content.clauses import Effort, EffortSpent
from roamcast.content.context.evaluate import holds
from roamcast.content.context.expression import Context
from roamcast.content.event import EventId
from roamcast.content.geometry import Point
from roamcast.content.index import FilterIndex
from roamcast.protocols.api import Time
from roamcast.protocols.context.domains import Domains
from roamcast.protocols.context.facts import Holding, Match
from roamcast.protocols.context.host import Host
from roamcast.protocols.context.messages import EventItem, Matched, SubscriptionItem
from roamcast.protocols.context.tables import Held, ItemTable

EFFORT: Final = 100_000
"""Comparisons of values, and parts of contexts evaluated, in one call: some 30 ms."""


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
        self._effort = Effort(EFFORT)
        self._checked = 0  # items that the last check got to, if it was cut short
        self._wanted: FilterIndex[Hashable] = FilterIndex()  # filters of the subscriptions held, by key
        self._wanted_here: FilterIndex[Hashable] = FilterIndex()  # the same without those left to their subscribers

    def begin(self) -> None:
        """A call begins."""
        self._effort = Effort(EFFORT)

    def _cut_short(self, held: Held[EventItem] | Held[SubscriptionItem] | None, matched: int) -> None:
        self._host.port.note("matching cut short")
        if held is not None:
            held.inside, held.matched = False, matched

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
        here = self._host.whereabouts.here(now) if self.events.placed or self.subscriptions.placed else None
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
        done, ready = 0, list[int]()
        try:
            if not self._is_in(now, item.relevance):
                return
            if held is not None:
                held.inside = True
            wanted = self._wanted_here if item.relevance is None else self._wanted
            for key in wanted.match(item.event, self._effort) if len(wanted) else ():
                done += 1
                if held is not None and done <= held.matched:
                    continue
                wanting = self.subscriptions.get(key)
                if wanting is None or wanting.expires < now or not self._is_in(now, wanting.item.interest):
                    continue
                if self._match(now, item, wanting.item, hops, via):
                    ready.append(wanting.item.id)
            if held is not None:
                held.matched = 0
        except EffortSpent:
            self._cut_short(held, max(0, done - 1))
        if ready:
            self._host.local.hand(item.event, tuple(ready), hops, via)

    def take_subscription(self, now: Time, item: SubscriptionItem) -> None:
        """Holds a subscription, and matches it against the events held."""
        held = self._hold_subscription(now, item)
        if held is None and item.left:
            return  # outside of its region
        if not len(self.events):
            return
        done, constraints = 0, sum(map(len, item.filter.alternatives))
        try:
            if not self._is_in(now, item.interest):
                return
            if held is not None:
                held.inside = True
            for event in self.events:
                done += 1
                if held is not None and done <= held.matched:
                    continue
                if event.expires < now or (event.item.relevance is None and self._is_left_to_subscriber(item)):
                    continue
                self._effort.spend(1 + constraints * event.item.event.held)
                if not item.filter.matches(event.item.event) or not self._is_in(now, event.item.relevance):
                    continue
                if self._match(now, event.item, item, event.hops, "event"):
                    self._host.local.hand(event.item.event, (item.id,), event.hops, "event")
            if held is not None:
                held.matched = 0
        except EffortSpent:
            self._cut_short(held, max(0, done - 1))

    def _hold_event(self, now: Time, item: EventItem, hops: int) -> Held[EventItem] | None:
        known = self.events.get(item.key)
        held, evicted = self.events.put(now, item, self._here(now, item), hops)
        if held is not None and known is None:
            self._host.port.record(Holding(item.key, None, None, True))
            self._wake(now)
        if isinstance(evicted, int):
            self._host.port.record(Holding(evicted, None, None, False))
            self._host.port.decide(evicted, "cache full")
        return held

    def _hold_subscription(self, now: Time, item: SubscriptionItem) -> Held[SubscriptionItem] | None:
        known = self.subscriptions.get(item.key)
        held, evicted = self.subscriptions.put(now, item, self._here(now, item), 0)
        if held is not None and held.item is item:
            self._want(None if known is None else known.item, item)
            if known is None:
                self._host.port.record(Holding(None, item.subscriber, item.id, True))
            self._wake(now)
        if evicted is not None:
            self._let_go(evicted)
        return held

    def _here(self, now: Time, item: EventItem | SubscriptionItem) -> Point | None:
        """Where this host is, if that matters for holding the item."""
        return None if item.context is None else self._host.whereabouts.here(now)

    def _want(self, former: SubscriptionItem | None, item: SubscriptionItem) -> None:
        """Adds the filter of a subscription, if it is new, or differs from its former version."""
        left_to_subscriber = self._is_left_to_subscriber(item)
        if former is None or former.filter != item.filter:
            self._wanted.add(item.key, item.filter)
        elif self._is_left_to_subscriber(former) == left_to_subscriber:
            return
        if not left_to_subscriber:
            self._wanted_here.add(item.key, item.filter)
        elif item.key in self._wanted_here:
            self._wanted_here.remove(item.key)

    def _let_go(self, key: Hashable) -> None:
        self._wanted.remove(key)
        if key in self._wanted_here:
            self._wanted_here.remove(key)
        assert isinstance(key, tuple)
        self._host.port.record(Holding(None, key[0], key[1], False))

    def _is_left_to_subscriber(self, subscription: SubscriptionItem) -> bool:
        """Whether another host's subscription is for everywhere: that host is itself in both contexts of an event that
        is relevant everywhere."""
        return subscription.interest is None and subscription.subscriber != self._host.node

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
        checked, skipped = 0, self._checked
        entered: list[Held[EventItem]] = []
        try:
            for event in self.events:
                checked += 1
                if checked > skipped and self._enters(now, event, event.item.relevance):
                    entered.append(event)
            for event in entered:
                self.take_event(now, event.item, event.hops, "event")
            for wanted in self.subscriptions:
                checked += 1
                if checked > skipped and self._enters(now, wanted, wanted.item.interest):
                    self.take_subscription(now, wanted.item)
            self._checked = 0
        except EffortSpent:
            self._host.port.note("matching cut short")
            self._checked = max(0, checked - 1)
            for event in entered:
                event.inside = False

    def _is_in(self, now: Time, context: Context | None) -> bool:
        if context is None:
            return True
        situation = self._host.around.situation(now)
        own, around = context.weight
        self._effort.spend(own + around * len(situation.neighbours) if around else own)
        return holds(context, situation)

    def _enters(self, now: Time, held: Held[EventItem] | Held[SubscriptionItem], context: Context | None) -> bool:
        """Whether the host is in the context, and was not at the last check."""
        inside = self._is_in(now, context)
        entered = inside and not held.inside
        held.inside = inside
        return entered
