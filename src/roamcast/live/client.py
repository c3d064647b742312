"""The client of a node's local API.

    async with Client() as client:
        await client.publish({"price": 12.5}, type="offer")
        async for event in client.subscribe('type = "offer" and price < 20'):
            print(event.id, event.attributes["price"])

The rules this file owns: `publish` returns when the node has the event on disk; a subscription is in force when its
iterator has been entered (or `await`ed); reading slowly holds nobody up, since the node keeps what waits within bounds
and tells how many it left out (`Events.missed`). Nothing is queued here beyond what the socket holds.
"""

import asyncio
import contextlib
import os
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
import msgspec

from roamcast.content.context.expression import Context
from roamcast.content.document import Carry, document_of, event_of_document
from roamcast.content.event import Event, Scalar
from roamcast.content.filter import Filter
from roamcast.content.xml import Schema
from roamcast.content.xpath import filter_from_xpath
from roamcast.errors import RoamcastError
from roamcast.live.control_messages import MAX_REQUEST, MSGPACK, Ask, EventForm, Named, Told, decode, encode
from roamcast.live.publisher import LONGEST, Publisher
from roamcast.live.settings import (
    API_VARIABLE,
    CERTIFICATE_VARIABLE,
    TOKEN_VARIABLE,
    Address,
    find_address,
    read_token,
)

_NORMAL: Final = 1000
_GOING_AWAY: Final = 1001
"""Close codes of a WebSocket: the subscription is over; the node stops."""
_PATIENCE: Final = 30.0
"""Seconds for a request; a subscription has no end."""


class ClientError(RoamcastError):
    """A node that cannot be reached, or that refuses."""


class Unreachable(ClientError):
    """A node that does not answer, or no longer: it may come back."""


class Received(msgspec.Struct, frozen=True):
    """An event as an application gets it."""

    id: int
    type: str
    attributes: dict[str, Scalar | tuple[Scalar, ...]]
    """A single value is that value; several are a tuple."""
    payload: bytes
    hops: int
    """From its publisher."""
    via: str
    """The kind of message that brought it; `local` on the publisher's own node."""

    @property
    def event(self) -> Event:
        """The same for filters and for publishing it again: every attribute a tuple of values."""
        return Event.of(self.type, self.attributes, self.payload, self.id)

    @property
    def document(self) -> bytes | None:
        """The XML document that it carries; None if it carries none."""
        return document_of(self.event)


class Events:
    """The events of one subscription: an asynchronous iterator, to be closed or left with `async with`."""

    def __init__(self, client: "Client", ask: Ask, on_missed: Callable[[int], None] | None) -> None:
        self._client = client
        self._ask = ask
        self._on_missed = on_missed
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self.subscription: int | None = None
        """Its id, once it is in force."""
        self.missed = 0
        """How many events the node had to leave out so far, because they were not read in time."""
        self.position: int | None = ask.after
        """Of the latest event of a durable subscription, for `subscribe(..., after=position)`."""

    @property
    def over(self) -> bool:
        """Whether the node has ended the subscription for good: its lifetime is over, or somebody unsubscribed. A node
        that stops only interrupts it."""
        return self._socket is not None and self._socket.close_code == _NORMAL

    async def open(self) -> Self:
        """Waits until the subscription is in force."""
        if self._socket is not None:
            return self
        self._socket = await self._client._websocket("/subscribe", 2 * MAX_REQUEST)
        try:
            await self._socket.send_bytes(encode(self._ask, MSGPACK))
            told = await self._next()
        except BaseException:
            await self.close()
            raise
        if told is None or told.subscribed is None:
            await self.close()
            raise Unreachable("the node ended before it had subscribed")
        self.subscription = told.subscribed
        return self

    async def close(self) -> None:
        """Leaves: the subscription is over, unless it is durable."""
        if self._socket is not None:
            await self._socket.close()

    async def _next(self) -> Told | None:
        assert self._socket is not None
        message = await self._socket.receive()
        if message.type is not aiohttp.WSMsgType.BINARY:
            return None
        told = decode(message.data, Told, MSGPACK)
        if told.error is not None:
            raise ClientError(told.error)
        return told

    def __aiter__(self) -> AsyncIterator[Received]:
        return self

    async def __anext__(self) -> Received:
        await self.open()
        while (told := await self._next()) is not None:
            if told.missed:
                self.missed += told.missed
                if self._on_missed is not None:
                    self._on_missed(told.missed)
            if told.event is not None:
                self.position = told.position if told.position is not None else self.position
                form = told.event
                return Received(form.id, form.type, form.attributes, form.payload, told.hops or 0, told.via or "")
        assert self._socket is not None
        if self._socket.close_code not in (None, _NORMAL, _GOING_AWAY):
            raise Unreachable(f"the connection to the node broke (code {self._socket.close_code})")
        await self.close()
        raise StopAsyncIteration

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *problem: object) -> None:
        await self.close()


