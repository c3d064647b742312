"""The base of the messages that brokers exchange. Each protocol declares its own beside its broker.

A message is a frozen struct; `codec.py` defines its one encoding, and so its size. Its `tag` is its name on the air and
the `kind` under which its transmissions are counted; its `role` says what it is for. Content that is too long for one
frame and useful in part, such as a document, is sent as a `Bulk` of small messages.
"""

import abc
from collections.abc import Callable, Hashable
from typing import ClassVar, Final, Literal

import msgspec

from roamcast.content.event import Event, EventId
from roamcast.content.structure import SHORT, Limits

MAX_HOPS: Final = 2**31 - 1
"""The limit of counting: a stranger may claim any number, and one more must still fit into a frame and a fact."""

LONGEST: Final = 264 * 1024
"""Bytes of the longest encoding of any message: an event of the greatest length, and what a protocol adds to it."""

Role = Literal["data", "control", "beacon"]
"""What a message is for: it carries events; it makes other brokers do something; or it only says, at regular intervals,
that its sender is there, perhaps with more."""


class Message(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The base of all messages."""

    role: ClassVar[Role] = "control"
    urgent: ClassVar[bool] = False
    """Whether it goes ahead of other messages in a node's queue."""
    tracked: ClassVar[bool] = False
    """Whether the broker that broadcast it is told when it was sent, or found the queue full."""
    longest: ClassVar[int | None] = None
    """Bytes of its longest encoding; None: `LONGEST` if its role is data, else `structure.SHORT`. Between devices a
    longer one is neither sent nor read."""
    elements: ClassVar[int] = SHORT
    """The most values, names and lists that its encoding may have (`structure.py`)."""

    @property
    def cause(self) -> int:
        """The repair or refresh that a control message belongs to, so that its cost and reach can be counted from the
        transmissions; 0 if it belongs to none."""
        return 0

    @property
    def event_id(self) -> EventId | None:
        """The event that it carries, if any: by default its field `event`."""
        event = getattr(self, "event", None)
        return event.id if isinstance(event, Event) else None

    def subject(self, sender: int) -> Hashable:
        """What a broadcast of `sender` is about, for brokers that let their host withhold it (`Port.withhold`): its
        event, unless a class says otherwise. None: it is never withheld."""
        return self.event_id

    def without(self, refused: frozenset[EventId]) -> "Message | None":
        """The message without these of its events, which a host refuses as forged; None: it is of no use without.

        A host finds the events of a message by the types of its fields. A message that lists several overrides this,
        so that one forged event does not cost the others.
        """
        return None

    def encoded_size(self, encode: Callable[[object], bytes]) -> int:
        """Bytes of its encoding. A long message that knows the size of its parts can override this to save encoding."""
        return len(encode(self))


MAX_PIECES: Final = 62
"""Pieces of one `Bulk`: a mask of those that arrived fits into one machine word."""


class Bulk(abc.ABC):
    """Up to `MAX_PIECES` messages of one class that are broadcast one after another, such as a document in pieces.

    Only its pieces are on the air: each is a separate frame, which collides or gets lost by itself. The simulator does
    not make the pieces: it hands the whole bulk to each receiver and says which pieces arrived. So a payload exists
    once in a run, however many nodes have it. All pieces but the last have the same size.
    """

    piece: ClassVar[type[Message]]
    """The class of its pieces; the bulk has their tag, role and urgency."""

    @abc.abstractmethod
    def __len__(self) -> int:
        """How many pieces it has."""

    @abc.abstractmethod
    def __getitem__(self, number: int) -> Message:
        """A piece by its index in this bulk: 0 to len - 1."""

    def sizes(self, size: Callable[[Message], int]) -> tuple[int, int]:
        """Bytes of the encoding of each piece but the last, and of the last. `size` returns that of a message. A bulk
        that knows the length of its pieces can override this to save making them."""
        return size(self[0]), size(self[len(self) - 1])

    @property
    @abc.abstractmethod
    def event_id(self) -> EventId | None:
        """The event that it carries a part of, if any."""

    @property
    def cause(self) -> int:
        """The cause of its pieces, the same for all."""
        return self[0].cause


def limits_of(message: type[Message]) -> Limits:
    """What the encoding of a class of messages may have."""
    otherwise = LONGEST if message.role == "data" else SHORT
    return Limits(otherwise if message.longest is None else message.longest, message.elements)


def kind_of(message: type[Message]) -> str:
    """The tag of a class of messages."""
    return str(message.__struct_config__.tag)
