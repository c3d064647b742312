"""What an application hands to its broker: subscriptions and publications.

The contexts are those of Frey and Roman (2007), section 2.3. In the system's configuration at an instant, an event is
for a subscription if and only if

1. its content matches the filter;
2. both have been issued, and neither lifetime is over; the instant of expiry is included;
3. some host is in the event's context of relevance and in the subscription's context of interest;
4. the publisher is in the subscription's publication domain;
5. the subscriber is in the event's subscription domain.

A context that is not given holds for every host.
"""

import msgspec

from roamcast.content.context.expression import Context
from roamcast.content.event import Event
from roamcast.content.filter import Filter

Time = int
"""Nanoseconds."""


class Subscription(msgspec.Struct, frozen=True, array_like=True):
    """An interest: events that match `filter` are wanted. The id is unique on its node."""

    id: int
    filter: Filter
    lifetime: Time | None = None
    """How long it is wanted, ns; None: until it is unsubscribed."""
    interest: Context | None = None
    """The context of interest: only events relevant to a host in it are wanted; None: everywhere."""
    publication_domain: Context | None = None
    """The publishers from whom events are wanted; None: from all."""


class Publication(msgspec.Struct, frozen=True, array_like=True):
    """An event being published. The host has given it its id."""

    event: Event
    lifetime: Time | None = None
    """How long after its publication it may be delivered, ns; None: as long as brokers carry it (`context`: not)."""
    relevance: Context | None = None
    """The context of relevance: the hosts that the event concerns; None: everywhere."""
    subscription_domain: Context | None = None
    """The subscribers that may get the event; None: all."""
