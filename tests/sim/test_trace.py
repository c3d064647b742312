"""Traces in scenarios: windows and subsets drawn by the seed, nodes that are not there, exports that read back."""

import math
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from roamcast.facts.sinks import MemorySink
from roamcast.sim.core import kernel, reference
from roamcast.sim.mobility import Area, Leg, RandomWaypoint, Recorded, ScenarioError, position
from roamcast.sim.mobility.export import ExportOptions, bonnmotion, gpx, ns2, one, taken
from roamcast.sim.mobility.trace import LEGS, LINKS, TraceDescription, leg_walks, link_changes
from roamcast.sim.run import run
from roamcast.sim.scenario.scenario import check

S = 1_000_000_000
AREA = Area(width=100, height=100)


def trace(folder: Path, rows: Sequence[tuple[Any, ...]], span: float, schema: pa.Schema = LEGS, **changes: Any) -> Path:  # noqa: ANN401
    """Rows with their times in s."""
    place = folder / "t.trace"
    kind = "legs" if schema is LEGS else "links"
    (place / kind).mkdir(parents=True)
    times = [schema.names.index(name) for name in ("start", "end")]
    fixed = [[round(value * S) if at in times else value for at, value in enumerate(row)] for row in rows]
    table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in fixed], schema)
    pq.write_table(table, place / kind / "part-00000.parquet")
    about = TraceDescription(
        version=1,
        kind="positions" if schema is LEGS else "contacts",
        format="csv",
        source="x",
        nodes=3,
        begins=0,
        span=span,
        width=50,
        height=50,
        rows=len(rows),
        **changes,
    )
    (place / "trace.json").write_bytes(msgspec.json.encode(about))
    return place


GAPPY = [(0, 10, 20, 0, 0, 10, 0), (0, 20, 30, 10, 0, 10, 10), (0, 50, 60, 20, 20, 30, 20), (2, 0, 60, 5, 5, 5, 5)]


def test_a_node_is_absent_where_it_has_no_leg(tmp_path: Path) -> None:
    first, second = leg_walks(trace(tmp_path, GAPPY, 60), AREA, 2, 1, None, "first")
    legs = list(first)
    assert [(leg.start / S, leg.end / S, leg.absent) for leg in legs[:-1]] == [
        (0, 10, True),
        (10, 20, False),
        (20, 30, False),
        (30, 50, True),
        (50, 60, False),
    ]
    assert legs[-1].absent
    assert all(a[4:6] == b[2:4] and a.end == b.start for a, b in pairwise(legs))
    assert [leg.absent for leg in second] == [False, True]


def test_waypoints_are_there_all_the_time(tmp_path: Path) -> None:
    walks = leg_walks(trace(tmp_path, GAPPY, 60, continuous=True), AREA, 2, 1, None, "first")
    assert not any(leg.absent for walk in walks for leg in walk)


def test_a_window_begins_where_the_seed_says_and_on_the_way(tmp_path: Path) -> None:
    place = trace(tmp_path, [(0, 0, 100, 0, 0, 50, 0)], 100)
    starts = set()
    for seed in range(20):
        (walk,) = leg_walks(place, AREA, 1, seed, 10.0, "first")
        leg = next(walk)
        begin = leg.x0 * 2  # it moves at 0.5 m/s
        assert 0 <= begin <= 90
        assert (leg.start, leg.x1) == (0, 50)
        assert leg.end / S == pytest.approx(100 - begin)
        starts.add(leg.x0)
    assert len(starts) == 20


