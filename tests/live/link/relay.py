"""A little air for links on loopback: it drops, repeats and reorders what they send; and a link that keeps a diary."""

import asyncio
import random
import socket
from collections.abc import Callable, Hashable
from typing import Self

from roamcast.live.key import NetworkKey
from roamcast.live.link.frame import Sealer
from roamcast.live.link.link import Link, LinkSettings

KEY = NetworkKey(bytes(range(32)))
PATIENCE = 20.0
"""Seconds until a test gives up; no test waits for them to pass."""


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.001)


class Relay:
    def __init__(self, *, drop: float = 0, repeat: float = 0, reorder: float = 0, seed: int = 1) -> None:
        self.drop, self.repeat, self.reorder = drop, repeat, reorder
        self.refuse: Callable[[bytes], bool] = lambda datagram: False
        self.passed: list[bytes] = []
        self._homes: list[tuple[str, int]] = []
        self._held: tuple[bytes, tuple[str, int]] | None = None
        self._rng = random.Random(seed)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(("127.0.0.1", 0))

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._socket.getsockname()
        return host, port

    def join(self, link: Link) -> None:
        self._homes.append(link.own_address)

    async def __aenter__(self) -> Self:
        asyncio.get_running_loop().add_reader(self._socket, self._arrived)
        return self

    async def __aexit__(self, *args: object) -> None:
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()

    def _arrived(self) -> None:
        datagram, source = self._socket.recvfrom(65536)
        if not datagram or self.refuse(datagram):  # an empty one only shows where a node is
            return
        self.passed.append(datagram)
        for home in self._homes:
            if home != source:
                self._towards(datagram, home)

    def _towards(self, datagram: bytes, home: tuple[str, int]) -> None:
        if self._rng.random() < self.drop:
            return
        if self._held is None and self._rng.random() < self.reorder:
            self._held = datagram, home
            return
        for _ in range(2 if self._rng.random() < self.repeat else 1):
            self._socket.sendto(datagram, home)
        if self._held is not None:
            held, self._held = self._held, None
            self._socket.sendto(*held)


class Station:
    """A link, what it heard and what became of what it sent."""

    def __init__(
        self,
        node: int,
        settings: LinkSettings,
        *,
        sealer: Sealer | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.node = node
        self.heard: list[tuple[int, bytes]] = []
        self.done: list[tuple[Hashable, bool, int, int]] = []
        self.link = Link(
            sealer or Sealer(KEY, node),
            settings,
            on_message=lambda sender, payload: self.heard.append((sender, payload)),
            on_done=lambda *ending: self.done.append(ending),
            clock=clock,
            rng=random.Random(node),
        )

    @property
    def endings(self) -> list[tuple[Hashable, bool]]:
        return [(token, delivered) for token, delivered, _, _ in self.done]

    async def __aenter__(self) -> Self:
        await self.link.open()
        return self

    async def __aexit__(self, *args: object) -> None:
        await self.link.close()
