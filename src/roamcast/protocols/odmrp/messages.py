"""The messages of ODMRP: Join Requests that flood, Join Tables that travel back, and Data along the mesh.

Routing does not read the attachments: `about` describes a group's events, `wanted` says what a member wants. They are
bytes that the extension makes and reads; plain ODMRP leaves them empty.
"""

from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from roamcast.content.event import MAX_NODE, Event
from roamcast.protocols.messages import LONGEST, MAX_HOPS, Message, Role

MAX_ATTACHMENT: Final = (1 << 16) + 64
"""Bytes: a summary of the largest budget, and its envelope."""
MAX_ROWS: Final = 64
MAX_MEMBERS: Final = 64

Name = Annotated[int, Meta(ge=0, le=MAX_NODE)]
"""A node's number inside a message: a claim, not checked."""
Group = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Sequence = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""Increases with every Join Request of a source, over all its groups and restarts."""
Hops = Annotated[int, Meta(ge=0, le=MAX_HOPS)]
"""How many times it was transmitted before, 0 from its source."""
Attachment = Annotated[bytes, Meta(max_length=MAX_ATTACHMENT)]


def one(first: int, second: int) -> int:
    """Two numbers, the second of up to 64 bits, combined into one for a window."""
    return first << 64 | second & 0xFFFFFFFFFFFFFFFF


def cause_of(source: int, sequence: int) -> int:
    """The number of a refresh: one Join Request, and the Join Tables that answer it."""
    return source << 32 | sequence & 0xFFFFFFFF


class JoinRequest(Message, frozen=True, tag="join_request"):
    """Asks who wants what `source` sends to `group`."""

    longest: ClassVar[int | None] = MAX_ATTACHMENT + 64

    source: Name
    group: Group
    sequence: Sequence
    hops: Hops
    about: Attachment

    @property
    def cause(self) -> int:
        return cause_of(self.source, self.sequence)

    def subject(self, sender: int) -> int:
        return one(self.source, self.sequence)


class JoinEvent(JoinRequest, frozen=True, tag="join_event"):
    """A Join Request with an event of the group inside, which so reaches every node without routes."""

    role: ClassVar[Role] = "data"
    longest: ClassVar[int | None] = LONGEST

    event: Event


class Row(msgspec.Struct, frozen=True, array_like=True):
    """A step back towards a source."""

    source: Name
    next_hop: Name
    """The node that shall forward, and send a Join Table of its own; or the source itself."""
    sequence: Sequence
    """The sequence number of the Join Request that the step was learned from."""


class Member(msgspec.Struct, frozen=True, array_like=True):
    """A node that belongs to a group, or one that stands for all members downstream of it."""

    node: Name
    wanted: Attachment


class JoinTable(Message, frozen=True, tag="join_table"):
    """The sender, or a node downstream of it, belongs to `group`. Urgent: it opens the route for data."""

    urgent: ClassVar[bool] = True
    longest: ClassVar[int | None] = LONGEST

    group: Group
    rows: Annotated[tuple[Row, ...], Meta(min_length=1, max_length=MAX_ROWS)]
    members: Annotated[tuple[Member, ...], Meta(max_length=MAX_MEMBERS)]
    """Members that the sender heard of since its last Join Table for this group; none in plain ODMRP."""

    @property
    def cause(self) -> int:
        return cause_of(self.rows[0].source, self.rows[0].sequence)


class GroupData(Message, frozen=True, tag="data"):
    """An event on its way along the mesh of a group."""

    role: ClassVar[Role] = "data"

    group: Group
    event: Event
    hops: Hops

    def subject(self, sender: int) -> int:
        return one(self.group, self.event.id)
