"""Delivery where events and subscriptions have contexts, and what it cost.

After the evaluation of Frey and Roman (2007, section 4.2). The rules this file owns:

* **Delivery** is what was delivered of the pairs that an ideal system would have matched (`facts/context_truth.py`).
  A run has few such pairs, so the ratio is *pooled* over the seeds of a point: all that was delivered of all that was
  ideal. A run's value is its part in that, R + (delivered − R · ideal) / (mean of ideal), with R the pooled ratio: the
  mean over seeds is R, and their spread gives the interval of a ratio of two sums. One value alone means nothing.
* **Cost** is all that was on the air in the measured time, in Mbit, acknowledgements and beacons included.
"""

from typing import Any, Final

import msgspec
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.campaign.measured import About
from roamcast.facts.context_truth import READ, has_contexts, outcome
from roamcast.facts.schema import BACKGROUND_ROLE
from roamcast.pipeline.measures.by_run import Files, of_runs
from roamcast.pipeline.measures.facts import Facts, Measure
from roamcast.pipeline.measures.traffic import counted
from roamcast.sim.mobility import Area
from roamcast.sim.scenario import Radio

_FIGURES: Final = ("ideal", "delivered", "beyond")
REQUEST: Final = "matching-request"


class _Scenario(msgspec.Struct):
    """The part of a scenario that is read here."""

    radio: Radio = Radio()
    area: Area | None = None


class _Work:
    def __init__(self, files: Files) -> None:
        self._files = files

    def __call__(self, run: str, start: int, end: int, nodes: int, scenario: str) -> dict[str, float | None]:
        tables = self._files.read(run)
        if not has_contexts(tables):
            return dict.fromkeys(_FIGURES)
        reach = msgspec.json.decode(scenario, type=_Scenario).radio.longest
        found = outcome(tables, reach=reach, start=start, end=end)
        return {name: float(getattr(found, name)) for name in _FIGURES}


def outcomes(facts: Facts) -> DataFrame:
    """(run, ideal, delivered, beyond) of the runs with contexts whose movement was recorded. For `Facts.once`."""
    runs = facts.having("leg") & facts.having("publish") & facts.having("subscribe")
    return of_runs(facts, runs, _Work(Files.of(facts, *READ)), _FIGURES)


def _world(scenario: str) -> str:
    """The scenario without its seed, which the runs of a point share."""
    whole = msgspec.json.decode(scenario, type=dict[str, Any])
    return msgspec.json.encode({name: whole[name] for name in sorted(whole) if name != "seed"}).decode()


def _delivery(facts: Facts) -> DataFrame:
    """Delivery, pooled over runs that differ only in their seed."""
    scenarios = zip(facts.planned["run"].to_pylist(), facts.planned["scenario"].to_pylist(), strict=True)
    worlds = facts.spark.createDataFrame(
        sorted({(run, _world(scenario)) for run, scenario in scenarios}), "run string, world string"
    )
    known = facts.once(outcomes).where(F.col("ideal").isNotNull()).join(worlds, "run", "inner")
    of_world = Window.partitionBy("world")
    ideal, ratio = (
        F.mean("ideal").over(of_world),
        F.try_divide(F.sum("delivered").over(of_world), F.sum("ideal").over(of_world)),
    )
    part = F.try_divide(F.col("delivered") - F.col("ratio") * F.col("ideal"), F.col("usual"))
    pooled = known.withColumn("usual", ideal).withColumn("ratio", ratio)
    return pooled.select("run", (F.col("ratio") + part).alias("value"))


def _of(column: str, about: About) -> Measure:
    def function(facts: Facts) -> DataFrame:
        return facts.once(outcomes).select("run", F.col(column).alias("value"))

    return Measure(about, function)


def traffic(facts: Facts) -> DataFrame:
    """(run, mbit, requests): all traffic on the air, and the matching requests in it. For `Facts.once`."""
    bits = F.col("bits") / 1e6
    return (
        facts.once(counted)
        .where(F.col("role") != BACKGROUND_ROLE)
        .groupBy("run")
        .agg(F.sum(bits).alias("mbit"), F.sum(F.when(F.col("kind") == REQUEST, bits).otherwise(0.0)).alias("requests"))
    )


def _mbit(facts: Facts) -> DataFrame:
    return facts.once(traffic).select("run", F.col("mbit").alias("value"))


def _requests(facts: Facts) -> DataFrame:
    return facts.once(traffic).select("run", F.try_divide("requests", "mbit").alias("value"))


def _per_cube(facts: Facts) -> DataFrame:
    side = F.get_json_object("scenario", "$.area.width").cast("double") / 1000
    return (
        facts.once(traffic)
        .join(facts.runs.select("run", "scenario"), "run", "inner")
        .select("run", F.try_divide(F.col("mbit"), side * side * side).alias("value"))
    )


MEASURES: Final = (
    Measure(
        About(
            name="delivery_context",
            title="delivery (share of ideal pairs, pooled over seeds)",
            description="What was delivered of what an ideal system would match, all seeds of a point together",
            share=True,
            good="high",
        ),
        _delivery,
    ),
    _of(
        "ideal",
        About(
            name="context_pairs",
            title="ideal pairs",
            description="Pairs of an event and a subscription that an ideal system would match",
        ),
    ),
    _of(
        "beyond",
        About(
            name="context_beyond",
            title="pairs delivered beyond the ideal",
            description="Delivered pairs that no instant justifies: decided on what was out of date",
            good="low",
        ),
    ),
    Measure(
        About(
            name="mbit",
            title="cost (Mbit on the air)",
            unit="Mbit",
            description="All that was on the air in the measured time, beacons and acknowledgements included",
            good="low",
        ),
        _mbit,
    ),
    Measure(
        About(
            name="mbit_per_cube",
            title="cost by the cube of the side (Mbit/km³)",
            unit="Mbit/km³",
            description="All that was on the air, divided by the cube of the area's width",
            good="low",
        ),
        _per_cube,
    ),
    Measure(
        About(
            name="requests_share",
            title="matching requests (share of the cost)",
            description="Share of the bits on the air that were matching requests",
            share=True,
        ),
        _requests,
    ),
)
