"""The parameters of `context`; the defaults are the paper's (section 4.1), where it gives one."""

from typing import Annotated, Literal

from msgspec import Meta

from roamcast.protocols.api import Parameters
from roamcast.protocols.context.geocast import Settings
from roamcast.units import seconds

Store = Literal["strict", "enlarged", "keep"]


class ContextParams(Parameters, frozen=True, kw_only=True):
    """Parameters of context-aware publish/subscribe."""

    interval: Annotated[
        float, Meta(ge=0.01, le=86400, description="between beacons, in the absence of other traffic, s")
    ] = 5.0
    lifetime: Annotated[
        float, Meta(ge=1, le=100, description="how long a neighbour that is not heard stays one, in beacon intervals")
    ] = 2.5
    key_attributes: Annotated[
        tuple[str, ...], Meta(description="the attributes that hosts tell their neighbours of", max_length=64)
    ] = ()
    refresh: Annotated[
        float, Meta(ge=0.1, le=86400, description="between two refreshes of an event or subscription, s")
    ] = 5.0
    reachability: Annotated[float, Meta(gt=0, le=1e6, description="side of a reachability region, m")] = 50.0
    safe: Annotated[
        float,
        Meta(
            ge=0, le=1e6, description="distance from the border of its reachability region at which a host refreshes, m"
        ),
    ] = 10.0
    margin: Annotated[
        float,
        Meta(
            ge=0,
            le=1e6,
            description="how much larger than their region events and subscriptions are sent, on each side, m",
        ),
    ] = 30.0
    margin_first: Annotated[
        bool, Meta(description="whether that holds for their first issue too, or for refreshes only")
    ] = True
    store: Annotated[
        Store,
        Meta(
            description="who holds an event or subscription: strict: hosts in its region; enlarged: also those within "
            "the margin; keep: as enlarged, and a host keeps it wherever it goes"
        ),
    ] = "enlarged"
    digests: Annotated[bool, Meta(description="whether hosts that come into a region are told what is held there")] = (
        True
    )
    resend: Annotated[
        bool, Meta(description="whether a match is sent again when its event or subscription was refreshed")
    ] = True
    grace: Annotated[
        float,
        Meta(
            ge=0,
            le=3600,
            description="how long after its end an own event or subscription can still complete a match, s",
        ),
    ] = 1.0
    check: Annotated[
        float,
        Meta(
            ge=0.01,
            le=3600,
            description="between two looks at the own place and attributes, s; twice that for a host that only "
            "holds items of others",
        ),
    ] = 0.5
    reach: Annotated[float, Meta(gt=0, le=1e6, description="the radio range by which geocast scales its waits, m")] = (
        200.0
    )
    wait: Annotated[
        float, Meta(ge=0, le=60, description="longest wait of geocast for a host that offers more progress, s")
    ] = 0.03
    jitter: Annotated[float, Meta(ge=0, le=60, description="longest random part of a wait of geocast, s")] = 0.01
    match_wait: Annotated[
        float,
        Meta(
            ge=0,
            le=60,
            description="longest random wait before a match or a digest is sent that others may send too, s",
        ),
    ] = 0.05
    repeats: Annotated[
        int, Meta(ge=0, le=100, description="how often geocast repeats what nobody nearer passes on")
    ] = 1
    carry: Annotated[
        float,
        Meta(ge=0, le=86400, description="how long geocast keeps a message at a local minimum and tries again, s"),
    ] = 0.0
    query_wait: Annotated[
        float, Meta(ge=0, le=3600, description="how long answers of hosts beyond one hop are waited for, s")
    ] = 0.5
    query_distance: Annotated[
        float, Meta(ge=0, le=1e6, description="how far away hosts may be asked for a domain, m; 0: only neighbours")
    ] = 1000.0
    table: Annotated[
        int, Meta(ge=1, le=1_000_000, description="most events, and most subscriptions, that a host holds")
    ] = 256
    neighbours: Annotated[int, Meta(ge=1, le=1_000_000, description="most neighbours that a host knows")] = 256
    window: Annotated[int, Meta(ge=1, description="how many messages a host remembers having heard")] = 4096

    def __post_init__(self) -> None:
        if self.reachability <= 2 * self.safe:
            raise ValueError(
                f"reachability must be more than twice safe, {2 * self.safe:g} m, not {self.reachability:g}: no place "
                "in the region would be far enough from its border, and a host would refresh all the time"
            )

    @property
    def geocast(self) -> Settings:
        return Settings(
            reach=self.reach,
            wait=seconds(self.wait),
            jitter=seconds(self.jitter),
            repeats=self.repeats,
            carry=seconds(self.carry),
            window=self.window,
        )
