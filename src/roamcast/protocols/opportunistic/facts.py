"""What opportunistic dissemination records."""

from typing import ClassVar, Literal

from roamcast.content.event import EventId
from roamcast.protocols.facts import Fact

Change = Literal["published", "received", "kept", "full", "expired"]


class CacheChanged(Fact, frozen=True):
    """A document entered a node's cache or left it. docs/facts.md lists the changes."""

    table: ClassVar[str] = "cache"

    event: EventId
    entered: bool
    change: Change
    """Why: `published` here, `received`, `kept` by a former life; dropped because it was `full`, or `expired`."""
    documents: int
    """Documents in the cache after the change."""
    octets: int
    """Bytes of documents in it after the change."""


class RelaysChosen(Fact, frozen=True):
    """A node chose other multipoint relays. Recorded with a scope above 1 only."""

    table: ClassVar[str] = "relays"
    lasting: ClassVar[bool] = True

    relays: tuple[int, ...]
    """The neighbours that pass on the node's broadcasts, sorted."""
