"""A node with a full cache: its memory with 64 MB of documents, and how long it takes to start.

A node of its own process takes documents of 50 kB until its cache is full, is killed with `kill -9`, and is started
again. It is to stay below 150 MB.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from roamcast.live.client import Client

DOCUMENTS: Final = 1500
SIZE: Final = 50_000
GOAL: Final = 150
"""MB."""


def start(folder: Path) -> subprocess.Popen[bytes]:
    """Starts a node and waits until it is ready. It is alone: its broadcasts go to a port that nobody listens on."""
    words = ["node", "--id", "1", "--protocol", "opportunistic", "--insecure", "--sync", "normal", "--log", "warning"]
    places = ["--air", "127.0.0.1:9", "--store", str(folder / "store"), "--api", f"unix:{folder / 'control'}"]
    node = subprocess.Popen([sys.executable, "-m", "roamcast", *words, *places], stdout=subprocess.PIPE)
    assert node.stdout is not None
    node.stdout.readline()
    return node


def most(node: subprocess.Popen[bytes]) -> float:
    """MB of memory that a process had at most."""
    (line,) = (one for one in Path(f"/proc/{node.pid}/status").read_text().splitlines() if one.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def ready(node: subprocess.Popen[bytes], started: float) -> str:
    """How long a node that has just become ready took to start."""
    user, system = Path(f"/proc/{node.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    spent = (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return f"ready after {time.perf_counter() - started:.1f} s, of them {spent:.1f} s of CPU"


async def measure(folder: Path) -> None:
    started = time.perf_counter()
    node = start(folder)
    try:
        print(f"  empty      {most(node):4.0f} MB, {ready(node, started)}")
        async with Client(f"unix:{folder / 'control'}") as client:
            for number in range(DOCUMENTS):
                await client.publish({"topic": number % 16, "n": number}, payload=os.urandom(SIZE))
            tables = (await client.status())["tables"]
        held = f"{tables['documents']} documents, {tables['document bytes'] / 2**20:.1f} MB of them"
        print(f"  full       {most(node):4.0f} MB: {held}; the goal is {GOAL} MB")
        node.kill()
        node.wait()
        started = time.perf_counter()
        node = start(folder)
        print(f"  restarted  {most(node):4.0f} MB, {ready(node, started)}")
    finally:
        node.kill()
        node.wait()


def run() -> None:
    print("opportunistic: the memory of a node with a full cache")
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(measure(Path(temporary)))
