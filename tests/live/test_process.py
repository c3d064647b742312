"""Real processes: ended politely, killed, and started again."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from live.nodes import ENVIRONMENT, Relay, facts, process, run, take, until
from roamcast.content.event import event_id
from roamcast.content.subscription import Publication
from roamcast.live.client import Client, ClientError
from roamcast.live.store import Store


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_node_cleanly(tmp_path: Path, number: int) -> None:
    with process(tmp_path, 3, "--facts", str(tmp_path / "facts")) as node:
        assert node.ready() == {"ready": True, "node": 3, "api": node.control}

        async def use() -> None:
            async with Client(node.control) as client:
                await client.publish({"a": 1})

        run(use)
        code, logged = node.end(number)
    assert code == 0
    lines = [json.loads(line) for line in logged.splitlines()]
    assert [line["event"] for line in lines] == [
        "a NEW STORE was made: if this node ran before, its store was elsewhere",
        "ready",
        "ended",
    ]
    assert {line["node"] for line in lines} == {3}
    assert [row["event"] for row in facts(tmp_path / "facts")["publish"]] == [event_id(3, 1)]
    assert not Path(node.control.removeprefix("unix:")).exists()


def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """Three lives, each killed while it is publishing as fast as it can."""
    acknowledged: list[int] = []

    async def publish_until_killed(control: str, pid: int) -> None:
        async with Client(control) as client:
            async with client.subscribe("n >= 0", id=42, durable=True):
                pass

            async def publisher(number: int) -> None:
                while True:
                    acknowledged.append(await client.publish({"n": number}))

            publishers = [asyncio.create_task(publisher(number)) for number in range(8)]
            goal = len(acknowledged) + 50
            await until(lambda: len(acknowledged) >= goal)
            os.kill(pid, signal.SIGKILL)
            for done in await asyncio.gather(*publishers, return_exceptions=True):
                assert isinstance(done, ClientError)

    for _ in range(3):
        with process(tmp_path, 1, "--sync", "normal", "--facts", str(tmp_path / "facts")) as node:
            node.ready()
            run(lambda: publish_until_killed(node.control, node.popen.pid))
    assert len(acknowledged) == len(set(acknowledged)), "an id was given twice"
    with process(tmp_path, 1, "--facts", str(tmp_path / "facts")) as node:
        node.ready()

        async def look() -> None:
            async with Client(node.control) as client:
                kept = (await client.status())["subscriptions"]
                assert [(each["id"], each["filter"], each["durable"]) for each in kept] == [(42, "n >= 0", True)]
                assert await client.publish({}) > max(acknowledged)

        run(look)
        code, _ = node.end(signal.SIGTERM)
        assert code == 0

    async def read() -> None:
        store = Store(tmp_path / "1.store", 1)
        stored = {event_id(1, publication.serial): publication.publication for publication in store.publications()}
        assert set(acknowledged) <= set(stored)
        assert store.unhanded() == []
        for number in acknowledged:
            assert msgspec.msgpack.decode(stored[number], type=Publication).event.id == number
        await store.close()

    run(read)
    recorded = [row["event"] for row in facts(tmp_path / "facts")["publish"]]
    assert recorded == sorted(set(recorded)), "a publication is a fact once, in order"
    assert set(acknowledged) <= set(recorded), "facts that went down with a life were written by the next"


def test_a_node_that_cannot_start_says_why(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "roamcast", "node", "--id", "1"]
    answer = subprocess.run(words, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert answer.returncode == 2
    assert answer.stderr.startswith("error: a node needs the network's key")
    assert list(tmp_path.iterdir()) == []


STOPPED = 60.0
"""Seconds; longer than any neighbour, connection or frame is waited for."""


class Learning(Relay):
    """An air that learns its members from what they send."""

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if addr not in self.members:
            self.members.append(addr)
        super().datagram_received(data, addr)


@pytest.mark.slow
def test_a_node_that_was_stopped_for_a_minute_goes_on(tmp_path: Path) -> None:
    """As when a device sleeps. The listener's connection is the same before and after; what others published meanwhile,
    `opportunistic` carries and brings; nothing comes twice."""

    async def test() -> None:
        relay = Learning()
        host, port = await relay.open()
        options = "--protocol", "opportunistic", "--set", "interval=1", "--sync", "normal"
        with (
            process(tmp_path, 1, *options, air=f"{host}:{port}") as one,
            process(tmp_path, 2, *options, air=f"{host}:{port}") as two,
        ):
            for node in (one, two):
                await asyncio.to_thread(node.ready)
            async with Client(one.control) as near, Client(two.control) as far, near.subscribe("n >= 0") as events:
                await far.publish({"n": 0})
                assert [event.attributes["n"] for event in await take(events, 1)] == [(0,)]
                os.kill(one.popen.pid, signal.SIGSTOP)
                try:
                    for number in range(1, 11):
                        await far.publish({"n": number})
                        await asyncio.sleep(STOPPED / 10)
                finally:
                    os.kill(one.popen.pid, signal.SIGCONT)
                assert sorted(event.attributes["n"][0] for event in await take(events, 10)) == list(range(1, 11))
                await near.publish({"n": 11})
                assert [event.attributes["n"] for event in await take(events, 1)] == [(11,)]
        relay.close()

    async def bounded() -> None:
        async with asyncio.timeout(STOPPED + 60):
            await test()

    asyncio.run(bounded())
