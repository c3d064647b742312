"""What needs a JVM of its own runs in a program of its own: a process can have one session at a time."""

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import SparkContext, java_gateway
from pyspark.sql import Row, SparkSession

from roamcast.errors import RoamcastError
from roamcast.pipeline import SIMULATES
from roamcast.pipeline.jvm import find_java
from roamcast.pipeline.session import (
    _check_master,
    _no_jvm_left_behind,
    interrupted,
    session,
    spark_environment,
    spark_settings,
)

OPTIONS = "spark.driver.extraJavaOptions"


def settings(master: str | None = None, heavy: bool = False, verbose: bool = False, **conf: str) -> dict[str, str]:
    named = {key.replace("_", "."): value for key, value in conf.items()}
    return spark_settings(master, named, heavy=heavy, verbose=verbose)


def test_the_callers_settings_win() -> None:
    assert settings()["spark.master"] == "local[*]"
    assert settings("local[3]", spark_master="local[1]")["spark.master"] == "local[3]"
    assert settings(spark_master="local[1]")["spark.master"] == "local[1]"
    assert settings(spark_ui_enabled="true", spark_any_thing="x").items() >= {
        ("spark.ui.enabled", "true"),
        ("spark.any.thing", "x"),
    }


def test_jvm_options_of_the_caller_come_after_ours() -> None:
    assert settings(spark_driver_extraJavaOptions="-Xss4m")[OPTIONS].split()[-1] == "-Xss4m"
    assert "-XX:+UseSerialGC" in settings(spark_driver_extraJavaOptions="-Xss4m")[OPTIONS].split()


def test_a_heavy_session_has_the_full_compiler_and_a_verbose_one_sparks_own_logging() -> None:
    assert "TieredStopAtLevel" in settings()[OPTIONS]
    assert "log4j2.configurationFile" in settings()[OPTIONS]
    assert "TieredStopAtLevel" not in settings(heavy=True)[OPTIONS]
    assert "log4j2.configurationFile" in settings(heavy=True)[OPTIONS]
    assert "log4j2" not in settings(verbose=True)[OPTIONS]


@pytest.mark.parametrize(
    ("master", "here"),
    [
        ("local", True),
        ("local[*]", True),
        ("local-cluster[2,1,1024]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost:7077", True),
        ("spark://localhost.example.org:7077", False),
        ("spark://head:7077", False),
        ("spark://127.example.org:7077", False),
        ("localnet://x", False),
        ("yarn", False),
        ("k8s://https://127.0.0.1:6443", False),
    ],
)
def test_only_a_master_on_this_machine_binds_to_loopback(master: str, here: bool) -> None:
    chosen = settings(master)
    assert (chosen.get("spark.driver.host") == "127.0.0.1") is here
    assert (chosen.get("spark.driver.bindAddress") == "127.0.0.1") is here
    assert (spark_environment(chosen).get("SPARK_LOCAL_IP") == "127.0.0.1") is here


def test_workers_run_this_python_unless_a_real_cluster_has_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/there/python")
    assert spark_environment(settings())["PYSPARK_PYTHON"] == sys.executable
    assert spark_environment(settings("yarn"))["PYSPARK_PYTHON"] == "/opt/there/python"
    told = settings("yarn", spark_pyspark_python="/opt/told/python")
    assert spark_environment(told)["PYSPARK_PYTHON"] == "/opt/told/python"


@pytest.mark.parametrize(
    ("limit", "light", "heavy"),
    [
        (4 * 2**30, "1024m", "2048m"),
        (2**30, "1024m", "1024m"),
    ],
)
def test_a_containers_memory_is_shared_with_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, light: str, heavy: str
) -> None:
    (tmp_path / "memory.max").write_text(f"{limit}\n")
    monkeypatch.setattr("roamcast.pipeline.session._CONTAINER_LIMIT", tmp_path / "memory.max")
    assert settings()["spark.driver.memory"] == light
    assert settings(heavy=True)["spark.driver.memory"] == heavy


def test_a_session_leaves_the_environment_as_it_was(spark: SparkSession) -> None:
    assert spark.range(3).count() == 3
    assert not {"SPARK_LOCAL_IP", "SPARK_LAUNCHER_OPTS", "PYSPARK_DRIVER_PYTHON"} & os.environ.keys()


def test_a_second_session_at_once_is_refused(spark: SparkSession) -> None:
    with pytest.raises(RoamcastError, match="stop it first"), session():
        pass
    assert spark.range(3).count() == 3


def test_times_are_utc(spark: SparkSession) -> None:
    assert spark.sql("select cast(timestamp_seconds(0) as string) as epoch").collect() == [
        Row(epoch="1970-01-01 00:00:00")
    ]


