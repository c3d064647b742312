"""How full caches are and what they drop, for protocols that carry documents. A run without them has no value."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.campaign.folder import facts_file
from roamcast.campaign.measured import About
from roamcast.facts.caches import FIGURES, cache_figures
from roamcast.pipeline.measures.facts import Facts, Measure
from roamcast.units import seconds

_CACHES: Final = "run string, " + ", ".join(f"{figure} double" for figure in FIGURES)
_CACHES_ARROW: Final = pa.schema([("run", pa.string()), *((figure, pa.float64()) for figure in FIGURES)])


def caches(facts: Facts) -> DataFrame:
    """A row for each run whose protocol has caches. For `Facts.once`."""
    having = facts.having("cache")
    runs = facts.of(having, facts.runs).select("run", "simulated", "warmup", "nodes")
    tasks = max(1, min(len(having), facts.partitions))
    return runs.repartition(tasks).mapInArrow(partial(_caches_of_runs, facts.out), _CACHES)


def _caches_of_runs(out: Path, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [_caches_of_run(out, **row) for row in batch.to_pylist()]
        yield pa.RecordBatch.from_pylist(rows, _CACHES_ARROW)


def _caches_of_run(out: Path, run: str, simulated: float, warmup: float, nodes: int) -> dict[str, Any]:
    changes = pq.read_table(facts_file(out, "cache", run), partitioning=None, use_threads=False)
    return {"run": run, **cache_figures(changes, nodes, seconds(warmup), seconds(simulated))}


def _of_caches(about: About) -> Measure:
    return Measure(about, lambda facts: facts.once(caches).select("run", F.col(about.name).alias("value")))


MEASURES: Final = (
    _of_caches(
        About(
            name="cache_mean",
            title="documents in a cache",
            description="Documents in a node's cache, as a mean over nodes and time",
        )
    ),
    _of_caches(
        About(
            name="cache_peak", title="most documents in a cache", description="Most documents in any cache at any time"
        )
    ),
    _of_caches(
        About(
            name="cache_drops",
            title="documents dropped per node",
            description="Documents that a node dropped because its cache was full",
            good="low",
        )
    ),
)
