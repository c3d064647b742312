"""How far a campaign is, for whoever shows it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class State:
    """Of all runs of the plan, those done before included."""

    total: int
    done: int
    failed: int
    running: int
    share: float
    """Of the work that this start of the campaign has to do, by estimate: from 0 to 1."""
    elapsed: float
    """Seconds since it started."""

    @property
    def left(self) -> float | None:
        """Seconds to go; None while nothing is known."""
        return self.elapsed * (1 - self.share) / self.share if self.share > 0 else None


OnProgress = Callable[[State], None]
