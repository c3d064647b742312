"""All MQTT sessions of a node: who connects as whom, how long a session lasts, and last wills. No I/O.

The rules this file owns:

* A Client Identifier has one session, and a session one connection: a newcomer takes it over, and the former connection
  ends [MQTT-3.1.4-3]. Whoever may connect may take over any session: all clients of a node are one user's.
* A session ends with its connection, or Session Expiry Interval later; with 3.1.1 and Clean Session 0, never. While it
  lasts without a connection it is in the store, and so are its subscriptions' events.
* A will is published when its connection ends without a DISCONNECT that says otherwise, after its delay, unless the
  client is back by then [3.1.2.5]. It is in the store meanwhile: if the node was killed, it is published at the start.
* There are at most `MAX_SESSIONS`; more are refused.
"""

import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from roamcast.errors import RoamcastError
from roamcast.live import log
from roamcast.live.mqtt.packets import NEVER, V5, V311, Connack, Connect, PacketError, Reason
from roamcast.live.mqtt.retained import Retained
from roamcast.live.mqtt.session import MAX_ALIASES, MAX_PACKET, MOST, MqttSession, SessionRecord, StoredWill
from roamcast.live.mqtt.topics import ApplicationMessage, check_topic
from roamcast.live.mqtt.wire import write
from roamcast.live.mqtt.world import MqttWorld, Timer

if TYPE_CHECKING:
    from roamcast.live.mqtt.server import MqttConnection

MAX_SESSIONS: Final = 1024
MAX_CLIENT_ID: Final = 256
"""Characters."""
_REFUSALS: Final = {Reason.BAD_CLIENT_ID: 2, Reason.QUOTA_EXCEEDED: 3, Reason.BAD_PASSWORD: 4}
"""Return codes of 3.1.1 [3.2.2.3]; any other refusal is 5, not authorized."""


