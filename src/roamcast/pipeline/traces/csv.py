"""Positions as comma-separated values. `roamcast.sim.mobility.samples` says what is read, here as in a scenario.

Text is parsed once, into Parquet files beside the trace that is being made; all that follows reads those. Each task
reads a part of the text itself: lines that come through the JVM cost ten times what parsing them does. Arrow parses
those of the usual form, a batch at a time; any other line is left to `SampleColumns`, which owns the rules. The same
columns in Parquet (a name that ends in .parquet) are read as column expressions: numbers need no parsing.
"""

import contextlib
import math
import uuid
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType, TimestampNTZType, TimestampType

from roamcast.errors import RoamcastError
from roamcast.facts.recorder import batch_of
from roamcast.pipeline.spread import spread
from roamcast.pipeline.traces.samples import Read
from roamcast.pipeline.traces.text import KEPT, apart, files_of, first_lines, lines_of, number, parts_of
from roamcast.sim.mobility.lines import Refused
from roamcast.sim.mobility.samples import EPOCH_UNITS, SampleColumns, find
from roamcast.storage import spark_uri

_ROWS: Final = pa.schema({"id": pa.string(), "t": pa.float64(), "x": pa.float64(), "y": pa.float64()})
_REFUSED: Final = pa.schema({"reason": pa.string(), "line": pa.string()})
_STAGED: Final = {"rows": _ROWS, "refused": _REFUSED}
"""The folders of what was parsed."""
_PROBLEMS: Final = pa.schema({"problem": pa.string()})
_NUMBER: Final = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_DATE: Final = r"^(1\d{3}|20[0-2]\d|203[0-7])-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?$"
"""The usual forms of a time that are parsed by batches; a date that says its offset is not among them, nor one after
2037, for which Arrow knows no summer time."""


def read(spark: SparkSession, source: Path, staged: Path, named: Mapping[str, str], zone: ZoneInfo | None) -> Read:
    """`named` has the columns whose names are not the usual ones; local times are in `zone`. What is parsed from text
    is written to the folder `staged`."""
    try:
        if source.name.endswith(".parquet"):
            return _from_parquet(spark, source, staged, named, zone)
        files = files_of(source) if source.is_dir() else [source]
        header = next((first[0] for file in files if (first := first_lines(file, 1))), None)
        if header is None:
            raise RoamcastError(f"{source}: it is empty")
        columns = SampleColumns.of_line(header, named, zone)
    except Refused as problem:
        raise RoamcastError(f"{source}: {problem}") from None
    for file in files:
        if (first := first_lines(file, 1)) and first[0] != header:
            raise RoamcastError(f"{file}: its header is {first[0]}, and that of others is {header}: import it alone")
    return _from_text(spark, files, staged, columns, header)


def _from_text(spark: SparkSession, files: list[Path], staged: Path, columns: SampleColumns, header: str = "") -> Read:
    for folder in _STAGED:
        (staged / folder).mkdir(parents=True)
    parts = parts_of(files)
    each = partial(_stage, columns, header, str(staged))
    if len(parts):
        problems = spread(spark, [parts.slice(number, 1) for number in range(len(parts))], each, _PROBLEMS)
        for problem in problems["problem"].to_pylist():
            raise RoamcastError(problem)
    rows, refused = (
        spark.read.schema(from_arrow_schema(schema)).parquet(spark_uri(staged / folder))
        for folder, schema in _STAGED.items()
    )
    return Read(rows, refused, columns.geographic)


def _stage(columns: SampleColumns, header: str, staged: str, part: pa.Table) -> pa.Table:
    """Parses a part of a text into files of its own, which have their names when they are complete: Spark may run a
    task twice."""
    (one,) = part.to_pylist()
    named = {folder: Path(staged) / folder / f"{one['number']:05}.parquet" for folder in _STAGED}
    drafts = {folder: path.with_name(f".{path.name}.{uuid.uuid4().hex}") for folder, path in named.items()}
    with contextlib.ExitStack() as files:
        rows, refused = (
            files.enter_context(pq.ParquetWriter(drafts[folder], schema, compression="lz4", use_dictionary=["id"]))
            for folder, schema in _STAGED.items()
        )
        try:
            for lines in lines_of(Path(one["file"]), one["begin"], one["end"]):
                good, bad = parse_batch(columns, lines.filter(pc.not_equal(lines, header)))
                rows.write_table(good)
                refused.write_table(bad)
        except RoamcastError as problem:  # raised here, it would come out as a stack trace of Java's
            return pa.table([[str(problem)]], schema=_PROBLEMS)
    for folder, draft in drafts.items():
        draft.replace(named[folder])
    return _PROBLEMS.empty_table()


