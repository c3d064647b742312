"""A node that nobody looks after: strangers at its API, an interface that goes, a store or facts that are damaged."""

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import stat
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from lab.test_netns import WHY_NOT as NO_NAMESPACES
from live.nodes import ENVIRONMENT, address, process, run, settings, until
from roamcast.cli.status import _lines
from roamcast.content.event import event_id
from roamcast.errors import ConfigError
from roamcast.live import gate, metrics
from roamcast.live.client import Client, ClientError
from roamcast.live.key import NetworkKey
from roamcast.live.link.frame import BROADCAST, BROADCAST_DATA, Sealer
from roamcast.live.link.link import Link, LinkSettings
from roamcast.live.node import FIRST_SERIALS, Node
from roamcast.live.places import default_store, read_token
from roamcast.live.settings import NodeSettings
from roamcast.live.store import Store, StoreError
from roamcast.live.troubles import Troubles
from roamcast.live.written import WrittenFacts

# --- The store ------------------------------------------------------------------------------------------------------


def test_a_new_store_begins_anywhere_is_for_its_owner_and_is_told_loudly(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    serials = []

    async def first_event() -> None:
        async with Node(settings(tmp_path, seed=None)) as node, Client(address(node)) as client:
            serials.append(await client.publish({}) - event_id(1, 1) + 1)

    with caplog.at_level(logging.WARNING):
        run(first_event)
        assert [record.getMessage() for record in caplog.records if "NEW STORE" in record.getMessage()]
        caplog.clear()
        run(first_event)
        assert not [record for record in caplog.records if "NEW STORE" in record.getMessage()]
    assert serials[1] == serials[0] + 1, "it goes on where it stopped"
    store = tmp_path / "1.store"
    assert stat.S_IMODE(store.stat().st_mode) == 0o600
    store.unlink()
    run(first_event)
    assert abs(serials[2] - serials[0]) > 1, "with a probability of one in a thousand million"
    assert all(0 < serial <= FIRST_SERIALS + 2 for serial in serials)


def test_the_default_store_is_in_one_place_wherever_the_node_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    assert default_store(7) == tmp_path / "state/roamcast/node-7.store"

    async def life() -> None:
        async with Node(settings(tmp_path, store=None)):
            pass

    run(life)
    assert (tmp_path / "state/roamcast/node-1.store").exists()
    monkeypatch.setenv("STATE_DIRECTORY", "/var/lib/roamcast")
    assert default_store(7) == Path("/var/lib/roamcast/node-7.store")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything; the message is tested by errno below")
def test_a_store_that_may_only_be_read(tmp_path: Path) -> None:
    run_store(tmp_path / "s")
    (tmp_path / "s").chmod(0o400)
    with pytest.raises(StoreError, match="may only be read"):
        Store(tmp_path / "s", 1)


def test_a_store_on_a_disk_that_is_mounted_for_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_store(tmp_path / "s")

    def refuse(*arguments: Any) -> int:  # noqa: ANN401  # of os.open
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StoreError, match=r"may only be read .Read-only file system.: a node writes its store"):
        Store(tmp_path / "s", 1)


def run_store(path: Path) -> None:
    async def make() -> None:
        await Store(path, 1).close()

    run(make)


# --- Facts ----------------------------------------------------------------------------------------------------------


def test_a_node_starts_beside_facts_that_a_loss_of_power_has_damaged(tmp_path: Path) -> None:
    facts = tmp_path / "facts"
    facts.mkdir()
    for number, content in enumerate((b"", b"PAR1", b"no such thing")):
        (facts / f"publish-{number:06}.parquet").write_bytes(content)

    async def life() -> None:
        async with Node(settings(tmp_path, facts=facts)) as node, Client(address(node)) as client:
            await client.publish({})

    run(life)
    assert (facts / "publish-000003.parquet").stat().st_size > 100


