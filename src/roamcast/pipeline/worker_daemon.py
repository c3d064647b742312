"""The parent of Spark's Python workers: loads what tasks need, then forks a worker whenever Spark asks for one.

Spark runs it as `python -m roamcast.pipeline.worker_daemon` on every executor (`spark.python.daemon.module`). Its
stdout and stdin are Spark's: on stdout goes the daemon's port and nothing else.
"""

import contextlib
import gc
import importlib
import os
import socket
import sys
from pathlib import Path
from typing import Final

from roamcast.pipeline import SIMULATES

_NEEDED: Final = (
    "pyspark.worker",
    "roamcast.pipeline.measure",
)


def warm() -> None:
    """Loads all that a task needs. What a worker loads after the fork is not shared."""
    # A process that forks should have no threads, and Arrow's allocator would start one when it is loaded.
    os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")
    with contextlib.redirect_stdout(sys.stderr):
        for module in _NEEDED:
            importlib.import_module(module)
        importlib.import_module("roamcast.analysis.compilation").load_kernels()
        if SIMULATES in os.environ:
            importlib.import_module("roamcast.pipeline.task")  # and with it the hash of the sources as they were loaded
            _warm_sources()
            importlib.import_module("roamcast.sim.core.compilation").load_kernel()
    # Between two tasks a worker collects garbage. Frozen, the hundred thousands of objects loaded here are not looked
    # at each time, and their pages stay shared with this process.
    gc.collect()
    gc.freeze()


def _warm_sources() -> None:
    """Follows the imports of all protocols. A run needs its own sources' digests, and each process would parse them
    again: four times the work of a short run."""
    protocols = importlib.import_module("roamcast.protocols.catalogue").CATALOGUE.values()
    sources = importlib.import_module("roamcast.campaign.define.sources")
    sources.digests_of(sources.executed(entry.broker.__module__ for entry in protocols))


def prefer_installed(path: list[str]) -> list[str]:
    """Without zip files that lie in an installed package. Spark puts its `pyspark/python/lib/pyspark.zip` first on the
    path: the same modules without bytecode, which take a second of CPU time to compile."""
    return [
        entry
        for entry in path
        if not (entry.endswith(".zip") and (Path(entry).parent.parent.parent / "__init__.py").is_file())
    ]


def _serve() -> None:
    from pyspark import daemon  # noqa: PLC0415  # not before the path is right

    pyspark_work = daemon.worker

    def work(sock: socket.socket, authenticated: bool) -> int:
        """pyspark's loop of one worker, which ends without a traceback when Spark hangs up because it needs it no
        more."""
        try:
            return pyspark_work(sock, authenticated)
        except ConnectionError:
            # At once, as pyspark itself would soon: else what was to be written is tried again when the file is freed,
            # and Python complains of that, from 3.13 on.
            os._exit(0)

    daemon.worker = work
    daemon.manager()


if __name__ == "__main__":
    sys.path[:] = prefer_installed(sys.path)
    warm()
    _serve()
