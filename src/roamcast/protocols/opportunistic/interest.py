"""What a node wants: its interest profile, and what it carries for others besides.

Section 2.1 of the paper, "Interest profile". What is *wanted* matches a subscription of an application here. What is
*kept* is wanted, or matches what the node carries for others. All documents of equal content are judged once.
"""

from collections.abc import Mapping
from typing import Final

from roamcast.bounded import put
from roamcast.content.covering import summarise
from roamcast.content.event import EventId
from roamcast.content.filter import NOTHING, Filter
from roamcast.protocols.local import LocalSubscriptions
from roamcast.protocols.opportunistic.documents import Descriptor
from roamcast.protocols.opportunistic.messages import Announce

_REMEMBERED: Final = 2048
"""Judgements."""
_FEW: Final = 4
"""Subscriptions up to which asking each is faster than the index."""


class Interest:
    def __init__(self, local: LocalSubscriptions, carried: Filter, longest: int) -> None:
        """`carried` is what is kept for others; a profile takes at most `longest` bytes."""
        self._local = local
        self._carried = carried
        self._longest = longest
        self._filters: list[Filter] = []
        self._profile: Filter | None = None  # made anew when subscriptions change
        self._by_content: dict[bytes, tuple[bool, bool]] = {}
        self._kept: dict[bytes, None] = {}  # those of them that are kept

    def changed(self) -> None:
        """Subscriptions came or went."""
        self._filters = self._local.filters
        self._profile = None
        self._by_content.clear()
        self._kept.clear()

    @property
    def profile(self) -> Filter:
        """What this node tells others that it wants: all of it, and perhaps more, if its subscriptions are many."""
        if self._profile is None:
            filters = [*self._local.filters, self._carried]
            self._profile = summarise(filters, self._longest) if filters != [NOTHING] else NOTHING
        return self._profile

    def judge(self, listed: Descriptor) -> tuple[bool, bool]:
        """Whether a document is wanted, and whether it is kept."""
        known = self._by_content.get(listed.content)
        if known is None:
            event = listed.event
            if len(self._filters) > _FEW:
                wanted = self._local.matches(event)
            else:
                wanted = any(own.matches(event) for own in self._filters)
            known = wanted, wanted or self._carried.matches(event)
            oldest = put(self._by_content, listed.content, known, _REMEMBERED)
            if known[1]:
                self._kept[listed.content] = None
            if oldest is not None:
                self._kept.pop(oldest, None)
        return known

    def unsettled(self, announce: Announce, settled: Mapping[EventId, None]) -> list[int]:
        """Which documents of a catalog are kept here and not settled, as places in the catalog."""
        listing = announce.listing
        contents = listing.contents
        if contents.keys() <= self._by_content.keys():
            kept = contents.keys() & self._kept.keys()  # a set, but places are sorted below
        else:
            kept = {content for content, ids in contents.items() if self.judge(listing.one_of(ids))[1]}
        found: list[EventId] = []
        for content in kept:
            found += contents[content].difference(settled)
        return sorted([listing.places[id] for id in found]) if found else []
