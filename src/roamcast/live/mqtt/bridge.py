"""A bridge between a node and an MQTT 5 broker, both ways: what its two ends say. `peer.py` connects them.

The rules this file owns:

* **Exactly once towards the broker, with QoS 2**, over restarts of the bridge, the node and the broker, as long as the
  broker keeps its session; if it forgets, what was under way is sent again. Every message has its event's id as the
  user property `roamcast-id`, so that a copy can be recognised. (Libraries keep this state in memory: hence our own.)
* **Once into the node**, at least: if the bridge or the node ends between storing an event and recording that, it is
  published again. Every event from a broker has the attribute `bridged`, the broker's name and a number that repeats
  only with the message.
* **No loops.** A message with `roamcast-id` came from nodes, and does not go back to them; an event that is `bridged`
  from this broker does not go back to it.
"""

import abc
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from roamcast.errors import RoamcastError
from roamcast.live import log
from roamcast.live.mqtt.bridge_state import BridgeState
from roamcast.live.mqtt.packets import (
    Connack,
    Connect,
    Disconnect,
    Packet,
    PacketError,
    Pingresp,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Reason,
    Suback,
    Subscribe,
    WantedTopic,
    free_identifier,
)
from roamcast.live.mqtt.topics import ApplicationMessage

KEEP_ALIVE: Final = 30
"""Seconds."""
EXPIRY: Final = 30 * 24 * 3600
"""Seconds for which both sides keep the session of a bridge that is away."""
WINDOW: Final = 64
"""Messages without acknowledgement, in either direction."""
ID: Final = "roamcast-id"
BRIDGED: Final = "bridged"
_FOR_GOOD: Final = (0x84, 0x85, 0x86, 0x87, 0x8A, 0x8C)
"""Refusals of a CONNECT that do not pass: version, Client Identifier, password, not authorized, banned, method."""


class BridgeRefused(RoamcastError):
    """A server that will not take this bridge, however often it tries."""


class Full(RoamcastError):
    """There is no room for more from this side."""


class Side(abc.ABC):
    """One end of a bridge, without I/O."""

    what = ""

    def __init__(self, state: BridgeState, filters: tuple[str, ...], send: Callable[[Packet], None]) -> None:
        self.state = state
        self.connected = False
        self.wake_other: Callable[[], None] = lambda: None
        """Called when something waits for the other side."""
        self._filters = filters
        self._send = send
        self._window = WINDOW

    def greeting(self, user: str | None, password: bytes | None) -> Connect:
        properties = {"session_expiry": EXPIRY, "receive_maximum": WINDOW}
        return Connect(
            self.state.client_id,
            clean=False,
            keep_alive=KEEP_ALIVE,
            user=user,
            password=password,
            properties=properties,
        )

    def receive(self, packet: Packet) -> None:
        """A packet from the server. What is to be sent is sent after a commit."""
        match packet:
            case Connack():
                self._begin(packet)
            case Publish():
                self.take(packet)
            case Suback():
                refused = [text for text, code in zip(self._filters, packet.reasons, strict=False) if code >= 0x80]
                if refused:
                    raise BridgeRefused(f"{self.what} refuses to subscribe to {', '.join(refused)}")
            case Disconnect():
                words = packet.properties.get("reason_string", f"reason {packet.reason:#x}")
                raise ConnectionError(f"{self.what} ends the connection: {words}")
            case Pingresp():
                pass
            case _:
                self.answered(packet)

    def _begin(self, packet: Connack) -> None:
        if packet.reason:
            words = packet.properties.get("reason_string", f"reason {packet.reason:#x}")
            kind = BridgeRefused if packet.reason in _FOR_GOOD else ConnectionError
            raise kind(f"{self.what} refuses the connection: {words}")
        self.connected = True
        self._window = min(WINDOW, packet.properties.get("receive_maximum", 65535))
        self.begin(packet.session_present, packet.properties)
        # Again with every connection: a session that was there has it already, and no retained message comes twice.
        wanted = (
            WantedTopic(text, self.qos, no_local=True, retain_as_published=True, retain_handling=1)
            for text in self._filters
        )
        self._send(Subscribe(1, tuple(wanted)))
        self.pump()

    qos = 2

    @abc.abstractmethod
    def begin(self, session_present: bool, properties: Mapping[str, Any]) -> None:
        """The server has answered."""

    @abc.abstractmethod
    def take(self, packet: Publish) -> None:
        """Takes a message for the other side."""

    @abc.abstractmethod
    def answered(self, packet: Packet) -> None:
        """An acknowledgement of the server's."""

    @abc.abstractmethod
    def pump(self) -> None:
        """Sends what waits."""

    def lost(self) -> None:
        self.connected = False


