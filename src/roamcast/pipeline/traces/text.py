"""Text files as lines, and lines told apart: what fits the format, and what is refused with a reason."""

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

_KEPT = 200
"""Characters of a refused line that are kept."""


def lines(spark: SparkSession, path: str) -> DataFrame:
    """(line): without blank lines and `#` comments. Spark reads .gz, .bz2 and .zst by the name's end."""
    text = spark.read.text(path).select(F.trim(F.regexp_replace("value", "^\ufeff|\r$", "")).alias("line"))
    return text.where((F.col("line") != "") & ~F.startswith("line", F.lit("#")))


def number(value: Column) -> Column:
    """A finite double, else null: of text, or of a number."""
    double = value.try_cast("double")
    return F.when(F.abs(double) < float("inf"), double)  # to Spark, NaN is greater than any


def apart(parsed: DataFrame, needed: dict[str, str], columns: list[str]) -> tuple[DataFrame, DataFrame]:
    """Rows in which no needed column is null, and the others as (reason, line). `needed`: by column, the reason."""
    reason = F.coalesce(*(F.when(F.col(column).isNull(), F.lit(why)) for column, why in needed.items()))
    told = parsed.withColumn("reason", reason)
    refused = told.where("reason is not null").select("reason", F.substring("line", 1, _KEPT).alias("line"))
    return told.where("reason is null").select(*columns), refused
