"""Python's collector of cyclic garbage: off while it can find nothing, and seldom at work during a run.

All objects made while a world is made, or its totals are written, stay alive. The collector still starts because there
are more and more of them, and visits all of them again and again: with 10,000 nodes and the plain core, this is half of
the time that making a world takes. A run makes little cyclic garbage, but keeps tables that grow for long: with carried
documents the collector took 3 to 10 % of a run. It stays on, since a protocol may make garbage.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MANY: Final = 50_000
"""New objects after which the collector starts during a run: some 10 MB, instead of Python's 700 objects."""


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


@contextmanager
def seldom() -> Iterator[None]:
    """Lets the collector start only after `MANY` new objects."""
    before = gc.get_threshold()
    gc.set_threshold(MANY, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
