"""What delivery cost: packets, bits, airtime and duplicates per delivered pair."""

from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.campaign.measured import About
from roamcast.facts.schema import BACKGROUND_ROLE
from roamcast.pipeline.measures.by_run import Files, of_runs
from roamcast.pipeline.measures.facts import Facts, Measure
from roamcast.pipeline.measures.pairs import pairs
from roamcast.pipeline.measures.traffic import totals
from roamcast.units import SECOND

_MILLISECOND: Final = SECOND // 1000
_SENT: Final = ("packets", "packets_data", "bits", "airtime", "duplicates")


def costs(facts: Facts) -> DataFrame:
    """(run, delivered, packets, packets_data, bits, airtime (ms), duplicates): null if a run has none. For
    `Facts.once`."""
    sent = of_runs(facts, facts.names, partial(_sent, Files.of(facts, "series", "note", "deliver")), _SENT)
    return facts.once(pairs).select("run", "delivered").join(sent, "run", "left")


def _sent(files: Files, run: str, start: int, _end: int, _nodes: int, _scenario: str) -> dict[str, float | None]:
    ours = totals(files, run, start)
    ours = ours.filter(pc.not_equal(ours["role"], BACKGROUND_ROLE))
    carriers = files.rows("deliver", run, ["via"], ["via"])["via"].unique().cast(pa.string())
    data = ours.filter(pc.is_in(ours["kind"], carriers))
    notes = files.rows("note", run, ["fact", "count"])
    airtime = pc.sum(ours["airtime"]).as_py()
    return {
        "packets": pc.sum(ours["packets"]).as_py(),
        "packets_data": pc.sum(data["packets"]).as_py(),
        "bits": pc.sum(ours["bits"]).as_py(),
        "airtime": None if airtime is None else airtime / _MILLISECOND,
        "duplicates": pc.sum(notes.filter(pc.equal(notes["fact"], "duplicate"))["count"]).as_py(),
    }


def _for_each_pair(name: str, unit: str, column: str, title: str, description: str) -> Measure:
    def function(facts: Facts) -> DataFrame:
        ratio = F.try_divide(F.coalesce(column, F.lit(0)), F.col("delivered"))
        return facts.once(costs).select("run", ratio.alias("value"))

    return Measure(About(name=name, title=title, unit=unit, description=description, good="low"), function)


MEASURES: Final = (
    _for_each_pair(
        "overhead",
        "packets",
        "packets",
        "overhead (packets per delivery)",
        "Packets sent for each delivered pair, beacons included, background traffic not",
    ),
    _for_each_pair(
        "overhead_data",
        "packets",
        "packets_data",
        "overhead without control (packets per delivery)",
        "Packets of the kinds that carried events, for each delivered pair",
    ),
    _for_each_pair(
        "bits_per_delivery",
        "bit",
        "bits",
        "cost (bits per delivery)",
        "Bits on the air for each delivered pair, beacons included, background traffic not",
    ),
    _for_each_pair(
        "airtime_per_delivery",
        "ms",
        "airtime",
        "cost (ms on the air per delivery)",
        "Time on the air for each delivered pair, beacons included, background traffic not",
    ),
    _for_each_pair(
        "duplicates",
        "",
        "duplicates",
        "duplicates (per delivery)",
        "Events that brokers received once more, for each delivered pair",
    ),
)
