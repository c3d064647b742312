"""Conditions 4 and 5: whether a publisher is in a publication domain, and a subscriber in a subscription domain.

The publisher decides when a matching request arrives, the subscriber when the event arrives, each about itself at that
moment. A domain that looks beyond one hop is decided after a query to the hosts there (`query.py`).
"""

from collections.abc import Hashable
from functools import partial

from roamcast.content.context.evaluate import evaluate, holds
from roamcast.content.context.expression import Context
from roamcast.content.context.host import HostView
from roamcast.content.context.rules import query_distance
from roamcast.content.event import Event, EventId
from roamcast.content.region import Circle
from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.api import Node, Time
from roamcast.protocols.context.facts import Match
from roamcast.protocols.context.host import Host
from roamcast.protocols.context.messages import Answer, EventItem, Matched, Query, Request, SubscriptionItem
from roamcast.protocols.context.own import Own
from roamcast.protocols.context.query import Queries
from roamcast.units import seconds


class Domains:
    """A host's own events and subscriptions, and its decisions about their domains."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._grace = seconds(host.params.grace)
        self.queries = Queries()
        self.own_events: dict[EventId, Own[Publication]] = {}
        self.own_subscriptions: dict[int, Own[Subscription]] = {}
        self.asked: Time | None = None
        """When another host last asked about an own event."""

    # --- Publication domains ----------------------------------------------------------------------------------------

    def ask_publisher(self, now: Time, event: EventItem, subscription: SubscriptionItem) -> None:
        assert subscription.publication_domain is not None
        request = Request(
            presence=self._host.whereabouts.presence(now),
            region=event.reach,
            event=event.key,
            publisher=event.publisher,
            publication_domain=subscription.publication_domain,
            subscriber=subscription.subscriber,
            subscription=subscription.id,
            subscriber_reach=self._host.reach(now)
            if subscription.subscriber == self._host.node
            else subscription.reach,
            event_version=event.version if self._host.params.resend else 0,
            subscription_version=subscription.version if self._host.params.resend else 0,
        )
        if self._host.geocast.knows(request.key):
            return
        self._host.port.record(Match(event.key, subscription.subscriber, subscription.id, "overlap", True))
        if event.publisher == self._host.node:
            self.hear_request(now, request)
        else:
            self._host.geocast.send(now, request, self._host.random_wait())

    def hear_request(self, now: Time, request: Request) -> None:
        own = self.own_events.get(request.event)
        if own is None or own.expires + self._grace < now:
            self._host.port.note("request too late")
            return
        truth = evaluate(request.publication_domain, self._host.around.situation(now))
        if truth is None:
            question = request.event, request.subscriber, request.subscription
            self._ask_around(now, question, request.publication_domain, partial(self._answered_request, request))
        else:
            self._decided_request(now, request, truth)

    def _answered_request(self, request: Request, now: Time, answers: dict[Node, HostView]) -> None:
        situation = self._host.around.with_answers(now, answers)
        self._decided_request(now, request, holds(request.publication_domain, situation))

    def _decided_request(self, now: Time, request: Request, truth: bool) -> None:
        own = self.own_events.get(request.event)
        if own is None:
            return
        step = Match(request.event, request.subscriber, request.subscription, "publication domain", truth)
        self._host.port.record(step)
        if not truth:
            return
        message = Matched(
            presence=self._host.whereabouts.presence(now),
            region=request.subscriber_reach,
            event=own.what.event,
            subscription_domain=own.what.subscription_domain,
            subscriber=request.subscriber,
            subscription=request.subscription,
            event_version=request.event_version,
            subscription_version=request.subscription_version,
        )
        if request.subscriber == self._host.node:
            self.hear_match(now, message, 0)
        else:
            self._host.geocast.send(now, message)

    # --- Subscription domains (condition 5) and delivery ------------------------------------------------------------

    def hear_match(self, now: Time, message: Matched, hops: int) -> None:
        own = self.own_subscriptions.get(message.subscription)
        if own is None or own.expires + self._grace < now:
            self._host.port.note("match too late")
            return
        if message.region is None or own.reach is not None:
            own.sought = now
        if self._host.local.has(message.event.id, own.what.id):
            return  # most matched events come again, with each refresh
        if not own.what.filter.matches(message.event):  # the sender is mistaken, or the filter has changed
            return
        if self.decide(now, message.event, message.subscription_domain, own.what.id, hops, "matched-event"):
            self._host.local.hand(message.event, (own.what.id,), hops, "matched-event")

    def decide(self, now: Time, event: Event, domain: Context | None, subscription: int, hops: int, via: str) -> bool:
        """Whether to deliver now to an own subscription. If hosts beyond one hop must be queried first, their answers
        decide later."""
        if domain is None:
            return True
        truth = evaluate(domain, self._host.around.situation(now))
        if truth is None:
            decide = partial(self._answered_domain, event, domain, subscription, hops, via)
            self._ask_around(now, (event.id, subscription), domain, decide)
            return False
        self._host.port.record(Match(event.id, self._host.node, subscription, "subscription domain", truth))
        return truth

    def _answered_domain(
        self,
        event: Event,
        domain: Context,
        subscription: int,
        hops: int,
        via: str,
        now: Time,
        answers: dict[Node, HostView],
    ) -> None:
        truth = holds(domain, self._host.around.with_answers(now, answers))
        self._host.port.record(Match(event.id, self._host.node, subscription, "subscription domain", truth))
        if truth and subscription in self.own_subscriptions:
            self._host.local.hand(event, (subscription,), hops, via)

    # --- Queries ----------------------------------------------------------------------------------------------------

    def _ask_around(self, now: Time, question: Hashable, context: Context, decide: "partial[None]") -> None:
        if self.queries.asks(question):
            return
        here, distance = self._host.whereabouts.here(now), query_distance(context)
        if here is None or not 0 < distance <= self._host.params.query_distance:
            self._host.port.note("not asked")
            return
        number = self._host.serial(now)
        if not self.queries.ask(number, question, decide):
            self._host.port.note("too many queries")
            return
        region = Circle(*here, distance)
        presence = self._host.whereabouts.presence(now)
        query = Query(
            presence=presence, region=region, asker=self._host.node, number=number, reach=self._host.reach(now)
        )
        self._host.geocast.send(now, query)
        self._host.port.set_timer(now + seconds(self._host.params.query_wait), ("query", number))

    def answer(self, now: Time, query: Query) -> None:
        if query.asker == self._host.node:
            return
        answer = Answer(
            presence=self._host.whereabouts.presence(now),
            region=query.reach,
            asker=query.asker,
            number=query.number,
            node=self._host.node,
            host=self._host.whereabouts.view(now),
        )
        self._host.geocast.send(now, answer, self._host.random_wait())
