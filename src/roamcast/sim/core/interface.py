"""The interface of a core: the part of the world below the brokers. `docs/model.md` defines its behaviour.

There are two cores with this interface, `kernel.Core` (compiled) and `reference.Core` (plain Python). A core knows
nodes, frames and times, but not what is in a message. All times are int nanoseconds.
"""

import enum
import hashlib
from dataclasses import dataclass
from typing import Final, Protocol

from roamcast.facts.schema import COUNTERS

EVERYONE: Final = -1
"""The addressee of a broadcast."""

PREAMBLE: Final = 192_000
"""Long PLCP preamble and header at 1 Mb/s; also 192 bits."""
ACK_BYTES: Final = 14

ACK_KIND: Final = 0
BACKGROUND_KIND: Final = 1
FIRST_HOST_KIND: Final = 2
"""Kinds of frames are small numbers, for counting. Those of the host's messages follow the core's own two."""

METRICS: Final = (*COUNTERS, "messages")
"""What is counted, by node and kind, in this order. `airtime` is in ns. `messages` counts the host's messages of which
a frame was sent, when they are over; each piece of a bulk that was sent counts as one."""

STREAMS: Final = ("backoff", "range", "loss", "background")


class Upcall(enum.IntEnum):
    """Why `advance` returned."""

    REACHED = 0  # `until` is reached: nothing is left to do before it
    BROADCAST = 1  # a broadcast has ended: `sender`, `handle` (over now), `receivers`; of a bulk also `masks`
    DELIVERED = 2  # a unicast has arrived: `sender`, `handle`, `receivers` of one
    FINISHED = 3  # a unicast is acknowledged: `sender`, `handle` (over now)
    UNREACHABLE = 4  # a unicast was given up: `sender`, `handle` (over now)
    DROPPED = 5  # the queue was full: `sender`, `handle` (over now)
    FRAME = 6  # with `record`: any transmission has ended; see `frame`
    GONE = 7  # its node was switched off and has forgotten it: `sender`, `handle` (over now)


class Told(enum.IntEnum):
    """Of which receivers of a broadcast the host is told: see `known.py`."""

    ALL = 0
    NEW = 1  # those that do not know its subject
    SILENT = 2  # the same; if all of them know it, there is no upcall: its handle is in `over`


class Outcome(enum.IntEnum):
    """What became of a frame at a node that it was meant for and that was in range."""

    RECEIVED = 0
    HALF_DUPLEX = 1
    COLLISION = 2
    RANDOM_LOSS = 3