def parse_batch(columns: SampleColumns, lines: pa.StringArray) -> tuple[pa.Table, pa.Table]:
    """What `columns.parse` says of each line: rows, and what was refused."""
    values = pc.split_pattern(lines, columns.separator)
    whole = pc.and_(
        pc.equal(pc.list_value_length(values), len(columns.header)), pc.invert(pc.match_substring(lines, '"'))
    )
    id, t, x, y = (pc.utf8_trim_whitespace(pc.list_element(values.filter(whole), at)) for at in columns.wanted)
    dates = len(t) > 0 and pc.match_substring_regex(t[0].as_py(), _DATE).as_py()
    usual = pc.not_equal(id, "")
    for texts, form in ((t, _DATE if dates else _NUMBER), (x, _NUMBER), (y, _NUMBER)):
        usual = pc.and_(usual, pc.match_substring_regex(texts, form))
    try:
        seconds = _instants(t.filter(usual), columns.zone) if dates else _units(t.filter(usual))
    except pa.ArrowInvalid:  # such as a 30th of February, or an hour that clocks skip: which line it is, is found there
        return _one_by_one(columns, lines)
    places = [texts.filter(usual).cast(pa.float64()).to_numpy() for texts in (x, y)]
    fits = np.isfinite(seconds)
    for place, most in zip(places, (180.0, 90.0) if columns.geographic else (math.inf, math.inf), strict=True):
        fits &= np.isfinite(place) & (np.abs(place) <= most)
    taken = np.zeros(len(lines), bool)
    taken[np.flatnonzero(whole)[np.flatnonzero(usual)[fits]]] = True
    good = [id.filter(usual).filter(pa.array(fits)), *(pa.array(column[fits]) for column in (seconds, *places))]
    others, refused = _one_by_one(columns, lines.filter(pa.array(~taken)))
    return pa.concat_tables([pa.table(good, schema=_ROWS), others]), refused


def _one_by_one(columns: SampleColumns, lines: pa.StringArray) -> tuple[pa.Table, pa.Table]:
    rows: list[tuple[Any, ...]] = []
    refused: list[tuple[str, str]] = []
    for line in lines.to_pylist():
        try:
            rows.append(columns.parse(line))
        except Refused as problem:
            refused.append((str(problem), line[:KEPT]))
    return pa.table(batch_of(rows, _ROWS)), pa.table(batch_of(refused, _REFUSED))


def _units(texts: pa.StringArray) -> np.ndarray:
    """Seconds: numbers, the larger of which are in smaller units."""
    values = texts.cast(pa.float64()).to_numpy()
    return np.select([values > least for least, _ in EPOCH_UNITS], [values * unit for _, unit in EPOCH_UNITS], values)


def _instants(texts: pa.StringArray, zone: ZoneInfo | None) -> np.ndarray:
    """Seconds since 1970 of local dates and times."""
    instants = texts.cast(pa.timestamp("us"))
    if zone is not None:
        instants = pc.assume_timezone(instants, str(zone), ambiguous="raise", nonexistent="raise")
    since: np.ndarray = instants.cast(pa.int64()).to_numpy()
    return since / 1e6


def _from_parquet(
    spark: SparkSession, source: Path, staged: Path, named: Mapping[str, str], zone: ZoneInfo | None
) -> Read:
    frame = spark.read.parquet(spark_uri(source))
    found = find(tuple(frame.columns), named)
    found = {"t": found["t"], **found}  # first, since a line of text that begins with an id may look like a comment
    wanted = frame.select(*(F.col(f"`{name}`").alias(what) for what, name in found.items()))
    columns = SampleColumns(tuple(found), {what: what for what in found}, zone=zone)
    if isinstance(wanted.schema["t"].dataType, StringType | TimestampNTZType):
        # Dates as text, and such without a zone, are for the one who knows the rules.
        wanted.select(F.to_csv(F.struct(*wanted.columns))).write.text(spark_uri(staged / "text"))
        return _from_text(spark, files_of(staged / "text"), staged, columns)
    node, (east, north) = F.trim(F.col("id").cast("string")), columns.axes
    limits = (180.0, 90.0) if columns.geographic else (math.inf, math.inf)
    places = {
        axis: F.when(F.abs(number(F.col(what))) <= most, number(F.col(what)))
        for axis, what, most in zip("xy", columns.axes, limits, strict=True)
    }
    rows = wanted.select(
        F.when(node != "", node).alias("id"),
        _seconds(F.col("t"), isinstance(wanted.schema["t"].dataType, TimestampType)).alias("t"),
        *(value.alias(axis) for axis, value in places.items()),
        F.concat_ws(",", *(F.col(what).cast("string") for what in wanted.columns)).alias("line"),
    )
    bad = "is not a number" + (" within ±180° (±90° north)" if columns.geographic else "")
    needed = {"id": "it has no id", "t": "its time is not a time", "x": f"{east} {bad}", "y": f"{north} {bad}"}
    return apart(rows, needed, geographic=columns.geographic)


def _seconds(value: Column, is_instant: bool) -> Column:
    """The seconds: a number in its unit, or since 1970 for an instant."""
    if is_instant:
        return F.unix_micros(value) / 1_000_000
    seconds = number(value)
    for least, unit in reversed(EPOCH_UNITS):
        seconds = F.when(number(value) > least, number(value) * unit).otherwise(seconds)
    return seconds
