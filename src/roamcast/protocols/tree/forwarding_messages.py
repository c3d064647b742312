"""The messages of routing on a tree of brokers: events on their way, and what neighbours want."""

from typing import Annotated, ClassVar, Final

from msgspec import Meta

from roamcast.content.event import Event
from roamcast.content.filter import Filter
from roamcast.protocols.messages import MAX_HOPS, Message, Role

MAX_NAMED: Final = 64
"""Most neighbours that one broadcast names."""

MAX_FILTERS: Final = 256
"""Most filters in each list of one message."""

MAX_SESSION: Final = 2**32 - 1
MAX_SERIAL: Final = 2**63 - 1


class Routed(Message, frozen=True, tag="routed"):
    """An event on its way along the links of a tree."""

    role: ClassVar[Role] = "data"

    event: Event
    hops: Annotated[int, Meta(ge=0, le=MAX_HOPS)]
    """How many times it was transmitted before, 0 from its publisher."""
    to: Annotated[tuple[int, ...], Meta(max_length=MAX_NAMED)] = ()
    """A broadcast names the tree neighbours it is for; empty in a unicast."""


class Routes(Message, frozen=True, tag="routes"):
    """What the sender wants to receive over a tree link: everything, or the changes.

    Urgent: until it arrives, events take the wrong way; and the messages that set up the link are urgent too, so that
    they do not overtake it.
    """

    urgent: ClassVar[bool] = True
    longest: ClassVar[int | None] = 16 * 1024  # one filter of the greatest length is alone in its message

    session: Annotated[int, Meta(ge=1, le=MAX_SESSION)]
    """Drawn by the sender each time the link comes up on its side."""
    serial: Annotated[int, Meta(ge=1, le=MAX_SERIAL)]
    """The number of the message in its session: a gap shows that something was lost."""
    heard: Annotated[int, Meta(ge=0, le=MAX_SESSION)]
    """The session of the receiver that the sender follows; 0 if it needs everything."""
    full: bool
    """Whether it begins a list of everything, which replaces what was advertised before."""
    more: bool
    """Whether the next message continues this one."""
    ask: bool
    """Whether the receiver shall advertise everything."""
    added: Annotated[tuple[Filter, ...], Meta(max_length=MAX_FILTERS)] = ()
    removed: Annotated[tuple[Filter, ...], Meta(max_length=MAX_FILTERS)] = ()
