"""Context-aware publish/subscribe on one host.

Frey and Roman, "Context-Aware Publish Subscribe in Mobile Ad Hoc Networks" (2007), section 3. Events are held by the
hosts in their region of relevance, subscriptions by those in their region of interest. A host in both finds that they
match and sends the event to the subscriber, or, if the subscription has a publication domain, a request to the
publisher, which sends it. The subscriber decides the subscription domain. `docs/protocols/context.md` has the choices
that the paper leaves open.

An item without a context is relevant or wanted everywhere: it is flooded. If neither has one, the subscriber itself is
a host in both contexts and does the matching; nobody need send it anything. An event without a lifetime is
instantaneous (section 2.3: "those available in traditional publish-subscribe middleware").
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from random import Random
from typing import Any, Final

import msgspec

from roamcast.bounded import put
from roamcast.content.context.rules import (
    PUBLICATION_DOMAIN,
    SUBSCRIPTION_DOMAIN,
    check_domain,
    check_interest,
    check_relevance,
)
from roamcast.content.event import EventId
from roamcast.content.structure import Decoder, Limits
from roamcast.content.subscription import Publication, Subscription
from roamcast.errors import ContentError
from roamcast.protocols.api import Broker, Node, Port, Time
from roamcast.protocols.context.digests import Digests
from roamcast.protocols.context.domains import Domains
from roamcast.protocols.context.facts import Holding, Match
from roamcast.protocols.context.geocast import LocalMinimum, Routed
from roamcast.protocols.context.host import Host
from roamcast.protocols.context.matching import Matching
from roamcast.protocols.context.messages import (
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
    Withdrawal,
)
from roamcast.protocols.context.neighbours import BEACON, BeaconClock
from roamcast.protocols.context.own import Own
from roamcast.protocols.context.params import ContextParams
from roamcast.protocols.context.presence import Presence
from roamcast.protocols.context.reachability import is_safe
from roamcast.protocols.context.tables import target
from roamcast.protocols.entry import Entry
from roamcast.protocols.messages import LONGEST, Message
from roamcast.units import seconds

_CHECK: Final = "check"
_HELD_REFRESHES: Final = 3
"""Refreshes that may be missed before others drop a subscription without end."""
_SELDOM: Final = 60
"""Refreshes of a subscription become up to so many times rarer as long as nobody needs to know where its host is."""
_LAST: Final = 5
"""In the last fifth of a refresh before its end an item is not refreshed: who has missed it until then hardly gains."""
_KEPT: Final = "event/"
_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = Decoder[tuple[Time, Publication]](tuple[Time, Publication], Limits(LONGEST))


class ContextBroker(Broker[ContextParams]):
    def __init__(self, node: Node, params: ContextParams, port: Port, rng: Random) -> None:
        super().__init__(node, params, port, rng)
        self._refresh = seconds(params.refresh)
        self._check_interval = seconds(params.check)
        self.linger = seconds(params.grace)
        self._host = host = Host(node, params, port, rng, self.local)
        self._geocast, self._around = host.geocast, host.around
        self._domains = Domains(self._host)
        self._matching = Matching(self._host, self._domains, self._check_soon)
        self._digests = Digests(self._host, self._matching)
        self._clock = self._beacon_clock(0)
        self._checking = False

    def _beacon_clock(self, now: Time) -> BeaconClock:
        interval = seconds(self.params.interval)
        return BeaconClock(lambda: self._host.varied(interval), self._geocast, now)

    def start(self, now: Time, kept: Mapping[str, bytes]) -> None:
        super().start(now, kept)
        self._clock = self._beacon_clock(now)
        self.port.set_timer(now + round(self.rng.random() * seconds(self.params.interval)), BEACON)
        for expires, publication in self._restored(kept):
            if expires <= now:
                self.port.forget(f"{_KEPT}{publication.event.id}")
                continue
            own = Own(publication, now, expires - now)
            own.first = False
            self._add_event(own)
            self._check_soon(now)

    def _restored(self, kept: Mapping[str, bytes]) -> list[tuple[Time, Publication]]:
        """The own events from before a restart, in the order in which they expire, without what cannot be read."""
        found = []
        for key, value in kept.items():
            if key.startswith(_KEPT):
                try:
                    found.append(_DECODER.decode(value))
                except ContentError:
                    self.port.note("kept in vain")
                    self.port.forget(key)
        return sorted(found, key=lambda record: (record[0], record[1].event.id))

    # --- Own events and subscriptions -------------------------------------------------------------------------------

    def publish(self, now: Time, publication: Publication) -> None:
        self._matching.begin()
        own = Own(publication, now, publication.lifetime or 0)
        self._add_event(own)
        if own.expires > now:
            self.port.keep(f"{_KEPT}{publication.event.id}", _ENCODER.encode((own.expires, publication)))
        self._matching.take_event(now, self._issue_event(now, own), 0, "local")
        self._check_soon(now)

    def _add_event(self, own: Own[Publication]) -> None:
        oldest = put(self._domains.own_events, own.what.event.id, own, self.params.table)
        if oldest is not None:
            self.port.forget(f"{_KEPT}{oldest}")
            self._matching.push_out(oldest)

    def subscribe(self, now: Time, subscription: Subscription) -> None:
        super().subscribe(now, subscription)
        self._matching.begin()
        former = self._domains.own_subscriptions.get(subscription.id)
        if former is not None and former.what.interest != subscription.interest:
            self._withdraw(now, former)
        own = Own(subscription, now, subscription.lifetime)
        self._domains.own_subscriptions[subscription.id] = own
        self._matching.take_subscription(now, self._issue_subscription(now, own))
        self._check_soon(now)

    def unsubscribe(self, now: Time, subscription_id: int) -> None:
        super().unsubscribe(now, subscription_id)
        own = self._domains.own_subscriptions.pop(subscription_id, None)
        if own is not None:
            self._withdraw(now, own)

    def _withdraw(self, now: Time, own: Own[Subscription]) -> None:
        self._matching.forget((self.node, own.what.id))
        if own.expires > now:  # otherwise others know that it is over
            message = Withdrawal(
                presence=self._host.whereabouts.presence(now),
                region=target(own.what.interest, self.params.margin),
                subscriber=self.node,
                subscription=own.what.id,
                version=self._host.serial(now),
            )
            self._geocast.send(now, message)

    def holds(self, event_id: EventId) -> bool:
        return event_id in self._matching.events.held or event_id in self._domains.own_events

    def _margin(self, first: bool) -> float:
        return self.params.margin if self.params.margin_first or not first else 0.0

    def _is_placed(self, now: Time, own: Own[Publication] | Own[Subscription]) -> bool:
        """Whether the item says where this host is: not if it goes everywhere and nobody has needed that lately."""
        if isinstance(own.what, Publication):  # a region more in an event costs little
            sought, refreshes, everywhere = self._domains.asked, _SELDOM, own.what.relevance is None
        else:  # a region must be kept up to date
            sought, refreshes, everywhere = own.sought, _HELD_REFRESHES, own.what.interest is None
            everywhere = everywhere and own.expires - now > self._refresh
        return not everywhere or (sought is not None and now - sought < refreshes * self._refresh)

    def _issue(self, now: Time, own: Own[Publication] | Own[Subscription]) -> bool:
        placed = self._is_placed(now, own)
        if placed or isinstance(own.what, Publication):
            own.period = self._refresh
        else:
            own.period = min(max(self._refresh, 2 * own.period), _SELDOM * self._refresh)
        reach = self._host.reach(now) if placed else None
        return own.issue(self._host.serial(now), reach, now + self._host.varied(own.period))

    def _issue_event(self, now: Time, own: Own[Publication]) -> EventItem:
        first = self._issue(now, own)
        what, left = own.what, own.left(now, 0)
        item = EventItem(self.node, what.event, left, what.relevance, what.subscription_domain, own.version, own.reach)
        kind = Published if first else EventRefresh
        region = target(what.relevance, self._margin(first))
        self._digests.sent(item.key)
        self._geocast.send(now, kind(presence=self._host.whereabouts.presence(now), region=region, item=item))
        return item

    def _issue_subscription(self, now: Time, own: Own[Subscription]) -> SubscriptionItem:
        first = self._issue(now, own)
        what, left = own.what, own.left(now, _HELD_REFRESHES * own.period)
        item = SubscriptionItem(
            self.node, what.id, what.filter, left, what.interest, what.publication_domain, own.version, own.reach
        )
        kind = Subscribed if first else SubscriptionRefresh
        region = target(what.interest, self._margin(first))
        self._digests.sent(item.key)
        message = kind(presence=self._host.whereabouts.presence(now), region=region, item=item)
        self._geocast.send(now, message, self._host.random_wait())  # many applications may start at one time
        return item

    # --- From the air -----------------------------------------------------------------------------------------------

    def receive(self, now: Time, sender: Node, message: Message) -> None:
        # The hot path of a run: a message heard again must cost next to nothing.
        if isinstance(message, Routed):
            heard = self._geocast.hear(now, message)
            if self._around.hear(now, sender, message.presence):
                self._digests.watch(now, sender, message.presence)
            if heard != "copy":
                _ACTIONS[type(message)](self, now, message, heard == "inside")
        elif isinstance(message, Beacon):
            self._hear_presence(now, sender, message.presence)
        elif isinstance(message, Digest):
            self._hear_presence(now, sender, message.presence)
            self._matching.begin()
            self._digests.hear(now, message)

    def _hear_presence(self, now: Time, sender: Node, presence: Presence) -> None:
        if self._around.hear(now, sender, presence):
            self._digests.watch(now, sender, presence)

    # The node that a message names takes it wherever it is; others only if they are in its region.

    def _hear_published(self, now: Time, message: Published, inside: bool) -> None:
        self._digests.sent(message.item.key)
        if inside and message.item.publisher != self.node:
            self._matching.begin()
            self._matching.take_event(now, message.item, message.next_hops, "event")

    def _hear_subscribed(self, now: Time, message: Subscribed, inside: bool) -> None:
        self._digests.sent(message.item.key)
        if inside and message.item.subscriber != self.node:
            self._matching.begin()
            self._matching.take_subscription(now, message.item)

    def _hear_withdrawal(self, now: Time, message: Withdrawal, inside: bool) -> None:
        if message.subscriber != self.node:
            self._matching.withdraw((message.subscriber, message.subscription), message.version)

    def _hear_matched(self, now: Time, message: Matched, inside: bool) -> None:
        if message.subscriber == self.node:
            self._domains.hear_match(now, message, message.next_hops)

    def _hear_request(self, now: Time, message: Request, inside: bool) -> None:
        if message.publisher == self.node:
            self._domains.asked = now
            self._domains.hear_request(now, message)

    def _hear_query(self, now: Time, message: Query, inside: bool) -> None:
        if inside:
            self._domains.answer(now, message)

    def _hear_answer(self, now: Time, message: Answer, inside: bool) -> None:
        if message.asker == self.node:
            self._domains.queries.answer(message.number, message.node, message.host)

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
            self._domains.queries.finish(now, key[1])

    def _send_digest(self, now: Time, node: Node) -> None:
        digest = self._digests.made(now, node)
        if digest is not None:
            self._clock.spoke(now)
            self.port.broadcast(digest)

    def _beacon(self, now: Time) -> None:
        self._around.expire(now)
        if self._clock.is_due(now):
            self.port.broadcast(Beacon(self._host.whereabouts.presence(now)))
            self._clock.spoke(now)
        self.port.set_timer(self._clock.due, BEACON)

    def _check_soon(self, now: Time) -> None:
        if not self._checking:
            self._checking = True
            self.port.set_timer(now + round(self.rng.random() * self._check_interval), _CHECK)

    def _check(self, now: Time) -> None:
        """Drops what is over or left behind, refreshes what is due, and matches what this host has moved into."""
        if not self._checking:
            return
        self._matching.begin()
        self._matching.drop(now)
        due = self._refresh_own(now)
        self._matching.again(now)
        issuing = self._domains.own_events or self._domains.own_subscriptions
        self._checking = bool(issuing or self._matching.events.held or self._matching.subscriptions.held)
        if self._checking:
            look = now + self._host.varied(self._check_interval * (1 if issuing else 2))
            self.port.set_timer(min([look, *due]), _CHECK)

    def _refresh_own(self, now: Time) -> list[Time]:
        """Returns when the next refreshes are due."""
        for event in list(self._domains.own_events.values()):
            if event.expires + self.linger < now:
                del self._domains.own_events[event.what.event.id]
                if event.what.lifetime:
                    self.port.forget(f"{_KEPT}{event.what.event.id}")
            elif self._is_due(now, event):
                self._matching.take_event(now, self._issue_event(now, event), 0, "local")
        for wanted in list(self._domains.own_subscriptions.values()):
            if wanted.expires + self.linger < now:
                del self._domains.own_subscriptions[wanted.what.id]
                self.local.remove(wanted.what.id)
                self._matching.forget((self.node, wanted.what.id))
            elif self._is_due(now, wanted):
                self._matching.take_subscription(now, self._issue_subscription(now, wanted))
        dues = [event.due for event in self._domains.own_events.values()]
        dues += [wanted.due for wanted in self._domains.own_subscriptions.values()]
        return [due for due in dues if due > now]

    def _is_due(self, now: Time, own: Own[Publication] | Own[Subscription]) -> bool:
        if own.expires - now <= self._refresh // _LAST:
            return False
        if own.due <= now:
            return True
        if not self._is_placed(now, own):
            return False
        here = self._host.whereabouts.here(now)
        if here is None:
            return False
        return own.reach is None or not is_safe(here, own.reach, self.params.safe)

    def tables(self) -> dict[str, int]:
        return {
            **super().tables(),
            **self._digests.tables,
            "events": len(self._matching.events),
            "subscriptions held": len(self._matching.subscriptions),
            "own events": len(self._domains.own_events),
            "own subscriptions": len(self._domains.own_subscriptions),
            "neighbours": len(self._around),
            "seen": self._geocast.remembered,
            "pending": len(self._geocast),
            "queries": len(self._domains.queries),
        }


_ACTIONS: Final[dict[type[Message], Callable[[ContextBroker, Time, Any, bool], None]]] = {
    Published: ContextBroker._hear_published,
    EventRefresh: ContextBroker._hear_published,
    Subscribed: ContextBroker._hear_subscribed,
    SubscriptionRefresh: ContextBroker._hear_subscribed,
    Withdrawal: ContextBroker._hear_withdrawal,
    Matched: ContextBroker._hear_matched,
    Request: ContextBroker._hear_request,
    Query: ContextBroker._hear_query,
    Answer: ContextBroker._hear_answer,
}
"""What a host does with a message that is new to it."""


def rules(params: ContextParams, wanted: Publication | Subscription) -> Iterator[str]:
    """The reasons why a publication or subscription cannot be used: section 3.1."""
    try:
        if isinstance(wanted, Publication):
            if wanted.relevance is not None:
                check_relevance(wanted.relevance, params.key_attributes)
            if wanted.subscription_domain is not None:
                check_domain(wanted.subscription_domain, SUBSCRIPTION_DOMAIN, params.query_distance)
        else:
            if wanted.interest is not None:
                check_interest(wanted.interest, params.key_attributes)
            if wanted.publication_domain is not None:
                check_domain(wanted.publication_domain, PUBLICATION_DOMAIN, params.query_distance)
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
