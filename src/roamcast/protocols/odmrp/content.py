"""The extension by content: Join Requests describe an event, Join Tables say what subscribers want.

The rules this file owns:

* `grouping = "elements"`: events of one type with the same values of all elements that known members ask for make a
  group. Its Join Requests have the digest of these elements alone, and say that there may be others: a node that asks
  for another one joins, and so the source learns of it. Elements that nobody asks for, such as a timestamp, make no
  groups. An element counts for `MEMORY` times `timeout` after a member last asked for it: members that want none of the
  events do not answer, and groups would change each time that they are forgotten.
* `grouping = "digest"`: events with the same digest make a group. A node joins if its summary passes the digest.
* `grouping = "source"`: all events of a source make a group. Its Join Requests say nothing about content, and every
  node with a subscription joins; the source, and forwarders with `forwarding = "summary"`, look at what members want.
* `grouping = "subscription"`, the paper's choice: summaries do not show which of two subscriptions is less constrained,
  so Join Tables carry filters. Of the alternatives of all known filters that match an event, those that no other one
  covers are its groups: it is sent to each, usually one. A node joins if an alternative of its own is covered by the
  group's, or if its summary passes the digest of the event, so that sources learn of other subscriptions. An event
  that no known filter matches makes a group by its digest. When members come, change or go, events move to other groups
  by themselves: that is how groups split and combine.
* With `request = "event"` a Join Request has only the event's digest, whatever the grouping. Members then join for some
  events and miss others of the same group. It exists for measuring.
* A digest carries the prefixes and suffixes that a known member asks for, since without them a string passes. The
  number of a group never depends on them.
* An attachment that cannot be decoded joins nothing and wants nothing; nor does one with a filter that is too long for
  a frame. An empty one says nothing: its member may want anything.
* Processing attachments takes bounded effort. If comparing filters would take more, the result is the one that loses
  nobody: a node joins, the event makes a group by its digest, the merged filter is wider.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Final, TypeVar

import msgspec

from roamcast.bounded import put
from roamcast.content.clauses import Clause, EffortSpent, clauses_of
from roamcast.content.covering import clauses_cover, effort_for, shared, summarise
from roamcast.content.event import Event
from roamcast.content.filter import NOTHING, Filter
from roamcast.content.structure import Decoder, Limits
from roamcast.content.summary.columns import Columns
from roamcast.content.summary.digest import Affixes, EventDigest
from roamcast.content.summary.hashing import type_hash
from roamcast.content.summary.summary import Summary
from roamcast.content.widening import length, too_long, widened
from roamcast.errors import ContentError
from roamcast.protocols.api import Work
from roamcast.protocols.odmrp.extension import Extension, GroupOffer, Known
from roamcast.protocols.odmrp.messages import MAX_ATTACHMENT
from roamcast.protocols.odmrp.parameters import Odmrp

MAX_FILTER: Final = 4096
"""Bytes of a filter in an attachment: comparing filters costs more than reading them."""
MAX_COMPARED: Final = 1024
"""Constraints of all filters that are merged, or compared with each other, at one time."""
MAX_OWN: Final = 4096
"""The same for this node's own subscriptions, which change less often."""
MEMORY: Final = 10
_REMEMBERED: Final = 256
"""Cached answers to the latest different Join Requests."""
_DECODED: Final = 2 * 2**20
"""Bytes of the latest attachments whose decoding is cached, each counted with"""
_ENTRY: Final = 64
"""bytes more for its entry."""
_NO_AFFIXES: Final = Affixes()


class About(msgspec.Struct, frozen=True, array_like=True):
    """What a Join Request says about its group. Nothing: any event may come."""

    digest: EventDigest | None = None
    filter: Filter | None = None


class MemberWish(msgspec.Struct, frozen=True, array_like=True):
    """What a Join Table says about a member."""

    summary: Summary | None = None
    filter: Filter | None = None


_encode: Final = msgspec.msgpack.encode

A = TypeVar("A")
S = TypeVar("S", About, MemberWish)


def _remembered(decode: Callable[[bytes], A]) -> Callable[[bytes], A]:
    """Caches decoding: the same bytes reach many nodes, and again with every refresh; strangers may send long ones."""
    known: dict[bytes, A] = {}
    octets = 0

    @functools.wraps(decode)
    def look_up(attachment: bytes) -> A:
        nonlocal octets
        if attachment in known:
            return known[attachment]
        answer = known[attachment] = decode(attachment)
        octets += len(attachment) + _ENTRY
        while octets > _DECODED:
            oldest = next(iter(known))
            del known[oldest]
            octets -= len(oldest) + _ENTRY
        return answer

    return look_up


