"""The network as a graph: how many neighbours nodes have, and into how many parts they fall.

The graph is sampled at every whole second from the warm-up to the end of the run. Two nodes are neighbours if each is
within the other's range, which is the scenario's: the indoor one on a leg inside a building, and where a range is drawn
between two bounds their mean. A run whose movement was not recorded, or that has links instead, has no such graph.
"""

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.campaign.folder import facts_file
from roamcast.campaign.measured import About
from roamcast.pipeline.measures.facts import Facts, Measure
from roamcast.sim.scenario import Radio
from roamcast.units import SECOND

_FIGURES: Final = ("degree", "partitions", "largest")
_GRAPHS: Final = "run string, degree double, partitions double, largest double"
_GRAPHS_ARROW: Final = pa.schema([("run", pa.string()), *((figure, pa.float64()) for figure in _FIGURES)])
_LEG: Final = ("start", "end", "x0", "y0", "x1", "y1")


class _Scenario(msgspec.Struct):
    """What of a scenario is asked for here."""

    radio: Radio = Radio()


def graphs(facts: Facts) -> DataFrame:
    """(run, degree, partitions, largest): means over the samples, of the runs with positions. For `Facts.once`."""
    moving = facts.having("leg")
    runs = facts.runs.where(F.col("run").isin(*moving)).select("run", "simulated", "warmup", "nodes", "scenario")
    # A few tasks a core, so that cores that are done early find more to do.
    tasks = max(1, min(len(moving), 4 * facts.spark.sparkContext.defaultParallelism))
    return runs.repartition(tasks).mapInArrow(partial(_graphs_of_runs, facts.out), _GRAPHS)


def _graphs_of_runs(out: Path, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [_graph_of_run(out, **row) for row in batch.to_pylist()]
        yield pa.RecordBatch.from_pylist(rows, _GRAPHS_ARROW)


def _graph_of_run(out: Path, run: str, simulated: float, warmup: float, nodes: int, scenario: str) -> dict[str, Any]:
    legs = pq.read_table(facts_file(out, "leg", run), partitioning=None, use_threads=False)
    radio = msgspec.json.decode(scenario, type=_Scenario).radio
    outdoor = radio.range if isinstance(radio.range, float) else sum(radio.range) / 2
    seconds = np.arange(math.ceil(warmup), math.ceil(simulated), dtype=np.int64)
    figures = graph(legs, nodes, seconds * SECOND, outdoor, radio.indoor_range or outdoor)
    return {"run": run, **dict(zip(_FIGURES, figures, strict=True))}


def graph(
    legs: pa.Table, nodes: int, instants: NDArray[np.int64], outdoor: float, indoor: float
) -> tuple[float | None, float | None, float | None]:
    """Mean degree, mean number of partitions, and mean share of the nodes in the largest, at those instants."""
    if not len(instants):
        return None, None, None
    node, start = legs["node"].to_numpy(), legs["start"].to_numpy()
    order = np.lexsort((start, node))
    first = np.searchsorted(node[order], np.arange(nodes))
    reach = np.where(legs["indoor"].to_numpy(zero_copy_only=False), indoor, outdoor)[order]
    columns = [legs[name].to_numpy()[order] for name in _LEG]
    links, partitions, largest = _sample(instants, first, reach, *columns)
    samples = len(instants)
    return 2 * links / (nodes * samples), partitions / samples, largest / (nodes * samples)


@numba.njit(cache=True)
def _sample(
    instants: NDArray[np.int64],
    first: NDArray[np.int64],
    reaches: NDArray[np.float64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    x0: NDArray[np.float64],
    y0: NDArray[np.float64],
    x1: NDArray[np.float64],
    y1: NDArray[np.float64],
) -> tuple[int, int, int]:
    """Sums over the instants, which must rise: of links, of partitions, and of the sizes of the largest."""
    nodes = len(first)
    current = first.copy()
    x, y, reach = np.empty(nodes), np.empty(nodes), np.empty(nodes)
    root, size = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    links, partitions, largest = 0, 0, 0
    for now in instants:
        for node in range(nodes):
            leg = current[node]
            while ends[leg] <= now and leg + 1 < len(starts) and (node + 1 == nodes or leg + 1 < first[node + 1]):
                leg += 1
            current[node] = leg
            share = min(1.0, (now - starts[leg]) / (ends[leg] - starts[leg]))
            x[node] = x0[leg] + share * (x1[leg] - x0[leg])
            y[node] = y0[leg] + share * (y1[leg] - y0[leg])
            reach[node] = reaches[leg]
            root[node] = node
            size[node] = 1
        parts, biggest = nodes, 1
        # From the left to the right: whoever is too far along x has only such behind it.
        order = np.argsort(x)
        for place in range(nodes):
            a = order[place]
            for later in range(place + 1, nodes):
                b = order[later]
                dx, dy = x[b] - x[a], y[b] - y[a]
                if dx > reach[a]:
                    break
                mutual = min(reach[a], reach[b])
                if dx * dx + dy * dy > mutual * mutual:
                    continue
                links += 1
                i, j = a, b
                while root[i] != i:
                    root[i] = root[root[i]]
                    i = root[i]
                while root[j] != j:
                    root[j] = root[root[j]]
                    j = root[j]
                if i != j:
                    root[i] = j
                    size[j] += size[i]
                    biggest = max(biggest, size[j])
                    parts -= 1
        partitions += parts
        largest += biggest
    return links, partitions, largest


def _of_graph(about: About, column: str) -> Measure:
    def function(facts: Facts) -> DataFrame:
        return facts.once(graphs).select("run", F.col(column).alias("value"))

    return Measure(about, function)


MEASURES: Final = (
    _of_graph(
        About(
            name="degree_mean",
            title="mean degree (neighbours)",
            unit="neighbours",
            description="Mean number of neighbours of a node",
        ),
        "degree",
    ),
    _of_graph(
        About(
            name="partitions_mean",
            title="partitions (mean number)",
            description="Mean number of connected parts of the network",
        ),
        "partitions",
    ),
    _of_graph(
        About(
            name="largest_partition",
            title="largest partition (share of nodes)",
            description="Mean share of the nodes in the largest connected part",
            share=True,
            whole=True,
        ),
        "largest",
    ),
)
