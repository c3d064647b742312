"""Starts, watches and ends the node processes: the lab's side of `forkserver`."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from roamcast.errors import RoamcastError

_PROGRAM: Final = "roamcast.lab.node_program"
_GONE: Final = "the process that starts the nodes has ended"
_LINE: Final = 1 << 20
_ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""A process that forks should have no other threads; numpy's library would start some when it is imported."""


class LabError(RoamcastError):
    """A lab cannot be set up, or lost a node."""


@dataclass
class Process:
    """One child of the fork server."""

    name: str
    pid: int
    log: Path
    ready: "asyncio.Future[dict[str, Any]]"
    """Its first line of JSON with `ready`."""
    ended: "asyncio.Future[int]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """Its status; negative: by that signal."""
    wanted: bool = True
    """Whether it should be alive: if it ends, `on_death` is called."""

    @property
    def alive(self) -> bool:
        return not self.ended.done()

    async def wait(self) -> int:
        """Waits for its end. Cancelling one waiter does not affect the others."""
        return await asyncio.shield(self.ended)

    def last_words(self) -> str:
        """The last line that it wrote to stderr."""
        with contextlib.suppress(OSError):
            lines = self.log.read_text(errors="replace").strip().splitlines()
            return lines[-1][:500] if lines else "it said nothing"
        return "it said nothing"


class Processes:
    """The fork server and its children. An async context manager that leaves no process behind."""

    def __init__(self, *, netns: bool = False, on_death: Callable[[Process], None] | None = None) -> None:
        self._netns = netns
        self._on_death = on_death
        self._by_pid: dict[int, Process] = {}
        self._starting: dict[str, asyncio.Future[Process]] = {}
        self._forkserver: asyncio.subprocess.Process | None = None
        self._listener: asyncio.Task[None] | None = None
        self._awake: asyncio.Future[None] | None = None

    async def __aenter__(self) -> "Processes":
        command = [sys.executable, "-m", _PROGRAM, *(["--netns"] if self._netns else [])]
        pipe = asyncio.subprocess.PIPE
        self._awake = asyncio.get_running_loop().create_future()
        # Its own session, so that a terminal's interrupt reaches only the lab, which then ends everything cleanly.
        self._forkserver = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, limit=_LINE, start_new_session=True, env=os.environ | _ONE_THREAD
        )
        self._listener = asyncio.create_task(self._listen())
        try:
            await self._awake
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    async def start(self, name: str, args: Sequence[str], log: Path, address: str = "") -> Process:
        """Starts the program with these arguments; it need not be ready when this returns."""
        assert self._forkserver is not None
        assert self._forkserver.stdin is not None
        if self._listener is None or self._listener.done():
            raise LabError(_GONE)
        started: asyncio.Future[Process] = asyncio.get_running_loop().create_future()
        self._starting[name] = started
        wanted = {"name": name, "args": list(args), "log": str(log), "address": address}
        with contextlib.suppress(ConnectionError):  # the listener notices it too
            self._forkserver.stdin.write(json.dumps(wanted).encode() + b"\n")
            await self._forkserver.stdin.drain()
        return await started

    async def stop(self, processes: Sequence[Process], patience: float) -> list[Process]:
        """Asks them to end, and kills them after `patience` seconds; returns those that had to be killed."""
        for process in processes:
            process.wanted = False
            self.signal(process, signal.SIGTERM)
        ends = [process.ended for process in processes]
        if ends:
            await asyncio.wait(ends, timeout=patience)
        late = [process for process in processes if process.alive]
        for process in late:
            self.signal(process, signal.SIGKILL)
        await asyncio.gather(*(process.wait() for process in processes))
        return late

    def signal(self, process: Process, number: signal.Signals) -> None:
        """Sends a signal. The fork server reaps its children, so the pid cannot belong to another process."""
        if process.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, number)

    async def _end(self) -> None:
        for process in self._by_pid.values():
            process.wanted = False
        forkserver, listener = self._forkserver, self._listener
        if forkserver is None or listener is None:
            return
        assert forkserver.stdin is not None
        forkserver.stdin.close()
        with contextlib.suppress(asyncio.TimeoutError):
            async with asyncio.timeout(10):
                await forkserver.wait()
        if forkserver.returncode is None:
            forkserver.kill()  # its children die with it
            await forkserver.wait()
        await listener

    async def _listen(self) -> None:
        assert self._forkserver is not None
        assert self._forkserver.stdout is not None
        try:
            while line := await self._forkserver.stdout.readline():
                self._hear(json.loads(line))
        finally:
            self._nobody_left()

    def _nobody_left(self) -> None:
        """The fork server has ended: fails everything that still waits for it."""
        waiting: list[asyncio.Future[Any] | None] = [self._awake, *self._starting.values()]
        waiting += [process.ready for process in self._by_pid.values()]
        for future in waiting:
            if future is not None and not future.done():
                future.set_exception(LabError(_GONE))
                future.exception()  # marks it as retrieved: nobody has to await it
        for process in self._by_pid.values():
            if process.alive:
                process.ended.set_result(-signal.SIGKILL)

    def _hear(self, line: dict[str, Any]) -> None:
        if "ready" in line:
            assert self._awake is not None
            self._awake.set_result(None)
            return
        if "name" in line:
            started = self._starting.pop(line["name"])
            ready: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
            process = self._by_pid[line["pid"]] = Process(line["name"], line["pid"], Path(line["log"]), ready)
            if not started.done():
                started.set_result(process)
            return
        process = self._by_pid[line["pid"]]
        if "stdout" in line:
            self._printed(process, line["stdout"])
        elif "problem" in line:
            self._fail(process, line["problem"])
        else:
            self._over(process, line["status"])

    @staticmethod
    def _printed(process: Process, text: str) -> None:
        try:
            content = json.loads(text)
        except ValueError:
            return
        if isinstance(content, dict) and content.get("ready") and not process.ready.done():
            process.ready.set_result(content)

    @staticmethod
    def _fail(process: Process, why: str) -> None:
        if not process.ready.done():
            process.ready.set_exception(LabError(f"{process.name}: {why}"))
            process.ready.exception()

    def _over(self, process: Process, status: int) -> None:
        del self._by_pid[process.pid]
        process.ended.set_result(status)
        self._fail(process, f"it ended before it was ready ({status}): {process.last_words()}")
        if process.wanted and self._on_death is not None:
            self._on_death(process)
