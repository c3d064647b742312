"""What an application hands to its broker: subscriptions and publications.

The contexts are the paper's of Frey and Roman (2007), section 2.3; `matching.py` says what they mean together. Without
them both are plain: wanted and relevant everywhere, from and for everybody.
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
    """The context of interest: events are wanted that are relevant to a host in it; None: everywhere."""
    publication_domain: Context | None = None
    """The publishers from whom events are wanted; None: from all."""


class Publication(msgspec.Struct, frozen=True, array_like=True):
    """An event on its way out. The host has given it its id."""

    event: Event
    lifetime: Time | None = None
    """How long it may be delivered after its publication, ns; None: as long as a broker has it."""
    relevance: Context | None = None
    """The context of relevance: the hosts that it concerns; None: everywhere."""
    subscription_domain: Context | None = None
    """The subscribers that may get it; None: all."""
