"""The events and subscriptions that a host has issued itself: the paper's local event and local subscription table.

They are renewed (a new version, a new reachability region) until their lifetime is over or they are withdrawn, and
kept for `grace` beyond that: a match that was found in time takes a moment to reach its publisher or subscriber.
"""

import math
from typing import Final, Generic, TypeVar

from roamcast.content.region import Rectangle
from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.api import Time
from roamcast.units import SECOND

MILLISECOND: Final = SECOND // 1000

T = TypeVar("T", Publication, Subscription)


class Own(Generic[T]):
    """An event or a subscription of this host."""

    __slots__ = ("expires", "first", "issued", "reach", "version", "what")

    def __init__(self, what: T, now: Time, lifetime: Time | None) -> None:
        self.what: T = what
        self.expires = math.inf if lifetime is None else now + lifetime
        self.first = True
        """Whether it has not been issued yet."""
        self.issued = now
        """When its latest version was issued."""
        self.version = 0
        self.reach: Rectangle | None = None

    def issue(self, now: Time, reach: Rectangle | None) -> bool:
        """Makes a new version; returns whether it is the first.

        Versions are numbered by the clock, which survives a restart, so that they never repeat.
        """
        first, self.first = self.first, False
        self.version = max(self.version + 1, now // MILLISECOND)
        self.issued, self.reach = now, reach
        return first

    def left(self, now: Time, most: Time) -> Time:
        """Its remaining lifetime; without an end, how long others shall hold it without a refresh."""
        return most if self.expires == math.inf else max(0, int(self.expires) - now)
