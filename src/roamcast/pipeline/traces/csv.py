"""Positions as comma-separated values. `roamcast.sim.mobility.samples` says what is read, and reads it, here as in a
scenario. The same columns in Parquet (a name that ends in .parquet) are read as column expressions: numbers need no
parsing."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it
from pyspark.sql.types import StringType, TimestampNTZType, TimestampType

from roamcast.errors import RoamcastError
from roamcast.pipeline.traces.samples import Read
from roamcast.pipeline.traces.text import apart, files_of, first_lines, lines, number, parsed
from roamcast.sim.mobility.lines import Refused
from roamcast.sim.mobility.samples import EPOCH_UNITS, SampleColumns, find
from roamcast.storage import local_path

_ROW: Final = "id string, t double, x double, y double"


def read(spark: SparkSession, path: str, named: Mapping[str, str], zone: ZoneInfo | None) -> Read:
    """`named` has the columns whose names are not the usual ones; local times are in `zone`."""
    source = local_path(path)
    try:
        if path.removesuffix("/").endswith(".parquet"):
            return _from_parquet(spark.read.parquet(path), named, zone)
        text = lines(spark, path)
        head = text.first()
        if head is None:
            raise RoamcastError(f"{source}: it is empty")
        columns = SampleColumns.of_line(head["line"], named, zone)
    except Refused as problem:
        raise RoamcastError(f"{source}: {problem}") from None
    _check_headers(source, head["line"])
    return _from_text(text.where(F.col("line") != head["line"]), columns)


def _from_text(text: DataFrame, columns: SampleColumns) -> Read:
    rows = parsed(text, columns.parse, _ROW)
    refused = rows.where("reason is not null").select("reason", "line")
    return Read(rows.where("reason is null").select("id", "t", "x", "y"), refused, columns.geographic)


def _check_headers(path: Path, header: str) -> None:
    """All files of a folder must have the same columns in the same order."""
    for file in files_of(path) if path.is_dir() else ():
        if (first := first_lines(file, 1)) and first[0] != header:
            raise RoamcastError(f"{file}: its header is {first[0]}, and that of others is {header}: import it alone")


def _from_parquet(frame: DataFrame, named: Mapping[str, str], zone: ZoneInfo | None) -> Read:
    found = find(tuple(frame.columns), named)
    wanted = frame.select(*(F.col(f"`{name}`").alias(what) for what, name in found.items()))
    columns = SampleColumns(tuple(found), {what: what for what in found}, zone=zone)
    if isinstance(wanted.schema["t"].dataType, StringType | TimestampNTZType):
        # Dates as text, and such without a zone, are for the one who knows the rules.
        return _from_text(wanted.select(F.to_csv(F.struct(*wanted.columns)).alias("line")), columns)
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
    good, refused = apart(rows, needed, ["id", "t", "x", "y"])
    return Read(good, refused, columns.geographic)


def _seconds(value: Column, is_instant: bool) -> Column:
    """The seconds: a number in its unit, or since 1970 for an instant."""
    if is_instant:
        return F.unix_micros(value) / 1_000_000
    seconds = number(value)
    for least, unit in reversed(EPOCH_UNITS):
        seconds = F.when(number(value) > least, number(value) * unit).otherwise(seconds)
    return seconds
