"""MQTT sessions without I/O: each rule with the packets that show it."""

from typing import Any

import pytest

from live.mqtt.world import FakeClient, FakeWorld
from roamcast.errors import ContentError
from roamcast.live.mqtt.packets import (
    NEVER,
    V5,
    V311,
    Auth,
    Connack,
    Packet,
    PacketError,
    Pingreq,
    Pingresp,
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
    Will,
)
from roamcast.live.mqtt.sessions import MAX_SESSIONS, Sessions
from roamcast.live.under_way import Busy

LASTING = {"session_expiry": 3600}


class Stage:
    """Sessions, and clients of them."""

    def __init__(self, world: FakeWorld | None = None) -> None:
        self.world = world or FakeWorld()
        self.sessions = Sessions(self.world)
        self.sessions.restore(dict(self.world.disk))
        self.world.settle()

    def client(self, client_id: str = "c", version: int = V5, **options: Any) -> FakeClient:  # noqa: ANN401  # of Connect
        client = FakeClient(self.sessions, self.world, version)
        assert client.connect(client_id, **options).reason == 0
        return client

    def publish(self, topic: str, payload: bytes = b"x", **options: Any) -> None:  # noqa: ANN401  # of Publish
        qos = options.pop("qos", 1)
        client = self.client("publisher")
        client.send(Publish(topic, payload, qos, qos, **options))
        assert client.ended is None

    def killed(self) -> "Stage":
        return Stage(self.world.killed())

    @property
    def events(self) -> list[tuple[str, bytes]]:
        return [(form.type, form.payload) for form in self.world.events]


@pytest.fixture
def stage() -> Stage:
    return Stage()


def subscribed(client: FakeClient, topic_filter: str = "#", qos: int = 1, **options: Any) -> FakeClient:  # noqa: ANN401
    identifier = options.pop("identifier", None)
    properties = {} if identifier is None else {"subscription_identifier": (identifier,)}
    answers = client.send(Subscribe(9, (WantedTopic(topic_filter, qos, **options),), properties))
    answers.remove(Suback(9, (min(qos, 1),)))
    client._got.extend(answers)
    return client


def plain(messages: list[Publish]) -> list[tuple[str, bytes]]:
    return [(message.topic, message.payload) for message in messages]


# --- CONNECT --------------------------------------------------------------------------------------------------------


def test_a_server_says_what_it_can(stage: Stage) -> None:
    answer = FakeClient(stage.sessions, stage.world).connect("")
    assert answer.session_present is False
    assert answer.properties["maximum_qos"] == 1
    assert answer.properties["shared_available"] == 0
    assert answer.properties["assigned_client_id"].startswith("roamcast-")  # [MQTT-3.2.2-16]
    assert FakeClient(stage.sessions, stage.world, V311).connect("c").properties == {}


@pytest.mark.parametrize(
    ("version", "options", "reason"),
    [
        (V5, {"client_id": "x" * 300}, Reason.BAD_CLIENT_ID),
        (V311, {"client_id": "", "clean": False}, Reason.BAD_CLIENT_ID),
        (V5, {"properties": {"authentication_method": "SCRAM"}}, Reason.BAD_AUTHENTICATION_METHOD),
        (V5, {"will": Will("w", b"", 2)}, Reason.QOS_NOT_SUPPORTED),
        (V5, {"will": Will("w/#", b"")}, Reason.BAD_TOPIC),
    ],
)
def test_a_connect_that_cannot_be_is_refused(
    stage: Stage, version: int, options: dict[str, Any], reason: Reason
) -> None:
    with pytest.raises(PacketError) as refused:
        FakeClient(stage.sessions, stage.world, version).connect(**options)
    assert refused.value.reason == reason


def test_sessions_are_bounded(stage: Stage) -> None:
    for number in range(MAX_SESSIONS):
        stage.client(f"c{number}")
    with pytest.raises(PacketError) as refused:
        stage.client("one more")
    assert refused.value.reason == Reason.QUOTA_EXCEEDED


