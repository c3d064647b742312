"""What a node wants: its interest profile, and what else it carries for others.

Section 2.1 of the paper, "Interest profile". A document is *wanted* if it matches a subscription of an application
here. It is *kept* if it is wanted, or matches what the node carries for others. Documents of equal content are judged
once.
"""

from typing import Final

from roamcast.bounded import put
from roamcast.content.covering import summarise
from roamcast.content.event import EventId
from roamcast.content.filter import NOTHING, Filter
from roamcast.protocols.local import LocalSubscriptions
from roamcast.protocols.opportunistic.documents import Descriptor
from roamcast.protocols.opportunistic.holdings import Holdings
from roamcast.protocols.opportunistic.messages import Announce

_REMEMBERED: Final = 2048
"""How many judgements are remembered."""
MAX_JUDGED: Final = 1000
"""Contents of one announce that are matched with the subscriptions: it takes some 30 ms. The rest is at its next."""
_FEW: Final = 4
"""Up to this many subscriptions, matching them one by one is faster than the index."""


class Interest:
    def __init__(self, local: LocalSubscriptions, carried: Filter, longest: int) -> None:
        """`carried` matches what is kept for others; a profile takes at most `longest` bytes."""
        self._local = local
        self._carried = carried
        self._longest = longest
        self._filters: list[Filter] = []
        self._profile: Filter | None = None  # built again when subscriptions change
        self._by_content: dict[bytes, tuple[bool, bool]] = {}

    def changed(self) -> None:
        """Must be called after subscriptions were added or removed."""
        self._filters = self._local.filters
        self._profile = None
        self._by_content.clear()

    @property
    def profile(self) -> Filter:
        """The filter that this node announces: everything it wants, and perhaps more if it has many subscriptions."""
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
            put(self._by_content, listed.content, known, _REMEMBERED)
        return known

    def missing(self, announce: Announce, holdings: Holdings) -> list[int]:
        """The documents of a catalog that would be kept here and are not settled, as positions in the catalog. Of more
        than `MAX_JUDGED` new contents, the first."""
        listing, judged = announce.listing, self._by_content
        found: list[EventId] = []
        left = MAX_JUDGED
        for content, ids in listing.contents.items():
            known = judged.get(content)
            if known is None:
                if not left:  # the others when they are announced again
                    break
                left -= 1
                known = self.judge(listing.one_of(ids))
            _, kept = known
            if kept:
                found += holdings.unsettled(ids)  # a set, but the positions are sorted below
        return sorted([listing.places[id] for id in found]) if found else []