def test_a_node_goes_on_without_facts_that_it_cannot_write(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")

    async def life() -> None:
        async with Node(settings(tmp_path, facts=tmp_path / "file")) as node, Client(address(node)) as client:
            await client.publish({})
            assert (await client.status())["counters"]["notes"] == {"facts lost": 1}

    run(life)


def test_a_node_on_a_mast_cuts_fewer_parts_as_time_goes_by(tmp_path: Path) -> None:
    async def life() -> None:
        async with Node(settings(tmp_path, facts=tmp_path / "facts")) as node:
            facts, passed, parts = node.facts, 0.0, 0
            assert isinstance(facts, WrittenFacts)
            while passed < 86400:
                passed += facts.interval
                facts._cut += 1
                parts += 1
            assert parts < 1500, "not 17,280"

    run(life)


# --- Strangers at the API -------------------------------------------------------------------------------------------


def refusals(node: Node) -> Counter[str]:
    assert node.gate is not None
    return node.gate.counters


def test_connections_that_say_nothing_are_dropped_and_keep_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "MAX_CONNECTIONS", 20)
    monkeypatch.setattr(gate, "PATIENCE", 0.3)

    async def test() -> None:
        async with Node(settings(tmp_path, control="127.0.0.1:0")) as node:
            idle = []
            for _ in range(60):
                idle.append(await asyncio.open_connection(node.control.host, node.control.port))
            for _, writer in idle[:10]:
                writer.write(b"GET /status HT")  # and never the rest
            await until(lambda: refusals(node)["silent"] + refusals(node)["refused"] == 60)
            assert refusals(node)["refused"] == 40
            async with Client(address(node)) as client:
                assert (await client.status())["node"] == 1
            for _, writer in idle:
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()

    run(test)


@pytest.mark.parametrize(("peer", "address"), [("10.0.0.9", "10.0.0.9"), ("127.3.2.1", "127.0.0.1"), ("::1", "::1")])
def test_one_machine_gets_its_share_only_be_it_this_one(peer: str, address: str) -> None:
    class Server:
        connections: tuple[object, ...] = ()

    class Transport(asyncio.Transport):
        def get_extra_info(self, name: str, default: object = None) -> object:
            return (peer, 5)

    made = gate.Gate(Server(), most=1000)  # type: ignore[arg-type]
    for _ in range(gate.MAX_PER_ADDRESS):
        knock = gate.Knock(made)
        knock.transport = Transport()
        made.waiting.add(knock)
    assert not made.admits(address)
    assert made.admits("10.0.0.8")
    assert made.admits(None)


