"""Whether a recording was understood: what its trace looks like, and what of it cannot be.

A recording in another unit, another order of columns or another time zone than its reader takes it for mostly makes a
trace, but not a plausible one: nobody moves, or everybody flies.
"""

from collections.abc import Iterator
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.sim.mobility.trace import Speeds, TraceDescription
from roamcast.units import SECOND

FAST: Final = 150.0
"""m/s: faster than any train. Single legs are: a receiver that has lost its satellites reports a jump."""
_FAST_LEGS: Final = 0.01
_WIDE: Final = 1_000_000.0
"""m: a flat map of a larger part of the Earth is wrong, and a radio network is smaller."""
_REFUSED: Final = 0.5


def speeds(legs: DataFrame) -> Speeds:
    """Of all legs, in one pass."""
    speed = F.hypot(F.col("x1") - F.col("x0"), F.col("y1") - F.col("y0")) / (F.col("end") - F.col("start")) * SECOND
    found = legs.select(speed.alias("speed")).agg(
        F.percentile_approx("speed", F.array(F.lit(0.5), F.lit(0.95))).alias("shares"),
        F.max("speed").alias("most"),
        F.avg((F.col("speed") > FAST).cast("double")).alias("fast"),
    )
    row = found.first()
    assert row is not None
    return Speeds(median=row.shares[0], p95=row.shares[1], most=row.most, implausible=row.fast)


def refused_share(about: TraceDescription) -> float:
    """Of the lines of a recording, those that were refused; positions and contacts stand for the others."""
    refused = sum(about.refused.values())
    return refused / max(1, refused + (about.samples or about.rows))


def doubts(about: TraceDescription) -> list[str]:
    """What is implausible about a trace, each with what may be the cause."""
    return [f"  {doubt}" for doubt in _doubts(about)]


def _doubts(about: TraceDescription) -> Iterator[str]:
    if not about.rows:
        yield (
            f"no leg: in {about.span:g} s, no node has two positions that are at most --gap apart: give a longer "
            "--gap, or times in s"
        )
    if max(about.width, about.height) > _WIDE:
        yield (
            f"an area of {about.width / 1000:,.0f} km × {about.height / 1000:,.0f} km: leave out what is far off with "
            "--box, or check which column is which"
        )
    if about.speeds is not None and about.speeds.implausible > _FAST_LEGS:
        yield (
            f"{about.speeds.implausible:.1%} of all legs are faster than {FAST:g} m/s: check the units, which column "
            "is which, whether two nodes share an id, and whether times are local (--timezone)"
        )
    if (share := refused_share(about)) > _REFUSED:
        reasons = "; ".join(f"{count} × {reason}" for reason, count in about.refused.items())
        yield f"{share:.0%} of the lines were refused: {reasons}"
