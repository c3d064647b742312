"""What an operator should know of, said in the log, and not more often than he can read.

The rule this file owns: a trouble gets one line, with how many frames it concerned, at most every `INTERVAL` seconds.
One that is part of a healthy network now and then is told when it lasts, for `LASTING` looks running.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from roamcast.live import log

INTERVAL: Final = 60.0
"""Seconds between two lines about the same trouble."""
LASTING: Final = 5
"""Looks, one a second."""


@dataclass(frozen=True)
class _Trouble:
    words: str
    lasting: bool = False


_TROUBLES: Final = {
    "key": _Trouble("frames are sealed with ANOTHER KEY: compare 'roamcast key show FILE' on both nodes"),
    "version": _Trouble("frames of another version arrive, or of nodes without a key"),
    "send-failed": _Trouble("frames could not be sent: is the interface up, and has it an address?"),
    "receive-failed": _Trouble("the socket could not be read"),
    "replay": _Trouble("frames arrive again that were taken before: a loop in the network, or an attacker", True),
    "crowded": _Trouble("more neighbours are heard than there is room for"),
}
"""By the link's counter."""


@dataclass
class _Seen:
    count: int = 0
    """At the latest look."""
    told: int = 0
    """At the latest line."""
    looks: int = 0
    """Running, in which there was more than before."""
    at: float = float("-inf")
    """When the latest line was."""


class Troubles:
    def __init__(self) -> None:
        self._seen = {reason: _Seen() for reason in _TROUBLES}

    def look(self, now: float, counters: Mapping[str, int]) -> None:
        """To be called once a second with the counters of a link; `now` is in seconds."""
        for reason, trouble in _TROUBLES.items():
            seen, count = self._seen[reason], counters.get(reason, 0)
            seen.looks = seen.looks + 1 if count > seen.count else 0
            seen.count = count
            long_enough = seen.looks >= LASTING if trouble.lasting else count > seen.told
            if long_enough and now - seen.at >= INTERVAL:
                log.warn(trouble.words, reason=reason, frames=count - seen.told)
                seen.told, seen.at = count, now
