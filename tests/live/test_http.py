"""The API for browsers and curl: server-sent events, polling, the node's page, and who is kept out."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from live.nodes import run, settings, until
from live.test_control import TOKEN, answer, served
from roamcast.content.event import Event
from roamcast.live import listeners, mailbox
from roamcast.live.client import Client, ClientError
from roamcast.live.node import Node
from roamcast.live.openapi import OPERATIONS, Status, description

Sent = tuple[str | None, str | None, Any]
"""The id, name and data of a server-sent event."""


async def sent(response: aiohttp.ClientResponse) -> AsyncIterator[Sent]:
    fields: dict[str, str] = {}
    async for raw in response.content:
        line = raw.decode().rstrip("\n")
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield fields.get("id"), fields.get("event"), json.loads(fields["data"])
            fields = {}


def token_file(folder: Path) -> Path:
    path = folder / "token"
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o600)
    return path


# --- Server-sent events ---------------------------------------------------------------------------------------------


def test_events_are_streamed_as_curl_asks_for_them(tmp_path: Path) -> None:
    async def test() -> None:
        async with served(tmp_path) as (node, http):
            async with http.get("/events", params={"filter": "price < 20"}) as stream:
                assert (stream.status, stream.content_type) == (200, "text/event-stream")
                events = sent(stream)
                position, name, data = await anext(events)
                assert (position, name, data.keys()) == (None, "subscribed", {"subscribed"})
                for price in (25, 12):
                    await answer(http.post("/publish", json={"type": "offer", "attributes": {"price": price}}))
                position, name, data = await anext(events)
                assert (position, name) == (None, None)
                assert data["event"] == {"id": "1:2", "type": "offer", "attributes": {"price": 12}}
                assert (data["hops"], data["author"]) == (0, 1)
            await until(lambda: not len(node.host.subscribers))

    run(test)


def test_a_durable_stream_goes_on_after_the_last_event_that_the_browser_names(tmp_path: Path) -> None:
    query = {"filter": "n > 0", "id": "5", "durable": "true"}

    async def test() -> None:
        async with served(tmp_path) as (_, http), http.get("/events", params=query) as stream:
            events = sent(stream)
            await anext(events)
            for number in (1, 2, 3):
                await answer(http.post("/publish", json={"attributes": {"n": number}}))
            got = [await anext(events) for _ in range(3)]
            positions = [str(position) for position, _, _ in got]
            assert sorted(positions, key=int) == positions
            # The next one takes its place, though it has not left yet.
            async with http.get("/events", params=query, headers={"Last-Event-ID": positions[-1]}) as again:
                following = sent(again)
                assert (await anext(following))[2] == {"subscribed": 5}
                await answer(http.post("/publish", json={"attributes": {"n": 4}}))
                assert (await anext(following))[2]["event"]["attributes"] == {"n": 4}
                assert [one async for one in events] == []

    run(test)


def test_a_stream_says_what_was_missed_and_when_it_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailbox, "MAX_EVENTS", 1)

    async def test() -> None:
        async with served(tmp_path) as (node, http):
            query = {"id": "5", "durable": "true"}
            async with http.get("/events", params=query) as stream:
                await anext(sent(stream))
            await until(lambda: not node.host.subscribers.get(5).listening)  # type: ignore[union-attr]
            for number in (1, 2, 3):
                await answer(http.post("/publish", json={"attributes": {"n": number}}))
            async with http.get("/events", params=query) as stream:
                events = sent(stream)
                assert [(await anext(events))[1:] for _ in range(2)] == [
                    ("subscribed", {"subscribed": 5}),
                    ("missed", {"missed": 2}),
                ]
                assert (await anext(events))[2]["event"]["id"] == "1:3"
                await answer(http.delete("/subscriptions/5"))
                assert [one async for one in events] == [(None, "over", {})]

    run(test)


def test_a_stream_without_events_shows_that_it_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "HEARTBEAT", 0.01)

    async def test() -> None:
        async with served(tmp_path) as (_, http), http.get("/events") as stream:
            assert [await stream.content.readuntil(b"\n\n") for _ in range(3)][1:] == [b":\n\n"] * 2

    run(test)


def test_the_end_of_the_node_ends_a_stream_and_a_poll(tmp_path: Path) -> None:
    async def test() -> None:
        node = Node(settings(tmp_path, control="127.0.0.1:0"))
        await node.start()
        async with (
            aiohttp.ClientSession(f"http://127.0.0.1:{node.control.port}") as http,
            http.get("/events") as stream,
        ):
            events = sent(stream)
            await anext(events)
            polling = asyncio.create_task(answer(http.get("/poll", params={"id": 1, "wait": 60})))
            await until(lambda: len(node.host.subscribers) == 2)
            await node.close()
            assert [one async for one in events] == []
            assert await polling == (200, {"events": [], "position": None, "missed": 0})

    run(test)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("filter=price+%3C+%3C+3", "expected a value"),
        ("filtr=true", "filtr: there is no such field; did you mean 'filter'?"),
        ("id=5&durable=perhaps", "durable: expected true or false; got the text 'perhaps'"),
        ("id=five", "id: expected a whole number; got the text 'five'"),
        ("filter=true&filter=false", "a parameter is given twice"),
        ("durable=true", "a durable subscription needs an id"),
        ("id=-1", "from 0 to 2^63 - 1"),
        ("lifetime=-1", "a lifetime is from 0 to"),
    ],
)
def test_a_wrong_stream_is_refused_before_it_begins(tmp_path: Path, query: str, words: str) -> None:
    async def test() -> None:
        async with served(tmp_path) as (node, http):
            status, told = await answer(http.get(f"/events?{query}"))
            assert (status, words in told["error"]) == (400, True), told
            last = {"Last-Event-ID": "x"}
            assert (await answer(http.get("/events", headers=last)))[0] == 400
            assert not len(node.host.subscribers)

    run(test)


# --- Polling --------------------------------------------------------------------------------------------------------


def test_polls_get_each_event_once_if_they_say_where_they_are(tmp_path: Path) -> None:
    async def test() -> None:
        async with served(tmp_path) as (_, http):
            query = {"id": "5", "filter": "n > 0", "wait": "0"}
            assert await answer(http.get("/poll", params=query)) == (200, {"events": [], "position": None, "missed": 0})
            for number in (1, 0, 2):
                await answer(http.post("/publish", json={"attributes": {"n": number}}))
            first = (await answer(http.get("/poll", params=query)))[1]
            assert [one["event"]["id"] for one in first["events"]] == ["1:1", "1:3"]
            assert first["position"] == first["events"][-1]["position"]
            # The answer may have been lost: without a new position the same events come again.
            assert (await answer(http.get("/poll", params=query)))[1] == first
            after = {**query, "after": str(first["position"]), "wait": "30"}
            waiting = asyncio.create_task(answer(http.get("/poll", params=after)))
            await asyncio.sleep(0)
            await answer(http.post("/publish", json={"attributes": {"n": 3}}))
            second = (await waiting)[1]
            assert [one["event"]["id"] for one in second["events"]] == ["1:4"]
            done = {**query, "after": str(second["position"])}
            assert (await answer(http.get("/poll", params=done)))[1]["events"] == []

    run(test)


def test_what_polls_have_not_confirmed_survives_the_node(tmp_path: Path) -> None:
    async def test() -> None:
        query = {"id": "5", "wait": "0"}
        async with served(tmp_path) as (_, http):
            await answer(http.get("/poll", params=query))
            await answer(http.post("/publish", json={"attributes": {"n": 1}}))
            first = (await answer(http.get("/poll", params=query)))[1]
        async with served(tmp_path) as (_, http):
            assert (await answer(http.get("/poll", params=query)))[1]["events"] == first["events"]
            confirmed = {**query, "after": str(first["position"])}
            assert (await answer(http.get("/poll", params=confirmed)))[1]["events"] == []

    run(test)


def test_a_poll_answers_with_a_bounded_number_of_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "MAX_POLLED", 3)

    async def test() -> None:
        async with served(tmp_path) as (_, http):
            query = {"id": "5", "wait": "0"}
            seen, position = [], None
            await answer(http.get("/poll", params=query))
            for number in range(7):
                await answer(http.post("/publish", json={"attributes": {"n": number}}))
            for expected in (3, 3, 1):
                after: dict[str, str] = {} if position is None else {"after": str(position)}
                told = (await answer(http.get("/poll", params={**query, **after})))[1]
                assert len(told["events"]) == expected
                seen += [one["event"]["attributes"]["n"] for one in told["events"]]
                position = told["position"]
            assert seen == list(range(7))

    run(test)


@pytest.mark.parametrize("query", ["", "id=x", "id=5&wait=61", "id=5&wait=-1", "id=5&wait=nan", "id=5&durable=true"])
def test_a_wrong_poll_is_refused(tmp_path: Path, query: str) -> None:
    async def test() -> None:
        async with served(tmp_path) as (_, http):
            assert (await answer(http.get(f"/poll?{query}")))[0] == 400

    run(test)


# --- Pages ----------------------------------------------------------------------------------------------------------


def test_the_page_is_served_over_tcp_only_with_a_strict_policy(tmp_path: Path) -> None:
    async def test() -> None:
        async with served(tmp_path) as (_, http):
            for path, kind in (
                ("/", "text/html"),
                ("/page.js", "text/javascript"),
                ("/roamcast.js", "text/javascript"),
            ):
                async with http.get(path) as got:
                    assert (got.status, got.content_type) == (200, kind)
                    policy = got.headers["Content-Security-Policy"]
                    assert policy.startswith("default-src 'none'; script-src 'self'; ")
                    assert "unsafe" not in policy
                    assert "frame-ancestors 'none'" in policy
        async with Node(settings(tmp_path)) as node:
            connector = aiohttp.UnixConnector(node.control.path)
            async with aiohttp.ClientSession("http://localhost", connector=connector) as http:
                for path in ("/", "/page.js", "/roamcast.js"):
                    assert (await answer(http.get(path)))[0] == 404
                assert (await answer(http.post("/session", json={"token": ""})))[0] == 404
                assert (await answer(http.get("/status", headers={"Origin": "http://localhost"})))[0] == 403
                assert (await answer(http.get("/status", headers={"Sec-Fetch-Site": "same-origin"})))[0] == 403

    run(test)


FOREIGN = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "https://127.0.0.1:{port}"},
    {"Origin": "http://localhost:{port}"},
    {"Origin": "http://127.0.0.1:{port}.evil.example"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},  # another port of this machine
    {"Origin": "http://127.0.0.1:{port}", "Sec-Fetch-Site": "cross-site"},
]


def test_pages_of_other_sites_are_refused_and_its_own_is_not(tmp_path: Path) -> None:
    async def test() -> None:
        async with served(tmp_path, token_file=token_file(tmp_path)) as (node, http):
            port = str(node.control.port)
            own = {"Origin": f"http://127.0.0.1:{port}", "Sec-Fetch-Site": "same-origin"}
            async with http.post("/session", json={"token": TOKEN}, headers=own) as got:
                cookie = {"Cookie": got.headers["Set-Cookie"].split(";")[0]}
            own |= cookie
            for requested in FOREIGN:
                headers = cookie | {name: value.replace("{port}", port) for name, value in requested.items()}
                for method, path in (("GET", "/"), ("GET", "/status"), ("GET", "/events"), ("POST", "/session")):
                    status, told = await answer(http.request(method, path, headers=headers))
                    assert (status, told) == (403, {"error": "pages of other sites are refused"}), headers
                with pytest.raises(aiohttp.WSServerHandshakeError):
                    await http.ws_connect("/subscribe", headers=headers)
            for path in ("/status", "/subscriptions"):
                assert (await answer(http.get(path, headers=own)))[0] == 200
            async with http.ws_connect("/subscribe", headers=own) as listener:
                await listener.send_json({})
                assert (await listener.receive_json()).keys() == {"subscribed"}
            assert not any(name.startswith("Access-Control") for name in (await http.get("/", headers=own)).headers)

    run(test)


def test_the_token_is_exchanged_for_a_cookie_that_scripts_cannot_read(tmp_path: Path) -> None:
    async def test() -> None:
        jar = aiohttp.CookieJar(unsafe=True)
        async with (
            Node(settings(tmp_path, control="127.0.0.1:0", token_file=token_file(tmp_path))) as node,
            aiohttp.ClientSession(f"http://127.0.0.1:{node.control.port}", cookie_jar=jar) as http,
        ):
            assert (await answer(http.get("/status")))[0] == 401
            assert (await answer(http.post("/session", json={"token": "wrong"})))[0] == 401
            assert (await answer(http.get("/status")))[0] == 401
            async with http.post("/session", json={"token": TOKEN}) as got:
                (cookie,) = got.headers.getall("Set-Cookie")
            name, *attributes = cookie.split("; ")
            assert name.startswith(f"roamcast-{node.control.port}=")
            assert {"HttpOnly", "SameSite=Strict", "Path=/"} == set(attributes)
            assert TOKEN not in cookie
            assert (await answer(http.get("/status")))[0] == 200
            async with http.get("/events") as stream:
                assert stream.status == 200
            # A new token makes all cookies void.
            (tmp_path / "token").write_text(f"another-{TOKEN}")
            node.reload()
            assert (await answer(http.get("/status")))[0] == 401
            assert (await answer(http.post("/session", json={"token": f"another-{TOKEN}"})))[0] == 200
            assert (await answer(http.get("/status")))[0] == 200
            assert (await answer(http.delete("/session")))[0] == 200
            assert (await answer(http.get("/status")))[0] == 401

    run(test)


# --- The description ------------------------------------------------------------------------------------------------


def test_the_description_has_every_request_and_only_those(tmp_path: Path) -> None:
    async def test() -> None:
        async with served(tmp_path) as (_, http):
            status, told = await answer(http.get("/openapi.json"))
            assert (status, told["openapi"]) == (200, "3.1.0")
            described = {
                (method.upper(), path, operation["operationId"])
                for path, methods in told["paths"].items()
                for method, operation in methods.items()
            }
            assert described == {(each.method, each.path, each.name) for each in OPERATIONS}
            assert "/session" not in description(tcp=False)["paths"]
            query = {each["name"] for each in told["paths"]["/events"]["get"]["parameters"]}
            assert query == {"filter", "id", "durable", "lifetime", "interest", "publication_domain", "after"}
            form = told["components"]["schemas"]["EventForm"]
            assert form["additionalProperties"] is False
            assert set(form["properties"]) == {
                *("type", "attributes", "payload", "lifetime", "relevance", "subscription_domain")
            }

    run(test)


def test_every_reference_of_the_description_leads_somewhere() -> None:
    told = description(tcp=True)
    text = json.dumps(told)
    for part in text.split('"$ref": "#/components/schemas/')[1:]:
        assert part.split('"')[0] in told["components"]["schemas"]


def test_the_status_is_as_described(tmp_path: Path) -> None:
    async def test() -> None:
        async with served(tmp_path) as (_, http), http.get("/events"):
            told = (await answer(http.get("/status")))[1]
            assert msgspec.convert(told, Status).node == 1

    run(test)


# --- The Python client ----------------------------------------------------------------------------------------------


def test_a_client_names_its_node_by_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("ROAMCAST_API", raising=False)

    async def test() -> None:
        async with (
            Node(settings(tmp_path, 1, control=None)),
            Node(settings(tmp_path, 2, control=None)),
            Client(node=2) as client,
        ):
            assert (await client.status())["node"] == 2
            assert str(await client.publish({})) == f"{await client.publish({})}".replace(":2", ":1") == "2:1"

    run(test)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"address": "nowhere"}, "expected HOST:PORT"),
        ({"address": "127.0.0.1:1", "node": 7}, "an address or the number of a node, not both"),
        ({"address": "127.0.0.1:1", "tls_cert": "missing"}, "cannot be used as a certificate"),
        ({}, "no node answers in "),
    ],
)
def test_a_client_that_cannot_be_made_is_a_client_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], words: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("ROAMCAST_API", raising=False)
    with pytest.raises(ClientError, match=words):
        Client(**options)
    monkeypatch.setenv("ROAMCAST_TOKEN_FILE", str(tmp_path / "missing"))
    with pytest.raises(ClientError, match="the token cannot be read"):
        Client("127.0.0.1:1")


def test_every_error_of_a_client_is_a_client_error(tmp_path: Path) -> None:
    async def test() -> None:
        async with Node(settings(tmp_path)) as node, Client(str(node.control)) as client:
            event = Event.of("t", {"a": 1}, id=5)
            wrong: list[tuple[Any, str]] = [
                (lambda: client.publish({"a": []}), "needs a tuple of one or more values"),
                (lambda: client.publish({"a": 2**70}), "beyond 64 bits"),
                (lambda: client.publish({"a": object()}), "not iterable"),  # type: ignore[dict-item]
                (lambda: client.publish(event), "an event gets its id from its node"),
                (lambda: client.publish({}, lifetime=-1), "a lifetime is from 0"),
                (lambda: client.publish_xml("<a>"), "not well-formed"),
                (lambda: client.subscribe("price < < 3").open(), "expected a value"),
                (lambda: client.set_here("there"), "a position is"),  # type: ignore[arg-type]
                (lambda: client.set_attributes({"a": None}), "attribute 'a'"),  # type: ignore[dict-item]
                (lambda: client.unsubscribe(5), "there is no subscription 5"),
                (lambda: client.forget_author(5), "no other node 5"),
            ]
            for call, words in wrong:
                with pytest.raises(ClientError, match=words):
                    await call()
            with pytest.raises(ClientError):
                client.subscribe(xpath="/a[")

    run(test)


def test_what_is_no_node_is_a_client_error(tmp_path: Path) -> None:
    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        await writer.drain()
        writer.close()

    async def test() -> None:
        server = await asyncio.start_server(nonsense, "127.0.0.1", 0)
        where = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server, Client(where) as client:
            for call in (client.status(), client.publish({}), client.publish({}), client.subscribe().open()):
                with pytest.raises(ClientError):
                    await call

    run(test)
