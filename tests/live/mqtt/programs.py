"""Programs that others wrote, for tests of MQTT: where they are, and a Mosquitto that can be restarted."""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from live.nodes import ENVIRONMENT
from roamcast.live.mqtt.bridge import BrokerSide
from roamcast.live.mqtt.bridge_state import BridgeState
from roamcast.live.mqtt.peer import Peer, Target
from roamcast.live.mqtt.topics import ApplicationMessage
from roamcast.live.places import Address

PATIENCE = 60.0
NPM = Path(sys.prefix) / "npm" / "node_modules"


def program(name: str) -> str:
    """The path of a program; without it the test is skipped, and says so."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if found is None:
        pytest.skip(f"{name} is not installed (apt-get install mosquitto mosquitto-clients nodejs)")
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait(holds: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.02)


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


class Mosquitto:
    """A broker with a database, which it writes when it ends, and every second."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._config = folder / "mosquitto.conf"
        lines = [f"listener {self.port} 127.0.0.1", "allow_anonymous true", "user root", "max_queued_messages 0"]
        lines += ["persistence true", f"persistence_location {folder}/", "autosave_interval 1"]
        self._config.write_text("\n".join(lines) + "\n")
        self._program = program("mosquitto")
        self.start()

    def start(self) -> None:
        self._popen = subprocess.Popen([self._program, "-c", str(self._config)], stderr=subprocess.DEVNULL)
        wait(lambda: answers(self.port), "Mosquitto")

    def end(self, number: int = signal.SIGTERM) -> None:
        if self._popen.poll() is None:
            self._popen.send_signal(number)
            self._popen.wait(PATIENCE)

    def restart(self, number: int = signal.SIGTERM) -> None:
        self.end(number)
        self.start()


class BridgeProcess:
    """A real `roamcast bridge`."""

    def __init__(self, folder: Path, api: str, port: int) -> None:
        words = ["bridge", f"mqtt://127.0.0.1:{port}", "--api", api, "--state", str(folder / "bridge.state")]
        self._words = [sys.executable, "-m", "roamcast", *words, "--out", "out/#", "--in", "in/#"]
        self._log = (folder / "bridge.log").open("ab")
        self.start()

    def start(self) -> None:
        self._popen = subprocess.Popen(
            self._words, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        assert self._popen.stdout is not None
        assert "ready" in self._popen.stdout.readline(), "the bridge ended: see bridge.log"

    def end(self, number: int = signal.SIGTERM) -> int:
        self._popen.send_signal(number)
        self._popen.communicate(timeout=PATIENCE)
        return self._popen.returncode

    def close(self) -> None:
        if self._popen.poll() is None:
            self.end(signal.SIGKILL)
        self._log.close()


class Paho:
    """paho with a session that lasts, as a user has it: one process that outlives the broker's restarts."""

    def __init__(self, name: str, port: int, topic_filter: str | None = None) -> None:
        self.got: list[tuple[bytes, dict[str, str]]] = []
        """Payloads, and user properties."""
        self._client = paho.Client(CallbackAPIVersion.VERSION2, name, protocol=MQTTProtocolVersion.MQTTv5)
        self._client.reconnect_delay_set(1, 1)
        self._client.max_queued_messages_set(0)
        there = threading.Event()
        self._client.on_subscribe = lambda *_: there.set()
        self._client.on_message = self._message
        lasting = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        lasting.SessionExpiryInterval = 3600
        self._client.connect("127.0.0.1", port, clean_start=False, properties=lasting)
        self._client.loop_start()
        if topic_filter is not None:
            wait(self._client.is_connected, "paho")
            self._client.subscribe(topic_filter, qos=2)
            assert there.wait(PATIENCE)

    def _message(self, client: Any, data: Any, message: paho.MQTTMessage) -> None:  # noqa: ANN401  # of paho
        pairs = dict(getattr(message.properties, "UserProperty", []))
        self.got.append((bytes(message.payload), pairs))

    def publish(self, topic: str, number: int) -> None:
        self._client.publish(topic, str(number), qos=1)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


class _All(BrokerSide):
    def is_ours(self, message: ApplicationMessage) -> bool:
        return False


class Exact:
    """A client with QoS 2 that neither loses nor doubles when its broker is restarted: the bridge's own side.

    With paho at the ends and Mosquitto restarted every second, some messages come twice, and as often to a witness that
    has no bridge: Mosquitto 2.0.11 repeats a PUBLISH after its PUBREL, which paho takes for another one; and paho
    itself repeats a PUBLISH after its PUBREL if more are under way than it may send.
    """

    def __init__(self, folder: Path, name: str, port: int, topic_filter: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._there = threading.Event()
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, args=(folder / f"{name}.state", port, topic_filter))
        self._thread.start()
        assert self._there.wait(PATIENCE)

    def _run(self, path: Path, port: int, topic_filter: str) -> None:
        async def serve() -> None:
            self._peer = peer = Peer(Target(Address("127.0.0.1", port)))
            self._state = BridgeState(path)
            peer.side = _All(self._state, (topic_filter,), peer.send)
            self._task = asyncio.current_task()
            watching = asyncio.create_task(peer.reached.wait())
            watching.add_done_callback(lambda _: self._there.set())
            try:
                await peer.run()
            finally:
                watching.cancel()
                self._state.close()

        with contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(serve())
        self._loop.close()

    def publish(self, topic: str, number: int) -> None:
        def publish() -> None:
            self._state.take_out(str(number), ApplicationMessage(topic, str(number).encode()))
            self._peer.wake()

        self._loop.call_soon_threadsafe(publish)

    @property
    def got(self) -> list[ApplicationMessage]:
        async def read() -> list[ApplicationMessage]:
            return [message for _, message in self._state.inbox(0, 10**6)]

        return asyncio.run_coroutine_threadsafe(read(), self._loop).result(PATIENCE)

    def close(self) -> None:
        assert self._task is not None
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(PATIENCE)


def node_js(script: str, **variables: str) -> str:
    """Runs a script with MQTT.js."""
    node = program("node")
    if not (NPM / "mqtt").is_dir():
        pytest.skip(f"MQTT.js is not installed (npm install --prefix {NPM.parent} mqtt@5)")
    environment = {**os.environ, "NODE_PATH": str(NPM), **variables}
    done = subprocess.run(
        [node, "-e", script], env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextlib.contextmanager
def ended(*things: Any) -> Iterator[None]:  # noqa: ANN401  # with close or end
    try:
        yield
    finally:
        for thing in things:
            (thing.close if hasattr(thing, "close") else thing.end)()
