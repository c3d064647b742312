"""The settings of a link: every bound and every interval, checked before a socket is opened."""

from dataclasses import dataclass, field
from typing import Final

from roamcast.live.link.frame import HEADER_SIZE, MAX_DATAGRAM, TAG_SIZE
from roamcast.live.link.limits import LinkProblem, Rate
from roamcast.live.link.outbox import LETTER_COST
from roamcast.live.link.payload import MAX_HEADER
from roamcast.live.link.reassembly import CHUNK_COST, MAX_FRAGMENTS
from roamcast.protocols.messages import LONGEST

MIN_MTU: Final = 256


@dataclass(frozen=True)
class LinkSettings:
    port: int = 47474
    """The port for sending and receiving broadcasts; 0 only with `air`."""
    address: str = "255.255.255.255"
    """The broadcast address."""
    interface: str | None = None
    """The only interface to send and receive on."""
    bind: str = ""
    """The address of the node's own socket; "" is any."""
    air: tuple[str, int] | None = None
    """Sends every datagram here instead: to an ether, which forwards it to those in range."""
    mtu: int = 1400
    """Octets of the longest datagram to send."""
    retries: int = 7
    """Retries of a unicast without progress: with the intervals below, it is given up after about 2 s."""
    retry_interval: float = 0.025
    """Seconds to the first retry; doubles with each retry."""
    retry_longest: float = 0.4
    """The longest interval, in seconds."""
    queue: int = 256
    """The most messages waiting for one neighbour, and the most broadcasts waiting."""
    queue_octets: int = 8 * 2**20
    """Octets of all waiting messages, plus 512 for each."""
    neighbours: int = 1024
    """Entries in the table of neighbours."""
    neighbour_lifetime: float = 60.0
    """Seconds of silence after which a neighbour may be replaced when the table is full."""
    rate: Rate = field(default_factory=Rate)
    """What one neighbour may send."""
    longest: int = LONGEST + 1
    """Octets of a message, with the octet of its version: longer ones are neither sent nor reassembled."""
    partials: int = 4
    """Messages of one sender that are being reassembled."""
    partial_octets: int = 8 * 2**20
    """Octets of the fragments of all senders, plus 128 for each."""
    partial_lifetime: float = 5.0
    """Seconds without a new fragment after which a message is given up."""

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
        # A message of the greatest length must fit, or it could never be sent or received.
        queued = MAX_FRAGMENTS * self.mtu + LETTER_COST
        self._hold("longest", self.longest >= 1, "1 or more")
        self._hold("queue_octets", self.queue_octets >= queued, f"{queued} or more, a message of the greatest length")
        held = MAX_FRAGMENTS * (MAX_DATAGRAM + CHUNK_COST)
        self._hold("partial_octets", self.partial_octets >= held, f"{held} or more, a message of the greatest length")

    @property
    def room(self) -> int:
        """Octets of a message in one fragment; the same with and without a key, so that fragments do not differ."""
        return self.mtu - HEADER_SIZE - TAG_SIZE - MAX_HEADER

    @property
    def longest_message(self) -> int:
        return min(self.longest, MAX_FRAGMENTS * self.room)

    def _hold(self, name: str, holds: bool, rule: str) -> None:
        if not holds:
            raise LinkProblem(f"{name} must be {rule}, not {getattr(self, name)}")
