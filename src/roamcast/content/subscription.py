"""What an application hands to its broker: subscriptions and publications.

The contexts are those of Frey and Roman (2007), section 2.3. In the system's configuration at an instant, an event is
for a subscription if and only if

1. its content matches the filter;
2. both have been issued, and neither lifetime is over; the instant of expiry is included;
3. some host is in the event's context of relevance and in the subscription's context of interest;
4. the publisher is in the subscription's publication domain;
5. the subscriber is in the event's subscription domain.

A context that is not given holds for every host.
"""

from hashlib import sha256

import msgspec

from roamcast.content.context.expression import Context
from roamcast.content.event import Event
from roamcast.content.filter import Filter
from roamcast.content.signed import LEAF, SIGNATURE, Signed

Time = int
"""Nanoseconds."""


class Subscription(msgspec.Struct, frozen=True, array_like=True):
    """An interest: events that match `filter` are wanted. The id is unique on its node."""

    id: int
    filter: Filter
    lifetime: Time | None = None
    """How long it is wanted, ns; None: until it is unsubscribed."""
    interest: Context | None = None
    """The context of interest: only events relevant to a host in it are wanted; None: everywhere."""
    publication_domain: Context | None = None
    """The publishers whose events are wanted; None: all."""


class Publication(msgspec.Struct, frozen=True, array_like=True):
    """An event being published. The host has given it its id."""

    event: Event
    lifetime: Time | None = None
    """How long after its publication it may be delivered, ns; None: as long as brokers carry it (`context`: not)."""
    relevance: Context | None = None
    """The context of relevance: the hosts that the event concerns; None: everywhere."""
    subscription_domain: Context | None = None
    """The subscribers that may get the event; None: all."""

    def to_be_signed(self, time: int, block: int) -> "Publication":
        """With everything that a signature covers beside the event, and zeros in the place of the signature. `time` is
        the author's clock, in ms since 1970; the payload is hashed in blocks of `block` bytes, or as a whole if that is
        0 or it is not longer."""
        event, contexts = self.event, (self.relevance, self.subscription_domain)
        hashes = b"".join(map(hash_of, contexts)) if any(context is not None for context in contexts) else b""
        blocks = block if len(event.payload) > block else 0
        body = Signed(event.payload, bytes(SIGNATURE), time, self.lifetime, hashes, blocks)
        return msgspec.structs.replace(self, event=msgspec.structs.replace(event, body=body))


def hash_of(context: Context | None) -> bytes:
    """What stands for a context in a signature."""
    return bytes(LEAF) if context is None else sha256(str(context).encode()).digest()[:LEAF]
