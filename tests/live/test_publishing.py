"""Many publications over one connection: their order, those refused among them, the disk, and a node that goes."""

import asyncio
import threading
from pathlib import Path

import aiohttp
import msgspec
import pytest

from live.nodes import address, run, settings, take, until
from roamcast.content.event import event_id
from roamcast.live import publishing
from roamcast.live import under_way as module
from roamcast.live.client import Client, ClientError, Unreachable
from roamcast.live.control_messages import MAX_EVENT
from roamcast.live.node import Node
from roamcast.live.publisher import LONGEST


def test_what_is_published_at_once_arrives_in_order_and_each_gets_its_own_id(tmp_path: Path) -> None:
    async def test() -> None:
        async with Node(settings(tmp_path)) as node, Client(address(node)) as client, client.subscribe() as events:
            await client.publish({"n": -1})
            ids = await asyncio.gather(*(client.publish({"n": number}) for number in range(200)))
            assert ids == [event_id(1, 2 + number) for number in range(200)]
            assert [event.values("n") for event in await take(events, 201)] == [(n,) for n in range(-1, 200)]

    run(test)


def test_one_that_is_refused_does_not_spoil_the_others(tmp_path: Path) -> None:
    async def test() -> None:
        async with Node(settings(tmp_path)) as node, Client(address(node)) as client:
            await client.publish({"n": 0})
            results = await asyncio.gather(
                client.publish({"n": 1}),
                client.publish({"n": 2}, lifetime=5),
                client.publish({"n": 3}, payload=bytes(MAX_EVENT)),
                client.publish({"n": 4}, payload=bytes(LONGEST)),
                client.publish({"n": 5}),
                return_exceptions=True,
            )
            assert results[0] == event_id(1, 2)
            assert results[4] == event_id(1, 3)
            assert all(isinstance(result, ClientError) for result in results[1:4])
            words = ["flooding does not understand lifetimes", "the longest has", "a request may have"]
            assert [word in str(result) for word, result in zip(words, results[1:4], strict=True)] == [True] * 3
            assert node.host.counters["published"] == 3

    run(test)


def test_nobody_is_answered_before_the_event_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with Node(settings(tmp_path)) as node, Client(address(node)) as client:
            await client.publish({"n": 0})
            disk, commit = threading.Event(), node.store._commit

            def slow(batch: list[tuple[str, tuple[object, ...]]]) -> None:
                assert disk.wait(10)
                commit(batch)

            monkeypatch.setattr(node.store, "_commit", slow)
            publishing = [asyncio.ensure_future(client.publish({"n": number})) for number in range(5)]
            done, _ = await asyncio.wait(publishing, timeout=0.3)
            assert not done
            disk.set()
            assert await asyncio.gather(*publishing) == [event_id(1, 2 + number) for number in range(5)]

    run(test)


def test_a_node_that_goes_fails_what_waits_and_is_found_again_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        disk = threading.Event()
        async with Client(f"unix:{tmp_path / '1.socket'}") as client:
            async with Node(settings(tmp_path)) as node:
                await client.publish({"n": 0})
                assert await client.publish({"n": 1}) == event_id(1, 2)
                monkeypatch.setattr(node.store, "_commit", lambda batch: disk.wait(10))
                waiting = asyncio.ensure_future(client.publish({"n": 2}))
                await asyncio.sleep(0.1)
                closing = asyncio.ensure_future(client._publisher._socket.close())  # type: ignore[union-attr]  # it is open
                with pytest.raises(Unreachable, match="ended before it had answered"):
                    await waiting
                await closing
                disk.set()
            with pytest.raises(Unreachable, match="no node answers"):
                await client.publish({"n": 3})
            async with Node(settings(tmp_path)):
                assert await client.publish({"n": 4}) > event_id(1, 2)

    run(test)


def test_json_over_a_websocket_and_what_is_no_list(tmp_path: Path) -> None:
    async def test() -> None:
        path = str(tmp_path / "1.socket")
        async with (
            Node(settings(tmp_path)),
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(path)) as http,
            http.ws_connect("http://localhost/publish") as socket,
        ):
            await socket.send_str('[{"type": "t"}, {"typ": "t"}, 5]')
            answers = msgspec.json.decode(await socket.receive_str())
            while len(answers) < 3:
                answers += msgspec.json.decode(await socket.receive_str())
            assert answers[0] == {"id": "1:1"}
            assert [set(answer) for answer in answers[1:]] == [{"error"}, {"error"}]
            assert "typ" in answers[1]["error"]
            await socket.send_str('{"type": "t"}')
            refusal = msgspec.json.decode(await socket.receive_str())
            assert "not understood" in refusal[0]["error"]
            assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
            assert socket.close_code == 1008

    run(test)