def _reader(shape: type[S]) -> Callable[[bytes], S | None]:
    """Decodes attachments; None: it cannot be decoded, or has a filter that is too long."""
    decoder = Decoder[S](shape, Limits(MAX_ATTACHMENT))

    @_remembered
    def read(attachment: bytes) -> S | None:
        try:
            said = decoder.decode(attachment)
        except ContentError:
            return None
        acceptable = said.filter is None or (len(attachment) <= MAX_FILTER and not too_long(said.filter))
        return said if acceptable else None

    return read


about_of: Final = _reader(About)
wanted_of: Final = _reader(MemberWish)


@_remembered
def affixes_of(attachment: bytes) -> Affixes:
    """The prefixes and suffixes that a member asks for."""
    wanted = wanted_of(attachment)
    return _NO_AFFIXES if wanted is None or wanted.summary is None else wanted.summary.affixes


@_remembered
def elements_of(attachment: bytes) -> tuple[int, dict[int | None, frozenset[int]]]:
    """The keys of the elements that a member asks for, by type, and the fingerprint of their columns."""
    wanted = wanted_of(attachment)
    summary = Summary() if wanted is None or wanted.summary is None else wanted.summary
    return summary.columns, {
        entry.type: frozenset(element.key for element in entry.elements) for entry in summary.entries
    }


def number_of(what: EventDigest | Filter | int) -> int:
    """The number of a group, the same on every node."""
    return int.from_bytes(blake2b(_encode(what), digest_size=8).digest(), "big") >> 1