def test_a_newcomer_takes_a_session_over(stage: Stage) -> None:
    first = subscribed(stage.client("c", properties=LASTING))
    second = FakeClient(stage.sessions, stage.world)
    assert second.connect("c", clean=False, properties=LASTING).session_present  # [MQTT-3.2.2-3]
    assert first.ended == Reason.TAKEN_OVER
    stage.publish("a")
    assert plain(second.messages()) == [("a", b"x")]


def test_what_does_not_belong_here_ends_the_connection(stage: Stage) -> None:
    strange: list[Packet] = [Connack(), Suback(1, (0,)), Pubrec(1), Pubcomp(1), Pingresp(), Auth()]
    for packet in strange:
        client = stage.client()
        client.send(packet)
        assert client.ended == Reason.PROTOCOL_ERROR
    assert stage.client().send(Pingreq()) == [Pingresp()]


# --- Publishing -----------------------------------------------------------------------------------------------------


def test_acknowledged_means_stored(stage: Stage) -> None:
    client = stage.client()
    assert client.session is not None
    client.session.receive(Publish("a", b"1", 1, 5))
    stage.world.settle(disk=False)
    assert client._got == []
    assert client.got() == [Puback(5)]
    assert stage.events == [("a", b"1")]


def test_qos_0_is_stored_too_and_not_acknowledged(stage: Stage) -> None:
    assert stage.client().send(Publish("a", b"1")) == []
    assert stage.events == [("a", b"1")]


@pytest.mark.parametrize(
    ("problem", "reason"),
    [(Busy("too many"), Reason.QUOTA_EXCEEDED), (ContentError("no"), Reason.REFUSED_HERE)],
)
def test_a_refusal_is_a_reason_in_5_and_the_end_in_3(stage: Stage, problem: Any, reason: Reason) -> None:  # noqa: ANN401
    stage.world.refuses = problem
    new, old = stage.client("5"), stage.client("3", V311)
    assert new.send(Publish("a", b"", 1, 5)) == [Puback(5, reason, {"reason_string": str(problem)})]
    assert new.send(Publish("a", b"")) == []
    assert new.ended is None
    silent = stage.client("s", properties={"request_problem_information": 0})
    assert silent.send(Publish("a", b"", 1, 5)) == [Puback(5, reason)]  # [MQTT-3.1.2-32]
    assert old.send(Publish("a", b"", 1, 5)) == []
    assert old.ended == reason


def test_a_topic_that_is_none(stage: Stage) -> None:
    new, old = stage.client("5"), stage.client("3", V311)
    [answer] = new.send(Publish("$SYS/a", b"", 1, 5))
    assert isinstance(answer, Puback)
    assert answer.reason == Reason.BAD_TOPIC
    old.send(Publish("a/#", b""))
    assert old.ended == Reason.BAD_TOPIC


def test_5_has_no_qos_2(stage: Stage) -> None:
    client = stage.client()
    client.send(Publish("a", b"", 2, 5))
    assert client.ended == Reason.QOS_NOT_SUPPORTED
    assert stage.events == []


def test_the_handshake_of_qos_2(stage: Stage) -> None:
    client = stage.client("c", V311, clean=False)
    assert client.send(Publish("a", b"1", 2, 5)) == [Pubrec(5)]
    assert client.send(Publish("a", b"1", 2, 5, dup=True)) == [Pubrec(5)]  # [MQTT-4.3.3-10]
    assert client.send(Pubrel(5)) == [Pubcomp(5)]
    assert client.send(Pubrel(5)) == [Pubcomp(5)]  # it was lost, and is asked for again
    assert client.send(Publish("a", b"2", 2, 5)) == [Pubrec(5)]  # [MQTT-4.3.3-12]
    assert stage.events == [("a", b"1"), ("a", b"2")]


def test_pubcomp_waits_for_the_disk(stage: Stage) -> None:
    client = stage.client("c", V311, clean=False)
    client.send(Publish("a", b"1", 2, 5))
    assert client.session is not None
    client.session.receive(Pubrel(5))
    stage.world.settle(disk=False)
    assert client._got == []
    assert client.got() == [Pubcomp(5)]


