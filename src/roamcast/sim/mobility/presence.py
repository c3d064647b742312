"""How many nodes of a trace are present in any window of it that a seed may draw.

The rule is that of `trace`: a node is in a window if one of its legs or contacts overlaps it. A window that begins at t
and lasts w overlaps what starts before t + w and ends after t, so a node is missed by the windows that begin between
two of its stays more than w apart. The least number is exact: it is computed wherever a node comes or goes.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from roamcast.sim.mobility.base import ScenarioError
from roamcast.sim.mobility.trace import read_about
from roamcast.units import SECOND


def least_present(trace: Path, window: float) -> int:
    """The least number of nodes in any window of `window` seconds."""
    about = read_about(trace)
    columns = ("a", "b") if about.kind == "contacts" else ("node",)
    length, last = round(window * SECOND), round((about.span - window) * SECOND)
    stays = _stays(trace / ("links" if about.kind == "contacts" else "legs"), columns)
    if not stays.size:
        return 0
    firsts, lasts = (np.sort(np.concatenate(ends)) for ends in zip(*_seen(stays, length), strict=True))
    begins = np.unique(np.concatenate([[0], firsts, lasts]))
    begins = begins[(begins >= 0) & (begins <= last)]
    present = np.searchsorted(firsts, begins, "left") - np.searchsorted(lasts, begins, "right")
    return int(present.min())


def _seen(stays: np.ndarray, length: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For each node, the open intervals of time in which a window of this length must begin to contain the node."""
    order = np.lexsort((stays[1], stays[0]))
    nodes, starts, ends = stays[:, order]
    edges = np.flatnonzero(np.diff(nodes)) + 1
    for own_starts, own_ends in zip(np.split(starts, edges), np.split(ends, edges), strict=True):
        latest = np.maximum.accumulate(own_ends)  # contacts of a node overlap
        apart = own_starts[1:] - length >= latest[:-1]
        yield own_starts[np.r_[True, apart]] - length, latest[np.r_[apart, True]]


def _stays(folder: Path, columns: tuple[str, ...]) -> np.ndarray:
    """Node, start and end of all rows, once per column that has a node."""
    import pyarrow.dataset as ds  # noqa: PLC0415  # it imports pandas: a second that few scenarios need

    try:
        whole = ds.dataset(folder, format="parquet", ignore_prefixes=[".", "_"])
        rows = whole.to_table(columns=[*columns, "start", "end"], use_threads=False)
    except (OSError, pa.ArrowException) as problem:
        raise ScenarioError(f"{folder}: cannot be read: {problem}") from None
    parts = [[rows[name].to_numpy() for name in (column, "start", "end")] for column in columns]
    return np.concatenate([np.array(part, np.int64) for part in parts], axis=1)
