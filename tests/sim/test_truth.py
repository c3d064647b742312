"""What the radio makes of movement, against an independent computation with numpy from the recorded legs."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from roamcast.facts.sinks import MemorySink
from roamcast.sim.run import run
from roamcast.sim.scenario.scenario import check

NODES, SIDE, RANGE = 100, 1000.0, 150.0
Floats = npt.NDArray[np.float64]


def sink_of(**more: Any) -> MemorySink:  # noqa: ANN401  # fields of a scenario
    raw = {
        "nodes": NODES,
        "duration": 60.0,
        "area": {"width": SIDE, "height": SIDE},
        "movement": {"model": "random-waypoint", "speed": [10.0, 20.0]},
        "radio": {"propagation": "unit-disk", "range": RANGE},
        "mac": {"model": "ideal"},
        **more,
    }
    sink = MemorySink()
    run(check(raw, "truth", Path()), sink)
    return sink


def places(sink: MemorySink, times: npt.NDArray[np.int64]) -> Floats:
    """Positions by time, node and coordinate, interpolated from the legs."""
    leg = {
        name: column.to_numpy() for name, column in zip(sink.table("leg").column_names, sink.table("leg"), strict=True)
    }
    found = np.full((len(times), NODES, 2), np.nan)
    for node in range(NODES):
        mine = {name: column[leg["node"] == node] for name, column in leg.items()}
        which = np.searchsorted(mine["start"], times, side="right") - 1
        part = (times - mine["start"][which]) / (mine["end"] - mine["start"])[which]
        for place, (a, b) in enumerate((("x0", "x1"), ("y0", "y1"))):
            found[:, node, place] = mine[a][which] + (mine[b] - mine[a])[which] * part
    return found


def distances(at: Floats) -> Floats:
    return np.asarray(np.linalg.norm(at[:, None, :] - at[None, :, :], axis=2))


def test_every_beacon_reaches_exactly_the_nodes_in_range() -> None:
    sink = sink_of(background={"rate": 0.5, "size": 60, "reach": "neighbours"}, record={"frames": True})
    frame = sink.table("frame").to_pydict()
    heard = np.bincount(sink.table("reception")["frame"].to_numpy(), minlength=len(frame["frame"]))
    assert len(heard) == NODES * 30
    at = places(sink, np.array(frame["start"]))
    expected = [
        int((distances(now)[sender] <= RANGE).sum()) - 1 for now, sender in zip(at, frame["sender"], strict=True)
    ]
    assert heard.tolist() == expected
    # Nodes gather in the middle: the mean degree is above that of a uniform distribution even without borders.
    assert heard.mean() > (NODES - 1) * np.pi * RANGE**2 / SIDE**2


def component(near: npt.NDArray[np.bool_], start: int) -> int:
    reached, frontier = {start}, [start]
    while frontier:
        new = {int(other) for node in frontier for other in np.flatnonzero(near[node])} - reached
        reached |= new
        frontier = list(new)
    return len(reached)


def test_a_flood_reaches_the_publishers_connected_component() -> None:
    sink = sink_of(
        duration=200.0,
        workload={
            "subscribers": [{"count": NODES, "filter": "true"}],
            "publishers": [{"count": 2, "rate": 1.0}],
            "disjoint": False,
        },
        protocol={"name": "flooding", "parameters": {"jitter": 0.0}},
    )
    publish = sink.table("publish").to_pydict()
    at = places(sink, np.array(publish["time"]))
    sizes = [component(distances(now) <= RANGE, node) for now, node in zip(at, publish["node"], strict=True)]
    # A hop takes 1.5 ms, in which nobody moves far; a link in a thousand may come or go meanwhile.
    assert sink.table("deliver").num_rows == pytest.approx(sum(sizes), rel=0.005)
    assert 0.5 < np.mean(sizes) / NODES < 1.0
