"""Records what happens on a live node: counts it for the status, and writes it to disk if requested (`written.py`).

Counting needs only this file. Arrow, which writes, takes 50 MB: a node that writes no facts does not load it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from roamcast.content.event import Scalar
from roamcast.content.subscription import Publication, Subscription
from roamcast.extras import not_installed
from roamcast.live import log
from roamcast.protocols.api import Time
from roamcast.protocols.entry import Entry
from roamcast.protocols.facts import Fact

if TYPE_CHECKING:
    from roamcast.live.settings import NodeSettings

K = TypeVar("K")

INTERVAL: Final = 5.0
"""Seconds between the first parts written after a start; `WrittenFacts.interval` says how it grows."""
DEFAULT_LIMIT: Final = 2**30
"""Bytes of all parts together."""


def add(totals: dict[K, Counter[str]], key: K, amounts: Mapping[str, int]) -> None:
    """Adds to the totals under a key. `Counter.update` would take five times as long."""
    counted = totals.get(key)
    if counted is None:
        counted = totals[key] = Counter()
    for name, amount in amounts.items():
        counted[name] += amount


class Facts:
    """Counts what happens on a node, and writes nothing."""

    def __init__(self) -> None:
        self.recording = False
        self.decisions = False
        """Whether to record what the broker decides about events."""
        self.notes: Counter[str] = Counter()
        self.counted: dict[str, Counter[str]] = {}
        """Totals since the start by kind of message, for the status."""
        self.on_recorded: Callable[[int], None] = lambda event: None
        """Called with the last event of a part of `publish` once the part is on disk."""
        self.last_published = 0
        """The id of the last event in the parts of `publish` written before this start; 0: there is none."""

    @property
    def interval(self) -> float:
        """Seconds from the latest part to the next."""
        return INTERVAL

    def note(self, what: str) -> None:
        self.notes[what] += 1

    def count(self, now: Time, kind: str, cause: int = 0, **amounts: int) -> None:
        """Adds to the totals of sent (by cause) and received messages; `amounts` are columns of `transmit`."""
        add(self.counted, kind, amounts)

    def subscribed(self, now: Time, subscription: Subscription) -> None:
        """An application has subscribed."""

    def unsubscribed(self, now: Time, number: int) -> None:
        """A subscription is over."""

    def published(self, now: Time, publication: Publication) -> None:
        """An application has published."""

    def delivered(
        self, now: Time, event_id: int, subscriptions: Iterable[int], published: Time | None, hops: int, via: str
    ) -> None:
        """An event was delivered. `published` is None for other nodes' events: only their nodes know the time."""

    def record(self, now: Time, fact: Fact) -> None:
        """The broker has recorded a fact of its protocol."""

    def sensed(self, now: Time, attributes: Mapping[str, Scalar]) -> None:
        """The node's attributes have changed; `attributes` has only the new values."""

    async def cut(self, now: Time, *, last: bool = False) -> None:
        """Writes a part with everything up to the last full second; the last part includes the current second."""

    async def close(self, now: Time) -> None:
        """The node ends."""


def facts_of(settings: "NodeSettings", entry: Entry, epoch: int) -> Facts:
    """The facts of a node, written to a folder if it has one; `epoch` is their time 0, in ns since 1970."""
    folder = settings.facts
    if folder is None:
        return Facts()
    try:
        from roamcast.live.written import WrittenFacts  # noqa: PLC0415  # see above
    except ModuleNotFoundError as missing:
        raise not_installed("writing facts (--facts)", missing, "facts") from None
    try:
        limit = settings.facts_limit
        return WrittenFacts(folder, settings.node, entry, decisions=settings.decisions, limit=limit, epoch=epoch)
    except OSError as problem:
        # Facts are for measuring: the node continues without them, and logs it.
        log.error("facts could not be written", reason=str(problem), folder=str(folder))
        without = Facts()
        without.note("facts lost")
        return without
