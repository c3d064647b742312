"""What an event may hold, and what is refused by name."""

import enum
import math

import msgspec
import numpy as np
import pytest

from roamcast.content.event import INT_MAX, INT_MIN, TYPE, Event, event_id
from roamcast.errors import ContentError


def test_the_friendly_form_wraps_single_values() -> None:
    event = Event.of("CD", {"category": "jazz", "price": 18.0, "track": ["So What", "Blue in Green"]})
    assert event.attributes == {
        "category": ("jazz",),
        "price": (18.0,),
        "track": ("So What", "Blue in Green"),
    }


def test_values_of_present_missing_and_type() -> None:
    event = Event.of("CD", {"track": ["a", "b"]})
    assert event.values("track") == ("a", "b")
    assert event.values("price") == ()
    assert event.values(TYPE) == ("CD",)


@pytest.mark.parametrize(
    "value", ["", "\0\n\x7f", "日本", "\U0010ffff", 0, INT_MIN, INT_MAX, -0.0, math.inf, -math.inf, True]
)
def test_extreme_values_survive_the_wire(value: str | int | float | bool) -> None:
    event = Event.of("", {"a": value}, payload=b"\0\xff", id=INT_MIN)
    decoded = msgspec.msgpack.decode(msgspec.msgpack.encode(event), type=Event)
    assert decoded == event
    assert type(decoded.values("a")[0]) is type(value)


@pytest.mark.parametrize(
    ("attributes", "complaint"),
    [
        ({"a": math.nan}, "attribute 'a' is NaN"),
        ({"a": 2**63}, "attribute 'a' is an integer beyond 64 bits: 9223372036854775808"),
        ({"a": -(2**63) - 1}, "beyond 64 bits"),
        ({"a": "x\ud800"}, "attribute 'a' has a lone surrogate at 1"),
        ({"\udfff": 1}, "an attribute's name has a lone surrogate at 0"),
        ({"": 1}, "an attribute's name is empty"),
        ({"a": []}, "attribute 'a' needs a tuple of one or more values"),
        ({"a": [None]}, "attribute 'a' must be a str, int, float or bool, not None"),
    ],
)
def test_what_an_event_cannot_hold(attributes: dict[str, float], complaint: str) -> None:
    with pytest.raises(ContentError, match=complaint):
        Event.of("CD", attributes)


def test_attributes_without_names_are_refused() -> None:
    with pytest.raises(ContentError, match=r"attributes are given by name, such as .*, not as 'offer'"):
        Event.of("price", "offer")  # type: ignore[arg-type]  # as who mixes up the two arguments of `Client.publish`


def test_subclasses_of_plain_values_become_plain() -> None:
    event = Event.of("T", {"a": np.float64(1.5), "b": [Upper.A, "x"]})
    assert [type(v) for name in "ab" for v in event.values(name)] == [float, str, str]
    with pytest.raises(ContentError, match="must be a str, int, float or bool"):
        Event("T", {"a": (np.float64(1.5),)})


class Upper(enum.StrEnum):
    A = "a"


def test_a_frame_with_a_bad_value_is_refused_while_decoding() -> None:
    frame = msgspec.msgpack.encode(["CD", {"a": [math.nan]}, b"", 1])
    with pytest.raises(msgspec.ValidationError, match="attribute 'a' is NaN"):
        msgspec.msgpack.decode(frame, type=Event)


def test_ids_name_the_node_and_the_serial() -> None:
    assert event_id(0, 1) == 1
    assert event_id(1, 1) == 4294967297
    assert event_id(2**31 - 1, 2**32 - 1) == INT_MAX
    for node, serial in [(-1, 1), (2**31, 1), (0, 0), (0, 2**32)]:
        with pytest.raises(ContentError, match="an event id needs"):
            event_id(node, serial)


def test_size_is_the_length_of_the_encoding() -> None:
    # array of 4 (1), "CD" (1+2), map of 1 (1), "a" (1+1), array of 1 (1), 7 (1), 3 bytes (2+3), id 1 (1)
    assert Event.of("CD", {"a": 7}, payload=b"xyz", id=1).size == 15
