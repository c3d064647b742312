"""What the parts of a broker share: the node and its port, its position, its neighbours, and the geocast."""

from random import Random
from typing import Final

from roamcast.content.region import Rectangle
from roamcast.protocols.api import Node, Port, Time
from roamcast.protocols.context.geocast import Geocast
from roamcast.protocols.context.neighbours import Surroundings
from roamcast.protocols.context.params import ContextParams
from roamcast.protocols.context.presence import Whereabouts
from roamcast.protocols.context.reachability import reachability
from roamcast.protocols.local import LocalSubscriptions
from roamcast.units import SECOND, seconds

_MICROSECOND: Final = SECOND // 1_000_000


class Host:
    def __init__(self, node: Node, params: ContextParams, port: Port, rng: Random, local: LocalSubscriptions) -> None:
        self.node = node
        self.params = params
        self.port = port
        self.rng = rng
        self.local = local
        self.whereabouts = Whereabouts(port, seconds(params.interval), params.key_attributes)
        self.around = Surroundings(
            self.whereabouts, seconds(params.interval * params.lifetime), params.neighbours, 2 * seconds(params.check)
        )
        self._serial = 0
        self.geocast = Geocast(port, rng, params.geocast, self.whereabouts.presence, self.whereabouts.here)

    def reach(self, now: Time) -> Rectangle | None:
        """This host's reachability region from now on."""
        here = self.whereabouts.here(now)
        if here is None:
            return None
        velocity = self.whereabouts.velocity(now, here)
        return reachability(here, velocity, self.params.reachability, self.params.safe, seconds(self.params.refresh))

    def serial(self, now: Time) -> int:
        """A number above all former ones, also those before a restart: the clock goes on, and is faster than a host."""
        self._serial = max(self._serial + 1, now // _MICROSECOND)
        return self._serial

    def varied(self, period: Time) -> Time:
        """A period, longer or shorter by up to a tenth, so that hosts that began together do not stay in step."""
        return round(period * (0.9 + 0.2 * self.rng.random()))

    def random_wait(self) -> Time:
        """A wait before sending what others may send too."""
        return round(self.rng.random() * seconds(self.params.match_wait))
