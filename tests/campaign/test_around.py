"""Scenarios around a trace: every seed can run them, whatever window of the trace it draws."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from roamcast.campaign.define.around_trace import around_trace, in_words
from roamcast.sim.mobility import ScenarioError
from roamcast.sim.mobility.trace import LEGS, LINKS, TraceDescription, least_present
from roamcast.sim.scenario.recordings import check_recordings
from roamcast.sim.scenario.scenario import check

S = 1_000_000_000
Stay = tuple[int, int, int]
"""A node, and from when to when it is there, in s."""


def trace(folder: Path, stays: Sequence[Stay], span: float, width: float = 50.0) -> Path:
    """A trace of nodes that stand still."""
    rows = [dict(zip(LEGS.names, (node, a * S, b * S, 0, 0, 0, 0), strict=True)) for node, a, b in stays]
    return _written(
        folder, "positions", pa.Table.from_pylist(rows, LEGS), span, len({stay[0] for stay in stays}), width
    )


def contacts(folder: Path, met: Sequence[tuple[int, int, int, int]], span: float) -> Path:
    """A trace of who met whom, and from when to when, in s."""
    rows = [dict(zip(LINKS.names, (a, b, start * S, end * S), strict=True)) for a, b, start, end in met]
    nodes = len({node for a, b, _, _ in met for node in (a, b)})
    return _written(folder, "contacts", pa.Table.from_pylist(rows, LINKS), span, nodes, 0.0)


def _written(
    folder: Path, kind: Literal["positions", "contacts"], rows: pa.Table, span: float, nodes: int, width: float
) -> Path:
    place = folder / "rides.trace"
    part = place / ("legs" if kind == "positions" else "links")
    part.mkdir(parents=True)
    pq.write_table(rows, part / "part-00000.parquet")
    about = TraceDescription(
        version=1, kind=kind, format="csv", source="x", nodes=nodes, begins=0, span=span, width=width, rows=len(rows)
    )
    (place / "trace.json").write_bytes(msgspec.json.encode(about))
    return place


def test_at_most_a_hundred_nodes(tmp_path: Path) -> None:
    place = trace(tmp_path, [(node, 0, 100) for node in range(250)], 100, width=799.2)
    made = check(around_trace(place), "x", tmp_path)
    assert (made.name, made.nodes, made.duration, made.warmup) == ("rides", 100, 80.0, 16.0)
    assert (made.area.width, made.area.height) == (800, 1)  # type: ignore[union-attr]
    assert (made.workload.subscribers[0].count, made.workload.publishers[0].count) == (20, 5)
    assert in_words(around_trace(place), place) == (
        f"each seed draws 80 s of {place} and 100 of its 250 nodes (the most that are taken); 20 want everything, 5 "
        "publish 256 bytes every 5 s. The trace has only 100 s: seeds overlap, and intervals say little about other "
        "days"
    )


def test_a_long_trace_has_windows_that_do_not_overlap(tmp_path: Path) -> None:
    place = trace(tmp_path, [(node, 0, 3000) for node in range(40)], 3000)
    assert in_words(around_trace(place), place) == (
        f"each seed draws 300 s of {place} and 40 of its 40 nodes (as many as any 300 s of it have); 8 want "
        "everything, 2 publish 256 bytes every 5 s"
    )


def test_contacts_are_links(tmp_path: Path) -> None:
    place = contacts(tmp_path, [(node, node + 6, 0, 100) for node in range(6)], 100)
    made = check(around_trace(place), "x", tmp_path)
    assert (made.nodes, made.radio.propagation) == (12, "links")


def test_every_seed_draws_a_window_with_enough_nodes(tmp_path: Path) -> None:
    """Twenty vehicles are there all the time, another leaves after 10 s, and windows begin from 0 to 20 s."""
    place = trace(tmp_path, [*((node, 0, 100) for node in range(20)), (20, 0, 10)], 100)
    raw = around_trace(place)
    assert raw["nodes"] == 20
    for seed in range(1, 41):
        check_recordings(check({**raw, "seed": seed}, "x", tmp_path), "x", tmp_path)
    assert f"80 s of {place} and 20 of its 21 nodes (as many as any 80 s of it have)" in in_words(raw, place)


def test_where_nobody_is_there_is_no_network(tmp_path: Path) -> None:
    place = trace(tmp_path, [(0, 0, 2000), (1, 0, 100), (2, 1900, 2000)], 2000)
    with pytest.raises(ScenarioError, match=r"some 300 s of it have only 1 of its 3 nodes, too few .*--from, --to"):
        around_trace(place)


# --- How many nodes are there ---------------------------------------------------------------------------------------


def test_who_comes_and_goes(tmp_path: Path) -> None:
    """Node 1 is missed by windows of 10 s that begin at 20 or later and end at 40 or earlier."""
    place = trace(tmp_path, [(0, 0, 60), (1, 0, 20), (1, 40, 60)], 60)
    assert [least_present(place, window) for window in (10.0, 20.0, 20.1, 60.0)] == [1, 1, 2, 2]


def test_contacts_count_for_both_ends(tmp_path: Path) -> None:
    """A long contact outlasts later ones; nobody meets anybody between 30 and 50 s."""
    place = contacts(tmp_path, [(0, 1, 0, 30), (0, 2, 5, 10), (1, 2, 50, 60)], 60)
    assert [least_present(place, window) for window in (10.0, 30.0, 45.0)] == [0, 2, 3]


@pytest.mark.parametrize("seed", range(20))
def test_as_counted_window_by_window(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, 35, 12)
    stays = [
        (int(node), int(start), int(start + length))
        for node, start, length in zip(rng.integers(0, 5, 12), starts, rng.integers(1, 6, 12), strict=True)
    ]
    window = int(rng.integers(3, 25))
    halves = range(2 * (40 - window) + 1)
    counted = min(
        len({node for node, start, end in stays if end > half / 2 and start < half / 2 + window}) for half in halves
    )
    assert least_present(trace(tmp_path, stays, 40), window) == counted
