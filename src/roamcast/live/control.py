"""The API of a node: HTTP and WebSocket, on a Unix socket or an address. `docs/live.md` describes it.

`access.py` says who may use it, `openapi.py` has the table of its requests, and `listeners.py` serves those who
subscribe. The number of connections and their idle time are bounded (`gate.py`), and so are the length of requests, the
number of subscriptions, and the number and size of events that wait for a slow listener.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from aiohttp import web

from roamcast.config.errors import decode as convert
from roamcast.errors import ConfigError, ContentError, RoamcastError
from roamcast.live import log
from roamcast.live.access import Access
from roamcast.live.control_messages import (
    JSON,
    MAX_REQUEST,
    MSGPACK,
    EventForm,
    Named,
    PollRequest,
    SubscribeRequest,
    decode,
    encode,
)
from roamcast.live.gate import Gate
from roamcast.live.listeners import PATIENCE, Listeners
from roamcast.live.openapi import OPERATIONS, LogIn, Open, description
from roamcast.live.places import Address
from roamcast.live.publishing import PublishingStream
from roamcast.live.store import StoreError
from roamcast.live.under_way import Busy

if TYPE_CHECKING:
    from roamcast.live.node import Node

IDLE: Final = 30.0
"""Seconds that a connection stays open without a request."""
_MAX_ASK: Final = 512 * 1024
"""Bytes: the longest filter has 65536 characters."""
_PAGE: Final = Path(__file__).parent / "page"
_FILES: Final = {
    "/": ("index.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
    "/roamcast.js": ("roamcast.js", "text/javascript"),
}
"""The node's page, served over TCP."""
_PUBLIC: Final = {*_FILES, "/session"}
"""What needs no token: the page that asks for it."""

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
S = TypeVar("S", bound=msgspec.Struct)


# A browser must not guess the content type, keep an answer, or show it to a page of another site.
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_PAGE_HEADERS: Final = _HEADERS | {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}


