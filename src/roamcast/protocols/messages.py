"""The typed messages that brokers exchange.

A message is a frozen struct; `codec.py` gives it its one encoding, and so its size. Its `tag` is its name on the air
and the `kind` under which its transmissions are counted.
"""

from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from roamcast.content.event import Event
from roamcast.content.filter import Filter

MAX_HOPS: Final = 2**31 - 1
"""Where counting stops: a stranger may claim any number, and one more must still fit into a frame and a fact."""


class Message(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The base of all messages.

    `cause` names the repair or refresh that a control message belongs to, so that the cost and the reach of one can be
    counted from what was transmitted; 0 for what belongs to none.
    """

    urgent: ClassVar[bool] = False
    """Whether it goes before other messages that wait in a node's queue."""

    @property
    def cause(self) -> int:
        return 0


def kind_of(message: type[Message]) -> str:
    """The tag of a class of messages."""
    return str(message.__struct_config__.tag)


class Data(Message, frozen=True, tag="data"):
    """An event on its way, all that flooding and gossip need."""

    event: Event
    hops: Annotated[int, Meta(ge=0, le=MAX_HOPS)]
    """How many times it was transmitted before, 0 from its publisher."""

    def onward(self) -> "Data":
        """The message as whoever hears it passes it on."""
        return Data(self.event, min(self.hops + 1, MAX_HOPS))


class Beacon(Message, frozen=True, tag="beacon"):
    """What a node's applications want, told to whoever is near."""

    filter: Filter


MAX_DESTINATIONS: Final = 1024
MAX_MISSED: Final = 10


class Hinted(Message, frozen=True, tag="hinted"):
    """An event of hint-driven routing, with those known to want it and the best estimate of how near they are."""

    event: Event
    hops: Annotated[int, Meta(ge=0, le=MAX_HOPS)]
    credit: Annotated[int, Meta(ge=0, le=255)]
    """How many more times a broker may pass it on without a reason."""
    destinations: Annotated[dict[int, Annotated[int, Meta(ge=0, le=MAX_MISSED)]], Meta(max_length=MAX_DESTINATIONS)]
    """By node: the fewest of its beacons that a broker which passed this on has missed. The paper's hint is a tenth."""
