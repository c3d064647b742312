"""The API of a node: HTTP and WebSocket, on a Unix socket or an address. `docs/live.md` describes it.

The rules this file owns, about who may use it:

* On a Unix socket (which only its owner may open) and on loopback no token is needed; any other address needs a token
  and TLS, and a node does not start without both. Tokens are compared in constant time.
* Pages in a browser are refused: any request with an `Origin`, and any request to loopback under another name than
  loopback's (a name that an attacker has pointed here).
* The number of connections and their idle time are bounded (`gate.py`), and so are the length of requests, the number
  of subscriptions, and the number and size of events that wait for a slow listener.
"""

import asyncio
import contextlib
import hmac
import os
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, Protocol

from aiohttp import WSMsgType, web

from roamcast.errors import ConfigError, ContentError, RoamcastError
from roamcast.live import log
from roamcast.live.authors import Authors
from roamcast.live.control_messages import (
    JSON,
    MAX_REQUEST,
    MSGPACK,
    EventForm,
    Named,
    SubscribeRequest,
    SubscriberMessage,
    decode,
    encode,
)
from roamcast.live.gate import Gate
from roamcast.live.host import Busy, Host
from roamcast.live.mailbox import Mailbox
from roamcast.live.places import Address, answers
from roamcast.live.publishing import PublishingStream
from roamcast.live.senses import Senses
from roamcast.live.store import StoreError

HEARTBEAT: Final = 20.0
"""Seconds between pings to a listener on another machine; one that does not answer is gone. On this machine the system
tells when it is."""
PATIENCE: Final = 10.0
"""Seconds that a listener may take to send its subscription, and a request to send its body."""
IDLE: Final = 30.0
"""Seconds that a connection stays open without a request."""
MAX_LISTENERS: Final = 2048
"""Connections, including those that have not subscribed yet."""
_MAX_ASK: Final = 512 * 1024
"""Bytes: the longest filter has 65536 characters."""

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Controlled(Protocol):
    """The part of a node that the API needs."""

    @property
    def host(self) -> Host: ...
    @property
    def senses(self) -> Senses: ...
    @property
    def authors(self) -> Authors | None: ...
    def status(self) -> dict[str, Any]: ...
    def failure(self) -> str | None: ...
    def other_protocols(self) -> list[dict[str, Any]]: ...


# Browsers are refused; one that gets here all the same must not guess the content type.
_HEADERS: Final = {"X-Content-Type-Options": "nosniff"}


