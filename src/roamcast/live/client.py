"""The client of a node's local API.

    async with Client() as client:
        await client.publish({"price": 12.5}, type="offer")
        async for event in client.subscribe('type = "offer" and price < 20'):
            print(event.id, event.attributes["price"])

The rules this file owns: `publish` returns when the node has the event on disk; a subscription is in force once its
iterator has been entered (or `await`ed); a slow reader blocks nobody, since the node keeps a bounded queue and reports
how many events it dropped (`Events.missed`). Nothing is queued here beyond what the socket holds. Every error is a
`ClientError`.
"""

import asyncio
import contextlib
import os
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from roamcast.content.context.expression import Context
from roamcast.content.event import Event, Scalar, event_name
from roamcast.content.filter import Filter
from roamcast.errors import RoamcastError
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
from roamcast.live.places import (
    API_VARIABLE,
    CERTIFICATE_VARIABLE,
    TOKEN_VARIABLE,
    Address,
    default_address,
    find_address,
    read_token,
)
from roamcast.live.publisher import LONGEST, Publisher
from roamcast.live.request import request, trusted
from roamcast.live.senses import as_attributes, as_place

if TYPE_CHECKING:
    import aiohttp

    from roamcast.content.document import Carry
    from roamcast.content.xml import Schema

_NORMAL: Final = 1000
_GOING_AWAY: Final = 1001
"""WebSocket close codes: the subscription is over; the node stops."""
_PATIENCE: Final = 30.0
"""Timeout of a request, in seconds; a subscription has none."""
_HEARTBEAT: Final = 150.0
"""Seconds between pings to a node on another machine. It may take half of that to answer: a device may sleep."""


class ClientError(RoamcastError):
    """A node cannot be reached, or refuses a request."""


class Unreachable(ClientError):
    """A node does not answer, or stopped answering: it may come back."""


@contextlib.contextmanager
def _only_client_errors() -> Iterator[None]:
    try:
        yield
    except ClientError:
        raise
    except (RoamcastError, TypeError) as problem:  # the latter for values of other types than an event has
        raise ClientError(str(problem)) from problem


class Id(int):
    """An event's id: a number of 64 bits, which people write as its publisher and the serial number there, `26:17`."""

    __slots__ = ()

    def __str__(self) -> str:
        return event_name(self)

    __repr__ = __str__


class Received(msgspec.Struct, frozen=True):
    """An event as an application gets it."""

    id: Id
    type: str
    attributes: dict[str, Scalar | tuple[Scalar, ...]]
    """A single value is that value; several are a tuple."""
    payload: bytes
    hops: int
    """Hops from its publisher."""
    via: str
    """The kind of message that brought it; `local` on the publisher's own node."""
    author: int = 0
    """The number of the node that published it."""
    verified: str | None = None
    """Whether that is certain: "owner", the network's owner vouches for it; "first use", it is the node that was first
    heard under this number; None: anybody with the network's key may have published it."""
    published: float | None = None
    """When it was published, in s since 1970, by its author's clock; None: the author does not say."""

    @property
    def event(self) -> Event:
        """As an `Event`, for filters or for publishing it again: every attribute is a tuple of values."""
        return Event.of(self.type, self.attributes, self.payload, int(self.id))

    @property
    def document(self) -> bytes | None:
        """The XML document that it carries, or None."""
        from roamcast.content.document import document_of  # noqa: PLC0415  # lxml takes 50 ms to import, and few need it

        with _only_client_errors():
            return document_of(self.event)


