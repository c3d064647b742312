"""How many signatures a node checks per second, and which messages wait for their turn.

Checking a signature takes 170 µs, and anyone with the network's key can force it. The rules this file owns:

* At most `PER_SECOND` signatures are checked per second, and `BURST` of them at once, in whatever they stand: events,
  heads of documents, certificates, revocations. What was checked before costs nothing and does not wait.
* **A message that comes when these are used up waits.** Senders take turns, so that one who sends a lot delays itself.
* Bounded: when too much waits, the latest message of the sender with the most is dropped and counted, `not checked`. It
  may come again.
"""

from collections import Counter, deque
from collections.abc import Callable
from typing import Final

from roamcast.live.clock import Agenda
from roamcast.protocols.api import Node, Time
from roamcast.protocols.messages import Message
from roamcast.units import SECOND

PER_SECOND: Final = 2000
"""A third of a core of the machine on which 170 µs were measured."""
BURST: Final = 128
"""Some 20 ms: with the 64 of a message that has begun, one call stays below 50."""
MAX_WAITING: Final = 1024
MAX_WAITING_BYTES: Final = 4 * 2**20
_COST: Final = SECOND // PER_SECOND
_PAUSE: Final = SECOND // 100
"""Between two looks at what waits."""


class Checks:
    def __init__(
        self, agenda: Agenda, counters: Counter[str], take: Callable[[Node, Message, int], None], made: int = 0
    ) -> None:
        """`take` gets a message whose turn has come, its sender and its size; `made`: as for the method."""
        self.now: Time = 0
        self._agenda = agenda
        self._counters = counters
        self._take = take
        self._credit = BURST * _COST  # ns: how much earlier the last check could have been made
        self._made = made
        self._waiting: dict[Node, deque[tuple[Message, int]]] = {}  # who is next comes first
        self._messages = 0
        self._bytes = 0
        self._planned = False

    def at(self, now: Time) -> None:
        """It is `now`: some more signatures may be checked."""
        self._credit = min(BURST * _COST, self._credit + max(0, now - self.now))
        self.now = max(self.now, now)

    def may(self, sender: Node | None = None) -> bool:
        """Whether one more may be checked; for a sender, whether nothing of it waits already."""
        return self._credit > 0 and sender not in self._waiting

    def made(self, total: int) -> None:
        """So many signatures were checked so far."""
        self._credit -= (total - self._made) * _COST
        self._made = total

    def wait(self, sender: Node, message: Message, size: int) -> None:
        self._waiting.setdefault(sender, deque()).append((message, size))
        self._messages += 1
        self._bytes += size
        while self._messages > MAX_WAITING or self._bytes > MAX_WAITING_BYTES:
            longest = max(self._waiting, key=lambda node: len(self._waiting[node]))
            self._remove(longest, self._waiting[longest].pop()[1])
            self._counters["not checked"] += 1
        self._plan()

    def _remove(self, sender: Node, size: int) -> None:
        self._messages -= 1
        self._bytes -= size
        if not self._waiting[sender]:
            del self._waiting[sender]

    def _plan(self) -> None:
        if self._waiting and not self._planned:
            self._planned = True
            self._agenda.plan(self.now + _PAUSE, self._go_on)

    def _go_on(self, now: Time) -> None:
        self._planned = False
        self.at(now)
        while self._waiting and self._credit > 0:
            sender = next(iter(self._waiting))
            queue = self._waiting[sender] = self._waiting.pop(sender)  # it is the others' turn now
            message, size = queue.popleft()
            self._remove(sender, size)
            self._take(sender, message, size)
        self._plan()

    def __len__(self) -> int:
        """The number of messages that wait."""
        return self._messages
