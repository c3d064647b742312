"""What trees say: the four messages of MAODV, COMAN's two, and the beacon.

The paper's section II has what each is for. `rank` is explained in `rank.py`. Whatever belongs to the repair or merge
that `origin` began carries its number, so that its cost and reach can be counted from what was transmitted.
"""

from typing import Annotated, ClassVar, Final, Literal

import msgspec
from msgspec import Meta

from roamcast.content.event import MAX_NODE
from roamcast.protocols.messages import Message, Role
from roamcast.protocols.tree.rank import MAX_RANK, MAX_SEQUENCE

MAX_DEPTH: Final = 200
"""No node is farther from its leader."""
NOWHERE: Final = 255
"""The distance of a node that is on no tree."""
MERGE: Final = 1 << 31
"""Serials of merges have this bit, so that none is that of a repair too."""

Name = Annotated[int, Meta(ge=0, le=MAX_NODE)]
"""A node's number inside a message: only a claim."""
Rank = Annotated[int, Meta(ge=0, le=MAX_RANK)]
Sequence = Annotated[int, Meta(ge=0, le=MAX_SEQUENCE)]
Distance = Annotated[int, Meta(ge=0, le=NOWHERE)]
Serial = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Path = Annotated[tuple[Name, ...], Meta(max_length=NOWHERE)]


def cause_of(origin: int, serial: int) -> int:
    """The number of a repair or merge, unique in a network."""
    return origin << 32 | serial


class Control(Message, frozen=True):
    """A message that keeps the tree. It goes before the data that waits: behind a long queue it would come too late."""

    urgent: ClassVar[bool] = True


class _Repairing(Control, frozen=True):
    """Part of a repair or a merge."""

    origin: Name
    """Who began it."""
    serial: Serial

    @property
    def cause(self) -> int:
        return cause_of(self.origin, self.serial)


class Hello(Control, frozen=True, tag="hello"):
    """The beacon: I am here, and this is whom I take for my parent."""

    role: ClassVar[Role] = "beacon"

    upstream: Name | None
    rank: Rank


class Rreq(_Repairing, frozen=True, tag="rreq"):
    """Route request: who can give `origin` a place on the tree?"""

    attempt: Annotated[int, Meta(ge=0, le=255)]
    sequence: Sequence
    distance: Distance
    rank: Rank
    """The highest of those who would get a new parent if this were answered: of `origin`, and of nodes on the way."""
    hops: Distance
    on_tree: bool
    """COMAN: it has left the subtree of `origin`, and goes only upstream from here."""
    leader: Name | None
    """The leader that a request to merge is for."""


class Rrep(_Repairing, frozen=True, tag="rrep"):
    """Route reply: here is a place."""

    attempt: Annotated[int, Meta(ge=0, le=255)]
    replier: Name
    leader: Name
    sequence: Sequence
    distance: Distance
    """From the leader to whoever sends this."""
    hops: Distance
    """How many transmissions it has behind it."""
    rank: Rank
    """Of the node whose child the far end of the path would become."""
    placed: bool
    """That node is the sender: it keeps its place, and `rank` is its own."""
    path: Path
    """COMAN: from the leader to whoever sends this."""


class Place(msgspec.Struct, frozen=True, array_like=True):
    """Where a node stands, told to its children."""

    leader: Name
    sequence: Sequence
    distance: Distance
    rank: Rank
    path: Path
    """COMAN: from the leader to the node itself."""


class Mact(_Repairing, frozen=True, tag="mact"):
    """Multicast activation, and what else keeps the links of the tree true.

    `join` asks along a path that a reply has prepared for a place at its end; `update` tells a child its parent's
    place; `prune` ends a link, from either side; `elect` asks a child to become the leader.
    """

    flag: Literal["join", "update", "prune", "elect"]
    replier: Name = 0
    rank: Rank = 0
    """Of a join: as in the request; of an update that answers one: the same."""
    place: Place | None = None


class Grph(Control, frozen=True, tag="grph"):
    """Group hello: the leader is there. Rebroadcast by everybody; on the tree (COMAN), from parents to children."""

    place: Place
    """Of whoever sends this; if that is a node of another tree, of the last on the way that was of this one."""
    foreign: bool
    """Whoever sends this is not of the tree it speaks of."""
    on_tree: bool
    repair: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    """The repair that made the leader one, in its first group hello."""

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
