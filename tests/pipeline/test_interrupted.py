"""Campaigns that are killed, in any part and in the middle: what comes out equals an undisturbed one, bit by bit."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.cluster import standalone_cluster
from pipeline.tiny import done, odd, planned, results
from roamcast.campaign.define.plan import Plan
from roamcast.pipeline.simulate import simulate

RUNS = 10
PATIENCE = 120.0
TESTS = Path(__file__).parents[1]

# A campaign in a process of its own, which can be killed. On a cluster, tasks that take a little longer than others are
# started a second time wherever there is room.
DRIVER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from pipeline.tiny import odd, planned
from roamcast.pipeline.session import session
from roamcast.pipeline.simulate import simulate
folder, master = Path(sys.argv[2]), sys.argv[3]
plan = planned(folder, seeds=int(sys.argv[4]), **odd(folder, sys.argv[5]))
eager = {"quantile": "0.1", "multiplier": "1.01", "minTaskRuntime": "0", "interval": "20ms"}
conf = {"spark.speculation": "true", **{f"spark.speculation.{name}": value for name, value in eager.items()}}
with session(master, conf) as spark:
    simulate(spark, plan, folder / "out")
"""
SLOW = "time.sleep(0.4)"


@pytest.fixture
def slow(tmp_path: Path) -> Plan:
    return planned(tmp_path, seeds=RUNS, **odd(tmp_path, SLOW))


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("undisturbed")
    simulate(spark, planned(folder, seeds=RUNS, **odd(folder, SLOW)), folder / "out")
    return results(folder / "out")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Starts the campaign in a process, given the master; kills what is left of it in the end."""
    started: list[subprocess.Popen[bytes]] = []

    def driver(master: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", DRIVER, str(TESTS), str(tmp_path), master, str(RUNS), SLOW]
        started.append(subprocess.Popen(command, start_new_session=True))
        return started[-1]

    yield driver
    for process in started:
        process.kill()
        process.wait()


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, "it ended before it could be disturbed"
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
def test_a_killed_driver(
    start: Callable[[str], subprocess.Popen[bytes]],
    slow: Plan,
    tmp_path: Path,
    spark: SparkSession,
    undisturbed: dict[str, bytes],
) -> None:
    out, driver = tmp_path / "out", start("local[2]")
    wait_for(lambda: done(out) >= 2, driver)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    assert done(out) < RUNS
    assert not (out / "manifest.parquet").exists()
    simulate(spark, slow, out)
    assert results(out) == undisturbed


@pytest.mark.slow
def test_a_killed_worker_of_a_cluster(
    start: Callable[[str], subprocess.Popen[bytes]], tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    with standalone_cluster(workers=2, cores=1) as cluster:
        out, driver = tmp_path / "out", start(cluster.url)
        wait_for(lambda: done(out) >= 2, driver)
        cluster.workers[0].kill()
        assert done(out) < RUNS
        assert driver.wait(PATIENCE) == 0
    assert results(out) == undisturbed


def test_a_killed_python_process_in_the_middle_of_a_write(spark: SparkSession, tmp_path: Path) -> None:
    # The first of its kind kills itself when its files have begun to move to their places.
    marker, out = tmp_path / "killed", tmp_path / "out"
    suicide = (
        "from roamcast.pipeline import task; real = task.done_file\n"
        f"            def killing(*a): Path('{marker}').touch(); os.kill(os.getpid(), signal.SIGKILL)\n"
        f"            task.done_file = real if Path('{marker}').exists() else killing"
    )
    fatal = planned(tmp_path, seeds=3, **odd(tmp_path, suicide))
    simulate(spark, fatal, out)
    assert marker.exists()
    undisturbed = tmp_path / "undisturbed"
    simulate(spark, fatal, undisturbed)
    assert results(out) == results(undisturbed)
    assert not (out / "tmp").exists()
