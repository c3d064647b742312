"""Starts, watches and ends the node processes.

An interpreter that imports everything a node needs takes seconds, and thirty of them on two cores the better part of a
minute; a fork takes milliseconds and shares memory. So nodes are forked by multiprocessing's fork server, which has
imported the program (`node_program`). The rules this file owns:

* A node process is the program: it runs `main([...])` with the arguments of a command line, and inherits no more than a
  shell would give it: its own process group, an empty stdin, a pipe for stdout, a file for stderr.
* No process is left behind. The fork server ends with the lab's process, however that ended, and if the fork server
  ends, the kernel kills its children.
"""

import asyncio
import contextlib
import ctypes
import json
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from roamcast.errors import RoamcastError
from roamcast.lab import netns

_FORKING: Final = multiprocessing.get_context("forkserver")
_PROGRAM: Final = "roamcast.lab.node_program"
_PR_SET_PDEATHSIG: Final = 1
_MAX_FILES: Final = 4096
"""More than a new child ever has open."""


class LabError(RoamcastError):
    """A lab cannot be set up, or lost a node."""


@dataclass
class Process:
    """One node process."""

    name: str
    pid: int
    log: Path
    ready: "asyncio.Future[dict[str, Any]]"
    """Its first line of JSON with `ready`."""
    ended: "asyncio.Future[int]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """Its status; negative: by that signal; 255: it went with the fork server."""
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
            return lines[-1][:500] if lines else "it printed nothing"
        return "it printed nothing"


class Processes:
    """The nodes' processes. An async context manager that leaves none behind."""

    def __init__(self, *, in_namespaces: bool = False, on_death: Callable[[Process], None] | None = None) -> None:
        self._in_namespaces = in_namespaces
        self._on_death = on_death
        self._running: list[Process] = []
        self._bridge: int | None = None

    async def __aenter__(self) -> "Processes":
        _FORKING.set_forkserver_preload([_PROGRAM])
        if self._in_namespaces:
            ours, theirs = _FORKING.Pipe()
            self._bridge = _fork(_hold_bridge, theirs).pid
            with contextlib.closing(ours):
                if problem := ours.recv():
                    raise LabError(problem)
        return self

    async def __aexit__(self, *_: object) -> None:
        running = list(self._running)
        for process in running:
            process.wanted = False
            self.signal(process, signal.SIGKILL)
        await asyncio.gather(*(process.wait() for process in running))
        if self._bridge is not None:
            os.kill(self._bridge, signal.SIGKILL)

    async def start(self, name: str, args: Sequence[str], log: Path, address: str = "") -> Process:
        """Starts the program with these arguments; it need not be ready when this returns."""
        loop = asyncio.get_running_loop()
        output, stdout = _FORKING.Pipe(duplex=False)
        child = _fork(_be_the_program, list(args), str(log), stdout, self._bridge, address)
        assert child.pid is not None
        process = Process(name, child.pid, log, loop.create_future())
        self._running.append(process)
        loop.add_reader(output, self._printed, process, output)
        loop.add_reader(child.sentinel, self._over, process, child, output)
        return process

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
        """Sends a signal, unless the process has ended."""
        if process.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, number)

    @staticmethod
    def _printed(process: Process, output: Connection) -> None:
        text = os.read(output.fileno(), 1 << 16)
        if not text:
            asyncio.get_running_loop().remove_reader(output)
        with contextlib.suppress(ValueError):
            content = json.loads(text)
            if isinstance(content, dict) and content.get("ready") and not process.ready.done():
                process.ready.set_result(content)

    def _over(self, process: Process, child: Any, output: Connection) -> None:  # noqa: ANN401  # of multiprocessing
        loop = asyncio.get_running_loop()
        loop.remove_reader(child.sentinel)
        loop.remove_reader(output)
        output.close()
        self._running.remove(process)
        process.ended.set_result(child.exitcode)
        if not process.ready.done():
            words = f"it ended before it was ready ({child.exitcode}): {process.last_words()}"
            process.ready.set_exception(LabError(f"{process.name}: {words}"))
            process.ready.exception()  # marks it as retrieved: nobody has to await it
        if process.wanted and self._on_death is not None:
            self._on_death(process)


def _fork(work: Callable[..., None], *arguments: object) -> Any:  # noqa: ANN401  # a process of multiprocessing
    """Calls a function in a child of the fork server, which is started if there is none."""
    child = _FORKING.Process(target=work, args=arguments, daemon=True)
    # Without a main module: children would import the one that started the lab, a user's script for instance.
    main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
    try:
        child.start()
    except (EOFError, OSError):
        raise LabError("the process that starts the nodes has ended") from None
    finally:
        sys.modules["__main__"] = main
    for end in arguments:
        if isinstance(end, Connection):
            end.close()
    return child


# --- In the child ---------------------------------------------------------------------------------------------------


def _be_the_program(args: list[str], log: str, stdout: Connection, bridge: int | None, address: str) -> None:
    with contextlib.closing(stdout):
        ends = (
            os.open(os.devnull, os.O_RDONLY),
            stdout.fileno(),
            os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
        )
        for number, end in enumerate(ends):
            os.dup2(end, number)
    main = _detach()
    os.closerange(3, _MAX_FILES)
    if bridge is not None:
        netns.join(bridge, address)
    main(args)


def _hold_bridge(line: Connection) -> None:
    """Makes the bridge of the nodes, which lasts as long as this process; tells what is wrong, if anything."""
    _detach()
    try:
        netns.make_bridge()
        line.send("")
    except netns.NamespaceError as problem:
        line.send(str(problem))
    signal.pause()


def _detach() -> Callable[[list[str]], object]:
    """Leaves the terminal's process group, and ends with the fork server; returns the program."""
    from roamcast.lab.node_program import SERVER, main  # noqa: PLC0415  # the fork server has imported it

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != SERVER:  # it died before the call above
        os._exit(1)
    os.setpgid(0, 0)
    return main