@pytest.mark.parametrize("moment", range(6))
def test_qos_2_is_once_whenever_the_node_is_killed(moment: int) -> None:
    """Killed before and after each commit of the handshake; the client then does what [4.4] asks of it."""
    stage = Stage()
    client = stage.client("c", V311, clean=False)
    assert client.session is not None

    def again() -> FakeClient:
        nonlocal stage
        stage = stage.killed()
        return stage.client("c", V311, clean=False)

    client.session.receive(Publish("a", b"1", 2, 5))
    if moment == 1:
        stage.world.write_disk()  # stored, and not answered
    if moment >= 2:
        assert client.got() == [Pubrec(5)]
    if moment < 3:
        client = again()
        assert client.send(Publish("a", b"1", 2, 5, dup=True)) == [Pubrec(5)]
    assert client.session is not None
    client.session.receive(Pubrel(5))
    if moment == 4:
        stage.world.write_disk()
    if moment == 5:
        assert client.got() == [Pubcomp(5)]
    else:
        client = again()
        assert client.send(Pubrel(5)) == [Pubcomp(5)]
    client = again()
    assert client.send(Publish("a", b"2", 2, 5)) == [Pubrec(5)]  # the same identifier for another one
    assert stage.events == [("a", b"1"), ("a", b"2")]


def test_topic_aliases(stage: Stage) -> None:
    client = stage.client()
    client.send(Publish("a", b"1", properties={"topic_alias": 3}), Publish("", b"2", properties={"topic_alias": 3}))
    client.send(Publish("b", b"3", properties={"topic_alias": 3}), Publish("", b"4", properties={"topic_alias": 3}))
    assert stage.events == [("a", b"1"), ("a", b"2"), ("b", b"3"), ("b", b"4")]
    client.lose()
    client = stage.client()
    client.send(Publish("", b"5", properties={"topic_alias": 3}))  # [MQTT-3.3.2-7]
    assert client.ended == Reason.PROTOCOL_ERROR
    client = stage.client()
    client.send(Publish("a", b"", properties={"topic_alias": 65}))
    assert client.ended == Reason.BAD_ALIAS


def test_lifetimes_are_for_protocols_that_have_them(stage: Stage) -> None:
    stage.publish("a", properties={"message_expiry": 60})
    stage.world.takes_lifetimes = True
    stage.publish("a", properties={"message_expiry": 60})
    assert [form.lifetime for form in stage.world.events] == [None, 60]


# --- Subscribing ----------------------------------------------------------------------------------------------------


def test_subscriptions_are_granted_1_at_most(stage: Stage) -> None:
    wanted = tuple(
        WantedTopic(text, qos) for text, qos in (("a", 0), ("b", 1), ("c", 2), ("x/#/y", 1), ("$share/g/a", 1))
    )
    assert stage.client().send(Subscribe(7, wanted)) == [Suback(7, (0, 1, 1, 0x8F, 0x9E))]
    assert stage.client("3", V311).send(Subscribe(7, wanted)) == [Suback(7, (0, 1, 1, 0x80, 0x80))]


def test_an_event_is_delivered_by_topic_and_by_content(stage: Stage) -> None:
    by_topic = subscribed(stage.client("t"), "home/+", identifier=1)
    by_content = subscribed(stage.client("c"), "$filter/value%20%3E%2020", identifier=2)
    for payload in (b"19", b"21"):
        stage.publish("home/kitchen", payload)
    stage.publish("home/kitchen/oven", b"200")
    assert plain(by_topic.messages()) == [("home/kitchen", b"19"), ("home/kitchen", b"21")]
    found = by_content.messages()
    assert plain(found) == [("home/kitchen", b"21"), ("home/kitchen/oven", b"200")]
    assert [message.properties["subscription_identifier"] for message in found] == [(2,), (2,)]
    assert found[0].properties["user"] == (("roamcast-id", "7:2"),)


