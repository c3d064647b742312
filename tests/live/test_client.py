"""The Python client: what it gives back, how a subscription lives, and what it says when there is no node."""

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from content.strategies import events as any_event
from live.nodes import address, process, run, settings, take, until
from roamcast.content.document import document_of
from roamcast.content.event import Event, Scalar, event_id
from roamcast.content.filter import Filter
from roamcast.live.client import Client, ClientError, Received
from roamcast.live.control_messages import (
    JSON,
    MSGPACK,
    DeliveredEvent,
    ShownEvent,
    ShownMessage,
    SubscriberMessage,
    decode,
    encode,
)
from roamcast.live.node import Node
from roamcast.protocols.api import Parameters


@given(any_event)
def test_an_event_arrives_as_it_was_in_messagepack(event: Event) -> None:
    got = decode(encode(DeliveredEvent.of(event), MSGPACK), DeliveredEvent, MSGPACK)
    assert Event.of(got.type, got.attributes, got.payload, got.id) == event


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
VALUES = st.integers(-5, 5) | st.booleans() | st.text("abc")


@given(st.dictionaries(NAMES, VALUES))
def test_an_event_without_odd_numbers_arrives_as_it_was_in_json_too(attributes: dict[str, int | bool | str]) -> None:
    event = Event.of("type", attributes, b"\xff\0", event_id(26, 17))
    message = decode(encode(SubscriberMessage(event=DeliveredEvent.of(event)), JSON), ShownMessage, JSON)
    assert message.event == ShownEvent("26:17", "type", attributes, b"\xff\0")


def test_a_single_value_arrives_as_that_value_and_several_as_a_tuple(tmp_path: Path) -> None:
    async def test() -> None:
        async with Node(settings(tmp_path)) as node, Client(address(node)) as client, client.subscribe() as events:
            number = await client.publish({"price": 12.5, "tags": ["jazz", "live"]}, type="offer", payload=b"x")
            got = await anext(events)
            attributes: dict[str, Scalar | tuple[Scalar, ...]] = {"price": 12.5, "tags": ("jazz", "live")}
            assert (got.id, str(got.id)) == (number, "1:1")
            assert got == Received(number, "offer", attributes, b"x", 0, "local", 1, "first use", got.published)
            assert got.event == Event("offer", {"price": (12.5,), "tags": ("jazz", "live")}, b"x", number)
            assert got.document is None

    run(test)


def test_publishing_an_event_or_its_parts(tmp_path: Path) -> None:
    async def test() -> None:
        async with Node(settings(tmp_path)) as node, Client(address(node)) as client, client.subscribe() as events:
            whole = Event.of("t", {"a": [1, "two", 3.5, True, -math.inf]}, b"payload")
            first, second = await client.publish(whole), await client.publish({"a": 1}, type="u")
            heard = await take(events, 2)
            assert heard == [
                Event("t", whole.attributes, b"payload", event_id(1, 1)),
                Event.of("u", {"a": 1}, id=event_id(1, 2)),
            ]
            assert (first, second) == (event_id(1, 1), event_id(1, 2))
            assert [type(value) for value in heard[0].values("a")] == [int, str, float, bool, float]

    run(test)


def test_filters_as_text_and_as_objects(tmp_path: Path) -> None:
    async def test() -> None:
        async with (
            Node(settings(tmp_path)) as node,
            Client(address(node)) as client,
            client.subscribe(Filter.where("a", "<", 5)) as low,
            client.subscribe("a >= 5") as high,
        ):
            for number in (7, 3):
                await client.publish({"a": number})
            assert [event.values("a") for event in await take(low, 1)] == [(3,)]
            assert [event.values("a") for event in await take(high, 1)] == [(7,)]
            assert low.subscription != high.subscription
            assert (low.subscription or 0) >> 32 == (high.subscription or 0) >> 32 == 1

    run(test)


