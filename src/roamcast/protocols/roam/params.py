"""The parameters. None must be chosen: they are limits, and how long an event lives that was given no lifetime."""

from typing import Annotated

from msgspec import Meta

from roamcast.content.covering import MIN_BUDGET
from roamcast.protocols.api import Parameters


class Roam(Parameters, frozen=True, kw_only=True):
    """Parameters of roam."""

    life: Annotated[
        float, Meta(gt=0, le=86400, description="how long an event without a lifetime is carried and delivered, s")
    ] = 60.0
    summary: Annotated[int, Meta(ge=MIN_BUDGET, le=1024, description="most bytes of a node's filter in a hello")] = 256
    capacity: Annotated[int, Meta(ge=1, description="most events that a node carries")] = 1024
    neighbours: Annotated[int, Meta(ge=1, description="most nodes in the table of neighbours")] = 256
    table: Annotated[int, Meta(ge=1, description="most subscribers in the table of distances")] = 512
    window: Annotated[int, Meta(ge=1, description="how many events a node remembers having received")] = 4096
    # for experiments
    share: float = 0.5
    least: float = 1.0
    most: float = 30.0
    power: float = 0.75
    relay_power: float = 2.0
    sparse: float = 5.0
    dense: float = 6.0
    ageing: float = 4.0
    gain: float = 0.5
    wait: float = 0.2
    spread: float = 0.03
    blind: int = 0
    trigger: bool = True
    leads: bool = True
    digest: float = 8.0
    repairs: int = 32
    attach: float = 0.5
    carry: bool = True
    prior: float = 60.0
    patience: float = 2.5