def test_a_subset_is_drawn_of_the_nodes_that_are_there(tmp_path: Path) -> None:
    rows = [(node, 0, 100, node, 0, node, 0) for node in range(20)]
    place = trace(tmp_path, rows, 100)
    drawn = [tuple(next(walk).x0 for walk in leg_walks(place, AREA, 3, seed, None, "drawn")) for seed in range(30)]
    assert len(set(drawn)) > 20
    assert [next(walk).x0 for walk in leg_walks(place, AREA, 3, 1, None, "first")] == [0, 1, 2]
    with pytest.raises(ScenarioError, match="has 20 nodes in that time, but the scenario has 21"):
        leg_walks(place, AREA, 21, 1, None, "first")


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    place = trace(tmp_path, GAPPY, 60)
    with pytest.raises(ScenarioError, match=r"does not fit an area of .*: give \[area\] width = 50, height = 50"):
        leg_walks(place, Area(width=10, height=100), 1, 1, None, "first")
    with pytest.raises(ScenarioError, match="has 60 s, less than the window of 61 s"):
        leg_walks(place, AREA, 1, 1, 61.0, "first")
    with pytest.raises(ScenarioError, match="is a trace of positions, not of contacts"):
        link_changes(place, 1, 1, None, "first")


def scenario(file: str, **changes: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "nodes": 2,
        "duration": 60,
        "area": {"width": 100, "height": 100},
        "movement": {"model": "recorded", "file": file},
        "workload": {"subscribers": [{"nodes": [0]}], "publishers": [{"nodes": [1], "rate": 1}]},
        **changes,
    }


@pytest.mark.parametrize("absence", ["restart", "suspended"])
def test_a_run_hears_a_node_only_while_it_is_there(absence: str, tmp_path: Path) -> None:
    trace(tmp_path, GAPPY, 60)
    raw = scenario("t.trace")
    raw["movement"]["absence"] = absence
    facts = MemorySink()
    run(check(raw, "test", tmp_path), facts, folder=tmp_path, make_core=reference.Core)
    tables = facts.tables()
    away = [(row["time"] / S, row["node"], row["away"]) for row in tables["away"].to_pylist()]
    assert away == [(0, 0, True), (10, 0, False), (30, 0, True), (50, 0, False)]
    heard = [row["time"] / S for row in tables["deliver"].to_pylist()]
    assert heard
    assert all(10 <= time < 31 or time >= 50 for time in heard)


def test_recorded_contacts_are_links(tmp_path: Path) -> None:
    trace(tmp_path, [(0, 1, 0, 10), (0, 1, 20, 30), (1, 2, 5, 40)], 40, LINKS)
    raw = scenario("t.trace", nodes=3, duration=40, radio={"propagation": "links"}, links={"file": "t.trace"})
    for name in ("movement", "area"):
        del raw[name]
    facts = MemorySink()
    run(check(raw, "test", tmp_path), facts, folder=tmp_path, make_core=reference.Core)
    changes = [(row["time"] / S, row["sender"], row["loss"]) for row in facts.tables()["link"].to_pylist()]
    assert [change for change in changes if change[1] == 0] == [(0, 0, 0), (10, 0, None), (20, 0, 0), (30, 0, None)]
    heard = [row["time"] / S for row in facts.tables()["deliver"].to_pylist()]
    assert heard
    assert all(time < 10.1 or 20 <= time < 30.1 for time in heard)


def test_recorded_contacts_of_thousands_of_nodes(tmp_path: Path) -> None:
    """Node 0 meets node 3000 twice; only the second time is 3000 near 5999. All the others meet too."""
    early = [(node, node + 3000, 0, 10) for node in range(3000)]
    trace(tmp_path, [*early, (0, 3000, 20, 30), (3000, 5999, 20, 30)], 40, LINKS)
    raw = scenario("t.trace", nodes=6000, duration=40, radio={"propagation": "links"}, links={"file": "t.trace"})
    raw["workload"] = {"subscribers": [{"nodes": [3000, 5999]}], "publishers": [{"nodes": [0], "rate": 1}]}
    for name in ("movement", "area"):
        del raw[name]
    checked, found = check(raw, "test", tmp_path), []
    for core in (reference.Core, kernel.Core):
        facts = MemorySink()
        run(checked, facts, folder=tmp_path, make_core=core)
        found.append(facts.tables())
    assert all(found[0][name].equals(found[1][name]) for name in found[0])
    rows = [(row["node"], int(row["published"] / S)) for row in found[0]["deliver"].to_pylist()]
    assert [second for node, second in rows if node == 3000] == [*range(10), *range(20, 30)]
    assert [second for node, second in rows if node == 5999] == [*range(20, 30)]


