"""The messages between a node and its applications, in the control API (`docs/live.md`).

One set of messages, two encodings: JSON for people and shells, MessagePack for programs. In JSON a payload is base64,
an event's id is text such as `26:17` (as a number it is beyond what JavaScript can count to), and infinities, which
JSON lacks, are null; MessagePack can express every event. `openapi.py` describes the API from these structs.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar

import msgspec

from roamcast.config.errors import decode_bytes
from roamcast.content.event import INT_MAX, Event, Scalar, event_name
from roamcast.content.structure import Limits, check, check_json
from roamcast.errors import ContentError

JSON: Final = "application/json"
MSGPACK: Final = "application/msgpack"
MAX_EVENT: Final = 256 * 1024
"""Bytes of an encoded event: what the link can carry in one message, with a margin."""
MAX_REQUEST: Final = 2 * MAX_EVENT
"""Base64 and JSON need more room than the event itself."""
MAX_WAIT: Final = 60.0
"""Seconds that a poll may wait for an event."""

_LIMITS: Final = Limits(MAX_REQUEST)

T = TypeVar("T")


EventName = Annotated[
    str,
    msgspec.Meta(pattern=r"^\d{1,10}:\d{1,10}$", description="The publisher and its serial number", examples=["26:17"]),
]
SubscriptionId = Annotated[int, msgspec.Meta(extra_json_schema={"minimum": 0, "maximum": INT_MAX})]
Lifetime = Annotated[float, msgspec.Meta(description="In seconds", extra_json_schema={"minimum": 0})]
# Only for the description: content/event.py owns these rules, and words the refusals.
_Name = Annotated[str, msgspec.Meta(extra_json_schema={"minLength": 1})]
_Values = Annotated[tuple[Scalar, ...], msgspec.Meta(extra_json_schema={"minItems": 1})]


class EventForm(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """An event to publish: an attribute is one value or a list of values."""

    type: str = ""
    attributes: dict[_Name, Scalar | _Values] = {}
    payload: bytes = b""
    lifetime: Lifetime | None = None
    """Seconds for which it may be delivered; None: as long as nodes carry it (`context`: 0, at once or not at all)."""
    relevance: str | None = None
    subscription_domain: str | None = None
    """Contexts, as text."""

    @classmethod
    def of(cls, event: Event) -> "EventForm":
        return cls(event.type, _compact(event), event.payload)

    def event(self, number: int = 0) -> Event:
        """The event with that id. Raises `ContentError` if the form is not a valid event."""
        return Event.of(self.type, self.attributes, self.payload, number)


class DeliveredEvent(msgspec.Struct, omit_defaults=True):
    """An event on its way to a subscriber."""

    type: str = ""
    attributes: dict[str, Scalar | tuple[Scalar, ...]] = {}
    payload: bytes = b""
    id: int = 0

    @classmethod
    def of(cls, event: Event) -> "DeliveredEvent":
        return cls(event.type, _compact(event), event.payload, event.id)

    @property
    def event(self) -> Event:
        return Event.of(self.type, self.attributes, self.payload, self.id)


class ShownEvent(msgspec.Struct, omit_defaults=True):
    """An event on its way to a subscriber, in JSON."""

    id: EventName
    type: str = ""
    attributes: Mapping[str, Scalar | tuple[Scalar | None, ...] | None] = {}
    payload: bytes = b""


def _compact(event: Event) -> dict[str, Scalar | tuple[Scalar, ...]]:
    return {name: values[0] if len(values) == 1 else values for name, values in event.attributes.items()}


class SubscribeRequest(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What a subscriber wants: its first message on a WebSocket, or the query of `/events`."""

    filter: Annotated[str, msgspec.Meta(examples=['type = "offer" and price < 20'])] = "true"
    id: SubscriptionId | None = None
    durable: bool = False
    lifetime: Lifetime | None = None
    """Seconds after which the subscription ends by itself; None: never."""
    interest: str | None = None
    publication_domain: str | None = None
    """Contexts, as text."""
    after: int | None = None
    """The position of the last event that the subscriber received, if the subscription is durable."""


class PollRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The query of `/poll`: a durable subscription, made by the first request, of which each takes the next events."""

    id: SubscriptionId
    filter: str = "true"
    after: int | None = None
    """The position that the last answer had: the node forgets the events up to it. None: nothing was received yet."""
    wait: Annotated[float, msgspec.Meta(description="In seconds, until an event comes", ge=0, le=MAX_WAIT)] = 20.0

    @property
    def subscription(self) -> SubscribeRequest:
        return SubscribeRequest(self.filter, self.id, durable=True, after=self.after)


class _Message(msgspec.Struct, omit_defaults=True):
    subscribed: int | None = None
    hops: int | None = None
    via: str | None = None
    author: int | None = None
    """The node that published the event, as its id says."""
    verified: str | None = None
    """Who vouches that it did: "owner" or "first use"; None: nobody."""
    published: float | None = None
    """When it did, in s since 1970, by its own clock."""
    missed: int | None = None
    position: int | None = None
    """The position of an event in a durable subscription; positions increase."""
    error: str | None = None


class ShownMessage(_Message):
    """A message to a subscriber, in JSON."""

    event: ShownEvent | None = None


class SubscriberMessage(_Message):
    """A message to a subscriber: the id of its subscription, an event, how many it missed, or an error."""

    event: DeliveredEvent | None = None

    def shown(self) -> ShownMessage:
        fields, event = msgspec.structs.asdict(self), self.event
        if event is not None:
            fields["event"] = ShownEvent(event_name(event.id), event.type, event.attributes, event.payload)
        return ShownMessage(**fields)


class Polled(msgspec.Struct):
    """The answer to a poll."""

    events: list[ShownMessage]
    position: int | None
    """Pass it on as `after`; None: there has been no event yet."""
    missed: int
    """How many events were dropped before these, because nobody took them."""


class ShownName(msgspec.Struct):
    """The answer to a publication, in JSON."""

    id: EventName


class Named(msgspec.Struct):
    """The answer to a publication: the id of the event."""

    id: int

    def shown(self) -> ShownName:
        return ShownName(event_name(self.id))


class ShownPublished(msgspec.Struct, omit_defaults=True):
    """The answer to one of many publications, in JSON."""

    id: EventName | None = None
    error: str | None = None


class Published(msgspec.Struct, omit_defaults=True):
    """The answer to one of many publications: the id of the event, or an error."""

    id: int = 0
    error: str | None = None

    def shown(self) -> ShownPublished:
        return ShownPublished(event_name(self.id) if self.error is None else None, self.error)


def encode(thing: Any, kind: str) -> bytes:  # noqa: ANN401  # any of the above
    if kind == MSGPACK:
        return msgspec.msgpack.encode(thing)
    if isinstance(thing, list):
        return msgspec.json.encode([_shown(one) for one in thing])
    return msgspec.json.encode(_shown(thing))


def _shown(thing: Any) -> Any:  # noqa: ANN401
    return thing.shown() if isinstance(thing, SubscriberMessage | Named | Published) else thing


def decode(content: bytes | str, shape: type[T], kind: str) -> T:
    """The message. Raises `ContentError` if it does not have that shape."""
    data = content.encode() if isinstance(content, str) else content
    (check if kind == MSGPACK else check_json)(data, _LIMITS)
    return decode_bytes(data, shape, "not understood", ContentError, "MessagePack" if kind == MSGPACK else "JSON")
