"""Acknowledged unicast, without a socket or a clock: when to send which parts to whom, and when to give up.

Stop-and-wait for each neighbour: a message is acknowledged or given up before the next one to that neighbour begins,
while other neighbours go on. So the numbers of the messages that a node takes from another only rise, and one number
is enough to hand each up once.

A message goes out in *bursts* of at most `BURST` parts; the last part of a burst asks what has arrived. The answer is
a set of parts: if something is missing, the next burst follows at once. Without an answer the burst is repeated after
an interval that doubles each time, up to a longest, with a jitter of a quarter so that neighbours do not keep
colliding. After `retries` bursts in a row without progress the message is given up. A neighbour that did not answer
and was not heard since gets only `RETRIES_UNHEARD` for each further message: a queue to somebody who left does not
take minutes to fail.
"""

import heapq
import random
from collections.abc import Callable, Sequence
from typing import Final

from roamcast.bounded import put
from roamcast.live.link.outbox import Letter, Outbox

BURST: Final = 32
RETRIES_UNHEARD: Final = 2
JITTER: Final = 0.25
MAX_GONE: Final = 1024


class UnicastSender:
    def __init__(
        self,
        outbox: Outbox,
        retries: int,
        interval: float,
        longest: float,
        rng: random.Random,
        *,
        send: Callable[[Letter, Sequence[int]], None],
        done: Callable[[Letter, bool], None],
    ) -> None:
        """`send` sends parts of a letter, the last of them asking; `done` tells how a letter ended."""
        self._outbox = outbox
        self._retries = retries
        self._interval = interval
        self._longest = longest
        self._rng = rng
        self._send = send
        self._done = done
        self._flying: dict[int, tuple[Letter, float]] = {}  # by neighbour, with when to try again
        self._alarms: list[tuple[float, int]] = []  # a heap; one that no longer matches its letter means nothing
        self._gone: dict[int, None] = {}  # given up and not heard since, longest ago first

    def start(self, now: float, to: int) -> None:
        """Begins with the next message to a neighbour, unless one is on its way."""
        if to not in self._flying:
            letter = self._outbox.take(to)
            if letter is not None:
                self._burst(now, letter)

    def heard(self, node: int) -> None:
        self._gone.pop(node, None)

    def answered(self, now: float, sender: int, message: int, attempt: int, have: int) -> bool:
        """An acknowledgement has come; whether it was of any use."""
        letter = self._flying.get(sender, (None, 0.0))[0]
        if letter is None or letter.message != message:
            return False
        missing = ((1 << letter.parts) - 1) & ~have
        if not missing:
            self._end(now, letter, True)
            return True
        if attempt != letter.attempt:
            return False
        # What the neighbour says it has is the truth, even if it is less than before: it may have had to drop some.
        letter.missing = missing
        if missing.bit_count() < letter.fewest:
            letter.fewest = missing.bit_count()
            letter.tries = 0
        elif self._spent(letter):
            return False
        self._burst(now, letter)
        return True

    def wake(self, now: float) -> None:
        """Does what is due."""
        while self._alarms and self._alarms[0][0] <= now:
            at, to = heapq.heappop(self._alarms)
            letter, due = self._flying.get(to, (None, 0.0))
            if letter is None or due != at:
                continue
            if self._spent(letter):
                put(self._gone, to, None, MAX_GONE)
                self._end(now, letter, False)
            else:
                self._burst(now, letter)

    def next_wake(self) -> float | None:
        while self._alarms:
            at, to = self._alarms[0]
            if to in self._flying and self._flying[to][1] == at:
                return at
            heapq.heappop(self._alarms)
        return None

    def stop(self) -> None:
        """Forgets what is on its way; the outbox knows it still."""
        self._flying.clear()
        self._alarms.clear()

    def _spent(self, letter: Letter) -> bool:
        return letter.tries > (min(self._retries, RETRIES_UNHEARD) if letter.to in self._gone else self._retries)

    def _burst(self, now: float, letter: Letter) -> None:
        letter.attempt = (letter.attempt + 1) % 256
        letter.tries += 1
        wait = min(self._longest, self._interval * 2.0 ** min(letter.tries - 1, 64))
        due = now + wait * self._rng.uniform(1 - JITTER, 1 + JITTER)
        self._flying[letter.to] = letter, due
        heapq.heappush(self._alarms, (due, letter.to))
        self._send(letter, _first(letter.missing, BURST))

    def _end(self, now: float, letter: Letter, delivered: bool) -> None:
        del self._flying[letter.to]
        self._outbox.release(letter)
        self._done(letter, delivered)
        self.start(now, letter.to)


def _first(bits: int, most: int) -> list[int]:
    """The lowest bits that are set."""
    found: list[int] = []
    while bits and len(found) < most:
        lowest = bits & -bits
        found.append(lowest.bit_length() - 1)
        bits ^= lowest
    return found
