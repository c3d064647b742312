"""Measures: numbers about runs, and their statistics over seeds.

`MEASURES` has all that are known, by name; `measure` computes them for a campaign and writes three tables. A measure
from outside the package is named by an entry point of the group `roamcast.measures`, or by an experiment as
`file.py:NAME`; see docs/measures.md.
"""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.campaign.experiment import Experiment
from roamcast.campaign.measured import write_about
from roamcast.campaign.schemas import PAIRED_ARROW, RUN_MEASURES_ARROW, SUMMARY_ARROW
from roamcast.campaign.verify import check_facts
from roamcast.errors import RoamcastError
from roamcast.outside import from_file, is_file_name
from roamcast.pipeline.measures import (
    caches,
    causes,
    contexts,
    cost,
    deadlines,
    delay,
    delivery,
    energy,
    fairness,
    incoming,
    known,
    possible,
    repairs,
    satisfaction,
    stable_core,
    statistics,
    topology,
    traffic,
    tree,
)
from roamcast.pipeline.measures.facts import Facts, Measure
from roamcast.pipeline.schemas import RUN_MEASURES, RUNS
from roamcast.storage import Store, fetched

__all__ = ["GROUP", "MEASURES", "Facts", "Measure", "catalogue", "measure", "read", "with_names"]

GROUP: Final = "roamcast.measures"
_FAMILIES: Final = (
    delivery,
    cost,
    delay,
    traffic,
    topology,
    satisfaction,
    caches,
    possible,
    deadlines,
    fairness,
    energy,
    causes,
    tree,
    repairs,
    stable_core,
    incoming,
    contexts,
)


def catalogue(outside: Iterable[EntryPoint]) -> dict[str, Measure]:
    """Our own measures and those that the entry points name."""
    known = {ours.name: ours for family in _FAMILIES for ours in family.MEASURES}
    for point in outside:
        theirs = point.load()
        if not isinstance(theirs, Measure):
            raise RoamcastError(f"the entry point {point.value} of {GROUP} is {theirs!r}, not a Measure")
        if theirs.name in known:
            raise RoamcastError(f"the entry point {point.value} of {GROUP}: {theirs.name!r} is the name of another")
        known[theirs.name] = theirs
    return known


MEASURES: Final = catalogue(entry_points(group=GROUP))
FAMILIES: Final = {"causes": tuple(one.name for one in causes.MEASURES)}
"""Names under which an experiment may ask for several measures at once."""


def with_names(experiments: Sequence[Experiment]) -> list[Experiment]:
    """The experiments with measures of files (`mine.py:BUSIEST`) under their own names, which `MEASURES` then has."""
    return [_with_names(one) for one in experiments]


def _with_names(one: Experiment) -> Experiment:
    if one.spec.measures is None:
        return one
    each = (member for name in one.spec.measures for member in FAMILIES.get(name, (name,)))
    names = tuple(_name(name, one) if is_file_name(name) else name for name in each)
    return replace(one, spec=msgspec.structs.replace(one.spec, measures=names))


def _name(name: str, one: Experiment) -> str:
    theirs = from_file(name, one.folder, f"{one.source}: measure")
    if not isinstance(theirs, Measure):
        raise RoamcastError(f"{one.source}: measure {name!r} is {type(theirs).__name__}, not a Measure")
    if MEASURES.setdefault(theirs.name, theirs) is not theirs:
        raise RoamcastError(f"{one.source}: measure {name!r}: {theirs.name!r} is the name of another")
    return theirs.name


def read(spark: SparkSession, out: Path) -> Facts:
    """The facts of a campaign, as its manifest lists them."""
    return Facts(spark, out)


def measure(spark: SparkSession, out: Path | Store, names: Iterable[str] | None = None) -> None:
    """Measures the runs of a campaign that are ok and writes OUT/measures/{run,summary,paired}.parquet.

    `names` are those of `MEASURES`; without them, all. What was measured before is not measured again. The facts of a
    campaign in an object store are read there, and its measures go there.
    """
    store = Store.at(out)
    with fetched(store, returning=["measures"]) as folder:
        _measure(Facts(spark, folder, store=store), folder, _chosen(names))