@dataclass(frozen=True)
class Settings:
    """A core's configuration, resolved: no text, no choices left."""

    nodes: int
    seed: int
    kinds: int = FIRST_HOST_KIND
    """The number of kinds of frames, including the core's own."""
    record: bool = False
    """Whether every transmission's end is an upcall of its own."""

    # The air
    links: bool = False
    """Links instead of positions."""
    width: float = 1000.0
    height: float = 1000.0
    """The area in metres: a hint for the grid, not a boundary."""
    sense: float = 1.0
    """How far a frame is sensed and interferes, in ranges. 1 for the unit disk."""
    range_low: float = 0.0
    range_high: float = 0.0
    """Bounds of a range drawn per frame; with `range_high` 0 a frame has its node's range (`set_range`)."""
    surroundings: bool = False
    """Whether the smaller of the sender's and the receiver's range counts."""
    capture: bool = False
    threshold: float = 10.0
    """A power ratio, not dB."""
    loss: float = 0.0

    # The medium access
    ideal: bool = False
    kbps: int = 2000
    basic_kbps: int = 2000
    header: int = 64
    mtu: int = 1472
    slot: int = 20_000
    sifs: int = 10_000
    difs: int = 50_000
    cca: int = 4_000
    """Time from the start of a frame until it is sensed; less than any frame's airtime."""
    cw_min: int = 31
    cw_max: int = 1023
    retries: int = 7
    queue: int = 50

    # Background traffic
    background_interval: int = 0
    """0: none."""
    background_size: int = 0
    background_flood: bool = False
    background_jitter: int = 0
    overhear: bool = False
    """Whether the core remembers from whom each node last received background traffic, and when."""

    @property
    def ack_wait(self) -> int:
        """Time from the end of a unicast frame to giving up on its acknowledgement; EIFS is this plus DIFS."""
        return self.sifs + self.airtime(ACK_BYTES, 1000)

    @property
    def eifs(self) -> int:
        return self.ack_wait + self.difs

    @staticmethod
    def airtime(size: int, kbps: int) -> int:
        """The airtime of one frame of `size` bytes, including headers."""
        return PREAMBLE + -(-size * 8_000_000 // kbps)

    def fragments(self, size: int) -> int:
        return max(1, -(-size // self.mtu))

    def burst_airtime(self, size: int, kbps: int) -> int:
        """The airtime of a whole message of `size` bytes, with SIFS between its frames: a unicast of the ideal MAC."""
        full, count = self.airtime(self.mtu + self.header, kbps), self.fragments(size)
        last = self.airtime(size - (count - 1) * self.mtu + self.header, kbps)
        return (count - 1) * (full + self.sifs) + last


def first_state(seed: int, purpose: str, node: int) -> int:
    """Where the stream of random numbers of a node and purpose starts."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{purpose}/{node}".encode(), digest_size=8).digest(), "little")


@dataclass(frozen=True)
class Frame:
    """One transmission as it was, for the full record."""

    start: int
    sender: int
    to: int
    kind: int
    handle: int
    """The handle of the host's message; -1 for the core's own frames."""
    packets: int
    """1, except for a unicast of the ideal MAC, which is sent as a whole."""
    size: int
    """Bytes of the message or fragment, without headers."""
    outcomes: tuple[tuple[int, Outcome], ...]
    """The outcome at each node that the frame was meant for and that was in range."""


class Core(Protocol):
    """The interface of a core. Handles are small numbers chosen by the host, unique among messages not yet over."""

    now: int
    """The time of the last upcall."""
    sender: int
    handle: int
    receivers: list[int]
    """The receivers, in the order of their numbers."""
    over: list[int]
    """Handles of messages sent with `Told.SILENT` that have ended since the last `advance`."""
    frame: Frame | None

    @property
    def masks(self) -> list[int]:
        """The pieces of a bulk that each of the `receivers` has: bit n stands for piece n."""

    @property
    def spent(self) -> tuple[int, int, int]:
        """Packets, bits and airtime of the message that a BROADCAST, FINISHED, UNREACHABLE or GONE is about."""

    def set_leg(self, node: int, start: int, x: float, y: float, vx: float, vy: float) -> None:
        """From `start` (not later than now) the node is at (x, y) + (vx, vy) * (t - start); metres per ns."""

    def set_range(self, node: int, reach: float) -> None: ...

    def set_room(self, node: int, room: int) -> None:
        """A node hears, and interferes with, only nodes in the same room. At first all are in -1."""

    def set_link(self, sender: int, receiver: int, loss: float | None) -> None:
        """Sets one direction of a link: its loss, or None for no link."""

    def set_on(self, node: int, on: bool, keep_queue: bool) -> None:
        """Switches a node off or on again. Without `keep_queue` its messages are gone: for each of the host's, GONE (or
        BROADCAST, if a frame of it has been sent) follows."""

    def send(
        self,
        node: int,
        handle: int,
        to: int,
        size: int,
        kind: int,
        release: int,
        urgent: bool,
        told: Told = Told.ALL,
        subject: int = 0,
    ) -> None:
        """Takes effect with the next `advance`; sends take effect in their order. `told` and `subject` are for
        broadcasts of a kind that is followed."""

    def send_bulk(
        self, node: int, handle: int, pieces: int, size: int, last: int, kind: int, release: int, urgent: bool
    ) -> None:
        """Like `send`, as a broadcast of several frames (at most 62) of `size` bytes each, but the last of `last`."""

    def withdraw(self, handle: int) -> None:
        """Withdraws a message whose release is still to come (the host has checked that). The handle is over."""

    def follow(self, kind: int, once: bool) -> None:
        """From now on, broadcasts of this kind may be sent with the number of their subject. With `once` a node knows
        the subject of a message that the host is told of."""

    def know(self, kind: int, node: int, subject: int, known: bool) -> None:
        """Notes that the node knows a subject, or does not."""

    def begin_again(self, kind: int, node: int) -> None:
        """Notes that the node knows no subject of this kind."""

    def skipped(self, kind: int) -> list[int]:
        """The number of messages of which the host was not told, since the node knew their subject, by node."""

    def advance(self, until: int) -> Upcall: ...

    def overheard(self, node: int, sender: int) -> int | None:
        """With `overhear`: when the node last received a background message from `sender`, as of the last `advance`."""

    def take_series(self) -> list[list[int]]:
        """Counters of the whole network by kind and metric since the last call."""

    def totals(self) -> list[list[list[int]]]:
        """Counters by node, kind and metric since the start."""
