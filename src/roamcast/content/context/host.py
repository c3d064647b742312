"""What a context looks at: a host as others know it, and the hosts around it.

The paper's configuration (section 2.1) gives each host a location and a vector of attributes. A `HostView` is these of
one host, as it knows them itself or as its last beacon said.
"""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from roamcast.content.event import Scalar, check_name, check_scalar
from roamcast.content.geometry import Point
from roamcast.content.region import metres

X: Final = "x"
Y: Final = "y"
SPEED: Final = "speed"
MEASURED: Final = frozenset({X, Y, SPEED})
"""Names of measured values. A measured value hides an attribute of the same name, unless it is unknown."""


class HostView(msgspec.Struct, frozen=True, array_like=True):
    """A host: where it is and how it moves, if known, and its attributes, each with one value."""

    location: Point | None = None
    """Metres."""
    velocity: Point | None = None
    """Metres per second."""
    attributes: dict[str, Scalar] = {}

    def __post_init__(self) -> None:
        if self.location is not None:
            metres(self.location[0], "a host's location")
            metres(self.location[1], "a host's location")
        if self.velocity is not None:
            metres(self.velocity[0], "a host's velocity")
            metres(self.velocity[1], "a host's velocity")
        for name, value in self.attributes.items():
            check_name(name)
            check_scalar(value, "attribute", name)

    def value(self, name: str) -> Scalar | None:
        """The value under a name; None if the host has none."""
        if name in MEASURED:
            if name == SPEED:
                if self.velocity is not None:
                    return math.hypot(*self.velocity)
            elif self.location is not None:
                return self.location[0 if name == X else 1]
        return self.attributes.get(name)

    def distance(self, other: "HostView") -> float | None:
        """Metres between two hosts; None if one of the locations is unknown."""
        if self.location is None or other.location is None:
            return None
        return math.dist(self.location, other.location)


class Situation(NamedTuple):
    """A host and those around it at one moment. Neither sequence contains the host itself; order has no meaning."""

    host: HostView
    neighbours: Sequence[HostView] = ()
    """Those in radio range: one hop away."""
    hosts: Sequence[HostView] | None = None
    """Those that a query found, neighbours included; None if there was no query."""
