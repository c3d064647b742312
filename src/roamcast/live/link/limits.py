"""How much of one neighbour a node takes: a token bucket for frames and one for octets.

Asked before a frame is authenticated, charged after: an empty bucket costs its sender no cryptography of ours, and
nobody without the key can empty the bucket of another.
"""

from dataclasses import dataclass

from roamcast.errors import RoamcastError


class LinkProblem(RoamcastError):
    """A setting or a socket that cannot be, with its name and the rule."""


@dataclass(frozen=True)
class Rate:
    """What one neighbour may send."""

    frames: float = 5000.0
    """A second."""
    octets: float = 8e6
    """A second."""
    burst: float = 1.0
    """Seconds' worth that may come at once, after silence."""

    def __post_init__(self) -> None:
        for name in ("frames", "octets", "burst"):
            if not 0 < getattr(self, name) < float("inf"):
                raise LinkProblem(f"rate.{name} must be above 0 and finite, not {getattr(self, name)}")
        if self.frames * self.burst < 1:
            raise LinkProblem("rate.frames times rate.burst must be 1 or more, or no frame would ever pass")


class Allowance:
    """What a neighbour has left."""

    __slots__ = ("_at", "_frames", "_octets", "_rate")

    def __init__(self, rate: Rate, now: float) -> None:
        self._rate = rate
        self._at = now
        self._frames = rate.frames * rate.burst
        self._octets = rate.octets * rate.burst

    def ready(self, now: float) -> bool:
        """Whether one more frame may come, of any length: what it takes too much is owed afterwards."""
        rate = self._rate
        passed = now - self._at
        if passed > 0:
            self._at = now
            self._frames = min(rate.frames * rate.burst, self._frames + passed * rate.frames)
            self._octets = min(rate.octets * rate.burst, self._octets + passed * rate.octets)
        return self._frames >= 1 and self._octets > 0

    def charge(self, octets: int) -> None:
        self._frames -= 1
        self._octets -= octets
