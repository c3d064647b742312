"""Runs work in a child process, which may die, hang or take all memory, and reports how it ended.

A run executes a user's protocol: it may segfault in a library, loop for ever or allocate without end. In a child of the
Spark worker this does no harm: the worker sees how the child ended, and the campaign goes on. Forking a worker with its
modules loaded takes a few milliseconds.

The rules this file owns:

* The child ends with its parent: Spark kills workers whose tasks are cancelled.
* When the machine runs out of memory, the kernel ends the child and not the worker or the JVM.
* What the child returns comes back through a pipe, piece by piece. A child that has not sent all of it has died,
  however it ended, at the first piece that is missing. Limits are those of one piece.
"""

import contextlib
import ctypes
import os
import pickle
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar

from roamcast.campaign.define.limits import RunLimits

_LOOK: Final = 200
"""Milliseconds between two looks at the child's memory and the clock."""
_LENGTH: Final = 8
"""Bytes before a result that give its length."""
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_PR_SET_PDEATHSIG: Final = 1
_FIRST_CHOICE: Final = 1000
"""The score that makes the kernel kill this process first when memory runs out."""

T = TypeVar("T")


class Ended(NamedTuple, Generic[T]):
    """How the child ended."""

    results: list[T]
    """The results of the finished pieces, in order."""
    death: str = ""
    """Why the next piece has no result, worded to follow "the run"; empty if there are all results."""
    limit: bool = False
    """Whether a limit was exceeded: another try would take just as long."""


def in_child(work: Sequence[Callable[[], T]], limits: RunLimits) -> Ended[T]:
    """Calls one piece of work after the other in a child process. An exception is printed, and counts as the child's
    death."""
    sys.stdout.flush()
    sys.stderr.flush()
    receiving, sending = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(receiving)
        _be_child(work, sending, parent)
    os.close(sending)
    try:
        return _watch(child, receiving, len(work), limits)
    finally:
        os.close(receiving)


def _be_child(work: Sequence[Callable[[], Any]], sending: int, parent: int) -> None:
    """Never returns: the parent's stack below this belongs to the parent."""
    code = 1
    try:
        _end_with(parent)
        with contextlib.suppress(OSError):  # there may be no /proc
            Path("/proc/self/oom_score_adj").write_text(str(_FIRST_CHOICE), encoding="ascii")
        with os.fdopen(sending, "wb") as pipe:
            for piece in work:
                result = pickle.dumps(piece())
                pipe.write(len(result).to_bytes(_LENGTH, "big") + result)
                pipe.flush()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _end_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before the call above
            os._exit(1)


def _watch(child: int, receiving: int, pieces: int, limits: RunLimits) -> Ended[Any]:
    deadline = time.monotonic() + limits.seconds
    poll = select.poll()
    poll.register(receiving)
    received, results = b"", list[Any]()
    while True:
        if poll.poll(_LOOK):
            chunk = os.read(receiving, 1 << 16)
            received += chunk
            if not chunk:  # the child has closed its end, or is gone
                break
            found, received = _results(received)
            if found:
                results += found
                deadline = time.monotonic() + limits.seconds
        elif time.monotonic() > deadline:
            _kill(child)
            return Ended(results, f"took longer than the {_time(limits.seconds)} that a run may take", limit=True)
        elif limits.memory is not None and _resident(child) > limits.memory:
            _kill(child)
            reason = f"needed more than the {_size(limits.memory)} of memory that a run may take"
            return Ended(results, reason, limit=True)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if len(results) == pieces:
        return Ended(results)
    if code >= 0:
        return Ended(results, f"ended its process with exit code {code}")
    why = ", as happens when a machine runs out of memory" if -code == signal.SIGKILL else ""
    return Ended(results, f"killed its process: {signal.Signals(-code).name}{why}")


def _results(received: bytes) -> tuple[list[Any], bytes]:
    """The complete results, and the bytes left over."""
    found = []
    while len(received) >= _LENGTH:
        end = _LENGTH + int.from_bytes(received[:_LENGTH], "big")
        if len(received) < end:
            break
        found.append(pickle.loads(received[_LENGTH:end]))
        received = received[end:]
    return found, received


def _kill(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _resident(process: int) -> int:
    """A process's resident memory in bytes; 0 if the system does not tell."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def _time(seconds: float) -> str:
    return f"{seconds / 3600:g} h" if seconds >= 3600 else f"{seconds:g} s"


def _size(size: int) -> str:
    return f"{size / 1e9:g} GB" if size >= 10**9 else f"{size / 1e6:g} MB"