# --- An acknowledgement means that the event will be sent --------------------------------------------------------


def hold_broadcasts(monkeypatch: pytest.MonkeyPatch, node: Node) -> None:
    """From now on, broadcasts wait in the node's queue, as while its interface is missing."""
    monkeypatch.setattr(node.link, "_pump_broadcasts", lambda most: None)


def test_with_a_thousand_publications_in_flight_everything_acknowledged_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They all wait for one commit, which then releases their messages; the queue holds 256."""

    async def test() -> None:
        async with Node(settings(tmp_path)) as node, Client(address(node)) as client:
            await client.publish({"n": -1})
            disk, commit, host = threading.Event(), node.store._commit, node.host

            def slow(batch: list[tuple[str, tuple[object, ...]]]) -> None:
                assert disk.wait(10)
                commit(batch)

            monkeypatch.setattr(node.store, "_commit", slow)
            publishing = [asyncio.ensure_future(client.publish({"n": number})) for number in range(1000)]
            await until(lambda: host.counters["published"] + host.tables.get("publications waiting", 0) == 1001)
            disk.set()
            assert await asyncio.gather(*publishing) == [event_id(1, 2 + number) for number in range(1000)]
            await until(lambda: node.link.waiting == 0)
            assert node.link.counters["queue-full"] == 0
            assert node.facts.counted["data"]["messages"] == 1001
            assert host.tables["publications waiting"] == host.tables["publications under way"] == 0

    run(test)


def test_publications_wait_while_nothing_can_be_sent_and_are_refused_before_they_are_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with Node(settings(tmp_path)) as node, Client(address(node)) as client:
            with monkeypatch.context() as patch:
                hold_broadcasts(patch, node)
                patch.setattr(module, "MAX_WAITING", 50)
                first = [asyncio.ensure_future(client.publish({"n": number})) for number in range(128)]
                await asyncio.gather(*first)
                late = [asyncio.ensure_future(client.publish({"n": number})) for number in range(128, 180)]
                await until(lambda: node.host.counters["refused"] == 2)
                assert node.host.tables["publications waiting"] == 50
                path = str(tmp_path / "1.socket")
                async with (
                    aiohttp.ClientSession(connector=aiohttp.UnixConnector(path)) as http,
                    http.post("http://localhost/publish", json={}) as answer,
                ):
                    assert answer.status == 503
                now = asyncio.get_running_loop().time()
                node.host.under_way.refuse_late(now + module.PATIENCE - 5)
                assert node.host.tables["publications waiting"] == 50
                node.host.under_way.refuse_late(now + module.PATIENCE)
                refused = await asyncio.gather(*late, return_exceptions=True)
                assert all(isinstance(each, ClientError) for each in refused)
                assert "128 publications are being sent and 50 wait for them: publish more slowly" in str(refused[-1])
                assert node.host.counters["published"] == 128
                waiting = asyncio.ensure_future(client.publish({"n": 180}))
                await until(lambda: node.host.tables["publications waiting"] == 1)
            node.link.broadcast(b"", token="wakes it")
            assert await waiting == event_id(1, 129)
            await until(lambda: node.link.waiting == 0)
            assert node.facts.counted["data"]["messages"] == 129

    run(test)


def test_what_was_acknowledged_and_not_sent_is_sent_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def first() -> None:
        async with Node(settings(tmp_path)) as node, Client(address(node)) as client:
            await client.publish({"n": 0})
            await until(lambda: node.facts.counted["data"]["messages"] == 1)
            hold_broadcasts(monkeypatch, node)
            assert await client.publish({"n": 1}) == event_id(1, 2)

    async def again(count: int) -> None:
        async with Node(settings(tmp_path)) as node:
            await until(lambda: node.host.tables["publications under way"] == 0)
            assert node.facts.counted.get("data", {"messages": 0})["messages"] == count

    run(first)
    run(lambda: again(1))
    run(lambda: again(0))


def test_what_is_too_much_at_once_waits_in_its_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message has up to 1,000 publications."""
    monkeypatch.setattr(publishing, "MOST", 100)
    monkeypatch.setattr(module, "MAX_WAITING", 1100)

    async def test() -> None:
        async with Node(settings(tmp_path)) as node, Client(address(node)) as client:
            await asyncio.gather(*(client.publish({"n": number}) for number in range(3000)))
            assert (node.host.counters["published"], node.host.counters["refused"]) == (3000, 0)

    run(test)
