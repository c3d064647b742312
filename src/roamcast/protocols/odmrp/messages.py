"""What ODMRP says: Join Requests that flood, Join Tables that travel back, and Data along the mesh.

Routing reads neither attachment: `about` says what a group's events are like, `wanted` what a member wants. They are
bytes that the extension makes and understands; plain ODMRP leaves them empty.
"""

from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from roamcast.content.event import MAX_NODE, Event
from roamcast.protocols.messages import MAX_HOPS, Message, Role

MAX_ATTACHMENT: Final = (1 << 16) + 64
"""Bytes: a summary of the greatest budget, and what is around it."""
MAX_ROWS: Final = 64
MAX_MEMBERS: Final = 64

Name = Annotated[int, Meta(ge=0, le=MAX_NODE)]
"""A node's number inside a message: only a claim."""
Group = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Sequence = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""Ascends with every Join Request of a source, over all its groups and lives."""
Hops = Annotated[int, Meta(ge=0, le=MAX_HOPS)]
"""How many times it was transmitted before, 0 from its source."""
Attachment = Annotated[bytes, Meta(max_length=MAX_ATTACHMENT)]


def cause_of(source: int, sequence: int) -> int:
    """The number of a refresh: one Join Request, and the Join Tables that answer it."""
    return source << 32 | sequence & 0xFFFFFFFF


class JoinRequest(Message, frozen=True, tag="join_request"):
    """Who wants what `source` sends to `group`?"""

    source: Name
    group: Group
    sequence: Sequence
    hops: Hops
    about: Attachment

    @property
    def cause(self) -> int:
        return cause_of(self.source, self.sequence)


class JoinEvent(JoinRequest, frozen=True, tag="join_event"):
    """A Join Request with an event of the group inside, which so reaches everybody, whatever routes there are."""

    role: ClassVar[Role] = "data"

    event: Event


class Row(msgspec.Struct, frozen=True, array_like=True):
    """A step back towards a source."""

    source: Name
    next_hop: Name
    """Who is to forward, and to send a Join Table of its own; or the source itself."""
    sequence: Sequence
    """Of the Join Request that the step was learned from."""


class Member(msgspec.Struct, frozen=True, array_like=True):
    """A node that belongs to a group, or one that speaks for all members below it."""

    node: Name
    wanted: Attachment


class JoinTable(Message, frozen=True, tag="join_table"):
    """The sender, or somebody below it, belongs to `group`. It goes before the data for which it opens the way."""

    urgent: ClassVar[bool] = True

    group: Group
    rows: Annotated[tuple[Row, ...], Meta(min_length=1, max_length=MAX_ROWS)]
    members: Annotated[tuple[Member, ...], Meta(max_length=MAX_MEMBERS)]
    """Who told the sender since its last Join Table of this group; none in plain ODMRP."""

    @property
    def cause(self) -> int:
        return cause_of(self.rows[0].source, self.rows[0].sequence)


class GroupData(Message, frozen=True, tag="data"):
    """An event on its way along the mesh of a group."""

    role: ClassVar[Role] = "data"

    group: Group
    event: Event
    hops: Hops
