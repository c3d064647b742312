"""The base of the messages that brokers exchange. Each protocol declares its own beside its broker.

A message is a frozen struct; `codec.py` gives it its one encoding, and so its size. Its `tag` is its name on the air
and the `kind` under which its transmissions are counted; its `role` says what it is for.
"""

from typing import ClassVar, Final, Literal

import msgspec

from roamcast.content.event import Event, EventId

MAX_HOPS: Final = 2**31 - 1
"""Where counting stops: a stranger may claim any number, and one more must still fit into a frame and a fact."""

Role = Literal["data", "control", "beacon"]
"""What a message is for: it carries events; it says something that other brokers act on; or it only says at regular
times that its sender is there, with what goes along."""


class Message(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The base of all messages."""

    role: ClassVar[Role] = "control"
    urgent: ClassVar[bool] = False
    """Whether it goes before other messages that wait in a node's queue."""

    @property
    def cause(self) -> int:
        """The repair or refresh that a control message belongs to, so that the cost and the reach of one can be counted
        from what was transmitted; 0 if it belongs to none."""
        return 0

    @property
    def event_id(self) -> EventId | None:
        """The event that it carries, if any: that of its field `event`, unless a message knows better."""
        event = getattr(self, "event", None)
        return event.id if isinstance(event, Event) else None


def kind_of(message: type[Message]) -> str:
    """The tag of a class of messages."""
    return str(message.__struct_config__.tag)