# --- Exports, read back by readers of their own ---------------------------------------------------------------------


def walks() -> list[list[Leg]]:
    return taken(RandomWaypoint().walks(AREA, 5, 1, Path()), 60 * S)


def at(legs: list[Leg], time: int) -> tuple[float, float]:
    return position(next(leg for leg in legs if leg.start <= time < leg.end), time)


def test_ns2_reads_back_as_the_same_movement(tmp_path: Path) -> None:
    (tmp_path / "m.tcl").write_text("\n".join(ns2(walks(), 60 * S, ExportOptions(1.0))))
    back = taken(Recorded(file="m.tcl").walks(AREA, 5, 1, tmp_path), 60 * S)
    for mine, theirs in zip(walks(), back, strict=True):
        for second in range(60):
            assert math.dist(at(mine, second * S), at(theirs, second * S)) < 1e-3


def test_the_one_gets_a_header_and_a_line_a_tick_and_node() -> None:
    header, *lines = one(walks(), 60 * S, ExportOptions(2.0))
    assert [float(word) for word in header.split()][:2] == [0, 60]
    assert len(lines) == 31 * 5
    for line in lines:
        time, node, x, y = map(float, line.split())
        assert math.dist(at(walks()[int(node)], round(time * S)), (x, y)) < 1e-5


def test_bonnmotion_gets_a_line_a_node_of_waypoints() -> None:
    lines = list(bonnmotion(walks(), 60 * S, ExportOptions(1.0)))
    assert len(lines) == 5
    for legs, line in zip(walks(), lines, strict=True):
        numbers = list(map(float, line.split()))
        assert (numbers[0], numbers[-3]) == (0, 60)
        for time, x, y in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True):
            assert math.dist(at(legs, min(round(time * S), 60 * S - 1)), (x, y)) < 1e-5


def test_gpx_has_degrees_and_a_segment_for_each_time_that_a_node_is_there(tmp_path: Path) -> None:
    walks = taken(leg_walks(trace(tmp_path, GAPPY, 60), Area(width=50, height=50), 2, 1, None, "first"), 55 * S)
    lines = list(gpx(walks, 55 * S, ExportOptions(corner=(45.0, 7.0))))
    tracks = ElementTree.fromstring("\n".join(lines).encode()).findall("{*}trk")
    found = [[[_place(point) for point in part] for part in track.findall("{*}trkseg")] for track in tracks]
    # At 45 degrees north, a degree of latitude has 111,132 m, and one of longitude 78,847 m.
    walk = [(10, 0, 0), (20, 10, 0), (30, 10, 10)], [(50, 20, 20), (55, 25, 20)]
    assert found[0] == [[pytest.approx(point, abs=1e-3) for point in part] for part in walk]
    assert found[1] == [[pytest.approx(point, abs=1e-3) for point in ((0, 5, 5), (55, 5, 5))]]


def _place(point: ElementTree.Element) -> tuple[float, float, float]:
    """In s, and m east and north of the corner."""
    time = point.findtext("{*}time")
    assert time is not None
    seconds = datetime.fromisoformat(time).timestamp()
    return seconds, (float(point.attrib["lon"]) - 7) * 78_847, (float(point.attrib["lat"]) - 45) * 111_132


@pytest.mark.parametrize("format_", ["auto", "trace"])
def test_absences_of_a_trace_and_of_the_scenario_do_not_mix(format_: str, tmp_path: Path) -> None:
    trace(tmp_path, GAPPY, 60)
    raw = scenario("t.trace", away=[{"nodes": [0], "on": [2, 9], "off": [2, 9]}])
    raw["movement"]["format"] = format_
    with pytest.raises(ScenarioError, match="away: the trace already says when nodes are away"):
        check(raw, "test", tmp_path)
