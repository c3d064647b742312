"""A process can have one session at a time, and the tests share a local one: programs of their own use the cluster."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pipeline.cluster import Daemon
from roamcast.errors import RoamcastError
from roamcast.pipeline.jvm import find_java
from roamcast.pipeline.session import spark_environment

pytestmark = pytest.mark.slow

TASKS = 6

TESTS = Path(__file__).parents[1]
PROGRAM = """
import json, os, sys, threading, time, uuid
from pathlib import Path
from pipeline.cluster import standalone_cluster
from roamcast.pipeline import SIMULATES
from roamcast.pipeline.session import session

folder, tasks = Path(sys.argv[1]), int(sys.argv[2])

def daemons():
    return {path.name.split("-")[0] for path in folder.glob("*-*")}

def hold(batches):
    # A start of a task is a file named after the daemon it comes from. None ends before there is a file `go`.
    (folder / f"{os.getppid()}-{uuid.uuid4()}").touch()
    while not (folder / "go").exists():
        time.sleep(0.01)
    yield from batches

def where(batches):
    import pyarrow as pa
    warm = {"roamcast.analysis.kernels", "roamcast.sim.core.kernel"} <= sys.modules.keys()
    daemon = Path(f"/proc/{os.getppid()}/cmdline").read_text().split(chr(0))[2]
    for batch in batches:
        yield pa.RecordBatch.from_pylist([{"daemon": daemon, "warm": warm}])

def disturb(cluster):
    while len(daemons()) < 2:
        time.sleep(0.01)
    cluster.workers[0].kill()
    (folder / "go").touch()
"""

KILLED = """
with standalone_cluster(workers=2, cores=1) as cluster, session(cluster.url) as spark:
    killer = threading.Thread(target=disturb, args=[cluster])
    killer.start()
    rows = spark.range(tasks, numPartitions=tasks).mapInArrow(hold, "id long").collect()
    killer.join()
    print(json.dumps({"ids": [row.id for row in rows], "starts": len(list(folder.glob("*-*"))),
                      "pids": [*map(int, daemons()), *(d.process.pid for d in (cluster.master, *cluster.workers))]}))
"""

FAILING = """
with standalone_cluster(workers=1, cores=1) as cluster, session(cluster.url) as spark:
    spark.sparkContext.environment[SIMULATES] = "1"
    [row] = spark.range(1, numPartitions=1).mapInArrow(where, "daemon string, warm boolean").collect()
    print(json.dumps({"daemon": row.daemon, "warm": row.warm, "url": cluster.url,
                      "java": [os.readlink(f"/proc/{d.process.pid}/exe") for d in (cluster.master, *cluster.workers)],
                      "pids": [d.process.pid for d in (cluster.master, *cluster.workers)]}))
    sys.exit("an error of the program's own")
"""


def run(program: str, folder: Path, environment: dict[str, str]) -> tuple[dict[str, Any], str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + program, str(folder), str(TASKS)],
        env={**environment, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout), done.stderr


def assert_gone(pids: list[int]) -> None:
    """Executors' Python processes end by themselves when they see their JVM gone: that takes a moment."""
    deadline = time.monotonic() + 20
    while left := [pid for pid in pids if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def test_a_job_outlives_a_worker_killed_in_its_middle(tmp_path: Path, no_java: dict[str, str]) -> None:
    found, stderr = run(KILLED, tmp_path, no_java)
    assert stderr == ""
    assert sorted(found["ids"]) == list(range(TASKS))
    # One core, so one task was under way at the killed worker, and was started again at the other.
    assert found["starts"] == TASKS + 1
    assert_gone(found["pids"])


def test_tasks_are_warm_on_a_cluster_and_an_error_leaves_no_process(tmp_path: Path) -> None:
    found, stderr = run(FAILING, tmp_path, dict(os.environ))
    assert stderr == "an error of the program's own\n"
    assert found["daemon"] == "roamcast.pipeline.worker_daemon"
    assert found["warm"]
    assert found["url"].startswith("spark://127.0.0.1:")
    assert found["java"] == [str((find_java().home / "bin" / "java").resolve())] * 2
    assert_gone(found["pids"])


def test_a_daemon_that_ends_is_not_waited_for_and_its_log_is_shown(tmp_path: Path) -> None:
    environment = spark_environment({"spark.master": "local"})
    daemon = Daemon("org.example.Nothing", [], environment, tmp_path / "log")
    with pytest.raises(RoamcastError, match=r"(?s)did not say 'ready'.*org\.example\.Nothing"):
        daemon.await_line(re.compile("ready"))
    daemon.kill()
