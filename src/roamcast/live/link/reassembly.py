"""Fragmentation of messages beyond the MTU, into at most `MAX_FRAGMENTS` fragments, and reassembly within bounds.

Each fragment carries its message's number, which no other message of that sender has. A sender that starts many
messages and completes none fills only its own share: if a sender has too many partial messages, the one longest without
progress is dropped; if all senders together take too much memory, one of the sender that takes most. A message without
progress for `lifetime` seconds is dropped too.
"""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

from roamcast.live.link.frame import FrameRefused

MAX_FRAGMENTS: Final = 255
CHUNK_COST: Final = 128
"""Octets of memory per fragment beyond its content, so that many tiny ones are not underestimated."""


def count_fragments(payload: bytes, room: int) -> int:
    """How many fragments a payload needs with `room` octets in each; an empty payload needs one."""
    return max(1, -(-len(payload) // room))


def cut_fragment(payload: bytes, room: int, index: int) -> bytes:
    return payload[index * room : (index + 1) * room]


@dataclass(slots=True)
class _Partial:
    count: int
    touched: float
    chunks: dict[int, bytes] = field(default_factory=dict)
    cost: int = 0


class Reassembly:
    def __init__(self, each: int, octets: int, lifetime: float, counters: Counter[str], longest: int) -> None:
        """Up to `each` partial messages per sender, `octets` in all and `longest` in one message."""
        self._longest = longest
        self._each = each
        self._octets = octets
        self._lifetime = lifetime
        self._counters = counters
        self._partials: dict[tuple[int, Hashable], _Partial] = {}  # longest without progress first
        self._costs: Counter[int] = Counter()  # by sender; none at 0
        self._numbers: Counter[int] = Counter()  # partial messages by sender; none at 0
        self.cost = 0

    def add(self, now: float, sender: int, message: Hashable, index: int, count: int, chunk: bytes) -> bytes | None:
        """Adds one fragment; returns the whole message when it is complete."""
        if not 0 <= index < count <= MAX_FRAGMENTS or (not chunk and count > 1):
            raise FrameRefused("malformed")
        key = sender, message
        partial = self._partials.get(key)
        if partial is None:
            partial = self._partials[key] = _Partial(count, now)
            self._numbers[sender] += 1
        if partial.count != count:
            raise FrameRefused("malformed")
        if index not in partial.chunks:
            self._partials[key] = self._partials.pop(key)
            partial.touched = now
            partial.chunks[index] = chunk
            self._charge(sender, partial, len(chunk) + CHUNK_COST)
            if partial.cost - len(partial.chunks) * CHUNK_COST > self._longest:
                self._remove(key)
                raise FrameRefused("long")
        if len(partial.chunks) == count:
            self._remove(key)
            return b"".join(partial.chunks[i] for i in range(count))
        self._make_room(sender)
        return None

    def have(self, sender: int, message: Hashable) -> int:
        """Bit i: fragment i has arrived."""
        partial = self._partials.get((sender, message))
        return sum(1 << index for index in partial.chunks) if partial else 0

    def expire(self, now: float) -> None:
        for key, partial in list(self._partials.items()):
            if now - partial.touched < self._lifetime:
                break
            self._remove(key)
            self._counters["parts-expired"] += 1

    def next_expiry(self) -> float | None:
        for partial in self._partials.values():
            return partial.touched + self._lifetime
        return None

    def _make_room(self, sender: int) -> None:
        while self._numbers[sender] > self._each:
            self._evict(sender)
        while self.cost > self._octets:
            self._evict(max(self._costs, key=lambda node: (self._costs[node], node)))

    def _evict(self, sender: int) -> None:
        self._remove(next(key for key in self._partials if key[0] == sender))
        self._counters["parts-evicted"] += 1

    def _charge(self, sender: int, partial: _Partial, cost: int) -> None:
        partial.cost += cost
        self._costs[sender] += cost
        self.cost += cost

    def _remove(self, key: tuple[int, Hashable]) -> None:
        partial = self._partials.pop(key)
        self.cost -= partial.cost
        for table, amount in ((self._costs, partial.cost), (self._numbers, 1)):
            table[key[0]] -= amount
            if not table[key[0]]:
                del table[key[0]]

    def __len__(self) -> int:
        return len(self._partials)
