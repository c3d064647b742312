"""What became of the expected pairs of every run: the table that most measures use.

One task computes the pairs of a run from that run's own files (`roamcast.facts.pairs`): there a million pairs are a few
arrays; a join would be a costly shuffle. Spark only distributes the runs.
"""

from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from roamcast.facts.pairs import DICTIONARIES, PERCENTILES, READ, Wanted
from roamcast.pipeline.measures.by_run import Files, rows_of_runs
from roamcast.pipeline.measures.facts import Facts

_PAIRS: Final = pa.schema(
    [
        ("run", pa.string()),
        ("events", pa.int64()),
        ("expected", pa.int64()),
        ("delivered", pa.int64()),
        ("delivery", pa.float64()),
        ("delay_mean", pa.float64()),
        *((f"delay_p{percent}", pa.float64()) for percent in PERCENTILES),
        ("hops_mean", pa.float64()),
        ("satisfaction", pa.list_(pa.float64())),
        ("aged", pa.list_(pa.float64())),
        ("age_peak", pa.float64()),
        ("carriers", pa.list_(pa.string())),
        *((name, pa.int64()) for name in ("wanted", "core_expected", "core_delivered")),
    ]
)


def pairs(facts: Facts) -> DataFrame:
    """One row per run: how many events were published, how many pairs expected and delivered, delivery, delays, hops,
    satisfaction by `AGES`, the kinds of messages in which events were delivered; for runs with a tree, the events that
    somebody wanted and the pairs of the stable core (`stable_core`). For `Facts.once`."""
    work = partial(_pairs_of_run, Files.of(facts, *READ), facts.having("tree"))
    return rows_of_runs(facts, facts.names, work, _PAIRS)


def _pairs_of_run(
    files: Files, trees: frozenset[str], run: str, start: int, end: int, _nodes: int, _scenario: str
) -> dict[str, Any]:
    tables = {table: files.rows(table, run, columns, DICTIONARIES) for table, columns in READ.items()}
    wanted = Wanted(run, tables, start)
    found = wanted.outcome()
    row: dict[str, Any] = {
        "events": wanted.events,
        "carriers": sorted(tables["deliver"]["via"].unique().to_pylist()),
        **found.figures(end),
    }
    if run in trees:
        core = wanted.outcome(wanted.terms.throughout(start, end))
        row |= {
            "wanted": len(np.unique(found.event)),
            "core_expected": len(core.event),
            "core_delivered": int((core.delay >= 0).sum()),
        }
    return row
