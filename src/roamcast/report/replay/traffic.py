"""What was on the air: frames in the order of their starts, and what became of each at the nodes around."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roamcast.campaign.folder.recorded import RecordedRun
from roamcast.report.replay.pack import ColumnPack
from roamcast.units import SECOND

OUTCOMES: Final = ("received", "collision", "half_duplex", "random_loss")
"""Their numbers in the column `reception.outcome`."""


def add_traffic(pack: ColumnPack, run: RecordedRun, event_number: dict[int, int]) -> dict[str, Any]:
    """Adds the columns of frames and receptions, and the traffic per second; returns the kinds of frames."""
    frame, reception = run.tables["frame"], run.tables["reception"]
    roles = dict(zip(*(run.tables["transmit"][name].to_pylist() for name in ("kind", "role")), strict=True))
    kinds = sorted({*roles, *frame["kind"].unique().to_pylist()})
    start = frame["start"].to_numpy()
    order = np.argsort(start, kind="stable")
    pack.add("frame.start", start[order] / SECOND, "f8")
    pack.add("frame.end", frame["end"].to_numpy()[order] / SECOND, "f8")
    pack.add("frame.sender", frame["sender"].to_numpy()[order], "i4")
    pack.add("frame.to", frame["to"].fill_null(-1).to_numpy()[order], "i4")
    pack.add("frame.kind", _numbers(frame["kind"], kinds)[order], "u1")
    pack.add("frame.event", _numbers(frame["event"], list(event_number))[order], "i4")
    pack.add("frame.size", frame["size"].to_numpy()[order], "i4")
    _add_receptions(pack, order, reception["frame"].to_numpy(), reception["node"].to_numpy(), reception["outcome"])
    _add_series(pack, run)
    return {"kinds": [{"name": kind, "role": roles.get(kind, "data")} for kind in kinds], "outcomes": OUTCOMES}


def _add_receptions(pack: ColumnPack, order: Any, frame: Any, node: Any, outcome: Any) -> None:  # noqa: ANN401  # columns
    """Adds the receptions, grouped by frame, in the new order of the frames."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    moved = place[frame] if len(frame) else frame
    rows = np.argsort(moved, kind="stable")
    pack.add("reception.first", np.searchsorted(moved[rows], np.arange(len(order) + 1)), "i4")
    # Two bytes where they suffice: a large run has tens of millions of these.
    pack.add("reception.node", node[rows], "u2" if node.max(initial=0) < 1 << 16 else "i4")
    pack.add("reception.outcome", _numbers(outcome, OUTCOMES)[rows], "u1")


def _numbers(column: pa.ChunkedArray, known: Sequence[int | str]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The place of each value among the known ones; -1: it is null, or none of them."""
    places: np.ndarray[Any, np.dtype[np.int64]] = (
        pc.index_in(column, value_set=pa.array(known, column.type)).fill_null(-1).to_numpy()
    )
    return places


def _add_series(pack: ColumnPack, run: RecordedRun) -> None:
    """Adds packets, losses and receptions of the whole network per second, which the time axis shows."""
    series = run.tables["series"]
    seconds = int(np.ceil(run.scenario.duration))
    lost = sum(series[name].to_numpy() for name in ("collision", "half_duplex", "random_loss"))
    columns = {"packets": series["packets"].to_numpy(), "lost": lost, "received": series["receptions"].to_numpy()}
    for name, counted in columns.items():
        totals = np.zeros(seconds)
        np.add.at(totals, np.minimum(series["second"].to_numpy(), seconds - 1), counted)
        pack.add(f"series.{name}", totals, "f4")
