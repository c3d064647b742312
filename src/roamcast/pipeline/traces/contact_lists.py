"""Who saw whom, and when: lists as the iMotes of Haggle and similar experiments left them.

Lines `observer seen first last …`, separated by white space or commas, times in s; what follows is ignored. Or instants
`a b time`, in ms since 1970 where they are that large. The conventions, which differ from paper to paper:

* A contact is mutual: if either of two nodes saw the other, both had the contact.
* Devices scan now and then. A contact is extended by half a scan at each end, so one seen once lasts one scan.
* Contacts of a pair that then overlap or touch are one.
* Rows of a node with itself, and rows that end before they begin, are refused.
"""

from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.pipeline.traces.samples import Read
from roamcast.pipeline.traces.spans import merged
from roamcast.pipeline.traces.text import apart, lines, number

_MILLISECONDS: Final = 1e11
"""Greater times are in ms: in s, this would be the year 5138."""


def read(spark: SparkSession, path: str, scan: float, observers_only: bool) -> Read:
    """`observers_only` leaves out contacts with devices that did not take part and were only seen."""
    words = lines(spark, path).withColumn("word", F.split("line", r"[\s,;]+"))
    first, last = (number(F.get("word", F.lit(at))) for at in (2, 3))
    end = F.when(F.size("word") > 3, last).otherwise(first)
    unit = F.when(first > _MILLISECONDS, 0.001).otherwise(1.0)
    one, other = F.get("word", F.lit(0)), F.get("word", F.lit(1))
    parsed = words.select(
        "line",
        one.alias("observer"),
        F.when(one != other, F.least(one, other)).alias("a"),
        F.when(one != other, F.greatest(one, other)).alias("b"),
        (first * unit).alias("start"),
        F.when(end >= first, end * unit).alias("end"),
    )
    needed = {
        "start": "expected observer, seen, first and last time",
        "a": "a node with itself",
        "end": "it ends before it begins, or at no time",
    }
    read = apart(parsed, needed, ("observer", "a", "b", "start", "end"))
    good = read.rows
    if observers_only:
        took_part = good.select("observer").distinct()
        for column in ("a", "b"):
            good = good.join(took_part.select(F.col("observer").alias(column)), column, "left_semi")
    half = scan / 2
    extended = good.select("a", "b", (F.col("start") - half).alias("start"), (F.col("end") + half).alias("end"))
    return Read(merged(extended), read.refused)
