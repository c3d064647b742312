"""The local API as it is on the wire: what is answered, who is kept out, what is bounded."""

import asyncio
import base64
import contextlib
import json
import math
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import WSMsgType

from live.nodes import address, run, settings, until
from roamcast.errors import ConfigError
from roamcast.live import mailbox, subscribers
from roamcast.live.client import Client
from roamcast.live.control import Control
from roamcast.live.control_messages import MAX_EVENT, MAX_REQUEST
from roamcast.live.node import Node
from roamcast.live.places import Address, read_token

TOKEN = "a-token-that-is-long-enough"


@contextlib.asynccontextmanager
async def served(folder: Path, **changes: Any) -> AsyncIterator[tuple[Node, aiohttp.ClientSession]]:  # noqa: ANN401
    """A node on a TCP port of loopback, and plain HTTP to it."""
    async with (
        Node(settings(folder, **{"control": "127.0.0.1:0", **changes})) as node,
        aiohttp.ClientSession(f"http://127.0.0.1:{node.control.port}") as http,
    ):
        yield node, http


async def answer(request: Any) -> tuple[int, Any]:  # noqa: ANN401  # of aiohttp
    async with request as response:
        return response.status, json.loads(await response.read())


# --- Who gets in ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:1"}, 200),
        ({"Host": "LOCALHOST"}, 200),
        ({"Host": "127.0.0.1:99"}, 200),
        ({"Host": "[::1]:99"}, 200),
        ({"Host": "[::1]"}, 200),
        ({"Host": "evil.example:80"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Host": "localhost.evil.example:80"}, 403),
        ({"Host": ""}, 403),
        ({"Origin": "http://localhost"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_pages_in_a_browser_are_kept_out(tmp_path: Path, headers: dict[str, str], status: int) -> None:
    async def test() -> None:
        async with served(tmp_path) as (_, http):
            assert (await answer(http.get("/status", headers=headers)))[0] == status
            with contextlib.suppress(aiohttp.WSServerHandshakeError):
                async with http.ws_connect("/subscribe", headers=headers):
                    assert status == 200

    run(test)


@pytest.mark.parametrize("given", ["", "Bearer ", f"Bearer {TOKEN}x", f"bearer {TOKEN}", TOKEN, "Bearer ümlaut"])
def test_a_wrong_token_is_refused(tmp_path: Path, given: str) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    (tmp_path / "token").chmod(0o600)

    async def test() -> None:
        async with served(tmp_path, token_file=tmp_path / "token") as (_, http):
            headers = {"Authorization": given} if given else {}
            assert await answer(http.get("/status", headers=headers)) == (
                401,
                {"error": "a token is needed: Authorization: Bearer TOKEN"},
            )
            right = {"Authorization": f"Bearer {TOKEN}"}
            assert (await answer(http.get("/status", headers=right)))[0] == 200

    run(test)


@pytest.mark.parametrize(
    "content", [b"", b"short", b"x" * 15, b"with a space in the middle", b"\xff" * 20, b"x" * 2000]
)
def test_a_token_must_be_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "token").write_bytes(content)
    (tmp_path / "token").chmod(0o600)
    with pytest.raises(ConfigError, match="a token is one line of 16 to 1024 visible ASCII characters"):
        read_token(tmp_path / "token")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_token(tmp_path / "missing")


def test_only_its_owner_may_open_a_unix_socket(tmp_path: Path) -> None:
    async def test() -> None:
        async with Node(settings(tmp_path)) as node:
            assert Path(node.control.path).stat().st_mode & 0o777 == 0o600

    run(test)


@pytest.mark.parametrize(
    ("text", "local"),
    [("127.0.0.1:1", True), ("[::1]:1", True), ("localhost:1", True), ("unix:/x", True), ("0.0.0.0:1", False),
     ("192.168.1.2:1", False), ("[::]:1", False), ("name.example:1", False)],
)  # fmt: skip
def test_addresses(text: str, local: bool) -> None:
    assert Address.parse(text).local is local
    assert str(Address.parse(text)) == text


@pytest.mark.parametrize(
    "text", ["", "127.0.0.1", ":80", "host:", "host:port", "host:65536", "host:-1", "unix:", "h:²"]
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ConfigError):
        Address.parse(text)


# --- Requests -------------------------------------------------------------------------------------------------------


def test_publishing_in_json(tmp_path: Path) -> None:
    event = {"type": "offer", "attributes": {"price": 12, "tags": ["a", 1, 2.0, True]}, "payload": "AAEC"}

    async def test() -> None:
        async with served(tmp_path) as (_, http), http.ws_connect("/subscribe") as listener:
            await listener.send_str(json.dumps({"filter": "price < 20"}))
            assert (await listener.receive_json()).keys() == {"subscribed"}
            assert await answer(http.post("/publish", json=event)) == (201, {"id": "1:1"})
            got = await listener.receive_json()
            assert got == {
                "event": {**event, "id": "1:1"},
                "hops": 0,
                "via": "local",
                "author": 1,
                "verified": "first use",
                "published": got["published"],
            }
            assert base64.b64decode(event["payload"]) == b"\0\1\2"  # type: ignore[arg-type]

    run(test)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "not understood"),
        ("[]", "not understood"),
        ("{", "not understood"),
        ("[" * 100_000, "more than 4096 values, names and lists"),
        ('{"type": 5}', "not understood"),
        ('{"typ": "x"}', "not understood"),
        ('{"payload": "?"}', "not understood"),
        ('{"attributes": {"a": null}}', "not understood"),
        ('{"attributes": {"a": []}}', "attribute 'a' needs a tuple of one or more values"),
        ('{"attributes": {"": 1}}', "an attribute's name is empty"),
        ('{"attributes": {"a": 9223372036854775808}}', "an integer beyond 64 bits"),
        ('{"id": "1:5"}', "id: there is no such field"),
        ('{"type": "\\ud800"}', ""),
    ],
)
def test_what_is_no_event_is_refused(tmp_path: Path, body: str, words: str) -> None:
    async def test() -> None:
        async with served(tmp_path) as (node, http):
            headers = {"Content-Type": "application/json"}
            status, told = await answer(http.post("/publish", data=body, headers=headers))
            assert status == 400
            assert words in told["error"]
            assert node.host.counters["published"] == 0

    run(test)


