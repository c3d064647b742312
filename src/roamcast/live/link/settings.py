"""The settings of a link: every bound and every interval.

A node sets where it sends; the rest are constants of the protocol, which tests and the fuzzer vary. The room for
messages that wait, and for those that are being reassembled, is enough for one of the greatest length.
"""

from dataclasses import dataclass, field

from roamcast.live.link.frame import HEADER_SIZE, TAG_SIZE
from roamcast.live.link.limits import LinkProblem, Rate
from roamcast.live.link.payload import MAX_HEADER
from roamcast.live.link.reassembly import MAX_FRAGMENTS
from roamcast.protocols.messages import LONGEST


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
        if not lowest <= self.port <= 65535:
            raise LinkProblem(f"port must be from {lowest} to 65535, not {self.port}")

    @property
    def room(self) -> int:
        """Octets of a message in one fragment; the same with and without a key, so that fragments do not differ."""
        return self.mtu - HEADER_SIZE - TAG_SIZE - MAX_HEADER

    @property
    def longest_message(self) -> int:
        """Octets; a longer message is dropped as `too-long`."""
        return min(self.longest, MAX_FRAGMENTS * self.room)