class Control:
    def __init__(
        self, node: Controlled, address: Address, token: str | None, tls: ssl.SSLContext | None = None
    ) -> None:
        if not address.local and (token is None or tls is None):
            raise ConfigError(f"the API on {address} needs a token and TLS")
        self._node = node
        self._address = address
        self._token = token
        self._tls = tls
        self._connected: dict[asyncio.Task[Any] | None, web.WebSocketResponse] = {}
        self._server: asyncio.Server | None = None
        self.gate: Gate | None = None
        app = web.Application(middlewares=[self._guard], client_max_size=MAX_REQUEST)
        app.router.add_get("/status", self._status)
        app.router.add_get("/health", self._health)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_post("/publish", self._publish)
        app.router.add_get("/publish", self._publish_many)
        app.router.add_get("/subscribe", self._subscribe)
        app.router.add_get("/subscriptions", self._subscriptions)
        app.router.add_delete("/subscriptions/{id}", self._unsubscribe)
        app.router.add_delete("/authors/{node}", self._forget_author)
        app.router.add_put("/here", self._set_here)
        app.router.add_put("/attributes", self._set_attributes)
        self._runner = web.AppRunner(
            app, access_log=None, handle_signals=False, shutdown_timeout=2.0, keepalive_timeout=IDLE
        )

    def change(self, token: str | None, tls: ssl.SSLContext | None) -> None:
        """Sets the token and TLS context for later requests and connections."""
        self._token, self._tls = token, tls
        if self.gate is not None:
            self.gate.tls = tls

    async def open(self) -> Address:
        """Starts listening; returns the address, with the actual port if port 0 was requested."""
        await self._runner.setup()
        assert self._runner.server is not None
        self.gate = Gate(self._runner.server, tls=self._tls)
        loop = asyncio.get_running_loop()
        try:
            if self._address.path:
                await self._open_unix(Path(self._address.path))
            else:
                self._server = await loop.create_server(self.gate, self._address.host, self._address.port)
                self._address = Address(self._address.host, self._server.sockets[0].getsockname()[1])
        except OSError as problem:
            await self._runner.cleanup()
            reason = problem.strerror or problem
            raise ConfigError(
                f"--api {self._address}: cannot listen there: {reason}; each node needs an address of its own"
            ) from None
        return self._address

    async def _open_unix(self, path: Path) -> None:
        if path.is_socket() and answers(path):
            raise OSError(None, "another process listens there")
        former = os.umask(0o177)  # only the owner may connect, from the first moment on
        try:
            if path.is_socket():
                path.unlink()
            assert self.gate is not None
            self._server = await asyncio.get_running_loop().create_unix_server(self.gate, str(path))
        finally:
            os.umask(former)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        if self.gate is not None:
            self.gate.close()
        for listener in list(self._connected.values()):
            with contextlib.suppress(Exception):
                await asyncio.wait_for(listener.close(code=1001, message=b"the node ends"), 1.0)
        await self._runner.cleanup()
        if self._address.path:
            Path(self._address.path).unlink(missing_ok=True)

    # --- Access control ---------------------------------------------------------------------------------------------

    @web.middleware
    async def _guard(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        refusal = self._refusal(request)
        if refusal is not None:
            answer = _problem(*refusal)
            answer.force_close()  # no keep-alive for strangers
            return answer
        try:
            return await handler(request)
        except web.HTTPException as answer:
            if answer.status == 413:
                return _problem(413, f"a request may have {MAX_REQUEST} bytes")
            return _problem(answer.status, answer.reason)
        except ContentError as problem:
            return _problem(400, str(problem))
        except ConfigError as problem:
            return _problem(409, str(problem))
        except (Busy, StoreError) as problem:
            return _problem(503, str(problem))
        except RoamcastError as problem:
            return _problem(400, str(problem))
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception as problem:
            log.error("a request failed", problem, path=request.path)
            return _problem(500, "the node failed at this: its log says how")

    def _refusal(self, request: web.Request) -> tuple[int, str] | None:
        if "Origin" in request.headers:
            return 403, "pages in a browser are not served"
        if not self._address.path and self._address.local and not _names_loopback(request.headers.get("Host", "")):
            return 403, f"this address is {self._address}, whatever name you found it under"
        if self._token is not None:
            given = request.headers.get("Authorization", "")
            if not hmac.compare_digest(given.encode("utf-8", "replace"), f"Bearer {self._token}".encode()):
                return 401, "a token is needed: Authorization: Bearer TOKEN"
        return None

    # --- Requests ---------------------------------------------------------------------------------------------------

    async def _status(self, request: web.Request) -> web.Response:
        return _answer(self._node.status())

    async def _health(self, request: web.Request) -> web.Response:
        """Health check: 200, or 503 if the node is about to end. Any answer shows that its event loop runs."""
        failure = self._node.failure()
        if failure is not None:
            return _problem(503, failure)
        return _answer({"healthy": True, "other_protocols": self._node.other_protocols()})

    async def _metrics(self, request: web.Request) -> web.Response:
        from roamcast.live.metrics import CONTENT_TYPE_LATEST, exposition  # noqa: PLC0415  # 2 MB that few need

        return web.Response(
            body=exposition(self._node.status()), headers={"Content-Type": CONTENT_TYPE_LATEST} | _HEADERS
        )

    async def _publish(self, request: web.Request) -> web.Response:
        kind = _kind(request)
        form = decode(await _body(request), EventForm, kind)
        number = await self._node.host.publish(form)
        return web.Response(body=encode(Named(number), kind), content_type=kind, status=201, headers=_HEADERS)

    async def _set_here(self, request: web.Request) -> web.Response:
        self._node.senses.set_here(decode(await _body(request), object, _kind(request)))
        return _answer({"here": self._node.senses.here})

    async def _set_attributes(self, request: web.Request) -> web.Response:
        self._node.senses.set_attributes(decode(await _body(request), object, _kind(request)))
        return _answer({"attributes": dict(self._node.senses.attributes)})

    async def _subscriptions(self, request: web.Request) -> web.Response:
        return _answer({"subscriptions": self._node.status()["subscriptions"]})

    async def _unsubscribe(self, request: web.Request) -> web.Response:
        text = request.match_info["id"]
        if not text.isascii() or not text.isdigit() or len(text) > 19 or not self._node.host.unsubscribe(int(text)):
            return _problem(404, f"there is no subscription {text[:40]}")
        return _answer({"unsubscribed": int(text)})

    async def _forget_author(self, request: web.Request) -> web.Response:
        text, authors = request.match_info["node"], self._node.authors
        known = text.isascii() and text.isdigit() and len(text) < 11
        if authors is None or not known or not authors.forget(int(text)):
            return _problem(404, f"no other node {text[:40]} is known here")
        return _answer({"forgotten": int(text)})

    # --- Listeners --------------------------------------------------------------------------------------------------

    async def _subscribe(self, request: web.Request) -> web.StreamResponse:
        return await self._over_websocket(request, _MAX_ASK, self._serve)

    async def _publish_many(self, request: web.Request) -> web.StreamResponse:
        publish = self._node.host.publish_then
        return await self._over_websocket(
            request, MAX_REQUEST, lambda socket: PublishingStream(socket, publish).serve()
        )

    async def _over_websocket(
        self, request: web.Request, longest: int, serve: Callable[[web.WebSocketResponse], Awaitable[None]]
    ) -> web.StreamResponse:
        # Uncompressed: on one machine, compression costs more than it saves.
        heartbeat = None if self._address.local else HEARTBEAT
        socket = web.WebSocketResponse(heartbeat=heartbeat, max_msg_size=longest, compress=False)
        if not socket.can_prepare(request).ok:
            return _problem(426, "a WebSocket is expected here")
        if len(self._connected) >= MAX_LISTENERS:
            raise Busy(f"{MAX_LISTENERS} listeners are connected, and no more are taken")
        await socket.prepare(request)
        task = asyncio.current_task()
        self._connected[task] = socket
        try:
            await serve(socket)
        finally:
            self._connected.pop(task, None)
        return socket

    async def _serve(self, listener: web.WebSocketResponse) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                first = await listener.receive()
        except TimeoutError:
            await listener.close(code=1008, message=b"nothing was asked")
            return
        if first.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
            return
        # A binary request gets binary messages.
        kind = MSGPACK if first.type is WSMsgType.BINARY else JSON
        try:
            request = decode(first.data, SubscribeRequest, kind)
            mailbox = await self._node.host.subscribe(request)
        except RoamcastError as problem:
            await _tell(listener, SubscriberMessage(error=str(problem)), kind)
            await listener.close(code=1008)
            return
        try:
            await _tell(listener, SubscriberMessage(subscribed=mailbox.subscription.id), kind)
            await _stream(listener, mailbox, kind)
        except ConnectionError:
            pass  # the listener left while it was being sent something
        finally:
            self._node.host.leave(mailbox)


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
            await _tell(listener, SubscriberMessage(missed=missed), kind)
        if kind == MSGPACK:
            await listener.send_bytes(packed)
        else:
            await _tell(listener, decode(packed, SubscriberMessage, MSGPACK), kind)

    while await mailbox.pass_on(send):
        pass


async def _tell(listener: web.WebSocketResponse, message: SubscriberMessage, kind: str) -> None:
    content = encode(message, kind)
    if kind == MSGPACK:
        await listener.send_bytes(content)
    else:
        await listener.send_str(content.decode())


async def _body(request: web.Request) -> bytes:
    """The body of a request, which must arrive within `PATIENCE`."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await request.read()
    except TimeoutError:
        request.protocol.force_close()
        raise web.HTTPRequestTimeout(reason=f"the request was not complete after {PATIENCE:g} s") from None


def _kind(request: web.Request) -> str:
    """The encoding of a request. Forms, which any page could post, are refused."""
    if request.content_type not in (JSON, MSGPACK):
        raise web.HTTPUnsupportedMediaType(reason=f"Content-Type must be {JSON} or {MSGPACK}")
    return request.content_type


def _answer(content: Any, status: int = 200) -> web.Response:  # noqa: ANN401  # JSON
    return web.Response(body=encode(content, JSON) + b"\n", content_type=JSON, status=status, headers=_HEADERS)


def _problem(status: int, words: str) -> web.Response:
    return _answer({"error": words}, status)


def _names_loopback(host: str) -> bool:
    """Whether a Host header names this machine's loopback, with or without a port."""
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    return Address(name.strip("[]").lower(), 0).local