def test_leaving_the_iterator_unsubscribes(tmp_path: Path) -> None:
    async def test() -> None:
        async with Node(settings(tmp_path)) as node, Client(address(node)) as client:
            async with client.subscribe() as events:
                await client.publish({})
                async for _ in events:
                    break
                assert len(node.host.subscribers) == 1
            await until(lambda: not len(node.host.subscribers))
            forgotten = client.subscribe()
            await forgotten.open()
        # The client closes what was left open.
        async with Node(settings(tmp_path)) as node:
            assert not len(node.host.subscribers)

    run(test)


def test_unsubscribing_by_id(tmp_path: Path) -> None:
    async def test() -> None:
        async with Node(settings(tmp_path)) as node, Client(address(node)) as client:
            async with client.subscribe(id=7, durable=True):
                with pytest.raises(ClientError, match="subscription 7 has a listener already"):
                    await client.subscribe(id=7).open()
            await until(lambda: not node.host.subscribers.get(7).listening)  # type: ignore[union-attr]
            await client.unsubscribe(7)
            assert node.host.tables["subscriptions"] == 0
            with pytest.raises(ClientError, match="there is no subscription 7"):
                await client.unsubscribe(7)
        async with Node(settings(tmp_path)) as node:
            assert not len(node.host.subscribers)

    run(test)


def test_ending_a_subscription_by_id_ends_its_listener(tmp_path: Path) -> None:
    async def test() -> None:
        async with Node(settings(tmp_path)) as node, Client(address(node)) as client:
            events = await client.subscribe(id=7).open()
            await client.publish({"n": 1})
            await client.unsubscribe(7)
            async with client.subscribe(id=7):  # the id is free
                assert [event.attributes["n"] async for event in events] == [1]
                await events.close()
                assert len(node.host.subscribers) == 1

    run(test)


def test_a_durable_subscription_goes_on_without_its_listener(tmp_path: Path) -> None:
    async def test() -> None:
        async with Node(settings(tmp_path)) as node, Client(address(node)) as client:
            async with client.subscribe("n > 0", id=7, durable=True):
                pass
            await until(lambda: not node.host.subscribers.get(7).listening)  # type: ignore[union-attr]
            await client.publish({"n": 1})
            async with client.subscribe("n > 0", id=7, durable=True) as again:
                await client.publish({"n": 2})
                assert [event.values("n") for event in await take(again, 2)] == [(1,), (2,)]
        async with Node(settings(tmp_path)) as node, Client(address(node)) as client:
            await client.publish({"n": 3})  # it is in force before anybody listens
            async with client.subscribe("n > 0", id=7, durable=True) as again:
                assert [event.values("n") for event in await take(again, 1)] == [(3,)]
            await until(lambda: not node.host.subscribers.get(7).listening)  # type: ignore[union-attr]
            async with client.subscribe("n > 9", id=7, durable=True) as other:  # another filter takes its place
                await client.publish({"n": 4})
                await client.publish({"n": 10})
                assert [event.values("n") for event in await take(other, 1)] == [(10,)]
            assert [each.durable for each in node.host.subscribers] == [True]

    run(test)


def test_nothing_is_delivered_twice_across_a_restart(tmp_path: Path) -> None:
    """The window of delivered events is kept: a copy that comes after the restart is no news."""

    async def test() -> None:
        from roamcast.protocols.flooding import Data

        event = Event("t", id=event_id(9, 1))
        async with (
            Node(settings(tmp_path, unsigned=True)) as node,
            Client(address(node)) as client,
            client.subscribe(id=7, durable=True) as events,
        ):
            copy = node.host._codec.encode(Data(event, 0))
            node.host.receive(9, copy)
            assert await take(events, 1) == [event]
        async with Node(settings(tmp_path, unsigned=True)) as node:
            node.host.receive(9, copy)
            node.host.receive(9, node.host._codec.encode(Data(Event("t", id=event_id(9, 2)), 0)))
            await node.store.committed()
            mailbox = node.host.subscribers.get(7)
            assert mailbox is not None
            assert len(mailbox) == 1
        assert Parameters().delivered > 2

    run(test)


