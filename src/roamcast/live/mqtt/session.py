"""The session of one MQTT client: its subscriptions, and what is under way between it and the node. No I/O.

The rules this file owns:

* **Acknowledged means stored.** PUBACK, and PUBREC of 3.1.1, are sent when the node has the event on disk and will send
  it. What the node refuses is answered with a reason in MQTT 5; 3.1.1 has none, so there the connection ends.
* QoS 2 exists for publishing with 3.1.1. The Packet Identifier is on disk with the event, until PUBREL has removed it
  and that is on disk: so nothing is published twice, whatever is killed.
* A subscription is a subscription of the node, with a mailbox; a durable one if the session outlives its connection. An
  event leaves its mailbox when it was sent with QoS 0, or acknowledged. What was not acknowledged goes back, and is
  sent again, with DUP and its Packet Identifier, when the client is back [4.4].
* Each subscription that matches gets a copy of its own, with its Subscription Identifier [MQTT-3.3.4-5].
* At most Receive Maximum messages are without acknowledgement, in either direction [4.9].
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from roamcast.bounded import put
from roamcast.content.event import event_name
from roamcast.content.filter import Filter
from roamcast.errors import RoamcastError
from roamcast.live.control_messages import (
    MAX_REQUEST,
    MSGPACK,
    DeliveredEvent,
    SubscribeRequest,
    SubscriberMessage,
    decode,
)
from roamcast.live.mailbox import Mailbox, QueuedDelivery
from roamcast.live.mqtt.packets import (
    NO_PROPERTIES,
    V5,
    V311,
    Connect,
    Packet,
    PacketError,
    Pingreq,
    Pingresp,
    Properties,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Reason,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    WantedTopic,
    free_identifier,
)
from roamcast.live.mqtt.retained import Retained
from roamcast.live.mqtt.topics import ApplicationMessage, event_of, filter_of, matches, message_of
from roamcast.live.mqtt.wire import write
from roamcast.live.mqtt.world import MqttWorld
from roamcast.live.under_way import Busy

if TYPE_CHECKING:
    from roamcast.live.mqtt.server import MqttConnection

MOST: Final = 256
"""Our Receive Maximum: publications without an answer; with more, nothing is read from a client."""
MAX_ALIASES: Final = 64
"""Topic Aliases that a client may use, and that we use at most."""
MAX_PACKET: Final = MAX_REQUEST
MAX_IN_FLIGHT: Final = 1024
"""Messages to a client without acknowledgement, even if it would take more."""
MAX_OWN: Final = 1024
"""Events that a client published and that are remembered, for No Local."""
RETAINED: Final = "retained"
"""How a message came that a new subscription gets because it was retained."""


class AskedTopic(msgspec.Struct, frozen=True):
    """What a client asked for with one Topic Filter."""

    wanted: WantedTopic
    identifier: int | None = None


class StoredWill(msgspec.Struct, frozen=True):
    message: ApplicationMessage
    delay: int = 0
    """Seconds."""


class SessionRecord(msgspec.Struct):
    """What the store has of a session."""

    client_id: str
    expiry: int = 0
    """Seconds from the end of a connection, as the latest connection wants it."""
    lasting: bool = False
    """Whether a connection wanted it to last: then it is in the store, with its subscriptions, until it ends."""
    ends: float | None = None
    """When the session ends, in seconds since 1970, if no client comes back."""
    connected: bool = False
    asked: dict[str, AskedTopic] = {}
    again: dict[str, dict[int, int]] = {}
    """Packet Identifiers of what was sent and not acknowledged, by Topic Filter and number of the delivery."""
    will: StoredWill | None = None


class _Active:
    """A subscription while its client is connected."""

    def __init__(self, asked: AskedTopic, mailbox: Mailbox, content: Filter) -> None:
        self.asked = asked
        self.mailbox = mailbox
        self.content = content
        self.reading: QueuedDelivery | None = None
        """A delivery that is being read from the store."""
        self.given: set[int] = set()
        """Events that it got as retained ones: the protocol may bring them too."""


class MqttSession:
    def __init__(self, record: SessionRecord, world: MqttWorld, retained: Retained) -> None:
        self.record = record
        self.link: MqttConnection | None = None
        self._outstanding = 0  # publications that have no answer yet
        self._opening = 0  # subscriptions that are not in force yet
        self._world = world
        self._retained = retained
        self._active: dict[str, _Active] = {}
        self._received: dict[int, bool] = {}  # Packet Identifiers of QoS 2, and whether the event is on disk
        self._in_flight: dict[int, tuple[str, _Active, QueuedDelivery]] = {}
        self._again = record.again
        # A session that was connected when the node was killed: everything that waited may have been sent.
        self._doubtful = world.latest if record.connected else 0
        self._own: dict[int, None] = {}
        self._packet = 0
        self._pumping = False
        self._limits = (0, 0, 0)
        self._aliases: dict[int, str] = {}
        self._our_aliases: dict[str, int] = {}
        self._explains = True

    @property
    def durable(self) -> bool:
        """Whether it outlives its connection."""
        return self.record.expiry > 0

    @property
    def busy(self) -> bool:
        """Whether the client must wait for answers before its next packet is read."""
        return self._opening > 0 or self._outstanding >= MOST

    @property
    def publishing(self) -> bool:
        """Whether a publication has no answer yet."""
        return self._outstanding > 0

    # --- Connections ------------------------------------------------------------------------------------------------

    def attach(self, link: "MqttConnection", connect: Connect) -> None:
        """A client is connected, and has got its CONNACK."""
        given = connect.properties
        self.link = link
        self._limits = (
            min(given.get("receive_maximum", 65535), MAX_IN_FLIGHT),
            given.get("maximum_packet_size", 2**32),
            min(given.get("topic_alias_maximum", 0), MAX_ALIASES),
        )
        self._explains = bool(given.get("request_problem_information", 1))  # [MQTT-3.1.2-32]
        self._aliases, self._our_aliases = {}, {}  # [MQTT-3.3.2-7]
        for asked in list(self.record.asked.values()):
            self._open(asked, _ignored)

    def detach(self) -> None:
        """The connection is gone: what was not acknowledged waits again."""
        self.link = None
        self._outstanding = self._opening = 0
        again: dict[str, dict[int, int]] = {}
        for active in self._active.values():
            if active.reading is not None:
                active.mailbox.give_back(active.reading)
                active.reading = None
        for packet, (topic_filter, active, delivery) in reversed(self._in_flight.items()):
            active.mailbox.give_back(delivery)
            again.setdefault(topic_filter, {})[delivery.number] = packet
        self._again = self.record.again = again
        self._in_flight.clear()
        for active in self._active.values():
            active.mailbox.watch(None)
            self._world.leave(active.mailbox)
        self._active.clear()
        if not self.durable:
            self._received.clear()

    def end(self) -> None:
        """The session is over, with everything that belongs to it."""
        for topic_filter in self.record.asked:
            self._world.unsubscribe(self._world.number_of(self.record.client_id, topic_filter))
        for packet in self._received:
            self._world.forget(self._key("received", packet))
        self._world.forget(self._key("session"))

    def save(self) -> None:
        if self.record.lasting or self.record.will is not None:
            self._world.keep(self._key("session"), msgspec.msgpack.encode(self.record))
        else:
            self._world.forget(self._key("session"))

    def restore_received(self, packet: int) -> None:
        self._received[packet] = True

    def _key(self, kind: str, packet: int | None = None) -> str:
        return f"{kind}/{self.record.client_id}" + (f"/{packet}" if packet is not None else "")

    def _send(self, packet: Packet) -> None:
        if self.link is not None:
            self.link.write(write(packet, self.link.version))

    def _send_when_stored(self, packet: Packet) -> None:
        """Sends when everything so far is on disk, if the client is still connected then."""
        link = self.link
        self._world.then(lambda: self._send(packet) if self.link is link else None)

    def _explained(self, words: str) -> Properties:
        return {"reason_string": words[:200]} if self._explains else NO_PROPERTIES

    # --- From the client --------------------------------------------------------------------------------------------

    def receive(self, packet: Packet) -> None:
        """A packet from the client. Raises `PacketError` if it is not allowed."""
        match packet:
            case Publish():
                self._publish(packet)
            case Puback():
                self._acknowledged(packet.packet)
            case Pubrel():
                self._release(packet.packet)
            case Subscribe():
                self._subscribe(packet)
            case Unsubscribe():
                self._unsubscribe(packet)
            case Pingreq():
                self._send(Pingresp())
            case _:
                raise PacketError(Reason.PROTOCOL_ERROR, f"{type(packet).__name__} is not expected here")

    def _publish(self, packet: Publish) -> None:
        assert self.link is not None
        topic = self._topic(packet)
        if packet.qos == 2 and self.link.version == V5:
            raise PacketError(Reason.QOS_NOT_SUPPORTED, "the Maximum QoS here is 1")  # [MQTT-3.2.2-11]
        if packet.qos == 2 and packet.packet in self._received:  # [MQTT-4.3.3-10]
            if self._received[packet.packet]:
                self._send(Pubrec(packet.packet))
            return
        message = ApplicationMessage.of(packet, topic)
        self._outstanding += 1
        if packet.qos == 2:
            self._received[packet.packet] = False
        answer = self._answering(packet, self.link)
        try:
            self.publish(message, answer, lambda: self._remember(packet))
        except RoamcastError as problem:
            answer(problem)

    def _topic(self, packet: Publish) -> str:
        """The topic of a packet, which may be one that it has an alias for [3.3.2.3.4]."""
        alias, topic = packet.properties.get("topic_alias"), packet.topic
        if "subscription_identifier" in packet.properties:
            raise PacketError(Reason.PROTOCOL_ERROR, "a client sends no Subscription Identifier")  # [MQTT-3.3.4-6]
        if any(wild in packet.properties.get("response_topic", "") for wild in "+#"):
            raise PacketError(Reason.PROTOCOL_ERROR, "a Response Topic has no wildcards")  # [MQTT-3.3.2-14]
        if alias is not None:
            if alias > MAX_ALIASES:
                raise PacketError(Reason.BAD_ALIAS, f"the Topic Alias Maximum here is {MAX_ALIASES}")
            topic = self._aliases[alias] = topic or self._aliases.get(alias, "")
        if not topic and self.link is not None and self.link.version == V5:
            raise PacketError(Reason.PROTOCOL_ERROR, "a PUBLISH has no topic, or an unknown alias")
        return topic

    def publish(
        self, message: ApplicationMessage, done: Callable[[BaseException | None], None], along: Callable[[], None]
    ) -> None:
        """Publishes an event for the client. Raises if it is refused at once."""
        form = event_of(message)
        if self._world.takes_lifetimes:
            form.lifetime = message.expiry

        def told(number: int, problem: BaseException | None) -> None:
            if problem is None:
                put(self._own, number, None, MAX_OWN)
                if message.retain:
                    event = DeliveredEvent.of(form.event(number))
                    said = SubscriberMessage(event=event, author=number >> 32, published=self._world.now())
                    self._retained.take(message, said)
            done(problem)

        self._world.publish(form, told, along)

    def _remember(self, packet: Publish) -> None:
        if packet.qos == 2 and self.record.lasting:
            self._world.keep(self._key("received", packet.packet), b"")

    def _answering(self, packet: Publish, link: "MqttConnection") -> Callable[[BaseException | None], None]:
        def answer(problem: BaseException | None) -> None:
            if packet.qos == 2:
                if problem is None:
                    self._received[packet.packet] = True
                else:
                    self._received.pop(packet.packet, None)
            if self.link is not link:  # the client has left, or is back: it will ask again
                return
            self._outstanding -= 1
            if problem is not None:
                self._refuse(packet, link, problem)
            elif packet.qos == 1:
                self._send(Puback(packet.packet))
            elif packet.qos == 2:
                self._send(Pubrec(packet.packet))
            link.resume()

        return answer

    def _refuse(self, packet: Publish, link: "MqttConnection", problem: BaseException) -> None:
        if isinstance(problem, PacketError):
            reason = problem.reason
        else:
            reason = Reason.QUOTA_EXCEEDED if isinstance(problem, Busy) else Reason.REFUSED_HERE
        if link.version == V311:
            # It cannot be told, and to acknowledge what is not stored would be a lie (3.1.1: [MQTT-3.3.5-2]).
            link.end(reason, str(problem))
        elif packet.qos:
            self._send(Puback(packet.packet, reason, self._explained(str(problem))))

    def _release(self, packet: int) -> None:
        self._received.pop(packet, None)
        if self.record.lasting:
            self._world.forget(self._key("received", packet))
        self._send_when_stored(Pubcomp(packet))  # not before: the client may use the Packet Identifier again

    # --- Subscriptions ----------------------------------------------------------------------------------------------

    def _subscribe(self, packet: Subscribe) -> None:
        identifier = packet.properties.get("subscription_identifier", (None,))[0]
        link, reasons = self.link, list[int]()
        left, asked, going = iter(packet.filters), 0, False

        def go_on() -> None:
            """Asks for one after another. Most answers come before `_subscribe_to` returns, so this is a loop."""
            nonlocal asked, going
            if going:
                return
            going = True
            while link is not None and self.link is link and len(reasons) == asked:
                wanted = next(left, None)
                if wanted is None:
                    self.save()
                    shown = tuple(reason if link.version == V5 or reason < 0x80 else 0x80 for reason in reasons)
                    self._send_when_stored(Suback(packet.packet, shown))
                    break
                asked += 1
                self._subscribe_to(AskedTopic(wanted, identifier), note)
            going = False

        def note(reason: int) -> None:
            reasons.append(reason)
            go_on()

        go_on()

    def _subscribe_to(self, asked: AskedTopic, done: Callable[[int], None]) -> None:
        wanted = asked.wanted
        granted = min(wanted.qos, 1)
        try:
            filter_of(wanted.filter)
        except PacketError as problem:
            done(problem.reason)
            return
        existing = self._active.get(wanted.filter)
        self.record.asked[wanted.filter] = asked
        if existing is not None:  # [MQTT-3.8.4-3]: another one in its place, and nothing is lost
            existing.asked = asked
            if wanted.retain_handling == 0:
                self._give_retained(existing)
            done(granted)
            return

        def opened(problem: RoamcastError | None) -> None:
            if problem is None:
                if wanted.retain_handling < 2:
                    self._give_retained(self._active[wanted.filter])
                done(granted)
            else:
                self.record.asked.pop(wanted.filter, None)
                done(Reason.QUOTA_EXCEEDED if isinstance(problem, Busy) else Reason.UNSPECIFIED)

        self._open(asked, opened)

    def _open(self, asked: AskedTopic, opened: Callable[[RoamcastError | None], None]) -> None:
        """Subscribes at the node, or goes on with a durable subscription there."""
        topic_filter, link = asked.wanted.filter, self.link
        content = filter_of(topic_filter)
        lasting = self.record.lasting
        number = self._world.number_of(self.record.client_id, topic_filter) if lasting else None

        def done(found: Mailbox | RoamcastError) -> None:
            if link is None or self.link is not link:
                if isinstance(found, Mailbox):
                    self._world.leave(found)
                return
            self._opening -= 1
            if isinstance(found, Mailbox):
                self._active[topic_filter] = _Active(asked, found, content)
                found.watch(self.pump_soon)
                self.pump_soon()
            opened(None if isinstance(found, Mailbox) else found)
            link.resume()  # at the end: the next packet may be a DISCONNECT

        self._opening += 1
        self._world.subscribe(SubscribeRequest(str(content), number, lasting), done)

    def _give_retained(self, active: _Active) -> None:
        for message in self._retained.matching(active.asked.wanted.filter, active.content):
            assert message.event is not None
            active.given.add(message.event.id)
            message.via = RETAINED
            self._world.put(active.mailbox, message)

    def _unsubscribe(self, packet: Unsubscribe) -> None:
        reasons = []
        for topic_filter in packet.filters:
            asked = self.record.asked.pop(topic_filter, None)
            reasons.append(Reason.NO_SUBSCRIPTION if asked is None else Reason.SUCCESS)
            active = self._active.pop(topic_filter, None)
            if active is not None:
                active.mailbox.watch(None)
                self._world.unsubscribe(active.mailbox.subscription.id)
                self._world.leave(active.mailbox)
        self.save()
        self._send_when_stored(Unsuback(packet.packet, tuple(reasons)))

    # --- To the client ----------------------------------------------------------------------------------------------

    def pump_soon(self) -> None:
        if not self._pumping:
            self._pumping = True
            self._world.soon(self.pump)

    def pump(self) -> None:
        """Sends what waits, as far as the client takes it: of every subscription one, again and again."""
        self._pumping = False
        ready = list(self._active.items())
        while ready:
            ready = [(topic_filter, active) for topic_filter, active in ready if self._send_next(topic_filter, active)]

    def _send_next(self, topic_filter: str, active: _Active) -> bool:
        """Sends one message; returns whether another may follow."""
        if self.link is None or self.link.clogged or active.reading is not None:
            return False
        if active.asked.wanted.qos and len(self._in_flight) >= self._limits[0]:  # [MQTT-3.3.4-9]
            return False
        delivery = active.mailbox.take()
        if delivery is None:
            return False
        if delivery.packed is not None:
            self._transmit(topic_filter, active, delivery, delivery.packed)
            return True
        active.reading = delivery

        def fetched(packed: bytes | None) -> None:
            if active.reading is delivery:
                active.reading = None
                self._transmit(topic_filter, active, delivery, packed)
                self.pump_soon()

        self._world.fetch(delivery, fetched)
        return False

    def _transmit(self, topic_filter: str, active: _Active, delivery: QueuedDelivery, packed: bytes | None) -> None:
        number = self._again.get(topic_filter, {}).pop(delivery.number, 0) if delivery.number else 0
        packet = None if packed is None else self._packet_of(active, decode(packed, SubscriberMessage, MSGPACK))
        if packet is None:
            active.mailbox.done(delivery)
            return
        if packet.qos:
            sent = bool(number) or 0 < delivery.number <= self._doubtful
            number = number or self._next_packet()
            packet = msgspec.structs.replace(packet, packet=number, dup=sent)
        data = self._written(packet)
        if self.link is None or data is None:
            active.mailbox.done(delivery)
            return
        if packet.qos:
            self._in_flight[number] = topic_filter, active, delivery
        else:
            active.mailbox.done(delivery)
        self.link.write(data)

    def _written(self, packet: Publish) -> bytes | None:
        """The bytes of a message; None: it is too long for the client [MQTT-3.1.2-28], or its topic for any."""
        version = V5 if self.link is None else self.link.version
        try:
            data = write(packet, version)
            if len(data) > self._limits[1]:  # then without what we have added
                user = tuple(pair for pair in packet.properties.get("user", ()) if not pair[0].startswith("roamcast-"))
                data = write(msgspec.structs.replace(packet, properties={**packet.properties, "user": user}), version)
        except PacketError:
            return None
        return data if len(data) <= self._limits[1] else None

    def _packet_of(self, active: _Active, said: SubscriberMessage) -> Publish | None:
        """The packet of an event; None: this subscription does not get it."""
        form, wanted = said.event, active.asked.wanted
        assert self.link is not None
        assert form is not None
        message, old = message_of(form), said.via == RETAINED
        if message.retain and not old:
            self._retained.take(message, said)
        if not matches(wanted.filter, message.topic):
            return None
        if not old and (form.id in active.given or (wanted.no_local and form.id in self._own)):  # [MQTT-3.8.3-3]
            return None
        if message.expiry is not None and said.published is not None:
            left = said.published + message.expiry - self._world.now()
            if left <= 0:  # [MQTT-3.3.2-5]
                return None
            message = msgspec.structs.replace(message, expiry=min(message.expiry, max(1, int(left))))
        retain = old or (message.retain and wanted.retain_as_published)  # [MQTT-3.3.1-12], [MQTT-3.3.1-13]
        qos = min(message.qos, wanted.qos, 1)  # [MQTT-3.8.4-8]
        topic, properties = message.topic, NO_PROPERTIES
        if self.link.version == V5:
            topic, properties = self._with_alias(topic, self._properties_of(active, said, message))
        return Publish(topic, message.payload, qos, retain=retain, properties=properties)

    def _properties_of(self, active: _Active, said: SubscriberMessage, message: ApplicationMessage) -> dict[str, Any]:
        assert said.event is not None
        ours = [("roamcast-id", event_name(said.event.id))]
        if said.verified is not None:
            ours.append(("roamcast-verified", said.verified))
        properties = dict(message.properties()) | {"user": (*message.user, *ours)}
        if active.asked.identifier is not None:
            properties["subscription_identifier"] = (active.asked.identifier,)
        return properties

    def _with_alias(self, topic: str, properties: dict[str, Any]) -> tuple[str, Properties]:
        """Topics get aliases as long as there are any [MQTT-3.1.2-29]."""
        alias = self._our_aliases.get(topic)
        if alias is not None:
            return "", properties | {"topic_alias": alias}
        if len(self._our_aliases) >= self._limits[2]:
            return topic, properties
        alias = self._our_aliases[topic] = len(self._our_aliases) + 1
        return topic, properties | {"topic_alias": alias}

    def _next_packet(self) -> int:
        again = {number for numbers in self._again.values() for number in numbers.values()}
        self._packet = free_identifier(self._packet, again | self._in_flight.keys())
        return self._packet

    def _acknowledged(self, packet: int) -> None:
        found = self._in_flight.pop(packet, None)
        if found is not None:
            _, active, delivery = found
            active.mailbox.done(delivery)
            self.pump_soon()


def _ignored(problem: RoamcastError | None) -> None:
    """A subscription that cannot go on is not in force; an application may listen to it through the API."""
