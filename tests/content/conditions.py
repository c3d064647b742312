"""An oracle: the five conditions of the paper (Frey and Roman 2007, section 2.3), one by one.

At an instant τ, in the system's configuration c at that instant, an event `[p, e, τe, r, s̃]` matches a subscription
`[s, ẽ, τs, r̃, p̃]` if and only if

1. standard matching: the event's content matches the filter, e ∈ ẽ;
2. lifetime validity: neither has expired, τ ≤ τe and τ ≤ τs, and both have been issued;
3. interest-and-relevance overlap: some host is in the context of relevance and in that of interest, r ∩ r̃ ≠ ∅;
4. publication domain matching: the publisher is in the subscription's publication domain, p ∈ p̃;
5. subscription domain matching: the subscriber is in the event's subscription domain, s ∈ s̃.

All contexts refer to the configuration at τ, not to the one when the event or the subscription was issued. A context
that is not given holds for every host. If a context looks at hosts beyond one hop, situations must contain their
answers.

Each condition is a function, since a protocol decides 1 to 3 on a host in the overlap, 4 on the publisher and 5 on the
subscriber.
"""

from collections.abc import Iterable
from typing import NamedTuple

from roamcast.content.context.evaluate import holds
from roamcast.content.context.expression import Context
from roamcast.content.context.host import Situation
from roamcast.content.event import Event
from roamcast.content.filter import Filter


class Lifetime(NamedTuple):
    """When an event or a subscription is in force, in any one unit of time."""

    since: int
    """When it was issued."""
    length: int | None = 0
    """0: instantaneous. None: for ever."""

    def covers(self, now: int) -> bool:
        """Whether it is in force. The instant of expiry is included, so that length 0 is in force for one instant."""
        return self.since <= now and (self.length is None or now <= self.since + self.length)


class ContextualEvent(NamedTuple):
    """The paper's [p, e, τe, r, s̃], without p: the publisher is an argument of its own."""

    event: Event
    lifetime: Lifetime
    relevance: Context | None = None
    subscription_domain: Context | None = None


class ContextualSubscription(NamedTuple):
    """The paper's [s, ẽ, τs, r̃, p̃], without s."""

    filter: Filter
    lifetime: Lifetime
    interest: Context | None = None
    publication_domain: Context | None = None


def in_context(context: Context | None, situation: Situation) -> bool:
    """Conditions 4 and 5: whether a publisher or a subscriber is in the domain. True if there is no domain."""
    return context is None or holds(context, situation)


def in_overlap(event: ContextualEvent, subscription: ContextualSubscription, host: Situation) -> bool:
    """Whether this host is in both the context of relevance and that of interest. Condition 3 needs one such host."""
    return in_context(event.relevance, host) and in_context(subscription.interest, host)


def matches(
    event: ContextualEvent,
    subscription: ContextualSubscription,
    now: int,
    publisher: Situation,
    subscriber: Situation,
    hosts: Iterable[Situation],
) -> bool:
    """All five conditions at the instant `now`.

    `hosts` are all hosts of the configuration, publisher and subscriber included; hosts that are surely outside one of
    the two contexts may be left out.
    """
    return (
        event.lifetime.covers(now)
        and subscription.lifetime.covers(now)
        and subscription.filter.matches(event.event)
        and in_context(subscription.publication_domain, publisher)
        and in_context(event.subscription_domain, subscriber)
        and any(in_overlap(event, subscription, host) for host in hosts)
    )
