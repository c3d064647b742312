"""Which frames were taken before: no receiver takes the same frame twice, not even across its own restart.

For each session of a sender (`frame.py`), the highest counter taken and a window of `WINDOW` counters below it; what is
older than the window, or in it and taken, is refused. Only authentic frames may get here, so that strangers cannot fill
the table.

**Across a restart.** The first frame from a *block* of `BLOCK` counters is handed up when it is on disk that the block
has begun. After a restart everything up to the end of the stored block is refused: whatever was handed up lies below.
What was not yet sent of that block is refused too (`Verdict.BEHIND`); a sender that hears so jumps over it, and one
that cannot hear us is in its next block within a minute. So the disk is written once a minute and sender, and nobody
waits for it but the first frame of a block. With `sync` "normal" a loss of power may undo the last write.

**What is not promised** is freshness. A frame that was recorded and kept from a receiver, or that it never heard, is
taken when it comes later, once; a node with a new store has heard nothing, and takes an old recording once.

**Bounded.** With `CAPACITY` sessions known, the one that was not heard for longest makes room, on disk too. A recording
of that one could then be played once more: it takes as many newer lives of neighbours, or a node with the key that
invents them and could just as well invent frames. A new key ends that too, since sessions belong to their key.
"""

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

WINDOW: Final = 1024
BLOCK: Final = 2**16
CAPACITY: Final = 16_384
_ALL_TAKEN: Final = (1 << WINDOW) - 1


class Session(NamedTuple):
    """One life of a sender, under one key."""

    key: str
    """The key's fingerprint."""
    sender: int
    salt: bytes


class Verdict(enum.Enum):
    NEW = "new"
    SEEN = "seen"
    BEHIND = "behind"
    """In the block that was current before our restart: seen perhaps."""


class _Seen:
    __slots__ = ("block", "mark", "window")

    def __init__(self, mark: int, window: int, block: int) -> None:
        self.mark = mark
        self.window = window
        """Bit i: the counter `mark - i` was taken."""
        self.block = block
        """The latest that is on disk; -1: none is."""


Done = Callable[[BaseException | None], None]
Persist = Callable[[Mapping[Session, int], Iterable[Session], Done], None]
"""Writes down the latest block of some sessions and forgets others; calls back when that is on disk, or cannot be."""


class Replay:
    def __init__(self, capacity: int = CAPACITY, *, persist: Persist | None = None) -> None:
        if capacity < 1:
            raise ValueError(f"room for at least one session, not {capacity}")
        self._capacity = capacity
        self._persist = persist
        self._seen: dict[Session, _Seen] = {}  # longest unheard first
        self._doubted: dict[Session, int] = {}  # by earlier lives of ours, with the last counter that may be taken
        self._unsafe: dict[Session, None] = {}  # whose block is not on disk
        self._forgotten: list[Session] = []  # to be forgotten on disk

    def knows(self, session: Session) -> bool:
        return session in self._seen or session in self._doubted

    def upto(self, session: Session) -> int:
        """The last counter that an earlier life of ours may have taken."""
        return self._doubted.get(session, -1)

    def judge(self, session: Session, counter: int) -> Verdict:
        """What `accept` would say, without a trace: cheap enough to ask before a frame is authenticated."""
        seen = self._seen.get(session)
        if seen is None:
            return Verdict.NEW if counter > self.upto(session) else Verdict.BEHIND
        behind = seen.mark - counter
        if behind < 0:
            return Verdict.NEW
        return Verdict.SEEN if behind >= WINDOW or seen.window >> behind & 1 else Verdict.NEW

    def accept(self, session: Session, counter: int) -> bool:
        """Whether this is a new frame; it is no longer afterwards."""
        if self.judge(session, counter) is not Verdict.NEW:
            return False
        seen = self._seen.pop(session, None) or self._enter(session)
        self._seen[session] = seen
        ahead = counter - seen.mark
        if ahead > 0:
            seen.window = (seen.window << ahead & _ALL_TAKEN if ahead < WINDOW else 0) | 1
            seen.mark = counter
            if counter // BLOCK > seen.block:
                self._unsafe[session] = None
        else:
            seen.window |= 1 << -ahead
        return True

    def safe(self, session: Session) -> bool:
        """Whether what was accepted of the session may be handed up."""
        return session not in self._unsafe

    def secure(self, done: Done) -> None:
        """Has written down what `safe` waits for; calls back when it is safe, or with why it cannot be."""
        blocks = {session: self._seen[session].mark // BLOCK for session in self._unsafe if session in self._seen}
        forgotten, self._forgotten = self._forgotten, []

        def written(problem: BaseException | None) -> None:
            for session, block in blocks.items():
                seen = self._seen.get(session)
                if seen is not None and problem is None:
                    seen.block = max(seen.block, block)
                if seen is None or seen.mark // BLOCK <= seen.block:
                    self._unsafe.pop(session, None)
            done(problem)

        if self._persist is None:
            written(None)
        else:
            self._persist(blocks, forgotten, written)

    def restore(self, blocks: Mapping[Session, int]) -> None:
        """Takes over what earlier lives of ours wrote down, longest unheard first."""
        for session, block in blocks.items():
            if session in self._seen:
                raise ValueError(f"{session} has been heard already: sessions are restored before anything is heard")
            self._doubted[session] = (block + 1) * BLOCK - 1
        self._make_room(0)

    def _enter(self, session: Session) -> _Seen:
        upto = self._doubted.pop(session, -1)
        self._make_room(1)
        # Everything up to a restored mark counts as taken; a new session starts before the first counter.
        return _Seen(upto, _ALL_TAKEN, (upto + 1) // BLOCK - 1)

    def _make_room(self, wanted: int) -> None:
        while len(self) + wanted > self._capacity:
            table: dict[Session, int] | dict[Session, _Seen] = self._doubted or self._seen
            oldest = next(iter(table))
            del table[oldest]
            self._unsafe.pop(oldest, None)
            self._forgotten.append(oldest)

    def __len__(self) -> int:
        return len(self._seen) + len(self._doubted)
