"""Importing a recording: CPU seconds, the JVM's included, and memory, for each size; and how they grow.

The log is made up: 1,000 nodes that report every second, with a tenth of the reports missing, one in a hundred twice,
and one in a thousand broken; latitude and longitude on slow curves. `python -m bench.traces 100` takes 100 million
reports, which are written to the folder for temporary files as 1.5 GB of Parquet, and become 3 GB of legs. `--csv`
writes them as text instead. `--thin` leaves out what a straight line replaces within a metre. `--heap 2g` is all that
the JVM gets, as on a laptop with 8 GB.
"""

import argparse
import os
import re
import tempfile
import time
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from bench.cpu import cpu_seconds
from roamcast.pipeline.session import session
from roamcast.pipeline.traces.importing import Options, import_trace
from roamcast.pipeline.traces.samples import Selection
from roamcast.sim.mobility.base import Area
from roamcast.sim.mobility.trace import TraceDescription, leg_walks
from roamcast.storage import spark_uri

SIZES: Final = (1.0, 10.0)
"""Million reports."""
NODES: Final = 1000
TAKEN: Final = 100
WINDOW: Final = 120


def run(*millions: float, tolerance: float = 0.0, heap: str = "", text: bool = False) -> None:
    thinned = f", thinned out within {tolerance:g} m" if tolerance else ""
    limited = f", in a heap of {heap}" if heap else ""
    print(f"traces: a log of positions becomes legs{thinned}{limited}")
    suffix = "csv" if text else "parquet"
    conf = {"spark.driver.memory": heap} if heap else {}
    with tempfile.TemporaryDirectory(prefix="roamcast-bench-") as folder, session(None, conf, heavy=True) as spark:
        warm = write_log(spark, Path(folder) / f"warm.{suffix}", 0.05)
        import_trace(spark, warm, Path(folder) / "warm.trace")
        former = None
        for size in millions or SIZES:
            log, trace = write_log(spark, Path(folder) / f"log-{size:g}.{suffix}", size), Path(folder) / "log.trace"
            begin, before = time.perf_counter(), cpu_seconds()
            about = import_trace(spark, log, trace, Options(cut=Selection(gap=10, tolerance=tolerance)))
            wall, cpu = time.perf_counter() - begin, cpu_seconds() - before
            growth = "" if former is None else f", {cpu / former[1]:.2f} × for {size / former[0]:.2g} × as many"
            print(
                f"  {about.samples:,} reports, {about.rows:,} legs, {sum(about.refused.values()):,} refused: "
                f"{cpu:.1f} CPU s, {cpu / about.samples * 1e6:.1f} µs each{growth}; {wall:.1f} s, "
                f"peak of the JVM {peak(spark):.1f} GB"
            )
            former = size, cpu
            print(f"    of which a run takes {TAKEN} nodes for {WINDOW} s in {window(trace, about):.1f} CPU s")


def window(trace: Path, about: TraceDescription) -> float:
    """CPU seconds to draw the movement of a run from the trace."""
    area, before = Area(width=about.width + 1, height=about.height + 1), time.process_time()
    for walk in leg_walks(trace, area, TAKEN, 1, WINDOW, "drawn"):
        next(walk)
    return time.process_time() - before


def write_log(spark: SparkSession, path: Path, millions: float) -> Path:
    report = spark.range(round(millions * 1e6)).select(
        (F.col("id") % NODES).alias("node"), F.floor(F.col("id") / NODES).alias("at"), F.rand(1).alias("chance")
    )
    angle = F.col("at") / 300 + F.col("node")
    rows = report.where("chance > 0.1").select(
        F.concat(F.lit("taxi-"), F.col("node")).alias("id"),
        F.col("at").cast("double").alias("time"),
        F.when(F.col("chance") < 0.101, None).otherwise(45 + 0.05 * F.sin(angle) + F.col("node") / 1e5).alias("lat"),
        (7 + 0.05 * F.cos(angle * 0.7)).alias("lon"),
        "chance",
    )
    twice = F.when(F.col("chance") < 0.11, F.array(F.lit(1), F.lit(2))).otherwise(F.array(F.lit(1)))
    shuffled = rows.withColumn("copy", F.explode(twice)).drop("chance", "copy").repartition(8, F.rand(2))
    shuffled.write.csv(spark_uri(path), header=True) if path.suffix == ".csv" else shuffled.write.parquet(
        spark_uri(path)
    )
    return path


def peak(spark: SparkSession) -> float:
    """The most memory that the JVM has had so far, in GB."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    pid = int(jvm.java.lang.ProcessHandle.current().pid())
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 / 1e9 if found else float("nan")


if __name__ == "__main__":
    print(f"on {os.cpu_count()} cores")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("millions", nargs="*", type=float)
    parser.add_argument("--thin", action="store_true")
    parser.add_argument("--heap", default="")
    parser.add_argument("--csv", action="store_true")
    given = parser.parse_args()
    run(*given.millions, tolerance=1.0 if given.thin else 0.0, heap=given.heap, text=given.csv)
