"""The ether: an emulated radio between node processes on one machine, made of loopback datagrams.

Every node gets a *door*: a UDP socket of the ether. The node sends all its datagrams to its door and receives all from
there, so answers, even those to "the address that it came from", return to the ether by themselves. The rules this
file owns:

* The door identifies the sender of a datagram, never its content: a frame need not be understood, or be valid, to be
  forwarded. A node's address is the one it last sent from. An empty datagram only sets the address.
* A unicast frame is forwarded only to its receiver, which spares the others a datagram that they would throw away.
* The `Medium` says who hears a datagram, and with what loss, when it arrives: at the start of the transmission, as in
  the simulator. Receivers are served in its order.
* There is no queue and no retry. A datagram that the kernel does not accept is counted and lost.

Losses are drawn from one seeded stream; with real processes the order of datagrams is not repeatable, so neither is
which of them are lost.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Final, Protocol

from roamcast.live.link.frame import BROADCAST, HEADER_SIZE

LOOPBACK: Final = "127.0.0.1"
MAX_DATAGRAM: Final = 65_535
_AT_ONCE: Final = 64
"""Datagrams of one door that are forwarded before the others get their turn."""
_BUFFER: Final = 1 << 22
"""Bytes that a door may hold while the ether is busy; the kernel may allow less."""
_RECEIVER: Final = slice(7, 11)
"""The receiver's octets in a frame's header."""

SocketAddress = tuple[str, int]


class Medium(Protocol):
    """Who hears whom."""

    def hears(self, now: int, sender: int) -> Sequence[tuple[int, float]]:
        """The nodes that hear the sender at `now` (ns since the start; never decreasing), each with its loss."""


def addressee(datagram: bytes) -> int | None:
    """The receiver of a unicast frame; None: a broadcast, or not a frame."""
    if len(datagram) < HEADER_SIZE:
        return None
    receiver = int.from_bytes(datagram[_RECEIVER])
    return None if receiver == BROADCAST else receiver


class Ether:
    """The doors of nodes 0 to `nodes` - 1, and the traffic between them, on the running event loop.

    `clock` gives ns since the start.
    """

    def __init__(self, nodes: int, air: Medium, clock: Callable[[], int], *, seed: int = 0) -> None:
        self.counters: Counter[str] = Counter()
        """carried (datagrams received), heard (copies sent out), lost, unplaced (copies to a node whose address is not
        known yet), refused (copies that the kernel did not accept)."""
        self._air = air
        self._clock = clock
        self._chance = Random(f"{seed}/ether")
        self._nodes = nodes
        self._doors: list[socket.socket] = []
        self._homes: list[SocketAddress | None] = [None] * nodes

    def open(self) -> None:
        """Opens all doors, on ports that are free."""
        loop = asyncio.get_running_loop()
        try:
            for node in range(self._nodes):
                door = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                self._doors.append(door)
                door.setblocking(False)
                for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
                    door.setsockopt(socket.SOL_SOCKET, option, _BUFFER)
                door.bind((LOOPBACK, 0))
                loop.add_reader(door, self._arrived, node)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        loop = asyncio.get_running_loop()
        for door in self._doors:
            loop.remove_reader(door)
            door.close()
        self._doors.clear()

    def address(self, node: int) -> SocketAddress:
        """The address of a node's door, which it sends to."""
        host, port = self._doors[node].getsockname()
        return host, port

    def knows(self, node: int) -> bool:
        return self._homes[node] is not None

    def forget(self, node: int) -> None:
        """Forgets a node that is gone: it will come back with another address."""
        self._homes[node] = None

    def _arrived(self, sender: int) -> None:
        door = self._doors[sender]
        for _ in range(_AT_ONCE):
            try:
                datagram, home = door.recvfrom(MAX_DATAGRAM)
            except BlockingIOError:
                return
            except OSError:  # reports that an earlier datagram of ours found its port closed
                self.counters["refused"] += 1
                continue
            self._homes[sender] = home
            if datagram:
                self._carry(sender, datagram)

    def _carry(self, sender: int, datagram: bytes) -> None:
        counters = self.counters
        counters["carried"] += 1
        only = addressee(datagram)
        for receiver, loss in self._air.hears(self._clock(), sender):
            if only is not None and only != receiver:
                continue
            if loss and self._chance.random() < loss:
                counters["lost"] += 1
            else:
                self._pass_on(receiver, datagram)

    def _pass_on(self, receiver: int, datagram: bytes) -> None:
        home = self._homes[receiver]
        if home is None:
            self.counters["unplaced"] += 1
            return
        try:
            self._doors[receiver].sendto(datagram, home)
        except OSError:
            self.counters["refused"] += 1
        else:
            self.counters["heard"] += 1
