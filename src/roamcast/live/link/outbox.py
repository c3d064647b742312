"""Messages that wait to be sent: one lane per neighbour and one for broadcasts, each with urgent messages first.

Bounded twice. A lane that is too long drops its newest message, an ordinary one before an urgent one; that may be the
message just added. When all lanes together hold too many octets, the largest lane drops its newest: a neighbour that
does not answer cannot use up the room of the others.

A *promised* message is never dropped: the host has told somebody that it will be sent. The host bounds them.
"""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

LETTER_COST: Final = 512
"""Octets of memory that a waiting message takes beyond its payload."""
MANY: Final = 2**31


@dataclass(slots=True, eq=False)
class Letter:
    """A message being sent, and the effort spent on it so far."""

    to: int
    payload: bytes
    token: Hashable
    urgent: bool = False
    promised: bool = False
    message: int = -1
    """Its number, from the counter of frames; set when sending begins."""
    fragments: int = 1
    missing: int = 1
    """Bit i: fragment i is not known to have arrived (broadcast: has not been sent)."""
    fewest: int = MANY
    """The smallest number of missing fragments so far."""
    attempt: int = 0
    """Number of the latest burst, modulo 256; an acknowledgement says which one it answers."""
    tries: int = 0
    """Bursts since the last progress."""
    datagrams: int = 0
    octets: int = 0

    @property
    def cost(self) -> int:
        return len(self.payload) + LETTER_COST


@dataclass(slots=True)
class _Lane:
    urgent: deque[Letter] = field(default_factory=deque)
    ordinary: deque[Letter] = field(default_factory=deque)
    taken: dict[Letter, None] = field(default_factory=dict)
    cost: int = 0

    def waiting(self) -> int:
        return len(self.urgent) + len(self.ordinary)

    def newest(self) -> Letter | None:
        """The message to drop first, if any may be dropped."""
        waiting = chain(reversed(self.ordinary), reversed(self.urgent))
        return next((letter for letter in waiting if not letter.promised), None)


class Outbox:
    def __init__(self, lane: int, octets: int) -> None:
        """Up to `lane` messages wait in each lane, and `octets` in all."""
        self._longest = lane
        self._octets = octets
        self._lanes: dict[int, _Lane] = {}
        self.cost = 0

    def put(self, letter: Letter) -> list[Letter]:
        """Adds a message; returns those dropped to make room, perhaps itself."""
        lane = self._lanes.get(letter.to)
        if lane is None:
            lane = self._lanes[letter.to] = _Lane()
        (lane.urgent if letter.urgent else lane.ordinary).append(letter)
        lane.cost += letter.cost
        self.cost += letter.cost
        gone = []
        if lane.waiting() > self._longest and (newest := lane.newest()) is not None:
            gone.append(self._drop(newest))
        while self.cost > self._octets:
            # Of two lanes of equal size, the one that is growing.
            largest = sorted(self._lanes, key=lambda to: (self._lanes[to].cost, to == letter.to), reverse=True)
            droppable = next((newest for to in largest if (newest := self._lanes[to].newest()) is not None), None)
            if droppable is None:
                break
            gone.append(self._drop(droppable))
        return gone

    def take(self, to: int) -> Letter | None:
        """The next message of a lane. It counts towards the limits until it is released."""
        lane = self._lanes.get(to)
        if lane is None or not lane.waiting():
            return None
        letter = (lane.urgent or lane.ordinary).popleft()
        lane.taken[letter] = None
        return letter

    def release(self, letter: Letter) -> None:
        lane = self._lanes[letter.to]
        del lane.taken[letter]
        self._let_go(lane, letter)

    def drain(self) -> list[Letter]:
        """Removes and returns all messages, taken or waiting."""
        letters = [letter for lane in self._lanes.values() for letter in (*lane.taken, *lane.urgent, *lane.ordinary)]
        self._lanes.clear()
        self.cost = 0
        return letters

    def _drop(self, letter: Letter) -> Letter:
        lane = self._lanes[letter.to]
        (lane.urgent if letter.urgent else lane.ordinary).remove(letter)
        self._let_go(lane, letter)
        return letter

    def _let_go(self, lane: _Lane, letter: Letter) -> None:
        lane.cost -= letter.cost
        self.cost -= letter.cost
        if not lane.taken and not lane.waiting():
            del self._lanes[letter.to]

    def __len__(self) -> int:
        """Messages held."""
        return sum(lane.waiting() + len(lane.taken) for lane in self._lanes.values())
