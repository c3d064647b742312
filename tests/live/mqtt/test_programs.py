"""Real MQTT clients, and a real broker as the bridge's peer. The sessions of docs/mqtt.md are run here."""

import asyncio
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from live.mqtt.programs import BridgeProcess, Exact, Mosquitto, Paho, ended, free_port, node_js, program, wait
from live.nodes import Process, process
from roamcast.live.client import Client

pytestmark = pytest.mark.slow

DOCS = (Path(__file__).parents[3] / "docs/mqtt.md").read_text(encoding="utf-8")


class Served:
    """A node's process that speaks MQTT, and can be started again."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.port = folder, free_port()
        self._options = ("--mqtt", f"127.0.0.1:{self.port}", "--sync", "normal", *options)
        self.start()

    def start(self) -> None:
        self.process = Process(self.folder, 7, *self._options)
        assert self.process.ready()["mqtt"] == f"127.0.0.1:{self.port}"

    def restart(self, number: int) -> None:
        self.process.end(number)
        self.start()

    def end(self) -> None:
        if self.process.popen.poll() is None:
            self.process.end(signal.SIGKILL)

    @property
    def api(self) -> str:
        return self.process.control


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path)
    with ended(served):
        yield served


# --- The sessions of the documentation ------------------------------------------------------------------------------


def sessions() -> list[tuple[str, list[str], list[str]]]:
    """The printed sessions: name, commands, and the lines that follow."""
    found = []
    for name, body in re.findall(
        r"<!-- not run: tests/live/mqtt/test_programs.py runs it: (\w+) -->\n```console\n(.*?)```", DOCS, re.S
    ):
        lines = body.splitlines()
        commands = [line[2:] for line in lines if line.startswith("$ ")]
        found.append((name, commands, [line for line in lines if not line.startswith("$ ")]))
    return found


@pytest.mark.parametrize(("name", "commands", "printed"), sessions(), ids=[session[0] for session in sessions()])
def test_a_session_of_the_documentation(node: Served, name: str, commands: list[str], printed: list[str]) -> None:
    """Commands that end with & wait in the background; ids differ from run to run."""
    environment = {**os.environ, "ROAMCAST_API": node.api}
    background: list[subprocess.Popen[str]] = []
    got: list[str] = []
    for command in commands:
        words = shlex.split(command.removesuffix("&"), comments=True)
        program(words[0] if words[0] != "roamcast" else "python3")
        if words[0] == "roamcast":
            words = [sys.executable, "-m", *words]
        elif words[0].startswith("mosquitto_"):
            words += ["-p", str(node.port)]
        started = subprocess.Popen(
            words, env=environment, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]
        )
        if command.endswith("&"):
            background.append(started)
            wait(lambda: _subscriptions(node) >= len(background), "the subscription")
        else:
            got += started.communicate(timeout=60)[0].splitlines()
    for started in background:
        got += started.communicate(timeout=60)[0].splitlines()
    assert [_without_ids(line) for line in got] == [_without_ids(line) for line in printed]


def _subscriptions(node: Served) -> int:
    async def count() -> int:
        async with Client(node.api) as client:
            return len((await client.status())["subscriptions"])

    return asyncio.run(count())


def _without_ids(line: str) -> str:
    return re.sub(r"7:\d+|\b\d{10,}(\.\d+)?\b", "ID", line)


def test_every_session_of_the_documentation_is_run() -> None:
    assert [name for name, _, _ in sessions()] == ["mosquitto", "content", "retained"]


# --- Clients --------------------------------------------------------------------------------------------------------

SCRIPT = """
const mqtt = require('mqtt');
const client = mqtt.connect(process.env.URL, {protocolVersion: Number(process.env.LEVEL), clean: true});
const got = [];
client.on('error', problem => { console.error(problem); process.exit(1); });
client.on('message', (topic, payload, packet) => {
  got.push([topic, payload.toString(), packet.qos]);
  if (got.length === 3) { console.log(JSON.stringify(got)); client.end(); }
});
client.on('connect', async () => {
  await client.subscribeAsync(['home/#', '$filter/' + encodeURIComponent('price < 20')], {qos: 1});
  await client.publishAsync('home/kitchen/temperature', '21.5', {qos: 1});
  await client.publishAsync('offer', JSON.stringify({price: 12.5}), {qos: Number(process.env.LEVEL) === 5 ? 1 : 2});
  await client.publishAsync('offer', JSON.stringify({price: 25}), {qos: 1});
  await client.publishAsync('home/lamp', 'ON', {qos: 0});
});
"""


@pytest.mark.parametrize("level", ["4", "5"])
def test_mqtt_js(node: Served, level: str) -> None:
    printed = node_js(SCRIPT, URL=f"mqtt://127.0.0.1:{node.port}", LEVEL=level)
    assert printed == (
        '[["home/kitchen/temperature","21.5",1],["offer","{\\"price\\": 12.5}",1],["home/lamp","ON",0]]\n'.replace(
            ": ", ":"
        )
    )


def test_a_killed_client_leaves_its_will_and_a_silent_one_too(node: Served) -> None:
    sub = [program("mosquitto_sub"), "-p", str(node.port), "-V", "mqttv5"]
    watching = subprocess.Popen([*sub, "-t", "gone/#", "-v", "-C", "2", "-W", "20"], stdout=subprocess.PIPE, text=True)
    wills: list[subprocess.Popen[bytes]] = []
    for name, alive in (("killed", "60"), ("silent", "5")):
        words = [*sub, "-i", name, "-k", alive, "-t", "x", "--will-topic", f"gone/{name}", "--will-payload", "bye"]
        wills.append(subprocess.Popen(words))
    try:
        wait(lambda: _subscriptions(node) == 3, "three subscriptions")
        wills[1].send_signal(signal.SIGSTOP)  # its Keep Alive is over after 7.5 s
        wills[0].kill()
        assert watching.communicate(timeout=60)[0].splitlines() == ["gone/killed bye", "gone/silent bye"]
    finally:
        for one in wills:
            one.kill()
            one.wait()
        watching.kill()
        watching.wait()


def test_paho_gets_everything_over_kill_9_of_the_node(tmp_path: Path) -> None:
    """Acknowledged means stored, and what was not acknowledged is sent again: at least once, both ways."""
    node = Served(tmp_path)
    receiver = Paho("receiver", node.port, "in/#")
    sender = Paho("sender", node.port)
    with ended(node, receiver, sender):
        for number in range(60):
            sender.publish("in/x", number)
            if number % 30 == 10:
                node.restart(signal.SIGKILL)
        wait(lambda: {int(payload) for payload, _ in receiver.got} == set(range(60)), "all messages")
        ids = {(payload, user["roamcast-id"]) for payload, user in receiver.got}
        print(f"60 messages, 2 kills: {len(ids)} events, {len(receiver.got)} arrived")


# --- The bridge -----------------------------------------------------------------------------------------------------


class Ends:
    """A publisher and a subscriber at each end of a bridge."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.node = Served(folder)
        self.broker = Mosquitto(folder)
        self.bridge = BridgeProcess(folder, self.node.api, self.broker.port)
        self.receiver = Exact(folder, "receiver", self.broker.port, "out/#")
        self.sender = Exact(folder, "sender", self.broker.port, "nothing")
        asyncio.run(self._subscribe())
        self.published: dict[int, int] = {}
        """Ids of the events that the node has acknowledged, by number."""
        self.arrived: list[tuple[int, str]] = []
        """Numbers and `bridged` of the events that came from the broker."""

    async def _subscribe(self) -> None:
        async with Client(self.node.api) as client, client.subscribe('type = "in"', id=5, durable=True):
            pass

    async def publish(self, numbers: range) -> None:
        async with Client(self.node.api) as client:
            for number in numbers:
                self.published[number] = await client.publish({"level1": "x"}, "out", str(number).encode())
                self.sender.publish("in/x", number)
                await asyncio.sleep(0.01)

    async def collect(self, enough: int) -> None:
        """Reads what came from the broker, until there is enough, or nothing more."""
        async with Client(self.node.api) as client, client.subscribe('type = "in"', id=5, durable=True) as events:
            while len({number for number, _ in self.arrived}) < enough:
                try:
                    async with asyncio.timeout(15):
                        event = await anext(events)
                except TimeoutError:
                    return
                self.arrived.append((int(event.payload), str(event.attributes["bridged"])))

    def numbers(self) -> list[int]:
        return [int(message.payload) for message in self.receiver.got]

    def close(self) -> None:
        for thing in (self.receiver, self.sender, self.bridge):
            thing.close()
        self.broker.end()
        self.node.end()

    def completed(self) -> set[str]:
        """The events of which the broker has said that it has them."""
        with sqlite3.connect(self.folder / "bridge.state") as state:
            return {event for (event,) in state.execute("SELECT event FROM done")}


