"""Delivery over a stable core of subscriptions, and what keeping the tree cost for each event that somebody wanted.

After the evaluation of the COMAN paper (Mottola, Cugola, Picco, sections V and VI): MDR and CTRL.

The rules this file owns:

* The **stable core** are the subscriptions in force from the warm-up to the end of the run without a change: what is
  lost because a subscription has only just been made, or is about to end, does not count. Expected and delivered are
  as in `pairs.py`; the ratio is one of all pairs, not a mean over events.
* Control messages are those of the role `control`, sent in the measured time, whatever their cause, each counted once;
  `control_all` adds those of the role `beacon`.

Both are worked out for runs with a tree only: matching events with filters is the dearest part of measuring, and this
does it once more.
"""

from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.campaign.measured import About
from roamcast.campaign.schemas import FACTS_ARROW
from roamcast.pipeline.measures.by_run import bounds, rows_of
from roamcast.pipeline.measures.facts import Facts, Measure
from roamcast.pipeline.measures.pairs import Terms, follow, terms_of
from roamcast.pipeline.measures.repairs import CONTROL
from roamcast.pipeline.measures.traffic import counted
from roamcast.pipeline.measures.truth import filters, matched
from roamcast.pipeline.schemas import spark_schema

BEACON: Final = "beacon"
_CORE_ARROW: Final = pa.schema(
    [("run", pa.string()), *((name, pa.int64()) for name in ("wanted", "expected", "delivered"))]
)
_CORE: Final = spark_schema(_CORE_ARROW)
_COLUMNS: Final = {
    "subscribe": ["time", "node", "subscription", "active", "filter"],
    "deliver": ["time", "node", "event", "subscription", "published", "hops"],
}


def core(facts: Facts) -> DataFrame:
    """(run, wanted, expected, delivered): the events that somebody wants, and the pairs of the stable core.

    A row for each run with a tree. For `Facts.once`.
    """
    having = facts.having("tree")
    if not having:
        return facts.spark.createDataFrame([], _CORE)
    described = facts.of(having, bounds(facts)).select("run", "start", "end").join(facts.once(filters), "run", "left")
    work = partial(_core_of_run, facts.out, facts.having("subscribe"), facts.having("deliver"))
    ours = facts.of(having, facts.shared(matched))
    return described.groupBy("run").cogroup(ours.groupBy("run")).applyInArrow(work, _CORE)


def _core_of_run(
    out: Path, subscribing: frozenset[str], delivering: frozenset[str], described: pa.Table, matched: pa.Table
) -> pa.Table:
    first = described.slice(0, 1).to_pylist()[0]
    run: str = first["run"]
    named = zip(described["filter"].to_pylist(), described["filter_id"].to_pylist(), strict=True)
    terms = terms_of(run, _file(out, "subscribe", run, subscribing), dict(named))
    deliver = _file(out, "deliver", run, delivering)
    event, published, filter_id = (matched[name].to_numpy() for name in ("event", "published", "filter_id"))
    everybody = follow(event, published, filter_id, terms, deliver.slice(0, 0))
    stable = follow(event, published, filter_id, stable_terms(terms, first["start"], first["end"]), deliver)
    row = {
        "run": run,
        "wanted": len(np.unique(everybody.event)),
        "expected": len(stable.event),
        "delivered": int((stable.delay >= 0).sum()),
    }
    return pa.Table.from_pylist([row], _CORE_ARROW)


def stable_terms(terms: Terms, start: int, end: int) -> Terms:
    """Those in force from `start` to `end`."""
    stable = (terms.start <= start) & (terms.end >= end)
    return Terms(*(column[stable] for column in terms))


def _file(out: Path, table: str, run: str, having: frozenset[str]) -> pa.Table:
    columns = _COLUMNS[table]
    if run in having:
        return rows_of(out, table, run, columns)
    return FACTS_ARROW[table].empty_table().select(columns)


def _mdr(facts: Facts) -> DataFrame:
    return facts.once(core).select("run", F.try_divide(F.col("delivered"), F.col("expected")).alias("value"))


def _control(name: str, roles: tuple[str, ...], title: str, description: str) -> Measure:
    def function(facts: Facts) -> DataFrame:
        ours = facts.once(counted).where(F.col("role").isin(*roles))
        sent = ours.groupBy("run").agg(F.sum("messages").alias("messages"))
        per_event = F.try_divide(F.coalesce("messages", F.lit(0)), F.col("wanted"))
        return facts.once(core).join(sent, "run", "left").select("run", per_event.alias("value"))

    return Measure(About(name=name, title=title, unit="messages", description=description, good="low"), function)


MEASURES: Final = (
    Measure(
        About(
            name="mdr",
            title="delivery to the stable core, MDR (share of pairs)",
            description="Share of the expected pairs delivered, over subscriptions that do not change",
            share=True,
            whole=True,
            good="high",
        ),
        _mdr,
    ),
    _control(
        "control",
        (CONTROL,),
        "control messages, CTRL (per event that somebody wants)",
        "Messages that keep the tree and its routes, for each event that somebody wants, without beacons",
    ),
    _control(
        "control_all",
        (CONTROL, BEACON),
        "control messages and beacons (per event that somebody wants)",
        "Messages that keep the tree and its routes, for each event that somebody wants",
    ),
)
