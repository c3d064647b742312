"""A disk whose power can be cut: a file system in memory, mounted by FUSE (`mount.py`).

It has one folder of files, and the rules of a disk that keeps no promise which it did not make:

* What was written and not yet synced (`fsync`) survives a cut not at all, wholly, or in part: some sectors of some
  writes, in any order. Which of the three is drawn, and so are the sectors.
* A file's name, its renaming and its removal survive if the folder was synced since, and otherwise perhaps: those up
  to some moment do, as on a file system with a journal.
* While the power is off every call fails.

Writing "STEPS SEED" to the file `.cut` has the power cut after so many more changes and syncs; writing "on" to it
brings it back. So whoever uses the disk knows when, and the disk needs no other door.
"""

import errno
import random
import stat
import sys
from typing import Any

import mfusepy

from live.power.file import File

DOOR = "/.cut"


Names = dict[str, File]


class Disk(mfusepy.Operations):  # type: ignore[misc]  # without types
    use_ns = True

    def __init__(self) -> None:
        self.names: Names = {}
        self.journal: list[Names] = [{}]
        """The folder as it was synced, and after each change since."""
        self.open_files: dict[int, File] = {}
        self.handles = 0
        self.on = True
        self.steps: int | None = None
        self.rng = random.Random(0)

    # --- The power --------------------------------------------------------------------------------------------------

    def _said(self, words: bytes) -> None:
        if words.strip() == b"on":
            self._power_on()
        else:
            self.steps, seed = map(int, words.split())
            self.rng = random.Random(seed)

    def _step(self) -> None:
        """Before a change or a sync: the power may go now."""
        if self.steps is not None:
            self.steps -= 1
            if self.steps < 0:
                self.on = False
        self._powered()

    def _powered(self) -> None:
        if not self.on:
            raise mfusepy.FuseOSError(errno.EIO)

    def _power_on(self) -> None:
        share = self.rng.choice([0.0, 0.5, 1.0])
        kept = 0 if share == 0 else len(self.journal) - 1 if share == 1 else self.rng.randrange(len(self.journal))
        self.names = dict(self.journal[kept])
        self.journal = [dict(self.names)]
        for name in sorted(self.names):
            self.names[name].lose(self.rng, share)
        self.open_files.clear()
        self.on, self.steps = True, None

    # --- The calls --------------------------------------------------------------------------------------------------

    def _file(self, path: str, handle: int | None = None) -> File:
        self._powered()
        if handle:
            if handle not in self.open_files:  # opened before the power went
                raise mfusepy.FuseOSError(errno.EIO)
            return self.open_files[handle]
        if path not in self.names:
            raise mfusepy.FuseOSError(errno.ENOENT)
        return self.names[path]

    def _opened(self, file: File) -> int:
        self.handles += 1
        self.open_files[self.handles] = file
        return self.handles

    def _rename_done(self) -> None:
        self.journal.append(dict(self.names))

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        if path == "/":
            return {"st_mode": stat.S_IFDIR | 0o700, "st_nlink": 2}
        if path == DOOR:
            return {"st_mode": stat.S_IFREG | 0o600, "st_nlink": 1, "st_size": 0}
        file = self._file(path, fh)
        return {"st_mode": file.mode, "st_nlink": 1, "st_size": len(file.content)}

    def readdir(self, path: str, fh: int) -> list[str]:
        self._powered()
        return [".", "..", *(name[1:] for name in sorted(self.names))]

    def create(self, path: str, mode: int, fi: object = None) -> int:
        self._step()
        file = self.names[path] = File(mode=mode)
        self._rename_done()
        return self._opened(file)

    def open(self, path: str, flags: int) -> int:
        return 0 if path == DOOR else self._opened(self._file(path))

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return bytes(self._file(path, fh).content[offset : offset + size])

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        if path == DOOR:
            self._said(data)
            return len(data)
        file = self._file(path, fh)
        self._step()
        file.change(offset, bytes(data))
        return len(data)

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        if path == DOOR:
            return 0
        file = self._file(path, fh)
        self._step()
        file.change(length, None)
        return 0

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        file = self._file(path, fh)
        self._step()
        file.sync()
        return 0

    def fsyncdir(self, path: str, datasync: int, fh: int) -> int:
        self._step()
        self.journal = [dict(self.names)]
        return 0

    def unlink(self, path: str) -> int:
        self._step()
        self._file(path)
        del self.names[path]
        self._rename_done()
        return 0

    def rename(self, old: str, new: str, flags: int = 0) -> int:
        self._step()
        self.names[new] = self._file(old)
        del self.names[old]
        self._rename_done()
        return 0

    def release(self, path: str, fh: int) -> int:
        self.open_files.pop(fh, None)
        return 0

    def flush(self, path: str, fh: int) -> int:
        return 0

    def chmod(self, path: str, mode: int) -> int:
        self._file(path).mode = mode
        return 0

    def chown(self, path: str, uid: int, gid: int) -> int:
        return 0

    def utimens(self, path: str, times: object = None) -> int:
        return 0

    def statfs(self, path: str) -> dict[str, int]:
        return {"f_bsize": 4096, "f_blocks": 2**20, "f_bavail": 2**20, "f_bfree": 2**20, "f_namemax": 255}


if __name__ == "__main__":
    # Without the kernel's caches, of contents and of names: every call gets here, and a cut is seen at once. With names
    # cached, a name that a cut has undone is still known for a second: "unable to open database file", 19 in 300 cuts.
    uncached = {"direct_io": True, "entry_timeout": 0, "attr_timeout": 0, "negative_timeout": 0}
    mfusepy.FUSE(Disk(), sys.argv[1], foreground=True, nothreads=True, default_permissions=True, **uncached)
