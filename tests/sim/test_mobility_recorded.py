"""Recorded movement: what the two readers make of hand-written files, and every line they refuse."""

from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

import pytest

from roamcast.sim.mobility import FOREVER, Area, Leg, Recorded, ScenarioError
from roamcast.sim.mobility.lines import Refused
from roamcast.sim.mobility.samples import SampleColumns
from roamcast.units import SECOND

DATA = Path(__file__).parent / "data"
AREA = Area(width=100.0, height=200.0)
S = SECOND


def legs(text: str, folder: Path, nodes: int = 1) -> list[list[Leg]]:
    (folder / "trace").write_text(text)
    return [list(walk) for walk in Recorded(file="trace").walks(AREA, nodes, 1, folder)]


@pytest.mark.parametrize("form", ["auto", "ns2"])
def test_the_ns2_sample(form: Literal["auto", "ns2"]) -> None:
    first, second = Recorded(file="walk.tcl", format=form).walks(AREA, 2, 1, DATA)
    # 50 m at 5 m/s.
    assert list(first) == [
        Leg(0, 10 * S, 10, 20, 10, 20),
        Leg(10 * S, 20 * S, 10, 20, 40, 60),
        Leg(20 * S, FOREVER, 40, 60, 40, 60),
    ]
    # After 2 s at 10 m/s it is at 20 m, and goes on to 50 m: there after 3 s more. But after 2 s it turns, at 40 m;
    # towards (50, 90) it is √(10² + 90²) m, of which it walks 30 m before it stops.
    part = 30 / (100 + 8100) ** 0.5
    walk = list(second)
    assert walk[:3] == [Leg(0, 2 * S, 0, 0, 0, 0), Leg(2 * S, 4 * S, 0, 0, 20, 0), Leg(4 * S, 6 * S, 20, 0, 40, 0)]
    assert walk[3] == pytest.approx(Leg(6 * S, 7 * S, 40, 0, 40 + 10 * part, 90 * part))
    assert walk[4] == Leg(7 * S, FOREVER, walk[3].x1, walk[3].y1, walk[3].x1, walk[3].y1)
    assert len(walk) == 5


@pytest.mark.parametrize("form", ["auto", "csv"])
def test_the_csv_sample(form: Literal["auto", "csv"]) -> None:
    first, second = Recorded(file="walk.csv", format=form).walks(AREA, 2, 1, DATA)
    assert list(first) == [
        Leg(0, 5 * S, 10, 20, 10, 20),
        Leg(5 * S, 10 * S, 10, 20, 30, 40),
        Leg(10 * S, 20 * S, 30, 40, 30, 40),
        Leg(20 * S, FOREVER, 30, 40, 30, 40),
    ]
    assert list(second) == [Leg(0, 5 * S // 2, 0, 0, 100, 0), Leg(5 * S // 2, FOREVER, 100, 0, 100, 0)]


def test_a_node_without_commands_stays(tmp_path: Path) -> None:
    assert legs("$node_(0) set X_ 1\n$node_(0) set Y_ 2\n", tmp_path) == [[Leg(0, FOREVER, 1, 2, 1, 2)]]


def test_of_two_commands_at_once_the_later_holds(tmp_path: Path) -> None:
    text = (
        '$ns_ at 0 "$node_(0) setdest 9 2 1"\n$ns_ at 0 "$node_(0) setdest 1 4 1"\n'
        "$node_(0) set X_ 1\n$node_(0) set Y_ 2\n"
    )
    assert legs(text, tmp_path) == [[Leg(0, 2 * S, 1, 2, 1, 4), Leg(2 * S, FOREVER, 1, 4, 1, 4)]]


def test_a_node_that_never_arrives_walks_for_ever(tmp_path: Path) -> None:
    text = '$node_(0) set X_ 0\n$node_(0) set Y_ 0\n$ns_ at 0 "$node_(0) setdest 100 0 1e-300"\n'
    ((leg,),) = legs(text, tmp_path)
    assert (leg.start, leg.end) == (0, FOREVER)


def test_windows_lines_a_byte_order_mark_and_blanks_do_no_harm(tmp_path: Path) -> None:
    text = "\ufefftime, node, x, y\r\n\r\n0, 0, 1, 2\r\n"
    assert legs(text, tmp_path) == [[Leg(0, FOREVER, 1, 2, 1, 2)]]


def test_a_log_with_other_columns_in_any_order_is_read(tmp_path: Path) -> None:
    """As `roamcast traces import` reads it: of two samples at one time, the greater counts."""
    text = "# a log\nTimestamp;battery;Device;Y;X\n4;90;0;2;5\n0;99;0;2;1\n4;90;0;2;3\n0;99;0;2;1\n"
    assert legs(text, tmp_path) == [[Leg(0, 4 * S, 1, 2, 5, 2), Leg(4 * S, FOREVER, 5, 2, 5, 2)]]


def test_times_since_1970_are_no_times_of_a_run(tmp_path: Path) -> None:
    for time in ("1577836800", "1577836800000", "2020-01-01T00:00:00Z"):
        with pytest.raises(ScenarioError, match="begins at 1577836800 s, and times are since the start of a run"):
            legs(f"time,node,x,y\n{time},0,1,2\n", tmp_path)


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        ("12.5", 12.5),
        ("99999999999", 99_999_999_999),
        ("1700000000000", 1_700_000_000),
        ("1700000000000000", 1_700_000_000),
        ("1700000000000000000", 1_700_000_000),
        ("2023-11-14T22:13:20Z", 1_700_000_000),
        ("2023-11-14 23:13:20", 1_700_000_000),  # Rome, in winter
        ("2023-11-14 22:13:20.5+00:00", 1_700_000_000.5),
        ("2024-10-27 01:59:59", 1_729_987_199),  # the last second before an hour that comes twice
        ("2024-10-27 03:00", 1_729_994_400),
        ("2024-10-27 02:00", None),
        ("2024-10-27 02:59:59", None),
        ("2024-03-31 02:30", None),  # clocks went from 2:00 to 3:00
    ],
)
def test_what_a_time_means(time: str, seconds: float | None) -> None:
    columns = SampleColumns.of_line("id,time,x,y", zone=ZoneInfo("Europe/Rome"))
    if seconds is not None:
        assert columns.parse(f"a,{time},1,2").t == pytest.approx(seconds, abs=1e-6)
    else:
        with pytest.raises(Refused, match="its time comes twice or not at all in Europe/Rome"):
            columns.parse(f"a,{time},1,2")


