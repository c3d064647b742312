"""The bridge without I/O: both ends against obvious servers, cut and killed wherever it hurts."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.errors import ConfigError
from roamcast.live.mqtt import bridge_state
from roamcast.live.mqtt.bridge import BridgeRefused, BrokerSide, Full, NodeSide
from roamcast.live.mqtt.bridge_state import BridgeState
from roamcast.live.mqtt.packets import (
    Connack,
    Connect,
    Disconnect,
    Packet,
    PacketError,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
)
from roamcast.live.mqtt.peer import Target
from roamcast.live.mqtt.topics import ApplicationMessage

EVENT = {"user": (("roamcast-id", "7:1"),)}


class Broker:
    """QoS 2 in both directions as [4.3.3] has it: the state of one session, which outlives its connections."""

    def __init__(self) -> None:
        self.got: list[str] = []
        """Ids of the events that it has passed on."""
        self.has_session = False
        self._received: set[int] = set()
        self._sending: dict[int, Publish | Pubrel] = {}
        self._next = 0

    def receive(self, packet: Packet) -> list[Packet]:
        match packet:
            case Connect():
                present, self.has_session = self.has_session, True
                again = [_again(sent) for sent in self._sending.values()]
                return [Connack(present), *again]
            case Subscribe():
                return [Suback(packet.packet, (2,) * len(packet.filters))]
            case Publish():
                if packet.packet not in self._received:
                    self._received.add(packet.packet)
                    self.got.append(dict(packet.properties["user"])["roamcast-id"])
                return [Pubrec(packet.packet)]
            case Pubrel():
                self._received.discard(packet.packet)
                return [Pubcomp(packet.packet)]
            case Pubrec():
                self._sending[packet.packet] = Pubrel(packet.packet)
                return [Pubrel(packet.packet)]
            case Pubcomp():
                self._sending.pop(packet.packet, None)
        return []

    def publish(self, payload: bytes) -> Publish:
        self._next += 1
        message = self._sending[self._next] = Publish("t", payload, 2, self._next)
        return message


def _again(sent: Publish | Pubrel) -> Packet:
    return sent if isinstance(sent, Pubrel) else Publish(sent.topic, sent.payload, 2, sent.packet, True)


class Rig:
    """A bridge's side towards a broker, with a wire that can be cut and a process that can be killed."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "state"
        self.broker = Broker()
        self.start()

    def start(self) -> None:
        self.state = BridgeState(self.path)
        self.pending: list[Packet] = []
        self.side = BrokerSide(self.state, ("#",), self.pending.append)
        self.connect()

    def connect(self) -> None:
        self.side.lost()
        self.pending.clear()
        self.to_broker: list[Packet] = [self.side.greeting(None, None)]
        self.to_bridge: list[Packet] = []

    def flush(self) -> None:
        self.state.commit()
        self.to_broker += self.pending
        self.pending.clear()

    def kill(self) -> None:
        """What was not committed never happened."""
        self.state._connection.rollback()
        self.state._connection.close()
        self.start()

    def do(self, step: str, number: int) -> None:
        match step:
            case "event":
                self.state.take_out(f"7:{number}", ApplicationMessage("t", user=(("roamcast-id", f"7:{number}"),)))
                self.side.pump()
                self.flush()
            case "message":
                self.to_bridge.append(self.broker.publish(b"%d" % number)) if self.side.connected else None
            case "to broker" if self.to_broker:
                self.to_bridge += self.broker.receive(self.to_broker.pop(0))
            case "to bridge" if self.to_bridge:
                self.side.receive(self.to_bridge.pop(0))
                self.flush()
            case "to bridge, killed" if self.to_bridge:
                self.side.receive(self.to_bridge.pop(0))
                self.kill()
            case "to bridge, killed after commit" if self.to_bridge:
                self.side.receive(self.to_bridge.pop(0))
                self.state.commit()
                self.kill()
            case "cut":
                self.connect()

    def finish(self) -> None:
        while self.to_broker or self.to_bridge:
            self.do("to broker", 0)
            self.do("to bridge", 0)


STEPS = st.lists(
    st.sampled_from(
        ["event", "message", "cut", "to bridge, killed", "to bridge, killed after commit"]
        + ["to broker", "to bridge"] * 4
    ),
    max_size=60,
)