def test_tasks_start_warm_in_children_of_our_daemon(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(spark.sparkContext.environment, SIMULATES, "1")

    def look_around(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Read before the imports that a task makes itself.
        warm = {"roamcast.sim.core.kernel", "roamcast.sim.run"} <= sys.modules.keys()
        for batch in batches:
            yield pa.RecordBatch.from_pylist(
                [
                    {
                        "python": sys.executable,
                        "warm": warm,
                        "frozen": gc.get_freeze_count() > 50_000,
                        # A process with threads must not fork.
                        "threads_of_daemon": len(os.listdir(f"/proc/{os.getppid()}/task")),  # noqa: PTH208
                    }
                ]
                * batch.num_rows
            )

    schema = "python string, warm boolean, frozen boolean, threads_of_daemon long"
    seen = spark.range(4, numPartitions=4).mapInArrow(look_around, schema).distinct().collect()
    assert seen == [Row(python=sys.executable, warm=True, frozen=True, threads_of_daemon=1)]


PROGRAM = """
import os, signal, time
from roamcast.pipeline.session import session

program = os.getpid()

def same(batches):
    yield from batches

def wrong(batches):
    raise ValueError("wrong on purpose")

def interrupting(batches):
    os.kill(program, signal.SIGINT)  # as Ctrl-C does, in the middle of a job
    time.sleep(100)

def jobs(spark):
    print(spark.sparkContext._jvm.java.lang.System.getProperty("java.home"))
    print(spark.range(100, numPartitions=3).mapInArrow(same, "id long").groupBy().sum().collect()[0][0])
    # Spark hangs up on tasks whose rest it does not need.
    print(spark.range(10**6).mapInArrow(same, "id long").limit(2).count())
    try:
        spark.range(1).mapInArrow(wrong, "id long").collect()
    except Exception as error:
        print("wrong on purpose" in str(error))
    spark.range(1, numPartitions=1).mapInArrow(interrupting, "id long").collect()

try:
    with session() as spark:
        jobs(spark)
except KeyboardInterrupt:
    print("interrupted", signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


def run(program: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-u", "-c", program], env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_only_what_the_program_prints_is_printed() -> None:
    done = run(PROGRAM, dict(os.environ))
    assert done.stderr == ""
    assert done.stdout.splitlines() == [str(find_java().home), "4950", "2", "True", "interrupted True"]
    assert done.returncode == 0


LATER = """
import sys
from py4j.protocol import Py4JError
from pyspark import SparkContext
from roamcast.errors import RoamcastError

def mark(text):
    print(text, file=sys.stderr, flush=True)

mark("= killed")
try:
    with session() as spark:
        os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
        spark.range(3).count()
except (Py4JError, ConnectionError) as error:  # which of them depends on when the socket notices
    print("gone")
mark("= verbose")
with session(verbose=True) as spark:
    print(spark.range(3).count())
mark("= never")
try:
    with session(conf={"spark.driver.memory": "1k"}):
        pass
except RoamcastError as error:
    print(error)
"""


@pytest.mark.slow  # four JVMs
def test_without_a_java_the_bundled_one_serves_and_sessions_follow_each_other(no_java: dict[str, str]) -> None:
    """One after the other in one process: a quiet one, one whose JVM dies, a verbose one, one that cannot start."""
    done = run(PROGRAM + LATER, no_java)
    quiet, _, rest = done.stderr.partition("= killed\n")
    killed, _, rest = rest.partition("= verbose\n")
    verbose, _, _ = rest.partition("= never\n")
    assert quiet == ""
    assert killed == ""
    assert "Setting default log level" in verbose
    *said, last = done.stdout.splitlines()
    assert said[:7] == [
        str(find_java({}).home),
        "4950",
        "2",
        "True",
        "interrupted True",
        "gone",
        "3",
    ]
    assert said[7].startswith("Error occurred during initialization of VM")
    assert last == "Spark's JVM ended before it was ready: it printed the reason above"


def test_what_an_interrupt_broke_is_an_interrupt() -> None:
    """py4j may raise something of its own while it handles one."""

    def broken() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise ConnectionError("the answer is empty")

    with pytest.raises(ConnectionError) as raised:
        broken()
    assert interrupted(raised.value)
    assert not interrupted(ConnectionError("by itself"))


# --- Starts that fail -----------------------------------------------------------------------------------------------


def test_an_interrupt_while_the_jvm_starts_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", None)  # that of other tests here
    started: list[subprocess.Popen[bytes]] = []

    def interrupted() -> None:
        with _no_jvm_left_behind():
            started.append(vars(java_gateway)["Popen"](["sleep", "60"], stdin=subprocess.PIPE))
            raise KeyboardInterrupt

    before = vars(java_gateway)["Popen"]
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert started[0].returncode == -signal.SIGKILL
    assert vars(java_gateway)["Popen"] is before


@pytest.mark.parametrize(
    ("url", "why"),
    [("spark://127.0.0.1:1", "127.0.0.1:1: Connection refused"), ("spark://host", "host: expected HOST:PORT")],
)
def test_a_master_that_does_not_answer_is_one_line(url: str, why: str) -> None:
    with pytest.raises(RoamcastError) as refusal:
        _check_master(url)
    assert str(refusal.value) == f"no Spark master answers at {url} ({why}): start one there, or correct --master"
