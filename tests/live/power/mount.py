"""A mounted disk (`disk.py`), and whether there can be one here."""

import contextlib
import ctypes.util
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path


def lacking() -> str:
    """Why there can be none; empty if there can."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse is not there, or not for this user"
    if os.geteuid() != 0:
        return "mounting needs root here"
    if not ctypes.util.find_library("fuse3"):
        return "libfuse3 is missing: apt-get install libfuse3-3"
    try:
        import mfusepy  # noqa: F401  # to see whether it can be
    except (ImportError, OSError, AttributeError) as problem:
        return f"mfusepy cannot be used: {problem}"
    return ""


@contextlib.contextmanager
def mounted(folder: Path) -> Iterator["Power"]:
    """The disk on an empty folder. Raises `OSError` if it cannot be mounted."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "live.power.disk", str(folder)],
        cwd=Path(__file__).parents[2],  # tests/
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while not os.path.ismount(folder):
            if process.poll() is not None:
                assert process.stderr is not None
                raise OSError(f"cannot be mounted: {process.stderr.read().strip()}")
            time.sleep(0.01)
        yield Power(folder / ".cut")
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False, capture_output=True)
        process.terminate()
        process.wait(timeout=10)
        assert process.stderr is not None
        process.stderr.close()


class Power:
    def __init__(self, door: Path) -> None:
        self._door = door

    def cut_after(self, steps: int, seed: int) -> None:
        """So many changes and syncs from now on; `seed` decides what survives."""
        self._door.write_bytes(b"%d %d" % (steps, seed))

    def on(self) -> None:
        self._door.write_bytes(b"on")
