"""The live world: events per second and their latency from client to client, through one node and two neighbours.

Real node processes, sealed frames, broadcast on loopback. Latency, from before `publish` until the subscriber has the
event, is measured with one event at a time; events per second with `WINDOW` of them in flight, the next published when
one has arrived. With `--sync normal` an acknowledged event survives `kill -9`, with `full` a loss of power: then
every commit waits for the disk, and the disk is what is measured.

`python -m bench.live --mosquitto` measures Mosquitto beside one node, with QoS 1, in turns in one run: in memory, which
is to be compared with `off`, and with its database written after every change, with `full`.
"""

import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from time import perf_counter, sleep
from typing import NamedTuple

from bench.mqtt import MqttClient
from roamcast.live.client import Client
from roamcast.live.key import NetworkKey

SINGLE = 500
"""Events one at a time."""
TOGETHER = 3000
WINDOW = 64
GIVE_UP = 5.0
"""Seconds without an event after which those in flight count as lost."""


class Measured(NamedTuple):
    rate: float
    p50: float
    p99: float
    lost: int
    cpu: float
    """Seconds of CPU of the nodes or the broker per event, while measuring the rate."""


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def nodes(count: int, sync: str, *options: str) -> Iterator[tuple[list[str], list[int]]]:
    """Starts node processes that hear each other; gives the addresses of their APIs, and their pids."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        key = Path(folder) / "key"
        NetworkKey.new().save(key)
        port = _free_port()
        started = []
        for number in range(count):
            words = ["node", "--id", number, "--key", key, "--store", f"{folder}/{number}.store", "--sync", sync]
            words += ["--port", port, "--address", "127.255.255.255", "--api", f"unix:{folder}/{number}"]
            words += ["--set", "jitter=0", "--log", "error", *options]
            command = [sys.executable, "-m", "roamcast", *map(str, words)]
            process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            stack.callback(process.terminate)
            started.append(process)
        addresses = [json.loads(process.stdout.readline())["api"] for process in started if process.stdout]
        yield addresses, [process.pid for process in started]


def _cpu(pids: list[int]) -> float:
    """Seconds of CPU that processes have taken so far."""
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13] for pid in pids]
    return sum(int(ticks) for stat in stats for ticks in stat) / os.sysconf("SC_CLK_TCK")


Publish = Callable[[int], Awaitable[object]]
Arrived = Callable[[], Awaitable[object]]


@contextlib.asynccontextmanager
async def between(first: str, last: str) -> AsyncIterator[tuple[Publish, Arrived]]:
    async with Client(first) as publisher, Client(last) as subscriber, subscriber.subscribe("n >= 0") as events:
        yield lambda number: publisher.publish({"n": number}, "bench", bytes(64)), lambda: anext(events)


@contextlib.asynccontextmanager
async def _by_mqtt(port: int) -> AsyncIterator[tuple[Publish, Arrived]]:
    async with MqttClient("publisher", port) as publisher, MqttClient("subscriber", port) as subscriber:
        await subscriber.subscribe()
        yield lambda number: publisher.publish(b"%80d" % number), subscriber.arrived


async def _latencies(publish: Publish, arrived: Arrived) -> list[float]:
    found = []
    for number in range(SINGLE):
        started = perf_counter()
        await publish(number)
        await arrived()
        found.append(perf_counter() - started)
    return sorted(found)


async def _rate(say: Publish, heard: Arrived) -> tuple[float, int]:
    """Events per second, and how many were lost."""
    free = asyncio.Semaphore(WINDOW)
    arrived = 0

    async def publish(number: int) -> None:
        await say(number)

    async def listen() -> None:
        nonlocal arrived
        with contextlib.suppress(TimeoutError):
            while arrived < TOGETHER:
                async with asyncio.timeout(GIVE_UP):
                    await heard()
                arrived += 1
                free.release()

    listening = asyncio.create_task(listen())
    started = perf_counter()
    publishing = []
    for number in range(TOGETHER):
        waiting = asyncio.ensure_future(free.acquire())
        await asyncio.wait((waiting, listening), return_when=asyncio.FIRST_COMPLETED)
        if listening.done():
            waiting.cancel()
            break
        publishing.append(asyncio.create_task(publish(number)))
    await asyncio.gather(*publishing)
    await listening
    lost = len(publishing) - arrived
    return arrived / (perf_counter() - started - (GIVE_UP if lost else 0)), lost


async def measure(path: contextlib.AbstractAsyncContextManager[tuple[Publish, Arrived]], pids: list[int]) -> Measured:
    async with path as (publish, arrived):
        latencies = await _latencies(publish, arrived)
        before = _cpu(pids)
        rate, lost = await _rate(publish, arrived)
        spent = (_cpu(pids) - before) / TOGETHER
    return Measured(rate, latencies[SINGLE // 2], latencies[SINGLE * 99 // 100], lost, spent)


@contextlib.contextmanager
def _mosquitto(on_disk: bool) -> Iterator[tuple[int, int]]:
    """Starts the broker; gives its port and its pid."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        probe.close()
        lines = [f"listener {port} 127.0.0.1", "allow_anonymous true", "max_inflight_messages 0", "user root"]
        if on_disk:
            lines += ["persistence true", f"persistence_location {folder}/"]
            lines += ["autosave_on_changes true", "autosave_interval 1"]
        (Path(folder) / "conf").write_text("\n".join(lines))
        program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
        with subprocess.Popen([program, "-c", f"{folder}/conf"], stderr=subprocess.DEVNULL) as process:
            try:
                while True:
                    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                        break
                    sleep(0.02)
                yield port, process.pid
            finally:
                process.terminate()


def _tell(path: str, sync: str, found: Measured) -> None:
    times = f"{1000 * found.p50:>10.2f}{1000 * found.p99:>10.2f}"
    print(f"{path:<18}{sync:<8}{found.rate:>16.0f}{times}{found.lost:>6}{1e6 * found.cpu:>12.0f}", flush=True)


def compare() -> None:
    """Compares with Mosquitto, alternately."""
    if shutil.which("mosquitto") is None and not Path("/usr/sbin/mosquitto").exists():
        print("live --mosquitto: not run: Mosquitto is not installed (apt-get install mosquitto)")
        return
    _head()
    for sync in ("off", "full"):
        for _ in range(3):
            with nodes(1, sync) as (apis, pids):
                _tell("one node", sync, asyncio.run(measure(between(apis[0], apis[0]), pids)))
            with _mosquitto(sync == "full") as (port, pid):
                kept = "disk" if sync == "full" else "memory"
                _tell("Mosquitto, QoS 1", kept, asyncio.run(measure(_by_mqtt(port), [pid])))


def _head() -> None:
    print(f"live: client to client, events of about 80 bytes; {WINDOW} in flight for the rate, one for the latency")
    times = f"{'50 %, ms':>10}{'99 %, ms':>10}{'lost':>6}{'CPU µs each':>12}"
    print(f"{'path':<18}{'sync':<6}{'events per second':>18}{times}")


def run() -> None:
    _head()
    for sync in ("normal", "full"):
        for name, count in (("one node", 1), ("two neighbours", 2)):
            with nodes(count, sync) as (apis, pids):
                _tell(name, sync, asyncio.run(measure(between(apis[0], apis[-1]), pids)))


if __name__ == "__main__":
    compare() if "--mosquitto" in sys.argv else run()
