"""The applications that listen at a node's API: over WebSockets, as server-sent events, or by polling.

The rules this file owns:

* Every listener has a mailbox of the host (`mailbox.py`), and leaves it however the connection ends.
* Server-sent events of a durable subscription have their position as id, which a browser says when it connects again
  (`Last-Event-ID`).
* Neither a browser nor a poll says goodbye over a radio that is gone. So a stream or a poll with the id of another
  takes its place; a WebSocket, which is pinged, keeps its place.
"""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

import msgspec
from aiohttp import WSMessage, WSMsgType, web

from roamcast.errors import ContentError, RoamcastError
from roamcast.live.control_messages import (
    JSON,
    MSGPACK,
    Polled,
    PollRequest,
    Published,
    SubscribeRequest,
    SubscriberMessage,
    decode,
    encode,
)
from roamcast.live.host import Host
from roamcast.live.mailbox import Mailbox
from roamcast.live.under_way import Busy

HEARTBEAT: Final = 20.0
"""Seconds between pings to a listener on another machine; one that does not answer is gone. On this machine the system
tells when it is. A stream of server-sent events gets a comment as often, which proxies want too."""
GIVE_UP: Final = 40_000
"""Milliseconds after which the system gives up a stream whose reader acknowledges nothing."""
PATIENCE: Final = 10.0
"""Seconds that a listener may take to send its subscription."""
LOOK: Final = 1.0
"""Seconds between two looks at whether the reader of a stream has left."""
MAX_LISTENERS: Final = 2048
"""Connections, including those that have not subscribed yet."""
MAX_POLLED: Final = 256
"""Events in the answer to a poll, and about how many bytes."""
MAX_POLLED_BYTES: Final = 2**20


class Listeners:
    def __init__(self, host: Callable[[], Host], local: bool) -> None:
        """`local`: only this machine can connect."""
        self._host = host
        self._local = local
        self._closed = False
        self._sockets: dict[asyncio.Task[Any] | None, web.WebSocketResponse] = {}
        self._streams: dict[asyncio.Task[Any], int | None] = {}  # streams and polls, with the ids that were asked for

    async def close(self) -> None:
        self._closed = True
        for stream in list(self._streams):
            stream.cancel()
        for listener in list(self._sockets.values()):
            with contextlib.suppress(Exception):
                await asyncio.wait_for(listener.close(code=1001, message=b"the node ends"), 1.0)

    def _refuse_too_many(self) -> None:
        if len(self._sockets) + len(self._streams) >= MAX_LISTENERS:
            raise Busy(f"{MAX_LISTENERS} listeners are connected, and no more are taken")

    # --- WebSockets -------------------------------------------------------------------------------------------------

    async def over_websocket(
        self, request: web.Request, longest: int, serve: Callable[[web.WebSocketResponse], Awaitable[None]]
    ) -> web.StreamResponse | None:
        """Serves a WebSocket; None if the request does not open one."""
        # Uncompressed: on one machine, compression costs more than it saves.
        heartbeat = None if self._local else HEARTBEAT
        socket = web.WebSocketResponse(heartbeat=heartbeat, max_msg_size=longest, compress=False)
        if not socket.can_prepare(request).ok:
            return None
        self._refuse_too_many()
        await socket.prepare(request)
        task = asyncio.current_task()
        self._sockets[task] = socket
        try:
            await serve(socket)
        finally:
            self._sockets.pop(task, None)
        return socket

    async def serve(self, listener: web.WebSocketResponse) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                first = await listener.receive()
        except TimeoutError:
            await listener.close(code=1008, message=b"nothing was asked")
            return
        if first.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
            return
        kind = kind_of_answer(first)
        try:
            request = decode(first.data, SubscribeRequest, kind)
            mailbox = await self._host().subscribe(request)
        except RoamcastError as problem:
            await tell(listener, SubscriberMessage(error=str(problem)), kind)
            await listener.close(code=1008)
            return
        try:
            await tell(listener, SubscriberMessage(subscribed=mailbox.subscription.id), kind)
            await _stream(listener, mailbox, kind)
        except ConnectionError:
            pass  # the listener left while it was being sent something
        finally:
            self._host().leave(mailbox)

    # --- Server-sent events -----------------------------------------------------------------------------------------

    async def stream(self, request: web.Request, wanted: SubscribeRequest) -> web.StreamResponse:
        """Streams events until the reader leaves, another takes its place, or the subscription is over."""
        if wanted.after is None and (last := request.headers.get("Last-Event-ID")):
            wanted = msgspec.structs.replace(wanted, after=_position(last))
        mailbox = await self._subscribe(wanted)
        headers = {
            "Content-Type": "text/event-stream",
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
        }
        answer = web.StreamResponse(headers=headers)
        try:
            await answer.prepare(request)
            self._give_up_silent(request)
            await self._while_connected(request, wanted.id, _send_events(answer, mailbox))
        except ConnectionError:
            pass
        finally:
            self._host().leave(mailbox)
        return answer

    def _give_up_silent(self, request: web.Request) -> None:
        connection = request.transport.get_extra_info("socket") if request.transport is not None else None
        if not self._local and connection is not None and hasattr(socket, "TCP_USER_TIMEOUT"):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, GIVE_UP)

    # --- Polling ----------------------------------------------------------------------------------------------------

    async def poll(self, request: web.Request, wanted: PollRequest) -> Polled:
        mailbox = await self._subscribe(wanted.subscription)
        found: list[bytes] = []

        async def take() -> None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wanted.wait):
                    await mailbox.filled()
            found.extend(await mailbox.upcoming(MAX_POLLED, MAX_POLLED_BYTES))

        try:
            await self._while_connected(request, wanted.id, take())
        finally:
            self._host().leave(mailbox)
        events = [decode(packed, SubscriberMessage, MSGPACK).shown() for packed in found]
        missed, mailbox.missed = mailbox.missed, 0
        return Polled(events, events[-1].position if events else wanted.after, missed)

    # --- Both -------------------------------------------------------------------------------------------------------

    async def _subscribe(self, wanted: SubscribeRequest) -> Mailbox:
        self._refuse_too_many()
        former = [task for task, number in self._streams.items() if number is not None and number == wanted.id]
        for task in former:
            task.cancel()
        mailbox = self._host().subscribers.get(wanted.id) if former and wanted.id is not None else None
        while mailbox is not None and mailbox.listening:  # until the one before has left
            await asyncio.sleep(0)
        return await self._host().subscribe(wanted)

    async def _while_connected(self, request: web.Request, number: int | None, work: Coroutine[Any, Any, None]) -> None:
        """Does work until it is done, the connection is lost, or another takes its place."""
        task = asyncio.create_task(work)
        self._streams[task] = number
        try:
            while not (task.done() or self._closed or request.transport is None or request.transport.is_closing()):
                await asyncio.wait((task,), timeout=LOOK)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            del self._streams[task]


