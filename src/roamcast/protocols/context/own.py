"""The events and subscriptions that a host has issued itself: the paper's local event and local subscription table.

They are renewed (a new version, a new reachability region) until their lifetime is over or they are taken back, and
kept for `grace` beyond: a match that was found in time takes a moment to come back to its publisher or subscriber.
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
        """Whether it has not been issued."""
        self.issued = now
        """When its latest version was."""
        self.version = 0
        self.reach: Rectangle | None = None

    def issue(self, now: Time, reach: Rectangle | None) -> bool:
        """Makes a new version; whether it is the first.

        Versions are numbered by the clock, which a host that begins again still has, so that they never repeat.
        """
        first, self.first = self.first, False
        self.version = max(self.version + 1, now // MILLISECOND)
        self.issued, self.reach = now, reach
        return first

    def left(self, now: Time, most: Time) -> Time:
        """What is left of its life; of one without end, as long as others are to hold it without hearing of it."""
        return most if self.expires == math.inf else max(0, int(self.expires) - now)