class Events:
    """The events of one subscription: an asynchronous iterator, to be closed or left with `async with`."""

    def __init__(self, client: "Client", request: SubscribeRequest, on_missed: Callable[[int], None] | None) -> None:
        self._client = client
        self._request = request
        self._on_missed = on_missed
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self.subscription: int | None = None
        """Its id, once it is in force."""
        self.missed = 0
        """How many events the node has dropped so far because they were not read in time."""
        self.position: int | None = request.after
        """Position of the latest event of a durable subscription, for `subscribe(..., after=position)`."""

    @property
    def over(self) -> bool:
        """Whether the node has ended the subscription for good: its lifetime is over, or a client unsubscribed. A node
        that stops only interrupts it."""
        return self._socket is not None and self._socket.close_code == _NORMAL

    async def open(self) -> Self:
        """Waits until the subscription is in force."""
        if self._socket is not None:
            return self
        self._socket = await self._client._websocket("/subscribe", 2 * MAX_REQUEST)
        try:
            await self._socket.send_bytes(encode(self._request, MSGPACK))
            message = await self._next()
        except OSError:
            message = None
        except BaseException:
            await self.close()
            raise
        if message is None or message.subscribed is None:
            await self.close()
            raise Unreachable("the node ended before it had subscribed")
        self.subscription = message.subscribed
        return self

    async def close(self) -> None:
        """Stops listening. This ends the subscription, unless it is durable."""
        if self._socket is not None:
            await self._socket.close()

    async def _next(self) -> SubscriberMessage | None:
        assert self._socket is not None
        received = (await self._socket.receive()).data
        if not isinstance(received, bytes):
            return None
        with _only_client_errors():
            message = decode(received, SubscriberMessage, MSGPACK)
        if message.error is not None:
            raise ClientError(message.error)
        return message

    def __aiter__(self) -> AsyncIterator[Received]:
        return self

    async def __anext__(self) -> Received:
        await self.open()
        while (message := await self._next()) is not None:
            if message.missed:
                self.missed += message.missed
                if self._on_missed is not None:
                    self._on_missed(message.missed)
            if message.event is not None:
                self.position = message.position if message.position is not None else self.position
                form = message.event
                return Received(
                    Id(form.id),
                    form.type,
                    form.attributes,
                    form.payload,
                    message.hops or 0,
                    message.via or "",
                    form.id >> 32 if message.author is None else message.author,
                    message.verified,
                    message.published,
                )
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
    """A connection to the node at `address`, `HOST:PORT` or `unix:PATH`, or to the `node` of this user with a number.

    Without either it is the environment's ROAMCAST_API, or else this user's only node on this machine; the token
    defaults to the one in the file that ROAMCAST_TOKEN_FILE names, if it is set. Connections to other machines use TLS:
    `tls_cert`, or the file that ROAMCAST_TLS_CERT names, has the node's certificate or its issuer's; without either,
    the system's trusted issuers apply. With `tls_cert`, connections on this machine use TLS too.
    """

    def __init__(
        self,
        address: str | None = None,
        token: str | None = None,
        *,
        node: int | None = None,
        tls_cert: Path | str | None = None,
    ) -> None:
        with _only_client_errors():
            self._address = _find(address, node)
            if token is None and TOKEN_VARIABLE in os.environ:
                token = read_token(Path(os.environ[TOKEN_VARIABLE]))
        self._headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        certificate = tls_cert or os.environ.get(CERTIFICATE_VARIABLE)
        encrypted = not self._address.path and (not self._address.local or certificate is not None)
        with _only_client_errors():
            self._tls = trusted(certificate) if encrypted else None
        self._entered = False
        self._session: aiohttp.ClientSession | None = None  # for WebSockets
        self._open: list[Events] = []
        self._published = False
        self._publisher = Publisher(
            lambda: self._websocket("/publish", MAX_REQUEST),
            ClientError,
            lambda: Unreachable(f"the node at {self._address} ended before it had answered"),
        )

    async def __aenter__(self) -> Self:
        self._entered = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for events in self._open:
            with contextlib.suppress(OSError):
                await events.close()
        self._open.clear()
        with contextlib.suppress(OSError):
            await self._publisher.close()
        if self._session is not None:
            await self._session.close()
            self._session = None
        self._entered = False

    # --- Requests ---------------------------------------------------------------------------------------------------

    async def publish(
        self,
        attributes: Mapping[str, Scalar | Sequence[Scalar]] | Event,
        type: str = "",
        payload: bytes = b"",
        *,
        lifetime: float | None = None,
        relevance: str | Context | None = None,
        subscription_domain: str | Context | None = None,
    ) -> Id:
        """Publishes an event, given whole or as its attributes; returns its id when the node has it on disk.

        `lifetime` is how long it may be delivered, in s. `relevance` (whom it concerns) and `subscription_domain` (who
        may get it) are contexts. Not every protocol supports these.
        """
        with _only_client_errors():
            event = attributes if isinstance(attributes, Event) else Event.of(type, attributes, payload)
        if event.id:
            raise ClientError("an event gets its id from its node: publish it without one")
        form = EventForm.of(event)
        form.lifetime = lifetime
        form.relevance, form.subscription_domain = _text(relevance), _text(subscription_domain)
        body = encode(form, MSGPACK)
        # A client that publishes once needs no permanent connection.
        if self._published and len(body) <= LONGEST:
            try:
                async with asyncio.timeout(_PATIENCE):
                    return Id(await self._publisher.publish(body))
            except TimeoutError:
                raise self._silent() from None
        self._published = True
        answer = await self._request("POST", "/publish", body, MSGPACK)
        with _only_client_errors():
            return Id(decode(answer, Named, MSGPACK).id)

    async def publish_xml(
        self,
        document: bytes | str,
        carry: "Carry" = "plain",
        schema: "Schema | None" = None,
        **options: Any,  # noqa: ANN401  # those of `publish`
    ) -> Id:
        """Publishes the event that an XML document describes. With `carry`, the event includes the document, plain or
        compressed: a subscriber reads it with `roamcast.content.document.document_of(event)`. Options are those of
        `publish`."""
        from roamcast.content.document import event_of_document  # noqa: PLC0415  # as above

        with _only_client_errors():
            event = event_of_document(document, carry, schema)
        return await self.publish(event, **options)

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
        """The events that match a filter or an XPath expression such as `xpath='/CD[category="jazz"]'`, or all events
        without either, from when the iterator is entered. A durable subscription needs an id, and survives its
        listener and restarts of the node until `unsubscribe(id)`. With a lifetime, in s, it ends by itself. `interest`
        and `publication_domain` are contexts: where events must be relevant, and who must have published them. `after`
        is the `position` of the last event received from a durable subscription: with it, a node that was killed before
        recording that it had sent that event does not send it again."""
        if filter is not None and xpath is not None:
            raise ClientError("a subscription has a filter or an XPath expression, not both")
        wanted: str | Filter = "true" if filter is None else filter
        if xpath is not None:
            from roamcast.content.xpath import filter_from_xpath  # noqa: PLC0415  # as above

            with _only_client_errors():
                wanted = filter_from_xpath(xpath)
        request = SubscribeRequest(
            str(wanted), id, durable, lifetime, _text(interest), _text(publication_domain), after
        )
        events = Events(self, request, on_missed)
        self._open = [other for other in self._open if other._socket is None or not other._socket.closed]
        self._open.append(events)
        return events

    async def unsubscribe(self, id: int) -> None:
        await self._request("DELETE", f"/subscriptions/{id}")

    async def forget_author(self, node: int) -> None:
        """Forgets whom the node trusts under a number, so that another device can have it."""
        await self._request("DELETE", f"/authors/{node}")

    async def status(self) -> dict[str, Any]:
        with _only_client_errors():
            return decode(await self._request("GET", "/status"), dict[str, Any], JSON)

    async def set_here(self, here: tuple[float, float] | None) -> None:
        """Sets the node's position, in metres."""
        with _only_client_errors():
            place = as_place(here)
        await self._request("PUT", "/here", encode(place, MSGPACK), MSGPACK)

    async def set_attributes(self, attributes: Mapping[str, Scalar]) -> None:
        with _only_client_errors():
            checked = as_attributes(dict(attributes))
        await self._request("PUT", "/attributes", encode(checked, MSGPACK), MSGPACK)

    # --- Connection -------------------------------------------------------------------------------------------------

    def _check_entered(self) -> None:
        if not self._entered:
            raise ClientError("a client is used within 'async with Client() as client'")

    async def _request(self, method: str, path: str, body: bytes | None = None, kind: str | None = None) -> bytes:
        self._check_entered()
        headers = self._headers | ({"Content-Type": kind} if kind is not None else {})
        try:
            async with asyncio.timeout(_PATIENCE):
                status, content = await asyncio.to_thread(
                    request, self._address, self._tls, method, path, body, headers, _PATIENCE
                )
        except TimeoutError:
            raise self._silent() from None
        except OSError as problem:
            raise self._unreachable(problem) from None
        if status < 300:
            return content
        try:
            raise ClientError(str(msgspec.json.decode(content)["error"]))
        except (msgspec.MsgspecError, KeyError, TypeError):
            raise ClientError(f"{self._address} answered {status}: is it a node?") from None

    def _silent(self) -> ClientError:
        return Unreachable(f"the node at {self._address} did not answer for {_PATIENCE:g} s")

    async def _websocket(self, path: str, longest: int) -> "aiohttp.ClientWebSocketResponse":
        """An open WebSocket. Whatever breaks it is an `OSError`."""
        import aiohttp  # noqa: PLC0415  # it takes longer to load than most requests take

        self._check_entered()
        address, tls = self._address, self._tls
        if self._session is None:
            connector: aiohttp.BaseConnector
            connector = (
                aiohttp.UnixConnector(address.path) if address.path else aiohttp.TCPConnector(limit=0, ssl=tls or True)
            )
            base = "http://localhost" if address.path else f"{'http' if tls is None else 'https'}://{address}"
            # `trust_env` stays off: no proxy belongs between a node and its applications.
            self._session = aiohttp.ClientSession(base, connector=connector, headers=self._headers)
        # On one machine the system tells when the other end is gone; a node that is stopped for a while is not.
        heartbeat = None if address.local else _HEARTBEAT
        try:
            return await self._session.ws_connect(path, max_msg_size=longest, heartbeat=heartbeat)
        except aiohttp.WSServerHandshakeError as refusal:
            words = "a token is needed, or another one" if refusal.status == 401 else f"it answered {refusal.status}"
            raise ClientError(f"the node at {address} refuses: {words}") from None
        except (OSError, aiohttp.ClientError) as problem:
            raise self._unreachable(problem) from None

    def _unreachable(self, problem: Exception) -> ClientError:
        reason = getattr(problem, "strerror", None) or problem
        if isinstance(problem, ssl.SSLCertVerificationError):
            return ClientError(
                f"the node at {self._address} shows a certificate that is not trusted ({reason}): name the right one "
                f"with --tls-cert or {CERTIFICATE_VARIABLE}"
            )
        return Unreachable(
            f"no node answers at {self._address} ({reason}): start one with 'roamcast node', or say where it is with "
            f"--api or {API_VARIABLE}"
        )


def _find(address: str | None, node: int | None) -> Address:
    if node is not None:
        if address is not None:
            raise ClientError("a client takes an address or the number of a node, not both")
        return default_address(node)
    named = address or os.environ.get(API_VARIABLE)
    return Address.parse(named) if named else find_address()


def _text(context: str | Context | None) -> str | None:
    return None if context is None else str(context)
