"""The ether by real datagrams between sockets that stand for nodes."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import pytest

from roamcast.lab.ether import Ether, addressee
from roamcast.live.link.frame import BROADCAST, BROADCAST_DATA, UNICAST_DATA, Sealer

Links = dict[int, list[tuple[int, float]]]


class Scripted:
    """An air that is told, and remembers when it was asked."""

    def __init__(self, links: Links) -> None:
        self.links = links
        self.asked: list[tuple[int, int]] = []

    def hears(self, now: int, sender: int) -> list[tuple[int, float]]:
        self.asked.append((now, sender))
        return self.links.get(sender, [])


class Homes:
    """The sockets of so many nodes, all known to the ether."""

    def __init__(self, ether: Ether, nodes: int) -> None:
        self.ether = ether
        self.sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(nodes)]
        for node, one in enumerate(self.sockets):
            one.setblocking(False)
            one.bind(("127.0.0.1", 0))
            one.sendto(b"", ether.address(node))
            ether._arrived(node)

    def send(self, node: int, datagram: bytes) -> None:
        self.sockets[node].sendto(datagram, self.ether.address(node))

    async def carried(self, datagrams: int) -> None:
        async with asyncio.timeout(20):
            while self.ether.counters["carried"] < datagrams:
                await asyncio.sleep(0)

    def heard(self, node: int) -> list[tuple[bytes, tuple[str, int]]]:
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                found.append(self.sockets[node].recvfrom(65_535))
        return found


@contextlib.contextmanager
def homes(ether: Ether, nodes: int) -> Iterator[Homes]:
    ether.open()
    there = Homes(ether, nodes)
    try:
        yield there
    finally:
        for one in there.sockets:
            one.close()
        ether.close()


async def test_a_datagram_goes_to_whoever_hears_its_sender_and_comes_from_the_receivers_own_door() -> None:
    ether = Ether(4, Scripted({0: [(1, 0.0), (3, 0.0)]}), lambda: 0)
    with homes(ether, 4) as there:
        there.send(0, b"hello")
        await there.carried(1)
        assert there.heard(1) == [(b"hello", ether.address(1))]
        assert there.heard(3) == [(b"hello", ether.address(3))]
        assert there.heard(0) == there.heard(2) == []
        assert ether.counters == {"carried": 1, "heard": 2}


async def test_who_sent_is_told_by_the_door_and_not_by_the_frame() -> None:
    air = Scripted({1: [(2, 0.0)]})
    ether = Ether(3, air, lambda: 77)
    forged = Sealer(None, 0).seal(BROADCAST_DATA, BROADCAST, b"I am node 0")
    with homes(ether, 3) as there:
        there.send(1, forged)
        await there.carried(1)
        assert air.asked == [(77, 1)]
        assert [datagram for datagram, _ in there.heard(2)] == [forged]


async def test_a_frame_to_one_node_is_carried_to_that_one_and_only_if_it_hears() -> None:
    ether = Ether(4, Scripted({0: [(1, 0.0), (2, 0.0)]}), lambda: 0)
    sealer = Sealer(None, 0)
    with homes(ether, 4) as there:
        there.send(0, sealer.seal(UNICAST_DATA, 2, b"to 2"))
        there.send(0, sealer.seal(UNICAST_DATA, 3, b"to 3, who is out of range"))
        await there.carried(2)
        assert [len(there.heard(node)) for node in range(4)] == [0, 0, 1, 0]


async def test_an_answer_to_where_it_came_from_returns_to_the_ether() -> None:
    ether = Ether(2, Scripted({0: [(1, 0.0)], 1: [(0, 0.0)]}), lambda: 0)
    with homes(ether, 2) as there:
        there.send(0, b"ping")
        await there.carried(1)
        [(_, origin)] = there.heard(1)
        there.sockets[1].sendto(b"pong", origin)
        await there.carried(2)
        assert [datagram for datagram, _ in there.heard(0)] == [b"pong"]


async def test_a_node_that_comes_back_elsewhere_is_found_when_it_has_sent() -> None:
    ether = Ether(2, Scripted({0: [(1, 0.0)], 1: [(0, 0.0)]}), lambda: 0)
    with homes(ether, 2) as there:
        there.sockets[1].close()
        there.sockets[1] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        there.sockets[1].setblocking(False)
        there.send(1, b"here I am")
        await there.carried(1)
        there.send(0, b"welcome")
        await there.carried(2)
        assert [datagram for datagram, _ in there.heard(1)] == [b"welcome"]


async def test_nobody_knows_where_a_silent_node_is_unless_it_is_told() -> None:
    ether = Ether(2, Scripted({0: [(1, 0.0)]}), lambda: 0)
    ether.open()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"anybody?", ether.address(0))
        async with asyncio.timeout(20):
            while not ether.counters["carried"]:
                await asyncio.sleep(0)
    ether.close()
    assert ether.counters == {"carried": 1, "unplaced": 1}


async def test_losses_are_those_of_the_seed() -> None:
    def lost(seed: int) -> Ether:
        return Ether(2, Scripted({0: [(1, 0.5)]}), lambda: 0, seed=seed)

    received = []
    for seed in (1, 1, 2):
        ether = lost(seed)
        with homes(ether, 2) as there:
            for number in range(100):
                there.send(0, bytes((number,)))
            await there.carried(100)
            received.append([datagram[0] for datagram, _ in there.heard(1)])
            assert ether.counters["lost"] + ether.counters["heard"] == 100
            assert ether.counters["heard"] == len(received[-1])
    assert received[0] == received[1] != received[2]
    assert 25 < len(received[0]) < 75  # of 100 tosses, outside with a probability of 2e-7


@pytest.mark.parametrize("datagram", [b"", b"x", bytes(18)])
def test_what_is_no_frame_is_for_everybody(datagram: bytes) -> None:
    assert addressee(datagram) is None


def test_the_addressee_is_the_frames_receiver() -> None:
    sealer = Sealer(None, 5)
    assert addressee(sealer.seal(UNICAST_DATA, 7, b"")) == 7
    assert addressee(sealer.seal(BROADCAST_DATA, BROADCAST, b"")) is None