class Client:
    """A connection to the node at `address`: `HOST:PORT` or `unix:PATH`.

    Without an address, that of the environment's ROAMCAST_API, or else the node of this user that runs on this machine;
    without a token, that in the file which ROAMCAST_TOKEN_FILE names, if it names one. A node on another machine is
    spoken to over TLS: `tls_cert`, or the file that ROAMCAST_TLS_CERT names, has its certificate or that of who signed
    it; without either, whoever this system trusts may have signed it. With `tls_cert`, also on this machine.
    """

    def __init__(
        self, address: str | None = None, token: str | None = None, *, tls_cert: Path | str | None = None
    ) -> None:
        named = address or os.environ.get(API_VARIABLE)
        self._address = Address.parse(named) if named else find_address()
        if token is None and TOKEN_VARIABLE in os.environ:
            token = read_token(Path(os.environ[TOKEN_VARIABLE]))
        self._headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        self._tls = self._trusted(tls_cert or os.environ.get(CERTIFICATE_VARIABLE))
        scheme = "http" if self._tls is None else "https"
        self._base = "http://localhost" if self._address.path else f"{scheme}://{self._address}"
        self._session: aiohttp.ClientSession | None = None
        self._open: list[Events] = []
        self._published = False
        self._publisher = Publisher(
            lambda: self._websocket("/publish", MAX_REQUEST),
            ClientError,
            lambda: Unreachable(f"the node at {self._address} ended before it had answered"),
        )

    async def __aenter__(self) -> Self:
        connector: aiohttp.BaseConnector
        if self._address.path:
            connector = aiohttp.UnixConnector(self._address.path)
        else:
            connector = aiohttp.TCPConnector(limit=0, ssl=self._tls or True)
        # `trust_env` stays off: a proxy has no business between a node and its applications.
        self._session = aiohttp.ClientSession(connector=connector, headers=self._headers)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for events in self._open:
            with contextlib.suppress(aiohttp.ClientError, OSError):
                await events.close()
        self._open.clear()
        with contextlib.suppress(aiohttp.ClientError, OSError):
            await self._publisher.close()
        if self._session is not None:
            await self._session.close()
            self._session = None

    # --- What can be asked ------------------------------------------------------------------------------------------

    async def publish(
        self,
        attributes: Mapping[str, Scalar | Sequence[Scalar]] | Event,
        type: str = "",
        payload: bytes = b"",
        *,
        lifetime: float | None = None,
        relevance: str | Context | None = None,
        subscription_domain: str | Context | None = None,
    ) -> int:
        """Publishes an event, given whole or by its parts; returns its id when the node has it on disk.

        `lifetime` is how long it may be delivered, in s; `relevance` whom it concerns and `subscription_domain` who may
        get it, as contexts. Not every protocol knows these.
        """
        event = attributes if isinstance(attributes, Event) else Event.of(type, attributes, payload)
        form = EventForm.of(event)
        form.lifetime = lifetime
        form.relevance, form.subscription_domain = _text(relevance), _text(subscription_domain)
        body = encode(form, MSGPACK)
        # Whoever publishes once needs no connection that stays.
        if self._published and len(body) <= LONGEST:
            try:
                async with asyncio.timeout(_PATIENCE):
                    return await self._publisher.publish(body)
            except TimeoutError:
                raise self._silent() from None
        self._published = True
        answer = await self._request("POST", "/publish", body, MSGPACK)
        return decode(answer, Named, MSGPACK).id

    async def publish_xml(
        self,
        document: bytes | str,
        carry: Carry = "plain",
        schema: Schema | None = None,
        **options: Any,  # noqa: ANN401  # those of `publish`
    ) -> int:
        """Publishes what an XML document says, and with `carry` the document itself, plain or compressed: a subscriber
        reads it with `roamcast.content.document.document_of(event)`. Options are those of `publish`."""
        return await self.publish(event_of_document(document, carry, schema), **options)

    def subscribe(
        self,
        filter: str | Filter | None = None,
        *,
        xpath: str | None = None,
        id: int | None = None,
        durable: bool = False,
        lifetime: float | None = None,
        interest: str | Context | None = None,
        publication_domain: str | Context | None = None,
        after: int | None = None,
        on_missed: Callable[[int], None] | None = None,
    ) -> Events:
        """The events that match, from when the iterator is entered. What is wanted is said by a filter, or in XPath,
        such as `xpath='/CD[category="jazz"]'`; without either it is everything. A durable subscription needs an id, and
        goes on without its listener and across restarts of the node until `unsubscribe(id)`. With a lifetime, in s, it
        ends by itself. `interest` and `publication_domain` are contexts: where events must be relevant, and who must
        have published them. `after` is the `position` of the last event that was got of a durable subscription: a node
        that was killed before it could write down that it had sent it does not send it again."""
        if filter is not None and xpath is not None:
            raise ClientError("a subscription has a filter or an XPath expression, not both")
        wanted = filter_from_xpath(xpath) if xpath is not None else "true" if filter is None else filter
        asked = Ask(str(wanted), id, durable, lifetime, _text(interest), _text(publication_domain), after)
        events = Events(self, asked, on_missed)
        self._open = [other for other in self._open if other._socket is None or not other._socket.closed]
        self._open.append(events)
        return events

    async def unsubscribe(self, id: int) -> None:
        await self._request("DELETE", f"/subscriptions/{id}")

    async def status(self) -> dict[str, Any]:
        answer: dict[str, Any] = msgspec.json.decode(await self._request("GET", "/status"))
        return answer

    async def set_here(self, here: tuple[float, float] | None) -> None:
        """Tells the node where it is, in metres."""
        await self._request("PUT", "/here", encode(here, MSGPACK), MSGPACK)

    async def set_attributes(self, attributes: Mapping[str, Scalar]) -> None:
        await self._request("PUT", "/attributes", encode(dict(attributes), MSGPACK), MSGPACK)

    # --- How --------------------------------------------------------------------------------------------------------

    def _trusted(self, certificate: Path | str | None) -> ssl.SSLContext | None:
        """Whom to believe; None: nothing leaves the machine, and nothing is encrypted."""
        if self._address.path or (self._address.local and certificate is None):
            return None
        try:
            return ssl.create_default_context(cafile=certificate)
        except (OSError, ssl.SSLError) as problem:
            raise ClientError(
                f"{certificate}: cannot be used as a certificate: {problem.strerror or problem}"
            ) from None

    def _connected(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise ClientError("a client is used within 'async with Client() as client'")
        return self._session

    async def _request(self, method: str, path: str, body: bytes | None = None, kind: str | None = None) -> bytes:
        headers = {"Content-Type": kind} if kind is not None else {}
        timeout = aiohttp.ClientTimeout(total=_PATIENCE)
        try:
            async with self._connected().request(
                method, self._base + path, data=body, headers=headers, timeout=timeout
            ) as answer:
                content = await answer.read()
                if answer.status < 300:
                    return content
        except TimeoutError:
            raise self._silent() from None
        except (aiohttp.ClientError, OSError) as problem:
            raise self._unreachable(problem) from None
        try:
            raise ClientError(str(msgspec.json.decode(content)["error"]))
        except (msgspec.MsgspecError, KeyError, TypeError):
            raise ClientError(f"{self._address} answered {answer.status}: is it a node?") from None

    def _silent(self) -> ClientError:
        return Unreachable(f"the node at {self._address} did not answer for {_PATIENCE:g} s")

    async def _websocket(self, path: str, longest: int) -> aiohttp.ClientWebSocketResponse:
        try:
            return await self._connected().ws_connect(
                self._base + path, max_msg_size=longest, heartbeat=20.0, autoping=True
            )
        except aiohttp.WSServerHandshakeError as problem:
            words = "a token is needed, or another one" if problem.status == 401 else f"it answered {problem.status}"
            raise ClientError(f"the node at {self._address} refuses: {words}") from None
        except (aiohttp.ClientError, OSError) as problem:
            raise self._unreachable(problem) from None

    def _unreachable(self, problem: Exception) -> ClientError:
        reason = getattr(problem, "strerror", None) or problem
        if isinstance(problem, aiohttp.ClientConnectorCertificateError):
            return ClientError(
                f"the node at {self._address} shows a certificate that is not trusted ({reason}): name the right one "
                f"with --tls-cert or {CERTIFICATE_VARIABLE}"
            )
        return Unreachable(
            f"no node answers at {self._address} ({reason}): start one with 'roamcast node', or say where it is with "
            f"--api or {API_VARIABLE}"
        )


def _text(context: str | Context | None) -> str | None:
    return None if context is None else str(context)
