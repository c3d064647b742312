"""The MQTT side of a node: connections on an address, and the node as the world of their sessions.

The rules this file owns, the same as for the API (`control.py`):

* On a Unix socket and on loopback no token is needed; any other address needs a token and TLS. The token is the
  client's password, whatever its user name, and is compared in constant time.
* Connections are limited by a gate of their own (`gate.py`), of which CONNECT is the head. A page in a browser cannot
  send one: what it sends begins with the name of an HTTP method, which is no CONNECT.
* A client that neither reads nor acknowledges is not read from either.
"""

import asyncio
import contextlib
import hmac
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from roamcast.errors import ConfigError
from roamcast.live import log
from roamcast.live.gate import Gate, capacity
from roamcast.live.mqtt.packets import V5, V311, Connack, Connect, Disconnect, Packet, PacketError, Reason
from roamcast.live.mqtt.session import MAX_PACKET, MqttSession
from roamcast.live.mqtt.sessions import Sessions, refusal
from roamcast.live.mqtt.wire import Parser, write
from roamcast.live.mqtt.world import MqttWorld
from roamcast.live.places import Address

if TYPE_CHECKING:
    from roamcast.live.node import Node

MAX_CONNECT: Final = 96 * 1024
"""Bytes of a CONNECT: a will of 64 KiB, and the rest."""
PATIENCE: Final = 2.0
"""Seconds for what is left to say when a connection, or the node, ends."""


class MqttServer:
    def __init__(self, node: "Node", address: Address, token: str | None, tls: ssl.SSLContext | None = None) -> None:
        if not address.local and (token is None or tls is None):
            raise ConfigError(f"MQTT on {address} needs a token and TLS")
        self.address = address
        self.token = token
        self.world = MqttWorld(node)
        self.sessions = Sessions(self.world)
        self.connections: list[MqttConnection] = []
        # The API may take half of the file descriptors.
        self.gate = Gate(
            self, capacity() // 2, None if address.path else tls, longest=MAX_CONNECT, complete=_connect_is_there
        )

    def __call__(self) -> "MqttConnection":
        return MqttConnection(self)

    def change(self, token: str | None, tls: ssl.SSLContext | None) -> None:
        """Sets the token and TLS context for later connections."""
        self.token = token
        self.gate.tls = None if self.address.path else tls

    async def open(self) -> None:
        self.sessions.restore(self.world.kept())
        self.address = await self.gate.listen(self.address, "--mqtt")

    async def close(self) -> None:
        self.gate.close()
        for connection in self.connections:
            connection.stop_reading()
        # Who has published waits for an answer: without one it would publish again.
        await _until(lambda: not self.sessions.publishing)
        for connection in list(self.connections):
            connection.end(Reason.SHUTTING_DOWN, "the node ends")
            connection.lost()
        await _until(lambda: not self.connections)

    def status(self) -> dict[str, Any]:
        return {
            "address": str(self.address),
            "tls": self.gate.tls is not None,
            "sessions": len(self.sessions),
            "connected": self.sessions.connected,
            "retained": len(self.sessions.retained),
        }


