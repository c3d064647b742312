"""Logs problems of the link that an operator should know about, at a rate that people can read.

The rule this file owns: a problem gets one line, with the number of frames, at most every `INTERVAL` seconds. Problems
that happen now and then in a healthy network are logged only if they last for `LASTING` looks in a row. A node that
runs another protocol gets one line, and another one when it changes to a third.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from roamcast.bounded import put
from roamcast.live import log

INTERVAL: Final = 60.0
"""Seconds between two lines about the same problem."""
LASTING: Final = 5
"""Consecutive looks, one per second."""
_MAX_FOREIGN: Final = 1024
NO_NODES: Final[Mapping[int, str]] = {}


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
"""By the name of the link's counter."""


@dataclass
class _Seen:
    count: int = 0
    """The counter at the latest look."""
    reported: int = 0
    """The counter at the latest line."""
    looks: int = 0
    """Consecutive looks in which the counter rose."""
    at: float = float("-inf")
    """Time of the latest line."""


class Troubles:
    def __init__(self) -> None:
        self._seen = {reason: _Seen() for reason in _TROUBLES}
        self._foreign: dict[int, str] = {}

    def look(self, now: float, counters: Mapping[str, int], foreign: Mapping[int, str] = NO_NODES) -> None:
        """To be called once per second with the counters of a link; `now` is in seconds. `foreign` has the protocols of
        nodes that run another one."""
        for node, protocol in foreign.items():
            if self._foreign.get(node) != protocol:
                log.warn(
                    "a node runs ANOTHER PROTOCOL: the two ignore each other; start both with the same --protocol",
                    other=node,
                    protocol=protocol,
                )
                put(self._foreign, node, protocol, _MAX_FOREIGN)
        for reason, trouble in _TROUBLES.items():
            seen, count = self._seen[reason], counters.get(reason, 0)
            seen.looks = seen.looks + 1 if count > seen.count else 0
            seen.count = count
            long_enough = seen.looks >= LASTING if trouble.lasting else count > seen.reported
            if long_enough and now - seen.at >= INTERVAL:
                log.warn(trouble.words, reason=reason, frames=count - seen.reported)
                seen.reported, seen.at = count, now
