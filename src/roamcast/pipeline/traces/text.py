"""Text files as lines, split into those that fit the format and those that are refused with a reason."""

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

_KEPT = 200
"""How many characters of a refused line are kept."""


def lines(spark: SparkSession, path: str) -> DataFrame:
    """(line): without blank lines and `#` comments. Spark reads .gz, .bz2 and .zst by the name's end."""
    text = spark.read.text(path).select(F.trim(F.regexp_replace("value", "^\ufeff|\r$", "")).alias("line"))
    return text.where((F.col("line") != "") & ~F.startswith("line", F.lit("#")))


def number(value: Column) -> Column:
    """Text or a number as a finite double, else null."""
    double = value.try_cast("double")
    return F.when(F.abs(double) < float("inf"), double)  # to Spark, NaN is greater than any


def apart(parsed: DataFrame, needed: dict[str, str], columns: list[str]) -> tuple[DataFrame, DataFrame]:
    """Rows in which no needed column is null, and the others as (reason, line). `needed` has the reason by column."""
    reason = F.coalesce(*(F.when(F.col(column).isNull(), F.lit(why)) for column, why in needed.items()))
    told = parsed.withColumn("reason", reason)
    refused = told.where("reason is not null").select("reason", F.substring("line", 1, _KEPT).alias("line"))
    return told.where("reason is null").select(*columns), refused
