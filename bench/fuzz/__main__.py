"""`make fuzz`: a million generated inputs for each reader of text that strangers may write.

A reader may refuse an input with a `ContentError`; anything else, or taking longer than `PATIENCE`, is a bug, and the
input is printed. `python -m bench.fuzz 20000 xml` runs fewer, or one reader alone.
"""

import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from types import FrameType
from typing import Final, NamedTuple

from bench.fuzz import context, text, xml, xpath
from roamcast.errors import ContentError

PATIENCE: Final = 5
"""Seconds for one input."""


class Reader(NamedTuple):
    inputs: Callable[[random.Random], Iterator[str]]
    read: Callable[[str], None]


READERS: Final = {
    "text": Reader(text.inputs, text.read),
    "context": Reader(context.inputs, context.read),
    "xpath": Reader(xpath.inputs, xpath.read),
    "xml": Reader(xml.inputs, xml.read),
}


def _too_long(signum: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"still reading after {PATIENCE} s")


def fuzz(name: str, count: int, seed: int) -> bool:
    """Whether the reader survived."""
    reader = READERS[name]
    started = time.process_time()
    slowest = 0.0
    for number, given in enumerate(islice(reader.inputs(random.Random(seed)), count)):
        signal.alarm(PATIENCE)
        before = time.process_time()
        try:
            reader.read(given)
        except ContentError:
            pass
        except Exception as problem:
            print(f"{name}: input {number} of seed {seed} gave {type(problem).__name__}: {problem}\n{given!r}")
            return False
        finally:
            signal.alarm(0)
        slowest = max(slowest, time.process_time() - before)
    spent = time.process_time() - started
    print(
        f"{name}: {count:,} inputs, seed {seed}, {spent:.0f} s CPU, the slowest {slowest * 1000:.0f} ms: none crashed"
    )
    return True


def main(arguments: list[str]) -> int:
    count = next((int(argument) for argument in arguments if argument.isdigit()), 1_000_000)
    names = [argument for argument in arguments if argument in READERS] or list(READERS)
    signal.signal(signal.SIGALRM, _too_long)
    survived = [fuzz(name, count, seed=1) for name in names]
    return 0 if all(survived) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
