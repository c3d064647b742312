"""A file on a disk whose power can be cut: what it contains, and what of that was written through."""

import random
import stat
from dataclasses import dataclass, field

SECTOR = 512


@dataclass(eq=False)
class File:
    content: bytearray = field(default_factory=bytearray)
    synced: bytearray = field(default_factory=bytearray)
    unsynced: list[tuple[int, bytes | None]] = field(default_factory=list)
    """Writes since the last sync: where and what; None is a truncation to that length."""
    mode: int = stat.S_IFREG | 0o600

    def change(self, offset: int, data: bytes | None) -> None:
        _apply(self.content, offset, data)
        self.unsynced.append((offset, data))

    def sync(self) -> None:
        for offset, data in self.unsynced:
            _apply(self.synced, offset, data)
        self.unsynced.clear()

    def lose(self, rng: random.Random, share: float) -> None:
        """Each sector that was not synced survives with the probability `share`."""
        for offset, data in self.unsynced:
            if data is None:
                if rng.random() < share:
                    _apply(self.synced, offset, None)
                continue
            start = offset
            while start < offset + len(data):
                end = min(start // SECTOR * SECTOR + SECTOR, offset + len(data))
                if rng.random() < share:
                    _apply(self.synced, start, data[start - offset : end - offset])
                start = end
        self.unsynced.clear()
        self.content = bytearray(self.synced)


def _apply(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
        content.extend(bytes(offset - len(content)))
    else:
        content.extend(bytes(max(0, offset - len(content))))
        content[offset : offset + len(data)] = data
