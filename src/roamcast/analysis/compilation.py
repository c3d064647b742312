"""Compiles what measures need for the machine it runs on, once, before the processes that measure are started."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np

from roamcast.sim.core.compilation import announced, seems_compiled

_NOTICE: Final = "compiling the measures for this machine, once: about 25 s of CPU time"


def load_kernels(tell: Callable[[str], None] = lambda _: None) -> None:
    """Loads every function of `kernels` that measures call, from numba's cache or by compiling it."""
    announced(_call_all, _NOTICE, tell)


def compile_if_needed(tell: Callable[[str], None]) -> None:
    """For a process that does not measure itself, but starts others that do."""
    if not seems_compiled(Path(__file__).with_name("kernels.py"), "relayed"):  # the last to be compiled
        load_kernels(tell)


def _call_all() -> None:
    """Calls each with the types that its callers give it: others would be compiled apart."""
    from roamcast.analysis import kernels  # noqa: PLC0415  # numba takes half a second to import

    none, no = np.zeros(0, np.int64), np.zeros(0, np.bool_)
    kernels.pass_by(np.zeros(3, np.int64), none, none, np.zeros((0, 4)), np.zeros(0), none, 1, False)
    kernels.overlaps(none, none, none, none, none, none)
    kernels.look(1, none, none, none, none, no, none, none, no, False)
    kernels.paths(1, none, none, none, none, no)
    kernels.compare(1, none, none, none, none, no, none, none, none, no)
    kernels.earliest(none, none, np.zeros((1, 1), np.bool_), 0, np.zeros(2, np.int64), none, none, none, none)
    kernels.relayed(1, 1, none, none, none, no)
