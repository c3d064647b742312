"""Recorded contacts as links of a scenario: CPU seconds and memory by the number of nodes, in both cores.

The contacts are made up: each node has 60 in ten minutes, of a minute on average, with nodes of similar numbers.
Flooding runs among them for five minutes, a minute in the plain core. Each run has a process of its own, so that memory
is its own too.
"""

import multiprocessing
import resource
import tempfile
import time
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from roamcast.facts.sinks import MemorySink
from roamcast.sim.core import kernel, reference
from roamcast.sim.mobility.trace import ABOUT_FILE, LINKS, VERSION, TraceDescription
from roamcast.sim.run import run as simulate
from roamcast.sim.scenario.scenario import check
from roamcast.sim.world import CoreMaker
from roamcast.units import SECOND

SIZES: Final = (1000, 10_000)
CONTACTS: Final = 60
SPAN: Final = 600
CORES: Final[dict[str, tuple[CoreMaker, int]]] = {"compiled": (kernel.Core, 300), "plain": (reference.Core, 60)}
"""A core, and how many seconds it simulates."""


def run() -> None:
    print("links: recorded contacts, flooding with the ideal MAC")
    with tempfile.TemporaryDirectory(prefix="roamcast-bench-") as name:
        for nodes in SIZES:
            contacts = write_trace(Path(name) / f"{nodes}.trace", nodes)
            for core, (_, seconds) in CORES.items():
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    cpu, memory = pool.apply(_simulated, (Path(name), nodes, core))
                    print(
                        f"  {nodes:,} nodes, {contacts:,} contacts, {core} core, {seconds} s: {cpu:.1f} CPU s, "
                        f"{memory / 1e6:.0f} MB"
                    )


def write_trace(place: Path, nodes: int) -> int:
    rng = np.random.default_rng(1)
    count = nodes * CONTACTS // 2
    one = rng.integers(0, nodes, count)
    other = (one + 1 + rng.exponential(50, count).astype(np.int64)) % nodes
    start = (rng.uniform(0, SPAN - 60, count) * SECOND).astype(np.int64)
    lasting = (rng.exponential(60, count) * SECOND).astype(np.int64) + 1
    end = np.minimum(start + lasting, SPAN * SECOND)
    met = one != other
    columns = (np.minimum(one, other), np.maximum(one, other), start, end)
    (place / "links").mkdir(parents=True)
    table = pa.table([pa.array(column[met], field.type) for column, field in zip(columns, LINKS, strict=True)], LINKS)
    pq.write_table(table, place / "links" / "part-00000.parquet")
    about = TraceDescription(
        version=VERSION, kind="contacts", format="contacts", source="made up", nodes=nodes, begins=0, span=SPAN,
        rows=table.num_rows,
    )  # fmt: skip
    (place / ABOUT_FILE).write_bytes(msgspec.json.encode(about))
    return len(table)


def _simulated(folder: Path, nodes: int, core: str) -> tuple[float, int]:
    """CPU seconds of one run, and the most bytes of memory of its process."""
    make_core, seconds = CORES[core]
    raw = {
        "nodes": nodes,
        "duration": seconds,
        "radio": {"propagation": "links"},
        "mac": {"model": "ideal"},
        "links": {"file": f"{nodes}.trace"},
        "workload": {"subscribers": [{"count": 100}], "publishers": [{"count": 5, "rate": 0.01}]},
    }
    scenario, before = check(raw, "bench", folder), time.process_time()
    simulate(scenario, MemorySink(), folder=folder, make_core=make_core)
    cpu = time.process_time() - before
    return cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    run()
