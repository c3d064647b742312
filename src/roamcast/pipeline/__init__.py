"""Campaigns on Spark: plan, simulate, measure, judge. Only this package knows pyspark."""

from typing import Final

SIMULATES: Final = "ROAMCAST_SIMULATES"
"""In the environment of Spark's workers: tasks will simulate, and not only measure."""
