"""A trace: recorded movement or contacts in a folder, as `roamcast traces import` writes it and a scenario names it.

```
trace.json         what it is: `TraceDescription`
legs/*.parquet     of positions: (node, start, end, x0, y0, x1, y1), times in ns, coordinates in m, by time
links/*.parquet    of contacts: (a, b, start, end), a < b
nodes.parquet      (node, id): what the recording calls each node
refused/*.parquet  (reason, line): what was not understood
```

The rules this file owns:

* A node is there during its legs. Between them, before the first and after the last it is away, unless the trace is
  `continuous`: made of waypoints, not of reports, so that silence means rest.
* A run takes a *window* of the trace and as many of its nodes as the scenario has. Where the window begins and which
  nodes are taken may be drawn from the seed: then runs differ in their movement, and intervals over seeds contain the
  variance of the movement. With the same window and nodes in every run, they say nothing about other days or people.
* A node is in a window if one of its legs or contacts overlaps it. A window that begins at t and lasts w overlaps what
  starts before t + w and ends after t, so a node is missed by the windows that begin between two of its stays more than
  w apart.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Annotated, Any, Final, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Meta

from roamcast.config.errors import decode_bytes
from roamcast.sim.mobility.base import FOREVER, Area, Leg, Pen, ScenarioError
from roamcast.units import SECOND

VERSION: Final = 1
ABOUT_FILE: Final = "trace.json"
NODES_FILE: Final = "nodes.parquet"
LEGS: Final = pa.schema(
    [("node", pa.int32()), *((name, pa.int64()) for name in ("start", "end"))]
    + [(name, pa.float64()) for name in ("x0", "y0", "x1", "y1")]
)
LINKS: Final = pa.schema([("a", pa.int32()), ("b", pa.int32()), ("start", pa.int64()), ("end", pa.int64())])
_AT_ONCE: Final = 1 << 16
"""How many changes of links are converted to Python numbers at a time."""

Subset = Annotated[
    Literal["first", "drawn"],
    Meta(description="Which nodes to take if the trace has more than the scenario: the first, or drawn from the seed."),
]
Window = Annotated[
    Annotated[float, Meta(gt=0, le=1e9)] | None,
    Meta(description="How much of the trace to take, s, from a time drawn from the seed; none: from its beginning."),
]


class Speeds(msgspec.Struct, frozen=True, kw_only=True):
    """The speeds of a trace's legs, m/s."""

    median: float
    p95: float
    most: float
    implausible: float
    """The share of legs that are faster than anything that carries a radio on the ground."""


