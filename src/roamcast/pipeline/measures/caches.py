"""How full caches are and what they drop, for protocols that carry documents. A run without them has no value."""

from functools import partial
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.campaign.measured import About
from roamcast.facts.caches import FIGURES, cache_figures
from roamcast.pipeline.measures.by_run import Files, of_runs
from roamcast.pipeline.measures.facts import Facts, Measure


def caches(facts: Facts) -> DataFrame:
    """One row per run whose protocol has caches. For `Facts.once`."""
    return of_runs(facts, facts.having("cache"), partial(_caches_of_run, Files.of(facts, "cache")), tuple(FIGURES))


def _caches_of_run(files: Files, run: str, start: int, end: int, nodes: int, _scenario: str) -> dict[str, float | None]:
    return cache_figures(files.rows("cache", run), nodes, start, end)


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