def _measure(facts: Facts, out: Path, chosen: list[Measure]) -> None:
    spark, wanted = facts.spark, [one.name for one in chosen]
    made = known.made_from(facts.out, chosen)
    by_run = _all_measured(facts, chosen)
    _check_complete(by_run, len(facts), wanted)
    _write(out, "run", by_run, ["run", "measure"])

    seeds = len(facts.planned["seed"].unique())
    runs = spark.createDataFrame(facts.planned, RUNS)
    measured = spark.createDataFrame(by_run, RUN_MEASURES)
    summary = statistics.summary(runs, measured, wanted, seeds).toArrow().cast(SUMMARY_ARROW)
    _write(out, "summary", summary, ["experiment", "variant", "point", "measure"])
    floors = {one.name: one.about.floor for one in chosen if one.about.floor is not None}
    paired = statistics.paired(runs, measured, wanted, seeds, floors).toArrow().cast(PAIRED_ARROW)
    _write(out, "paired", paired, ["experiment", "point", "variant", "baseline", "measure"])
    write_about(out, (one.about for one in chosen))
    known.write(out, made)


def is_current(out: Path, names: Iterable[str] | None = None) -> bool:
    """Whether the folder has these measures of all its runs, so that there is nothing to measure."""
    return known.is_current(out.resolve(), _chosen(names))


def _all_measured(facts: Facts, chosen: list[Measure]) -> pa.Table:
    """RUN_MEASURES of all runs: known values, and the missing ones, measured now."""
    found = [known.known(facts.out, chosen, facts.names)]
    for names, runs in known.missing(found[0], chosen, facts.names).items():
        of_group = (
            facts if len(runs) == len(facts) else Facts(facts.spark, facts.out, only=frozenset(runs), store=facts.store)
        )
        check_facts(of_group.out, runs, facts.store)
        found.append(run_measures(of_group, [MEASURES[name] for name in names]))
    return pa.concat_tables(found)


def _chosen(names: Iterable[str] | None) -> list[Measure]:
    wanted = list(MEASURES) if names is None else list(dict.fromkeys(names))
    for name in wanted:
        if name not in MEASURES:
            raise RoamcastError(f"no measure is named {name!r}; there are {', '.join(MEASURES)}")
    return [MEASURES[name] for name in wanted]


def run_measures(facts: Facts, chosen: list[Measure]) -> pa.Table:
    """RUN_MEASURES: one row per run and measure, null if the measure gives no value."""
    runs, names = sorted(facts.names), [one.name for one in chosen]
    wanted = pa.table({"run": runs * len(names), "measure": [name for name in names for _ in runs]})
    values = _union([_values(one, facts) for one in chosen]).toArrow()
    return wanted.join(values, ["run", "measure"]).select(RUN_MEASURES_ARROW.names).cast(RUN_MEASURES_ARROW)


def _union(frames: list[DataFrame]) -> DataFrame:
    """The union as a balanced tree: Spark analyses the whole plan at each step, so a chain of a hundred is analysed a
    hundred times."""
    middle = len(frames) // 2
    return frames[0] if middle == 0 else _union(frames[:middle]).unionAll(_union(frames[middle:]))


def _values(one: Measure, facts: Facts) -> DataFrame:
    given = one.function(facts)
    if set(given.columns) != {"run", "value"}:
        raise RoamcastError(f"measure {one.name!r} must give the columns run and value, not {', '.join(given.columns)}")
    return given.select("run", F.lit(one.name).alias("measure"), F.col("value").cast("double").alias("value"))


def _check_complete(table: pa.Table, runs: int, wanted: list[str]) -> None:
    counted = Counter(table["measure"].to_pylist())
    for name in wanted:
        if counted[name] != runs:
            raise RoamcastError(f"measure {name!r} must give one value a run: {counted[name]} for {runs} runs")


def _write(out: Path, name: str, table: pa.Table, order: list[str]) -> None:
    """Writes a table whole or not at all, in an order that does not depend on Spark."""
    (out / "measures").mkdir(exist_ok=True)
    (out / "tmp").mkdir(exist_ok=True)
    draft = out / "tmp" / f"measures-{name}.{os.getpid()}.parquet"
    try:
        pq.write_table(table.sort_by([(column, "ascending") for column in order]), draft, compression="zstd")
        draft.replace(out / "measures" / f"{name}.parquet")
    finally:
        draft.unlink(missing_ok=True)