def test_requests_are_bounded_and_forms_are_none(tmp_path: Path) -> None:
    async def test() -> None:
        async with served(tmp_path) as (_, http):
            form = await answer(http.post("/publish", data={"type": "x"}))
            assert form == (415, {"error": "Content-Type must be application/json or application/msgpack"})
            json_type = {"Content-Type": "application/json"}
            long = await answer(http.post("/publish", data=b"x" * (MAX_REQUEST + 1), headers=json_type))
            assert long == (413, {"error": f"a request may have {MAX_REQUEST} bytes"})
            octets = {"payload": base64.b64encode(bytes(MAX_EVENT)).decode()}
            status, told = await answer(http.post("/publish", json=octets))
            assert (status, told["error"].split(":")[1]) == (400, f" the longest has {MAX_EVENT}")
            for body, words in (("x" * 16_384, "not 16385"), ([1] * 513, "512 values"), ([1] * 5000, "more than 4096")):
                status, told = await answer(http.post("/publish", json={"attributes": {"a": body}}))
                assert (status, words in told["error"]) == (400, True), told
            assert (await answer(http.get("/nothing")))[0] == 404
            assert (await answer(http.put("/publish")))[0] == 405
            assert await answer(http.get("/publish")) == (426, {"error": "a WebSocket is expected here"})
            assert await answer(http.get("/subscribe")) == (426, {"error": "a WebSocket is expected here"})

    run(test)


def test_here_and_attributes_are_set_and_shown(tmp_path: Path) -> None:
    async def test() -> None:
        async with served(tmp_path) as (node, http):
            assert await answer(http.put("/here", json={"x": 1, "y": 2.5})) == (200, {"here": [1.0, 2.5]})
            assert node.host.port.here(0) == (1.0, 2.5)
            told = {"battery": 0.5, "role": "medic", "busy": False}
            assert await answer(http.put("/attributes", json=told)) == (200, {"attributes": told})
            assert node.host.port.attributes(0) == told
            status = (await answer(http.get("/status")))[1]
            assert (status["here"], status["attributes"]) == ([1.0, 2.5], told)
            for wrong in ([1], [1, "2"], [True, 1], {"x": 1}, "here", [1, 10**400]):
                assert (await answer(http.put("/here", json=wrong)))[0] == 400
            odd_ones: list[Any] = [[], {"a": None}, {"a": [1]}, {str(i): i for i in range(257)}]
            for odd in odd_ones:
                assert (await answer(http.put("/attributes", json=odd)))[0] == 400
            assert await answer(http.put("/here", data="null", headers={"Content-Type": "application/json"})) == (
                200,
                {"here": None},
            )
            assert node.host.port.attributes(0) == told

    run(test)


def test_the_status_says_what_is_going_on(tmp_path: Path) -> None:
    async def test() -> None:
        async with (
            served(tmp_path, protocol="hint", changes=("interval=2",)) as (node, http),
            http.ws_connect("/subscribe") as listener,
        ):
            await listener.send_json({"filter": "a = 1"})
            await listener.receive_json()
            await answer(http.post("/publish", json={}))
            status = (await answer(http.get("/status")))[1]
            assert (status["node"], status["protocol"], status["key"], status["neighbours"]) == (1, "hint", None, [])
            assert status["parameters"]["interval"] == 2
            assert [(each["filter"], each["listening"]) for each in status["subscriptions"]] == [("a = 1", True)]
            assert status["tables"]["subscriptions"] == 1
            assert status["tables"]["seen"] == 1
            assert status["counters"]["node"] == {"published": 1}
            assert status["api"] == address(node)

    run(test)


