"""Campaigns on Spark: plan, simulate, measure, judge. Only this package knows pyspark."""
