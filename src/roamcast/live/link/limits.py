"""Rate limits per neighbour: a token bucket for frames and one for octets.

Checked before a frame is authenticated, charged after: when the bucket is empty we spend no cryptography on a frame,
and nobody without the key can empty another node's bucket.
"""

from dataclasses import dataclass

from roamcast.errors import RoamcastError


class LinkProblem(RoamcastError):
    """A setting or a socket is not possible; the text names it and the rule."""


@dataclass(frozen=True)
class Rate:
    """What one neighbour may send."""

    frames: float = 5000.0
    """Per second."""
    octets: float = 8e6
    """Per second."""
    burst: float = 1.0
    """Seconds' worth of traffic that may come at once after silence."""


class Allowance:
    """What a neighbour has left."""

    __slots__ = ("_at", "_frames", "_octets", "_rate")

    def __init__(self, rate: Rate, now: float) -> None:
        self._rate = rate
        self._at = now
        self._frames = rate.frames * rate.burst
        self._octets = rate.octets * rate.burst

    def ready(self, now: float) -> bool:
        """Whether one more frame may come, of any length: the bucket may go below zero."""
        rate = self._rate
        passed = now - self._at
        if passed > 0:
            self._at = now
            self._frames = min(rate.frames * rate.burst, self._frames + passed * rate.frames)
            self._octets = min(rate.octets * rate.burst, self._octets + passed * rate.octets)
        return self._frames >= 1 and self._octets > 0

    def charge(self, octets: int, frames: int = 1) -> None:
        self._frames -= frames
        self._octets -= octets