async def _send_events(answer: web.StreamResponse, mailbox: Mailbox) -> None:
    writing = asyncio.Lock()  # a comment must not get into the middle of an event

    async def tell(message: SubscriberMessage, name: str = "") -> None:
        lines = [
            f"id: {message.position}\n" if message.position is not None else "",
            f"event: {name}\n" if name else "",
        ]
        async with writing:
            await answer.write("".join(lines).encode() + b"data: " + encode(message, JSON) + b"\n\n")

    async def send(missed: int, packed: bytes) -> None:
        if missed:
            await tell(SubscriberMessage(missed=missed), "missed")
        await tell(decode(packed, SubscriberMessage, MSGPACK))

    async def show_life() -> None:
        while True:
            await asyncio.sleep(HEARTBEAT)
            async with writing:
                await answer.write(b":\n\n")

    alive = asyncio.create_task(show_life())
    try:
        await tell(SubscriberMessage(subscribed=mailbox.subscription.id), "subscribed")
        while await mailbox.pass_on(send):
            pass
        await tell(SubscriberMessage(), "over")
    finally:
        alive.cancel()
        await asyncio.gather(alive, return_exceptions=True)


def _position(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise ContentError(f"Last-Event-ID {text[:40]!r}: expected the position of an event")
    return int(text)


async def _stream(listener: web.WebSocketResponse, mailbox: Mailbox, kind: str) -> None:
    """Sends events until the listener leaves or the subscription is over."""
    tasks = asyncio.create_task(_send_all(listener, mailbox, kind)), asyncio.create_task(_left(listener))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await listener.close(message=b"the subscription is over")


async def _left(listener: web.WebSocketResponse) -> None:
    """Returns when the listener has left. Nothing more is expected from it, but only reading notices that it left."""
    while not listener.closed:
        await listener.receive()


async def _send_all(listener: web.WebSocketResponse, mailbox: Mailbox, kind: str) -> None:
    async def send(missed: int, packed: bytes) -> None:
        if missed:
            await tell(listener, SubscriberMessage(missed=missed), kind)
        if kind == MSGPACK:
            await listener.send_bytes(packed)
        else:
            await tell(listener, decode(packed, SubscriberMessage, MSGPACK), kind)

    while await mailbox.pass_on(send):
        pass


def kind_of_answer(request: WSMessage) -> str:
    """A binary request gets binary messages."""
    return MSGPACK if request.type is WSMsgType.BINARY else JSON


async def tell(socket: web.WebSocketResponse, message: SubscriberMessage | list[Published], kind: str) -> None:
    content = encode(message, kind)
    if kind == MSGPACK:
        await socket.send_bytes(content)
    else:
        await socket.send_str(content.decode())
