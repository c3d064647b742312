"""CPU seconds of this process and all its descendants: Spark's JVM, its Python workers, and the runs in these.

A process that has ended counts in the one that waited for it. The parent of Spark's Python workers waits for none, so
what its children had used when they were last seen, at most `_EVERY` seconds before their end, is kept here. What the
watching itself takes, up to 4 % of the elapsed time, does not count.
"""

import os
import threading
import time
from pathlib import Path
from typing import Final, NamedTuple

_EVERY: Final = 0.25
_SIGCHLD: Final = 1 << 16
"""Its bit in the mask of signals that a process ignores."""
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class _Process(NamedTuple):
    pid: int
    started: int
    parent: int
    spent: int
    """The CPU time of a process and of children it has waited for, in ticks."""


class _Family:
    """This process and its descendants, including those that ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._unwaited: dict[tuple[int, int], int] = {}
        self._watching = 0.0
        threading.Thread(target=self._keep_looking, daemon=True).start()

    def _keep_looking(self) -> None:
        while True:
            self.seconds()
            self._watching = time.thread_time()
            threading.Event().wait(_EVERY)

    def seconds(self) -> float:
        with self._lock:
            alive = _alive()
            for one in alive:
                if _waits_for_none(one.parent):
                    self._unwaited[one.pid, one.started] = one.spent
            there = {(one.pid, one.started) for one in alive}
            ended = sum(spent for process, spent in self._unwaited.items() if process not in there)
            return (ended + sum(one.spent for one in alive)) / _TICKS - self._watching


def _alive() -> list[_Process]:
    every = [one for path in Path("/proc").glob("[0-9]*") if (one := _read(int(path.name)))]
    ours, found = set[int](), {os.getpid()}
    while found:
        ours |= found
        found = {one.pid for one in every if one.parent in ours} - ours
    return [one for one in every if one.pid in ours]


def _read(pid: int) -> _Process | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended meanwhile
        return None
    return _Process(pid, int(fields[19]), int(fields[1]), sum(map(int, fields[11:15])))


def _waits_for_none(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    ignored = next(line for line in status.splitlines() if line.startswith("SigIgn:"))
    return bool(int(ignored.split()[1], 16) & _SIGCHLD)


_FAMILY: list[_Family] = []


def cpu_seconds() -> float:
    """CPU seconds of all of them so far. The first call starts watching for processes that end."""
    if not _FAMILY:
        _FAMILY.append(_Family())
    return _FAMILY[0].seconds()
