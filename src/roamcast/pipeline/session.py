"""Starts every Spark session: local by default, quiet, quick to start, with a JVM that is always available.

The rules this file owns:

* A caller's `conf` overrides every setting here. JVM options are appended, not replaced: of two, the later counts.
* A session has a JVM of its own, which ends with it. JVM options are fixed at its start, so in a shared JVM a second
  session could not be `heavy` after a light one.
* Addresses are bound to loopback if the master is on this machine. On a real cluster Spark decides, and the executors'
  Python must have roamcast installed, like the driver's.
"""

import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final

import pyspark
from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkContext, java_gateway
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from roamcast.errors import RoamcastError
from roamcast.pipeline.jvm import cache_folder, dress, find_java

LOOPBACK: Final = "127.0.0.1"
_ON_THIS_MACHINE: Final = re.compile(r"local(-cluster)?(\[|$)|spark://(localhost|127(\.\d+){3})(:|$)")

_QUIET: Final = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"
LIGHT: Final = (
    # Only the quick compiler: most code of a short job runs too few times to be worth more.
    "-XX:TieredStopAtLevel=1 "
    # Parallel collectors start threads, and small heaps do not need them.
    "-XX:+UseSerialGC "
    # No file of counters in /tmp.
    "-XX:-UsePerfData"
)
_JVM_OPTIONS: Final = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
_GIB: Final = 2**30
_CONTAINER_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")
_ANSWER: Final = 5.0
"""How many seconds a master may take to accept a connection."""
_PATIENCE: Final = 20.0
"""How many seconds a JVM may take to end."""


@contextmanager
def session(
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    *,
    heavy: bool = False,
    name: str = "roamcast",
    verbose: bool = False,
) -> Iterator[SparkSession]:
    """A session, as a context manager. `heavy` is for minutes of work in the JVM, `verbose` shows Spark's logs."""
    if SparkContext._active_spark_context is not None:
        raise RoamcastError("a Spark session is running in this process, which can have only one: stop it first")
    spark = None
    with nullcontext() if verbose else _without_py4j_logs():
        try:
            spark = _start(name, spark_settings(master, conf or {}, heavy=heavy, verbose=verbose))
            yield spark
        except Exception as problem:
            if interrupted(problem):
                raise KeyboardInterrupt from problem
            raise
        finally:
            _end(spark)


def interrupted(problem: BaseException | None) -> bool:
    """Whether an interrupt caused the error: in the middle of a call it may break what the clean-up needs."""
    while problem is not None and not isinstance(problem, KeyboardInterrupt):
        problem = problem.__context__
    return problem is not None


@contextmanager
def _without_py4j_logs() -> Iterator[None]:
    """Silences py4j, which logs tracebacks of what it also raises: with its own logger, and with the root logger."""
    root, own = logging.getLogger(), logging.getLogger("py4j")
    propagate = own.propagate
    own.propagate = False
    root.addFilter(_not_py4j)
    try:
        yield
    finally:
        root.removeFilter(_not_py4j)
        own.propagate = propagate


def _not_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


def spark_settings(master: str | None, conf: Mapping[str, str], *, heavy: bool, verbose: bool) -> dict[str, str]:
    """All settings that differ from Spark's defaults."""
    chosen = master or conf.get("spark.master") or "local[*]"
    ours = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": str(verbose).lower(),
        "spark.driver.memory": f"{_driver_memory(heavy)}m",
        "spark.python.daemon.module": "roamcast.pipeline.worker_daemon",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Times are UTC, wherever a table is read.
        "spark.sql.session.timeZone": "UTC",
    }
    if _ON_THIS_MACHINE.match(chosen):
        ours |= {
            "spark.driver.bindAddress": LOOPBACK,
            "spark.driver.host": LOOPBACK,
            # Spark's 200 would be 200 tiny tasks. Adaptive execution, on by default, only ever makes them fewer.
            "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
        }
    speed = "" if heavy else LIGHT
    # Executors log to files of their own, where Spark's usual level helps.
    ours |= dict(zip(_JVM_OPTIONS, (speed if verbose else f"{speed} {_QUIET}", speed), strict=True))
    added = {key: f"{ours[key]} {conf.get(key, '')}".strip() for key in _JVM_OPTIONS}
    return {**ours, **conf, **added, "spark.master": chosen}


