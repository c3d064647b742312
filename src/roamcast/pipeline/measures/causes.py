"""Why pairs were missed: `causes`, a family of shares by cause.

The causes are those of `roamcast.facts.why`. The rules this file owns:

* A share is of all expected pairs of an event and a node: the shares of a run and its delivery add up to 1.
* A run that did not record frames and decisions has no shares: its causes are not known.
"""

from functools import partial
from typing import Final

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.campaign.measured import About
from roamcast.facts.schema import TABLES
from roamcast.facts.why.causes import MEANING, Cause
from roamcast.facts.why.missed import missed
from roamcast.facts.why.record import READ
from roamcast.pipeline.measures.by_run import Files, of_runs
from roamcast.pipeline.measures.facts import Facts, Measure
from roamcast.sim.network import record_of
from roamcast.sim.scenario import Scenario

NEVER_MEASURED: Final = (Cause.NOT_SUBSCRIBED, Cause.NOT_RECORDED)
"""Causes that cannot occur for an expected pair in a run with a full record."""
NAMES: Final = {cause: f"cause_{cause.replace(' ', '_')}" for cause in Cause if cause not in NEVER_MEASURED}


def shares(facts: Facts) -> DataFrame:
    """(run, one share per cause) of the runs that recorded frames and decisions. For `Facts.once`."""
    runs = facts.having("frame") & facts.having("decision") & facts.having("publish") & facts.having("subscribe")
    return of_runs(facts, runs, partial(_shares, Files.of(facts, *READ)), tuple(NAMES.values()))


def _shares(files: Files, run: str, start: int, end: int, nodes: int, scenario: str) -> dict[str, float | None]:
    tables = {table: schema.empty_table() for table, schema in TABLES.items()}
    tables |= {table: files.rows(table, run) for table, runs in files.having.items() if run in runs}
    found = missed(record_of(tables, msgspec.json.decode(scenario, type=Scenario)))
    if not found.expected:
        return dict.fromkeys(NAMES.values())
    counts = found.counts()
    return {name: counts[cause] / found.expected for cause, name in NAMES.items()}


def _of(cause: Cause, name: str) -> Measure:
    def function(facts: Facts) -> DataFrame:
        return facts.once(shares).select("run", F.col(name).alias("value"))

    title = f"missed: {cause} (share of pairs)"
    about = About(name=name, title=title, description=f"Share of the pairs missed because {MEANING[cause]}", share=True)
    return Measure(about, function)


MEASURES: Final = tuple(_of(cause, name) for cause, name in NAMES.items())
