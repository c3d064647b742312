"""Movement as sampled positions, in CSV.

A header has the names `time`, `node`, `x`, `y` in any order; then comes one row per sample. Times are in s, coordinates
in m. Between two samples a node moves straight at constant speed; before the first and after the last it stands
still. The times of a node increase from row to row; rows of different nodes may be mixed in any way.
"""

from array import array
from collections.abc import Iterator
from typing import Final, NamedTuple

from roamcast.sim.mobility.base import Area, Leg, Pen
from roamcast.sim.mobility.lines import Lines

COLUMNS: Final = ("time", "node", "x", "y")


class Samples(NamedTuple):
    """The samples of one node. Arrays, since a file may have many millions: 24 bytes each instead of 150."""

    times: "array[int]"
    xs: "array[float]"
    ys: "array[float]"


def read_samples(lines: Lines, area: Area, nodes: int) -> list[Iterator[Leg]]:
    samples = [Samples(array("q"), array("d"), array("d")) for _ in range(nodes)]
    rows = iter(lines)
    header = [name.strip() for name in next(rows, "").split(",")]
    if sorted(header) != sorted(COLUMNS):
        raise lines.error(f"expected the header {','.join(COLUMNS)}, in any order")
    time_at, node_at, x_at, y_at = map(header.index, COLUMNS)
    for text in rows:
        if not text:
            continue
        row = text.split(",")
        if len(row) != len(COLUMNS):
            raise lines.error(f"expected {len(COLUMNS)} values: {','.join(header)}")
        node, time = lines.node(row[node_at].strip()), lines.time(row[time_at].strip())
        times, xs, ys = samples[node]
        if times and time <= times[-1]:
            raise lines.error(f"node {node} at {time / 1e9:.9g} s, after {times[-1] / 1e9:.9g} s: times must increase")
        times.append(time)
        xs.append(lines.coordinate("x", row[x_at].strip(), node))
        ys.append(lines.coordinate("y", row[y_at].strip(), node))
    for node, own in enumerate(samples):
        if not own.times:
            raise lines.missing(node, "samples")
    return [_walk(own, area) for own in samples]


def _walk(samples: Samples, area: Area) -> Iterator[Leg]:
    pen = Pen(area, (samples.xs[0], samples.ys[0]))
    for time, x, y in zip(*samples, strict=True):
        yield from pen.move((x, y), time)
    yield from pen.stay()