def test_nonsense_leaves_no_traceback(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from roamcast.live.log import log_to

    logging.getLogger("aiohttp.server").setLevel(logging.NOTSET)

    async def test() -> None:
        with open(os.devnull, "w") as nowhere:  # noqa: PTH123
            log_to(nowhere, 1, "info")
        logging.getLogger().addHandler(caplog.handler)
        async with Node(settings(tmp_path, control="127.0.0.1:0")) as node:
            for words in (
                b"nonsense\r\n\r\n",
                b"GET / HTTP/9.9\r\n\r\n",
                b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
            ):
                reader, writer = await asyncio.open_connection(node.control.host, node.control.port)
                writer.write(words)
                await reader.read(100)
                writer.close()
            async with aiohttp.ClientSession() as session:
                url = f"http://{node.control}"
                async with session.delete(f"{url}/subscriptions/{'9' * 5000}") as answer:
                    assert answer.status == 404
                    assert len(await answer.text()) < 200
                async with session.get(f"{url}/status") as answer:
                    assert answer.headers["X-Content-Type-Options"] == "nosniff"

    run(test)
    assert not [record for record in caplog.records if record.exc_info]


def test_a_token_that_everybody_may_read_is_refused(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef\n")
    token.chmod(0o644)
    with pytest.raises(ConfigError, match=r"open to every user of this machine; close it with: chmod 600"):
        read_token(token)
    token.chmod(0o600)
    assert read_token(token) == "0123456789abcdef"


# --- The radio ------------------------------------------------------------------------------------------------------


def test_an_interface_that_went_and_came_back_is_opened_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket stays bound to the interface that has gone; the name comes back with another number."""
    number: list[int | None] = [7]
    monkeypatch.setattr("roamcast.live.link.link.interface_index", lambda name: number[0])

    async def test() -> None:
        heard: list[bytes] = []
        probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        chosen = LinkSettings(interface="lo", address="127.255.255.255", port=port, bind="127.0.0.1")
        link = Link(
            Sealer(None, 1), chosen, on_message=lambda sender, payload: heard.append(payload), on_done=lambda *_: None
        )
        await link.open()
        before = link.own_address
        link.check()
        assert (link.own_address, link.counters["reopened"]) == (before, 0)
        number[0] = None  # it is away: nothing can be done
        link.check()
        number[0] = 8
        link.check()
        assert link.counters["reopened"] == 1
        assert link.own_address != before
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            other.sendto(Sealer(None, 2).seal(BROADCAST_DATA, BROADCAST, b"welcome back"), ("127.255.255.255", port))
        await until(lambda: heard == [b"welcome back"])
        await link.close()

    run(test)


@pytest.mark.skipif(bool(NO_NAMESPACES), reason=NO_NAMESPACES)
def test_a_cable_that_is_pulled_out_and_replaced_is_used_again_with_and_without_interface() -> None:
    words = ["unshare", "-n", sys.executable, "-m", "live.link.away"]
    paths = os.pathsep.join((ENVIRONMENT["PYTHONPATH"], str(Path(__file__).parents[1])))
    done = subprocess.run(
        words, env={**ENVIRONMENT, "PYTHONPATH": paths}, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    for counters in json.loads(done.stdout):
        assert counters["send-failed"] >= 1
        assert counters["reopened"] >= 1


def test_a_neighbour_with_another_key_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    key = tmp_path / "key"
    NetworkKey.new().save(key)

    async def test() -> None:
        async with Node(settings(tmp_path, key=key)) as node:
            stranger = Sealer(NetworkKey.new(), 2)
            for _ in range(100):
                node.link.datagrams([(stranger.seal(BROADCAST_DATA, BROADCAST, b"x"), ("127.0.0.1", 9))])
            await until(lambda: [line for line in caplog.messages if "ANOTHER KEY" in line])

    with caplog.at_level(logging.WARNING):
        run(test)


def test_a_node_with_another_protocol_is_named_in_the_log_the_status_and_the_health(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key = tmp_path / "key"
    NetworkKey.new().save(key)

    def said() -> list[tuple[int, str]]:
        lines = [record for record in caplog.records if "ANOTHER PROTOCOL" in record.getMessage()]
        return [
            (line.__dict__["roamcast_fields"]["other"], line.__dict__["roamcast_fields"]["protocol"]) for line in lines
        ]

    async def test() -> None:
        path = str(tmp_path / "1.socket")
        async with (
            Node(settings(tmp_path, key=key)) as node,
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(path)) as http,
        ):

            async def health() -> list[tuple[int, str]]:
                async with http.get("http://localhost/health") as answer:
                    assert answer.status == 200
                    return [(each["node"], each["protocol"]) for each in (await answer.json())["other_protocols"]]

            def hear(number: int, protocol: str) -> None:
                sealer = Sealer(NetworkKey.load(key), number, protocol=protocol)
                for _ in range(10):
                    datagram = sealer.seal(BROADCAST_DATA, BROADCAST, b"x")
                    node.link.datagrams([(datagram, ("127.0.0.1", 9))])

            assert await health() == []
            hear(2, "hint")
            hear(3, "of my own")
            own = "not installed here (number 879ae163)"
            assert await health() == [(2, "hint"), (3, own)]
            assert [(each["node"], each["protocol"]) for each in node.status()["other_protocols"]] == await health()
            assert "  2: runs another protocol, hint, and is ignored; heard " in "\n".join(_lines(node.status()))
            assert not node.link.neighbours
            await until(said)
            hear(2, "hint")
            hear(3, "flooding")
            assert await health() == [(2, "hint")], "node 3 has changed to ours"
            hear(2, "gossip")
            await until(lambda: len(said()) == 3)
            assert said() == [(2, "hint"), (3, own), (2, "gossip")]
            assert node.link.counters["protocol"] == 40

    with caplog.at_level(logging.WARNING):
        run(test)


def test_troubles_are_told_once_a_minute_and_replays_when_they_last(caplog: pytest.LogCaptureFixture) -> None:
    def lines() -> list[tuple[str, int]]:
        fields = [record.__dict__["roamcast_fields"] for record in caplog.records]
        caplog.clear()
        return [(told["reason"], told["frames"]) for told in fields]

    looked, counters = Troubles(), Counter[str]()
    with caplog.at_level(logging.WARNING):
        for second in range(60):
            counters.update({"key": 3, "send-failed": 2, "crowded": 1})
            looked.look(second, counters)
        assert lines() == [("key", 3), ("send-failed", 2), ("crowded", 1)]
        looked.look(60, counters)
        assert lines() == [("key", 177), ("send-failed", 118), ("crowded", 59)], "the rest, when it is time"
        for second in range(61, 600):
            looked.look(second, counters)
        assert lines() == [], "and nothing of what is over"
        for second in range(600, 640, 2):  # now and then, as in a healthy network
            counters["replay"] += 1
            looked.look(second, counters)
            looked.look(second + 1, counters)
        assert lines() == []
        for second in range(640, 700):
            counters["replay"] += 1
            looked.look(second, counters)
        assert lines() == [("replay", 25)], "with those that came before"


# --- Operation ------------------------------------------------------------------------------------------------------


def test_a_network_changes_its_key_and_loses_no_event(tmp_path: Path) -> None:
    """The procedure of docs/live.md: the new key beside the old everywhere, then first, then alone."""
    old, new = tmp_path / "old", tmp_path / "new"
    NetworkKey.new().save(old)
    NetworkKey.new().save(new)
    steps = [(old, None), (old, new), (new, old), (new, None)]

    async def test() -> None:
        for step in range(1, len(steps)):
            for publisher, subscriber in ((step - 1, step), (step, step - 1)):  # one node is changed before the other
                await exchange(*(steps[which] for which in (publisher, subscriber)))

    async def exchange(*keys: tuple[Path, Path | None]) -> None:
        from live.nodes import Relay

        relay = Relay()
        air = await relay.open()
        try:
            async with contextlib.AsyncExitStack() as stack:
                nodes = []
                for number, (key, other) in enumerate(keys, start=1):
                    chosen = settings(tmp_path, number, key=key, old_key=other, air=air)
                    nodes.append(await stack.enter_async_context(Node(chosen)))
                    relay.members.append(nodes[-1].link.own_address)
                publisher, subscriber = [await stack.enter_async_context(Client(address(node))) for node in nodes]
                events = await stack.enter_async_context(subscriber.subscribe("true"))
                sent = [await publisher.publish({"n": n}) for n in range(5)]
                async with asyncio.timeout(20):
                    assert [(await anext(events)).id for _ in sent] == sent
        finally:
            relay.close()

    run(test)


def test_an_old_key_needs_a_new_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--old-key needs --key"):
        NodeSettings(node=1, old_key=tmp_path, insecure=True)


def test_health_and_metrics(tmp_path: Path) -> None:
    async def test() -> None:
        async with Node(settings(tmp_path, control="127.0.0.1:0")) as node, Client(address(node)) as client:
            await client.publish({})
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://{node.control}/health") as answer:
                    assert (answer.status, await answer.json()) == (200, {"healthy": True, "other_protocols": []})
                async with session.get(f"http://{node.control}/metrics") as answer:
                    assert answer.headers["Content-Type"] == metrics.CONTENT_TYPE_LATEST
                    lines = (await answer.text()).splitlines()
            assert 'roamcast_node_total{what="published"} 1.0' in lines
            assert "roamcast_neighbours 0.0" in lines
            assert 'roamcast_messages_total{kind="data",what="packets"} 1.0' in lines
            node._store_failed(StoreError("the disk is full"))
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"http://{node.control}/health") as answer,
            ):
                assert (answer.status, await answer.json()) == (503, {"error": "the disk is full"})

    run(test)


def test_systemd_is_told_that_the_node_is_ready_and_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(str(tmp_path / "notify"))
        ear.settimeout(60)
        monkeypatch.setitem(ENVIRONMENT, "NOTIFY_SOCKET", str(tmp_path / "notify"))
        with process(tmp_path) as node:
            node.ready()
            assert ear.recv(100) == b"READY=1" or ear.recv(100) == b"READY=1"
            assert ear.recv(100) == b"WATCHDOG=1"


def test_status_can_be_watched(tmp_path: Path) -> None:
    with process(tmp_path) as node:
        node.ready()
        words = [sys.executable, "-m", "roamcast", "status", "--json", "--watch", "0.1", "--api", node.control]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as watching:
            assert watching.stdout is not None
            times = [json.loads(watching.stdout.readline())["now_s"] for _ in range(3)]
            watching.kill()
    assert times == sorted(set(times))


def test_keys_token_and_all_are_read_again_on_sighup_and_nothing_is_lost(tmp_path: Path) -> None:
    """The procedure of docs/live.md without a restart: the contents of the files are exchanged."""
    from live.nodes import network

    files = tmp_path / "key", tmp_path / "other"
    old, new = (NetworkKey.new() for _ in files)

    def put(first: NetworkKey, second: NetworkKey) -> None:
        for path, key in zip(files, (first, second), strict=True):
            path.unlink(missing_ok=True)
            key.save(path)

    put(old, old)

    async def test() -> None:
        async with (
            network(tmp_path, key=files[0], old_key=files[1]) as (one, two),
            Client(address(one)) as publisher,
            Client(address(two)) as subscriber,
            subscriber.subscribe() as events,
        ):
            sessions = {one._sealer.session}
            for step in ((old, new), (new, old), (new, new)):
                put(*step)
                for node in (one, two):
                    node.reload()
                    number = await publisher.publish({})
                    async with asyncio.timeout(10):
                        assert (await anext(events)).id == number
                sessions.add(one._sealer.session)
            assert len(sessions) == 2, "a session for each key"
            assert (await publisher.status())["key"] == new.fingerprint
            files[0].write_text("damaged")
            one.reload()
            assert (await publisher.status())["key"] == new.fingerprint, "what cannot be read stays"

    run(test)


def test_a_token_that_changed_holds_for_the_next_request(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef")
    token.chmod(0o600)

    async def test() -> None:
        async with (
            Node(settings(tmp_path, token_file=token)) as node,
            Client(address(node), "0123456789abcdef") as client,
        ):
            await client.status()
            token.write_text("fedcba9876543210")
            node.reload()
            with pytest.raises(ClientError, match="a token is needed"):
                await client.status()
            async with Client(address(node), "fedcba9876543210") as again:
                await again.status()

    run(test)


def test_sighup_does_not_end_a_node(tmp_path: Path) -> None:
    with process(tmp_path, 1) as node:
        node.ready()
        node.popen.send_signal(signal.SIGHUP)
        assert node.popen.stderr is not None
        while json.loads(node.popen.stderr.readline())["event"] != "reloaded":
            pass
        assert node.end(signal.SIGTERM)[0] == 0