class Content(Extension):
    def __init__(self, node: int, params: Odmrp, spend: Callable[[Work], None]) -> None:
        self._node = node
        self._spend = spend
        self._converted = 0  # the event whose conversion was last reported
        self._params = params
        self._columns = _columns(params.columns)
        self._filters = params.grouping == "subscription"
        self.memory = MEMORY if params.grouping == "elements" else 1
        self._alternatives: list[list[Clause]] = []  # each prepared for comparing
        self._summary = Summary()
        self._wanted = b""
        self._joins: dict[bytes, bool] = {}  # by attachment of a group; cleared when subscriptions change
        self._latest: tuple[int, EventDigest] | None = None  # the event looked at last

    # --- The node's own subscriptions -------------------------------------------------------------------------------

    def change(self, filters: Sequence[Filter]) -> None:
        self._joins.clear()
        self._alternatives = [clauses_of([alternative]) for alternative in _alternatives(filters)]
        self._summary = Summary.of(filters, self._params.summary, self._columns)
        if not filters:
            self._wanted = b""
        elif self._filters:
            self._wanted = _encode(MemberWish(filter=self._merged(filters, MAX_OWN)))
        else:
            self._wanted = _encode(MemberWish(summary=self._summary))

    @property
    def _budget(self) -> int:
        """Bytes for a filter in an attachment, whose other bytes are few."""
        return min(self._params.summary.budget, MAX_FILTER - 16)

    def wanted(self) -> bytes:
        return self._wanted

    def joins(self, group: int, about: bytes) -> bool:
        answer = self._joins.get(about)
        if answer is None:
            answer = self._compare(about)
            put(self._joins, about, answer, _REMEMBERED)
        return answer

    def _compare(self, attachment: bytes) -> bool:
        about = about_of(attachment)
        if about is None or not self._alternatives:
            return False
        if about.digest is None and about.filter is None:
            return True
        if about.digest is not None and self._passes(self._summary, about.digest):
            return True
        return about.filter is not None and self._covers_own(about.filter)

    def _covers_own(self, filter: Filter) -> bool:
        """Whether a filter covers an alternative of this node's subscriptions, or that takes too long to find out."""
        effort = effort_for([filter])
        try:
            wide = clauses_of([filter], effort)
            return any(clauses_cover(wide, mine, effort) for mine in self._alternatives)
        except EffortSpent:
            return True

    # --- Those of others --------------------------------------------------------------------------------------------

    def merge(self, wanted: Iterable[bytes]) -> bytes:
        attached = list(wanted)
        if b"" in attached:
            return b""
        known = [one for one in map(wanted_of, attached) if one is not None]
        if self._filters:
            filters = [one.filter for one in known if one.filter is not None]
            return _encode(MemberWish(filter=self._merged(filters, MAX_COMPARED) if filters else NOTHING))
        summaries = [one.summary for one in known if one.summary is not None]
        return _encode(MemberWish(summary=Summary().union(*summaries, budget=self._params.summary.budget)))

    def _merged(self, filters: Sequence[Filter], longest: int) -> Filter:
        """One filter for all of these; in one pass if they have more than `longest` constraints together."""
        merge = summarise if sum(map(length, filters)) <= longest else shared
        return widened(merge(filters, self._budget))

    def wants(self, wanted: bytes, event: Event) -> bool:
        if not wanted:
            return True
        known = wanted_of(wanted)
        if known is None:
            return False
        if known.filter is not None:
            return known.filter.matches(event)
        return known.summary is not None and self._passes(known.summary, self._digest(event))

    def _passes(self, summary: Summary, digest: EventDigest) -> bool:
        self._spend("compare")
        return summary.passes(digest)

    def _digest(self, event: Event) -> EventDigest:
        """The event's digest, with all prefixes and suffixes: it is not sent."""
        if self._latest is None or self._latest[0] != event.id:
            self._tell_conversion(event)
            self._latest = event.id, EventDigest.of(event, self._columns)
        return self._latest[1]

    def _tell_conversion(self, event: Event) -> None:
        """Reports the conversion of an event once, whichever prefixes and suffixes are kept."""
        if event.id != self._converted:
            self._converted = event.id
            self._spend("convert")

    # --- Own events -------------------------------------------------------------------------------------------------

    def offers(self, event: Event, known: Known) -> list[GroupOffer]:
        if self._params.grouping == "source":
            return [GroupOffer(number_of(self._node))]
        if self._params.grouping == "elements":
            elements = self._asked_for(event, known())
            return [GroupOffer(number_of(self._bare_digest(event, elements)), elements=elements)]
        least = self._least_constrained(event, known()) if self._filters else []
        # The bare digest does not depend on what is known.
        return [GroupOffer(number_of(one), one) for one in least] or [GroupOffer(number_of(self._bare_digest(event)))]

    def about(self, event: Event, offer: GroupOffer, known: Known) -> bytes:
        group = self._params.request != "event"
        if group and offer.filter is not None:
            return _fitting(About(self._bare_digest(event), offer.filter), About(None, offer.filter))
        if group and self._params.grouping == "source":
            return _encode(About())
        asked = [affixes_of(wanted) for wanted in known()]
        affixes = Affixes(
            frozenset().union(*(one.prefix for one in asked)), frozenset().union(*(one.suffix for one in asked))
        )
        elements = offer.elements if group else None
        self._tell_conversion(event)
        return _fitting(
            About(EventDigest.of(event, self._columns, affixes, elements)),
            About(self._bare_digest(event, elements)),
            About(EventDigest(type_hash(event.type), self._columns.fingerprint, more=True)),
        )

    def _bare_digest(self, event: Event, elements: frozenset[int] | None = None) -> EventDigest:
        self._tell_conversion(event)
        return EventDigest.of(event, self._columns, _NO_AFFIXES, elements)

    def _asked_for(self, event: Event, known: Sequence[bytes]) -> frozenset[int]:
        """The keys of the elements that known members ask for in events of this type."""
        type = type_hash(event.type)
        found: set[int] = set()
        for columns, elements in map(elements_of, known):
            if columns == self._columns.fingerprint:
                found.update(elements.get(None, ()), elements.get(type, ()))
        return frozenset(found)

    def _least_constrained(self, event: Event, known: Sequence[bytes]) -> list[Filter]:
        """The alternatives that match the event and that no other covers; none if that takes too long to find out."""
        members = map(wanted_of, known)
        filters = [one.filter for one in members if one is not None and one.filter is not None]
        self._spend("match")
        matching: dict[Filter, None] = {}
        constraints = 0
        for filter in filters:
            for conjunction in filter.alternatives:
                alternative = Filter((conjunction,))
                if alternative not in matching and alternative.matches(event):
                    matching[alternative] = None
                    constraints += max(1, len(conjunction))
            if constraints > MAX_COMPARED:
                return []
        return _widest(_alternatives(matching))


def _widest(alternatives: Sequence[Filter]) -> list[Filter]:
    """The alternatives that no other covers; none if that takes too long to find out."""
    effort = effort_for(alternatives)
    widest: list[tuple[Filter, list[Clause]]] = []
    try:
        for alternative in alternatives:
            clauses = clauses_of([alternative], effort)
            if not any(clauses_cover(other, clauses, effort) for _, other in widest):
                widest = [other for other in widest if not clauses_cover(clauses, other[1], effort)]
                widest.append((alternative, clauses))
    except EffortSpent:
        return []
    return [alternative for alternative, _ in widest]


def _alternatives(filters: Iterable[Filter]) -> list[Filter]:
    """The alternatives, each once, the shortest first, then in the order of their encodings."""
    found = {Filter((conjunction,)) for filter in filters for conjunction in filter.alternatives}
    return sorted(found, key=lambda one: (len(one.alternatives[0]), _encode(one)))


def _fitting(*choices: About) -> bytes:
    """The first choice that fits into a message; the last always does."""
    for choice in choices:
        attachment = _encode(choice)
        if len(attachment) <= (MAX_ATTACHMENT if choice.filter is None else MAX_FILTER):
            break
    return attachment


@functools.lru_cache(maxsize=64)
def _columns(names: tuple[str, ...]) -> Columns:
    return Columns(names)
