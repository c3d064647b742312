"""Topics and content, both ways."""

import json
from functools import lru_cache
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roamcast.content.text import parse_filter
from roamcast.live.control_messages import EventForm
from roamcast.live.mqtt.packets import PacketError, Publish, Reason
from roamcast.live.mqtt.topics import ApplicationMessage, event_of, filter_of, matches, message_of


@pytest.mark.parametrize(
    ("message", "type", "attributes"),
    [
        (ApplicationMessage("offer", b'{"price": 12.5}'), "offer", {"price": (12.5,)}),
        (
            ApplicationMessage("home/kitchen/temperature", b"21.5"),
            "home",
            {"level1": ("kitchen",), "level2": ("temperature",), "value": (21.5,)},
        ),
        (ApplicationMessage("lamp", b"ON"), "lamp", {"value": ("ON",)}),
        (ApplicationMessage("lamp", b"true"), "lamp", {"value": (True,)}),
        (
            ApplicationMessage("cd", b'{"tags": ["jazz", "live"], "of": {"a": 1}, "none": null}'),
            "cd",
            {"tags": ("jazz", "live")},
        ),
        (ApplicationMessage("cd", b'{"": 1, "level1": "x", "mqtt": "y", "n": 1}'), "cd", {"n": (1,)}),
        (ApplicationMessage("big", b'{"n": 123456789012345678901234567890}'), "big", {}),
        (ApplicationMessage("picture", b"\xff\xd8\xff"), "picture", {}),
        (
            ApplicationMessage("a", b"x", user=(("price", "12.5"), ("ok", "true"), ("id", "007"))),
            "a",
            {
                "value": ("x",),
                "price": (12.5,),
                "ok": (True,),
                "id": ("007",),
            },
        ),
        (ApplicationMessage("a", b'{"n": 1}', user=(("n", "2"), ("n", "3"))), "a", {"n": (2, 3)}),
        (ApplicationMessage("/a//"), "", {"level1": ("a",), "level2": ("",), "level3": ("",)}),
    ],
)
def test_a_message_is_an_event(
    message: ApplicationMessage, type: str, attributes: dict[str, tuple[object, ...]]
) -> None:
    form = event_of(message)
    assert (form.type, form.attributes, form.payload) == (type, attributes, message.payload)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (EventForm("offer", {"price": 12.5}), ApplicationMessage("offer", b'{"price":12.5}')),
        (EventForm("cd", {"tags": ("jazz", "live")}), ApplicationMessage("cd", b'{"tags":["jazz","live"]}')),
        (EventForm("", {"n": 1}), ApplicationMessage("event", b'{"n":1}')),
        (EventForm(), ApplicationMessage("event")),
        (
            EventForm("offer", {"price": 12.5, "ok": True}, b"\xff"),
            ApplicationMessage(
                "offer",
                b"\xff",
                user=(("price", "12.5"), ("ok", "true")),
            ),
        ),
        (EventForm("offer", {"level1": "music", "level2": 7, "n": 1}), ApplicationMessage("offer/music", b'{"n":1}')),
        (EventForm("a/b+c#", {"level1": "x/y"}), ApplicationMessage("a%2Fb%2Bc%23/x%2Fy")),
        (EventForm("$SYS", {}), ApplicationMessage("%24SYS")),
        (EventForm("a", {"mqtt": '{"qos": 0, "retain": true}'}), ApplicationMessage("a", qos=0, retain=True)),
        # Nonsense in `mqtt` is not believed.
        (EventForm("a", {"mqtt": '{"qos": 2}'}), ApplicationMessage("a")),
        (EventForm("a", {"mqtt": '{"content_type": "\\u0000"}'}), ApplicationMessage("a")),
        (EventForm("a", {"mqtt": '{"expiry": -1}'}), ApplicationMessage("a")),
        (EventForm("a", {"mqtt": 7}), ApplicationMessage("a")),
        (EventForm("a", {"mqtt": "garbage"}), ApplicationMessage("a")),
    ],
)
def test_an_event_is_a_message(form: EventForm, message: ApplicationMessage) -> None:
    assert message_of(form) == message


# --- A message arrives as it was published --------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
LEVELS = st.sampled_from(["", "a", "b", "event", "%2F", "level1", "ü", "a b", "$x"])
TOPIC = st.lists(LEVELS, min_size=1, max_size=4).map("/".join).filter(lambda topic: topic and topic[0] != "$")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
PAYLOAD = st.binary(max_size=20) | JSON.map(lambda content: json.dumps(content).encode())
NAMES = st.sampled_from(["", "n", "mqtt", "level1", "value", "unit"]) | TEXT
USER = st.lists(st.tuples(NAMES, TEXT | st.sampled_from(["1", "1.50", "1.5", "true", "-0", "1e400"])), max_size=4)
MESSAGE = st.builds(
    ApplicationMessage,
    TOPIC,
    PAYLOAD,
    USER.map(tuple),
    qos=st.integers(0, 1),
    retain=st.booleans(),
    text=st.booleans(),
    content_type=st.none() | TEXT,
    response_topic=st.none() | TEXT,
    correlation_data=st.none() | st.binary(max_size=8),
    expiry=st.none() | st.integers(0, 2**32 - 1),
)


