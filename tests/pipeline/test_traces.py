"""Recordings in every format, small enough to say by hand what must come out; and traces on their way to runs."""

import datetime
import gzip
import math
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from pipeline.measured import tables
from roamcast.analysis.contacts import Reach
from roamcast.analysis.contacts import contacts as contacts_of
from roamcast.cli.main import main
from roamcast.errors import RoamcastError
from roamcast.pipeline.traces import contacts as contacts_module
from roamcast.pipeline.traces import importing
from roamcast.pipeline.traces import text as text_module
from roamcast.pipeline.traces.contacts import contacts, pairs, positions
from roamcast.pipeline.traces.csv import parse_batch
from roamcast.pipeline.traces.describe import describe, island_of
from roamcast.pipeline.traces.formats import tell
from roamcast.pipeline.traces.importing import Options, contacts_trace, import_trace
from roamcast.pipeline.traces.samples import Selection
from roamcast.pipeline.traces.verdict import doubts
from roamcast.sim.mobility import Area, Recorded
from roamcast.sim.mobility.lines import Refused
from roamcast.sim.mobility.samples import SampleColumns
from roamcast.sim.mobility.trace import Speeds, TraceDescription, link_changes, read_about

S = 1_000_000_000
GRID = Path(__file__).parents[2] / "examples" / "traces" / "grid.fcd.xml.gz"

Row = tuple[Any, ...]


def imported(spark: SparkSession, file: Path, **options: Any) -> tuple[TraceDescription, list[Row], list[str]]:  # noqa: ANN401
    """What is known of the trace, its legs or links with times in s, and the names of its nodes."""
    out = file.with_name("out.trace")
    about = import_trace(spark, file, out, Options(**options))
    assert read_about(out) == about
    kind = "legs" if about.kind == "positions" else "links"
    keys = ("node", "start", "end", "x0", "y0", "x1", "y1") if kind == "legs" else ("a", "b", "start", "end")
    table = pq.read_table(out / kind, partitioning=None).sort_by([(key, "ascending") for key in keys[:3]])
    rows = [tuple(row[key] / S if key in ("start", "end") else row[key] for key in keys) for row in table.to_pylist()]
    return about, rows, pq.read_table(out / "nodes.parquet")["id"].to_pylist()


