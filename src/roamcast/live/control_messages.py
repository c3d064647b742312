"""The messages between a node and its applications, in the control API (`docs/live.md`).

One set of messages, two encodings: JSON for people and shells, MessagePack for programs. In JSON a payload is base64,
and infinities, which JSON lacks, are null; MessagePack can express every event.
"""

from typing import Any, Final, TypeVar

import msgspec

from roamcast.config.errors import decode_bytes
from roamcast.content.event import Event, Scalar
from roamcast.content.structure import Limits, check, check_json
from roamcast.errors import ContentError

JSON: Final = "application/json"
MSGPACK: Final = "application/msgpack"
MAX_EVENT: Final = 256 * 1024
"""Bytes of an encoded event: what the link can carry in one message, with a margin."""
MAX_REQUEST: Final = 2 * MAX_EVENT
"""Base64 and JSON need more room than the event itself."""

_LIMITS: Final = Limits(MAX_REQUEST)

T = TypeVar("T")


class EventForm(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """An event in the API: an attribute is one value or a list of values."""

    type: str = ""
    attributes: dict[str, Scalar | tuple[Scalar, ...]] = {}
    payload: bytes = b""
    id: int = 0
    lifetime: float | None = None
    """Seconds for which it may be delivered; None: as long as nodes carry it (`context`: 0, at once or not at all)."""
    relevance: str | None = None
    subscription_domain: str | None = None
    """Contexts, as text."""

    @classmethod
    def of(cls, event: Event) -> "EventForm":
        return cls(
            event.type,
            {name: values[0] if len(values) == 1 else values for name, values in event.attributes.items()},
            event.payload,
            event.id,
        )

    def event(self, number: int = 0) -> Event:
        """The event with that id. Raises `ContentError` if the form is not a valid event."""
        return Event.of(self.type, self.attributes, self.payload, number or self.id)


class SubscribeRequest(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The first message from a subscriber."""

    filter: str
    id: int | None = None
    durable: bool = False
    lifetime: float | None = None
    """Seconds after which the subscription ends by itself; None: never."""
    interest: str | None = None
    publication_domain: str | None = None
    """Contexts, as text."""
    after: int | None = None
    """The position of the last event that the subscriber received, if the subscription is durable."""


class SubscriberMessage(msgspec.Struct, omit_defaults=True):
    """A message to a subscriber: the id of its subscription, an event, how many it missed, or an error."""

    subscribed: int | None = None
    event: EventForm | None = None
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


class Named(msgspec.Struct):
    """The answer to a publication: the id of the event."""

    id: int


class Published(msgspec.Struct, omit_defaults=True):
    """The answer to one of many publications: the id of the event, or an error."""

    id: int = 0
    error: str | None = None


def encode(thing: Any, kind: str) -> bytes:  # noqa: ANN401  # any of the above
    return msgspec.msgpack.encode(thing) if kind == MSGPACK else msgspec.json.encode(thing)


def decode(content: bytes | str, shape: type[T], kind: str) -> T:
    """The message. Raises `ContentError` if it does not have that shape."""
    data = content.encode() if isinstance(content, str) else content
    (check if kind == MSGPACK else check_json)(data, _LIMITS)
    return decode_bytes(data, shape, "not understood", ContentError, "MessagePack" if kind == MSGPACK else "JSON")
