"""Acknowledged unicast, without a socket or a clock: when to send which fragments to whom, and when to give up.

Stop-and-wait per neighbour: a message is acknowledged or given up before the next one to that neighbour begins; other
neighbours are independent. So the message numbers that a node receives from another only rise, and remembering the last
one is enough to hand each message up once.

A message is sent in *bursts* of at most `BURST` fragments; the last fragment of a burst requests an acknowledgement,
which is the set of fragments that have arrived. If some are missing, the next burst follows at once. Without an
acknowledgement the burst is repeated after an interval that doubles each time, up to a maximum, with a jitter of a
quarter so that neighbours do not keep colliding. After `retries` bursts in a row without progress the message is given
up. A neighbour that did not answer and has been silent since gets only `RETRIES_UNHEARD` for each further message, so
that a queue to a node that left does not take minutes to fail.
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
        """`send` sends fragments of a letter, the last with a request to acknowledge; `done` reports the outcome."""
        self._outbox = outbox
        self._retries = retries
        self._interval = interval
        self._longest = longest
        self._rng = rng
        self._send = send
        self._done = done
        self._flying: dict[int, tuple[Letter, float]] = {}  # by neighbour, with the time of the next retry
        self._alarms: list[tuple[float, int]] = []  # a heap; an alarm that does not match its letter's time is ignored
        self._gone: dict[int, None] = {}  # neighbours given up and silent since, longest ago first

    def start(self, now: float, to: int) -> None:
        """Begins the next message to a neighbour, unless one is being sent."""
        if to not in self._flying:
            letter = self._outbox.take(to)
            if letter is not None:
                self._burst(now, letter)

    def heard(self, node: int) -> None:
        self._gone.pop(node, None)

    def answered(self, now: float, sender: int, message: int, attempt: int, have: int) -> bool:
        """Handles an acknowledgement; returns whether it was useful."""
        letter = self._flying.get(sender, (None, 0.0))[0]
        if letter is None or letter.message != message:
            return False
        missing = ((1 << letter.fragments) - 1) & ~have
        if not missing:
            self._end(now, letter, True)
            return True
        if attempt != letter.attempt:
            return False
        # The acknowledgement counts even if it lists fewer fragments than before: the neighbour may have dropped some.
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
        """Forgets the messages being sent; the outbox still has them."""
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
    """The indices of the lowest bits that are set."""
    found: list[int] = []
    while bits and len(found) < most:
        lowest = bits & -bits
        found.append(lowest.bit_length() - 1)
        bits ^= lowest
    return found
