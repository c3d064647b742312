"""Nodes for tests: in this process, over a relay on loopback, or as processes of their own."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import roamcast
from roamcast.content.event import Event
from roamcast.facts.schema import TABLES
from roamcast.live.client import Events
from roamcast.live.node import Node
from roamcast.live.parts import read
from roamcast.live.settings import NodeSettings

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(roamcast.__file__).parents[1])}
"""For processes that must find the same sources from another folder."""
PATIENCE = 30.0
"""Seconds after which a test is given up; what is waited for takes milliseconds."""


class Relay(asyncio.DatagramProtocol):
    """An air where everybody hears everybody else, unless a test says otherwise."""

    def __init__(self) -> None:
        self.members: list[tuple[str, int]] = []
        self.hears: Callable[[int, int], bool] = lambda sender, receiver: True
        """Whether one port hears another."""
        self._transport: asyncio.DatagramTransport | None = None

    async def open(self) -> tuple[str, int]:
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, ("127.0.0.1", 0))
        host, port = self._transport.get_extra_info("sockname")
        return host, port

    def close(self) -> None:
        assert self._transport is not None
        self._transport.close()

    def datagram_received(self, data: bytes, addr: Any) -> None:  # noqa: ANN401  # as asyncio has it
        assert self._transport is not None
        for member in self.members:
            if member[1] != addr[1] and self.hears(addr[1], member[1]):
                self._transport.sendto(data, ("127.0.0.1", member[1]))


def settings(folder: Path, node: int = 1, **changes: Any) -> NodeSettings:  # noqa: ANN401  # of NodeSettings
    given: dict[str, Any] = {
        "protocol": "flooding",  # the smallest: most tests are about the node
        "insecure": "key" not in changes,
        "store": folder / f"{node}.store",
        "sync": "normal",
        "control": f"unix:{folder / f'{node}.socket'}",
        "air": ("127.0.0.1", 9),
        "seed": "1",
    }
    return NodeSettings(node=node, **(given | changes))


@contextlib.asynccontextmanager
async def network(
    folder: Path,
    count: int = 2,
    *,
    with_facts: bool = False,
    **changes: Any,  # noqa: ANN401  # of NodeSettings
) -> AsyncIterator[list[Node]]:
    """Nodes 1 to `count` that all hear each other; the facts of each are in `facts<number>`."""
    relay = Relay()
    air = await relay.open()
    try:
        async with contextlib.AsyncExitStack() as stack:
            nodes = []
            for number in range(1, count + 1):
                if with_facts:
                    changes["facts"] = folder / f"facts{number}"
                node = await stack.enter_async_context(Node(settings(folder, number, air=air, **changes)))
                relay.members.append(node.link.own_address)
                nodes.append(node)
            yield nodes
    finally:
        relay.close()


def address(node: Node) -> str:
    return str(node.control)


async def take(events: Events, count: int) -> list[Event]:
    return [(await anext(events)).event for _ in range(count)]


def facts(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """All parts of a node's facts, in order."""
    found: dict[str, list[dict[str, Any]]] = {table: [] for table in TABLES}
    for table, part in read(folder):
        if table in TABLES:
            assert part.schema.equals(TABLES[table])
        found.setdefault(table, []).extend(part.to_pylist())
    return found


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE):
            await test()

    asyncio.run(bounded())


async def until(holds: Callable[[], object]) -> None:
    """Waits until something holds."""
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.005)


class Process:
    """A real `roamcast node`."""

    def __init__(self, folder: Path, node: int = 1, *options: str, air: str | None = "127.0.0.1:9") -> None:
        self.control = f"unix:{folder / f'{node}.socket'}"
        self.store = folder / f"{node}.store"
        words = ["node", "--id", str(node), "--store", str(self.store), "--api", self.control, "--seed", "1"]
        words += ["--protocol", "flooding", *options]  # as `settings`
        if air is not None:  # without one it would broadcast
            words += ["--air", air]
        if "--key" not in options:
            words.append("--insecure")
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "roamcast", *words],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ready(self) -> dict[str, Any]:
        assert self.popen.stdout is not None
        line = self.popen.stdout.readline()
        if not line:
            _, errors = self.popen.communicate(timeout=PATIENCE)
            raise AssertionError(f"the node ended: {errors}")
        told: dict[str, Any] = json.loads(line)
        return told

    def end(self, signal: int) -> tuple[int, str]:
        """Sends a signal; gives the exit code and what was logged."""
        os.kill(self.popen.pid, signal)
        _, errors = self.popen.communicate(timeout=PATIENCE)
        return self.popen.returncode, errors


@contextlib.contextmanager
def process(folder: Path, node: int = 1, *options: str, air: str | None = "127.0.0.1:9") -> Iterator[Process]:
    """A node's process, which is gone afterwards in any case."""
    started = Process(folder, node, *options, air=air)
    try:
        yield started
    finally:
        if started.popen.poll() is None:
            started.popen.kill()
        started.popen.communicate()
