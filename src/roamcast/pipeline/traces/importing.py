"""From a recording to a trace: read, number nodes, cut, make legs or links, write; whole or not at all.

A recording is read three times: for its nodes and bounds, for its legs, and for the lines that were refused. Reading is
cheap beside the sort by node in the middle; CSV, where it would not be, is parsed once. The rules this file owns:

* Only the table of nodes has to fit into memory. The first reading counts the positions, and the second is divided into
  so many parts that Spark sorts each of them in a small heap; a node with more positions than that is sorted on disk.
* Longitudes that lie closer together across ±180° than across 0° are counted from 0° to 360°.
* What is implausible (`verdict.doubts`) is not written unless it is forced.
* Each file is in order of time, in row groups of `_GROUP`: a run that takes a window of a long trace reads only those.
"""

import math
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.errors import ConfigError, RoamcastError
from roamcast.files import new_folder, write_json
from roamcast.pipeline.traces import csv
from roamcast.pipeline.traces.contacts import contacts
from roamcast.pipeline.traces.formats import CONTACTS, CSV, POSITIONS, read_contacts, tell
from roamcast.pipeline.traces.samples import Cutout, Read, Selection, kept, legs, metres, projected
from roamcast.pipeline.traces.verdict import doubts, speeds
from roamcast.sim.mobility.trace import (
    ABOUT_FILE,
    LEGS,
    LINKS,
    NODES_FILE,
    VERSION,
    TraceDescription,
    is_trace,
    read_about,
)
from roamcast.storage import spark_uri
from roamcast.units import SECOND

_WHOLE = Selection()
_AT_ONCE: Final = 2_000_000
"""Positions that one task sorts: about 200 MB of memory."""
_STAGED: Final = "staged"
"""The folder, in a trace that is being made, of what was parsed from text."""
_GROUP: Final = 8 * 2**20
"""Bytes of a row group before compression: some 150,000 legs."""


@dataclass(frozen=True)
class Options:
    """How to read a recording."""

    format: str = "auto"
    cut: Selection = _WHOLE
    geographic: bool = False
    """For SUMO: whether x and y are degrees."""
    scan: float = 120.0
    """For contact lists: seconds from one scan to the next."""
    observers_only: bool = False
    columns: Mapping[str, str] = field(default_factory=dict)
    """For CSV: the names of columns (id, t, x, y, lat, lon) that do not have the usual ones."""
    timezone: str | None = None
    """For CSV: where dates and times without an offset are local; none: they are in UTC."""
    force: bool = False
    """Whether an implausible recording becomes a trace, too."""


def import_trace(spark: SparkSession, source: Path, out: Path, options: Options | None = None) -> TraceDescription:
    """Makes the trace `out` from a file, or a folder of files of one format."""
    options = options or Options()
    if not source.exists():
        raise RoamcastError(f"{source}: there is no such file")
    format = options.format
    if format == "auto":
        format = CSV if options.columns else tell(source)
    if format != CSV and (options.columns or options.timezone):
        raise ConfigError(f"{source}: columns and a time zone can be given for CSV, and this is {format}")
    make = _contacts if format in CONTACTS else _positions

    def checked(draft: Path) -> TraceDescription:
        about = make(spark, source, draft, format, options)
        found = doubts(about)
        if found and not options.force:
            raise RoamcastError(
                "\n".join([f"{source}: nothing was written, since this is implausible (--force writes it):", *found])
            )
        return about

    return _made(out, checked)


def contacts_trace(spark: SparkSession, trace: Path, reach: float, out: Path) -> TraceDescription:
    """Makes the trace of contacts `out` from one of positions."""
    about = read_about(trace, "positions")

    def make(draft: Path) -> TraceDescription:
        legs = spark.read.parquet(spark_uri(trace / "legs"))
        links = contacts(legs, reach)
        written = _write(links.select(*LINKS.names), draft / "links", LINKS, ["start", "a", "b"])
        shutil.copyfile(trace / NODES_FILE, draft / NODES_FILE)
        return TraceDescription(
            version=VERSION,
            kind="contacts",
            format=f"positions within {reach:g} m",
            source=trace.name,
            nodes=about.nodes,
            begins=about.begins,
            span=about.span,
            rows=written,
        )

    return _made(out, make)