def test_a_message_is_sent_with_the_lower_qos(stage: Stage) -> None:
    high, low = subscribed(stage.client("h"), qos=1), subscribed(stage.client("l"), qos=0)
    stage.publish("a", qos=0)
    stage.publish("a", qos=1)
    assert [message.qos for message in high.messages()] == [0, 1]
    assert [message.qos for message in low.messages()] == [0, 0]


def test_receive_maximum_is_kept(stage: Stage) -> None:
    client = subscribed(stage.client(properties={"receive_maximum": 2}))
    for payload in (b"1", b"2", b"3"):
        stage.publish("a", payload)
    first, second = client.messages()
    assert client.send(Pingreq()) == [Pingresp()]  # [MQTT-4.9.0-3]
    [third] = client.send(Puback(first.packet))
    assert isinstance(third, Publish)
    assert third.payload == b"3"
    assert third.packet not in (second.packet, 0)


def test_what_is_not_acknowledged_is_sent_again(stage: Stage) -> None:
    client = subscribed(stage.client(properties=LASTING))
    for payload in (b"1", b"2", b"3"):
        stage.publish("a", payload)
    one, two, three = client.messages()
    client.send(Puback(two.packet))
    client.lose()
    stage.publish("a", b"4")
    client = stage.client(clean=False, properties=LASTING)
    again = client.messages()
    assert [(m.payload, m.dup) for m in again] == [(b"1", True), (b"3", True), (b"4", False)]
    assert [m.packet for m in again[:2]] == [one.packet, three.packet]  # [MQTT-4.4.0-1]
    assert again[2].packet not in (one.packet, three.packet)
    client.send(*(Puback(message.packet) for message in again))
    client.lose()
    assert stage.client(clean=False, properties=LASTING).messages() == []


def test_so_it_is_after_kill_9(stage: Stage) -> None:
    client = subscribed(stage.client(properties=LASTING))
    stage.publish("a", b"1")
    [one] = client.messages()
    client.session._in_flight[one.packet][1].mailbox.give_back(client.session._in_flight[one.packet][2])  # type: ignore[union-attr]
    stage = stage.killed()
    client = stage.client(clean=False, properties=LASTING)
    assert [(message.payload, message.dup) for message in client.messages()] == [(b"1", True)]


def test_a_session_ends_when_it_should(stage: Stage) -> None:
    client = subscribed(stage.client(properties={"session_expiry": 10}))
    client.lose()
    stage.world.sleep(9)
    assert len(stage.sessions) == 1
    stage.world.sleep(2)
    assert len(stage.sessions) == 0
    assert stage.world.disk == {}
    assert stage.world.mailboxes == {}
    assert not FakeClient(stage.sessions, stage.world).connect(clean=False).session_present


def test_a_session_ends_in_time_after_kill_9(stage: Stage) -> None:
    subscribed(stage.client("gone", properties={"session_expiry": 10})).lose()
    subscribed(stage.client("there", properties={"session_expiry": 10}))
    stage.world.time += 6
    stage = stage.killed()
    stage.world.sleep(5)
    assert [len(stage.sessions), list(stage.world.disk)] == [1, ["session/there"]]
    stage.world.sleep(6)
    assert stage.world.disk == {}


def test_a_session_that_lasted_goes_on_with_a_client_that_lets_it_end(stage: Stage) -> None:
    subscribed(stage.client(properties=LASTING)).lose()
    stage.publish("a", b"1")
    client = stage.client(clean=False)
    assert plain(client.messages()) == [("a", b"1")]
    client.lose()
    assert len(stage.sessions) == 1  # the publisher's
    assert (stage.world.disk, stage.world.mailboxes) == ({}, {})


def test_a_session_of_3_lasts_if_it_is_not_clean(stage: Stage) -> None:
    subscribed(stage.client("k", V311, clean=False)).lose()
    subscribed(stage.client("c", V311)).lose()
    stage.world.sleep(10**9)
    assert len(stage.sessions) == 1
    assert FakeClient(stage.sessions, stage.world, V311).connect("k", clean=False).session_present
    assert not FakeClient(stage.sessions, stage.world, V311).connect("k").session_present


