"""How well a tree of brokers holds the network together.

After the evaluation of the COMAN paper (Mottola, Cugola, Picco, section IV-A): TC is the share of the time in which all
nodes are in one tree. Where the network itself is rarely connected that is close to 0 for any protocol, so beside it
stand measures against the parts into which the network falls.

The rule this file owns: the tree and the network are sampled every tenth of a second from the warm-up to the end. A
repair lasts tenths of a second, so whole seconds would be coarse. `partitions.py` says what connected means.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.campaign.folder import facts_file
from roamcast.campaign.measured import About
from roamcast.errors import RoamcastError
from roamcast.pipeline.measures.facts import Facts, Measure
from roamcast.pipeline.measures.partitions import Ints, Labels, agreement, by_links, by_movement, by_tree, parts
from roamcast.pipeline.schemas import spark_schema
from roamcast.sim.scenario import Radio
from roamcast.units import SECOND

STEP: Final = SECOND // 10
"""Between two samples, ns."""
_FIGURES: Final = ("connected", "parts", "matched", "reach")
_COLUMNS: Final = ["time", "node", "change", "cause", "parent", "children"]


class _Scenario(msgspec.Struct):
    """What of a scenario is asked for here."""

    radio: Radio = Radio()


# --- Runs with a tree -----------------------------------------------------------------------------------------------

Work = Callable[[str, int, int, int, str], dict[str, float | None]]
"""From a run, its warm-up and its end (ns), its number of nodes and its scenario (JSON) to figures by name."""


def of_runs_with_a_tree(facts: Facts, work: Work, figures: tuple[str, ...]) -> DataFrame:
    """(run, figures): a row for each run that has a tree, worked out in a task that reads the run's own files."""
    schema = pa.schema([("run", pa.string()), *((figure, pa.float64()) for figure in figures)])
    having = facts.having("tree")
    if not having:
        return facts.spark.createDataFrame([], spark_schema(schema))
    runs = bounds(facts).where(F.col("run").isin(*having))
    # A few tasks a core, so that cores that are done early find more to do.
    tasks = min(len(having), 4 * facts.spark.sparkContext.defaultParallelism)
    return runs.repartition(tasks).mapInArrow(partial(_each, work, schema), spark_schema(schema))


def bounds(facts: Facts) -> DataFrame:
    """(run, start, end, nodes, scenario): what is measured begins at the warm-up; times in ns."""
    start, end = (F.round(F.col(name) * SECOND).cast("long") for name in ("warmup", "simulated"))
    return facts.runs.select("run", start.alias("start"), end.alias("end"), "nodes", "scenario")


def _each(work: Work, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [{"run": row["run"], **work(*row.values())} for row in batch.to_pylist()]
        yield pa.RecordBatch.from_pylist(rows, schema)


def tree_of(out: Path, run: str) -> pa.Table:
    """The rows of a run's `tree`, without the leaders."""
    return rows_of(out, "tree", run, _COLUMNS)


def rows_of(out: Path, table: str, run: str, columns: list[str] | None = None) -> pa.Table:
    """The facts of one run; those of a table it has."""
    # One thread: the machine's cores are Spark's to give.
    return pq.read_table(facts_file(out, table, run), columns=columns, partitioning=None, use_threads=False)


# --- Measures -------------------------------------------------------------------------------------------------------


def trees(facts: Facts) -> DataFrame:
    """(run, connected, parts, matched, reach) of the runs with a tree. For `Facts.once`."""
    work = partial(_tree_of_run, facts.out, facts.having("link"), facts.having("leg"))
    return of_runs_with_a_tree(facts, work, _FIGURES)


def _tree_of_run(
    out: Path, linked: frozenset[str], moving: frozenset[str], run: str, start: int, end: int, nodes: int, scenario: str
) -> dict[str, float | None]:
    instants = samples(start, end)
    try:
        labels = by_tree(instants, nodes, tree_of(out, run))
    except RoamcastError as problem:
        raise RoamcastError(f"run {run}: {problem}") from None
    network = None
    if run in linked:
        network = by_links(instants, nodes, rows_of(out, "link", run))
    elif run in moving:
        radio = msgspec.json.decode(scenario, type=_Scenario).radio
        outdoor = radio.range if isinstance(radio.range, float) else sum(radio.range) / 2
        network = by_movement(instants, nodes, rows_of(out, "leg", run), outdoor, radio.indoor_range or outdoor)
    return figures(labels, network)


def samples(start: int, end: int) -> Ints:
    """The instants at which a run is looked at: whole steps, from the warm-up on and before the end."""
    return np.arange(-(-start // STEP), -(-end // STEP), dtype=np.int64) * STEP


def figures(tree: Labels, network: Labels | None) -> dict[str, float | None]:
    """By name; what needs the network is undefined without it."""
    found: dict[str, float | None] = dict.fromkeys(_FIGURES)
    if len(tree):
        count = parts(tree)
        found |= {"connected": float((count == 1).mean()), "parts": float(count.mean())}
        if network is not None:
            found |= agreement(tree, network)._asdict()
    return found


def _of_tree(about: About, column: str) -> Measure:
    def function(facts: Facts) -> DataFrame:
        return facts.once(trees).select("run", F.col(column).alias("value"))

    return Measure(about, function)


def _share(name: str, title: str, description: str, floor: float | None = None) -> About:
    return About(name=name, title=title, description=description, share=True, whole=True, good="high", floor=floor)


MEASURES: Final = (
    _of_tree(
        _share(
            "tree_connected",
            "all nodes in one tree, TC (share of the time)",
            "Share of the time in which all nodes are in one tree",
            floor=0.01,
        ),
        "connected",
    ),
    _of_tree(
        _share(
            "tree_matched",
            "tree's parts are the network's, TC* (share of the time)",
            "Share of the time in which the tree's parts are those of the network",
            floor=0.01,
        ),
        "matched",
    ),
    _of_tree(
        _share(
            "tree_reach",
            "reach of the tree (share of connected pairs)",
            "Share of the pairs of nodes connected physically that the tree connects",
        ),
        "reach",
    ),
    _of_tree(
        About(
            name="tree_parts_mean",
            title="parts of the tree (mean number)",
            description="Mean number of parts of the tree; a node that is on none is one",
            good="low",
        ),
        "parts",
    ),
)