def _made(out: Path, make: Callable[[Path], TraceDescription]) -> TraceDescription:
    """Makes a trace whole or not at all."""
    if out.exists() and not is_trace(out):
        raise RoamcastError(f"{out}: is there, and is not a trace: it is not replaced")
    with new_folder(out) as draft:
        about = make(draft)
        shutil.rmtree(draft / _STAGED, ignore_errors=True)
        write_json(draft / ABOUT_FILE, about)
    return about


def _positions(spark: SparkSession, source: Path, draft: Path, format: str, options: Options) -> TraceDescription:
    read, cut = _read(spark, source, format, options, draft / _STAGED), options.cut
    geographic = read.geographic or options.geographic
    if cut.box is not None and cut.box[0] >= cut.box[2] and not geographic:
        raise ConfigError("--box: west must be below east: only degrees go round the Earth")
    samples = kept(read, cut).withColumn("eastward", F.pmod("x", F.lit(360.0)) if geographic else F.col("x"))
    nodes, bounds, count = _nodes(samples)
    if not count:
        raise RoamcastError(_why_empty(source, read))
    column, around = min(bounds.items(), key=lambda one: one[1].east - one[1].west)
    samples = samples.withColumn("x", F.col(column)).drop("eastward")
    rows = projected(_by_number(samples, nodes, spark), around, geographic)
    parts = math.ceil(count / _AT_ONCE)
    if parts > int(spark.conf.get("spark.sql.shuffle.partitions") or 1):
        rows = rows.repartition(parts, "node")
    rows = legs(rows, None if read.continuous else cut.gap, cut.tolerance)
    east, north = metres(around, geographic)
    written = _write(rows.select(*LEGS.names), draft / "legs", LEGS, ["start", "node"])
    pq.write_table(nodes, draft / NODES_FILE)
    return TraceDescription(
        version=VERSION,
        kind="positions",
        format=format,
        source=source.name,
        nodes=nodes.num_rows,
        begins=around.start,
        span=around.end - around.start,
        width=(around.east - around.west) * east,
        height=(around.north - around.south) * north,
        rows=written,
        samples=count,
        refused=_refused(read, draft),
        continuous=read.continuous,
        corner=(around.west, around.south),
        geographic=geographic,
        speeds=speeds(spark.read.parquet(spark_uri(draft / "legs"))) if written else None,
    )


def _nodes(samples: DataFrame) -> tuple[pa.Table, dict[str, Cutout], int]:
    """The nodes that are inside at some time, the bounds of all their samples by the column that is x, and their
    number: in one pass."""
    inside = samples.where("inside")
    columns = ("x", "eastward", "y", "t")
    ends = [each(column).alias(f"{each.__name__}_{column}") for each in (F.min, F.max) for column in columns]
    found = inside.groupBy("id").agg(*ends, F.count("*").alias("samples")).toArrow()
    least, most = ({axis: each(found[f"{name}_{axis}"]).as_py() for axis in columns} for name, each in _ENDS)
    bounds = {x: Cutout(least[x], least["y"], most[x], most["y"], least["t"], most["t"]) for x in ("x", "eastward")}
    return _numbered(found["id"].to_pylist()), bounds, pc.sum(found["samples"]).as_py() or 0


def _why_empty(source: Path, read: Read) -> str:
    """Why nothing came out of a recording: the reasons for which its lines were refused, with an example each."""
    reasons = read.refused.groupBy("reason").agg(F.count("*").alias("lines"), F.min("line").alias("example")).collect()
    if reasons and read.rows.isEmpty():
        each = (
            f"  {one.lines} × {one.reason}, such as: {one.example}"
            for one in sorted(reasons, key=lambda one: -one.lines)
        )
        return "\n".join([f"{source}: every line was refused:", *each])
    if read.rows.isEmpty():
        return f"{source}: there is nothing in it"
    return f"{source}: there is nothing in the box and the span of time that are wanted (--box, --from, --to)"


