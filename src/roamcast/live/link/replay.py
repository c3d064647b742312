"""Replay protection: no receiver accepts the same frame twice, not even across its own restart.

For each session of a sender (`frame.py`), it keeps the highest counter accepted and a window of `WINDOW` counters below
it; a frame that is older than the window, or was accepted before, is refused. Only authentic frames may get here, so
that strangers cannot fill the table.

**Across a restart.** The first frame from a *block* of `BLOCK` counters is handed up once the block is recorded on
disk. After a restart everything up to the end of the recorded block is refused: all accepted frames lie below. Frames
of that block that were not sent yet are refused too (`Novelty.BEHIND`); a sender that is told so skips the rest of the
block, and one that cannot hear us reaches its next block within a minute. So there is one write per minute and sender,
and only the first frame of a block waits for it. With `sync` "normal" a loss of power may undo the last write.

**Freshness is not promised.** A recorded frame that a receiver has never received is accepted once when it is replayed
later; a node with a new store knows no frames, and accepts an old recording once.

**Bounded.** When `CAPACITY` sessions are known, the one silent for longest makes room, on disk too. A recording of that
session could then be replayed once: this takes as many newer sessions of neighbours, or a node with the key that
invents them and could just as well invent frames. A new key ends that too, since sessions belong to their key.
"""

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

WINDOW: Final = 1024
BLOCK: Final = 2**16
CAPACITY: Final = 16_384
_ALL_TAKEN: Final = (1 << WINDOW) - 1


class FrameSession(NamedTuple):
    """One life of a sender, under one key."""

    key: str
    """The key's fingerprint."""
    sender: int
    salt: bytes


class Novelty(enum.Enum):
    NEW = "new"
    SEEN = "seen"
    BEHIND = "behind"
    """In the block that was current before our restart: perhaps accepted then."""


class _Seen:
    __slots__ = ("block", "mark", "window")

    def __init__(self, mark: int, window: int, block: int) -> None:
        self.mark = mark
        self.window = window
        """Bit i: the counter `mark - i` was accepted."""
        self.block = block
        """The latest block that is on disk; -1: none."""


Done = Callable[[BaseException | None], None]
Persist = Callable[[Mapping[FrameSession, int], Iterable[FrameSession], Done], None]
"""Records the latest block of some sessions and forgets others; calls back when that is on disk, or cannot be."""


class Replay:
    def __init__(self, capacity: int = CAPACITY, *, persist: Persist | None = None) -> None:
        if capacity < 1:
            raise ValueError(f"room for at least one session, not {capacity}")
        self._capacity = capacity
        self._persist = persist
        self._seen: dict[FrameSession, _Seen] = {}  # longest silent first
        self._doubted: dict[
            FrameSession, int
        ] = {}  # known before our restart, with the last counter perhaps accepted then
        self._unsafe: dict[FrameSession, None] = {}  # whose block is not on disk
        self._forgotten: list[FrameSession] = []  # to be forgotten on disk

    def knows(self, session: FrameSession) -> bool:
        return session in self._seen or session in self._doubted

    def upto(self, session: FrameSession) -> int:
        """The last counter that we may have accepted before our restart."""
        return self._doubted.get(session, -1)

    def judge(self, session: FrameSession, counter: int) -> Novelty:
        """What `accept` would say, without changing anything: cheap enough to ask before a frame is authenticated."""
        seen = self._seen.get(session)
        if seen is None:
            return Novelty.NEW if counter > self.upto(session) else Novelty.BEHIND
        behind = seen.mark - counter
        if behind < 0:
            return Novelty.NEW
        return Novelty.SEEN if behind >= WINDOW or seen.window >> behind & 1 else Novelty.NEW

    def accept(self, session: FrameSession, counter: int) -> bool:
        """Whether this is a new frame; marks it as accepted."""
        if self.judge(session, counter) is not Novelty.NEW:
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

    def safe(self, session: FrameSession) -> bool:
        """Whether accepted frames of the session may be handed up."""
        return session not in self._unsafe

    def secure(self, done: Done) -> None:
        """Records what `safe` waits for; calls back when it is on disk, or with the error."""
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

    def restore(self, blocks: Mapping[FrameSession, int]) -> None:
        """Restores what was recorded before the restart, longest silent first."""
        for session, block in blocks.items():
            if session in self._seen:
                raise ValueError(f"{session} has been heard already: sessions are restored before anything is heard")
            self._doubted[session] = (block + 1) * BLOCK - 1
        self._make_room(0)

    def _enter(self, session: FrameSession) -> _Seen:
        upto = self._doubted.pop(session, -1)
        self._make_room(1)
        # Everything up to a restored mark counts as accepted; a new session starts before the first counter.
        return _Seen(upto, _ALL_TAKEN, (upto + 1) // BLOCK - 1)

    def _make_room(self, wanted: int) -> None:
        while len(self) + wanted > self._capacity:
            table: dict[FrameSession, int] | dict[FrameSession, _Seen] = self._doubted or self._seen
            oldest = next(iter(table))
            del table[oldest]
            self._unsafe.pop(oldest, None)
            self._forgotten.append(oldest)

    def __len__(self) -> int:
        return len(self._seen) + len(self._doubted)
