"""What the fork server of a lab imports before it forks nodes: the program `roamcast`, and all that a node needs of it.

The one place in which the lab knows the command line, which lies above it: the layer check has this import by name, and
only processes forked from the server import this module.
"""

import gc
import os
from typing import Final

import roamcast.live.node  # noqa: F401  # what the program imports only when a node starts: here, once for all
from roamcast.cli.main import main

__all__ = ["SERVER", "main"]

SERVER: Final = os.getpid()
os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")  # or numpy's library would start threads in each node
gc.collect()
gc.freeze()  # or the first collection in each child would touch, and so copy, all shared memory