def _read(spark: SparkSession, source: Path, format: str, options: Options, staged: Path) -> Read:
    if format != CSV:
        return POSITIONS[format](spark, spark_uri(source))
    try:
        zone = None if options.timezone is None else ZoneInfo(options.timezone)
    except (KeyError, OSError, ValueError):  # there is none of that name, or it is not a name
        raise ConfigError(f"--timezone {options.timezone}: is not a time zone, such as Europe/Rome") from None
    return csv.read(spark, source, staged, options.columns, zone)


_ENDS = (("min", pc.min), ("max", pc.max))


def _numbered(ids: list[str]) -> pa.Table:
    """(node, id): numbered from 0; ids that are numbers by number, before the others."""
    ordered = sorted(ids, key=lambda text: (not text.isdecimal(), int(text) if text.isdecimal() else 0, text))
    return pa.table({"node": pa.array(range(len(ordered)), pa.int32()), "id": pa.array(ordered, pa.string())})


def _by_number(
    rows: DataFrame, nodes: pa.Table, spark: SparkSession, column: str = "id", name: str = "node"
) -> DataFrame:
    known = spark.createDataFrame(nodes.rename_columns([name, column]))
    return rows.join(F.broadcast(known), column, "inner").drop(column)


def _contacts(spark: SparkSession, source: Path, draft: Path, format: str, options: Options) -> TraceDescription:
    read, cut = read_contacts(spark, spark_uri(source), format, options.scan, options.observers_only), options.cut
    rows = read.rows
    if cut.start is not None:
        rows = rows.where(F.col("end") > cut.start).withColumn("start", F.greatest("start", F.lit(cut.start)))
    if cut.end is not None:
        rows = rows.where(F.col("start") < cut.end).withColumn("end", F.least("end", F.lit(cut.end)))
    rows = rows.where("end > start").persist()
    try:
        ends = rows.agg(F.min("start"), F.max("end")).first()
        if ends is None or ends[0] is None:
            raise RoamcastError(_why_empty(source, read))
        ids = rows.select(F.explode(F.array("a", "b")).alias("id")).distinct().toArrow()["id"].to_pylist()
        nodes = _numbered(ids)
        numbered = _by_number(_by_number(rows, nodes, spark, "a", "one"), nodes, spark, "b", "other")
        links = numbered.select(
            F.least("one", "other").alias("a"),
            F.greatest("one", "other").alias("b"),
            *(F.round((F.col(name) - ends[0]) * SECOND).cast("long").alias(name) for name in ("start", "end")),
        )
        written = _write(links, draft / "links", LINKS, ["start", "a", "b"])
    finally:
        rows.unpersist()
    pq.write_table(nodes, draft / NODES_FILE)
    return TraceDescription(
        version=VERSION,
        kind="contacts",
        format=format,
        source=source.name,
        nodes=nodes.num_rows,
        begins=ends[0],
        span=ends[1] - ends[0],
        rows=written,
        refused=_refused(read, draft),
    )


def _refused(read: Read, draft: Path) -> dict[str, int]:
    """Writes the refused lines to a file, and counts them by reason."""
    folder = draft / "refused"
    _written(read.refused, folder)
    counted = Counter[str]()
    for part in folder.glob("*.parquet"):
        for group in pq.read_table(part, columns=["reason"])["reason"].value_counts().to_pylist():
            counted[group["values"]] += group["counts"]
    if not counted:
        shutil.rmtree(folder)
    return dict(sorted(counted.items()))


def _write(rows: DataFrame, folder: Path, schema: pa.Schema, order: list[str]) -> int:
    """Writes the rows, sorted within each file; returns their number."""
    _written(rows.sortWithinPartitions(*order), folder)
    parts = sorted(folder.glob("*.parquet"))
    if parts and pq.read_schema(parts[0]).names != schema.names:
        raise AssertionError(f"{folder} has other columns than {schema.names}")
    return sum(pq.read_metadata(part).num_rows for part in parts)


def _written(rows: DataFrame, folder: Path) -> None:
    """Writes Spark's files, and names them by their order, so that equal traces have equal contents."""
    rows.write.option("parquet.block.size", _GROUP).parquet(spark_uri(folder), compression="zstd")
    for part in folder.iterdir():
        if part.suffix != ".parquet" or part.name.startswith("."):
            part.unlink()
    for number, part in enumerate(sorted(folder.glob("*.parquet"))):
        part.rename(folder / f"part-{number:05}.parquet")
