"""The parameters. None has to be chosen: they are limits, and how long an event lives that was given no lifetime."""

from typing import Annotated

from msgspec import Meta

from roamcast.content.covering import MIN_BUDGET
from roamcast.protocols.api import Parameters


class Roam(Parameters, frozen=True, kw_only=True):
    """Parameters of roam."""

    life: Annotated[
        float, Meta(gt=0, le=86400, description="how long an event without a lifetime is carried and delivered, s")
    ] = 60.0
    capacity: Annotated[int, Meta(ge=1, description="most events that a node carries")] = 1024
    window: Annotated[int, Meta(ge=1, description="how many events a node remembers having received")] = 4096
    neighbours: Annotated[int, Meta(ge=1, description="most nodes in the table of neighbours")] = 256
    table: Annotated[int, Meta(ge=1, description="most subscribers in the table of distances")] = 512
    summary: Annotated[int, Meta(ge=MIN_BUDGET, le=1024, description="most bytes of a node's filter in a hello")] = 256
