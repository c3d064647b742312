"""Parameters of trees and of the brokers on them. Those of routing on a tree are in their own table, `routing`.

Timers that the paper does not give come from the MAODV draft and its base, AODV; their names there are in brackets.
"""

from typing import Annotated, Literal

from msgspec import Meta

from roamcast.protocols.api import Parameters
from roamcast.protocols.tree.forwarding import Forwarding


class Maodv(Parameters, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of a MAODV tree."""

    members: Annotated[
        Literal["all", "clients"],
        Meta(
            description="who belongs to the tree: every node; or those that subscribe or publish, others only forward"
        ),
    ] = "all"
    routing: Annotated[Forwarding, Meta(description="how events are routed on the tree")] = Forwarding()

    hello: Annotated[float, Meta(ge=0.01, le=3600, description="between two beacons, s (HELLO_INTERVAL 1 s)")] = 1.0
    misses: Annotated[
        int, Meta(ge=1, le=100, description="beacons missed before a link is lost (ALLOWED_HELLO_LOSS 2)")
    ] = 2
    hearing: Annotated[
        Literal["beacons", "any", "traffic"],
        Meta(
            description="what counts as hearing a neighbour: its beacons; any message of its broker; or any frame,"
            " background traffic included, as in AODV (RFC 3561, section 6.9)"
        ),
    ] = "traffic"
    unicast_breaks: Annotated[
        bool,
        Meta(description="whether a unicast to the parent that was given up breaks the link, or only silence does"),
    ] = True
    readopt: Annotated[
        bool,
        Meta(
            description="whether a parent takes back a child that names it in its beacons; MAODV's draft does not speak"
            " of such a child"
        ),
    ] = True
    children_break: Annotated[
        bool,
        Meta(
            description="whether a unicast to a child that was given up breaks that link too (AODV's draft 05, section"
            " 9.7)"
        ),
    ] = False
    jitter: Annotated[float, Meta(ge=0, le=60, description="longest random wait before passing a flood on, s")] = 0.01
    group_hello: Annotated[
        float, Meta(ge=0.05, le=3600, description="between two group hellos, s (GROUP_HELLO_INTERVAL 5 s)")
    ] = 5.0

    retries: Annotated[int, Meta(ge=0, le=100, description="requests after the first (RREQ_RETRIES 2)")] = 2
    expanding: Annotated[
        bool,
        Meta(
            description="whether requests go farther and farther, the first two hops beyond the distance of the leader,"
            " as in MAODV's draft (section 9.8), or everywhere at once"
        ),
    ] = False
    outdated: Annotated[
        Literal["drop", "pass on"],
        Meta(
            description="what a member whose number is older than a request's does with it: MAODV's draft passes it on"
            " (section 9.3), the paper on COMAN says that members drop what they cannot answer"
        ),
    ] = "drop"
    replies: Annotated[
        Literal["all", "better"],
        Meta(
            description="which replies to a request a node passes on: all, or later ones only if newer or shorter, as"
            " in MAODV's draft (section 9.5)"
        ),
    ] = "all"
    updates: Annotated[
        Literal["unicast", "broadcast"],
        Meta(
            description="how children hear of a new distance: each for itself, or by one broadcast, as in MAODV's draft"
            " (section 9.8)"
        ),
    ] = "unicast"
    reply_wait: Annotated[
        float, Meta(ge=0, le=60, description="how long replies are gathered before the best is activated, s")
    ] = 0.03
    retry_wait: Annotated[
        float, Meta(ge=0.001, le=60, description="how long to wait for a reply, or for its activation, s")
    ] = 0.5
    tie: Annotated[
        Literal["first", "leader"],
        Meta(
            description="of replies that are equally good: the first that came, as in MAODV's draft, or that of the"
            " node nearest to the leader"
        ),
    ] = "first"
    activation: Annotated[
        Literal["confirmed", "at-once"],
        Meta(description="a new parent counts when it has said yes, or as in the paper when it was asked"),
    ] = "confirmed"

    @property
    def overhears(self) -> bool:
        return self.hearing == "traffic"


class Coman(Maodv, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of a COMAN tree: those of MAODV, and its five parts."""

    tie: Annotated[
        Literal["first", "leader"],
        Meta(
            description="of replies that are equally good: the first that came, or that of the node nearest to the"
            " leader"
        ),
    ] = "leader"

    ancestors: Annotated[bool, Meta(description="part A: choose the reply with the shortest reconfiguration path")] = (
        True
    )
    rreq: Annotated[
        Literal["members-drop", "free", "on-tree"],
        Meta(
            description="part B: members drop a request they cannot answer, as in MAODV; pass it on freely, which makes"
            " loops; or pass it on as COMAN does"
        ),
    ] = "on-tree"
    rewrite: Annotated[bool, Meta(description="part C: the activation ends where the request left the subtree")] = True
    election: Annotated[bool, Meta(description="part D: replace a leader whose group hellos stay away")] = True
    merging: Annotated[
        Literal["leaders", "repair"], Meta(description="part E: how parts merge: through their leaders, or by a repair")
    ] = "repair"
    patience: Annotated[
        float, Meta(ge=1, le=1000, description="group hellos along the tree that may stay away, for part D")
    ] = 2.5

    def __post_init__(self) -> None:
        if self.election and not self.ancestors:
            raise ValueError("election (part D) needs ancestors (part A): it waits for group hellos along the tree")
        if self.merging == "repair" and self.rreq != "on-tree":
            raise ValueError('merging = "repair" (part E) needs rreq = "on-tree" (part B): a group hello goes upstream')
