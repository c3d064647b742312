"""What an application hands to its broker: subscriptions and publications."""

import msgspec

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


class Publication(msgspec.Struct, frozen=True, array_like=True):
    """An event on its way out. The host has given it its id."""

    event: Event
    lifetime: Time | None = None
    """How long it may be delivered after its publication, ns; None: as long as a broker has it."""
