"""How a link is set up: every bound and every interval, checked before a socket is opened."""

from dataclasses import dataclass, field
from typing import Final

from roamcast.live.link.frame import HEADER_SIZE, MAX_DATAGRAM, TAG_SIZE
from roamcast.live.link.limits import LinkProblem, Rate
from roamcast.live.link.outbox import LETTER_COST
from roamcast.live.link.payload import MAX_HEADER
from roamcast.live.link.reassembly import CHUNK_COST, MAX_PARTS

MIN_MTU: Final = 256


@dataclass(frozen=True)
class LinkSettings:
    port: int = 47474
    """Where broadcasts go and are heard; 0 with `air` only."""
    address: str = "255.255.255.255"
    """The broadcast address."""
    interface: str | None = None
    """The one interface to send on and to hear from."""
    bind: str = ""
    """The address of the node's own socket; "" is any."""
    air: tuple[str, int] | None = None
    """Where every datagram goes instead: an ether, which passes on what arrives from there."""
    mtu: int = 1400
    """Octets of the longest datagram sent."""
    retries: int = 7
    """Of a unicast, without progress, after its first try: with the intervals below, given up after about 2 s."""
    retry_interval: float = 0.025
    """Seconds to the first retry; it doubles from one to the next."""
    retry_longest: float = 0.4
    """Seconds that an interval does not exceed."""
    queue: int = 256
    """Messages waiting for one neighbour, and broadcasts waiting."""
    queue_octets: int = 8 * 2**20
    """All of them, with 512 octets on top of each."""
    neighbours: int = 1024
    """That are remembered."""
    neighbour_lifetime: float = 60.0
    """Seconds of silence after which a neighbour makes room, when there is none."""
    rate: Rate = field(default_factory=Rate)
    """What one neighbour may send."""
    partials: int = 4
    """Messages of one sender that are being put together."""
    partial_octets: int = 8 * 2**20
    """All of them, of all senders, with 128 octets on top of each part."""
    partial_lifetime: float = 5.0
    """Seconds without a new part after which one is given up."""

    def __post_init__(self) -> None:
        lowest = 0 if self.air else 1
        self._hold("port", lowest <= self.port <= 65535, f"from {lowest} to 65535")
        self._hold("mtu", MIN_MTU <= self.mtu <= MAX_DATAGRAM, f"from {MIN_MTU} to {MAX_DATAGRAM}")
        self._hold("retries", 0 <= self.retries <= 100, "from 0 to 100")
        self._hold("retry_interval", 0.001 <= self.retry_interval <= 60, "from 0.001 to 60 s")
        self._hold("retry_longest", self.retry_interval <= self.retry_longest <= 60, "from retry_interval to 60 s")
        self._hold("queue", self.queue >= 1, "1 or more")
        self._hold("neighbours", self.neighbours >= 1, "1 or more")
        self._hold("neighbour_lifetime", 0 <= self.neighbour_lifetime < float("inf"), "0 or more, and finite")
        self._hold("partials", self.partials >= 1, "1 or more")
        self._hold("partial_lifetime", 0 < self.partial_lifetime < float("inf"), "above 0, and finite")
        # One message of the greatest length must fit, or it could never be sent or received.
        queued = MAX_PARTS * self.mtu + LETTER_COST
        self._hold("queue_octets", self.queue_octets >= queued, f"{queued} or more, a message of the greatest length")
        held = MAX_PARTS * (MAX_DATAGRAM + CHUNK_COST)
        self._hold("partial_octets", self.partial_octets >= held, f"{held} or more, a message of the greatest length")

    @property
    def room(self) -> int:
        """Octets of a message in one part; the same with and without a key, so that both send alike."""
        return self.mtu - HEADER_SIZE - TAG_SIZE - MAX_HEADER

    @property
    def longest_message(self) -> int:
        return MAX_PARTS * self.room

    def _hold(self, name: str, holds: bool, rule: str) -> None:
        if not holds:
            raise LinkProblem(f"{name} must be {rule}, not {getattr(self, name)}")
