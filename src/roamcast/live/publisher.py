"""The client's side of publishing over a WebSocket (`publishing.py`): concurrent publications share one message."""

import asyncio
import struct
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from roamcast.live.control_messages import MAX_REQUEST, MSGPACK, Published, decode

if TYPE_CHECKING:
    from aiohttp import ClientWebSocketResponse

MOST: Final = 1000
"""Publications in one message."""
LONGEST: Final = MAX_REQUEST - 16
"""Bytes of the longest publication that fits into a message."""

Answer = asyncio.Future[int]


class Publisher:
    """Connects at the first publication, and again after the connection was lost."""

    def __init__(
        self,
        connect: Callable[[], Awaitable["ClientWebSocketResponse"]],
        refused: Callable[[str], Exception],
        lost: Callable[[], Exception],
    ) -> None:
        """`refused` makes the error for a refused publication, `lost` the error for one without an answer."""
        self._connect = connect
        self._refused = refused
        self._lost = lost
        self._socket: ClientWebSocketResponse | None = None
        self._opening = asyncio.Lock()
        self._unsent: deque[tuple[bytes, Answer]] = deque()
        self._unanswered: deque[Answer] = deque()
        self._sending: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None

    async def publish(self, encoded: bytes) -> int:
        if self._socket is None or self._socket.closed:
            await self._open()
        answer: Answer = asyncio.get_running_loop().create_future()
        self._unsent.append((encoded, answer))
        if self._sending is None:
            self._sending = asyncio.create_task(self._send_all())
        return await answer

    async def close(self) -> None:
        if self._socket is not None:
            await self._socket.close()
        if self._reading is not None:
            await self._reading

    async def _open(self) -> None:
        async with self._opening:
            if self._socket is None or self._socket.closed:
                if self._reading is not None:
                    await self._reading
                self._socket = await self._connect()
                self._reading = asyncio.create_task(self._read_all(self._socket))

    async def _send_all(self) -> None:
        try:
            while self._unsent:
                assert self._socket is not None
                await self._socket.send_bytes(self._message())
        except OSError:
            self._fail()
        finally:
            self._sending = None

    def _message(self) -> bytes:
        """The next publications, as a list in MessagePack."""
        bodies: list[bytes] = []
        size = 0
        while self._unsent and len(bodies) < MOST and size + len(self._unsent[0][0]) <= LONGEST:
            encoded, answer = self._unsent.popleft()
            bodies.append(encoded)
            size += len(encoded)
            self._unanswered.append(answer)
        return struct.pack(">BH", 0xDC, len(bodies)) + b"".join(bodies)

    async def _read_all(self, socket: "ClientWebSocketResponse") -> None:
        try:
            while isinstance(message := (await socket.receive()).data, bytes):
                for published in decode(message, list[Published], MSGPACK):
                    self._tell(self._unanswered.popleft(), published)
        finally:
            self._fail()

    def _tell(self, answer: Answer, published: Published) -> None:
        if answer.done():  # the publisher has stopped waiting
            return
        if published.error is None:
            answer.set_result(published.id)
        else:
            answer.set_exception(self._refused(published.error))

    def _fail(self) -> None:
        """The connection is lost, and with it every answer."""
        for answer in (*self._unanswered, *(answer for _, answer in self._unsent)):
            if not answer.done():
                answer.set_exception(self._lost())
        self._unanswered.clear()
        self._unsent.clear()
