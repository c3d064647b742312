"""Publications over a WebSocket: many at a time, each answered in order when it is on disk.

A message is a list of publications, and an answer is a list with the id of each, or why it was refused. One HTTP
request per publication (`POST /publish`) costs more than everything else a node does with an event.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec
from aiohttp import WSMsgType, web

from roamcast.errors import RoamcastError
from roamcast.live.control_messages import MSGPACK, EventForm, Published, decode
from roamcast.live.listeners import kind_of_answer, tell

MOST: Final = 1024
"""Publications of one connection without an answer; with more, nothing is read from it."""

Publish = Callable[[EventForm, Callable[[int, BaseException | None], None]], None]
"""Publishes, and calls back with the id when the event is on disk, or with an error; or raises, and never calls
back."""


class _Place:
    """The place of one answer in the sequence."""

    __slots__ = ("answer",)

    def __init__(self) -> None:
        self.answer: Published | None = None


class PublishingStream:
    def __init__(self, socket: web.WebSocketResponse, publish: Publish) -> None:
        self._socket = socket
        self._publish = publish
        self._places: deque[_Place] = deque()
        self._ready = asyncio.Event()
        self._few = asyncio.Event()
        self._kind = MSGPACK

    async def serve(self) -> None:
        """Serves until the publisher leaves, or sends something that is not a list."""
        answering = asyncio.create_task(self._answer_for_ever())
        try:
            async for message in self._socket:
                if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                    break
                self._kind = kind_of_answer(message)
                for raw in decode(message.data, list[msgspec.Raw], self._kind):
                    self._take(bytes(raw))
                while len(self._places) > MOST and not answering.done():
                    self._few.clear()
                    await self._few.wait()
        except RoamcastError as problem:
            await tell(self._socket, [Published(error=str(problem))], self._kind)
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
            form = decode(encoded, EventForm, self._kind)
            self._publish(form, lambda number, problem: self._told(place, number, problem))
        except RoamcastError as problem:
            self._told(place, 0, problem)

    def _told(self, place: _Place, number: int, problem: BaseException | None) -> None:
        place.answer = Published(number) if problem is None else Published(error=str(problem))
        self._ready.set()

    async def _answer_for_ever(self) -> None:
        try:
            while True:
                await self._ready.wait()
                self._ready.clear()
                answers = []
                while self._places and (answer := self._places[0].answer) is not None:
                    self._places.popleft()
                    answers.append(answer)
                if answers:
                    await tell(self._socket, answers, self._kind)
                self._few.set()
        finally:
            self._few.set()
