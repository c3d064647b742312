"""Publications over a WebSocket: many at a time, each answered in order when it is on disk.

A message is a list of publications, and an answer is a list with the id of each, or why it was refused. One HTTP
request per publication (`POST /publish`) costs more than everything else a node does with an event.
"""

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec
from aiohttp import WSMsgType, web

from roamcast.errors import RoamcastError
from roamcast.live.control_messages import JSON, MSGPACK, EventForm, Published, decode, encode

Publish = Callable[[EventForm, Callable[[BaseException | None], None]], int]
"""Publishes, returns the id at once, and calls back when the event is on disk; or raises, and never calls back."""


class _Place:
    """The place of one answer in the sequence."""

    __slots__ = ("error", "number", "stored")

    def __init__(self) -> None:
        self.number = 0
        self.stored = False
        self.error: str | None = None


class PublishingStream:
    def __init__(self, socket: web.WebSocketResponse, publish: Publish) -> None:
        self._socket = socket
        self._publish = publish
        self._places: deque[_Place] = deque()
        self._ready = asyncio.Event()
        self._kind = MSGPACK

    async def serve(self) -> None:
        """Serves until the publisher leaves, or sends something that is not a list."""
        answering = asyncio.create_task(self._answer_for_ever())
        try:
            async for message in self._socket:
                if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                    break
                # A binary request gets a binary answer.
                self._kind = MSGPACK if message.type is WSMsgType.BINARY else JSON
                for raw in decode(message.data, list[msgspec.Raw], self._kind):
                    self._take(bytes(raw))
        except RoamcastError as problem:
            await self._tell([Published(error=str(problem))])
            await self._socket.close(code=1008)
        except ConnectionError:
            pass
        finally:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)

    def _take(self, encoded: bytes) -> None:
        place = _Place()
        self._places.append(place)
        try:
            place.number = self._publish(
                decode(encoded, EventForm, self._kind), lambda problem: self._stored(place, problem)
            )
        except RoamcastError as problem:
            self._stored(place, problem)

    def _stored(self, place: _Place, problem: BaseException | None) -> None:
        place.stored, place.error = True, None if problem is None else str(problem)
        self._ready.set()

    async def _answer_for_ever(self) -> None:
        while True:
            await self._ready.wait()
            self._ready.clear()
            answers = []
            while self._places and self._places[0].stored:
                place = self._places.popleft()
                answers.append(Published(place.number) if place.error is None else Published(error=place.error))
            if answers:
                await self._tell(answers)

    async def _tell(self, answers: list[Published]) -> None:
        content = encode(answers, self._kind)
        if self._kind == MSGPACK:
            await self._socket.send_bytes(content)
        else:
            await self._socket.send_str(content.decode())
