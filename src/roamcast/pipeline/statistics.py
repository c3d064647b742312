"""Statistics over runs: mean, standard deviation and 95 % t-interval over seeds, and paired differences.

The rules this file owns:

* The seeds are the sample. The standard deviation divides by n − 1, the interval is mean ± t · sd / √n with the 97.5 %
  quantile of Student's t for n − 1 degrees of freedom; both are undefined for fewer than two values.
* Differences are taken seed by seed: variants of a point see the same movement, subscriptions and publications.
* Relative differences are 100 · (variant − baseline) / baseline, taken seed by seed too. A seed whose baseline is 0, or
  below the measure's floor, has none: a share of next to nothing says nothing.
* Sums go through the seeds in their order, so that equal runs give equal bytes however Spark cuts its partitions.
"""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.pipeline.schemas import PAIRED, SUMMARY
from roamcast.statistics.intervals import LEVEL, large_t_quantile, t_quantile

_VALUE: Final = {"value": ""}
_FEW: Final = 501
"""Up to this many seeds, quantiles are exact."""
_NO_FLOORS: Final[Mapping[str, float]] = {}


def summary(runs: DataFrame, measured: DataFrame, names: list[str], most: int) -> DataFrame:
    """Every planned variant and point, by measure; `most` is the largest possible number of seeds."""
    by = ["experiment", "variant", "point", "axes", "measure"]
    return _intervals(_values(runs, measured, names), by, most).select(*SUMMARY.names)


def paired(
    runs: DataFrame, measured: DataFrame, names: list[str], most: int, floors: Mapping[str, float] = _NO_FLOORS
) -> DataFrame:
    """Every variant against every other of its experiment, by point and measure; `floors` are by measure."""
    values = _values(runs, measured, names)
    same = ["experiment", "point", "seed", "measure"]
    baselines = values.select(*same, F.col("variant").alias("baseline"), F.col("value").alias("base"))
    differences = (
        values.join(baselines, same, "inner")
        .where(F.col("variant") != F.col("baseline"))
        .withColumn("value", F.col("value") - F.col("base"))
        .withColumn("relative", F.when(_comparable(floors), 100 * F.col("value") / F.col("base")))
    )
    by = ["experiment", "point", "axes", "variant", "baseline", "measure"]
    return _intervals(differences, by, most, {"value": "", "relative": "relative_"}).select(*PAIRED.names)


def _comparable(floors: Mapping[str, float]) -> Column:
    """Whether a difference relative to the baseline is meaningful."""
    comparable = F.col("base") != 0
    for measure, floor in floors.items():
        comparable &= (F.col("measure") != measure) | (F.col("base") >= floor)
    return comparable


def _values(runs: DataFrame, measured: DataFrame, names: list[str]) -> DataFrame:
    """One row per planned run and measure; the value of a failed run is null."""
    wanted = runs.select("experiment", "variant", "point", "axes", "seed", "run").withColumn(
        "measure", F.explode(F.lit(names))
    )
    return wanted.join(measured, ["run", "measure"], "left")


def _intervals(values: DataFrame, by: list[str], most: int, columns: Mapping[str, str] = _VALUE) -> DataFrame:
    """By group, the statistics of some columns; `columns` gives the prefix of each one's names."""
    described = values.groupBy(*by).agg(*(_known(column).alias(column) for column in columns))
    for column, prefix in columns.items():
        described = _described(described, column, prefix, most)
    return described


def _known(column: str) -> Column:
    """The values that are not null, in the order of the seeds."""
    by_seed = F.sort_array(F.collect_list(F.struct("seed", column)))
    return F.filter(F.transform(by_seed, lambda pair: pair[column]), lambda value: value.isNotNull())


def _described(values: DataFrame, column: str, prefix: str, most: int) -> DataFrame:
    """Adds the statistics of a column of arrays."""
    quantiles = [None, None, *(t_quantile(LEVEL, n - 1) for n in range(2, min(most, _FEW) + 1))]
    n, mean, sd = (F.col(f"{prefix}{name}") for name in ("n", "mean", "sd"))
    quantile = F.get(F.array(*(F.lit(q).cast("double") for q in quantiles)), n)
    if most > _FEW:  # a plan with ten thousand constants is slow, and computing them takes minutes
        quantile = F.when(n <= _FEW, quantile).otherwise(large_t_quantile(LEVEL, n - 1))
    squares = _sum(F.transform(column, lambda value: (value - mean) * (value - mean)))
    margin = quantile * sd / F.sqrt(n)
    return (
        values.withColumn(f"{prefix}n", F.size(column))
        .withColumn(f"{prefix}mean", F.try_divide(_sum(F.col(column)), n))
        .withColumn(f"{prefix}sd", F.when(n >= 2, F.sqrt(squares / (n - 1))))
        .withColumn(f"{prefix}low", mean - margin)
        .withColumn(f"{prefix}high", mean + margin)
    )


def _sum(values: Column) -> Column:
    return F.aggregate(values, F.lit(0.0), lambda total, value: total + value)
