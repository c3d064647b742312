"""Pauses Python's collector of cyclic garbage, which finds none while a world is made or its totals are written.

All objects made then stay alive. The collector still starts because there are more and more of them, and visits all of
them again and again: with 10,000 nodes and the plain core, this is half of the time that making a world takes.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """Pauses the collector, if it was on."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
