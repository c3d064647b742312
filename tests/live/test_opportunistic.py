"""Documents on devices: sent in pieces, and carried through crashes."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from live.nodes import Process, Relay, address, facts, network, process, run, settings, take, until
from roamcast.content.event import Event
from roamcast.live.client import Client
from roamcast.live.node import Node
from roamcast.live.port import LivePort
from roamcast.protocols.opportunistic.documents import Document
from roamcast.protocols.opportunistic.messages import Chunk, Header

OPTIONS = ("--protocol", "opportunistic", "--set", "interval=0.2", "--set", "patience=0.5", "--sync", "normal")
PICTURE = bytes(range(256)) * 195
"""About 50 kB, as in the paper."""


class LearningRelay(Relay):
    """An air in which whoever was heard hears the others: processes choose their own ports."""

    def datagram_received(self, data: bytes, addr: Any) -> None:  # noqa: ANN401  # as asyncio has it
        if addr not in self.members:
            self.members.append(addr)
        if data:
            super().datagram_received(data, addr)


@contextlib.asynccontextmanager
async def air() -> AsyncIterator[str]:
    relay = LearningRelay()
    host, port = await relay.open()
    try:
        yield f"{host}:{port}"
    finally:
        relay.close()


async def ready(node: Process) -> Client:
    await asyncio.to_thread(node.ready)
    return Client(node.control)


async def documents(client: Client) -> int:
    return int((await client.status())["tables"]["documents"])


def test_a_document_goes_in_pieces_that_are_frames_of_their_own(tmp_path: Path) -> None:
    async def test() -> None:
        async with (
            network(tmp_path, with_facts=True, protocol="opportunistic", changes=("interval=0.2",)) as (one, two),
            Client(address(one)) as here,
            Client(address(two)) as there,
            there.subscribe("topic = 3") as events,
        ):
            number = await here.publish({"topic": 3}, payload=PICTURE)
            event = await anext(events)
            assert (event.id, event.payload) == (number, PICTURE)
            assert [await documents(client) for client in (here, there)] == [1, 1]
            assert one.host.tables["bulks"] == 0

    run(test)
    sent = [row for row in facts(tmp_path / "facts1")["transmit"] if row["kind"] == "piece"]
    assert sum(row["packets"] for row in sent) == 41  # 49,949 bytes, and 729 of signature and hashes, in pieces of 1250
    (entered,) = facts(tmp_path / "facts2")["cache"]
    assert (entered["change"], entered["documents"]) == ("received", 1)


def test_what_is_carried_survives_kill_9_of_its_publisher_and_of_its_carrier(tmp_path: Path) -> None:
    """A publishes and is killed in the moment it was told so; B carries, and is killed; C has met neither of them."""

    async def test() -> None:
        async with air() as where:
            with process(tmp_path, 1, *OPTIONS, air=where) as first:
                async with await ready(first) as client:
                    number = await client.publish({"topic": 3}, payload=PICTURE)
                first.end(signal.SIGKILL)
            with process(tmp_path, 1, *OPTIONS, air=where) as again, process(tmp_path, 2, *OPTIONS, air=where) as two:
                async with await ready(again), await ready(two) as client:
                    async with client.subscribe("topic = 3", id=7, durable=True) as events:
                        assert (await anext(events)).id == number
                    assert await documents(client) == 1
                two.end(signal.SIGKILL)
                again.end(signal.SIGKILL)
            with process(tmp_path, 2, *OPTIONS, air=where) as two, process(tmp_path, 3, *OPTIONS, air=where) as three:
                async with await ready(two) as carrier, await ready(three) as client:
                    assert await documents(carrier) == 1
                    async with client.subscribe("topic = 3") as events:
                        event = await anext(events)
                        assert (event.id, event.payload) == (number, PICTURE)

    run(test)


def test_neither_another_subscriber_nor_a_restart_delivers_documents_again(tmp_path: Path) -> None:
    """With a memory of 8 deliveries, and 100 documents in the cache."""
    changed = settings(tmp_path, protocol="opportunistic", changes=("delivered=8",))
    ids: list[int] = []

    async def first() -> None:
        async with (
            Node(changed) as node,
            Client(address(node)) as client,
            client.subscribe(id=7, durable=True) as events,
        ):
            ids.extend(await asyncio.gather(*(client.publish({"n": number}) for number in range(100))))
            # In the order in which they came to the node, over connections of their own, and so got their ids.
            assert [event.id for event in await take(events, 100)] == sorted(ids)
            async with client.subscribe("n >= 50") as others:
                assert len(await take(others, 50)) == 50
            last = await client.publish({"n": -1})
            assert [event.id for event in await take(events, 1)] == [last]

    async def again() -> None:
        async with (
            Node(changed) as node,
            Client(address(node)) as client,
            client.subscribe(id=7, durable=True) as events,
            client.subscribe("n >= 50") as others,
        ):
            assert len(await take(others, 50)) == 50, "a subscription with a number of its own"
            last = await client.publish({"n": -2})
            assert [event.id for event in await take(events, 1)] == [last]

    run(first)
    run(again)
    run(again)


def chunk(pieces: int) -> Chunk:
    document = Document(Event.of("t", payload=bytes(100 * pieces - 10), id=1))
    return Chunk(Header(1, 1, 1, (), 1, document.length, 100, 0, (1 << pieces) - 1, 0, None, 0), document)


def test_a_bulk_that_finds_the_queue_full_is_dropped_and_one_that_does_not_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with network(tmp_path, 1, protocol="opportunistic", changes=("interval=1000",)) as (node,):
            told: list[tuple[str, object]] = []
            port: LivePort = node.host.port
            monkeypatch.setattr(node.host, "left", lambda bulk: told.append(("left", bulk)))
            monkeypatch.setattr(node.host, "dropped", lambda bulk: told.append(("dropped", bulk)))
            first, second = chunk(5), chunk(3)
            port.broadcast_bulk(first)
            port.release()
            await until(lambda: told)
            assert told == [("left", first)]
            full, node.link._outbox._longest = node.link._outbox._longest, 0
            port.broadcast_bulk(second)
            port.release()
            await until(lambda: len(told) == 2)
            assert told[1] == ("dropped", second)
            node.link._outbox._longest = full
            assert port.tables["bulks"] == port.tables["flying"] == 0

    run(test)