def _name(event: int) -> str:
    return f"{event >> 32}:{event & 0xFFFFFFFF}"


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[Ends]:
    both = Ends(tmp_path)
    with ended(both):
        yield both


def test_a_broker_that_is_restarted_20_times_gets_and_gives_everything_once(ends: Ends) -> None:
    every = 10
    for life in range(20):
        asyncio.run(ends.publish(range(life * every, (life + 1) * every)))
        ends.broker.restart()
    count = 20 * every
    wait(lambda: len(ends.receiver.got) >= count, "everything to arrive at the broker")
    asyncio.run(ends.collect(count))
    assert sorted(ends.numbers()) == list(range(count))
    assert sorted(number for number, _ in ends.arrived) == list(range(count))
    print(f"{count} events each way, 20 restarts of the broker: 0 lost, 0 doubled")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_bridge_and_node_may_be_restarted_or_killed(ends: Ends, number: signal.Signals) -> None:
    for life in range(4):
        asyncio.run(ends.publish(range(life * 10, (life + 1) * 10)))
        if life % 2:
            assert ends.bridge.end(number) == (0 if number == signal.SIGTERM else -signal.SIGKILL)
            ends.bridge.start()
        else:
            ends.node.restart(number)
    wait(lambda: set(ends.numbers()) == set(range(40)), "everything to arrive at the broker")
    asyncio.run(ends.collect(40))
    assert sorted(ends.numbers()) == list(range(40))  # QoS 2 is exact
    assert {arrived for arrived, _ in ends.arrived} == set(range(40))
    assert len(set(ends.arrived)) == 40  # a copy has the same `bridged`
    print(f"40 events each way, 4 times {number.name}: into the node {len(ends.arrived) - 40} doubled")


