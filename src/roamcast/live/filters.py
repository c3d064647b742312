"""Finds the filters in a protocol's messages, and widens those that are too long for a frame.

The rules this file owns:

* A message with a filter of more than `widening.MAX_IN_FRAME` constraints is dropped.
* No honest node sends one: for a subscription with a longer filter, the broker gets a wider one (`widening.widened`),
  and the host checks the exact filter before it delivers; a filter that a broker has merged from many is widened when
  it is sent.
"""

import typing
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from roamcast.content.filter import Filter
from roamcast.content.widening import too_long, widened
from roamcast.live.fields import fields_with
from roamcast.protocols.messages import Message

M = TypeVar("M")


class FramedFilters:
    """Finds the filters in the messages of a protocol."""

    def __init__(self, messages: Sequence[type[Message]]) -> None:
        self._fields = fields_with(Filter, messages)

    def acceptable(self, message: Message) -> bool:
        """Whether no filter in a received message is too long."""
        return not self._fields.get(type(message)) or not any(map(too_long, self._filters(message)))

    def sendable(self, message: Message) -> Message:
        """The message, with filters that are too long widened."""
        return message if self.acceptable(message) else self._widened(message)

    def _filters(self, value: object) -> Iterator[Filter]:
        if isinstance(value, Filter):
            yield value
        elif isinstance(value, tuple):
            for item in value:
                yield from self._filters(item)
        else:
            for name in self._fields.get(type(value), ()):
                yield from self._filters(getattr(value, name))

    def _widened(self, value: M) -> M:
        changed: Any = value
        if isinstance(value, Filter):
            changed = widened(value)
        elif isinstance(value, tuple):
            changed = tuple(map(self._widened, value))
        elif isinstance(value, msgspec.Struct):
            names = self._fields.get(type(value), ())
            changed = msgspec.structs.replace(value, **{name: self._widened(getattr(value, name)) for name in names})
        return typing.cast("M", changed)
