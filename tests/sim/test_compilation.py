"""A first run says that it compiles, and only then."""

import gc

import pytest
from numba import njit

from roamcast.sim.core import compilation, kernel


def test_what_is_compiled_is_announced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = njit(lambda x: x + 1)
    outer = njit(lambda x: 2 * inner(x))

    monkeypatch.setattr(compilation, "_call_all", lambda: outer(1))
    lines: list[str] = []
    compilation.load_kernel(lines.append)
    notice, result = lines
    assert "compiling the simulator" in notice
    assert "compiled in" in result
    compilation.load_kernel(lines.append)
    assert len(lines) == 2, "there was nothing left to compile"


def test_everything_that_python_calls_is_compiled_ahead() -> None:
    compilation.load_kernel()
    entries = {
        name: one.signatures
        for name, one in vars(kernel).items()
        if hasattr(one, "signatures") and not one.targetoptions.get("no_cpython_wrapper")
    }
    assert {"_advance", "_overheard_at"} <= entries.keys()
    assert [name for name, signatures in entries.items() if not signatures] == []


def test_what_is_loaded_is_not_looked_through_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "_call_all", lambda: None)
    gc.unfreeze()
    compilation.load_kernel()
    assert gc.get_freeze_count() > 10_000, "modules and their classes and functions are more than that"