class TraceDescription(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a trace, in `trace.json`."""

    version: int
    kind: Literal["positions", "contacts"]
    format: str
    source: str
    nodes: int
    begins: float
    """The time in the recording that is 0 here, s."""
    span: float
    """s."""
    width: float = 0.0
    height: float = 0.0
    rows: int
    """Legs or links."""
    samples: int = 0
    refused: dict[str, int] = {}
    """The number of lines that were not understood, by reason."""
    continuous: bool = False
    corner: tuple[float, float] | None = None
    """Where (0, 0) is in the recording's own coordinates, x or east first."""
    geographic: bool = False
    speeds: Speeds | None = None
    """None for contacts, if there are no legs, and in traces made before this was recorded."""


def is_trace(folder: Path) -> bool:
    return (folder / ABOUT_FILE).is_file()


def read_about(folder: Path, kind: str | None = None) -> TraceDescription:
    """Reads the description; refuses what is not a trace, or not of this kind."""
    file = folder / ABOUT_FILE
    try:
        content = file.read_bytes()
    except OSError:
        raise ScenarioError(
            f"{folder}: is not a trace ({ABOUT_FILE} is missing): make one with roamcast traces import"
        ) from None
    about = decode_bytes(content, TraceDescription, f"{file}: cannot be read", ScenarioError, "JSON")
    if about.version != VERSION:
        raise ScenarioError(f"{folder}: is a trace of version {about.version}, not {VERSION}: import it again")
    if kind not in (None, about.kind):
        raise ScenarioError(f"{folder}: is a trace of {about.kind}, not of {kind}")
    return about


def leg_walks(
    folder: Path, area: Area, nodes: int, seed: int, window: float | None, subset: str
) -> list[Iterator[Leg]]:
    """One walk per node of the scenario; a leg tells whether the node is absent."""
    about = read_about(folder, "positions")
    if about.width > area.width or about.height > area.height:
        raise ScenarioError(
            f"{folder}: is {about.width:g} m × {about.height:g} m and does not fit an area of {area}: "
            f"give [area] width = {np.ceil(about.width):g}, height = {np.ceil(about.height):g}"
        )
    begin, end = _window(about, window, seed, folder)
    table = _rows(folder / "legs", LEGS, begin, end)
    taken = _taken(pc.unique(table["node"]).to_pylist(), nodes, seed, subset, folder)
    table = table.filter(pc.is_in(table["node"], pa.array(taken, pa.int32())))
    table = table.sort_by([("node", "ascending"), ("start", "ascending")])
    columns = {name: table[name].to_numpy() for name in LEGS.names}
    edges = np.searchsorted(columns["node"], [*taken, taken[-1] + 1] if taken else [0])
    walks = []
    for first, node in zip(edges, taken, strict=False):
        last = int(np.searchsorted(columns["node"], node, side="right"))
        own = {name: column[first:last] for name, column in columns.items()}
        walks.append(_walk(own, area, begin, about.continuous))
    return walks


def _walk(own: dict[str, Any], area: Area, begin: int, continuous: bool) -> Iterator[Leg]:
    starts, ends = (own[name] - begin for name in ("start", "end"))
    x0, y0, x1, y1 = (own[name] for name in ("x0", "y0", "x1", "y1"))
    # A leg that has begun before the window starts part of the way along.
    part = min(max(-int(starts[0]) / int(ends[0] - starts[0]), 0.0), 1.0)
    first = (float(x0[0] + part * (x1[0] - x0[0])), float(y0[0] + part * (y1[0] - y0[0])))
    pen = Pen(area, first)
    for number in range(len(starts)):
        if starts[number] > pen.time:
            yield from pen.move((float(x0[number]), float(y0[number])), int(starts[number]), absent=not continuous)
        yield from pen.move((float(x1[number]), float(y1[number])), int(ends[number]))
    yield from pen.stay(absent=not continuous)


def link_changes(
    folder: Path, nodes: int, seed: int, window: float | None, subset: str
) -> Iterator[tuple[int, int, int, bool]]:
    """(time in ns, a, b, whether they can hear each other from then on), in the order of time.

    Errors in the trace are raised by the call, not by the first change.
    """
    about = read_about(folder, "contacts")
    begin, end = _window(about, window, seed, folder)
    table = _rows(folder / "links", LINKS, begin, end)
    columns = {name: table[name].to_numpy() for name in LINKS.names}
    present = np.union1d(columns["a"], columns["b"]).tolist()
    taken = np.array(_taken(present, nodes, seed, subset, folder), np.int64)
    both = np.isin(columns["a"], taken) & np.isin(columns["b"], taken)
    a, b = (np.searchsorted(taken, columns[name][both]) for name in ("a", "b"))
    time = np.concatenate([np.maximum(columns["start"][both] - begin, 0), columns["end"][both] - begin])
    comes = np.arange(len(time)) < len(a)
    # At one instant, ends go first: contacts that touch are one.
    order = np.lexsort((np.tile(b, 2), np.tile(a, 2), comes, time))
    changes = tuple(column[order] for column in (time, np.tile(a, 2), np.tile(b, 2), comes))
    return _rows_of(changes)


def least_present(folder: Path, window: float) -> int:
    """The least number of nodes in any window of `window` seconds that a seed may draw.

    It is exact: it is computed wherever a node comes or goes.
    """
    about = read_about(folder)
    length, last = round(window * SECOND), round((about.span - window) * SECOND)
    table = _rows(folder / "links", LINKS) if about.kind == "contacts" else _rows(folder / "legs", LEGS)
    nodes = [name for name in table.column_names if name in ("a", "b", "node")]
    parts = [[table[name].to_numpy() for name in (node, "start", "end")] for node in nodes]
    stays = np.concatenate([np.array(part, np.int64) for part in parts], axis=1)
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


def _rows_of(columns: tuple[np.ndarray, ...]) -> Iterator[tuple[Any, ...]]:
    """Rows of columns, in batches: as Python numbers, a whole large trace would take five times the memory."""
    for first in range(0, len(columns[0]), _AT_ONCE):
        yield from zip(*(column[first : first + _AT_ONCE].tolist() for column in columns), strict=True)


def _window(about: TraceDescription, window: float | None, seed: int, folder: Path) -> tuple[int, int]:
    """The start and end of the window, in ns of the trace."""
    whole = round(about.span * SECOND)
    if window is None:
        return 0, whole
    if window > about.span:
        raise ScenarioError(f"{folder}: has {about.span:g} s, less than the window of {window:g} s")
    begin = round(Random(f"{seed}/trace/window").uniform(0, about.span - window) * SECOND)
    return begin, begin + round(window * SECOND)


def _taken(present: Sequence[int], nodes: int, seed: int, subset: str, folder: Path) -> list[int]:
    """The nodes of the trace that take part, by number: the first of them is the scenario's node 0."""
    if len(present) < nodes:
        raise ScenarioError(
            f"{folder}: has {len(present)} nodes in that time, but the scenario has {nodes}: lower nodes, or take a "
            "longer window"
        )
    ordered = sorted(present)
    return sorted(Random(f"{seed}/trace/nodes").sample(ordered, nodes)) if subset == "drawn" else ordered[:nodes]


def _rows(folder: Path, schema: pa.Schema, begin: int = -FOREVER, end: int = FOREVER) -> pa.Table:
    """The rows that overlap the window, with the columns of the schema."""
    import pyarrow.dataset as ds  # noqa: PLC0415  # it imports pandas: a second that few scenarios need

    try:
        whole = ds.dataset(folder, schema=schema, format="parquet", ignore_prefixes=[".", "_"])
        return whole.to_table(filter=(ds.field("end") > begin) & (ds.field("start") < end), use_threads=False)
    except (OSError, pa.ArrowException) as problem:
        raise ScenarioError(f"{folder}: cannot be read: {problem}") from None