def written(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return file


FCD = """<?xml version="1.0"?>
<fcd-export>
  <timestep time="4.00"><vehicle id="bus.7" x="12.40" y="-1.60"/><person id="p" x="0.40" y="0.40"/></timestep>
  <timestep time="5.00"><vehicle id="bus.7" x="14.40" y="-1.60"/><vehicle id="10" x="oops" y="1"/></timestep>
  <timestep time="6.00"/>
  <timestep time="7.00"><vehicle id="10" x="2.40" y="8.40"/></timestep>
  <timestep time="8.00"><vehicle id="10" x="2.40" y="8.40"/></timestep>
</fcd-export>
"""
FCD_LEGS = [(0, 3.0, 4.0, 2.0, 10.0, 2.0, 10.0), (1, 0.0, 1.0, 12.0, 0.0, 14.0, 0.0)]


def test_sumo_in_xml(spark: SparkSession, tmp_path: Path) -> None:
    about, legs, names = imported(spark, written(tmp_path, "rides.xml.gz", FCD))
    # Nodes that are numbers come first; a person that was seen once has no leg. The corner is at (0.4, -1.6).
    assert names == ["10", "bus.7", "p"]
    assert legs == [pytest.approx(leg) for leg in FCD_LEGS]
    assert (about.kind, about.format, about.begins, about.span) == ("positions", "sumo-xml", 4.0, 4.0)
    assert [about.width, about.height] == pytest.approx([14, 10])
    assert about.refused == {"x is not a number": 1}
    refused = pq.read_table(tmp_path / "out.trace" / "refused").to_pylist()
    assert refused == [{"reason": "x is not a number", "line": "time=5.00 id=10 x=oops y=1"}]


def test_sumo_in_csv_and_parquet_with_their_rows_for_empty_steps(spark: SparkSession, tmp_path: Path) -> None:
    text = "timestep_time;vehicle_id;vehicle_x;vehicle_y\n4;bus.7;12.4;-1.6\n4;p;0.4;0.4\n5;bus.7;14.4;-1.6\n6;;;\n"
    file = written(tmp_path, "rides.csv", text + "7;10;2.4;8.4\n8;10;2.4;8.4\n")
    about, legs, _ = imported(spark, file)
    assert (about.format, about.refused) == ("sumo-csv", {})
    assert legs == [pytest.approx(leg) for leg in FCD_LEGS]
    columns = {
        "timestep_time": [4.0, 4.0, 5.0, 6.0, 7.0, 8.0],
        "vehicle_id": ["bus.7", "p", "bus.7", None, "10", "10"],
        "vehicle_x": [12.4, 0.4, 14.4, None, 2.4, 2.4],
        "vehicle_y": [-1.6, 0.4, -1.6, None, 8.4, 8.4],
    }
    pq.write_table(pa.table(columns), tmp_path / "rides.parquet")
    about, legs, _ = imported(spark, tmp_path / "rides.parquet")
    assert (about.format, about.refused) == ("sumo-parquet", {})
    assert legs == [pytest.approx(leg) for leg in FCD_LEGS]


FIELDS = st.one_of(
    st.floats(-200, 200).map(repr),
    st.floats().map(repr),
    st.integers(0, 10**19).map(str),
    st.datetimes(datetime.datetime(1990, 1, 1), datetime.datetime(2060, 1, 1)).map(str),
    st.sampled_from(["0000-01-01 00:00:00", "0001-01-01 00:00:00", "2050-07-01 12:00:00"]),
    st.sampled_from(["2023-03-26 02:30:00", "2023-10-29T02:30:00", "2024-02-30 00:00:00", "2024-01-01T00:00:00Z"]),
    st.sampled_from(["", " ", " 7 ", "+.5", "1.", "1e400", "1_000", "0x1p3", "١", "nan", '"1"', '"a', "taxi", "1,2"]),
)
HEADERS = st.sampled_from(["id,t,x,y", "lat;id;lon;time;speed"])


@given(HEADERS, st.lists(st.lists(FIELDS, min_size=3, max_size=6), max_size=12), st.sampled_from([None, "Europe/Rome"]))
def test_a_batch_of_csv_is_read_as_its_lines_are(header: str, values: list[list[str]], zone: str | None) -> None:
    columns = SampleColumns.of_line(header, zone=None if zone is None else ZoneInfo(zone))
    lines = [columns.separator.join(each) for each in values]
    expected = Counter[tuple[object, ...]]()
    for line in lines:
        try:
            expected[columns.parse(line)] += 1
        except Refused as problem:
            expected[(str(problem), line)] += 1
    tables = parse_batch(columns, pa.array(lines, pa.string()))
    assert Counter(tuple(row.values()) for table in tables for row in table.to_pylist()) == expected


def test_csv_with_disorder_duplicates_gaps_and_a_cut(spark: SparkSession, tmp_path: Path) -> None:
    text = "time,node,x,y\n20,1,20,0\n0,1,0,0\n10,1,10,0\n10,1,10,0\n300,1,30,0\n310,1,40,0\n,1,5,5\n5,2,x,0\n"
    file = written(tmp_path, "walk.csv", text)
    about, legs, _ = imported(spark, file, cut=Selection(gap=60))
    first = [(0, 0, 10, 0, 0, 10, 0), (0, 10, 20, 10, 0, 20, 0)]
    assert legs == [*first, (0, 300, 310, 30, 0, 40, 0)]
    assert about.refused == {"its time is not a time": 1, "x is not a number": 1}
    assert imported(spark, file, cut=Selection(gap=1000))[1][2] == (0, 20, 300, 20, 0, 30, 0)
    assert imported(spark, file, cut=Selection(gap=60, end=50))[1] == first
    # From 10 m on it is outside the box, and comes back only in the imagination of a straight line.
    assert imported(spark, file, cut=Selection(gap=1000, box=(0, -1, 10, 1)))[1] == first[:1]
    inside = imported(spark, file, cut=Selection(gap=1000, box=(15, -1, 100, 1)))
    assert (inside[0].begins, inside[0].corner) == (20, (20, 0))


def test_parquet_with_numbers_and_dates_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    times = [datetime.datetime(2008, 2, 2, 15, 36, second, tzinfo=datetime.UTC) for second in (8, 18, 28, 38)]
    columns = {
        "taxi_id": pa.array([7, 7, 7, 7], pa.int64()),
        "timestamp": pa.array(times, pa.timestamp("us", tz="UTC")),
        "x": pa.array([0.0, 10.0, math.nan, 30.0], pa.float64()),
        "y": pa.array([0, 0, 0, None], pa.int32()),
    }
    pq.write_table(pa.table(columns), tmp_path / "taxis.parquet")
    about, legs, names = imported(spark, tmp_path / "taxis.parquet")
    assert names == ["7"]
    assert legs == [(0, 0, 10, 0, 0, 10, 0)]
    assert (about.begins, about.span) == (times[0].timestamp(), 10)
    assert about.refused == {"x is not a number": 1, "y is not a number": 1}


def test_thinning_stays_within_its_tolerance(spark: SparkSession, tmp_path: Path) -> None:
    # A circle of 100 m in 100 s, a sample each second; and a straight line, of which almost nothing must be left.
    round_ = [(t, "a", 100 + 100 * math.cos(t / 16), 100 + 100 * math.sin(t / 16)) for t in range(101)]
    straight = [(t, "b", float(t), 0.0) for t in range(101)]
    text = "\n".join(f"{t},{node},{x},{y}" for t, node, x, y in [*round_, *straight])
    _, legs, _ = imported(spark, written(tmp_path, "c.csv", "t,id,x,y\n" + text), cut=Selection(tolerance=2.0))
    curve, line = [leg for leg in legs if leg[0] == 0], [leg for leg in legs if leg[0] == 1]
    assert len(line) <= 101 / 16 + 1
    assert 5 < len(curve) < 60
    for t, _, x, y in round_:
        leg = next(one for one in curve if one[1] <= t <= one[2])
        part = (t - leg[1]) / (leg[2] - leg[1])
        place = leg[3] + part * (leg[5] - leg[3]), leg[4] + part * (leg[6] - leg[4])
        west = min(x for _, _, x, _ in round_ + straight)
        south = min(y for _, _, _, y in round_ + straight)
        assert math.dist(place, (x - west, y - south)) <= 2.0 + 1e-9


def test_latitude_and_longitude_become_metres(spark: SparkSession, tmp_path: Path) -> None:
    # A hundredth of a degree at 45° north: 1,111.3 m of latitude and 788.5 m of longitude on the WGS84 ellipsoid.
    text = "user;timestamp;lat;lon\nu;2020-01-01T00:00:00Z;44.995;7.0\nu;2020-01-01T00:00:10Z;45.005;7.01\nu;x;91;0\n"
    about, legs, _ = imported(spark, written(tmp_path, "gps.csv", text))
    assert about.geographic
    assert legs[0][5:] == (pytest.approx(788.5, abs=0.1), pytest.approx(1111.3, abs=0.1))
    assert (about.begins, legs[0][2]) == (1577836800.0, 10.0)
    assert sum(about.refused.values()) == 1


NS2 = """$node_(0) set X_ 0.0
$node_(0) set Y_ 0.0
$node_(0) set Z_ 0.0
$node_(1) set X_ 5.0
$node_(1) set Y_ 5.0
$god_ set-dist 0 1 1
$ns_ at 10.0 "$node_(0) setdest 100.0 0.0 10.0"
$ns_ at 15.0 "$node_(0) setdest 50.0 40.0 20.0 0.0"
$ns_ at 30.0 "$node_(0) set X_ 3"
$ns_ at 30.0 "$node_(2) setdest 50.0 40.0 20.0"
nonsense
"""


def test_ns2_turns_before_it_has_arrived(spark: SparkSession, tmp_path: Path) -> None:
    about, legs, _ = imported(spark, written(tmp_path, "a.tcl", NS2))
    # At 15 s it is half-way, at (50, 0); 40 m at 20 m/s take it until 17 s.
    assert [leg for leg in legs if leg[3:5] != leg[5:]] == [(0, 10, 15, 0, 0, 50, 0), (0, 15, 17, 50, 0, 50, 40)]
    assert about.continuous
    assert about.refused == {
        "a node cannot jump: expected setdest, or an initial position without a time": 1,
        "expected '$node_(i) set X_ x' or '$ns_ at t \"$node_(i) setdest x y speed\"'": 1,
        "its node has no initial position (X_ and Y_)": 1,
    }


def test_bonnmotion_in_two_and_three_dimensions(spark: SparkSession, tmp_path: Path) -> None:
    file = written(tmp_path, "s.movements.gz", "0 1 1 10 11 1\n0 2 2 9 5\n")
    about, legs, _ = imported(spark, file)
    assert (legs, about.refused) == ([(0, 0, 10, 0, 0, 10, 0)], {"its numbers do not come in groups of 3": 1})
    written(tmp_path, "s.params", "model=RandomWaypoint\ndim=3\n")
    written(tmp_path, "s.movements.gz", "0 1 1 0 10 11 1 0\n")
    assert imported(spark, file)[1] == [(0, 0, 10, 0, 0, 10, 0)]


def test_the_one_in_movement_and_in_connections(spark: SparkSession, tmp_path: Path) -> None:
    file = written(tmp_path, "one.txt", "0 100 0 500 0 500\n0 n1 1 1\n10 n1 11 1\n10 n2 x 1\n")
    about, legs, names = imported(spark, file)
    assert (about.format, legs, names) == ("one", [(0, 0, 10, 0, 0, 10, 0)], ["n1"])
    # A line of a path, the ONE's other format, is no header.
    file.write_text(file.read_text() + "n3 0,1,1 10,2,2 20,3,3 30,4,4 40,5,5 50,6,6 60,7,7\n")
    assert imported(spark, file)[0].refused == {"expected time id x y": 1, "x is not a number": 1}
    # Both sides report: the link ends with the last. Another lasts until the recording does. A line counts once.
    events = (
        "0 CONN 3 7 up\n" * 2
        + "1 CONN 7 3 up\n4 CONN 3 7 down\n5 C M1 3 7 100\n6 CONN 7 3 down wlan0\n7 CONN 9 3 down\n"
    )
    about, links, names = imported(spark, written(tmp_path, "events.txt", events + "8 CONN 9 3 up\n10 CONN 3 7 up\n"))
    assert (about.format, names) == ("one-connections", ["3", "7", "9"])
    assert links == [(0, 1, 0.0, 6.0), (0, 2, 8.0, 10.0)]


def test_contact_lists_are_mutual_extended_and_merged(spark: SparkSession, tmp_path: Path) -> None:
    text = "1 2 1000 1000 1 0\n2 1 1100 1200 1 0\n1 9 1000 1300 1 0\n1 2 5000 5000 2 3800\n3 3 1 2 1 0\n1 2 9 8 1 0\n"
    file = written(tmp_path, "contacts.dat", text)
    about, links, names = imported(spark, file, scan=120)
    # 1000 ± 60 and 1040 to 1260 overlap. 9 was only seen.
    assert names == ["1", "2", "9"]
    assert links == [(0, 1, 0, 320), (0, 1, 4000, 4120), (0, 2, 0, 420)]
    assert about.refused == {"a node with itself": 1, "it ends before it begins, or at no time": 1}
    assert imported(spark, file, scan=120, observers_only=True)[2] == ["1", "2"]
    instants = written(tmp_path, "instants.dat", "a\tb\t1500000000000\nb\ta\t1500000060000\n")
    assert imported(spark, instants, scan=180)[1] == [(0, 1, 0, 240)]


def test_gpx_with_segments_and_points_without_a_time(spark: SparkSession, tmp_path: Path) -> None:
    def point(lat: str, second: int | None) -> str:
        time = "" if second is None else f"<time>2026-05-01T10:00:{second:02}Z</time>"
        return f'<trkpt lat="{lat}" lon="7.0"><ele>3</ele>{time}</trkpt>'

    first = point("45.0", 0) + point("45.0001", 10) + point("45.0002", None) + point("145", 12)
    second = point("45.0003", 15) + point("45.0004", 25)
    tracks = f"<trk><name>a ride</name><trkseg>{first}</trkseg><trkseg>{second}</trkseg></trk>"
    (tmp_path / "rides").mkdir()
    head = '<?xml version="1.0"?><gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1">'
    written(tmp_path / "rides", "tom.gpx", f"{head}{tracks}</gpx>")
    written(
        tmp_path / "rides", "ann.gpx.gz", f"{head}<trk><trkseg>{point('45', 5)}{point('45', 6)}</trkseg></trk></gpx>"
    )
    about, rows, nodes = imported(spark, tmp_path / "rides")
    assert (about.format, about.geographic, nodes) == ("gpx", True, ["ann", "tom"])
    assert about.refused == {
        "it has no time, or none that is one": 1,
        "its latitude is not a number, or not a place on Earth": 1,
    }
    # Between the segments, 5 s apart, the device was off.
    assert [row[:3] for row in rows] == [(0, 5.0, 6.0), (1, 0.0, 10.0), (1, 15.0, 25.0)]
    # A ten-thousandth of a degree of latitude is 11.1 m at 45 degrees north.
    assert rows[1][6] - rows[1][4] == pytest.approx(11.11, abs=0.01)


@pytest.fixture
def traces_import(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The command as a user types it, in the session of the tests."""
    monkeypatch.setattr("roamcast.pipeline.session.session", lambda *_, **__: nullcontext(spark))
    monkeypatch.chdir(tmp_path)

    def run(name: str, text: str, *options: str) -> Result:
        Path(name).write_text(text)
        return CliRunner().invoke(main, ["traces", "import", name, "--out", "out.trace", *options])

    return run


def found(table: str = "legs") -> list[Row]:
    rows = pq.read_table(Path("out.trace") / table).to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def test_positions_on_both_sides_of_the_date_line(traces_import: Callable[..., Result]) -> None:
    # Off Taveuni, Fiji, from 179.99° E to 179.99° W: 0.02° at 16.8° S, of 106.6 km each.
    text = "id,time,lat,lon\na,0,-16.8,179.99\na,50,-16.8,-179.99\nb,0,-16.81,-179.99\nb,50,-16.81,-179.98\n"
    told = traces_import("boats.csv", text)
    assert told.exit_code == 0, told.output
    about = read_about(Path("out.trace"))
    assert about.corner == pytest.approx((179.99, -16.81))
    assert about.width == pytest.approx(3 * 1066, rel=1e-3)
    assert [leg[3:6:2] for leg in found()] == [
        pytest.approx((0, 2132), rel=1e-3),
        pytest.approx((2132, 3198), rel=1e-3),
    ]
    assert traces_import("boats.csv", text, "--box", "179.5,-17,-179.985,-16").exit_code == 0
    assert [leg[0] for leg in found()] == [0]  # b leaves the box
    assert "only degrees go round" in traces_import("m.csv", "id,t,x,y\na,0,1,1\n", "--box", "5,0,1,9").output


def test_times_in_milliseconds_since_1970(traces_import: Callable[..., Result]) -> None:
    told = traces_import("log.csv", "id,t,x,y\na,1700000000000,0,0\na,1700000010000,10,0\n")
    assert told.exit_code == 0, told.output
    assert [leg[:3] for leg in found()] == [(0, 0, 10 * S)]
    assert read_about(Path("out.trace")).begins == 1_700_000_000


def test_local_times_over_the_end_of_summer_time(traces_import: Callable[..., Result]) -> None:
    """On 2024-10-27 at 3:00, clocks in Rome went back to 2:00: 1:59 was at 23:59 UTC, and 3:01 at 2:01."""
    times = ("01:59", "02:30", "02:30+01:00", "03:01")
    text = "id,time,x,y\n" + "".join(f"a,2024-10-27 {time},{x},0\n" for x, time in enumerate(times))
    told = traces_import("log.csv", text, "--timezone", "Europe/Rome", "--gap", "10000")
    assert told.exit_code == 0, told.output
    assert [leg[1:3] for leg in found()] == [(0, 91 * 60 * S), (91 * 60 * S, 122 * 60 * S)]
    assert "  1 × its time comes twice or not at all in Europe/Rome" in told.output
    begins = datetime.datetime(2024, 10, 26, 23, 59, tzinfo=datetime.UTC)
    assert read_about(Path("out.trace")).begins == begins.timestamp()
    assert "--timezone Rome: is not a time zone" in traces_import("log.csv", text, "--timezone", "Rome").output
    assert "this is one" in traces_import("a.one", "0 9 0 9 0 9\n0 1 2 3\n", "--timezone", "UTC").output


def test_parquet_has_the_rules_of_text(spark: SparkSession, tmp_path: Path) -> None:
    local = [datetime.datetime(2024, 10, 27, hour, 30) for hour in (1, 2, 3)]  # as a log has it
    columns = {"id": ["a"] * 3, "x": [0.0, 1.0, 2.0], "y": [0.0] * 3}
    for name, times in (("local", pa.array(local)), ("text", pa.array([str(one) for one in local]))):
        pq.write_table(pa.table({**columns, "time": times}), tmp_path / f"{name}.parquet")
        about, legs, _ = imported(spark, tmp_path / f"{name}.parquet", timezone="Europe/Rome", cut=Selection(gap=1e5))
        assert (len(legs), legs[0][2], sum(about.refused.values())) == (1, 3 * 3600, 1)
    pq.write_table(
        pa.table({**columns, "time": [1_700_000_000_000 + 1000 * t for t in range(3)]}), tmp_path / "ms.parquet"
    )
    assert [leg[1:3] for leg in imported(spark, tmp_path / "ms.parquet")[1]] == [(0, 1), (1, 2)]


def test_when_every_line_is_refused_each_reason_is_told(traces_import: Callable[..., Result]) -> None:
    told = traces_import("log.csv", "id,time,x,y\na,noon,1,1\nb,noon,1,1\nc,0,left,1\n")
    assert (told.exit_code, told.output) == (
        2,
        "error: log.csv: every line was refused:\n"
        "  2 × its time is not a time, such as: a,noon,1,1\n"
        "  1 × x is not a number, such as: c,0,left,1\n",
    )
    told = traces_import("log.csv", "id,time,x,y\na,0,1,1\na,9,1,1\n", "--from", "100")
    assert "there is nothing in the box and the span of time that are wanted" in told.output
    told = traces_import("met.dat", "1 1 5 6\n2 2 5 6\n")
    assert "every line was refused:\n  2 × a node with itself, such as: 1 1 5 6" in told.output


def test_columns_are_known_by_their_usual_names_or_named(traces_import: Callable[..., Result]) -> None:
    rows = "phone 1,0,45.0,7.0\nphone 1,10,45.0001,7.0\n"
    assert traces_import("log.txt", "device,timestamp,lat,lon\n" + rows).exit_code == 0
    legs = found()
    header = '"Device ID",ts,lat,lon\n'
    told = traces_import("log.csv", header + rows)
    assert told.exit_code == 2
    assert "no column is the node's id: there are Device ID, ts, lat, lon" in told.output
    assert '--columns id="Device ID",t=when' in told.output
    told = traces_import("log.csv", header + rows, "--columns", "id=Device ID,t=ts")
    assert told.exit_code == 0, told.output
    assert found() == legs
    assert "there is no column 'when' for t" in traces_import("log.csv", header, "--columns", "t=when").output
    assert "expected WHAT=NAME" in traces_import("log.csv", header, "--columns", "speed=ts").output


def test_an_import_ends_with_a_verdict(traces_import: Callable[..., Result]) -> None:
    told = traces_import("log.csv", "id,t,x,y\na,0,0,0\na,10,30,40\na,20,30,40\nb,x,0,0\n")
    assert told.exit_code == 0
    assert told.output.startswith(
        "out.trace: 1 nodes, 20 s, 30 m × 40 m, 2 legs\n"
        "speeds of legs, m/s: median 0, 95 % up to 5, most 5\n"
        "refused: 1 (25.0%), in out.trace/refused\n"
        "  1 × its time is not a time\n"
    )


def test_what_is_implausible_is_refused_unless_forced(traces_import: Callable[..., Result]) -> None:
    text = "id,t,x,y\na,0,0,0\na,1,200,0\na,2,210,0\n"
    told = traces_import("log.csv", text)
    assert (told.exit_code, Path("out.trace").exists()) == (2, False)
    doubt = "  50.0% of all legs are faster than 150 m/s: "
    words = f"error: log.csv: nothing was written, since this is implausible (--force writes it):\n{doubt}"
    assert told.stderr.startswith(words)
    told = traces_import("log.csv", text, "--force")
    assert (told.exit_code, Path("out.trace").exists()) == (0, True)
    assert f"warning: this is implausible:\n{doubt}" in told.stderr


@pytest.mark.parametrize(
    ("changes", "doubt"),
    [
        ({}, None),
        ({"rows": 0}, "no leg: in 60 s, no node has two positions that are at most --gap apart"),
        ({"width": 38_231_000.0}, "an area of 38,231 km × 0 km"),
        ({"speeds": Speeds(median=1, p95=9, most=900, implausible=0.01)}, None),  # a receiver may jump now and then
        ({"speeds": Speeds(median=1, p95=9, most=900, implausible=0.011)}, "1.1% of all legs are faster than 150 m/s"),
        ({"refused": {"it has no id": 10}}, None),
        ({"refused": {"it has no id": 11}}, "52% of the lines were refused: 11 × it has no id"),
    ],
)
def test_doubts(changes: dict[str, Any], doubt: str | None) -> None:
    told: dict[str, Any] = {"version": 1, "kind": "positions", "format": "csv", "source": "log.csv", "nodes": 1}
    told |= {"begins": 0.0, "span": 60.0, "rows": 9, "samples": 10} | changes
    found = doubts(TraceDescription(**told))
    assert [one.strip().split(":")[0] for one in found] == ([] if doubt is None else [doubt.split(":")[0]])
    assert doubt is None or doubt in found[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("walk.tcl", None),
        ("twice.tcl", '$ns_ at 1 "$node_(0) setdest 9 2 1"\n$ns_ at 1 "$node_(0) setdest 1 4 1 0"\n' + NS2[:63]),
        ("log.csv", "Timestamp;battery;Device;Y;X\n4;90;0;2;5\n0;99;0;2;1\n4;90;0;2;3\n9;80;0;0;0\n"),
    ],
)
def test_a_scenario_and_an_import_read_the_same(
    name: str, text: str | None, spark: SparkSession, tmp_path: Path
) -> None:
    text = (Path(__file__).parents[1] / "sim" / "data" / name).read_text() if text is None else text
    file = written(tmp_path, name, text)
    about, legs, ids = imported(spark, file, force=True)
    walks = Recorded(file=name).walks(Area(width=1000, height=1000), len(ids), 1, tmp_path)
    west, south = about.corner or (0, 0)
    moved = [
        (node, leg.start / S, leg.end / S, leg.x0 - west, leg.y0 - south, leg.x1 - west, leg.y1 - south)
        for node, walk in enumerate(walks)
        for leg in walk
        if (leg.x0, leg.y0) != (leg.x1, leg.y1)
    ]
    assert [pytest.approx(leg) for leg in moved] == [leg for leg in legs if leg[3:5] != leg[5:]]
    assert moved


@pytest.mark.parametrize("part", [1, 7, 100, 5_000, 100_000])
def test_parts_of_a_file_have_each_line_once(part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "_PART", part)
    monkeypatch.setattr(text_module, "_CHUNK", 11)
    ends = ["\n", "\r\n"]
    file = written(tmp_path, "log.csv", "\ufeff" + "".join(f" {i},{'x' * (i % 17)} {ends[i % 2]}" for i in range(300)))
    parts = text_module.parts_of([file]).to_pylist()
    assert len(parts) == math.ceil(file.stat().st_size / part)
    found = [
        line
        for one in parts
        for lines in text_module.lines_of(file, one["begin"], one["end"])
        for line in lines.to_pylist()
    ]
    assert found == [f"{i},{'x' * (i % 17)}" for i in range(300)]


def test_a_packed_file_that_was_cut_short_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    file = written(tmp_path, "log.csv.gz", "id,t,x,y\n" + "".join(f"a,{i},{i * i},1\n" for i in range(200_000)))
    file.write_bytes(file.read_bytes()[:-100_000])
    with pytest.raises(RoamcastError, match=r"log\.csv\.gz: is damaged or cut short .*: get it again"):
        imported(spark, file)


def test_files_of_a_folder_have_the_same_columns(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    written(tmp_path / "logs", "a.csv", "id,t,x,y\na,0,1,1\na,9,1,1\n")
    written(tmp_path / "logs", "b.csv.gz", "id,t,x,y\nb,0,1,1\nb,9,1,1\n")
    assert imported(spark, tmp_path / "logs")[2] == ["a", "b"]
    written(tmp_path / "logs", "c.csv", "id,t,y,x\nc,0,1,1\n")
    with pytest.raises(RoamcastError, match=r"c\.csv: its header is id,t,y,x, and that of others is id,t,x,y"):
        imported(spark, tmp_path / "logs")


def test_a_format_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RoamcastError, match="its format is not known"):
        tell(written(tmp_path, "x.txt", "what is this\n"))


def test_nothing_is_replaced_that_is_no_trace(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "out.trace").mkdir()
    with pytest.raises(RoamcastError, match="is not a trace: it is not replaced"):
        imported(spark, written(tmp_path, "walk.csv", "t,id,x,y\n0,1,1,1\n"))


# --- Contacts and what a trace is like ------------------------------------------------------------------------------


def test_pairs_are_those_of_all_compared_with_all(spark: SparkSession) -> None:
    legs = [(node, 0, 10 * S, 37.0 * node % 100, 53.0 * node % 70, 11.0 * node % 90, 90.0) for node in range(25)]
    frame = spark.createDataFrame(legs, "node int, start long, end long, x0 double, y0 double, x1 double, y1 double")
    found = {tuple(row) for row in pairs(positions(frame, 2.0), 20.0).collect()}
    expected = set()
    for tick in range(5):
        places = [(x0 + tick / 5 * (x1 - x0), y0 + tick / 5 * (y1 - y0)) for _, _, _, x0, y0, x1, y1 in legs]
        expected |= {(tick, a, b) for b in range(25) for a in range(b) if math.dist(places[a], places[b]) <= 20}
    assert found == expected
    assert len(found) > 20


LEG_ROWS = "node int, start long, end long, x0 double, y0 double, x1 double, y1 double"


def met(spark: SparkSession, legs: list[Row], reach: float) -> list[tuple[int, ...]]:
    return sorted(tuple(row) for row in contacts(spark.createDataFrame(legs, LEG_ROWS), reach).collect())


def test_a_contact_begins_and_ends_at_the_nanosecond(spark: SparkSession) -> None:
    # b passes a at 10 m/s on a line 3 m beside it: within 5 m from 4 m before to 4 m behind, 0.8 s in all.
    standing = (0, 0, 100 * S, 0.0, 0.0, 0.0, 0.0)
    passing = [(1, 0, 10 * S, -100.0, 3.0, 0.0, 3.0), (1, 10 * S, 25 * S, 0.0, 3.0, 150.0, 3.0)]
    assert met(spark, [standing, *passing], 5.0) == [(0, 1, 9_600_000_000, 10_400_000_000)]
    # Two that move side by side are in contact as long as both are there; one farther off never is.
    side: list[Row] = [(0, 0, 9 * S, 0.0, 0.0, 90.0, 0.0), (2, 0, 9 * S, 0.0, 10.5, 90.0, 10.5)]
    side.append((1, 2 * S, 9 * S, 20.0, 5.0, 90.0, 5.0))
    assert met(spark, side, 5.0) == [(0, 1, 2 * S, 9 * S)]
    # A gap between legs ends a contact.
    away = [standing, (1, 0, S, 1.0, 0.0, 1.0, 0.0), (1, 2 * S, 3 * S, 1.0, 0.0, 1.0, 0.0)]
    assert met(spark, away, 5.0) == [(0, 1, 0, S), (0, 1, 2 * S, 3 * S)]


def test_contacts_are_those_of_the_measures(spark: SparkSession) -> None:
    """`facts.contacts` finds them pair by pair, in the core's own arithmetic."""
    random = Random(7)
    legs: list[Row] = []
    for node in range(12):
        x, y, time = random.uniform(0, 300), random.uniform(0, 300), 0
        while time < 60 * S:
            to = random.uniform(0, 300), random.uniform(0, 300)
            until = time + round(random.uniform(0.5, 20) * S)
            legs.append((node, time, until, x, y, *to))
            x, y, time = *to, until
    last = min(max(leg[2] for leg in legs if leg[0] == node) for node in range(12))
    rows = [(*leg, False, -1) for leg in legs]
    network = contacts_of(tables(leg=rows), 12, last, Reach(60.0))
    assert network is not None
    columns = (network.sender, network.receiver, network.begin, network.until)
    expected = sorted(zip(*(column.tolist() for column in columns), strict=True))
    found = [(a, b, start, min(end, last)) for a, b, start, end in met(spark, legs, 60.0) if start < last]
    assert [row[:2] for row in found] == [row[:2] for row in expected]
    assert len(found) > 40
    for ours, theirs in zip(found, expected, strict=True):
        assert ours[2:] == pytest.approx(theirs[2:], abs=1000)  # ns


def test_islands() -> None:
    import numpy as np

    assert island_of(6, np.array([4, 1, 2]), np.array([1, 2, 0])).tolist() == [0, 0, 0, 3, 0, 5]
    assert island_of(2, np.array([], int), np.array([], int)).tolist() == [0, 1]


def test_two_that_pass_each_other(spark: SparkSession, tmp_path: Path) -> None:
    # At 10 m/s towards each other on two lanes 30 m apart: within 50 m of each other from 8 s to 12 s.
    text = "t,id,x,y\n0,a,0,0\n20,a,200,0\n0,b,200,30\n20,b,0,30\n"
    imported(spark, written(tmp_path, "pass.csv", text))
    found = describe(spark, tmp_path / "out.trace", 50.0, 0.5)
    assert (found["nodes"], found["span"], found["there"]) == (2, 20.0, 1.0)
    assert found["speed"]["p50"] == pytest.approx(10)
    assert (found["contacts"], found["pairs"], found["contact"]["mean"]) == (1, 1, 4.0)
    assert found["contact"]["longer"][3:] == [[1.0, 1.0], [2.0, 1.0], [5.0, 0.0], [10.0, 0.0], [20.0, 0.0]]
    assert found["between_contacts"]["longer"] == []
    assert {row["islands"] for row in found["over_time"]} == {1, 2}
    about = contacts_trace(spark, tmp_path / "out.trace", 50.0, tmp_path / "met.trace")
    assert (about.kind, about.rows, about.nodes) == ("contacts", 1, 2)
    changes = list(link_changes(tmp_path / "met.trace", 2, 1, None, "first"))
    assert changes == [(8 * S, 0, 1, True), (12 * S, 0, 1, False)]


def test_the_file_that_sumo_made(spark: SparkSession, tmp_path: Path) -> None:
    about = import_trace(spark, GRID, tmp_path / "grid.trace")
    # Counted with zgrep in the file: 60 ids and 5,657 positions at 240 steps; each vehicle has a leg less than steps.
    assert (about.nodes, about.samples, about.span, about.refused) == (60, 5657, 239.0, {})
    assert about.rows == 5657 - 60


def test_in_many_parts_it_is_the_same(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit into memory is divided: here, after a thousand positions and a thousand legs. Row groups follow
    each other in time, so that a window is read without the rest."""
    import_trace(spark, GRID, tmp_path / "whole.trace")
    contacts_trace(spark, tmp_path / "whole.trace", 100.0, tmp_path / "whole.met")
    monkeypatch.setattr(importing, "_AT_ONCE", 1000)
    monkeypatch.setattr(importing, "_GROUP", 10_000)
    monkeypatch.setattr(contacts_module, "_AT_ONCE", 1000)
    import_trace(spark, GRID, tmp_path / "parts.trace")
    contacts_trace(spark, tmp_path / "parts.trace", 100.0, tmp_path / "parts.met")
    files = sorted((tmp_path / "parts.trace" / "legs").iterdir())
    assert len(files) == 6  # of 5,657 positions
    for file in files:
        meta = pq.read_metadata(file)
        starts = [meta.row_group(number).column(1).statistics for number in range(meta.num_row_groups)]
        assert len(starts) > 1
        assert all(one.max <= other.min for one, other in pairwise(starts))
    for name, kind, order in (("trace", "legs", ("node", "start")), ("met", "links", ("a", "b", "start"))):
        keys = [(key, "ascending") for key in order]
        whole, parts = (pq.read_table(tmp_path / f"{one}.{name}" / kind).sort_by(keys) for one in ("whole", "parts"))
        assert parts.equals(whole)
        assert parts.num_rows > 100


def test_quantiles_have_four_digits(spark: SparkSession, tmp_path: Path) -> None:
    # A second at 12.34567 m/s, and a second at rest: half of the time is above, and half below.
    imported(spark, written(tmp_path, "walk.csv", "t,id,x,y\n0,a,0,0\n1,a,12.34567,0\n2,a,12.34567,0\n"))
    speed = describe(spark, tmp_path / "out.trace", None)["speed"]
    assert (speed["p5"], speed["most"]) == (0.0, 12.34567)
    assert speed["p95"] == pytest.approx(12.35, abs=1e-9)