class Sessions:
    def __init__(self, world: MqttWorld) -> None:
        self._world = world
        self.retained = Retained(world)
        self._sessions: dict[str, MqttSession] = {}
        self._ends: dict[str, Timer] = {}
        self._wills: dict[str, Timer] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def connected(self) -> int:
        return sum(session.link is not None for session in self._sessions.values())

    @property
    def publishing(self) -> bool:
        """Whether a client waits for an acknowledgement."""
        return any(session.publishing for session in self._sessions.values())

    def restore(self, kept: Mapping[str, bytes]) -> None:
        """Goes on with the sessions that the store has."""
        self.retained.restore(kept)
        for key, value in kept.items():
            if key.startswith("session/"):
                self._restore(msgspec.msgpack.decode(value, type=SessionRecord))
        for key in kept:
            if key.startswith("received/"):
                client_id, _, packet = key.removeprefix("received/").rpartition("/")
                if client_id in self._sessions:
                    self._sessions[client_id].restore_received(int(packet))
                else:
                    self._world.forget(key)

    def _restore(self, record: SessionRecord) -> None:
        session = self._sessions[record.client_id] = MqttSession(record, self._world, self.retained)
        if record.connected:
            record.connected = False
            self._lost(session)
            return
        if record.ends is not None:
            self._end_later(session, record.ends - self._world.now())
        if record.will is not None:
            self._publish_will(session)

    # --- A client comes ---------------------------------------------------------------------------------------------

    def connect(self, link: "MqttConnection", packet: Connect, attached: Callable[[], None]) -> MqttSession:
        """Answers a CONNECT, and calls back after its CONNACK. Raises `PacketError` to refuse it."""
        client_id = packet.client_id or f"roamcast-{secrets.token_hex(8)}"  # [MQTT-3.1.3-6]
        will = self._check(packet)
        former = self._sessions.get(client_id)
        if former is not None and former.link is not None:
            former.link.end(Reason.TAKEN_OVER, "another connection has this Client Identifier")
            self.disconnected(former, former.link)
            former = self._sessions.get(client_id)
        if former is not None and packet.clean:  # [MQTT-3.1.2-4]
            self._publish_will(former)
            self._end(former)
            former = None
        if former is None and len(self._sessions) >= MAX_SESSIONS:
            raise PacketError(Reason.QUOTA_EXCEEDED, f"this node has {MAX_SESSIONS} MQTT sessions, and takes no more")
        session = former or MqttSession(SessionRecord(client_id), self._world, self.retained)
        self._sessions[client_id] = session
        self._cancel_timers(client_id)
        session.link = link
        record = session.record
        record.expiry = _expiry(packet)
        record.lasting = record.lasting or session.durable
        record.ends, record.connected, record.will = None, True, will
        session.save()

        def on_disk() -> None:
            if session.link is link:
                answer = Connack(former is not None, 0, _offers(packet, client_id))
                link.write(write(answer, packet.version))
                session.attach(link, packet)
                attached()

        self._world.then(on_disk)
        return session

    def _check(self, packet: Connect) -> StoredWill | None:
        if len(packet.client_id) > MAX_CLIENT_ID:
            raise PacketError(Reason.BAD_CLIENT_ID, f"a Client Identifier has at most {MAX_CLIENT_ID} characters")
        if not packet.client_id and packet.version == V311 and not packet.clean:  # 3.1.1: [MQTT-3.1.3-8]
            raise PacketError(Reason.BAD_CLIENT_ID, "a session that lasts needs a Client Identifier")
        if "authentication_method" in packet.properties:
            raise PacketError(Reason.BAD_AUTHENTICATION_METHOD, "the token is given as the password")
        if packet.will is None:
            return None
        if packet.will.qos == 2 and packet.version == V5:
            raise PacketError(Reason.QOS_NOT_SUPPORTED, "the Maximum QoS here is 1")  # [MQTT-3.2.2-12]
        check_topic(packet.will.topic)
        message = ApplicationMessage.of(packet.will, packet.will.topic)
        return StoredWill(message, packet.will.properties.get("will_delay", 0))

    # --- A client goes ----------------------------------------------------------------------------------------------

    def disconnected(
        self, session: MqttSession, link: "MqttConnection", *, reason: int | None = None, expiry: int | None = None
    ) -> None:
        """A connection has ended: with DISCONNECT and its reason, or without."""
        if session.link is not link:
            return
        if expiry is not None and session.durable:
            session.record.expiry = expiry  # [3.14.2.2.2]
        session.detach()
        session.record.connected = False
        if reason == Reason.SUCCESS:
            session.record.will = None  # [MQTT-3.14.4-3]
        self._lost(session)

    def _lost(self, session: MqttSession) -> None:
        record = session.record
        if record.will is not None:
            delay = min(record.will.delay, record.expiry)  # [MQTT-3.1.2-8]
            if delay:
                self._wills[record.client_id] = self._world.later(delay, lambda: self._publish_will(session))
            else:
                self._publish_will(session)
        if not session.durable:
            self._end(session)
            return
        if record.expiry != NEVER:
            record.ends = self._world.now() + record.expiry
            self._end_later(session, record.expiry)
        session.save()

    def _end_later(self, session: MqttSession, seconds: float) -> None:
        self._ends[session.record.client_id] = self._world.later(max(0.0, seconds), lambda: self._end(session))

    def _end(self, session: MqttSession) -> None:
        client_id = session.record.client_id
        self._cancel_timers(client_id)
        if self._sessions.get(client_id) is session:
            del self._sessions[client_id]
            session.end()

    def _cancel_timers(self, client_id: str) -> None:
        for timers in (self._ends, self._wills):
            if client_id in timers:
                timers.pop(client_id).cancel()

    def _publish_will(self, session: MqttSession) -> None:
        will, session.record.will = session.record.will, None
        self._wills.pop(session.record.client_id, None)
        if will is None:
            return

        def forget_it() -> None:
            if self._sessions.get(session.record.client_id) is session and session.durable:
                session.save()
            else:
                self._world.forget(f"session/{session.record.client_id}")

        try:
            session.publish(will.message, lambda problem: None, forget_it)
        except RoamcastError as problem:
            log.warn("a last will was not published", client=session.record.client_id, reason=str(problem))


def _expiry(packet: Connect) -> int:
    if packet.version == V311:
        return 0 if packet.clean else NEVER
    return int(packet.properties.get("session_expiry", 0))


def _offers(packet: Connect, client_id: str) -> dict[str, object]:
    """What this server can do [3.2.2.3]."""
    if packet.version == V311:
        return {}
    assigned = {} if packet.client_id else {"assigned_client_id": client_id}
    return {
        "receive_maximum": MOST,
        "maximum_qos": 1,
        "maximum_packet_size": MAX_PACKET,
        "topic_alias_maximum": MAX_ALIASES,
        "shared_available": 0,
        **assigned,
    }


def refusal(version: int, problem: PacketError) -> Connack:
    """The answer to a CONNECT that is refused."""
    if version == V5:
        return Connack(False, problem.reason, {"reason_string": str(problem)[:200]})
    return Connack(False, _REFUSALS.get(problem.reason, 5))