class BrokerSide(Side):
    """Towards the broker: QoS 2 both ways, with its state on disk."""

    what = "the broker"

    def __init__(self, state: BridgeState, filters: tuple[str, ...], send: Callable[[Packet], None]) -> None:
        super().__init__(state, filters, send)
        self._under_way = 0

    def begin(self, session_present: bool, properties: Mapping[str, Any]) -> None:
        if properties.get("maximum_qos", 2) < 2:
            raise BridgeRefused("the broker has no QoS 2, which this bridge needs")
        if not session_present:
            doubtful = self.state.begin_anew()
            if doubtful:
                log.warn("the broker forgot the session: these events may arrive twice", ids=doubtful)
        sent = self.state.sent()
        self._under_way = len(sent)
        for outgoing in sent:  # [MQTT-4.4.0-1]
            if outgoing.released:
                self._send(Pubrel(outgoing.packet))
            else:
                self._send(_publish(outgoing.message, outgoing.packet, dup=True))

    def take(self, packet: Publish) -> None:
        message = ApplicationMessage.of(packet, packet.topic)
        known = packet.qos == 2 and self.state.is_received(message, packet.packet, packet.dup)
        if not known and not self.is_ours(message):
            if self.state.inbox_is_full:
                raise Full("the node does not take what the broker sends")
            self.state.take_in(message, packet.packet if packet.qos == 2 else 0)
            self.wake_other()
        if packet.qos:
            self._send(Pubrec(packet.packet) if packet.qos == 2 else Puback(packet.packet))

    def is_ours(self, message: ApplicationMessage) -> bool:
        """Whether a message comes from nodes."""
        return any(name == ID for name, _ in message.user)

    def answered(self, packet: Packet) -> None:
        match packet:
            case Pubrec() if packet.reason >= 0x80:
                log.warn("the broker refuses an event", id=self.state.complete(packet.packet), reason=packet.reason)
                self._completed()
            case Pubrec():
                known = self.state.release(packet.packet)
                self._send(Pubrel(packet.packet, 0 if known else Reason.PACKET_NOT_FOUND))
            case Pubcomp():
                if self.state.complete(packet.packet) is not None:
                    self._completed()
            case Pubrel():
                self.state.free(packet.packet)
                self._send(Pubcomp(packet.packet))
            case _:
                raise PacketError(Reason.PROTOCOL_ERROR, f"the broker sends {type(packet).__name__}")

    def _completed(self) -> None:
        self._under_way -= 1
        self.pump()

    def pump(self) -> None:
        while self.connected and self._under_way < self._window:
            outgoing = self.state.next_out()
            if outgoing is None:
                return
            self._under_way += 1
            self._send(_publish(outgoing.message, outgoing.packet))


class NodeSide(Side):
    """Towards the node: QoS 1 both ways, as the node promises."""

    what = "the node"
    qos = 1

    def __init__(
        self, state: BridgeState, filters: tuple[str, ...], send: Callable[[Packet], None], broker: str
    ) -> None:
        """`broker` is the broker's name in `bridged`."""
        super().__init__(state, filters, send)
        self._broker = broker
        self._unanswered: dict[int, int] = {}  # numbers in the inbox, by Packet Identifier
        self._latest = 0
        self._packet = 0

    @property
    def publishing(self) -> bool:
        return bool(self._unanswered)

    def begin(self, session_present: bool, properties: Mapping[str, Any]) -> None:
        self._unanswered.clear()
        self._latest = 0

    def take(self, packet: Publish) -> None:
        message = ApplicationMessage.of(packet, packet.topic)
        named = [text for name, text in message.user if name == ID]
        echo = any(name == BRIDGED and text.rpartition("/")[0] == self._broker for name, text in message.user)
        if named and not echo:
            if self.state.outbox_is_full:
                raise Full("the broker does not take what the node sends")
            if self.state.take_out(named[-1], message):
                self.wake_other()
        if packet.qos:
            self._send(Puback(packet.packet))

    def answered(self, packet: Packet) -> None:
        if not isinstance(packet, Puback):
            raise PacketError(Reason.PROTOCOL_ERROR, f"the node sends {type(packet).__name__}")
        serial = self._unanswered.pop(packet.packet, None)
        if serial is None:
            return
        if packet.reason == Reason.QUOTA_EXCEEDED:
            raise ConnectionError("the node has too much to do")  # it is sent again later
        if packet.reason >= 0x80:
            words = packet.properties.get("reason_string", f"{packet.reason:#x}")
            log.warn("the node refuses a message", number=serial, reason=words)
        self.state.delivered(serial)
        self.pump()

    def pump(self) -> None:
        if not self.connected or len(self._unanswered) >= self._window:
            return
        for serial, message in self.state.inbox(self._latest, self._window - len(self._unanswered)):
            self._latest = serial
            marked = (*message.user, (BRIDGED, f"{self._broker}/{serial}"))
            self._packet = free_identifier(self._packet, self._unanswered)
            self._unanswered[self._packet] = serial
            given = msgspec.structs.replace(message, user=marked, qos=1)
            self._send(msgspec.structs.replace(_publish(given, self._packet), qos=1))


def _publish(message: ApplicationMessage, packet: int, *, dup: bool = False) -> Publish:
    return Publish(message.topic, message.payload, 2, packet, dup, message.retain, message.properties())
