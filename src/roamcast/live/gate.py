"""Limits connections in front of the API and of MQTT: how many, and how long they may take to send a request.

The rules this file owns, against strangers who connect and send nothing, or very little and slowly:

* With TLS, the limits apply from the first byte: a connection is admitted before the handshake.
* A connection that has not sent the head of its first request (of MQTT: its CONNECT) within `PATIENCE` seconds, or
  sends a longer one than allowed, is dropped. The server behind the gate never sees it.
* There are at most `capacity` connections, well below the process's limit of open files, and at most `MAX_PER_ADDRESS`
  from one address, be it another machine's or this one's. Further ones are dropped; the existing ones continue. A Unix
  socket has no addresses, and only its owner may open it.
"""

import asyncio
import os
import resource
import ssl
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final, Protocol

from roamcast.errors import ConfigError
from roamcast.live.places import Address, answers

PATIENCE: Final = 10.0
MAX_HEAD: Final = 16 * 1024
MAX_PER_ADDRESS: Final = 64
MAX_CONNECTIONS: Final = 2048


def capacity() -> int:
    """Half of the process's file descriptors: the rest is for the store, the facts and the radio."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(16, min(MAX_CONNECTIONS, descriptors // 2))


class Connected(Protocol):
    """A connection that was let in."""

    @property
    def transport(self) -> asyncio.Transport | None: ...


class Behind(Protocol):
    """The server behind a gate: it makes the protocol of each connection that is let in."""

    @property
    def connections(self) -> Collection[Connected]: ...
    def __call__(self) -> asyncio.Protocol: ...


def http_head(received: bytes) -> bool:
    return b"\r\n\r\n" in received


class Gate:
    """Makes the protocol of each new connection."""

    def __init__(
        self,
        server: Behind,
        most: int | None = None,
        tls: ssl.SSLContext | None = None,
        *,
        longest: int = MAX_HEAD,
        complete: Callable[[bytes], bool] = http_head,
    ) -> None:
        """`complete` says whether the head of the first request has arrived."""
        self.server = server
        self.tls = tls
        self.longest = longest
        self.complete = complete
        self.waiting: set[Knock] = set()
        self.counters: Counter[str] = Counter()
        self._most = capacity() if most is None else most
        self._listening: asyncio.Server | None = None
        self._path: Path | None = None

    def __call__(self) -> asyncio.Protocol:
        return Knock(self)

    def admits(self, address: str | None) -> bool:
        """Whether there is room for one more connection. None: on a Unix socket."""
        if len(self.server.connections) + len(self.waiting) >= self._most:
            return False
        if address is None:
            return True
        transports = [knock.transport for knock in self.waiting]
        transports += [handler.transport for handler in self.server.connections]
        return sum(_address(transport) == address for transport in transports) < MAX_PER_ADDRESS

    async def listen(self, address: Address, option: str) -> Address:
        """Starts listening; returns the address with the actual port, if port 0 was requested."""
        loop = asyncio.get_running_loop()
        try:
            if address.path:
                self._listening = await self._listen_locally(Path(address.path))
                self._path = Path(address.path)
                return address
            self._listening = await loop.create_server(self, address.host, address.port)
        except OSError as problem:
            raise ConfigError(
                f"{option} {address}: cannot listen there: {problem.strerror or problem}; each node needs an address "
                "of its own"
            ) from None
        return Address(address.host, self._listening.sockets[0].getsockname()[1])

    async def _listen_locally(self, path: Path) -> asyncio.Server:
        if path.is_socket() and answers(path):
            raise OSError(None, "another process listens there")
        former = os.umask(0o177)  # only the owner may connect, from the first moment on
        try:
            if path.is_socket():
                path.unlink()
            return await asyncio.get_running_loop().create_unix_server(self, str(path))
        finally:
            os.umask(former)

    def close(self) -> None:
        """Listens no more; connections that were let in stay."""
        if self._listening is not None:
            self._listening.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
        for knock in list(self.waiting):
            knock.drop("closing")


class Knock(asyncio.Protocol):
    """A connection until the head of its first request has arrived."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._head = b""
        self._alarm: asyncio.TimerHandle | None = None
        self._handshake: asyncio.Task[None] | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        if not self._gate.admits(_address(transport)):
            self.drop("refused")
            return
        self._gate.waiting.add(self)
        self._alarm = asyncio.get_running_loop().call_later(PATIENCE, self.drop, "silent")
        if self._gate.tls is not None:
            transport.pause_reading()  # TLS reads the handshake
            self._handshake = asyncio.create_task(self._shake_hands(transport, self._gate.tls))

    async def _shake_hands(self, transport: asyncio.Transport, tls: ssl.SSLContext) -> None:
        loop = asyncio.get_running_loop()
        try:
            secured = await loop.start_tls(transport, self, tls, server_side=True, ssl_handshake_timeout=PATIENCE)
        except OSError:  # includes errors of TLS
            self.drop("no TLS")
            return
        assert secured is not None
        self.transport = secured
        self._handshake = None
        self.data_received(b"")  # handles data that arrived while the handshake ended

    def data_received(self, data: bytes) -> None:
        self._head += data
        if self._handshake is not None:
            return
        if self._gate.complete(self._head):
            self._let_in()
        elif len(self._head) > self._gate.longest:
            self.drop("too long")

    def connection_lost(self, problem: Exception | None) -> None:
        self._leave()

    def drop(self, reason: str) -> None:
        self._gate.counters[reason] += 1
        self._leave()
        if self._handshake is not None and self._handshake is not asyncio.current_task():
            self._handshake.cancel()
        if self.transport is not None:
            self.transport.abort()

    def _let_in(self) -> None:
        assert self.transport is not None
        self._leave()
        handler = self._gate.server()
        self.transport.set_protocol(handler)
        handler.connection_made(self.transport)
        handler.data_received(self._head)

    def _leave(self) -> None:
        self._gate.waiting.discard(self)
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None


def _address(transport: asyncio.BaseTransport | None) -> str | None:
    """The address of the other end; None on a Unix socket. All of 127.0.0.0/8 is one machine, this one."""
    peer = transport.get_extra_info("peername") if transport is not None else None
    if not isinstance(peer, tuple):
        return None
    return "127.0.0.1" if peer[0].startswith("127.") else str(peer[0])
