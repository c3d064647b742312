"""The facts of `context`, except local minima (`geocast.py`)."""

from typing import ClassVar, Literal

from roamcast.content.event import EventId
from roamcast.protocols.facts import Fact


class Match(Fact, frozen=True):
    """A step of a match: a host found that an event and a subscription overlap, or a domain was decided."""

    table: ClassVar[str] = "match"

    event: EventId
    subscriber: int
    subscription: int
    step: Literal["overlap", "publication domain", "subscription domain"]
    """`overlap` at the host that sends what follows; the domains at the publisher and at the subscriber."""
    holds: bool
    """Whether the domain holds; always true for an overlap."""


class Holding(Fact, frozen=True):
    """A host began or ceased to hold another host's event or subscription."""

    table: ClassVar[str] = "holding"

    event: EventId | None
    subscriber: int | None
    subscription: int | None
    holds: bool
