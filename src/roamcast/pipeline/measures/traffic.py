"""What became of the frames: losses by reason, as shares of all that were meant to be heard."""

from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.campaign.measured import About
from roamcast.facts.schema import COUNTERS, LOSSES
from roamcast.pipeline.measures.by_run import Files, rows_of_runs
from roamcast.pipeline.measures.facts import Facts, Measure
from roamcast.units import SECOND

_COUNTED: Final = ("messages", *COUNTERS)
_TOTALS: Final = pa.schema(
    [*((name, pa.string()) for name in ("run", "kind", "role")), *((name, pa.int64()) for name in _COUNTED)]
)


def counted(facts: Facts) -> DataFrame:
    """(run, kind, role, and totals) of the seconds that begin at or after the warm-up. For `Facts.once`."""
    return rows_of_runs(facts, facts.having("series"), partial(_counted, Files.of(facts, "series")), _TOTALS)


def _counted(files: Files, run: str, start: int, _end: int, _nodes: int, _scenario: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = totals(files, run, start).to_pylist()
    return rows


def totals(files: Files, run: str, start: int) -> pa.Table:
    """(kind, role, and totals) of one run; `start` is the end of its warm-up, ns."""
    series = files.rows("series", run, ["second", "kind", "role", *_COUNTED])
    measured = series.filter(pa.array(series["second"].to_numpy() * SECOND >= start))
    summed = measured.group_by(["kind", "role"]).aggregate([(column, "sum") for column in _COUNTED])
    return summed.rename_columns([name.removesuffix("_sum") for name in summed.column_names])


def fates(facts: Facts) -> DataFrame:
    """(run, meant, and losses): all kinds together. For `Facts.once`."""
    totals = (F.sum(column).alias(column) for column in ("receptions", *LOSSES))
    by_run = facts.once(counted).groupBy("run").agg(*totals)
    meant = sum((F.col(loss) for loss in LOSSES), F.col("receptions"))
    return by_run.select("run", meant.alias("meant"), *LOSSES)


def _share(name: str, column: str, title: str, description: str) -> Measure:
    def function(facts: Facts) -> DataFrame:
        share = F.try_divide(F.col(column), F.col("meant"))
        return facts.once(fates).select("run", share.alias("value"))

    return Measure(About(name=name, title=title, description=description, share=True, good="low"), function)


MEASURES: Final = (
    _share(
        "lost_collision",
        "collision",
        "lost by collision (share of receptions)",
        "Share of frames lost to other frames",
    ),
    _share(
        "lost_half_duplex",
        "half_duplex",
        "lost while sending (share of receptions)",
        "Share of frames lost because the receiver was sending",
    ),
    _share(
        "lost_random",
        "random_loss",
        "lost by chance (share of receptions)",
        "Share of frames lost by chance: the radio's or the link's loss",
    ),
    _share(
        "queue_full",
        "queue_full",
        "dropped by a full queue (share of frames)",
        "Share of messages that found the sender's queue full and were never sent",
    ),
    _share(
        "unreachable",
        "unreachable",
        "unreachable (share of frames)",
        "Share of unicast messages that the sender gave up",
    ),
)
