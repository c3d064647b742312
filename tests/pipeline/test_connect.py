"""Measuring over Spark Connect, with a server of its own on loopback. The client, `pyspark[connect]`, is in a program
of its own: a process that has a classic session can have no other.

Every eighth measure, so that most families have one: starting and warming a second JVM is work enough."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pipeline.tiny import planned
from roamcast.analysis.measures.catalogue import CATALOGUE
from roamcast.pipeline.measure import measure
from roamcast.pipeline.simulate import simulate

pytestmark = pytest.mark.slow
pytest.importorskip("grpc_status", reason="Spark Connect's client is not installed: pip install 'pyspark[connect]'")

CHOSEN = list(CATALOGUE)[::8]
PATIENCE = 600.0
PROGRAM = """
import os, signal, socket, subprocess, sys, time
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

import roamcast
from roamcast.campaign.define.plan import CampaignError
from roamcast.pipeline.measure import measure
from roamcast.pipeline.session import LIGHT, LOOPBACK, spark_environment
from roamcast.pipeline.simulate import classic_context

out = Path(sys.argv[1])
environment = spark_environment({"spark.master": "local[2]"})
home = Path(environment["SPARK_HOME"])
with socket.socket() as free:
    free.bind((LOOPBACK, 0))
    port = free.getsockname()[1]
settings = {
    "spark.connect.grpc.binding.address": LOOPBACK,
    "spark.connect.grpc.binding.port": port,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.host": LOOPBACK,
    "spark.driver.extraJavaOptions": LIGHT,
    "spark.sql.shuffle.partitions": 2,
    "spark.ui.enabled": "false",
}
command = [str(home / "bin" / "spark-submit"), "--master", "local[2]"]
command += [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
command += [str(next((home / "jars").glob("spark-connect_*.jar")))]
with Path(sys.argv[2]).open("wb") as log:
    server = subprocess.Popen(
        command, env=os.environ | environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
    )
try:
    while True:
        assert server.poll() is None, "the server has ended"
        try:
            socket.create_connection((LOOPBACK, port), 1).close()
            break
        except OSError:
            time.sleep(0.2)
    spark = SparkSession.builder.remote(f"sc://{LOOPBACK}:{port}").getOrCreate()
    measure(spark, out, sys.argv[3:])
    found = roamcast.load(out, spark)
    rows = found.sql("select variant, count(*) as runs from results group by all order by all").collect()
    print([(row.variant, row.runs) for row in rows], found.frame("publish").count() == found.facts("publish").num_rows)
    try:
        classic_context(spark)
    except CampaignError as problem:
        print(problem)
    spark.stop()
finally:
    os.killpg(server.pid, signal.SIGKILL)
    server.wait()
"""


def test_measures_say_over_connect_what_they_say_in_a_classic_session(spark: SparkSession, tmp_path: Path) -> None:
    classic, over_connect = tmp_path / "classic", tmp_path / "over_connect"
    simulate(spark, planned(tmp_path, seeds=2), classic)
    shutil.copytree(classic, over_connect)
    measure(spark, classic, CHOSEN)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, over_connect, tmp_path / "server.log", *CHOSEN],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr + (tmp_path / "server.log").read_text(errors="replace")[-3000:]
    answer, refusal = done.stdout.splitlines()
    assert answer == "[('flooding', 2), ('gossip', 2)] True"
    assert "simulating needs a classic Spark session" in refusal
    for name in ("run", "summary", "paired"):
        mine, theirs = (pq.read_table(out / "measures" / f"{name}.parquet") for out in (classic, over_connect))
        assert mine.num_rows > 0
        assert mine.equals(theirs)
