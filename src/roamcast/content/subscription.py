"""What an application hands to its broker: subscriptions and publications."""

import msgspec

from roamcast.content.event import Event
from roamcast.content.filter import Filter


class Subscription(msgspec.Struct, frozen=True, array_like=True):
    """An interest: events that match `filter` are wanted. The id is unique on its node."""

    id: int
    filter: Filter


class Publication(msgspec.Struct, frozen=True, array_like=True):
    """An event on its way out. The host has given it its id."""

    event: Event