@settings(max_examples=40)
@given(STEPS)
def test_everything_is_passed_on_once_whatever_is_cut_or_killed(steps: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rig = Rig(Path(folder))
        published = []
        for number, step in enumerate(steps):
            if step == "message" and rig.side.connected:
                published.append(b"%d" % number)
            rig.do(step, number)
        rig.connect()
        rig.finish()
        assert rig.broker.got == [f"7:{number}" for number, step in enumerate(steps) if step == "event"]
        assert [message.payload for _, message in rig.state.inbox(0, 1000)] == published
        assert rig.state.counts() == {"outbox": 0, "inbox": len(published), "received": 0}
        rig.state.close()


def test_a_lost_pubcomp_is_asked_for_again_and_not_the_message(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.finish()
    rig.do("event", 1)
    rig.do("to broker", 0)
    rig.do("to bridge", 0)
    rig.do("to broker", 0)  # PUBREL
    rig.connect()
    rig.finish()
    assert rig.broker.got == ["7:1"]
    assert rig.state.counts()["outbox"] == 0


def test_a_broker_that_forgets_gets_again_what_was_not_complete(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.finish()
    for number in (1, 2):
        rig.do("event", number)
    rig.do("to broker", 0)
    rig.do("to bridge", 0)  # PUBREC of the first
    assert [outgoing.released for outgoing in rig.state.sent()] == [True, False]
    rig.broker = Broker()
    rig.connect()
    rig.finish()
    assert rig.broker.got == ["7:1", "7:2"]


def test_a_broker_that_forgets_its_pubrel_is_understood(tmp_path: Path) -> None:
    """As Mosquitto 2.0.11 does, if it is restarted right after it sent PUBREL."""
    rig = Rig(tmp_path)
    rig.finish()

    def take(payload: bytes, *, dup: bool) -> None:
        rig.side.receive(Publish("t", payload, 2, 28, dup))
        rig.side.receive(Pubrel(28))
        rig.flush()

    take(b"27", dup=False)
    take(b"27", dup=True)
    assert [message.payload for _, message in rig.state.inbox(0, 10)] == [b"27"]
    take(b"other", dup=True)  # another one, whose first copy was lost
    assert rig.state.counts()["inbox"] == 2
    take(b"other", dup=True)  # by now it is known that this broker uses an identifier again at once
    assert rig.state.counts()["inbox"] == 3


# --- Towards the node -----------------------------------------------------------------------------------------------


class Node:
    def __init__(self, path: Path) -> None:
        self.state = BridgeState(path / "state")
        self.sent: list[Packet] = []
        self.side = NodeSide(self.state, ("#",), self.sent.append, "broker:1883")
        self.side.receive(Connack(True, 0, {"receive_maximum": 2}))
        self.sent.clear()


def test_an_event_goes_out_once_however_often_it_comes(tmp_path: Path) -> None:
    node = Node(tmp_path)
    for packet in (1, 2):
        node.side.receive(Publish("a", b"x", 1, packet, properties=EVENT))
    assert node.sent == [Puback(1), Puback(2)]
    outgoing = node.state.next_out()
    assert outgoing is not None
    assert (outgoing.event, node.state.next_out()) == ("7:1", None)
    node.state.complete(outgoing.packet)
    node.side.receive(Publish("a", b"x", 1, 3, properties=EVENT))
    assert node.state.counts()["outbox"] == 0


def test_no_loops(tmp_path: Path) -> None:
    node = Node(tmp_path)
    echo = {"user": (("bridged", "broker:1883/17"), ("roamcast-id", "7:1"))}
    other = {"user": (("bridged", "elsewhere:1883/17"), ("roamcast-id", "7:2"))}
    node.side.receive(Publish("a", b"x", 1, 1, properties=echo))
    assert (node.sent, node.state.counts()["outbox"]) == ([Puback(1)], 0)
    node.side.receive(Publish("a", b"x", 1, 2, properties=other))
    assert node.state.counts()["outbox"] == 1
    broker = BrokerSide(node.state, ("#",), node.sent.append)
    broker.receive(Connack(True))
    node.sent.clear()
    broker.receive(Publish("a", b"x", 2, 3, properties=EVENT))
    broker.receive(Pubrel(3))
    assert (node.sent, node.state.counts()["inbox"]) == ([Pubrec(3), Pubcomp(3)], 0)


def test_messages_reach_the_node_with_the_name_of_the_broker_and_within_its_window(tmp_path: Path) -> None:
    node = Node(tmp_path)
    for payload in (b"1", b"2", b"3"):
        node.state.take_in(ApplicationMessage("t", payload, user=(("unit", "K"),)), 0)
    node.side.pump()
    one, two = (packet for packet in node.sent if isinstance(packet, Publish))
    assert (one.qos, one.payload, two.payload) == (1, b"1", b"2")
    unit, (name, number) = one.properties["user"]
    assert (unit, name, number.rpartition("/")[0]) == (("unit", "K"), "bridged", "broker:1883")
    node.side.receive(Puback(one.packet))
    assert isinstance(node.sent[-1], Publish)
    assert node.sent[-1].payload == b"3"
    assert node.state.counts()["inbox"] == 2
    with pytest.raises(ConnectionError, match="too much to do"):
        node.side.receive(Puback(two.packet, 0x97))
    node.side.lost()
    node.sent.clear()
    node.side.receive(Connack(True))
    again = [packet for packet in node.sent if isinstance(packet, Publish)]
    assert [packet.payload for packet in again] == [b"2", b"3"]
    assert again[0].properties == two.properties  # the same number: a copy can be recognised
    node.side.receive(Puback(again[0].packet, 0x83))  # it will never take it
    assert node.state.counts()["inbox"] == 1


# --- What a bridge refuses ------------------------------------------------------------------------------------------


def test_a_server_that_will_never_take_it(tmp_path: Path) -> None:
    side = BrokerSide(BridgeState(tmp_path / "state"), ("secret/#",), lambda packet: None)
    with pytest.raises(BridgeRefused, match="refuses the connection: reason 0x86"):
        side.receive(Connack(False, 0x86))
    with pytest.raises(ConnectionError, match="full"):
        side.receive(Connack(False, 0x89, {"reason_string": "full"}))
    with pytest.raises(BridgeRefused, match="has no QoS 2"):
        side.receive(Connack(False, 0, {"maximum_qos": 1}))
    with pytest.raises(BridgeRefused, match="subscribe to secret/#"):
        side.receive(Suback(1, (0x87,)))
    with pytest.raises(ConnectionError, match="0x8b"):
        side.receive(Disconnect(0x8B))
    with pytest.raises(PacketError):
        side.receive(Puback(1))


def test_what_does_not_fit_is_left_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge_state, "MAX_ROWS", 1)
    node = Node(tmp_path)
    node.side.receive(Publish("a", b"x", 1, 1, properties=EVENT))
    with pytest.raises(Full):
        node.side.receive(Publish("a", b"x", 1, 2, properties={"user": (("roamcast-id", "7:2"),)}))
    assert node.sent == [Puback(1)]


def test_a_state_has_one_bridge(tmp_path: Path) -> None:
    state = BridgeState(tmp_path / "state")
    with pytest.raises(ConfigError, match="another bridge uses it"):
        BridgeState(tmp_path / "state")
    known = state.client_id
    state.close()
    again = BridgeState(tmp_path / "state")
    assert again.client_id == known
    again.close()
    (tmp_path / "text").write_text("not a database, but long enough to be read as one" * 100)
    with pytest.raises(ConfigError, match="cannot be used"):
        BridgeState(tmp_path / "text")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://a", "expected mqtt://HOST"),
        ("mqtt://", "expected mqtt://HOST"),
        ("mqtt://a:x", "is not a URL"),
        ("mqtt://a/topic", "expected mqtt://HOST"),
        ("mqtt://u:secret@a", "--password-file"),
    ],
)
def test_what_is_no_broker_is_refused(url: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Target.of_broker(url, None, None)


def test_where_a_broker_is() -> None:
    assert Target.of_broker("mqtt://u%40x@a", "p", None) == Target(("a", 1883, ""), None, "u@x", b"p")  # type: ignore[arg-type]
    assert Target.of_broker("mqtts://[::1]:9", None, None).address == ("::1", 9, "")
    assert Target.of_broker("mqtts://a", None, None).address.port == 8883
