"""A node that speaks MQTT, over real sockets: who gets in, what survives a restart, and a client that others wrote."""

import asyncio
import contextlib
import ssl
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from live.nodes import address, network, run, settings, until
from roamcast.errors import ConfigError
from roamcast.live import gate
from roamcast.live.client import Client
from roamcast.live.mqtt.packets import (
    V5,
    V311,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Pingresp,
    Puback,
    Publish,
    Reason,
    Suback,
    Subscribe,
    WantedTopic,
)
from roamcast.live.mqtt.wire import Parser, write
from roamcast.live.node import Node

TOKEN = "a-token-that-is-long-enough"
LASTING = {"session_expiry": 3600}


class Wire:
    """Packets over a socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, version: int) -> None:
        self._reader, self._writer, self._version = reader, writer, version
        self._parser = Parser(10**6, version)

    def send(self, *packets: Packet) -> None:
        self._writer.write(b"".join(write(packet, self._version) for packet in packets))

    async def next(self) -> Packet | None:
        """The next packet; None: the connection was closed."""
        while (packet := self._parser.next()) is None:
            data = await self._reader.read(65536)
            if not data:
                return None
            self._parser.feed(data)
        return packet

    def close(self) -> None:
        self._writer.transport.abort()


@contextlib.asynccontextmanager
async def wire(node: Node, connect: Connect | None = None, tls: ssl.SSLContext | None = None) -> AsyncIterator[Wire]:
    assert node.mqtt is not None
    there = node.mqtt.address
    if there.path:
        reader, writer = await asyncio.open_unix_connection(there.path)
    else:
        reader, writer = await asyncio.open_connection(there.host, there.port, ssl=tls)
    made = Wire(reader, writer, V5 if connect is None else connect.version)
    try:
        if connect is not None:
            made.send(connect)
        yield made
    finally:
        made.close()


def speaking(folder: Path, **changes: Any) -> Node:  # noqa: ANN401  # of NodeSettings
    return Node(settings(folder, **{"mqtt": "127.0.0.1:0", **changes}))


# --- Who gets in ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("connect", "reason"),
    [
        (Connect("c", V5, password=TOKEN.encode()), 0),
        (Connect("c", V5, user="anybody", password=TOKEN.encode()), 0),
        (Connect("c", V5), Reason.BAD_PASSWORD),
        (Connect("c", V5, password=b"wrong"), Reason.BAD_PASSWORD),
        (Connect("c", V311, user="u", password=TOKEN.encode()), 0),
        (Connect("c", V311), 4),
        (Connect("", V311, clean=False, user="u", password=TOKEN.encode()), 2),
    ],
)
def test_the_token_is_the_password(tmp_path: Path, connect: Connect, reason: int) -> None:
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)

    async def test() -> None:
        async with speaking(tmp_path, token_file=tmp_path / "token") as node, wire(node, connect) as client:
            answer = await client.next()
            assert isinstance(answer, Connack)
            assert answer.reason == reason
            if reason:
                assert await client.next() is None

    run(test)


def test_other_machines_need_a_token_and_tls(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--mqtt 0\.0\.0\.0:1883: other machines can reach .* --token-file FILE and"):
        settings(tmp_path, mqtt="0.0.0.0:1883")


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", None),  # a page in a browser
        (b"\x10\x0c\x00\x06MQIsdp\x03\x02\x00\x3c", Connack(False, 1)),  # MQTT 3.1
        (write(Pingreq(), V5), None),
        (b"\x10\xff\xff\xff\x7f", None),  # a CONNECT of 256 MB
    ],
)
def test_what_is_no_connect_is_not_let_in(tmp_path: Path, said: bytes, answer: Packet | None) -> None:
    async def test() -> None:
        async with speaking(tmp_path) as node, wire(node) as client:
            client._parser.version = V311
            client._writer.write(said)
            assert await client.next() == answer
            assert answer is None or await client.next() is None

    run(test)


def test_the_gate_is_that_of_the_api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "PATIENCE", 0.1)
    monkeypatch.setattr(gate, "MAX_PER_ADDRESS", 2)

    async def test() -> None:
        async with speaking(tmp_path) as node, wire(node) as silent:
            assert await silent.next() is None
            async with wire(node, Connect("1")) as one, wire(node, Connect("2")) as two:
                assert [type(await client.next()) for client in (one, two)] == [Connack, Connack]
                async with wire(node, Connect("3")) as three:
                    with contextlib.suppress(ConnectionError):
                        assert await three.next() is None
            assert node.mqtt is not None
            assert node.mqtt.gate.counters == {"silent": 1, "refused": 1}

    run(test)


def test_a_unix_socket_of_its_own(tmp_path: Path) -> None:
    async def test() -> None:
        async with speaking(tmp_path, mqtt=f"unix:{tmp_path}/mqtt") as node, wire(node, Connect("c")) as client:
            assert isinstance(await client.next(), Connack)
            assert (tmp_path / "mqtt").stat().st_mode & 0o777 == 0o600
        assert not (tmp_path / "mqtt").exists()

    run(test)


def test_a_second_connect_and_garbage_end_a_connection(tmp_path: Path) -> None:
    async def test() -> None:
        async with speaking(tmp_path) as node:
            async with wire(node, Connect("c")) as client:
                client.send(Connect("c"))
                await client.next()
                answer = await client.next()
                assert isinstance(answer, Disconnect)
                assert answer.reason == Reason.PROTOCOL_ERROR
            async with wire(node, Connect("c")) as client:
                client._writer.write(b"\x00\x00")
                await client.next()
                answer = await client.next()
                assert isinstance(answer, Disconnect)
                assert answer.reason == Reason.MALFORMED

    run(test)


# --- Restarts -------------------------------------------------------------------------------------------------------


def test_a_session_survives_an_orderly_restart(tmp_path: Path) -> None:
    async def test() -> None:
        connect = Connect("c", clean=False, properties=LASTING)
        async with speaking(tmp_path) as node, wire(node, connect) as client:
            client.send(Subscribe(1, (WantedTopic("a/#", 1),)), Publish("a/1", b"1", 1, 7), Publish("a/2", b"2", 1, 8))
            got = [await client.next() for _ in range(6)]
            sent = {packet.payload: packet.packet for packet in got if isinstance(packet, Publish)}
            assert {packet.packet for packet in got if isinstance(packet, Puback)} == {7, 8}
            client.send(Puback(sent[b"1"]), Pingreq())
            assert await client.next() == Pingresp()
            await node.close()
            ending = await client.next()
            assert isinstance(ending, Disconnect)
            assert ending.reason == Reason.SHUTTING_DOWN
        async with speaking(tmp_path) as node, wire(node, connect) as client:
            answer, again = await client.next(), await client.next()
            assert isinstance(answer, Connack)
            assert answer.session_present
            assert isinstance(again, Publish)
            assert (again.payload, again.dup, again.packet) == (b"2", True, sent[b"2"])

    run(test)


def test_a_client_that_leaves_right_after_it_subscribes_has_subscribed(tmp_path: Path) -> None:
    """Its DISCONNECT is here before the subscription is on disk."""

    async def test() -> None:
        connect = Connect("c", V311, clean=False)
        async with speaking(tmp_path) as node, Client(address(node)) as python:
            async with wire(node, connect) as client:
                assert await client.next() == Connack()
                client.send(Subscribe(1, (WantedTopic("a/#", 1), WantedTopic("b", 1))), Disconnect())
                while await client.next() is not None:
                    pass
            await python.publish({"level1": "x"}, "a", b"1")
            await python.publish({}, "b", b"2")
            async with wire(node, connect) as client:
                assert await client.next() == Connack(True)
                got = [await client.next(), await client.next()]
                assert sorted(packet.payload for packet in got if isinstance(packet, Publish)) == [b"1", b"2"]

    run(test)


def test_what_is_stored_is_acknowledged_before_an_orderly_end(tmp_path: Path) -> None:
    """Otherwise the client would publish it again."""

    async def test() -> None:
        async with speaking(tmp_path) as node, wire(node, Connect("c")) as client:
            assert isinstance(await client.next(), Connack)
            client.send(*(Publish("a", b"x", 1, number) for number in range(1, 101)))
            await until(lambda: node.host.counters["published"])
            await node.close()
            answers = []
            while (packet := await client.next()) is not None:
                answers.append(packet)
            assert sum(isinstance(packet, Puback) for packet in answers) == node.host.counters["published"]

    run(test)


def test_events_go_between_mqtt_and_everybody_else(tmp_path: Path) -> None:
    async def test() -> None:
        async with (
            network(tmp_path, mqtt="127.0.0.1:0") as (one, two),
            wire(one, Connect("c")) as client,
            Client(address(two)) as python,
            python.subscribe('type = "home" and value > 20') as events,
        ):
            client.send(Subscribe(1, (WantedTopic("offer", 1),)))
            assert [await client.next() for _ in range(2)][1] == Suback(1, (1,))
            client.send(Publish("home/kitchen", b"21.5", 1, 7))
            received = await anext(events)
            assert (received.attributes, received.payload) == ({"level1": "kitchen", "value": 21.5}, b"21.5")
            await python.publish({"price": 12.5}, type="offer")
            got = [await client.next(), await client.next()]
            assert Puback(7) in got
            [message] = [packet for packet in got if isinstance(packet, Publish)]
            assert (message.topic, message.payload) == ("offer", b'{"price":12.5}')

    run(test)


# --- A client that others wrote -------------------------------------------------------------------------------------


def _paho(protocol: MQTTProtocolVersion, port: int) -> list[tuple[str, bytes, int]]:
    """Subscribes and publishes one message with each QoS that this version has; gives what arrived."""
    client = paho.Client(CallbackAPIVersion.VERSION2, "paho", protocol=protocol)
    got: list[tuple[str, bytes, int]] = []
    there, subscribed, all_here = threading.Event(), threading.Event(), threading.Event()
    levels = (0, 1, 2) if protocol == MQTTProtocolVersion.MQTTv311 else (0, 1)

    def on_message(client: Any, data: Any, message: paho.MQTTMessage) -> None:  # noqa: ANN401  # of paho
        got.append((message.topic, bytes(message.payload), message.qos))
        if len(got) == len(levels):
            all_here.set()

    client.on_connect = lambda *_: there.set()
    client.on_subscribe = lambda *_: subscribed.set()
    client.on_message = on_message
    client.connect("127.0.0.1", port)
    client.loop_start()
    try:
        assert there.wait(10)
        client.subscribe("$filter/n%20%3E%3D%200", qos=1)
        assert subscribed.wait(10)
        for qos in levels:
            properties = None
            if protocol == MQTTProtocolVersion.MQTTv5:
                properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
                properties.UserProperty = [("n", str(qos))]
            client.publish("a/b", f'{{"n": {qos}}}', qos, properties=properties).wait_for_publish(10)
        assert all_here.wait(10)
    finally:
        client.disconnect()
        client.loop_stop()
    return got


@pytest.mark.parametrize("protocol", [MQTTProtocolVersion.MQTTv311, MQTTProtocolVersion.MQTTv5])
def test_paho(tmp_path: Path, protocol: MQTTProtocolVersion) -> None:
    async def test() -> None:
        async with speaking(tmp_path) as node:
            assert node.mqtt is not None
            got = await asyncio.get_running_loop().run_in_executor(None, _paho, protocol, node.mqtt.address.port)
            assert got == [("a/b", b'{"n": %d}' % qos, min(qos, 1)) for qos in range(len(got))]
            await until(lambda: node.status()["mqtt"]["connected"] == 0)

    run(test)


# --- Many at once ---------------------------------------------------------------------------------------------------


def test_topics_that_are_answered_at_once_are_as_many_as_one_likes(tmp_path: Path) -> None:
    """A durable client asks again for all its 500 topics: each is active already."""
    topics = Subscribe(1, tuple(WantedTopic(f"t{number}/#", 1) for number in range(500)))

    async def test() -> None:
        async with speaking(tmp_path, protocol="flooding") as node:
            for _ in range(2):
                async with wire(node, Connect("c", V5, clean=False, properties=LASTING)) as client:
                    assert isinstance(await client.next(), Connack)
                    client.send(topics)
                    assert await client.next() == Suback(1, (1,) * 500)

    run(test)


def test_publications_that_are_refused_at_once_hold_up_no_others(tmp_path: Path) -> None:
    packets = [Publish("a/+/b" if number % 2 else "a/b", b"{}", 1, packet=number + 1) for number in range(600)]

    async def test() -> None:
        async with speaking(tmp_path, protocol="flooding") as node, wire(node, Connect("c", V5)) as client:
            assert isinstance(await client.next(), Connack)
            client.send(*packets)
            answers = [await client.next() for _ in packets]
            good = [one.packet for one in answers if isinstance(one, Puback) and one.reason < 0x80]
            assert sorted(good) == list(range(1, 601, 2))

    run(test)
