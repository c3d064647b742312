"""Which frames were taken before: no receiver takes the same frame twice, not even across its own restart.

For each sender, the highest counter taken and a window of `WINDOW` counters below it; what is older than the window,
or in it and taken, is refused. Only authentic frames may get here, so that strangers cannot fill the table.

**Across a restart.** The highest counters, the *marks*, are persisted before what they belong to is handed up: the
link opens all datagrams of one wake-up, calls `commit` once, and hands up only then. After a restart everything at or
below a mark is refused, so the window need not be kept: what overtook it in the air at that very moment is lost, and
sent again if it was unicast. A store that survives `kill -9` but not a power failure (SQLite with
`synchronous=NORMAL`) leaves an attacker this much: frames of the last moments before the power went, once more. The
same holds, after any crash, for the time that a host's `persist` takes if it only promises to store.

**What is not promised** is freshness. A frame that was recorded and kept from a receiver, or that it never heard, is
taken when it comes later, once; a node with a new store has heard nothing, and takes an old recording once.

**Bounded.** With the table full, a sender of an earlier run that was not heard since makes room, the one restored
first; senders heard in this run never do. When there is none, new senders are refused (`Verdict.FULL`): forgetting a
mark would reopen the door for its frames. Only somebody with the key can bring this about.
"""

import enum
from collections.abc import Callable, Mapping
from typing import Final

WINDOW: Final = 1024
CAPACITY: Final = 4096
_ALL_TAKEN: Final = (1 << WINDOW) - 1


class Verdict(enum.Enum):
    NEW = "new"
    SEEN = "seen"
    FULL = "full"


class _Seen:
    __slots__ = ("mark", "window")

    def __init__(self, mark: int, window: int) -> None:
        self.mark = mark
        self.window = window
        """Bit i: the counter `mark - i` was taken."""


class Replay:
    def __init__(self, capacity: int = CAPACITY, *, persist: Callable[[Mapping[int, int]], None] | None = None) -> None:
        """`persist` gets the marks that have changed, by sender; when it returns they should be safe."""
        if capacity < 1:
            raise ValueError(f"room for at least one sender, not {capacity}")
        self._capacity = capacity
        self._persist = persist
        self._heard: dict[int, _Seen] = {}
        self._silent: dict[int, int] = {}  # marks of an earlier run whose senders were not heard since
        self._changed: dict[int, None] = {}

    def accept(self, sender: int, counter: int) -> bool:
        """Whether this is a new frame; it is no longer afterwards."""
        if self.judge(sender, counter) is not Verdict.NEW:
            return False
        seen = self._heard.get(sender) or self._enter(sender)
        ahead = counter - seen.mark
        if ahead > 0:
            seen.window = (seen.window << ahead & _ALL_TAKEN if ahead < WINDOW else 0) | 1
            seen.mark = counter
            self._changed[sender] = None
        else:
            seen.window |= 1 << -ahead
        return True

    def judge(self, sender: int, counter: int) -> Verdict:
        """What `accept` would say, without a trace: cheap enough to ask before a frame is authenticated."""
        seen = self._heard.get(sender)
        if seen is None:
            mark = self._silent.get(sender)
            if mark is not None:
                return Verdict.NEW if counter > mark else Verdict.SEEN
            room = self._silent or len(self._heard) < self._capacity
            return Verdict.NEW if room else Verdict.FULL
        behind = seen.mark - counter
        if behind < 0:
            return Verdict.NEW
        return Verdict.SEEN if behind >= WINDOW or seen.window >> behind & 1 else Verdict.NEW

    def commit(self) -> None:
        """Persists the marks that have changed. If it raises, they count as changed still."""
        if self._changed:
            if self._persist is not None:
                self._persist({sender: self._heard[sender].mark for sender in self._changed})
            self._changed.clear()

    def export(self) -> dict[int, int]:
        """All marks, those longest silent first: what `restore` wants."""
        return self._silent | {sender: seen.mark for sender, seen in self._heard.items()}

    def restore(self, marks: Mapping[int, int]) -> None:
        """Takes over the marks of an earlier run; of too many, those at the end."""
        for sender, mark in marks.items():
            if sender in self._heard:
                raise ValueError(f"sender {sender} has been heard already: marks are restored before anything is heard")
            self._silent.pop(sender, None)
            self._silent[sender] = mark
        while self._silent and len(self) > self._capacity:
            del self._silent[next(iter(self._silent))]

    def _enter(self, sender: int) -> _Seen:
        mark = self._silent.pop(sender, None)
        if mark is None and len(self) == self._capacity:
            del self._silent[next(iter(self._silent))]
        # Everything up to a restored mark counts as taken; a new sender starts before the first counter.
        seen = self._heard[sender] = _Seen(-1 if mark is None else mark, _ALL_TAKEN)
        return seen

    def __len__(self) -> int:
        return len(self._heard) + len(self._silent)
