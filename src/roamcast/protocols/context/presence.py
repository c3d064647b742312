"""What a host says about itself in everything it sends: where it is, where it was, how it moves, its key attributes.

The paper's beacons (section 3.1) carry a host's location, its location at the time of the previous beacon, and its key
attributes. Here every message carries them, so that data can replace a beacon. `before` is the location at the last
*mark*; a mark is made every beacon interval, whether a beacon was sent then or data replaced it.
"""

import math
from collections.abc import Sequence

import msgspec

from roamcast.content.context.host import HostView
from roamcast.content.event import Scalar
from roamcast.content.geometry import Point
from roamcast.content.region import metres
from roamcast.protocols.api import Port, Time
from roamcast.units import SECOND


class Presence(msgspec.Struct, frozen=True, array_like=True):
    """A host as it describes itself."""

    host: HostView = HostView()
    """Its location and velocity, if known, and its key attributes."""
    before: Point | None = None
    """Where it was at its last mark."""

    def __post_init__(self) -> None:
        if self.before is not None:
            metres(self.before[0], "a host's former location")
            metres(self.before[1], "a host's former location")


class Whereabouts:
    """Where this host is and how it moves, as far as its port knows."""

    def __init__(self, port: Port, interval: Time, key_attributes: Sequence[str]) -> None:
        self._port = port
        self._interval = interval
        self._keys = tuple(key_attributes)
        self._asked: tuple[Time, Point | None] = (-1, None)
        self._marks: tuple[tuple[Time, Point | None], ...] = ()  # the latest two

    def here(self, now: Time) -> Point | None:
        if self._asked[0] != now:
            self._asked = now, self._port.here(now)
        return self._asked[1]

    def _mark(self, now: Time, here: Point | None) -> None:
        """Makes a mark if one is due."""
        if not self._marks:
            self._marks = ((now, here),)
        elif now - self._marks[0][0] >= self._interval:
            self._marks = ((now, here), self._marks[0])

    def velocity(self, now: Time, here: Point | None) -> Point | None:
        """Metres per second since the last mark, or the one before if that is too recent; None if unknown."""
        for time, place in self._marks:
            if now - time >= SECOND // 10 and place is not None and here is not None:
                passed = (now - time) / SECOND
                return (here[0] - place[0]) / passed, (here[1] - place[1]) / passed
        return None

    def presence(self, now: Time) -> Presence:
        """What to say about this host now."""
        here = self.here(now)
        self._mark(now, here)
        attributes: dict[str, Scalar] = {}
        if self._keys:
            known = self._port.attributes(now)
            attributes = {name: known[name] for name in self._keys if name in known}
        before = self._marks[-1][1]
        return Presence(HostView(here, self.velocity(now, here), attributes), before)

    def view(self, now: Time) -> HostView:
        """This host as it knows itself, with all its attributes."""
        here = self.here(now)
        self._mark(now, here)
        return HostView(here, self.velocity(now, here), dict(self._port.attributes(now)))


def shifted(place: Point, velocity: Point | None, ahead: Time, most: float) -> Point:
    """Where a host will be after `ahead` if it keeps its velocity, at most `most` metres away."""
    if velocity is None:
        return place
    dx, dy = velocity[0] * ahead / SECOND, velocity[1] * ahead / SECOND
    length = math.hypot(dx, dy)
    part = 1.0 if length <= most else most / length
    return place[0] + dx * part, place[1] + dy * part