def test_the_end_of_a_node_ends_the_iterator(tmp_path: Path) -> None:
    async def test() -> None:
        node = Node(settings(tmp_path))
        await node.start()
        async with Client(address(node)) as client:
            events = await client.subscribe().open()
            ending = asyncio.create_task(node.close())
            assert [event async for event in events] == []
            await ending

    run(test)


def test_a_killed_node_is_an_error_for_its_listeners(tmp_path: Path) -> None:
    with process(tmp_path) as node:
        node.ready()

        async def test() -> None:
            async with Client(node.control) as client, client.subscribe() as events:
                node.popen.kill()
                with pytest.raises(ClientError, match="the connection to the node broke"):
                    await anext(events)

        run(test)


# --- No node, no token ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["127.0.0.1:1", "unix:{}/nothing"])
def test_where_there_is_no_node(tmp_path: Path, where: str) -> None:
    async def test() -> None:
        async with Client(where.format(tmp_path)) as client:
            for call in (client.status(), client.publish({}), client.subscribe().open()):
                with pytest.raises(ClientError, match=r"no node answers at .*: start one with 'roamcast node', or say"):
                    await call

    run(test)


def test_a_client_outside_its_context_says_so() -> None:
    async def test() -> None:
        with pytest.raises(ClientError, match="async with Client"):
            await Client("unix:x").status()

    run(test)


def test_the_address_and_the_token_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("0123456789abcdef")
    (tmp_path / "token").chmod(0o600)

    async def test() -> None:
        async with Node(settings(tmp_path, token_file=tmp_path / "token")) as node:
            monkeypatch.setenv("ROAMCAST_API", address(node))
            async with Client() as client:
                with pytest.raises(ClientError, match="a token is needed"):
                    await client.status()
                with pytest.raises(ClientError, match="a token is needed"):
                    await client.subscribe().open()
            monkeypatch.setenv("ROAMCAST_TOKEN_FILE", str(tmp_path / "token"))
            async with Client() as client, client.subscribe():
                assert (await client.status())["node"] == 1

    run(test)


def test_many_clients_at_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with Node(settings(tmp_path)) as node, Client(address(node)) as client, client.subscribe() as events:
            numbers = await asyncio.gather(*(client.publish({"n": n}) for n in range(200)))
            assert sorted(numbers) == [event_id(1, serial) for serial in range(1, 201)]
            assert [event.id for event in await take(events, 200)] == sorted(numbers)
            assert node.store.commits < 200  # they share commits

    run(test)


def test_the_example_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs/live.md").read_text()
    first, *body = page.split("```python\n")[1].split("```")[0].splitlines()
    names: dict[str, Any] = {}
    exec("\n".join((first, "async def example():", *(f"    {line}" for line in body))), names)

    async def test() -> None:
        async with Node(settings(tmp_path)) as node:
            monkeypatch.setenv("ROAMCAST_API", address(node))
            example = asyncio.create_task(names["example"]())
            said = ""
            while not said.endswith("\n"):
                await asyncio.sleep(0.005)
                said += capsys.readouterr().out
            example.cancel()
            await asyncio.wait([example])
            assert said == "1:1 {'price': 12.5, 'tags': ('jazz', 'live')} 0 0\n"

    run(test)


def test_xml_and_xpath(tmp_path: Path) -> None:
    document = "<CD><category>jazz</category><info><label>X</label></info></CD>"

    async def test() -> None:
        wanted = '/CD[category="jazz"]/info[label="X"]'
        async with Node(settings(tmp_path)) as node, Client(address(node)) as client:
            async with client.subscribe(xpath=wanted) as events:
                await client.publish_xml(document.replace("jazz", "pop"))
                await client.publish_xml(document, "compressed")
                (heard,) = await take(events, 1)
            assert heard.attributes == {"category": ("jazz",), "info/label": ("X",)}
            assert document_of(heard) == document.encode()
            with pytest.raises(ClientError, match="not both"):
                client.subscribe("true", xpath=wanted)

    run(test)
