"""The events and subscriptions that a host has issued itself: the paper's local event and local subscription table.

They are renewed (a new version, a new reachability region) until their lifetime is over or they are withdrawn, and
kept for `grace` beyond that: a match that was found in time takes a moment to reach its publisher or subscriber.

An item that goes everywhere has no reachability region until somebody needs it: the first match for a subscription, or
the first request to a publisher, is flooded, and from then on the host says where it is.
"""

import math
from typing import Generic, TypeVar

from roamcast.content.region import Rectangle
from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.api import Time

T = TypeVar("T", Publication, Subscription)


class Own(Generic[T]):
    """An event or a subscription of this host."""

    __slots__ = ("due", "expires", "first", "period", "reach", "sought", "version", "what")

    def __init__(self, what: T, now: Time, lifetime: Time | None) -> None:
        self.what: T = what
        self.expires = math.inf if lifetime is None else now + lifetime
        self.first = True
        """Whether it has not been issued yet."""
        self.due = now
        """When it is to be issued again, wherever the host is."""
        self.period: Time = 0
        """How long after its latest version, but for chance."""
        self.version = 0
        self.reach: Rectangle | None = None
        """The reachability region that it was last issued with."""
        self.sought: Time | None = None
        """When a match last came for a subscription that needed its reachability region."""

    def issue(self, version: int, reach: Rectangle | None, due: Time) -> bool:
        """Makes a new version; returns whether it is the first."""
        first, self.first = self.first, False
        self.version, self.reach, self.due = version, reach, due
        return first

    def left(self, now: Time, most: Time) -> Time:
        """Its remaining lifetime; without an end, how long others shall hold it without a refresh."""
        return most if self.expires == math.inf else max(0, int(self.expires) - now)
