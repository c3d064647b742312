"""What was sent, and what became of it: totals of the measured time, and losses as shares of all that was meant to be
heard."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roamcast.analysis.measures.measure import Measure, Values, family
from roamcast.analysis.run import Run, once, ratio
from roamcast.facts.schema import BACKGROUND_ROLE, COUNTERS, DATA_ROLE, LOSSES
from roamcast.units import SECOND

_COUNTED: Final = ("messages", *COUNTERS)


@once
def totals(run: Run) -> pa.Table:
    """(kind, role, and totals) of the seconds that begin after the warm-up and before the cooldown; of messages that
    carry events, in the cooldown too."""
    series = run.table("series", "second", "kind", "role", *_COUNTED)
    time, data = series["second"].to_numpy() * SECOND, pc.equal(series["role"], DATA_ROLE).to_numpy()
    measured = series.filter(pa.array((time >= run.start) & ((time < run.stop) | data)))
    summed = measured.group_by(["kind", "role"]).aggregate([(column, "sum") for column in _COUNTED])
    return summed.rename_columns([name.removesuffix("_sum") for name in summed.column_names])


@once
def ours(run: Run) -> pa.Table:
    """The same without background traffic, which only loads the network."""
    rows = totals(run)
    return rows.filter(pc.not_equal(rows["role"], BACKGROUND_ROLE))


def total(rows: pa.Table, column: str) -> int:
    """The sum of a column of counters; 0 if there are no rows."""
    return int(np.sum(rows[column].to_numpy(), dtype=np.int64))


def _share(name: str, title: str, description: str) -> Measure:
    return Measure(name, title, description, share=True, good="low")


@family(
    _share("lost_collision", "lost by collision (share of receptions)", "Share of frames lost to other frames"),
    _share(
        "lost_half_duplex",
        "lost while sending (share of receptions)",
        "Share of frames lost because the receiver was sending",
    ),
    _share(
        "lost_random",
        "lost by chance (share of receptions)",
        "Share of frames lost by chance: the radio's or the link's loss",
    ),
    _share(
        "queue_full",
        "dropped by a full queue (share of frames)",
        "Share of messages that found the sender's queue full and were never sent",
    ),
    _share("unreachable", "unreachable (share of frames)", "Share of unicast messages that the sender gave up"),
)
def losses(run: Run) -> Values:
    rows = totals(run)
    lost = {loss: total(rows, loss) for loss in LOSSES}
    meant = total(rows, "receptions") + sum(lost.values())
    return {
        "lost_collision": ratio(lost["collision"], meant),
        "lost_half_duplex": ratio(lost["half_duplex"], meant),
        "lost_random": ratio(lost["random_loss"], meant),
        "queue_full": ratio(lost["queue_full"], meant),
        "unreachable": ratio(lost["unreachable"], meant),
    }
