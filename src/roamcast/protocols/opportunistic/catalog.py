"""The catalog: which documents of the cache an announce offers, selected by what the neighbours want.

Section 2.1 of the paper, "Announcing": only documents that a known neighbour within the scope is interested in. The
naive way matches every neighbour's profile with every document at every announce, which costs more than everything
else. Here each pair of profile and content is matched once, and only when needed: documents of the same type and
attributes are one *content*, and each profile has a bit mask of the contents that match it. At an announce, the
profiles of the current neighbours are matched with the contents that arrived since they were last matched. The announce
is the union of their masks, and stays the same object until that union or the documents change.

* Equal profiles are stored once. A profile is kept when its neighbour leaves, so that the neighbour's return costs
  nothing.
* Documents are listed by content, in the order in which the contents came.
* An announce with no room for everything starts with the documents that were not listed for the longest time.
* Matching is bounded: an announce makes at most `MAX_TESTS` comparisons of values, of which each profile gets a share.
  What is left is matched at the next announces; until then it is not offered to that neighbour.
* Bounded: neighbours, profiles (twice as many), and the documents that each neighbour is known to have. A profile with
  very many constraints is treated as wanting everything: matching it with a full cache would take seconds.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain, takewhile
from typing import Final, Literal, NamedTuple

from roamcast.bounded import put
from roamcast.content.clauses import Effort, EffortSpent
from roamcast.content.event import EventId
from roamcast.content.filter import EVERYTHING, Filter
from roamcast.protocols.neighbours import NeighbourTable
from roamcast.protocols.opportunistic.cache import Held
from roamcast.protocols.opportunistic.documents import Descriptor
from roamcast.protocols.opportunistic.messages import MILLISECOND, Listing

MAX_CONSTRAINTS: Final = 256
"""Most constraints in a profile that is matched: more than our own nodes send."""
MAX_TESTS: Final = 200_000
"""Most comparisons of values for one announce: some 40 ms."""
MAX_JUDGED: Final = 128
"""Most contents per profile for which it is remembered whether the profile wants them."""
MAX_TABLES: Final = 512
"""Most profiles for which that is remembered by the whole process."""
MAX_KNOWN: Final = 1024
"""Most documents remembered per neighbour as documents that it has."""


class _Content:
    """The type and attributes that some documents here share.

    What announces list about each document is kept in tables, so that an announce can join whole tables.
    """

    __slots__ = ("_ids", "bit", "descriptors", "documents", "expires", "held", "listed", "number", "published", "size")

    def __init__(self, number: int, bit: int, listed: Descriptor) -> None:
        self.number = number
        """Greater than the numbers of all earlier contents."""
        self.bit = bit
        """Its bit in masks of contents; a later content may get it when this one has left."""
        self.listed = listed
        """The descriptor of one of its documents, past or present."""
        self.held = listed.event.held
        """How many values it has."""
        self.documents: dict[EventId, Held] = {}
        self.descriptors: dict[EventId, Descriptor] = {}
        self.published: dict[EventId, int] = {}
        self.expires: dict[EventId, int | None] = {}
        self.size = 0
        """Bytes of the encoded descriptors."""
        self._ids: frozenset[EventId] | None = None  # built again after the documents have changed

    def put(self, held: Held) -> None:
        id, descriptor = held.document.id, held.document.descriptor
        self.documents[id] = held
        self.descriptors[id] = descriptor
        self.published[id] = held.published // MILLISECOND
        self.expires[id] = held.expires
        self.size += descriptor.size
        self._ids = None

    def remove(self, id: EventId) -> None:
        self.size -= self.descriptors[id].size
        del self.documents[id], self.descriptors[id], self.published[id], self.expires[id]
        self._ids = None

    @property
    def ids(self) -> frozenset[EventId]:
        if self._ids is None:
            self._ids = frozenset(self.documents)
        return self._ids


class Offer(NamedTuple):
    """The documents that an announce, or a part of it, offers."""

    listing: Listing
    published: list[int]
    """When each document was published, in whole ms by this node's clock."""
    expires: list[int | None]
    """When each document expires; may be empty if none does."""

    @staticmethod
    def of(documents: list[Held]) -> "Offer":
        listing = Listing.of(tuple([held.document.descriptor for held in documents]))
        published = [held.published // MILLISECOND for held in documents]
        return Offer(listing, published, [held.expires for held in documents])


@lru_cache(MAX_TABLES)
def _judgements(filter: Filter) -> dict[bytes, bool]:
    """Which contents a profile wants, as far as this was judged. One table serves all nodes of a simulation."""
    return {}


class _Profile:
    """A profile that was received, and which of the contents that it was matched with it wants."""

    __slots__ = ("_judged", "asked", "constraints", "filter", "wanted")

    def __init__(self, filter: Filter) -> None:
        self.filter = filter
        self.asked = 0  # the number of the latest content that it was matched with
        self.wanted = 0  # the bits of the contents here that it wants
        self.constraints = 1 + sum(map(len, filter.alternatives))
        self._judged = _judgements(filter)  # also contents that have left: they often return

    def wants(self, content: _Content, effort: Effort) -> bool:
        """Raises `EffortSpent` if it takes too long to find out."""
        listed = content.listed
        wants = self._judged.get(listed.content)
        if wants is None:
            effort.spend(self.constraints * content.held)
            wants = self.filter.matches(listed.event)
            put(self._judged, listed.content, wants, MAX_JUDGED)
        return wants


class _Neighbour:
    __slots__ = ("has", "profile")

    def __init__(self, profile: _Profile) -> None:
        self.profile = profile
        self.has: dict[EventId, None] = {}


class Catalog:
    def __init__(self, fit: Literal["wanted", "missing"], lifetime: int, neighbours: int) -> None:
        self._missing_only = fit == "missing"
        self._neighbours: NeighbourTable[_Neighbour] = NeighbourTable(lifetime, neighbours)
        self._most_profiles = 2 * neighbours
        self._profiles: dict[Filter, _Profile] = {}
        self._contents: dict[bytes, _Content] = {}  # of the documents here, in the order of the contents' numbers
        self._latest = 0  # the number of the newest content
        self._bits = 0  # those of the contents here
        self._offer: Offer | None = None  # the latest, until documents enter or leave
        self._offered = 0  # the contents in it
        self._expiring = 0  # how many documents here expire
        self._listed: dict[EventId, int] = {}  # in which announce a document was last listed
        self._announces = 0
        self._first = 0  # which of the profiles that take turns is the next

    # --- What there is ----------------------------------------------------------------------------------------------

    def enter(self, held: Held) -> None:
        """Adds a document that has entered the cache."""
        descriptor = held.document.descriptor
        key = descriptor.content
        content = self._contents.get(key)
        if content is None:
            self._latest += 1
            bit = ~self._bits & (self._bits + 1)  # the lowest that is free
            self._bits |= bit
            content = self._contents[key] = _Content(self._latest, bit, descriptor)
        content.put(held)
        self._expiring += held.expires is not None
        self._offer = None

    def leave(self, held: Held) -> None:
        id, key = held.document.id, held.document.descriptor.content
        self._listed.pop(id, None)
        content = self._contents[key]
        content.remove(id)
        self._expiring -= held.expires is not None
        self._offer = None
        if not content.documents:
            del self._contents[key]
            self._bits &= ~content.bit
            for profile in self._profiles.values():
                profile.wanted &= ~content.bit

    # --- Who wants what ---------------------------------------------------------------------------------------------

    def hear(self, now: int, node: int, filter: Filter) -> None:
        """Notes the profile of a node within the scope."""
        known = self._neighbours.renew(now, node)
        if known is None:
            self._neighbours.hear(now, node, _Neighbour(self._profile(filter)))
            return
        before = known.value.profile.filter
        if before is not filter and before != filter:
            known.value.profile = self._profile(filter)

    def has(self, node: int, ids: Iterable[EventId]) -> None:
        """Notes that a neighbour has these documents."""
        if not self._missing_only:
            return
        known = self._neighbours.get(node)
        if known is not None:
            for id in ids:
                put(known.value.has, id, None, MAX_KNOWN)

    def expire(self, now: int) -> None:
        """Forgets neighbours that were not heard for too long."""
        self._neighbours.expire(now)

    def _profile(self, filter: Filter) -> _Profile:
        profile = self._profiles.get(filter)
        if profile is None and sum(map(len, filter.alternatives)) > MAX_CONSTRAINTS:
            filter = EVERYTHING
            profile = self._profiles.get(filter)
        if profile is None:
            if len(self._profiles) >= self._most_profiles:
                self._make_room()
            profile = self._profiles[filter] = _Profile(filter)
        return profile

    def _make_room(self) -> None:
        """Drops the oldest profile that no neighbour has; there is one, since there may be twice as many profiles."""
        used = {known.value.profile for _, known in self._neighbours.items()}
        oldest = next(profile for profile in self._profiles.values() if profile not in used)
        del self._profiles[oldest.filter]

    def _asked(self, profiles: Iterable[_Profile]) -> Iterator[_Profile]:
        """The profiles, one after the other matched with what is new to it, as far as one announce may."""
        waiting = dict.fromkeys(profiles)
        left, dear = float(MAX_TESTS), list[_Profile]()
        for position, profile in enumerate(waiting):
            new = self._new_to(profile)
            share = left / (len(waiting) - position)  # what one does not need is left for the others
            if new and profile.constraints * new[-1].held > share:
                dear.append(profile)
                continue
            left -= self._ask(profile, new, share)
            yield profile
        # One content with a long profile may take more than its share: these take turns, one content each.
        first = self._first % len(dear) if dear else 0
        for position, profile in enumerate(dear[first:] + dear[:first]):
            new = self._new_to(profile)
            least = profile.constraints * new[-1].held
            if least > left:
                self._first = first + position
                break
            left -= self._ask(profile, new, least)
            yield profile

    def _new_to(self, profile: _Profile) -> list[_Content]:
        """The contents that a profile was not matched with, the newest first."""
        return list(takewhile(lambda content: content.number > profile.asked, reversed(self._contents.values())))

    def _ask(self, profile: _Profile, new: list[_Content], share: float) -> float:
        """Matches a profile with new contents; returns the comparisons that it took, at most `share`."""
        effort = Effort(share)
        try:
            while new:
                if profile.wants(new[-1], effort):
                    profile.wanted |= new[-1].bit
                profile.asked = new.pop().number
            profile.asked = self._latest
        except EffortSpent:
            return share
        return share - effort.left

    def _contents_of(self, bits: int) -> list[_Content]:
        """In the order in which they came."""
        return [content for content in self._contents.values() if content.bit & bits]

    # --- What is announced ------------------------------------------------------------------------------------------

    def fitted(self, budget: int) -> list[Held]:
        """The documents to announce now, in at most `budget` bytes; 0: no limit."""
        wanted = self._missing() if self._missing_only else self._wanted()
        return self._chosen(wanted, budget) if budget else wanted

    def everything_wanted(self) -> Offer:
        """All documents to announce now. Most of an announce's cost is here, so nothing is done per document."""
        wanted = self._wanted_contents()
        if self._offer is None or wanted != self._offered:
            contents = self._contents_of(wanted)
            descriptors = tuple(chain.from_iterable([content.descriptors.values() for content in contents]))
            ids = {content.listed.content: content.ids for content in contents}
            self._offered = wanted
            self._offer = Offer(
                Listing(descriptors, ids, sum([content.size for content in contents])),
                list(chain.from_iterable([content.published.values() for content in contents])),
                list(chain.from_iterable([content.expires.values() for content in contents])) if self._expiring else [],
            )
        return self._offer

    def _wanted_contents(self) -> int:
        """The bits of the contents that some neighbour wants, as far as matched."""
        bits, latest = 0, self._latest
        asking: list[_Profile] = []
        for _, known in self._neighbours.items():
            profile = known.value.profile
            bits |= profile.wanted
            if profile.asked != latest:  # most have been matched with all contents
                asking.append(profile)
        if bits != self._bits:
            for profile in self._asked(asking):
                bits |= profile.wanted
                if bits == self._bits:  # the other profiles cannot add any
                    break
        return bits

    def _wanted(self) -> list[Held]:
        contents = self._contents_of(self._wanted_contents())
        return list(chain.from_iterable([content.documents.values() for content in contents]))

    def _missing(self) -> list[Held]:
        wanted: dict[EventId, Held] = {}
        for _ in self._asked(known.value.profile for _, known in self._neighbours.items()):
            pass
        for _, known in self._neighbours.items():
            has = known.value.has
            for content in self._contents_of(known.value.profile.wanted):
                wanted.update((id, held) for id, held in content.documents.items() if id not in has)
        return list(wanted.values())

    def _chosen(self, wanted: list[Held], budget: int) -> list[Held]:
        if sum(held.document.listed for held in wanted) <= budget:
            return wanted
        self._announces += 1
        chosen, spent = [], 0
        for held in sorted(wanted, key=lambda held: self._listed.get(held.document.id, 0)):
            spent += held.document.listed
            if spent > budget:
                break
            chosen.append(held)
            self._listed[held.document.id] = self._announces
        return chosen

    @property
    def profiles(self) -> int:
        return len(self._profiles)

    def __len__(self) -> int:
        """The number of known neighbours."""
        return len(self._neighbours)


def parts(catalog: list[Held], first: int, room: int) -> list[list[Held]]:
    """A catalog split into parts of at most `room` bytes (`first` bytes in the first), each with one document or more.

    Only the first part, which has the profile, may be empty.
    """
    cut: list[list[Held]] = [[]]
    left = first
    for held in catalog:
        size = held.document.listed
        if size > left and (cut[-1] or len(cut) == 1):
            cut.append([])
            left = room
        cut[-1].append(held)
        left -= size
    return cut