def test_kill_9_of_the_broker_is_told_apart(ends: Ends) -> None:
    for life in range(6):
        asyncio.run(ends.publish(range(life * 20, (life + 1) * 20)))
        ends.broker.restart(signal.SIGKILL)
    asyncio.run(ends.publish(range(120, 121)))  # the last one arrives after all others
    wait(lambda: 120 in ends.numbers(), "the last event")
    asyncio.run(ends.collect(121))
    ends.bridge.end()
    found: dict[int, set[str]] = {}
    got = ends.receiver.got
    for message in got:
        found.setdefault(int(message.payload), set()).add(dict(message.user)["roamcast-id"])
    assert all(ids == {_name(ends.published[number])} for number, ids in found.items())  # copies have the same id
    lost = set(ends.published) - set(found)
    completed = ends.completed()
    assert {_name(ends.published[number]) for number in lost} <= completed  # the broker had said that it has them
    doubled = len(got) - len(found)
    print(f"121 events, 6 kills of the broker: {doubled} doubled, {len(lost)} lost after the broker had taken them")


def test_a_bridge_says_what_is_missing(tmp_path: Path) -> None:
    def bridge(*words: Any) -> str:  # noqa: ANN401
        from live.nodes import ENVIRONMENT

        command = [sys.executable, "-m", "roamcast", "bridge", *words]
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2, done
        return done.stderr

    with process(tmp_path, 7) as node:
        node.ready()
        assert "start it with --mqtt" in bridge("mqtt://127.0.0.1:1", "--api", node.control)
        assert "expected mqtt://HOST" in bridge("http://a", "--api", node.control)
