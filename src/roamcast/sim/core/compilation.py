"""Compiles the simulator for the machine it runs on, once, ahead of a run, and tells the user.

Numba itself tells whether anything is compiled: it announces compilations, but not what it reads from its cache.
"""

import gc
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

_NOTICE: Final = "compiling the simulator for this machine, once: about 40 s of CPU time"


def load_kernel(tell: Callable[[str], None] = lambda _: None) -> None:
    """Loads every function of the compiled core, from numba's cache or by compiling it; `tell` is called if compiling.

    Objects loaded by then stay for the life of the process, so they are frozen for the garbage collector. Visiting the
    modules of numba and Arrow alone took it 40 ms and more in every run.
    """
    announced(_call_all, _NOTICE, tell)
    gc.freeze()


def announced(work: Callable[[], None], notice: str, tell: Callable[[str], None]) -> None:
    """Does work; if something is compiled meanwhile, tells the notice, and how long the work took."""
    from numba.core import event

    class Compilations(event.Listener):
        begun: float | None = None

        def on_start(self, event: object) -> None:
            if self.begun is None:
                self.begun = time.monotonic()
                tell(notice)

        def on_end(self, event: object) -> None:
            pass

    listener = Compilations()
    with event.install_listener("numba:compile", listener):
        work()
    if listener.begun is not None:
        tell(f"compiled in {time.monotonic() - listener.begun:.0f} s")


def compile_if_needed(tell: Callable[[str], None]) -> None:
    """For a process that does not simulate itself, but starts others that do. Looking for numba's files is quick;
    loading the core takes a second, so it is done only if they are missing or older than the source."""
    if not seems_compiled(Path(__file__).with_name("kernel.py"), "_advance"):
        load_kernel(tell)


def seems_compiled(source: Path, function: str) -> bool:
    """Whether numba's cache has a function of this file as it is now."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    folders = Path(chosen).glob("*") if chosen else [source.parent / "__pycache__"]
    kept = [file for folder in folders for file in folder.glob(f"{source.stem}.{function}-*.nbi")]
    return any(file.stat().st_mtime >= source.stat().st_mtime for file in kept)


def _call_all() -> None:
    from roamcast.sim.core import kernel
    from roamcast.sim.core.interface import ACK_KIND, Settings, Upcall

    near = kernel.Core(Settings(nodes=2, seed=1))
    for node in range(2):
        near.set_range(node, 1.0)
        near.set_leg(node, 0, 0.0, 0.0, 0.0, 0.0)
        near.set_room(node, -1)
    linked = kernel.Core(Settings(nodes=2, seed=1, links=True))
    linked.set_link(0, 1, 0.0)
    for core in (near, linked):
        core.set_on(1, True, True)
        core.send(0, 0, 1, 10, ACK_KIND, 0, False)
        core.overheard(0, 1)
        while core.advance(1_000) != Upcall.REACHED:
            pass
