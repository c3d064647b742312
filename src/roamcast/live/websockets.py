"""A client's WebSockets to a node's API. Imported when the first is opened: aiohttp takes longer to load than most
requests take."""

import ssl

import aiohttp

from roamcast.live.places import Address


class Refused(Exception):
    """A node opens no WebSocket; `status` is its answer."""

    def __init__(self, status: int) -> None:
        self.status = status


class WebSocket:
    """One connection. Whatever breaks it is an `OSError`."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    @property
    def closed(self) -> bool:
        return self._socket.closed

    @property
    def close_code(self) -> int | None:
        return self._socket.close_code

    async def send(self, message: bytes) -> None:
        try:
            await self._socket.send_bytes(message)
        except aiohttp.ClientError as problem:
            raise ConnectionError(str(problem)) from problem

    async def receive(self) -> bytes | None:
        """The next message; None: there will be none."""
        frame = await self._socket.receive()
        return frame.data if frame.type is aiohttp.WSMsgType.BINARY else None

    async def close(self) -> None:
        try:
            await self._socket.close()
        except aiohttp.ClientError as problem:
            raise ConnectionError(str(problem)) from problem


class WebSockets:
    """All of a client. To be made while an event loop runs."""

    def __init__(self, address: Address, tls: ssl.SSLContext | None, headers: dict[str, str]) -> None:
        connector: aiohttp.BaseConnector
        if address.path:
            connector = aiohttp.UnixConnector(address.path)
        else:
            connector = aiohttp.TCPConnector(limit=0, ssl=tls or True)
        scheme = "http" if tls is None else "https"
        self._base = "http://localhost" if address.path else f"{scheme}://{address}"
        # `trust_env` stays off: no proxy belongs between a node and its applications.
        self._session = aiohttp.ClientSession(connector=connector, headers=headers)

    async def open(self, path: str, longest: int, heartbeat: float | None) -> WebSocket:
        """Raises `Refused` or `OSError`."""
        try:
            return WebSocket(
                await self._session.ws_connect(self._base + path, max_msg_size=longest, heartbeat=heartbeat)
            )
        except aiohttp.WSServerHandshakeError as problem:
            raise Refused(problem.status) from problem
        except aiohttp.ClientError as problem:
            if isinstance(problem, OSError):
                raise
            raise ConnectionError(str(problem)) from problem

    async def close(self) -> None:
        await self._session.close()
