"""The messages between hosts: beacons, items on the way to their region, matches, requests, digests, queries.

An *item* is an event or a subscription with everything that a host needs to hold and match it. Messages carry the
remaining lifetime, so that clocks need not agree; a host that waits before it passes an item on subtracts the wait.
"""

from collections.abc import Hashable
from functools import cached_property
from typing import Annotated, ClassVar, Final, Self

import msgspec
from msgspec import Meta

from roamcast.content.context.expression import Context
from roamcast.content.context.host import HostView
from roamcast.content.event import MAX_NODE, Event, EventId
from roamcast.content.filter import Filter
from roamcast.content.region import Rectangle
from roamcast.protocols.api import Time
from roamcast.protocols.context.geocast import Routed
from roamcast.protocols.context.presence import Presence
from roamcast.protocols.messages import LONGEST, Message, Role

NodeId = Annotated[int, Meta(ge=0, le=MAX_NODE)]
SubscriptionId = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Version = Annotated[int, Meta(ge=0, le=2**62)]
"""Grows with each refresh of an item."""
Left = Annotated[int, Meta(ge=0, le=2**62)]
"""Nanoseconds until an item expires; 0: instantaneous."""
MAX_DIGEST: Final = 8
"""Items of one digest."""


class EventItem(msgspec.Struct, frozen=True, array_like=True):
    """The paper's [p, e, τe, r, s̃], and how to reach p."""

    publisher: NodeId
    event: Event
    left: Left
    relevance: Context | None
    subscription_domain: Context | None
    version: Version
    reach: Rectangle | None
    """The publisher's reachability region; None: ask everywhere, since its position is unknown or not told."""

    @property
    def key(self) -> EventId:
        return self.event.id

    @property
    def issuer(self) -> int:
        return self.publisher

    @property
    def context(self) -> Context | None:
        return self.relevance

    def older(self, passed: Time) -> "EventItem":
        return msgspec.structs.replace(self, left=max(0, self.left - max(0, passed)))


class SubscriptionItem(msgspec.Struct, frozen=True, array_like=True):
    """The paper's [s, ẽ, τs, r̃, p̃], and how to reach s."""

    subscriber: NodeId
    id: SubscriptionId
    filter: Filter
    left: Left
    interest: Context | None
    publication_domain: Context | None
    version: Version
    reach: Rectangle | None

    @property
    def key(self) -> tuple[int, int]:
        return self.subscriber, self.id

    @property
    def issuer(self) -> int:
        return self.subscriber

    @property
    def context(self) -> Context | None:
        return self.interest

    def older(self, passed: Time) -> "SubscriptionItem":
        return msgspec.structs.replace(self, left=max(0, self.left - max(0, passed)))


class Beacon(Message, frozen=True, tag="beacon"):
    """Says that a host is there."""

    role: ClassVar[Role] = "beacon"
    longest: ClassVar[int | None] = 2**15

    presence: Presence


class Published(Routed, frozen=True, kw_only=True, tag="event"):
    """An event, to the region of its context of relevance."""

    role: ClassVar[Role] = "data"
    longest: ClassVar[int | None] = LONGEST

    item: EventItem

    @cached_property
    def key(self) -> Hashable:
        return "event", self.item.event.id, self.item.version

    @property
    def event_id(self) -> EventId | None:
        return self.item.event.id

    def onward(self, presence: Presence, waited: Time) -> Self:
        return msgspec.structs.replace(self, presence=presence, hops=self.next_hops, item=self.item.older(waited))


class EventRefresh(Published, frozen=True, kw_only=True, tag="event-refresh"):
    """The event again, with a new reachability region."""


class Subscribed(Routed, frozen=True, kw_only=True, tag="subscription"):
    """A subscription, to the region of its context of interest."""

    item: SubscriptionItem

    @cached_property
    def key(self) -> Hashable:
        return "subscription", self.item.subscriber, self.item.id, self.item.version

    def onward(self, presence: Presence, waited: Time) -> Self:
        return msgspec.structs.replace(self, presence=presence, hops=self.next_hops, item=self.item.older(waited))


class SubscriptionRefresh(Subscribed, frozen=True, kw_only=True, tag="subscription-refresh"):
    """The subscription again, with a new reachability region."""


class Withdrawal(Routed, frozen=True, kw_only=True, tag="withdrawal"):
    """A subscription has ended before its lifetime, or is wanted elsewhere from now on; to the region that it had."""

    subscriber: NodeId
    subscription: SubscriptionId
    version: Version
    """Above those that are withdrawn."""

    @cached_property
    def key(self) -> Hashable:
        return "withdrawal", self.subscriber, self.subscription, self.version


class Matched(Routed, frozen=True, kw_only=True, tag="matched-event"):
    """An event that matched a subscription, to the subscriber's reachability region."""

    role: ClassVar[Role] = "data"
    longest: ClassVar[int | None] = LONGEST

    event: Event
    subscription_domain: Context | None
    subscriber: NodeId
    subscription: SubscriptionId
    event_version: Version
    subscription_version: Version

    @cached_property
    def key(self) -> Hashable:
        return (
            "matched",
            self.event.id,
            self.subscriber,
            self.subscription,
            self.event_version,
            self.subscription_version,
        )


class Request(Routed, frozen=True, kw_only=True, tag="matching-request"):
    """Asks a publisher whether it is in a publication domain; if so, it sends the matched event itself."""

    event: EventId
    publisher: NodeId
    publication_domain: Context
    subscriber: NodeId
    subscription: SubscriptionId
    subscriber_reach: Rectangle | None
    event_version: Version
    subscription_version: Version

    @cached_property
    def key(self) -> Hashable:
        return (
            "request",
            self.event,
            self.subscriber,
            self.subscription,
            self.event_version,
            self.subscription_version,
        )

    @property
    def event_id(self) -> EventId | None:
        return self.event


class Digest(Message, frozen=True, tag="digest"):
    """Items held here, for a neighbour that has entered their region. One hop."""

    longest: ClassVar[int | None] = LONGEST

    presence: Presence
    events: Annotated[tuple[EventItem, ...], Meta(max_length=MAX_DIGEST)]
    subscriptions: Annotated[tuple[SubscriptionItem, ...], Meta(max_length=MAX_DIGEST)]

    def without(self, refused: frozenset[EventId]) -> "Digest":
        events = tuple(item for item in self.events if item.key not in refused)
        return msgspec.structs.replace(self, events=events)


class Query(Routed, frozen=True, kw_only=True, tag="query"):
    """Asks all hosts in a region for their attributes."""

    asker: NodeId
    number: Version
    reach: Rectangle | None

    @cached_property
    def key(self) -> Hashable:
        return "query", self.asker, self.number


class Answer(Routed, frozen=True, kw_only=True, tag="answer"):
    """A host's attributes, sent to the asker's reachability region."""

    asker: NodeId
    number: Version
    node: NodeId
    host: HostView

    @cached_property
    def key(self) -> Hashable:
        return "answer", self.asker, self.number, self.node


MESSAGES: Final = (
    Published,
    EventRefresh,
    Subscribed,
    SubscriptionRefresh,
    Withdrawal,
    Matched,
    Request,
    Digest,
    Beacon,
    Query,
    Answer,
)
