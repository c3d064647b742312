"""Where a publisher or subscriber can be reached: a square around its position, which moves with it and is renewed.

The rules (section 3.2, "Mobility of Publishers and Subscribers"): an item carries its host's reachability region. It is
renewed every `refresh`, and when the host gets within the safe distance of its border. The square is centred where the
host will be in half a refresh if it keeps its velocity, but shifted by less than half its size minus the safe distance:
so the host itself is always inside, and farther than the safe distance from the border.
"""

from typing import Final

from roamcast.content.geometry import Point
from roamcast.content.region import MAX_COORDINATE, Rectangle
from roamcast.protocols.api import Time
from roamcast.protocols.context.presence import shifted

_LESS: Final = 0.99


def reachability(place: Point, velocity: Point | None, side: float, safe: float, refresh: Time) -> Rectangle:
    """The region for a host at this position with this velocity."""
    most = max(0.0, (side / 2 - safe) * _LESS)
    x, y = shifted(place, velocity, refresh // 2, most)
    far = MAX_COORDINATE - side
    x, y = min(max(x, -far), far), min(max(y, -far), far)
    return Rectangle(x - side / 2, y - side / 2, x + side / 2, y + side / 2)


def is_safe(place: Point, region: Rectangle, safe: float) -> bool:
    """Whether a host is in its region and farther than the safe distance from the border."""
    x, y = place
    return min(x - region.x0, region.x1 - x, y - region.y0, region.y1 - y) > safe
