"""The node processes as the lab sees them: started, heard, ended. The other end of `forkserver`."""

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

_PROGRAM: Final = (
    "import sys; from roamcast.cli.main import main; from roamcast.lab.forkserver import serve; "
    "serve(main, sys.argv[1:])"
)
"""As text, because the lab is below the command line, and what it starts is above."""
_GONE: Final = "the process that starts the nodes has ended"
_LINE: Final = 1 << 20
_ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""A process that forks should have no other threads; numpy's library would start some when it is imported."""


class LabError(RoamcastError):
    """A lab that cannot be set up, or that lost a node."""


@dataclass
class Process:
    """One process of the fork server's."""

    name: str
    pid: int
    log: Path
    ready: "asyncio.Future[dict[str, Any]]"
    """What it said in its first line of JSON."""
    ended: "asyncio.Future[int]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """Its status; negative: by that signal."""
    wanted: bool = True
    """Whether it should be alive: if it ends nevertheless, `on_death` is told."""

    @property
    def alive(self) -> bool:
        return not self.ended.done()

    async def wait(self) -> int:
        """Waits for its end; whoever is cancelled meanwhile leaves it to the others who wait."""
        return await asyncio.shield(self.ended)

    def last_words(self) -> str:
        """The end of what it wrote to stderr."""
        with contextlib.suppress(OSError):
            lines = self.log.read_text(errors="replace").strip().splitlines()
            return lines[-1][:500] if lines else "it said nothing"
        return "it said nothing"


class Processes:
    """The fork server and its children. An async context manager: at its end, none is left."""

    def __init__(self, *, netns: bool = False, on_death: Callable[[Process], None] | None = None) -> None:
        self._netns = netns
        self._on_death = on_death
        self._by_pid: dict[int, Process] = {}
        self._starting: dict[str, asyncio.Future[Process]] = {}
        self._forkserver: asyncio.subprocess.Process | None = None
        self._listener: asyncio.Task[None] | None = None
        self._awake: asyncio.Future[None] | None = None

    async def __aenter__(self) -> "Processes":
        command = [sys.executable, "-c", _PROGRAM, *(["--netns"] if self._netns else [])]
        pipe = asyncio.subprocess.PIPE
        self._awake = asyncio.get_running_loop().create_future()
        # A session of its own: a terminal's interrupt is the lab's to answer, which then ends everything in order.
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
        with contextlib.suppress(ConnectionError):  # the listener hears of it too
            self._forkserver.stdin.write(json.dumps(wanted).encode() + b"\n")
            await self._forkserver.stdin.drain()
        return await started

    async def stop(self, processes: Sequence[Process], patience: float) -> list[Process]:
        """Asks them to end, and after `patience` seconds makes them; gives those that had to be made."""
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
        """Its end is awaited by the fork server, so that a number is never another's."""
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
            forkserver.kill()  # its children go with it
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
        """Nothing more will be heard: whoever waits for something waits in vain."""
        waiting: list[asyncio.Future[Any] | None] = [self._awake, *self._starting.values()]
        waiting += [process.ready for process in self._by_pid.values()]
        for future in waiting:
            if future is not None and not future.done():
                future.set_exception(LabError(_GONE))
                future.exception()  # whoever awaits it gets it; nobody has to
        for process in self._by_pid.values():
            if process.alive:
                process.ended.set_result(-signal.SIGKILL)

    def _hear(self, told: dict[str, Any]) -> None:
        if "ready" in told:
            assert self._awake is not None
            self._awake.set_result(None)
            return
        if "name" in told:
            started = self._starting.pop(told["name"])
            ready: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
            process = self._by_pid[told["pid"]] = Process(told["name"], told["pid"], Path(told["log"]), ready)
            if not started.done():
                started.set_result(process)
            return
        process = self._by_pid[told["pid"]]
        if "said" in told:
            self._said(process, told["said"])
        elif "problem" in told:
            self._fail(process, told["problem"])
        else:
            self._over(process, told["status"])

    @staticmethod
    def _said(process: Process, line: str) -> None:
        try:
            said = json.loads(line)
        except ValueError:
            return
        if isinstance(said, dict) and said.get("ready") and not process.ready.done():
            process.ready.set_result(said)

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
