"""Finds the events in a protocol's messages, so that a host can check them whatever the protocol.

The rules this file owns:

* Every event in a message is found, in whatever struct, tuple or dict it stands: by the types of the message's fields,
  so that a protocol need not say where its events are, and cannot forget to.
* Fields beside an event that have the names of a `Publication`'s contexts are its contexts.
* A field `left` beside an event is its remaining lifetime, in ns, and cannot be longer than the signed one; an event
  that was published without a lifetime has 0. Age in transit changes per hop and cannot be signed.
* An event without its payload may stand only in a struct that says so (`bare = True`), such as a descriptor.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from roamcast.content.event import Event
from roamcast.content.signed import LEAF
from roamcast.content.subscription import hash_of
from roamcast.live.fields import fields_with
from roamcast.protocols.messages import Message

_CONTEXTS: Final = ("relevance", "subscription_domain")


class Carried(NamedTuple):
    event: Event
    holder: msgspec.Struct
    """What it stands in."""

    @property
    def fits(self) -> bool:
        """Whether what stands beside the event is what its author signed."""
        signed = self.event.signed
        if self.event.id < 0 or signed is None or bool(signed.root) != getattr(self.holder, "bare", False):
            return False
        if getattr(self.holder, "left", 0) > (signed.lifetime or 0):
            return False
        contexts = signed.contexts or bytes(2 * LEAF)
        for number, name in enumerate(_CONTEXTS):
            if hasattr(self.holder, name) and (
                hash_of(getattr(self.holder, name)) != contexts[number * LEAF : (number + 1) * LEAF]
            ):
                return False
        return True


class CarriedEvents:
    """Finds the events in the messages of a protocol."""

    def __init__(self, messages: Sequence[type[Message]]) -> None:
        self._fields = fields_with(Event, messages)

    def within(self, message: Message) -> list[Carried]:
        """All events in a message."""
        return list(self._found(message)) if self._fields.get(type(message)) else []

    def _found(self, holder: msgspec.Struct) -> Iterator[Carried]:
        for name in self._fields.get(type(holder), ()):
            yield from self._in(getattr(holder, name), holder)

    def _in(self, value: object, holder: msgspec.Struct) -> Iterator[Carried]:
        if isinstance(value, Event):
            yield Carried(value, holder)
        elif isinstance(value, dict):
            for pair in value.items():
                yield from self._in(pair, holder)
        elif isinstance(value, list | tuple | set | frozenset):
            for item in value:
                yield from self._in(item, holder)
        elif isinstance(value, msgspec.Struct):
            yield from self._found(value)