class Control:
    def __init__(self, node: "Node", address: Address, token: str | None, tls: ssl.SSLContext | None = None) -> None:
        self._node = node
        self._address = address
        self._access = Access(address, token, tls is not None)
        self._tls = None if address.path else tls
        self._listeners = Listeners(lambda: node.host, address.local)
        self.gate: Gate | None = None
        app = web.Application(middlewares=[self._guard], client_max_size=MAX_REQUEST)
        for operation in OPERATIONS:
            if not operation.tcp or not address.path:
                app.router.add_route(operation.method, operation.path, getattr(self, f"_{operation.name}"))
        if not address.path:
            for path in _FILES:
                app.router.add_get(path, self._page)
        self._runner = web.AppRunner(
            app, access_log=None, handle_signals=False, shutdown_timeout=2.0, keepalive_timeout=IDLE
        )

    def change(self, token: str | None, tls: ssl.SSLContext | None) -> None:
        """Sets the token and TLS context for later requests and connections."""
        self._access.token, self._tls = token, None if self._address.path else tls
        if self.gate is not None:
            self.gate.tls = self._tls

    async def open(self) -> Address:
        """Starts listening; returns the address, with the actual port if port 0 was requested."""
        await self._runner.setup()
        assert self._runner.server is not None
        self.gate = Gate(self._runner.server, tls=self._tls)
        try:
            self._address = await self.gate.listen(self._address, "--api")
            self._access.address = self._address
        except ConfigError:
            await self._runner.cleanup()
            raise
        return self._address

    async def close(self) -> None:
        if self.gate is not None:
            self.gate.close()
        await self._listeners.close()
        await self._runner.cleanup()

    # --- Access control ---------------------------------------------------------------------------------------------

    @web.middleware
    async def _guard(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        refused = self._access.refusal(request, public=not self._address.path and request.path in _PUBLIC)
        if refused is not None:
            answer = _problem(*refused)
            answer.force_close()  # no keep-alive for strangers
            return answer
        try:
            return await handler(request)
        except web.HTTPException as answer:
            if answer.status == 413:
                return _problem(413, f"a request may have {MAX_REQUEST} bytes")
            return _problem(
                answer.status, answer.reason, {"Allow": allowed} if (allowed := answer.headers.get("Allow")) else {}
            )
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
        # Most nodes are never asked for them, and their library takes memory.
        from roamcast.live.metrics import CONTENT_TYPE_LATEST, exposition  # noqa: PLC0415

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
        text, number = _in_path(request, "id", 19)
        if number is None or not self._node.host.unsubscribe(number):
            return _problem(404, f"there is no subscription {text}")
        return _answer({"unsubscribed": number})

    async def _forget_author(self, request: web.Request) -> web.Response:
        (text, number), authors = _in_path(request, "node", 10), self._node.authors
        if authors is None or number is None or not authors.forget(number):
            return _problem(404, f"no other node {text} is known here")
        return _answer({"forgotten": number})

    async def _openapi(self, request: web.Request) -> web.Response:
        return _answer(description(tcp=not self._address.path))

    # --- Pages ------------------------------------------------------------------------------------------------------

    async def _page(self, request: web.Request) -> web.Response:
        name, kind = _FILES[request.path]
        content = (_PAGE / name).read_bytes()
        return web.Response(body=content, content_type=kind, charset="utf-8", headers=_PAGE_HEADERS)

    async def _log_in(self, request: web.Request) -> web.Response:
        given = decode(await _body(request), LogIn, _kind(request))
        answer = _answer(Open(True))
        return answer if self._access.exchange(given.token, answer) else _problem(401, "this is not the token")

    async def _log_out(self, request: web.Request) -> web.Response:
        answer = _answer(Open(False))
        self._access.forget(answer)
        return answer

    # --- Listeners --------------------------------------------------------------------------------------------------

    async def _subscribe(self, request: web.Request) -> web.StreamResponse:
        return await self._over_websocket(request, _MAX_ASK, self._listeners.serve)

    async def _publish_many(self, request: web.Request) -> web.StreamResponse:
        publish = self._node.host.publish_then
        return await self._over_websocket(
            request, MAX_REQUEST, lambda socket: PublishingStream(socket, publish).serve()
        )

    async def _over_websocket(
        self, request: web.Request, longest: int, serve: Callable[[web.WebSocketResponse], Awaitable[None]]
    ) -> web.StreamResponse:
        served = await self._listeners.over_websocket(request, longest, serve)
        return _problem(426, "a WebSocket is expected here") if served is None else served

    async def _events(self, request: web.Request) -> web.StreamResponse:
        return await self._listeners.stream(request, _query(request, SubscribeRequest))

    async def _poll(self, request: web.Request) -> web.Response:
        return _answer(await self._listeners.poll(request, _query(request, PollRequest)))


def _query(request: web.Request, shape: type[S]) -> S:
    """The query of a request, in the shape that the same request has as a message."""
    if len(request.query) != len(set(request.query)):
        raise ContentError("a parameter is given twice")
    types = {field.encode_name: field.type for field in msgspec.structs.fields(shape)}
    given: dict[str, Any] = dict(request.query)
    for name, text in request.query.items():  # each by itself, so that a refusal names the right one
        with contextlib.suppress(msgspec.ValidationError):
            given[name] = msgspec.convert(text, types.get(name, str), strict=False)
    return convert(given, shape, "not understood", ContentError)


def _in_path(request: web.Request, name: str, digits: int) -> tuple[str, int | None]:
    """A number in the path of a request: as it can be shown, and None if it is not one."""
    text = request.match_info[name]
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None
    return text[:40], number


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


def _answer(content: Any, status: int = 200, headers: Mapping[str, str] = {}) -> web.Response:  # noqa: ANN401  # JSON
    body = encode(content, JSON) + b"\n"
    return web.Response(body=body, content_type=JSON, status=status, headers={**_HEADERS, **headers})


def _problem(status: int, words: str, headers: Mapping[str, str] = {}) -> web.Response:
    return _answer({"error": words}, status, headers)