def test_disconnect_can_end_a_session(stage: Stage) -> None:
    client = subscribed(stage.client(properties={"session_expiry": NEVER}))
    assert client.session is not None
    stage.sessions.disconnected(client.session, client, reason=0, expiry=0)
    stage.world.settle()
    assert stage.world.disk == {}


def test_subscribing_again_changes_the_options_and_loses_nothing(stage: Stage) -> None:
    client = subscribed(stage.client(), qos=1)
    stage.publish("a", b"1")
    subscribed(client, qos=0)
    stage.publish("a", b"2")
    assert [(message.payload, message.qos) for message in client.messages()] == [(b"1", 1), (b"2", 0)]


def test_unsubscribing(stage: Stage) -> None:
    client = subscribed(stage.client(properties=LASTING), "a")
    stage.publish("a", b"1")
    [message] = client.messages()
    assert client.send(Unsubscribe(3, ("a", "b"))) == [Unsuback(3, (0, Reason.NO_SUBSCRIPTION))]
    stage.publish("a", b"2")
    assert client.send(Puback(message.packet)) == []  # [MQTT-3.10.4-3]
    assert stage.world.mailboxes == {}


def test_a_clogged_connection_gets_nothing_until_it_is_free(stage: Stage) -> None:
    client = subscribed(stage.client())
    client.clogged = True
    stage.publish("a", b"1")
    assert client.messages() == []
    client.clogged = False
    assert client.session is not None
    client.session.pump_soon()
    assert plain(client.messages()) == [("a", b"1")]


def test_no_local(stage: Stage) -> None:
    client = subscribed(stage.client(), no_local=True)
    client.send(Publish("mine", b"", 1, 1))
    stage.publish("other", b"x")
    assert plain(client.messages()) == [("other", b"x")]


def test_what_is_too_large_is_not_sent(stage: Stage) -> None:
    client = subscribed(stage.client(properties={"maximum_packet_size": 100}))
    stage.publish("a", b"x" * 100)
    stage.publish("a", b"y")
    stage.publish("a", b"z" * 90)  # it fits without what the node adds
    small, medium = client.messages()
    assert plain([small, medium]) == [("a", b"y"), ("a", b"z" * 90)]  # [MQTT-3.1.2-28]
    assert (dict(small.properties), dict(medium.properties)) == ({"user": (("roamcast-id", "7:2"),)}, {})


def test_our_topic_aliases(stage: Stage) -> None:
    client = subscribed(stage.client(properties={"topic_alias_maximum": 1}))
    for topic in ("a", "a", "b"):
        stage.publish(topic)
    found = [(message.topic, message.properties.get("topic_alias")) for message in client.messages()]
    assert found == [("a", 1), ("", 1), ("b", None)]


def test_a_message_expires(stage: Stage) -> None:
    subscribed(stage.client(properties=LASTING)).lose()
    stage.publish("a", b"1", properties={"message_expiry": 10})
    stage.publish("a", b"2", properties={"message_expiry": 100})
    stage.world.time += 30
    [left] = stage.client(clean=False, properties=LASTING).messages()
    assert (left.payload, left.properties["message_expiry"]) == (b"2", 70)  # [MQTT-3.3.2-6]


def test_everything_about_a_message_arrives(stage: Stage) -> None:
    client = subscribed(stage.client())
    given: dict[str, Any] = {
        "payload_format": 1,
        "content_type": "text/plain",
        "response_topic": "r",
        "correlation_data": b"c",
        "user": (("a", "1"), ("b", "2"), ("a", "3")),
    }
    stage.publish("t", b"text", properties=given)
    [message] = client.messages()
    assert message.properties == given | {"user": (*given["user"], ("roamcast-id", "7:1"))}


# --- Retained messages ----------------------------------------------------------------------------------------------