class MqttConnection(asyncio.Protocol):
    """The connection of one client, after its CONNECT has arrived."""

    def __init__(self, server: MqttServer) -> None:
        self.transport: asyncio.Transport | None = None
        self.version = V311
        self.clogged = False
        self._server = server
        self._parser = Parser(MAX_PACKET)
        self._session: MqttSession | None = None
        self._attached = False
        self._ended = False
        self._stopped = False
        self._resuming = False
        self._heard = 0.0
        self._keep_alive = 0.0
        self._alarm: asyncio.TimerHandle | None = None

    # --- Bytes ------------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._server.connections.append(self)

    def data_received(self, data: bytes) -> None:
        self._heard = asyncio.get_running_loop().time()
        self._parser.feed(data)
        self.resume()

    def connection_lost(self, problem: Exception | None) -> None:
        self._ended = True
        if self._alarm is not None:
            self._alarm.cancel()
        with contextlib.suppress(ValueError):
            self._server.connections.remove(self)
        self.lost()

    def lost(self) -> None:
        """The session goes on without this connection."""
        if self._session is not None:
            self._server.sessions.disconnected(self._session, self)

    def pause_writing(self) -> None:
        self.clogged = True

    def resume_writing(self) -> None:
        self.clogged = False
        if self._session is not None and self._attached:
            self._session.pump_soon()
        self.resume()

    def write(self, data: bytes) -> None:
        """Sends to the client. While it reads more slowly than that, the connection is `clogged`."""
        if self.transport is not None and not self._ended:
            self.transport.write(data)

    def stop_reading(self) -> None:
        self._stopped = True

    def end(self, reason: int, words: str = "") -> None:
        """Tells the client why, if its version can, and closes the connection."""
        if self._ended or self.transport is None:
            return
        if self.version == V5 and self._attached:
            self.write(write(Disconnect(reason, {"reason_string": words[:200]} if words else {}), V5))
        self._ended = True
        self.transport.close()
        # A peer that does not read would keep a closing connection for ever.
        self._alarm = asyncio.get_running_loop().call_later(PATIENCE, self.transport.abort)

    # --- Packets ----------------------------------------------------------------------------------------------------

    def resume(self) -> None:
        """Handles the packets that have arrived, as long as the session is ready for them."""
        if self.transport is None or self._resuming:  # what answers at once calls this from inside
            return
        self._resuming = True
        try:
            while not (self._ended or self._waits):
                packet = self._parser.next()
                if packet is None:
                    break
                self._take(packet)
        except PacketError as problem:
            self._refuse(problem)
        finally:
            self._resuming = False
        if not self._ended:
            (self.transport.pause_reading if self._waits else self.transport.resume_reading)()

    @property
    def _waits(self) -> bool:
        if self._session is None:
            return self._stopped
        return self._stopped or not self._attached or self._session.busy or self.clogged

    def _take(self, packet: Packet) -> None:
        if self._session is None:
            assert isinstance(packet, Connect)
            self._connect(packet)
        elif isinstance(packet, Disconnect):
            self._leave(self._session, packet)
        else:
            self._session.receive(packet)  # a second CONNECT is refused there [MQTT-3.1.0-2]

    def _connect(self, packet: Connect) -> None:
        self.version = packet.version
        token = self._server.token
        if token is not None and not hmac.compare_digest(packet.password or b"", token.encode()):
            raise PacketError(Reason.BAD_PASSWORD, "the node's token is needed as the password")
        self._session = self._server.sessions.connect(self, packet, self._begin)
        self._keep_alive = 1.5 * packet.keep_alive
        if self._keep_alive:
            self._look_for_life()

    def _begin(self) -> None:
        self._attached = True
        self.resume()

    def _leave(self, session: MqttSession, packet: Disconnect) -> None:
        expiry = packet.properties.get("session_expiry")
        if expiry and not session.durable:
            raise PacketError(Reason.PROTOCOL_ERROR, "a session that was to end now cannot last")  # [3.14.2.2.2]
        self._server.sessions.disconnected(session, self, reason=packet.reason, expiry=expiry)
        self._ended = True
        assert self.transport is not None
        self.transport.close()

    def _refuse(self, problem: PacketError) -> None:
        if self._session is not None:
            log.info("an MQTT client was disconnected", client=self._session.record.client_id, reason=str(problem))
            self.end(problem.reason, str(problem))
            self.lost()
            return
        self._server.gate.counters["refused by MQTT"] += 1
        if problem.reason == Reason.UNSUPPORTED_VERSION:
            self.write(write(Connack(False, 1), V311))  # 3.1.1: [MQTT-3.1.2-2]; older clients understand it too
        elif self._parser.version is not None:
            self.write(write(refusal(self.version, problem), self.version))
        self.end(problem.reason)

    def _look_for_life(self) -> None:
        """Ends a connection that was silent for one and a half times its Keep Alive [MQTT-3.1.2-24]."""
        if self._ended:
            return
        loop = asyncio.get_running_loop()
        silent = 0.0 if self._waits else loop.time() - self._heard
        if silent >= self._keep_alive:
            self.end(Reason.KEEP_ALIVE_TIMEOUT, "nothing was heard for longer than the Keep Alive")
            self.lost()
            return
        self._alarm = loop.call_later(self._keep_alive - silent, self._look_for_life)


def _connect_is_there(received: bytes) -> bool:
    parser = Parser(MAX_CONNECT)
    parser.feed(received)
    try:
        return parser.next() is not None
    except PacketError:
        return True  # the connection refuses it


async def _until(holds: Callable[[], bool]) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while not holds():
                await asyncio.sleep(0.01)
