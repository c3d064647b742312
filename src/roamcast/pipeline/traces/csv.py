"""Positions as comma-separated values with a header: id, time, and x, y in metres or latitude, longitude in degrees.

Columns are recognised by their usual names, in any order and case: `id`, `node`, `vehicle`, `user`, …; `time`, `t`,
`timestamp`; `x`, `y`; `lat`, `lon`. Other columns are ignored. A time is a number of seconds, or a date and time such
as 2008-02-02T15:36:08Z, in UTC unless it says otherwise. The separator is a comma, a semicolon or a tab, as in the
header. The same columns in Parquet (a name that ends in .parquet) are read as well.
"""

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it
from pyspark.sql.types import DatetimeType, StringType

from roamcast.errors import RoamcastError
from roamcast.pipeline.traces.samples import Read
from roamcast.pipeline.traces.text import apart, number

_NAMES = {
    "id": ("id", "node", "node_id", "vehicle", "vehicle_id", "user", "user_id", "device", "taxi_id", "name"),
    "t": ("time", "t", "timestamp", "datetime", "date_time", "date time", "seconds"),
    "x": ("x",),
    "y": ("y",),
    "lon": ("lon", "lng", "long", "longitude"),
    "lat": ("lat", "latitude"),
}


def read(spark: SparkSession, path: str) -> Read:
    frame = _frame(spark, path)
    columns = {what: name for what, names in _NAMES.items() for name in frame.columns if name.strip().lower() in names}
    geographic = not {"x", "y"} <= columns.keys()
    east, north = ("lon", "lat") if geographic else ("x", "y")
    for needed in ("id", "t", east, north):
        if needed not in columns:
            raise RoamcastError(
                f"{path}: no column is the {_SAID[needed]}; it has {', '.join(frame.columns)}; "
                f"the header must have one of {', '.join(_NAMES[needed])}"
            )
    node = F.trim(F.col(f"`{columns['id']}`").cast("string"))
    parsed = frame.select(
        F.when(node != "", node).alias("id"),
        _seconds(frame, columns["t"]).alias("t"),
        number(_value(frame, columns[east])).alias("x"),
        number(_value(frame, columns[north])).alias("y"),
        F.concat_ws(",", *(F.col(f"`{name}`").cast("string") for name in frame.columns)).alias("line"),
    )
    if geographic:
        parsed = parsed.withColumns(
            {"x": F.when(F.abs("x") <= 180, F.col("x")), "y": F.when(F.abs("y") <= 90, F.col("y"))}
        )
    bad = "is no number, or no place on Earth" if geographic else "is no number"
    reasons = {"id": "it has no id", "t": "its time is no time", "x": f"its {east} {bad}", "y": f"its {north} {bad}"}
    good, refused = apart(parsed, reasons, ["id", "t", "x", "y"])
    return Read(good, refused, geographic)


def _frame(spark: SparkSession, path: str) -> DataFrame:
    """The columns: text, or what Parquet has."""
    if path.removesuffix("/").endswith(".parquet"):
        return spark.read.parquet(path)
    head = spark.read.text(path).first()
    separator = next((mark for mark in ("\t", ";", ",") if head is not None and mark in head[0]), ",")
    return spark.read.option("header", True).option("sep", separator).option("enforceSchema", False).csv(path)


def _value(frame: DataFrame, name: str) -> Column:
    """A column: text without surrounding blanks, a number as it is. Printing and parsing numbers would take longer
    than the rest of an import."""
    column = F.col(f"`{name}`")
    return F.trim(column) if isinstance(frame.schema[name].dataType, StringType) else column


def _seconds(frame: DataFrame, name: str) -> Column:
    """The seconds: a number as it is, or since 1970 for a date and time."""
    value, kind = _value(frame, name), frame.schema[name].dataType
    if isinstance(kind, StringType):
        return F.coalesce(number(value), F.unix_micros(F.try_to_timestamp(value)) / 1_000_000)
    if isinstance(kind, DatetimeType):
        return F.unix_micros(value.cast("timestamp")) / 1_000_000
    return number(value)


_SAID = {"id": "node's id", "t": "time", "lon": "longitude (or x)", "lat": "latitude (or y)", "x": "x", "y": "y"}