def test_lines_of_ns2_that_other_tools_write_are_read(tmp_path: Path) -> None:
    """A third dimension, routing agents; of two initial positions, the later counts, as Tcl has it."""
    text = (
        "$node_(0) set X_ 7\n$node_(0) set X_ 1\n$node_(0) set Y_ 2\nset val(nn) 1\n"
        '$ns_ at 0.0 "$node_(0) setdest 1 4 1 0.0"\n$ns_ at 9 "[$node_(0) set ragent_] RoutingAgent activate"\n'
    )
    assert legs(text, tmp_path) == [[Leg(0, 2 * S, 1, 2, 1, 4), Leg(2 * S, FOREVER, 1, 4, 1, 4)]]


NS2 = "$node_(0) set X_ 1\n$node_(0) set Y_ 2\n$node_(1) set X_ 1\n$node_(1) set Y_ 2\n"
CSV = "time,node,x,y\n0,0,1,2\n0,1,1,2\n"
SETDEST = '$ns_ at {} "$node_({}) setdest {} {} {}"'

REFUSED: list[tuple[str, str, str]] = [
    (NS2, "hello", "line 5: expected '$node_(i) set X_ x' or '$ns_ at t \"$node_(i) setdest x y speed\"'"),
    (NS2, "$node_(2) set X_ 1", "line 5: node 2: the scenario has nodes 0 to 1"),
    (NS2, "$node_(a) set X_ 1", "line 5: expected the number of a node, not 'a'"),
    (NS2, '$ns_ at 1.0 "$node_(0) set X_ 5"', "line 5: a node cannot jump"),
    (NS2, SETDEST.format(-1, 0, 1, 1, 1), "line 5: time is below 0"),
    (NS2, SETDEST.format("nan", 0, 1, 1, 1), "line 5: time is not a number"),
    (NS2, SETDEST.format("5e9", 0, 1, 1, 1), "line 5: time 5e+09 s: it must be 0 or more, and below 4.6e9"),
    (NS2, SETDEST.format(1, 7, 1, 1, 1), "line 5: node 7: the scenario has nodes 0 to 1"),
    (NS2, SETDEST.format(1, 0, 101, 1, 1), "line 5: node 0 at x = 101 m: it must lie in the area, 0 to 100 m"),
    (NS2, SETDEST.format(1, 0, 1, 200.5, 1), "line 5: node 0 at y = 200.5 m: it must lie in the area, 0 to 200 m"),
    (NS2, SETDEST.format(1, 0, 1, "inf", 1), "line 5: y is not a number"),
    (NS2, SETDEST.format(1, 0, "1_0", 1, 1), "line 5: x is not a number"),
    (NS2, SETDEST.format(1, 0, 1, 1, -1), "line 5: speed is below 0"),
    (NS2, SETDEST.format(1, 0, 1, 1, "fast"), "line 5: speed is not a number"),
    (CSV, "1,0,1", "line 4: expected 4 values: time,node,x,y"),
    (CSV, "1,0,1,2,3", "line 4: expected 4 values: time,node,x,y"),
    (CSV, "1,2,1,2", "line 4: node 2: the scenario has nodes 0 to 1"),
    (CSV, "1,-1,1,2", "line 4: expected the number of a node, not '-1'"),
    (CSV, "1,0.0,1,2", "line 4: expected the number of a node, not '0.0'"),
    (CSV, "1,0,x,2", "line 4: x is not a number"),
    (CSV, "1,0,1,nan", "line 4: y is not a number"),
    (CSV, "1,0,-0.5,2", "line 4: node 0 at x = -0.5 m: it must lie in the area, 0 to 100 m"),
    (CSV, "-1,0,1,2", "line 4: time -1 s: it must be 0 or more"),
    (CSV, "noon,0,1,2", "line 4: its time is not a time"),
    (CSV, "0,,1,2", "line 4: it has no id"),
    ("", "time,node,x", "line 1: no column is the longitude (or x): there are time, node, x; usual names are lon"),
    ("", "time,node,x,x", "line 1: no column is the longitude (or x): there are time, node, x, x; usual names are"),
    (
        "",
        "time,node,lat,lon",
        "line 1: is in degrees, and a scenario needs metres: make a trace of it with roamcast traces",
    ),
    ("", "x" * 200, "line 1: expected movement of ns-2 ($node_…) or a header such as time,node,x,y"),
]


