"""The small part of MQTT 3.1.1 that a comparison needs: one connection, QoS 1. Only for `bench live`."""

import asyncio
import itertools
import struct
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

CONNECT: Final = 0x10
PUBLISH: Final = 0x32  # QoS 1
PUBACK: Final = 0x40
SUBSCRIBE: Final = 0x82


class MqttClient:
    def __init__(self, name: str, port: int) -> None:
        self._name = name
        self._port = port
        self._acknowledged: dict[int, asyncio.Future[None]] = {}
        self._numbers = itertools.cycle(range(1, 65536))
        self._arrived: asyncio.Queue[bytes] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        # A persistent session, so that the broker writes waiting messages to disk.
        self._send(CONNECT, _text("MQTT") + bytes((4, 0)) + struct.pack(">H", 60) + _text(self._name))
        await self._packet()
        self._reading = asyncio.create_task(self._read())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reading.cancel()
        self._writer.close()

    async def publish(self, payload: bytes) -> None:
        """Returns when the broker has acknowledged it."""
        await self._asked(PUBLISH, lambda number: _text("bench") + number + payload)

    async def subscribe(self) -> None:
        await self._asked(SUBSCRIBE, lambda number: number + _text("bench") + b"\1")

    async def arrived(self) -> bytes:
        return await self._arrived.get()

    async def _asked(self, kind: int, body: Callable[[bytes], bytes]) -> None:
        number = next(self._numbers)
        done = self._acknowledged[number] = asyncio.get_running_loop().create_future()
        self._send(kind, body(struct.pack(">H", number)))
        await done

    def _send(self, kind: int, body: bytes) -> None:
        length, left = bytearray(), len(body)
        while left >= 128:
            length.append(left % 128 | 128)
            left //= 128
        self._writer.write(bytes((kind, *length, left)) + body)

    async def _packet(self) -> tuple[int, bytes]:
        kind, shift, length = (await self._reader.readexactly(1))[0], 0, 0
        while True:
            byte = (await self._reader.readexactly(1))[0]
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return kind, await self._reader.readexactly(length)

    async def _read(self) -> None:
        while True:
            kind, body = await self._packet()
            if kind & 0xF0 == PUBLISH & 0xF0:
                topic = struct.unpack_from(">H", body)[0]
                self._send(PUBACK, body[2 + topic : 4 + topic])
                self._arrived.put_nowait(body[4 + topic :])
            else:  # of a publication or a subscription
                self._acknowledged.pop(struct.unpack_from(">H", body)[0]).set_result(None)


def _text(words: str) -> bytes:
    return struct.pack(">H", len(words)) + words.encode()
