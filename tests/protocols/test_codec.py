"""The encoding of messages: what goes in comes out, and nothing else does."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from content.strategies import events
from roamcast.content.event import Event
from roamcast.errors import RoamcastError
from roamcast.protocols.codec import VERSION, Codec, FrameError
from roamcast.protocols.flooding import Data
from roamcast.protocols.messages import Message, kind_of


class Beacon(Message, frozen=True, tag="beacon"):
    """A second kind of message."""

    period: float


CODEC = Codec((Data, Beacon))
FRAME = b"\x01\x93\xa4data\x94\xa1t\x81\xa1a\x91\x05\xc4\x02ok\x07\x03"
"""By hand: version 1; an array of the tag, an array (type, attributes, payload, id) and the hops."""
MESSAGE = Data(Event("t", {"a": (5,)}, b"ok", 7), 3)


def test_a_frame_by_hand() -> None:
    assert CODEC.encode(MESSAGE) == FRAME
    assert CODEC.decode(FRAME) == MESSAGE
    assert CODEC.size(MESSAGE) == len(FRAME) == 21


@given(st.builds(Data, events, st.integers(0, 2**31 - 1)) | st.builds(Beacon, st.floats(allow_nan=False)))
def test_what_goes_in_comes_out(message: Message) -> None:
    frame = CODEC.encode(message)
    assert CODEC.decode(frame) == message
    assert CODEC.size(message) == len(frame)
    assert frame[0] == VERSION


def refused(frame: bytes) -> str:
    with pytest.raises(FrameError) as caught:
        CODEC.decode(frame)
    assert isinstance(caught.value, RoamcastError)
    return str(caught.value)


def test_what_is_not_a_message_is_refused() -> None:
    assert refused(b"") == "an empty frame"
    assert refused(b"\x02" + FRAME[1:]) == "a frame of version 2; this is version 1"
    assert "trailing" in refused(FRAME + b"\0")
    assert "'Data'" not in refused(FRAME.replace(b"\xa4data", b"\xa4nope"))
    assert "Expected `int`" in refused(FRAME[:-1] + b"\xa1x")
    refused(FRAME.replace(b"\xa1t", b"\xa1\xff"))  # not UTF-8
    refused(FRAME.replace(b"\xa1a", b"\xa0"))  # an attribute without a name: a rule of the event, not of the encoding


@pytest.mark.parametrize("length", range(len(FRAME)))
def test_a_frame_cut_off_anywhere_is_refused(length: int) -> None:
    refused(FRAME[:length])


@pytest.mark.parametrize("nested", [b"\x91", b"\x81\xa1a", b"\x81\x91"])
def test_deep_nesting_is_refused_wherever_it_stands(nested: bytes) -> None:
    deep = nested * 100_000
    refused(b"\x01" + deep)
    refused(b"\x01\x93\xa4data" + deep)
    refused(b"\x01\x94" + FRAME[2:] + deep)  # a field that this version does not know


def test_a_length_that_the_frame_does_not_have_takes_no_memory() -> None:
    refused(FRAME.replace(b"\x91\x05", b"\xdd\xff\xff\xff\xff\x05"))
    refused(FRAME.replace(b"\xc4\x02ok", b"\xc6\xff\xff\xff\xffok"))


def test_a_message_of_another_protocol_is_refused() -> None:
    refusing = Codec((Beacon,))
    with pytest.raises(FrameError):
        refusing.decode(FRAME)


@given(st.binary(max_size=40))
def test_arbitrary_bytes_are_a_message_or_refused(noise: bytes) -> None:
    for frame in (noise, bytes((VERSION,)) + noise, FRAME[: len(noise)] + noise):
        try:
            message = CODEC.decode(frame)
        except FrameError:
            continue
        assert msgspec.msgpack.encode(message)


def test_the_kind_of_a_message_is_its_tag() -> None:
    assert (kind_of(Data), kind_of(Beacon), MESSAGE.cause, MESSAGE.urgent) == ("data", "beacon", 0, False)
