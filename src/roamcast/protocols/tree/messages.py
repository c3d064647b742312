"""The messages of trees: four of MAODV, two of COMAN, and the beacon.

Section II of the paper says what each is for; `rank.py` explains `rank`. All messages of a repair or merge that
`origin` began carry its number, so that its cost and reach can be counted from the transmissions.
"""

from typing import Annotated, ClassVar, Final, Literal

import msgspec
from msgspec import Meta

from roamcast.content.event import MAX_NODE
from roamcast.protocols.messages import Message, Role
from roamcast.protocols.tree.rank import MAX_RANK, MAX_SEQUENCE

MAX_DEPTH: Final = 200
"""The greatest distance of a node from its leader."""
NOWHERE: Final = 255
"""The distance of a node that is on no tree."""
ANY_WAY: Final = 127
"""How often a request may be passed on if nothing bounds it; the most that takes one byte."""
MERGE: Final = 1 << 31
"""Set in the serials of merges, to keep them apart from those of repairs."""

Name = Annotated[int, Meta(ge=0, le=MAX_NODE)]
"""A node's number inside a message: a claim, not checked."""
Rank = Annotated[int, Meta(ge=0, le=MAX_RANK)]
Sequence = Annotated[int, Meta(ge=0, le=MAX_SEQUENCE)]
Distance = Annotated[int, Meta(ge=0, le=NOWHERE)]
Serial = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Path = Annotated[tuple[Name, ...], Meta(max_length=NOWHERE)]


def cause_of(origin: int, serial: int) -> int:
    """The number of a repair or merge, unique in a network."""
    return origin << 32 | serial


class Control(Message, frozen=True):
    """A message that maintains the tree. Urgent: behind a long queue of data it would come too late."""

    urgent: ClassVar[bool] = True


class _Repairing(Control, frozen=True):
    """Part of a repair or a merge."""

    origin: Name
    """The node that began it."""
    serial: Serial

    @property
    def cause(self) -> int:
        return cause_of(self.origin, self.serial)


class Hello(Control, frozen=True, tag="hello"):
    """The beacon: I am here, and this is my parent."""

    role: ClassVar[Role] = "beacon"

    upstream: Name | None
    rank: Rank


class Rreq(_Repairing, frozen=True, tag="rreq"):
    """Route request: who can become a parent of `origin`, or lead to one?"""

    attempt: Annotated[int, Meta(ge=0, le=255)]
    sequence: Sequence
    distance: Distance
    rank: Rank
    """The highest rank of the nodes that would get a new parent: `origin`, and nodes on the path."""
    ttl: Distance
    """How often it may still be passed on."""
    on_tree: bool
    """COMAN: it has left the subtree of `origin`, and only goes upstream from here."""
    leader: Name | None
    """The leader that a request to merge is for."""


class Rrep(_Repairing, frozen=True, tag="rrep"):
    """Route reply: an offer of a parent."""

    attempt: Annotated[int, Meta(ge=0, le=255)]
    replier: Name
    leader: Name
    sequence: Sequence
    distance: Distance
    """Distance of this message's sender from the leader."""
    hops: Distance
    """How many times it was transmitted before."""
    rank: Rank
    """The rank of the node that would become the parent of the path's far end."""
    placed: bool
    """Whether that node is the sender: it keeps its position, and `rank` is its own."""
    path: Path
    """COMAN: the nodes from the leader to this message's sender."""


class Place(msgspec.Struct, frozen=True, array_like=True):
    """A node's position in the tree, told to its children."""

    leader: Name
    sequence: Sequence
    distance: Distance
    rank: Rank
    path: Path
    """COMAN: the nodes from the leader to the node itself."""


class Mact(_Repairing, frozen=True, tag="mact"):
    """Multicast activation, and other messages that keep tree links consistent.

    `join` asks for a parent along a path that a reply has prepared; `update` tells a child its parent's position;
    `prune` ends a link, from either side; `elect` asks a child to become the leader.
    """

    flag: Literal["join", "update", "prune", "elect"]
    replier: Name = 0
    rank: Rank = 0
    """In a join: as in the request; in an update that answers one: the same."""
    place: Place | None = None


class Grph(Control, frozen=True, tag="grph"):
    """Group hello: the leader is alive. Rebroadcast by all nodes; on the tree (COMAN), passed from parents to
    children."""

    place: Place
    """The sender's position; if the sender is in another tree, that of the last node of this tree on the path."""
    foreign: bool
    """Whether the sender is not in the tree that this is about."""
    on_tree: bool
    repair: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    """In a leader's first group hello: the repair that made it the leader."""

    @property
    def cause(self) -> int:
        return self.repair


class ChkUp(Control, frozen=True, tag="chkup"):
    """COMAN: am I your child?"""

    repair: Annotated[int, Meta(ge=0, le=2**63 - 1)]

    @property
    def cause(self) -> int:
        return self.repair


class Ack(Control, frozen=True, tag="chkack"):
    """COMAN: the answer to `ChkUp`."""

    repair: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    child: bool

    @property
    def cause(self) -> int:
        return self.repair