@given(MESSAGE)
def test_a_message_arrives_as_it_was_published(message: ApplicationMessage) -> None:
    form = event_of(message)
    form.event()  # it is a valid one
    assert message_of(form) == message


def test_properties_of_a_packet_come_back() -> None:
    properties = {
        "payload_format": 1,
        "message_expiry": 60,
        "content_type": "text/plain",
        "response_topic": "r",
        "correlation_data": b"c",
        "user": (("a", "1"), ("b", "2"), ("a", "3")),
    }
    message = ApplicationMessage.of(Publish("a", b"x", 1, 7, properties=properties), "a")
    assert message_of(event_of(message)).properties() == properties


def test_long_json_gives_what_fits() -> None:
    form = event_of(
        ApplicationMessage("a", b'{"long": "' + b"x" * 20_000 + b'", "n": 1, "many": [' + b"1," * 600 + b'1], "m": 2}')
    )
    assert form.attributes == {"n": (1,), "m": (2,)}
    form.event()


# --- Topic Filters --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic_filter", "topic", "answer"),
    [  # [4.7.1.2], [4.7.1.3], [4.7.2]: the standard's examples
        ("sport/tennis/player1/#", "sport/tennis/player1", True),
        ("sport/tennis/player1/#", "sport/tennis/player1/ranking", True),
        ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", True),
        ("sport/#", "sport", True),
        ("#", "sport/tennis", True),
        ("sport/tennis/+", "sport/tennis/player1", True),
        ("sport/tennis/+", "sport/tennis/player1/ranking", False),
        ("sport/+", "sport", False),
        ("sport/+", "sport/", True),
        ("+/+", "/finance", True),
        ("/+", "/finance", True),
        ("+", "/finance", False),
        ("+/monitor/Clients", "$SYS/monitor/Clients", False),
        ("#", "$SYS/monitor/Clients", False),
        ("$SYS/#", "$SYS/monitor/Clients", True),
        ("accounts", "Accounts", False),
    ],
)
def test_wildcards_are_those_of_the_standard(topic_filter: str, topic: str, answer: bool) -> None:
    assert matches(topic_filter, topic) is answer


@lru_cache(None)
def slowly(wanted: tuple[str, ...], levels: tuple[str, ...]) -> bool:
    """An obvious twin, level by level."""
    if wanted == ("#",):
        return True
    if not wanted or not levels:
        return wanted == levels or (not levels and wanted == ("#",))
    return wanted[0] in ("+", levels[0]) and slowly(wanted[1:], levels[1:])


SOUGHT = st.tuples(st.lists(LEVELS | st.just("+"), max_size=4), st.sampled_from([[], ["#"]])).map(
    lambda parts: "/".join(parts[0] + parts[1])
)


@given(SOUGHT.filter(bool), MESSAGE)
def test_a_topic_filter_accepts_the_content_of_its_topics(topic_filter: str, message: ApplicationMessage) -> None:
    matching = slowly(tuple(topic_filter.split("/")), tuple(message.topic.split("/")))
    assert matches(topic_filter, message.topic) is matching
    if matching:
        assert filter_of(topic_filter).matches(event_of(message).event())


@given(SOUGHT.filter(bool), st.text(max_size=6), st.lists(st.text(max_size=4) | st.integers(-9, 9), max_size=3))
def test_so_it_does_for_events_of_others(topic_filter: str, type: str, levels: list[str | int]) -> None:
    form = EventForm(type, {f"level{number}": level for number, level in enumerate(levels, 1)})
    if matches(topic_filter, message_of(form).topic):
        assert filter_of(topic_filter).matches(form.event())


def test_a_filter_is_text_after_its_prefix() -> None:
    text = 'type = "a/b" and (price < 20 or name ^= "#+%")'
    assert filter_of("$filter/" + quote(text)) == parse_filter(text)
    assert filter_of("$filter/price < 20") == parse_filter("price < 20")
    assert matches("$filter/price < 20", "anything")


@pytest.mark.parametrize(
    ("topic_filter", "reason"),
    [
        ("", Reason.BAD_FILTER),
        ("sport/tennis#", Reason.BAD_FILTER),
        ("sport/tennis/#/ranking", Reason.BAD_FILTER),
        ("sport+", Reason.BAD_FILTER),
        ("a/" * 40, Reason.BAD_FILTER),
        ("a" * 2000, Reason.BAD_FILTER),
        ("$share/group/a", Reason.NO_SHARED_SUBSCRIPTIONS),
        ("$filter/price <", Reason.BAD_FILTER),
        ("$filter/a = 1 + 2", Reason.BAD_FILTER),
        ("$filter/%ff", Reason.BAD_FILTER),
        ("$filter/", Reason.BAD_FILTER),
    ],
)
def test_what_is_no_filter_is_refused(topic_filter: str, reason: Reason) -> None:
    with pytest.raises(PacketError) as refused:
        filter_of(topic_filter)
    assert refused.value.reason == reason


@pytest.mark.parametrize("topic", ["", "a/+", "#", "$SYS/a", "$filter/true", "x" * 2000, "a/" * 40])
def test_what_is_no_topic_is_refused(topic: str) -> None:
    with pytest.raises(PacketError) as refused:
        event_of(ApplicationMessage(topic))
    assert refused.value.reason == Reason.BAD_TOPIC