def test_a_new_subscription_gets_what_was_retained(stage: Stage) -> None:
    for payload in (b"1", b"2"):
        stage.publish("lamp/a", payload, retain=True)
    stage.publish("lamp/b", b"3", retain=True)
    stage.publish("lamp/b", b"", retain=True)  # [MQTT-3.3.1-6]
    stage.publish("lamp/c", b"4")
    client = subscribed(stage.client(), "lamp/+")
    [message] = client.messages()
    assert (message.topic, message.payload, message.retain, message.qos) == ("lamp/a", b"2", True, 1)


def test_retain_handling_and_retain_as_published(stage: Stage) -> None:
    stage.publish("a", b"1", retain=True)
    client = subscribed(stage.client(), "a", retain_handling=1, retain_as_published=True)
    assert len(client.messages()) == 1
    assert subscribed(client, "a", retain_handling=1, retain_as_published=True).messages() == []  # [MQTT-3.3.1-10]
    assert len(subscribed(client, "a", retain_handling=0, retain_as_published=True).messages()) == 1
    assert subscribed(stage.client("d"), "a", retain_handling=2).messages() == []
    stage.publish("a", b"2", retain=True)
    assert [message.retain for message in client.messages()] == [True]  # [MQTT-3.3.1-13]


def test_retained_messages_live_as_long_as_they_should(stage: Stage) -> None:
    stage.publish("a", b"1", retain=True, properties={"message_expiry": 10})
    stage.publish("b", b"2", retain=True)
    stage = stage.killed()
    assert len(subscribed(stage.client("now")).messages()) == 2
    stage.world.time += 11
    assert plain(subscribed(stage.client("later")).messages()) == [("b", b"2")]


def test_a_subscription_that_is_behind_does_not_bring_back_what_was_retained_before(stage: Stage) -> None:
    slow = subscribed(stage.client("slow", properties={"receive_maximum": 1}))
    for payload in (b"0", b"1", b"2", b""):
        stage.world.time += 1
        stage.publish("a", payload, retain=True)
    while messages := slow.messages():
        slow.send(*(Puback(message.packet) for message in messages if message.qos))
    assert subscribed(stage.client("new")).messages() == []


# --- Wills ----------------------------------------------------------------------------------------------------------


def test_a_will_is_published_when_a_client_is_lost(stage: Stage) -> None:
    stage.client(will=Will("gone", b"c", 1)).lose()
    assert stage.events == [("gone", b"c")]
    assert stage.world.disk == {}


@pytest.mark.parametrize(("reason", "published"), [(0, False), (4, True)])
def test_a_disconnect_says_whether_the_will_is_published(stage: Stage, reason: int, published: bool) -> None:
    client = stage.client(will=Will("gone", b"c", 1))
    assert client.session is not None
    stage.sessions.disconnected(client.session, client, reason=reason)
    stage.world.settle()
    assert stage.events == [("gone", b"c")] * published


def test_a_will_waits_for_its_delay(stage: Stage) -> None:
    will = Will("gone", b"c", properties={"will_delay": 10})
    stage.client(will=will, properties=LASTING).lose()
    stage.world.sleep(9)
    stage.client(clean=False, will=will, properties=LASTING).lose()  # back in time [MQTT-3.1.2-26]
    stage.world.sleep(9)
    assert stage.events == []
    stage.world.sleep(2)
    assert stage.events == [("gone", b"c")]
    stage.client("clean", will=will, properties=LASTING).lose()
    stage.client("clean")  # this ends the session, and so the delay
    assert len(stage.events) == 2
    stage.client("other", will=will).lose()  # its session ends at once, and that ends the delay
    assert len(stage.events) == 3


def test_a_retained_will(stage: Stage) -> None:
    stage.client(will=Will("state", b"off", 1, True)).lose()
    assert plain(subscribed(stage.client("d")).messages()) == [("state", b"off")]


def test_a_will_is_published_if_the_node_was_killed(stage: Stage) -> None:
    stage.client(will=Will("gone", b"c", 1))
    stage = stage.killed()
    assert stage.events == [("gone", b"c")]
    assert stage.killed().events == [("gone", b"c")]
