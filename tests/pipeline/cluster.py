"""A standalone Spark cluster on this machine: a master and workers from the pip package's own classes, on loopback.

For tests of what a cluster does to a campaign, and for people who want more than one JVM. Whoever can log in here can
send it work: it is not for a machine shared with strangers.
"""

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from roamcast.errors import RoamcastError
from roamcast.pipeline.session import LIGHT, LOOPBACK, spark_environment

_MASTER: Final = "org.apache.spark.deploy.master.Master"
_WORKER: Final = "org.apache.spark.deploy.worker.Worker"
_PATIENCE: Final = 60.0
"""Seconds for a process to be ready, on a machine that is busy with other things."""

# What they say in their logs when they are ready. Ports are theirs to choose, so that two clusters never collide.
_AT: Final = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED: Final = re.compile(r"Successfully registered with master")


class Daemon:
    """A master or a worker with all that it starts, in a process group of its own."""

    def __init__(self, main: str, arguments: list[str], environment: dict[str, str], log: Path) -> None:
        self.log = log
        command = [str(Path(environment["SPARK_HOME"]) / "bin" / "spark-class"), main, "--host", LOOPBACK, *arguments]
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                command,
                env=os.environ | environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def await_line(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """The first line of its log that has `pattern`."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            ended = self.process.poll() is not None
            found = pattern.search(self.log.read_text(encoding="utf-8", errors="replace"))
            if found:
                return found
            if ended:
                break
            time.sleep(0.05)
        tail = self.log.read_text(encoding="utf-8", errors="replace")[-2000:]
        raise RoamcastError(f"a Spark process did not say {pattern.pattern!r} in {_PATIENCE:.0f} s:\n{tail}")

    def kill(self) -> None:
        """`kill -9` of it and its executors, whose Python workers end when they see them gone. Twice is once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@dataclass(frozen=True)
class Cluster:
    url: str
    """For `session(master=...)`."""
    master: Daemon
    workers: tuple[Daemon, ...]


@contextlib.contextmanager
def standalone_cluster(workers: int = 2, cores: int = 1) -> Iterator[Cluster]:
    """A cluster of `workers` with `cores` each, ready for work, and killed at the end whatever happens."""
    with contextlib.ExitStack() as undo:
        folder = Path(
            undo.enter_context(tempfile.TemporaryDirectory(prefix="roamcast-cluster-", ignore_cleanup_errors=True))
        )
        start = _starter(folder, undo)
        master = start(_MASTER, "master", "--port", "0", "--webui-port", "0")
        url = master.await_line(_AT)[1]
        options = ("--port", "0", "--webui-port", "0", "--cores", str(cores), "--work-dir")
        # All start before the first is waited for.
        started = [start(_WORKER, f"worker-{i}", *options, str(folder / f"work-{i}"), url) for i in range(workers)]
        for worker in started:
            worker.await_line(_REGISTERED)
        yield Cluster(url, master, tuple(started))


def _starter(folder: Path, undo: contextlib.ExitStack) -> Callable[..., Daemon]:
    # An empty configuration folder: what someone has set up for another cluster is not for this one.
    conf = folder / "conf"
    conf.mkdir()
    environment = spark_environment({"spark.master": f"spark://{LOOPBACK}"}) | {
        "SPARK_CONF_DIR": str(conf),
        "SPARK_DAEMON_MEMORY": "256m",
        # Each is a JVM that does little: one compiler, one collector.
        "SPARK_DAEMON_JAVA_OPTS": LIGHT,
    }

    def start(main: str, name: str, *arguments: str) -> Daemon:
        daemon = Daemon(main, list(arguments), environment, folder / f"{name}.log")
        undo.callback(daemon.kill)
        return daemon

    return start
