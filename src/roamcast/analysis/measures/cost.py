"""What delivery cost: packets, bits, airtime and duplicates per delivered pair."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from roamcast.analysis.measures.measure import Measure, Values, family
from roamcast.analysis.measures.traffic import ours, total
from roamcast.analysis.pairs import pairs
from roamcast.analysis.run import Run, ratio
from roamcast.units import SECOND

_MILLISECOND: Final = SECOND // 1000


def carriers(run: Run) -> pa.Array:
    """The kinds of messages in which some event of the run was delivered."""
    return run.table("deliver", "via")["via"].unique().cast(pa.string())


@family(
    Measure(
        "overhead",
        "overhead (packets per delivery)",
        "Packets sent for each delivered pair, beacons included, background traffic not",
        unit="packets",
        good="low",
    ),
    Measure(
        "overhead_data",
        "overhead without control (packets per delivery)",
        "Packets of the kinds that carried events, for each delivered pair",
        unit="packets",
        good="low",
    ),
    Measure(
        "bits_per_delivery",
        "cost (bits per delivery)",
        "Bits on the air for each delivered pair, beacons included, background traffic not",
        unit="bit",
        good="low",
    ),
    Measure(
        "airtime_per_delivery",
        "cost (ms on the air per delivery)",
        "Time on the air for each delivered pair, beacons included, background traffic not",
        unit="ms",
        good="low",
    ),
    Measure(
        "duplicates",
        "duplicates (per delivery)",
        "Events that brokers received once more, for each delivered pair",
        good="low",
    ),
)
def cost(run: Run) -> Values:
    sent, delivered = ours(run), int(pairs(run).reached.sum())
    data = sent.filter(pc.is_in(sent["kind"], carriers(run)))
    notes = run.table("note", "fact", "count")
    return {
        "overhead": ratio(total(sent, "packets"), delivered),
        "overhead_data": ratio(total(data, "packets"), delivered),
        "bits_per_delivery": ratio(total(sent, "bits"), delivered),
        "airtime_per_delivery": ratio(total(sent, "airtime") / _MILLISECOND, delivered),
        "duplicates": ratio(total(notes.filter(pc.equal(notes["fact"], "duplicate")), "count"), delivered),
    }
