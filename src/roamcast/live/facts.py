"""What happens on a live node: counted for the status, and written down where that is asked for (`written.py`).

Counting needs nothing but this file. Arrow, which writes, takes 50 MB: a node that writes no facts does not load it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from roamcast.content.event import Scalar
from roamcast.content.subscription import Publication, Subscription
from roamcast.live import log
from roamcast.protocols.api import Node, Time
from roamcast.protocols.entry import Entry
from roamcast.protocols.facts import Fact

INTERVAL: Final = 5.0
"""Seconds between the first parts of a life that are written; `WrittenFacts.interval` has what follows."""
DEFAULT_LIMIT: Final = 2**30
"""Bytes of all parts."""


class Facts:
    """Takes what happens on a node, and only counts it."""

    def __init__(self) -> None:
        self.recording = False
        self.decisions = False
        """Whether what the broker decides about events is wanted."""
        self.notes: Counter[str] = Counter()
        self.counted: dict[str, Counter[str]] = {}
        """By kind since the start, for the status."""
        self.on_recorded: Callable[[int], None] = lambda event: None
        """Called with the last event of a part of `publish` that is written."""
        self.last_published = 0
        """The id of the last event in a part of `publish` that a former life wrote; 0: there is none."""

    @property
    def interval(self) -> float:
        """Seconds from the latest part to the next."""
        return INTERVAL

    def note(self, what: str) -> None:
        self.notes[what] += 1

    def count(self, now: Time, kind: str, cause: int = 0, **amounts: int) -> None:
        """Adds to what was sent (by its cause) and received, under the names of the columns of `transmit`."""
        self.counted.setdefault(kind, Counter()).update(amounts)

    def subscribed(self, now: Time, subscription: Subscription) -> None:
        """An application has subscribed."""

    def unsubscribed(self, now: Time, number: int) -> None:
        """A subscription is over."""

    def published(self, now: Time, publication: Publication) -> None:
        """An application has published."""

    def delivered(
        self, now: Time, event_id: int, subscriptions: Iterable[int], published: Time | None, hops: int, via: str
    ) -> None:
        """`published` is None for the events of others: their nodes know when."""

    def record(self, now: Time, fact: Fact) -> None:
        """The broker has recorded a fact of its protocol."""

    def sensed(self, now: Time, attributes: Mapping[str, Scalar]) -> None:
        """What the node says of itself has changed: only what is new is told."""

    async def cut(self, now: Time, *, last: bool = False) -> None:
        """Writes a part with everything but the second that is not over; the last part has that too."""

    async def close(self, now: Time) -> None:
        """The node ends."""


def facts_of(
    folder: Path | None, node: Node, entry: Entry, *, decisions: bool = False, limit: int = DEFAULT_LIMIT
) -> Facts:
    """The facts of a node, written to a folder if there is one."""
    if folder is None:
        return Facts()
    from roamcast.live.written import WrittenFacts  # noqa: PLC0415  # see above

    try:
        return WrittenFacts(folder, node, entry, decisions=decisions, limit=limit)
    except OSError as problem:
        # Facts are for measuring: a node goes on without them, and says so.
        log.error("facts could not be written", reason=str(problem), folder=str(folder))
        without = Facts()
        without.note("facts lost")
        return without
