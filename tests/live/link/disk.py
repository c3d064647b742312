"""A store for the sessions that were heard, for tests: it writes at once, when told to, or not at all."""

from collections.abc import Iterable, Mapping

from roamcast.live.link.replay import Done, FrameSession, Replay


class Disk:
    def __init__(self) -> None:
        self.blocks: dict[FrameSession, int] = {}
        self.writes = 0
        self.problem: Exception | None = None
        self.slow = False
        self._waiting: list[tuple[dict[FrameSession, int], Done]] = []

    def persist(self, blocks: Mapping[FrameSession, int], forgotten: Iterable[FrameSession], done: Done) -> None:
        self.writes += 1
        for session in forgotten:
            self.blocks.pop(session, None)
        self._waiting.append((dict(blocks), done))
        if not self.slow:
            self.write()

    def write(self) -> None:
        """What has been asked for so far."""
        waiting, self._waiting = self._waiting, []
        for blocks, done in waiting:
            if self.problem is None:
                self.blocks |= blocks
            done(self.problem)

    def replay(self) -> Replay:
        """As a node begins with what is on disk."""
        replay = Replay(persist=self.persist)
        replay.restore(self.blocks)
        return replay
