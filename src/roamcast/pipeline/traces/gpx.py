"""GPX 1.1, as navigation devices write it: `<trkpt lat= lon=><time>…</time></trkpt>` in segments of tracks.

A file is one node, named after the file; a folder of files is a recording of several. A new segment or track is a gap,
however short: the device had lost its position, or was off. A point without a time is useless, and is refused. SUMO
writes metres into lat and lon if its net has no geo-reference: such points are not places on Earth, and are refused.
"""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from roamcast.pipeline.traces.samples import Read
from roamcast.pipeline.traces.text import apart, number

_POINT = StructType([StructField(name, StringType()) for name in ("_lat", "_lon", "time")])
_SEGMENT = StructType([StructField("trkpt", ArrayType(_POINT))])
_TRACK = StructType([StructField("trkseg", ArrayType(_SEGMENT))])


def read(spark: SparkSession, path: str) -> Read:
    tracks = spark.read.format("xml").option("rowTag", "trk").schema(_TRACK).load(path)
    segments = tracks.select(
        F.regexp_replace(F.col("_metadata.file_name"), r"(?i)\.gpx(\.gz)?$", "").alias("id"),
        F.monotonically_increasing_id().cast("string").alias("track"),
        F.posexplode("trkseg").alias("segment", "points"),
    )
    points = segments.select(
        "id", F.concat_ws(".", "track", "segment").alias("part"), F.explode("points.trkpt").alias("point")
    )
    lat, lon = number(F.col("point._lat")), number(F.col("point._lon"))
    parsed = points.select(
        "id",
        (F.unix_micros(F.try_to_timestamp(F.trim("point.time"))) / 1_000_000).alias("t"),
        F.when(F.abs(lon) <= 180, lon).alias("x"),
        F.when(F.abs(lat) <= 90, lat).alias("y"),
        "part",
        F.concat_ws(" ", "id", "point._lat", "point._lon", "point.time").alias("line"),
    )
    place = "is not a number, or not a place on Earth"
    reasons = {"t": "it has no time, or none that is one", "x": f"its longitude {place}", "y": f"its latitude {place}"}
    return apart(parsed, reasons, ("id", "t", "x", "y", "part"), geographic=True)
