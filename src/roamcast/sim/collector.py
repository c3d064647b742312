"""Python's collector of cyclic garbage, which finds none while a world is made or its totals are written.

All that is made then stays. The collector starts because there is more of it, and looks through everything time and
again: with 10,000 nodes and the plain core, for half of the time that making a world takes.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """Without the collector, if it was on."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