def spark_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that Spark reads only from the environment."""
    here = _ON_THIS_MACHINE.match(settings["spark.master"])
    # Executors on other machines may have their Python elsewhere; ours have the one we run in.
    usual = sys.executable if here else os.environ.get("PYSPARK_PYTHON", sys.executable)
    environment = {
        "JAVA_HOME": str(dress(find_java(), cache_folder())),
        # Another Spark on this machine would not fit this pyspark.
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        # For the small JVM that only builds the real one's command line.
        "SPARK_LAUNCHER_OPTS": LIGHT,
        "PYSPARK_PYTHON": settings.get("spark.pyspark.python", usual),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    return environment | ({"SPARK_LOCAL_IP": LOOPBACK} if here else {})


def _driver_memory(heavy: bool) -> int:
    """In MiB: a limit, not a reservation. The Python workers, which simulate, need memory too."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    # A container may have less than its machine. The file is not there outside of one, and says "max" without a limit.
    with suppress(OSError, ValueError):
        memory = min(memory, int(_CONTAINER_LIMIT.read_text(encoding="ascii")))
    share = memory // 2 if heavy else min(memory // 4, 4 * _GIB)
    return max(share, _GIB) // 2**20


def _start(name: str, settings: Mapping[str, str]) -> SparkSession:
    _check_master(settings["spark.master"])
    builder = SparkSession.builder.appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    on_interrupt = signal.getsignal(signal.SIGINT)
    try:
        with _environment(spark_environment(settings)), _no_jvm_left_behind():
            return builder.getOrCreate()
    except PySparkRuntimeError as problem:
        if problem.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise RoamcastError("Spark's JVM ended before it was ready: it printed the reason above") from problem
    except Py4JJavaError as problem:
        raise RoamcastError(f"Spark does not start with {settings['spark.master']}: {_message(problem)}") from problem
    finally:
        # pyspark's own handler asks the JVM to cancel all jobs, over the connection that is waiting for an answer:
        # that only breaks it. An interrupt ends the session, which cancels them too.
        if on_interrupt is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, on_interrupt)


def _check_master(url: str) -> None:
    """Refuses a standalone master that does not answer: Spark would try for minutes, and then print a stack trace."""
    if not url.startswith("spark://"):
        return
    reasons = []
    for place in url.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), _ANSWER):
                return
        except (OSError, ValueError) as problem:
            badly = isinstance(problem, ValueError)
            reasons.append(f"{place}: {'expected HOST:PORT' if badly else getattr(problem, 'strerror', '') or problem}")
    raise RoamcastError(
        f"no Spark master answers at {url} ({'; '.join(reasons)}): start one there, or correct --master"
    )


def _message(problem: Py4JJavaError) -> str:
    """The first line of Java's message, if the JVM still answers."""
    try:
        text = str(problem.java_exception.getMessage())
    except (Py4JError, ConnectionError):
        text = "its JVM has ended"
    return text.partition("\n")[0]


@contextmanager
def _no_jvm_left_behind() -> Iterator[None]:
    """Ends the JVM if starting it fails or is interrupted: pyspark forgets it then, and it would wait for ever."""
    launched: list[subprocess.Popen[bytes]] = []

    def launch(command: list[str], **options: Any) -> subprocess.Popen[bytes]:  # noqa: ANN401  # of Popen
        # In a session of its own it gets no interrupt from the terminal, and can be ended with its launcher.
        launched.append(subprocess.Popen(command, **{**options, "start_new_session": True}))
        return launched[-1]

    theirs = vars(java_gateway)
    original, theirs["Popen"] = theirs["Popen"], launch
    try:
        yield
    except BaseException:
        if SparkContext._gateway is None:  # else `_end` has a connection over which to end it
            for process in launched:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        raise
    finally:
        theirs["Popen"] = original


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = {key: os.environ.get(key) for key in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value


def _stop(spark: SparkSession) -> None:
    try:
        spark.stop()
    except (Py4JError, ConnectionError):
        # A dead JVM cannot be told to stop. pyspark gave up half-way; only this second call makes it forget the JVM.
        spark.sparkContext.stop()


def _end(spark: SparkSession | None) -> None:
    """Ends the session and its JVM, also where the session failed to start or the JVM has died."""
    with warnings.catch_warnings(action="ignore"):  # the program knows from the call that first found the JVM dead
        if spark is not None:
            _stop(spark)
    gateway = SparkContext._gateway
    SparkContext._gateway = SparkContext._jvm = None
    if gateway is None:
        return
    gateway.shutdown()
    jvm = gateway.proc
    if jvm is None:  # spark-submit started it, and us
        return
    # It ends when its stdin does. Waiting for it keeps its last output from coming after the program's.
    jvm.stdin.close()
    try:
        jvm.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        jvm.kill()
        jvm.wait()
