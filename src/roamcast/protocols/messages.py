"""The base of the messages that brokers exchange. Each protocol declares its own beside its broker.

A message is a frozen struct; `codec.py` gives it its one encoding, and so its size. Its `tag` is its name on the air
and the `kind` under which its transmissions are counted; its `role` says what it is for. What is too long for one frame
and of use in part, such as a document, goes as a `Bulk` of small messages.
"""

import abc
from collections.abc import Callable
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
    tracked: ClassVar[bool] = False
    """Whether the broker that broadcast it is told when it has left, or found the queue full."""

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

    def encoded_size(self, encode: Callable[[object], bytes]) -> int:
        """Bytes of its encoding. A long message that knows the size of its parts can say it without encoding them."""
        return len(encode(self))


MAX_PIECES: Final = 62
"""Of one `Bulk`: which of them arrived fits into one machine word."""


class Bulk(abc.ABC):
    """Up to `MAX_PIECES` messages of one class that are broadcast one after another, such as a document in pieces.

    Only its pieces are ever on the air: each is a frame of its own, that collides or gets lost alone. The simulator
    makes none of them: it hands the whole to those who received a part of it, and says which. So a payload exists once
    in a run, however many nodes have it. All pieces but the last have the same size.
    """

    piece: ClassVar[type[Message]]
    """The class of its pieces; their tag, role and urgency are its own."""

    @abc.abstractmethod
    def __len__(self) -> int:
        """How many pieces it has."""

    @abc.abstractmethod
    def __getitem__(self, number: int) -> Message:
        """A piece, by its place in this bulk: 0 to len - 1."""

    @property
    @abc.abstractmethod
    def event_id(self) -> EventId | None:
        """The event that it carries a part of, if any."""

    @property
    def cause(self) -> int:
        """That of its pieces, of which all have the same."""
        return self[0].cause


def kind_of(message: type[Message]) -> str:
    """The tag of a class of messages."""
    return str(message.__struct_config__.tag)
