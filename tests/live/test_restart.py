"""What a restart must not undo: counters of frames, marks of what was heard, time."""

import contextlib
import signal
import socket
import struct
from functools import partial
from pathlib import Path

import pytest

from live.nodes import address, network, process, run, settings, until
from roamcast.live.client import Client
from roamcast.live.key import NetworkKey
from roamcast.live.node import Node

HEADER = struct.Struct(">BBBIII16sQ")
"""The header of a frame, as docs and `frame.py` have it; the counter is its last field."""


@pytest.fixture
def key(tmp_path: Path) -> Path:
    NetworkKey.new().save(tmp_path / "key")
    return tmp_path / "key"


def listen() -> socket.socket:
    ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    ear.bind(("127.0.0.1", 0))
    ear.setblocking(False)
    return ear


def heard(ear: socket.socket) -> list[bytes]:
    """The frames; an empty datagram only shows where a node is."""
    datagrams = []
    while True:
        try:
            datagrams.append(ear.recv(9000))
        except BlockingIOError:
            return [datagram for datagram in datagrams if datagram]


def test_no_nonce_is_used_twice_if_a_store_is_restored_or_lost_and_the_clock_stands_still(
    tmp_path: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A card image that was cloned, put back or lost: every life has a salt, and so a key, of its own."""
    monkeypatch.setattr("time.time_ns", lambda: 10**18)
    store = tmp_path / "1.store"
    with listen() as ear:

        async def life() -> None:
            chosen = settings(tmp_path, key=key, air=ear.getsockname(), unsigned=True)
            async with Node(chosen) as node, Client(address(node)) as client:
                for _ in range(5):
                    await client.publish({})

        salts, image = [], b""
        for turn in range(4):
            if turn == 2:
                store.write_bytes(image)
            if turn == 3:
                store.unlink()
            run(life)
            image = image or store.read_bytes()
            headers = [HEADER.unpack_from(datagram) for datagram in heard(ear)]
            assert len({header[7] for header in headers}) == 5
            salts += sorted({header[6] for header in headers})
    assert len(set(salts)) == len(salts) == 4


def test_a_frame_of_a_former_life_is_not_taken_again(tmp_path: Path, key: Path) -> None:
    with listen() as ear, listen() as mouth:

        async def record() -> None:
            chosen = settings(tmp_path, 2, key=key, air=ear.getsockname(), unsigned=True)
            async with Node(chosen) as node, Client(address(node)) as client:
                await client.publish({"n": 1})

        async def hear(expected: dict[str, int]) -> None:
            async with Node(settings(tmp_path, 1, key=key)) as node:
                mouth.sendto(datagram, ("127.0.0.1", node.link.own_address[1]))
                await until(lambda: any(node.link.counters[name] for name in expected))
                assert {name: node.link.counters[name] for name in expected} == expected

        run(record)
        (datagram,) = heard(ear)
        run(lambda: hear({"handed-up": 1, "behind": 0}))
        run(lambda: hear({"handed-up": 0, "behind": 1}))


def test_nor_after_kill_9_in_the_moment_it_was_taken(tmp_path: Path, key: Path) -> None:
    with listen() as ear, listen() as mouth:

        async def record() -> None:
            chosen = settings(tmp_path, 2, key=key, air=ear.getsockname(), unsigned=True)
            async with Node(chosen) as node, Client(address(node)) as client:
                await client.publish({"n": 1})

        async def play(control: str, counter: str) -> None:
            async with Client(control) as client:
                await client.publish({})  # tells where it is
                await until(lambda: _where(ear, found))
                mouth.sendto(datagram, found[-1])
                while (await client.status())["counters"]["link"].get(counter) != 1:
                    pass

        run(record)
        (datagram,) = heard(ear)
        found: list[tuple[str, int]] = []
        host, port = ear.getsockname()
        for counter in ("handed-up", "behind"):
            with process(tmp_path, 1, "--key", str(key), air=f"{host}:{port}") as node:
                node.ready()
                heard(ear)  # what a former life had to say, from where it was
                found.clear()
                run(partial(play, node.control, counter))
                node.end(signal.SIGKILL)


def _where(ear: socket.socket, found: list[tuple[str, int]]) -> bool:
    with contextlib.suppress(BlockingIOError):
        found.append(ear.recvfrom(9000)[1])
    return bool(found)


def test_a_restarted_node_is_heard_by_those_who_knew_it(tmp_path: Path, key: Path) -> None:
    async def test() -> None:
        async with network(tmp_path, 1, key=key, unsigned=True) as (one,):
            for number in (1, 2):
                again = settings(tmp_path, 2, key=key, air=one.link.own_address, unsigned=True)
                async with Node(again) as two, Client(address(two)) as client:
                    await client.publish({})
                    await until(lambda: one.link.counters["handed-up"] == number)  # noqa: B023
            assert one.link.counters["replay"] == one.link.counters["behind"] == 0

    run(test)


def test_two_processes_hear_each_other_by_broadcast_on_loopback(tmp_path: Path, key: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    options = ("--key", str(key), "--address", "127.255.255.255", "--port", port)
    with process(tmp_path, 1, *options, air=None) as one, process(tmp_path, 2, *options, air=None) as two:
        one.ready()
        two.ready()

        async def test() -> None:
            async with Client(one.control) as here, Client(two.control) as there, there.subscribe("n = 1") as events:
                number = await here.publish({"n": 1})
                assert (await anext(events)).id == number
                status = await there.status()
                assert [neighbour["node"] for neighbour in status["neighbours"]] == [1]

        run(test)
