"""The fork server: one process that has imported the program, and forks every node process from itself.

An interpreter that imports everything a node needs takes seconds, and thirty of them on two cores the better part of a
minute; a fork takes milliseconds and shares memory. The rules this file owns:

* A node process is the program: it runs `main([...])` with the arguments of a command line, and inherits no more than a
  shell would give it: its own process group, an empty stdin, a pipe for stdout, a file for stderr.
* No process is left behind. The fork server ends when its stdin does, however the parent ended, and kills its children
  then; if the fork server itself dies, the kernel kills its children.

It reads lines of JSON, `{"name", "args", "log", "address"}` to start a process, and writes lines of JSON:
`{"name", "pid", "log"}` when it has started, `{"pid", "stdout"}` for a line of its stdout, `{"pid", "problem"}` if its
network cannot be set up, and last `{"pid", "status"}` when it has ended (negative: by that signal).
"""

import contextlib
import ctypes
import gc
import json
import os
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import roamcast.live.node  # noqa: F401  # what the program imports only when a node starts: here, once for all
from roamcast.lab import netns

Main = Callable[[list[str]], object]

_PR_SET_PDEATHSIG: Final = 1
_CHUNK: Final = 1 << 16
_MAX_FILES: Final = 4096
"""More than the fork server ever has open: a few, and one per child."""


@dataclass
class _Child:
    pid: int
    stdout: int
    output: bytes = b""


class ForkServer:
    """Serves until stdin ends. With `namespaces`, every child has a network namespace on one bridge."""

    def __init__(self, main: Main, *, namespaces: bool = False) -> None:
        self._main = main
        self._namespaces = namespaces
        self._children: dict[int, _Child] = {}
        self._selector = selectors.DefaultSelector()
        self._asked = b""

    def serve(self) -> None:
        # The parent handles interrupts: when it ends, so do we.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        wakeup, notify = os.pipe()
        for end in (wakeup, notify):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(notify, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        if self._namespaces:
            netns.enter_new()
            netns.make_bridge()
        gc.collect()
        gc.freeze()  # or the first collection in each child would touch, and so copy, all shared memory
        self._selector.register(0, selectors.EVENT_READ, self._hear)
        self._selector.register(wakeup, selectors.EVENT_READ, lambda: self._reap(wakeup))
        _say({"ready": True})
        try:
            while self._selector.get_map().get(0) is not None:
                for key, _ in self._selector.select():
                    if key.fd in self._selector.get_map():  # an earlier callback of this round may have closed it
                        key.data()
        finally:
            self._end_all()

    def _hear(self) -> None:
        chunk = os.read(0, _CHUNK)
        if not chunk:
            self._selector.unregister(0)
            return
        *lines, self._asked = (self._asked + chunk).split(b"\n")
        for line in lines:
            self._start(json.loads(line))

    def _start(self, wanted: dict[str, Any]) -> None:
        out, stdout = os.pipe()
        ours, theirs = socket.socketpair()
        me = os.getpid()
        pid = os.fork()
        if pid == 0:
            ours.close()
            self._be(wanted, me, stdout, theirs)
        os.close(stdout)
        theirs.close()
        child = _Child(pid, out)
        self._children[pid] = child
        self._selector.register(out, selectors.EVENT_READ, lambda: self._listen(child))
        os.set_blocking(out, False)
        _say({"name": wanted["name"], "pid": pid, "log": wanted["log"]})
        with ours:
            if self._namespaces and ours.recv(1):
                try:
                    netns.plug_in(pid)
                except netns.NamespaceError as problem:
                    _say({"pid": pid, "problem": str(problem)})
                    return
            with contextlib.suppress(OSError):
                ours.send(b"g")

    def _be(self, wanted: dict[str, Any], forkserver: int, stdout: int, line: socket.socket) -> NoReturn:
        """Runs in the child."""
        status = 1
        try:
            _die_with(forkserver)
            os.setpgid(0, 0)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            log = os.open(wanted["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            nothing = os.open(os.devnull, os.O_RDONLY)
            for number, end in enumerate((nothing, stdout, log)):
                os.dup2(end, number)
            if self._namespaces:
                netns.enter_new()
                line.send(b"e")
            if line.recv(1):
                line.close()
                os.closerange(3, _MAX_FILES)
                if self._namespaces:
                    netns.configure(wanted["address"])
                status = _status_of(self._main, wanted["args"])
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)

    def _listen(self, child: _Child) -> None:
        """Passes on the child's output; closes the pipe at its end."""
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(child.stdout, _CHUNK):
                *lines, child.output = (child.output + chunk).split(b"\n")
                for line in lines:
                    _say({"pid": child.pid, "stdout": line.decode(errors="replace")})
            self._hang_up(child)

    def _hang_up(self, child: _Child) -> None:
        if child.stdout >= 0:
            self._selector.unregister(child.stdout)
            os.close(child.stdout)
            child.stdout = -1

    def _reap(self, wakeup: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(wakeup, _CHUNK)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            child = self._children.pop(pid, None)
            if child is not None:
                if child.stdout >= 0:
                    self._listen(child)
                self._hang_up(child)  # even if a grandchild holds the other end
                _say({"pid": pid, "status": os.waitstatus_to_exitcode(status)})

    def _end_all(self) -> None:
        for pid in self._children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in self._children:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def serve(main: Main, arguments: Sequence[str]) -> None:
    ForkServer(main, namespaces="--netns" in arguments).serve()


def _status_of(main: Main, args: list[str]) -> int:
    try:
        main(args)
    except SystemExit as end:
        if isinstance(end.code, int | None):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    return 0


def _die_with(parent: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the call above
        os._exit(1)


def _say(what: dict[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(1, json.dumps(what).encode() + b"\n")
