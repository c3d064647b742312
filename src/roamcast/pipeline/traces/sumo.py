"""SUMO's floating car data (FCD): XML as `--fcd-output` writes it, CSV and Parquet as its newer versions do, .gz too.

    <timestep time="4.00"><vehicle id="bus.7" x="12.40" y="-1.60" .../></timestep>

Times are in s; x and y in m, or degrees east and north with `--fcd-output.geo`. The file does not say which, so even a
trace whose every x lies within ±180 and y within ±90 is read as degrees only on request. Ids are strings. Persons and
containers are nodes as well; persons inside a vehicle (nested in it) are not, as the vehicle stands for them. CSV and
Parquet have a row without an id for each empty step: it is ignored, and not an error.
"""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from roamcast.pipeline.traces.samples import Read
from roamcast.pipeline.traces.text import apart, number

_KINDS = ("vehicle", "person", "container")
_THING = StructType([StructField(f"_{name}", StringType()) for name in ("id", "x", "y")])
# Explicit, not inferred: ids that look like numbers would become numbers in one file and not in another.
_TIMESTEP = StructType([StructField("_time", StringType()), *(StructField(kind, ArrayType(_THING)) for kind in _KINDS)])
_COLUMNS = {
    "t": ("timestep_time", "time", "timestep"),
    **{column: (*(f"{kind}_{column}" for kind in _KINDS), column) for column in ("id", "x", "y")},
}


def read_xml(spark: SparkSession, path: str) -> Read:
    steps = spark.read.format("xml").option("rowTag", "timestep").schema(_TIMESTEP).load(path)
    things = F.concat(*(F.coalesce(kind, F.array().cast(ArrayType(_THING))) for kind in _KINDS))
    rows = steps.select(F.col("_time").alias("time"), F.explode(things).alias("thing"))
    return _told(rows.select("time", *(F.col(f"thing._{name}").alias(name) for name in ("id", "x", "y"))))


def read_csv(spark: SparkSession, path: str) -> Read:
    frame = spark.read.option("header", True).option("sep", ";").csv(path)
    return _told(_renamed(frame))


def read_parquet(spark: SparkSession, path: str) -> Read:
    return _told(_renamed(spark.read.parquet(path)))


def _renamed(frame: DataFrame) -> DataFrame:
    """Renames the columns from any of their known names to ours. Numbers in Parquet stay numbers: printing and parsing
    them would take longer than everything else."""
    there = {name.lower(): name for name in frame.columns}

    def found(column: str) -> list[str]:
        return [there[name] for name in _COLUMNS[column] if name in there]

    named = {
        name: F.coalesce(*(F.col(f"`{one}`") for one in found(column)), F.lit(None))
        for name, column in (("time", "t"), ("id", "id"), ("x", "x"), ("y", "y"))
    }
    named["id"] = named["id"].cast("string")
    return frame.select(*(column.alias(name) for name, column in named.items())).where("id is not null and id != ''")


def _told(rows: DataFrame) -> Read:
    parsed = rows.select(
        "id",
        *(number(F.col(column)).alias(name) for name, column in (("t", "time"), ("x", "x"), ("y", "y"))),
        F.concat_ws(" ", *(F.concat(F.lit(f"{name}="), F.col(name)) for name in ("time", "id", "x", "y"))).alias(
            "line"
        ),
    )
    needed = {"t": "its step has no time", "id": "it has no id", "x": "x is not a number", "y": "y is not a number"}
    return apart(parsed, needed)