@pytest.mark.parametrize(("before", "line", "rule"), REFUSED)
def test_a_bad_line_is_named_with_its_file_number_text_and_rule(
    before: str, line: str, rule: str, tmp_path: Path
) -> None:
    with pytest.raises(ScenarioError) as caught:
        legs(f"{before}{line}\n", tmp_path, nodes=2)
    head, text = str(caught.value).split("\n")
    assert head.startswith(f"{tmp_path / 'trace'}, {rule}")
    assert text == "  " + (line if len(line) <= 120 else f"{line[:120]}…")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "it is empty: expected movement of ns-2 or samples time,node,x,y"),
        ("# nothing\n\n", "it is empty: expected movement of ns-2 or samples time,node,x,y"),
        ("time,node,x,y\n0,0,1,2\n", "node 1 has no samples; the scenario has nodes 0 to 1"),
        (
            "$node_(0) set X_ 1\n$node_(0) set Y_ 2\n",
            "node 1 has no initial position (X_); the scenario has nodes 0 to 1",
        ),
        (NS2.replace("$node_(0) set Y_ 2", ""), "node 0 has no initial position (Y_); the scenario has nodes 0 to 1"),
    ],
)
def test_what_a_file_lacks_is_named(text: str, rule: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        legs(text, tmp_path, nodes=2)
    assert str(caught.value) == f"{tmp_path / 'trace'}: {rule}"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing.csv", "cannot be read: No such file or directory"),
        (".", "is not a trace (trace.json is missing): make one with roamcast traces import"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(name: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        Recorded(file=name).walks(AREA, 1, 1, tmp_path)
    assert str(caught.value) == f"{tmp_path / name}: {reason}"


def test_bytes_that_are_no_text_are_shown_escaped(tmp_path: Path) -> None:
    (tmp_path / "trace").write_bytes(b"time,node,x,y\n\xff\xfe,0,1,2\n")
    with pytest.raises(ScenarioError, match=r"line 2: its time is not a time\n  \\xff\\xfe,0,1,2"):
        Recorded(file="trace").walks(AREA, 1, 1, tmp_path)


def test_a_broken_file_has_no_problems_before_it_is_read() -> None:
    assert list(Recorded(file="missing.csv").problems(AREA, 1)) == []
