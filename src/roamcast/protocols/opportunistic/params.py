"""The parameters: the paper's two, and those for what it leaves to implementers. docs/protocols/opportunistic.md
says which values are the paper's, and what each choice changes.

Nodes may differ in what they can store: `capacity`, `octets` and `policy` are one value for all nodes, or a table by
node: `{ 0-59 = 50, 60 = 200, others = 100 }`.
"""

import re
from typing import Annotated, Final, Literal, TypeVar

from msgspec import Meta

from roamcast.content.covering import MIN_BUDGET
from roamcast.content.filter import EVERYTHING, NOTHING, Filter
from roamcast.content.text import parse_filter
from roamcast.protocols.api import Node, Parameters
from roamcast.protocols.opportunistic.messages import MAX_SCOPE

Policy = Literal["oldest", "oldest arrival", "least requested", "others first"]
V = TypeVar("V", int, Policy)

_NODES: Final = re.compile(r"(\d+)(?:-(\d+))?|others")
OTHERS: Final = "others"
_Limit = Annotated[int, Meta(ge=0)]


class Opportunistic(Parameters, frozen=True, kw_only=True):
    """Parameters of opportunistic dissemination; those of the paper's experiments stand in its scenarios."""

    interval: Annotated[float, Meta(ge=0.1, le=86400, description="between two announces of a node, s")] = 15.0
    jitter: Annotated[
        float, Meta(ge=0, le=1, description="how much two announces' distance varies, as a share of the interval")
    ] = 0.1
    scope: Annotated[int, Meta(ge=1, le=MAX_SCOPE, description="hops that announces and documents travel")] = 2
    missed: Annotated[
        int, Meta(ge=1, le=1000, description="announces missed, after which a neighbour is forgotten")
    ] = 3
    relaying: Annotated[
        Literal["relays", "flooding"], Meta(description="who passes broadcasts on: multipoint relays, or everybody")
    ] = "relays"
    decide: Annotated[
        Literal["first", "any"],
        Meta(description="a relay passes a broadcast on if the first copy names it, or if any copy does"),
    ] = "first"
    spread: Annotated[
        float, Meta(ge=0, le=60, description="longest random wait before an announce is passed on, s")
    ] = 0.01

    capacity: Annotated[
        _Limit | dict[str, _Limit], Meta(description="most documents in a node's cache; 0: no limit; or by node")
    ] = 4096
    octets: Annotated[
        _Limit | dict[str, _Limit], Meta(description="most bytes of documents in it; 0: no limit; or by node")
    ] = 64 * 2**20
    policy: Annotated[
        Policy | dict[str, Policy],
        Meta(description="what a full cache drops first: by publication, by arrival, by last request, not wanted here"),
    ] = "oldest"
    reserved: Annotated[
        float,
        Meta(
            ge=0,
            le=0.5,
            description="share of the cache that only the node's own publications can take; on devices 0.25",
        ),
    ] = 0.0
    remember: Annotated[
        bool,
        Meta(
            description="whether a node remembers what it once had, and does not fetch it again; with policy oldest,"
            " which takes nothing older than what it has, it hardly matters"
        ),
    ] = True
    carry: Annotated[
        str, Meta(description='what a node carries: "interests", "everything", or its interests and this filter')
    ] = "interests"

    catalog: Annotated[
        Literal["wanted", "missing"],
        Meta(description="what is announced: what a neighbour wants; and is not known to have"),
    ] = "wanted"
    listed: Annotated[int, Meta(ge=0, description="most bytes of descriptors in an announce; 0: no limit")] = 8192
    cut: Annotated[
        bool, Meta(description="whether an announce longer than a frame is cut into parts, each of use alone")
    ] = True
    profile: Annotated[int, Meta(ge=MIN_BUDGET, le=1280, description="most bytes of a node's profile")] = 512
    asking: Annotated[
        Literal["everyone", "one"],
        Meta(description="whom a document is asked of: every node that announces it, or one at a time"),
    ] = "one"
    patience: Annotated[float, Meta(ge=0, le=86400, description="with one: s until another is asked")] = 10.0

    piece: Annotated[int, Meta(ge=64, le=60000, description="bytes of a document in one frame")] = 1250
    whole: Annotated[
        bool, Meta(description="whether a document counts only if all of it comes in one go; else pieces are kept")
    ] = False
    gather: Annotated[
        float, Meta(ge=0.001, le=60, description="s without a new piece, after which a relay sends on")
    ] = 0.25
    partials: Annotated[int, Meta(ge=1, description="most documents of which a node keeps pieces")] = 64
    partial_octets: Annotated[int, Meta(ge=1, description="most bytes of such pieces")] = 8 * 2**20
    pace: Annotated[
        float, Meta(ge=1e3, le=1e10, description="bit/s at which documents leave, where the host does not tell when")
    ] = 1e6

    neighbours: Annotated[int, Meta(ge=1, description="most nodes in the table of neighbours")] = 256
    window: Annotated[int, Meta(ge=1, description="how many documents a node remembers once it has had them")] = 16384

    def __post_init__(self) -> None:
        for name in ("capacity", "octets", "policy"):
            value = getattr(self, name)
            for nodes in value if isinstance(value, dict) else ():
                if _NODES.fullmatch(nodes) is None:
                    raise ValueError(f"{name}: {nodes!r} is not a node, such as 7, nor some, such as 0-59, nor others")
        _ = self.carried

    @property
    def carried(self) -> Filter:
        """The filter for what a node carries beyond its own interests."""
        if self.carry == "interests":
            return NOTHING
        return EVERYTHING if self.carry == "everything" else parse_filter(self.carry)


def for_node(value: V | dict[str, V], node: Node, default: V) -> V:
    """A parameter's value on a node; in a table, the first entry that names the node."""
    if not isinstance(value, dict):
        return value
    for nodes, its in value.items():
        match = _NODES.fullmatch(nodes)
        assert match is not None
        low, high = match.groups()
        if low is not None and int(low) <= node <= int(high or low):
            return its
    return value.get(OTHERS, default)
