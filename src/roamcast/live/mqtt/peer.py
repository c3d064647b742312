"""Connects the two ends of a bridge, and connects them again whenever a connection is lost."""

import asyncio
import contextlib
import random
import ssl
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from roamcast.errors import ConfigError
from roamcast.live import log
from roamcast.live.mqtt.bridge import KEEP_ALIVE, BrokerSide, Full, NodeSide, Side
from roamcast.live.mqtt.bridge_state import BridgeState
from roamcast.live.mqtt.packets import V5, Disconnect, Packet, PacketError, Pingreq
from roamcast.live.mqtt.wire import Parser, write
from roamcast.live.places import Address
from roamcast.live.request import trusted

LONGEST: Final = 2**20
"""Bytes of a packet from a server."""
FIRST_WAIT: Final = 0.1
LONGEST_WAIT: Final = 10.0
"""Seconds between two attempts to connect."""
PATIENCE: Final = 10.0
"""Seconds for a connection to be made, and for what is under way when the bridge ends."""


class Target(NamedTuple):
    """Where a server is, and how to be let in."""

    address: Address
    tls: ssl.SSLContext | None = None
    user: str | None = None
    password: bytes | None = None

    @classmethod
    def of_broker(cls, url: str, password: str | None, certificate: str | None) -> "Target":
        """From `mqtt://[USER@]HOST[:PORT]`, or mqtts for TLS."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise ConfigError(f"{url}: is not a URL such as mqtt://broker.example:1883") from None
        if parts.scheme not in ("mqtt", "mqtts") or not parts.hostname or parts.path.strip("/") or parts.query:
            raise ConfigError(f"{url}: expected mqtt://HOST[:PORT], or mqtts:// with TLS")
        if parts.password is not None:
            raise ConfigError("a password on the command line is visible to every user: give --password-file FILE")
        secure = parts.scheme == "mqtts"
        tls = trusted(certificate) if secure else None
        user = None if parts.username is None else unquote(parts.username)
        secret = None if password is None else password.encode()
        return cls(Address(parts.hostname, port or (8883 if secure else 1883)), tls, user, secret)


class Peer:
    """The connection of one side."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.side: Side | None = None
        self.reached = asyncio.Event()
        self._writer: asyncio.StreamWriter | None = None
        self._pending = bytearray()
        self._awake = False

    def send(self, packet: Packet) -> None:
        """Queues a packet until the next `flush`."""
        self._pending += write(packet, V5)

    def wake(self) -> None:
        """Something waits for this side."""
        if not self._awake:
            self._awake = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        self._awake = False
        assert self.side is not None
        self.side.pump()
        self.flush()

    def flush(self) -> None:
        """Commits, and only then sends."""
        assert self.side is not None
        self.side.state.commit()
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(bytes(self._pending))
        self._pending.clear()

    async def run(self) -> None:
        """Serves for ever; raises `BridgeRefused` if the server will never take it."""
        wait, told = FIRST_WAIT, ""
        while True:
            try:
                async with asyncio.timeout(PATIENCE):
                    reader = await self._open()
                await self._serve(reader)
            except (OSError, PacketError, Full, TimeoutError, EOFError) as problem:
                words = str(problem) or type(problem).__name__
                if self.side is not None and self.side.connected:
                    wait, told = FIRST_WAIT, ""
                if words != told:
                    log.warn("not connected", to=str(self.target.address), reason=words)
                    told = words
            finally:
                await self._close()
            await asyncio.sleep(wait * random.uniform(0.5, 1.0))
            wait = min(2 * wait, LONGEST_WAIT)

    async def _open(self) -> asyncio.StreamReader:
        address, tls = self.target.address, self.target.tls
        if address.path:
            reader, self._writer = await asyncio.open_unix_connection(address.path)
        else:
            reader, self._writer = await asyncio.open_connection(address.host, address.port, ssl=tls)
        assert self.side is not None
        self._pending.clear()
        self.send(self.side.greeting(self.target.user, self.target.password))
        self.flush()
        return reader

    async def _serve(self, reader: asyncio.StreamReader) -> None:
        assert self.side is not None
        assert self._writer is not None
        parser, asked = Parser(LONGEST, V5), False
        while True:
            try:
                async with asyncio.timeout(KEEP_ALIVE / 2):
                    data = await reader.read(65536)
            except TimeoutError:
                if asked or not self.side.connected:
                    raise ConnectionError("it does not answer any more") from None
                asked = True
                self.send(Pingreq())
                self.flush()
                continue
            if not data:
                raise EOFError("the connection was closed")
            asked = False
            parser.feed(data)
            while (packet := parser.next()) is not None:
                self.side.receive(packet)
            if self.side.connected and not self.reached.is_set():
                log.info("connected", to=str(self.target.address))
                self.reached.set()
            self.flush()
            await self._writer.drain()

    async def _close(self) -> None:
        if self.side is not None:
            self.side.lost()
        self.reached.clear()
        if self._writer is not None:
            self._writer.close()
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._writer.wait_closed()
            self._writer = None

    def leave(self) -> None:
        if self._writer is not None and self.side is not None and self.side.connected:
            self.send(Disconnect())
            self.flush()


class Bridge:
    """A node and a broker, connected."""

    def __init__(
        self,
        node: Target,
        broker: Target,
        state: BridgeState,
        *,
        outwards: tuple[str, ...] = ("#",),
        inwards: tuple[str, ...] = ("#",),
        name: str | None = None,
    ) -> None:
        """`outwards` are Topic Filters of what goes to the broker, `inwards` of what comes from it."""
        self.node, self.broker, self._state = Peer(node), Peer(broker), state
        self._node = NodeSide(state, outwards, self.node.send, name or str(broker.address))
        self.node.side = self._node
        self.broker.side = BrokerSide(state, inwards, self.broker.send)
        self._node.wake_other = self.broker.wake
        self.broker.side.wake_other = self.node.wake
        self._tasks: list[asyncio.Task[None]] = []

    async def reached(self) -> None:
        """Returns when both sides have answered."""
        await asyncio.gather(self.node.reached.wait(), self.broker.reached.wait())

    async def run(self, stop: asyncio.Event) -> None:
        """Serves until it is stopped; raises `BridgeRefused` if a side will never take it."""
        self._tasks = [asyncio.create_task(peer.run()) for peer in (self.node, self.broker)]
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([*self._tasks, stopping], return_when=asyncio.FIRST_COMPLETED)
            # What the node has stored and not yet acknowledged would be published again.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    while self._node.connected and self._node.publishing and not any(t.done() for t in self._tasks):
                        await asyncio.sleep(0.01)
            for peer in (self.node, self.broker):
                peer.leave()
        finally:
            failed = [task.exception() for task in self._tasks if task.done() and not task.cancelled()]
            for task in (*self._tasks, stopping):
                task.cancel()
            await asyncio.gather(*self._tasks, stopping, return_exceptions=True)
            self._state.close()
        for problem in failed:
            if problem is not None:
                raise problem
