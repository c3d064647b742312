"""Settings for all tests, and which worker runs which."""

import gc
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings

from examples import examples

# Time is measured in bench/, never in a test: the machines are shared. In CI the examples are the same every time, so
# that a change is judged by what it changes.
settings.register_profile("here", deadline=None, max_examples=examples(100))
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=examples(100))
settings.load_profile("ci" if os.environ.get("CI") else "here")

# Background jobs of a shell ignore SIGINT, and so would the programs that the tests start and then interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)  # there is no such hook without xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Callable[..., Any]) -> object | None:
    """File by file, but with Spark in as few workers as possible; any other `--dist` is left to xdist."""
    from scheduling import SparkInOneWorker

    return SparkInOneWorker(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_finish() -> None:
    """The tests themselves are millions of objects, which every full garbage collection would look at."""
    gc.freeze()


@pytest.fixture(autouse=True)
def known_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measures of files and of deadlines become known to a process: not to the tests that follow."""
    if module := sys.modules.get("roamcast.analysis.measures.catalogue"):
        monkeypatch.setattr(module.CATALOGUE, "_ways", dict(module.CATALOGUE._ways))
        monkeypatch.setattr(module.CATALOGUE, "_declared", dict(module.CATALOGUE._declared))