# --- Listeners ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        ('{"filter": "price < < 3"}', "expected a value"),
        ('{"filtr": "true"}', "not understood"),
        ("x", "not understood"),
        ('{"filter": "true", "durable": true}', "a durable subscription needs an id"),
        ('{"filter": "true", "id": -1}', "from 0 to 2^63 - 1"),
        ('{"filter": "true", "id": 9223372036854775808}', ""),
    ],
)
def test_a_wrong_subscription_is_refused(tmp_path: Path, ask: str, words: str) -> None:
    async def test() -> None:
        async with served(tmp_path) as (node, http), http.ws_connect("/subscribe") as listener:
            await listener.send_str(ask)
            assert words in (await listener.receive_json())["error"]
            assert (await listener.receive()).type is WSMsgType.CLOSE
            assert not len(node.host.subscribers)

    run(test)


def test_a_slow_listener_is_bounded_and_told_what_it_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailbox, "MAX_EVENTS", 10)

    async def test() -> None:
        async with Node(settings(tmp_path)) as node, Client(address(node)) as client:
            slow = client.subscribe("slow = true")
            async with slow, client.subscribe("true") as quick:
                # More than all buffers of two sockets hold
                payload = bytes(200_000)
                for number in range(100):
                    await client.publish({"slow": True, "n": number}, payload=payload)
                    assert (await anext(quick)).attributes["n"] == number
                (mailbox,) = (each for each in node.host.subscribers if str(each.subscription.filter) == "slow = true")
                assert len(mailbox) == 10
                await client.publish({"slow": True, "n": 100})
                heard: list[Any] = []
                while not heard or heard[-1] != 100:
                    heard += (await anext(slow)).event.values("n")
            assert quick.missed == 0
            assert slow.missed == 101 - len(heard) > 0
            gap = heard.index(91)
            assert heard[gap:] == list(range(91, 101))  # the last ten waited; what came before them was left out
            assert heard[:gap] == list(range(gap))  # and before that, what the sockets held

    run(test)


def test_subscriptions_are_bounded_in_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscribers, "MAX_SUBSCRIPTIONS", 2)

    async def test() -> None:
        async with served(tmp_path) as (_, http), contextlib.AsyncExitStack() as stack:
            told = []
            for _ in range(3):
                listener = await stack.enter_async_context(http.ws_connect("/subscribe"))
                await listener.send_json({"filter": "true"})
                told.append(await listener.receive_json())
            assert [set(each) for each in told] == [{"subscribed"}, {"subscribed"}, {"error"}]

    run(test)


def test_a_subscription_ends_with_its_listener_however_it_leaves(tmp_path: Path) -> None:
    async def test() -> None:
        async with served(tmp_path) as (node, http):
            polite = await http.ws_connect("/subscribe")
            await polite.send_json({"filter": "true"})
            await polite.receive_json()
            host, port = "127.0.0.1", node.control.port
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(
                b"GET /subscribe HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
            )
            await reader.readuntil(b"\r\n\r\n")
            text = b'{"filter": "true"}'
            writer.write(bytes((0x81, 0x80 | len(text), 0, 0, 0, 0)) + text)
            await until(lambda: len(node.host.subscribers) == 2)
            writer.transport.abort()  # pulls the plug
            await until(lambda: len(node.host.subscribers) == 1)
            await polite.close()
            await until(lambda: len(node.host.subscribers) == 0)
            assert node.host.tables["subscriptions"] == 0

    run(test)


def test_numbers_that_json_lacks_are_null_there(tmp_path: Path) -> None:
    async def test() -> None:
        async with served(tmp_path) as (node, http), http.ws_connect("/subscribe") as listener:
            await listener.send_json({"filter": "true"})
            await listener.receive_json()
            async with Client(address(node)) as client, client.subscribe() as events:
                await client.publish({"far": math.inf})
                assert (await anext(events)).attributes["far"] == math.inf
            assert (await listener.receive_json())["event"]["attributes"] == {"far": None}

    run(test)


def test_the_page_has_every_request(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/live.md").read_text()
    told = {line.split("`")[1] for line in page.splitlines() if line.startswith(("| `GET", "| `P", "| `DELETE"))}

    async def test() -> None:
        async with Node(settings(tmp_path)) as node:
            routes = list(Control(node, Address.parse("127.0.0.1:0"), None)._runner.app.router.routes())
            known = {f"{route.method} {route.resource.canonical}" for route in routes if route.method != "HEAD"}  # type: ignore[union-attr]
            assert told | {"GET /page.js", "GET /page.css"} == known

    run(test)


def test_no_answer_leaves_a_browser_to_guess_what_it_is(tmp_path: Path) -> None:
    async def test() -> None:
        async with served(tmp_path) as (_, http):
            for asked in (http.get("/status"), http.get("/metrics"), http.get("/no"), http.post("/publish", json={})):
                async with asked as got:
                    assert got.headers["X-Content-Type-Options"] == "nosniff", got.url

    run(test)
